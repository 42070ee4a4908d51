//! The adapter between a node and its world: the state of its ports, the busy wires, its next
//! wake-up, its trace, its accounts.
//!
//! In plain English: deliver the `TxDone`s of wires that have become free; deliver the input;
//! carry out the actions that the node returns (a frame on a wire becomes an arrival to come);
//! put an event in the queue for the node's deadline.
//!
//! **`TxDone` is lazy.** A wire that is free again matters only to a node that waits for it,
//! and mostly none does. So a `TxDone` becomes an event only while its port is
//! [awaited](axon_node::Node::awaited); the others are delivered before the next input that the
//! node handles, each with the time at which it was due, if no frame that was passed has taken the
//! wire meanwhile. The order at one instant is the same for both: before any other input of an
//! instant come the `TxDone`s due at or before it, by time and then by port. So neither a station
//! nor the trace sees a difference.
//!
//! All of this is written for any type of node, and made anew for switches and for hosts: what
//! happens for every frame of every link is one straight piece of code.

mod wires;

use crate::engine::accounts::Accounts;
use crate::engine::event::{Common, Event, Kind};
use crate::engine::place::Place;
use crate::engine::queue::Key;
use crate::engine::store::Store;
use crate::engine::taps::Taps;
use crate::engine::trace::{Line, StationTrace, What};
use crate::host::lost::LostDatagrams;
use crate::link::disorder::Odd;
use crate::link::links::Loss;
use crate::link::port::{PortState, Verdict};
use crate::link::timing::{Passage, Timing};
use axon_node::{Action, Drop, Input, Node};
use axon_wire::{FrameBuf, HopWidth, PortNo, Time};

/// Wake-ups at one instant after which a node is held to be broken.
const STUCK_MAX: u32 = 10_000;

/// The port that a frame leaves by; the station, the port and the carrier at the far end.
type Onward = (PortNo, (Place, PortNo, u32));

/// The adapter between a node and its world. What every frame that passes needs comes first, in two
/// cache lines with the node of the station before it.
#[repr(C)]
pub(crate) struct Adapter {
    /// No wire is free before.
    owed_first: Time,
    /// No wire that the node waits for is free before.
    awaited_first: Time,
    /// When the wire of each port is free; [`Time::MAX`] where no `TxDone` is owed.
    free_at: Box<[Time]>,
    /// Events that it has caused.
    sequence: u64,
    pub(crate) ports: Box<[PortState]>,
    /// Its number in the world.
    pub(crate) number: u32,
    /// Wake-ups in a row that did not move its deadline past them.
    stuck: u32,
    pub(crate) trace: StationTrace,
    /// Frames in and out of the present incarnation.
    pub(crate) accounts: Accounts,
    /// When its next wake-up is due, if one is in the queue.
    armed: Option<Time>,
    /// Ports that the node waits for, and for whose `TxDone` there is an event.
    planned: Vec<PortNo>,
    /// Its NIC drops a frame with a bad FCS.
    pub(crate) checks_fcs: bool,
    /// Its frames look like a host's to the pipeline of a switch.
    pub(crate) host: bool,
    pub(crate) name: String,
    pub(crate) timing: Timing,
    /// Frames in and out of all earlier incarnations, if there were any.
    pub(crate) past: Option<Box<Accounts>>,
    /// What did not balance when an incarnation ended; the first such fault is kept.
    pub(crate) fault: Option<String>,
    /// The number of incarnations so far, which is that of the running one, from 1.
    pub(crate) incarnations: u64,
    /// Copies of what some ports carry, if any port is captured.
    pub(crate) taps: Option<Box<Taps>>,
    /// Datagrams that have ended here, in all incarnations.
    pub(crate) lost: LostDatagrams,
    /// Bits of a hop in the headers of frames here.
    pub(crate) hop_width: HopWidth,
    /// What the node keeps for its next incarnation.
    pub(crate) store: Store,
}

impl Adapter {
    pub(crate) fn new(name: String, number: u32) -> Adapter {
        Adapter {
            owed_first: Time::MAX,
            awaited_first: Time::MAX,
            free_at: Box::default(),
            sequence: 0,
            ports: Box::default(),
            number,
            stuck: 0,
            trace: StationTrace::default(),
            accounts: Accounts::default(),
            armed: None,
            planned: Vec::new(),
            checks_fcs: false,
            host: false,
            name,
            timing: Timing::default(),
            past: None,
            fault: None,
            incarnations: 0,
            taps: None,
            lost: LostDatagrams::default(),
            hop_width: HopWidth::default(),
            store: Store::default(),
        }
    }

    /// A prefetch hint: reads a little of what every event needs; see `prefetch.rs`.
    #[inline]
    pub(crate) fn prefetch(&self) -> u64 {
        self.owed_first.ticks() ^ self.trace.events() ^ self.accounts.received
    }

    /// A prefetch hint for what a host needs beside.
    #[inline]
    pub(crate) fn prefetch_end(&self) -> u64 {
        self.armed.map_or(0, Time::ticks) ^ self.trace.prefetch()
    }

    /// A prefetch hint for a port where a frame comes in.
    #[inline]
    pub(crate) fn prefetch_port(&self, port: PortNo) -> u64 {
        self.ports.get(port.index()).map_or(0, |port_state| port_state.wire_free.ticks())
    }

    /// A prefetch hint for a port where a frame goes out.
    #[inline]
    pub(crate) fn prefetch_way(&self, port: PortNo) -> u64 {
        let Some(port_state) = self.ports.get(port.index()) else { return 0 };
        let peer = port_state.cable.as_ref().map_or(0, |cable| u64::from(cable.peer.slot));
        let free_at = self.free_at.get(port.index()).map_or(0, |free_at| free_at.ticks());
        port_state.wire_free.ticks() ^ peer ^ free_at
    }

    /// The state of a port. Ports come into being when they are first used.
    pub(crate) fn port_mut(&mut self, port: PortNo) -> &mut PortState {
        let index = port.index();
        if index >= self.ports.len() {
            let mut ports = std::mem::take(&mut self.ports).into_vec();
            ports.resize_with(index + 1, PortState::default);
            self.ports = ports.into();
            let mut free_at = std::mem::take(&mut self.free_at).into_vec();
            free_at.resize(index + 1, Time::MAX);
            self.free_at = free_at.into();
        }
        &mut self.ports[index]
    }

    /// Whether a port has the carrier of this number now.
    pub(crate) fn has_carrier(&self, port: PortNo, carrier: u32) -> bool {
        let cable = self.ports.get(port.index()).and_then(|state| state.cable.as_ref());
        cable.is_some_and(|cable| cable.carrier == carrier)
    }

    /// A frame has come in.
    #[inline]
    pub(crate) fn arrive<N>(
        &mut self,
        node: &mut N,
        (port, carrier): (PortNo, u32),
        (mut frame, complete_at, intact): (FrameBuf, Time, bool),
        common: &mut Common,
    ) where
        N: Node + ?Sized,
    {
        let cable =
            self.ports[port.index()].cable.as_mut().filter(|cable| cable.carrier == carrier);
        let Some(cable) = cable else {
            return self.lose(port, Loss::Cut, &frame, common);
        };
        cable.delivered += 1;
        common.packet_hops += 1;
        self.accounts.received += 1;
        self.trace.received(common.now, port, frame.contents());
        if common.is_shown() {
            self.show(port, What::Received(frame.contents()), common);
        }
        if !intact {
            if self.checks_fcs {
                return self.drop_frame(port, Drop::BadFcs, &frame, common);
            }
        } else if !common.without.passing {
            if self.awaited_first <= common.now {
                // What the node waits for after that is planned when the event comes that was
                // planned for this wire: it is still in the queue.
                self.free_wires(node, common);
            }
            if let Some(out) = node.pass(common.now, port, &mut frame, &self.free_at) {
                self.transmit(node, (out, complete_at, intact), frame, common);
                // What the node waits for is planned already.
                return if common.without.lazy_tx_done {
                    self.plan_wires(common)
                };
            }
            let is_due = self.armed.is_some_and(|armed| armed <= common.now);
            if !is_due && node.absorb(common.now, &mut frame, complete_at) {
                return;
            }
        }
        self.deliver(node, Input::Frame { port, frame, complete_at, intact }, common);
    }

    /// A wire that the node waits for is free.
    pub(crate) fn tx_done<N: Node + ?Sized>(&mut self, node: &mut N, common: &mut Common) {
        self.free_wires(node, common);
        self.await_wires(node, common);
        self.arm(node.deadline(), common);
    }

    /// The node wanted to be called.
    pub(crate) fn wake<N: Node + ?Sized>(&mut self, node: &mut N, common: &mut Common) {
        if self.armed != Some(common.now) {
            return;
        }
        self.armed = None;
        match node.deadline() {
            Some(deadline) if deadline <= common.now => self.deliver(node, Input::Timeout, common),
            deadline => self.arm(deadline, common),
        }
    }

    /// Delivers an input to the node and carries out its actions.
    #[inline]
    pub(crate) fn deliver<N>(&mut self, node: &mut N, input: Input, common: &mut Common)
    where
        N: Node + ?Sized,
    {
        self.free_wires(node, common);
        node.handle(common.now, input, &mut common.out);
        self.carry_out(node, common);
        self.await_wires(node, common);
        self.arm(node.deadline(), common);
    }

    /// Carries out the actions of the node.
    #[inline]
    fn carry_out<N>(&mut self, node: &N, common: &mut Common)
    where
        N: Node + ?Sized,
    {
        let mut out = std::mem::take(&mut common.out);
        for action in out.drain(..) {
            match action {
                Action::Transmit { port, frame, complete_at, intact } => {
                    self.transmit(node, (port, complete_at, intact), frame, common);
                }
                other => self.note(other, common),
            }
        }
        common.out = out;
    }

    /// Carries out any action but a transmission.
    #[cold]
    fn note(&mut self, action: Action, common: &mut Common) {
        match action {
            Action::Transmit { .. } => {}
            Action::Dropped { ingress, reason, frame } => {
                self.drop_frame(ingress, reason, &frame, common);
            }
            Action::Note(note) => {
                self.record(PortNo::CONTROL, What::Note(&note), common);
                common.notes.push((common.now, self.number, note));
            }
            Action::Reply(reply) => common.reply = Some(reply),
            Action::Store(change) => self.store.keep(*change),
            Action::Punt { .. } | Action::RouteChanged(_) | Action::Lost => {
                panic!("{} hands out what a whole node keeps to itself: {action:?}", self.name);
            }
        }
    }

    #[inline(always)]
    fn transmit<N>(
        &mut self,
        node: &N,
        (port, complete_at, intact): (PortNo, Time, bool),
        mut frame: FrameBuf,
        common: &mut Common,
    ) where
        N: Node + ?Sized,
    {
        let now = common.now;
        if common.without.light_frames {
            frame.make_whole();
        }
        self.trace.sent(now, port, frame.contents());
        if common.is_shown() {
            self.show(port, What::Sent(frame.contents()), common);
        }
        self.accounts.sent += 1;
        if port.index() >= self.ports.len() {
            self.port_mut(port);
        }
        let port_state = &mut self.ports[port.index()];
        #[cfg(debug_assertions)]
        assert!(port_state.free_at <= now, "{}-{port}: a second frame before TxDone", self.name);
        let Some(cable) = &mut port_state.cable else {
            self.accounts.nowhere += 1;
            self.owe(port, now);
            return self.lose(port, Loss::NoCarrier, &frame, common);
        };
        let verdict = cable.send(&frame);
        if verdict == Verdict::Lost(Loss::NoCarrier) {
            self.owe(port, now);
            return self.lose(port, Loss::NoCarrier, &frame, common);
        }
        let bytes = frame.length();
        let passage = cable.way.passage(
            now,
            bytes,
            complete_at,
            port_state.wire_free,
            port_state.handed_last,
        );
        (port_state.wire_free, port_state.handed_last) = (passage.gap_end, passage.handed);
        let (peer, port_there, carrier) = (cable.peer, cable.peer_port, cable.carrier);
        port_state.is_free_at(passage.free);
        let shows_queues = port_state.shows_queues && !matches!(verdict, Verdict::Lost(_));
        self.owe(port, passage.free);
        if shows_queues {
            self.show_queues(node, carrier, (passage.handed, peer), common);
        }
        let way = (port, (peer, port_there, carrier));
        self.carry((way, verdict), passage, (frame, intact), common);
    }

    /// What has been put on the wire comes out at the far end, as the link lets it.
    #[inline(always)]
    fn carry(
        &mut self,
        ((port, (peer, port_there, carrier)), verdict): (Onward, Verdict),
        passage: Passage,
        (mut frame, mut intact): (FrameBuf, bool),
        common: &mut Common,
    ) {
        let mut handed = passage.handed;
        match verdict {
            Verdict::Passes => {}
            Verdict::Flips(bit) => {
                self.flip(port, &mut frame, bit, common);
                intact = false;
            }
            Verdict::Odd(Odd::Forged(bit)) => self.flip(port, &mut frame, bit, common),
            Verdict::Odd(Odd::Late(late)) => handed += late,
            Verdict::Odd(Odd::Twice) => {
                let (complete_at, frame) = (passage.complete, frame.clone());
                let copy = Kind::Arrive { port: port_there, intact, carrier, complete_at, frame };
                self.push_odd(handed, peer, copy, common);
            }
            Verdict::Lost(loss) => {
                return self.lose(port, loss, &frame, common);
            }
        }
        let complete_at = passage.complete.max(handed);
        let arrive = Kind::Arrive { port: port_there, intact, carrier, complete_at, frame };
        self.push(handed, peer, arrive, common);
    }

    /// Shows the agent at the far end the lengths of the queues here, before it is handed a frame.
    #[cold]
    fn show_queues<N>(
        &mut self,
        node: &N,
        carrier: u32,
        (handed, peer): (Time, Place),
        common: &mut Common,
    ) where
        N: Node + ?Sized,
    {
        let bytes = (0..).map_while(|port| node.queue_bytes(PortNo(port))).collect();
        self.push_odd(handed, peer, Kind::Queues { carrier, bytes }, common);
    }

    /// Flips a bit of a frame; one behind its last byte is in its padding or FCS.
    #[cold]
    fn flip(&mut self, port: PortNo, frame: &mut FrameBuf, bit: u64, common: &mut Common) {
        frame.make_whole();
        if let Some(byte) = frame.bytes_mut().get_mut((bit / 8) as usize) {
            *byte ^= 1 << (bit % 8);
        }
        self.record(port, What::Flipped(bit), common);
    }

    /// Counts and records a frame that a link has lost.
    #[cold]
    fn lose(&mut self, port: PortNo, loss: Loss, frame: &FrameBuf, common: &mut Common) {
        self.lost.count(frame.bytes(), self.hop_width, loss.name());
        self.record(port, What::Lost(loss, frame.contents()), common);
    }

    /// Counts and records a frame that has ended in the station.
    #[cold]
    fn drop_frame(&mut self, at: PortNo, reason: Drop, frame: &FrameBuf, common: &mut Common) {
        self.accounts.dropped[reason as usize] += 1;
        self.lost.count(frame.bytes(), self.hop_width, reason.name());
        self.record(at, What::Dropped(reason, frame.contents()), common);
    }

    /// Ends the incarnation: no wake-up and no `TxDone` is owed any more.
    pub(crate) fn forget(&mut self) {
        self.armed = None;
        self.free_at.fill(Time::MAX);
        self.planned.clear();
        (self.owed_first, self.awaited_first) = (Time::MAX, Time::MAX);
        self.ports.iter_mut().for_each(|port_state| port_state.is_free_at(Time::ZERO));
    }

    /// Puts a wake-up in the queue if the one that is there, if any, is too late.
    #[inline]
    pub(crate) fn arm(&mut self, deadline: Option<Time>, common: &mut Common) {
        let Some(deadline) = deadline else {
            return;
        };
        let at = deadline.max(common.now);
        if at > common.now {
            self.stuck = 0;
        } else {
            self.stuck += 1;
            let name = &self.name;
            assert!(self.stuck < STUCK_MAX, "{name} stays due at {at} however often it is called");
        }
        if self.armed.is_none_or(|armed| armed > at) {
            self.armed = Some(at);
            self.push_own(at, Kind::Wake, common);
        }
    }

    #[cold]
    fn push_odd(&mut self, time: Time, to: Place, kind: Kind, common: &mut Common) {
        self.push(time, to, kind, common);
    }

    fn push_own(&mut self, time: Time, kind: Kind, common: &mut Common) {
        let to = Place { shard: common.number, slot: common.slot };
        self.push(time, to, kind, common);
    }

    #[inline(always)]
    fn push(&mut self, time: Time, to: Place, kind: Kind, common: &mut Common) {
        let key = Key { time, source: self.number, sequence: self.sequence };
        self.sequence += 1;
        let event = Event { station: to.slot, kind };
        if to.shard == common.number {
            common.queue.push(key, event);
        } else {
            common.outbox[to.shard as usize].push((key, event));
        }
    }

    /// Adds something that happens here now to the trace.
    #[inline]
    pub(crate) fn record(&mut self, port: PortNo, what: What<'_>, common: &mut Common) {
        self.trace.add(common.now, port, what);
        if common.is_shown() {
            self.show(port, what, common);
        }
    }

    /// Writes what happens as a line of text and into the captures, where these are wanted.
    #[cold]
    fn show(&mut self, port: PortNo, what: What<'_>, common: &mut Common) {
        if common.written {
            let line = Line::new(common.now, self.number, &self.name, port, what);
            common.lines.push(line);
        }
        if let Some(taps) = &mut self.taps {
            taps.see(common.now, self.number, port, what);
        }
    }
}
