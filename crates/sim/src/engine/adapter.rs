//! The adapter between a node and its world: port states, busy wires, the next wake-up, the trace
//! and the counters.
//!
//! For each input the adapter delivers the `TxDone`s of wires that have become free, then the
//! input, executes the actions that the node returns (a frame on a wire becomes a future arrival),
//! and schedules an event for the node's deadline.
//!
//! **`TxDone` is lazy.** A free wire matters only to a node that waits for it, and most do not. So
//! a `TxDone` becomes an event only while its port is [awaited](Shortcuts::awaited). All others are
//! delivered before the next input that the node handles, each with its due time, unless a passed
//! frame has taken the wire meanwhile. Both kinds have the same order: the `TxDone`s due at or
//! before an instant precede all other inputs of that instant, by time and then by port. The
//! difference is visible neither to a station nor in the trace.
//!
//! The adapter is generic over the node type and monomorphized for switches and hosts, so that the
//! code for each frame is straight-line.

mod ledger;
mod profile;
mod wires;

use crate::engine::event::{Common, Event, Kind};
use crate::engine::place::Place;
use crate::engine::queue::Key;
use crate::engine::store::Store;
use crate::engine::taps::Taps;
use crate::engine::trace::{Line, StationTrace, What};
use crate::link::disorder::Odd;
use crate::link::links::Loss;
use crate::link::port::{PortState, Verdict};
use crate::link::timing::Passage;
use axon_node::{Action, Drop, Input, Shortcuts};
use axon_wire::{FrameBuf, PortNo, Time};
use ledger::Ledger;
use profile::Profile;

/// Wake-ups at one instant after which a node is considered faulty.
const STUCK_MAX: u32 = 10_000;

/// Egress port; station, port and carrier at the far end.
type Onward = (PortNo, (Place, PortNo, u32));

/// Adapter between a node and its world. The fields that every passing frame needs come first, in
/// two cache lines with the node of the station before them.
#[repr(C)]
pub(crate) struct Adapter {
    /// Lower bound of the times at which wires become free.
    owed_first: Time,
    /// Lower bound of the times at which awaited wires become free.
    awaited_first: Time,
    /// Time at which the wire of each port becomes free; [`Time::MAX`] if no `TxDone` is pending.
    free_at: Box<[Time]>,
    /// Number of events that the station has caused.
    sequence: u64,
    ports: Box<[PortState]>,
    /// Station number in the world.
    number: u32,
    /// Consecutive wake-ups that did not advance the deadline.
    stuck: u32,
    trace: StationTrace,
    ledger: Ledger,
    /// Time of the queued wake-up, if any.
    armed: Option<Time>,
    /// Awaited ports whose `TxDone` is queued as an event.
    planned: Vec<PortNo>,
    profile: Profile,
    /// Captures of ports, if any port is captured.
    taps: Option<Box<Taps>>,
    /// Data that the node keeps for its next incarnation.
    store: Store,
}

impl Adapter {
    /// Number of leading bytes that every passing frame needs.
    pub(crate) const PASSING_BYTES: usize = std::mem::offset_of!(Adapter, ledger.accounts.nowhere);

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
            ledger: Ledger::default(),
            armed: None,
            planned: Vec::new(),
            profile: Profile { name, ..Profile::default() },
            taps: None,
            store: Store::default(),
        }
    }

    /// Prefetch hint for the fields that every event needs; see `prefetch.rs`.
    #[inline]
    pub(crate) fn prefetch(&self) -> u64 {
        self.owed_first.ticks() ^ self.trace.events() ^ self.ledger.accounts.received
    }

    /// Prefetch hint for the further fields that a host needs.
    #[inline]
    pub(crate) fn prefetch_end(&self) -> u64 {
        self.armed.map_or(0, Time::ticks) ^ self.trace.prefetch()
    }

    /// Prefetch hint for an ingress port.
    #[inline]
    pub(crate) fn prefetch_port(&self, port: PortNo) -> u64 {
        self.ports.get(port.index()).map_or(0, |port_state| port_state.wire_free.ticks())
    }

    /// Prefetch hint for an egress port.
    #[inline]
    pub(crate) fn prefetch_way(&self, port: PortNo) -> u64 {
        let Some(port_state) = self.ports.get(port.index()) else { return 0 };
        let peer = port_state.cable.as_ref().map_or(0, |cable| u64::from(cable.peer.slot));
        let free_at = self.free_at.get(port.index()).map_or(0, |free_at| free_at.ticks());
        port_state.wire_free.ticks() ^ peer ^ free_at
    }

    /// Returns the state of a port. Ports are created on first use.
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

    /// Returns the ports used so far.
    pub(crate) fn ports(&self) -> &[PortState] {
        &self.ports
    }

    /// Returns the station number in the world.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the trace of the station.
    pub(crate) fn trace(&self) -> &StationTrace {
        &self.trace
    }

    /// Returns the frame counters of all incarnations.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the frame counters of all incarnations for changes.
    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Returns the properties of the station.
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the properties of the station for changes.
    pub(crate) fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }

    /// Returns the captures of ports.
    pub(crate) fn taps_mut(&mut self) -> &mut Option<Box<Taps>> {
        &mut self.taps
    }

    /// Returns the data that the node keeps for its next incarnation.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Begins an incarnation. Frames are hashed with all their bytes if `whole`.
    pub(crate) fn begin(&mut self, whole: bool, common: &mut Common) {
        self.ledger.incarnations += 1;
        self.trace.set_whole(whole);
        let what = What::Power(Some(self.ledger.incarnations));
        self.record(PortNo::CONTROL, what, common);
    }

    /// Processes the arrival of a frame.
    #[inline]
    pub(crate) fn arrive<N>(
        &mut self,
        node: &mut N,
        (port, carrier): (PortNo, u32),
        (mut frame, complete_at, intact): (FrameBuf, Time, bool),
        common: &mut Common,
    ) where
        N: Shortcuts + ?Sized,
    {
        let cable =
            self.ports[port.index()].cable.as_mut().filter(|cable| cable.carrier == carrier);
        let Some(cable) = cable else {
            return self.lose(port, Loss::Cut, &frame, common);
        };
        cable.delivered += 1;
        common.packet_hops += 1;
        self.ledger.accounts.received += 1;
        self.trace.received(common.now, port, frame.contents());
        if common.is_shown() {
            self.show(port, What::Received(frame.contents()), common);
        }
        if !intact {
            if self.profile.checks_fcs {
                return self.drop_frame(port, Drop::BadFcs, &frame, common);
            }
        } else if !common.without.shortcuts {
            if self.awaited_first <= common.now {
                // The event planned for this wire is still queued. It plans the next awaited wire.
                self.free_wires(node, common);
            }
            if let Some(out) = node.pass(common.now, port, &mut frame, &self.free_at) {
                return self.transmit(node, (out, complete_at, intact), frame, common);
            }
            let is_due = self.armed.is_some_and(|armed| armed <= common.now);
            if !is_due && node.absorb(common.now, &mut frame, complete_at) {
                return;
            }
        }
        self.deliver(node, Input::Frame { port, frame, complete_at, intact }, common);
    }

    /// Processes a wake-up that the node requested.
    pub(crate) fn wake<N: Shortcuts + ?Sized>(&mut self, node: &mut N, common: &mut Common) {
        if self.armed != Some(common.now) {
            return;
        }
        self.armed = None;
        match node.deadline() {
            Some(deadline) if deadline <= common.now => self.deliver(node, Input::Timeout, common),
            deadline => self.arm(deadline, common),
        }
    }

    /// Delivers an input to the node and executes its actions.
    #[inline]
    pub(crate) fn deliver<N>(&mut self, node: &mut N, input: Input, common: &mut Common)
    where
        N: Shortcuts + ?Sized,
    {
        self.free_wires(node, common);
        node.handle(common.now, input, &mut common.out);
        self.carry_out(node, common);
        self.await_wires(node, common);
        self.arm(node.deadline(), common);
    }

    /// Executes the actions of the node.
    #[inline]
    fn carry_out<N>(&mut self, node: &N, common: &mut Common)
    where
        N: Shortcuts + ?Sized,
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

    /// Executes any action except a transmission.
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
                let name = &self.profile.name;
                panic!("{name} hands out what a whole node keeps to itself: {action:?}");
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
        N: Shortcuts + ?Sized,
    {
        let now = common.now;
        if common.without.light_frames {
            frame.make_whole();
        }
        self.trace.sent(now, port, frame.contents());
        if common.is_shown() {
            self.show(port, What::Sent(frame.contents()), common);
        }
        self.ledger.accounts.sent += 1;
        if port.index() >= self.ports.len() {
            self.port_mut(port);
        }
        let port_state = &mut self.ports[port.index()];
        #[cfg(debug_assertions)]
        assert!(
            port_state.free_at <= now,
            "{}-{port}: a second frame before TxDone",
            self.profile.name
        );
        let Some(cable) = &mut port_state.cable else {
            self.ledger.accounts.nowhere += 1;
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

    /// Schedules the arrival of a sent frame at the far end, subject to the link's faults.
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

    /// Sends this station's queue lengths to the agent at the far end, before the frame.
    #[cold]
    fn show_queues<N>(
        &mut self,
        node: &N,
        carrier: u32,
        (handed, peer): (Time, Place),
        common: &mut Common,
    ) where
        N: Shortcuts + ?Sized,
    {
        let bytes = (0..).map_while(|port| node.queue_bytes(PortNo(port))).collect();
        self.push_odd(handed, peer, Kind::Queues { carrier, bytes }, common);
    }

    /// Flips a bit of a frame. A bit past the last byte lies in its padding or FCS.
    #[cold]
    fn flip(&mut self, port: PortNo, frame: &mut FrameBuf, bit: u64, common: &mut Common) {
        frame.make_whole();
        if let Some(byte) = frame.bytes_mut().get_mut((bit / 8) as usize) {
            *byte ^= 1 << (bit % 8);
        }
        self.record(port, What::Flipped(bit), common);
    }

    /// Counts and records a frame lost by a link.
    #[cold]
    fn lose(&mut self, port: PortNo, loss: Loss, frame: &FrameBuf, common: &mut Common) {
        self.ledger.lost.count(frame.bytes(), self.profile.hop_width, loss.name());
        self.record(port, What::Lost(loss, frame.contents()), common);
    }

    /// Counts and records a frame dropped in the station.
    #[cold]
    fn drop_frame(&mut self, at: PortNo, reason: Drop, frame: &FrameBuf, common: &mut Common) {
        self.ledger.accounts.dropped[reason as usize] += 1;
        self.ledger.lost.count(frame.bytes(), self.profile.hop_width, reason.name());
        self.record(at, What::Dropped(reason, frame.contents()), common);
    }

    /// Ends the incarnation and cancels its wake-up and pending `TxDone`s.
    pub(crate) fn forget(&mut self) {
        self.armed = None;
        self.free_at.fill(Time::MAX);
        self.planned.clear();
        (self.owed_first, self.awaited_first) = (Time::MAX, Time::MAX);
        self.ports.iter_mut().for_each(|port_state| port_state.is_free_at(Time::ZERO));
    }

    /// Queues a wake-up unless one is queued that is early enough.
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
            let name = &self.profile.name;
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

    /// Records an occurrence at this station and time in the trace.
    #[inline]
    pub(crate) fn record(&mut self, port: PortNo, what: What<'_>, common: &mut Common) {
        self.trace.add(common.now, port, what);
        if common.is_shown() {
            self.show(port, what, common);
        }
    }

    /// Writes an occurrence to the trace text and the captures, if enabled.
    #[cold]
    fn show(&mut self, port: PortNo, what: What<'_>, common: &mut Common) {
        if common.written {
            let line = Line::new(common.now, self.number, &self.profile.name, port, what);
            common.lines.push(line);
        }
        if let Some(taps) = &mut self.taps {
            taps.see(common.now, self.number, port, what);
        }
    }
}
