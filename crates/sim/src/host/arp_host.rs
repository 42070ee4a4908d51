//! A light host that speaks ARP and nothing else: the ARP generator of paper 001 §5.
//!
//! It has a fixed address, announces it after carrier has come (RFC 5227 clause 2.3; paper
//! 001 §4.2.2 learns hosts from that), answers requests for it, and asks for the
//! addresses that it is given, one after another at a steady pace. A question without an
//! answer is asked again after a while, a few times. Without an IP stack it takes a few
//! hundred bytes, so that a world can hold tens of thousands.

use crate::host::PORT;
use axon_node::{Action, Awaited, Input, Node, NodeKind};
use axon_wire::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use axon_wire::{FrameBuf, MacAddr, Span, Time};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr,
};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Announcements of the address (RFC 5227 clause 1.1, ANNOUNCE_NUM).
const ANNOUNCEMENTS: u32 = 2;
/// How often one address is asked for.
pub(crate) const TRIES_MAX: u32 = 4;

/// The configuration of an ARP host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpHostConfig {
    /// Its address at layer 2.
    pub mac: MacAddr,
    /// Its fixed address.
    pub ip: Ipv4Addr,
    /// Between two tries of a question, and between two announcements.
    pub retry: Span,
    /// From carrier to the first announcement; never without.
    pub announce_after: Option<Span>,
}

/// How the ARP hosts of a world behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpHosts {
    /// Between two tries of a question, and between two announcements.
    pub retry: Span,
    /// Each host's first announcement comes at a random time within this span after carrier,
    /// since hosts do not boot at the same instant; none announces without.
    pub announce_within: Option<Span>,
}

impl Default for ArpHosts {
    /// A second for both.
    fn default() -> ArpHosts {
        let second = Span::from_secs(1);
        ArpHosts { retry: second, announce_within: Some(second) }
    }
}

/// Questions to ask: one target after another at a steady pace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskPlan {
    /// Whom to ask for, in order.
    pub targets: Vec<Ipv4Addr>,
    /// When to ask for the first.
    pub first_at: Time,
    /// From each to the next.
    pub interval: Span,
}

/// What came of the questions so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskStats {
    /// Addresses asked for.
    pub asked: u64,
    /// Of these, how many were answered.
    pub answered: u64,
    /// Of these, how many were given up.
    pub failed: u64,
    /// Requests sent: more than `asked` where one was repeated.
    pub requests: u64,
    /// From the first request to the answer, all answers together.
    pub waited: Span,
    /// The same, the longest.
    pub waited_max: Span,
}

impl AskStats {
    /// Adds what came of another host's questions.
    pub fn add(&mut self, other: &AskStats) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.failed += other.failed;
        self.requests += other.requests;
        self.waited = self.waited + other.waited;
        self.waited_max = self.waited_max.max(other.waited_max);
    }
}

/// A question that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    target: Ipv4Addr,
    asked_at: Time,
    again_at: Time,
    tries: u32,
}

/// The host.
#[derive(Debug)]
pub struct ArpHost {
    config: ArpHostConfig,
    carrier: bool,
    busy: bool,
    tx: VecDeque<FrameBuf>,
    announce: Option<(Time, u32)>,
    plan: AskPlan,
    /// How many of the plan's targets were asked for.
    next: usize,
    open: Vec<Open>,
    stats: AskStats,
    made: u64,
    unsent: u64,
    received: u64,
}

impl ArpHost {
    /// A host that has just been switched on, without carrier yet.
    pub fn new(config: ArpHostConfig) -> ArpHost {
        ArpHost {
            config,
            carrier: false,
            busy: false,
            tx: VecDeque::new(),
            announce: None,
            plan: AskPlan { targets: Vec::new(), first_at: Time::ZERO, interval: Span::ZERO },
            next: 0,
            open: Vec::new(),
            stats: AskStats::default(),
            made: 0,
            unsent: 0,
            received: 0,
        }
    }

    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        self.config.ip
    }

    /// Its address at layer 2.
    pub fn mac(&self) -> MacAddr {
        self.config.mac
    }

    /// Replaces what is left of its plan. Questions that were asked already stay open.
    pub fn ask(&mut self, plan: AskPlan) {
        self.plan = plan;
        self.next = 0;
    }

    /// What came of its questions so far.
    pub fn stats(&self) -> AskStats {
        self.stats
    }

    /// Whether every question of its plan is answered or given up.
    pub fn is_done(&self) -> bool {
        self.next == self.plan.targets.len() && self.open.is_empty()
    }

    /// Frames that it has made, that ended inside it unsent, and that wait now.
    pub(crate) fn accounts(&self) -> (u64, u64, u64) {
        (self.made, self.unsent, self.tx.len() as u64)
    }

    /// Frames that came in.
    pub fn received(&self) -> u64 {
        self.received
    }

    fn link(&mut self, now: Time, up: bool) {
        self.carrier = up;
        // No `TxDone` is owed for a frame that lost its carrier.
        self.busy = false;
        self.unsent += self.tx.len() as u64;
        self.tx.clear();
        let after = self.config.announce_after.filter(|_| up);
        self.announce = after.map(|after| (now + after, ANNOUNCEMENTS));
    }

    fn receive(&mut self, now: Time, frame: &[u8]) {
        let Some(arp) = parse(frame) else { return };
        let ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr,
            source_protocol_addr,
            target_protocol_addr,
            ..
        } = arp
        else {
            return;
        };
        if target_protocol_addr != self.config.ip {
            return;
        }
        if operation == ArpOperation::Request {
            let to = (MacAddr(source_hardware_addr.0), source_protocol_addr);
            self.send(ArpOperation::Reply, to.0, to);
        } else if let Some(at) =
            self.open.iter().position(|open| open.target == source_protocol_addr)
        {
            let waited = now.since(self.open.swap_remove(at).asked_at);
            self.stats.answered += 1;
            self.stats.waited = self.stats.waited + waited;
            self.stats.waited_max = self.stats.waited_max.max(waited);
        }
    }

    /// Announces and asks what is due.
    fn due(&mut self, now: Time) {
        if let Some((at, left)) = self.announce.filter(|&(at, _)| at <= now) {
            self.request(self.config.ip);
            self.announce = (left > 1).then(|| (at + self.config.retry, left - 1));
        }
        while let Some(&target) = self.plan.targets.get(self.next).filter(|_| self.next_at() <= now)
        {
            self.next += 1;
            self.stats.asked += 1;
            self.stats.requests += 1;
            let again_at = now + self.config.retry;
            self.open.push(Open { target, asked_at: now, again_at, tries: 1 });
            self.request(target);
        }
        let before = self.open.len();
        self.open.retain(|open| open.again_at > now || open.tries < TRIES_MAX);
        self.stats.failed += (before - self.open.len()) as u64;
        for at in 0..self.open.len() {
            if self.open[at].again_at <= now {
                self.open[at].again_at = now + self.config.retry;
                self.open[at].tries += 1;
                self.stats.requests += 1;
                self.request(self.open[at].target);
            }
        }
    }

    fn next_at(&self) -> Time {
        self.plan.first_at + self.plan.interval * self.next as u64
    }

    fn request(&mut self, target: Ipv4Addr) {
        self.send(ArpOperation::Request, MacAddr::BROADCAST, (MacAddr([0; 6]), target));
    }

    /// Queues an ARP frame, with room in front for the route that the edge will put there; or
    /// forgets it where there is no carrier.
    fn send(&mut self, operation: ArpOperation, to: MacAddr, target: (MacAddr, Ipv4Addr)) {
        self.made += 1;
        if !self.carrier {
            self.unsent += 1;
            return;
        }
        let ethernet = EthernetRepr {
            src_addr: EthernetAddress(self.config.mac.0),
            dst_addr: EthernetAddress(to.0),
            ethertype: EthernetProtocol::Arp,
        };
        let arp = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(self.config.mac.0),
            source_protocol_addr: self.config.ip,
            target_hardware_addr: EthernetAddress(target.0.0),
            target_protocol_addr: target.1,
        };
        let mut store = vec![0; FrameBuf::HEADROOM + FRAME_BYTES_MIN];
        let bytes = &mut store[FrameBuf::HEADROOM..];
        ethernet.emit(&mut EthernetFrame::new_unchecked(&mut *bytes));
        arp.emit(&mut ArpPacket::new_unchecked(&mut bytes[ETHERNET_BYTES..]));
        self.tx.push_back(FrameBuf::from_vec(store, FrameBuf::HEADROOM));
    }
}

fn parse(frame: &[u8]) -> Option<ArpRepr> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    if frame.ethertype() != EthernetProtocol::Arp {
        return None;
    }
    ArpRepr::parse(&ArpPacket::new_checked(frame.payload()).ok()?).ok()
}

impl Node for ArpHost {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { frame, intact, .. } => {
                self.received += 1;
                if intact {
                    self.receive(now, frame.bytes());
                }
            }
            Input::TxDone { .. } => self.busy = false,
            Input::Link { up, .. } => self.link(now, up),
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Host)));
            }
        }
        self.due(now);
        if self.busy {
            return;
        }
        if let Some(frame) = self.tx.pop_front() {
            self.busy = true;
            out.push(Action::Transmit { port: PORT, frame, complete_at: now, intact: true });
        }
    }

    fn deadline(&self) -> Option<Time> {
        let announce = self.announce.map(|(at, _)| at);
        let next = (self.next < self.plan.targets.len()).then(|| self.next_at());
        let again = self.open.iter().map(|open| open.again_at).min();
        [announce, next, again].into_iter().flatten().min()
    }

    fn awaited(&mut self) -> Awaited {
        if self.tx.is_empty() { Awaited::None } else { Awaited::Every }
    }
}
