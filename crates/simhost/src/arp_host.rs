//! A light host that implements ARP only: the ARP generator of paper 001 §5.
//!
//! The host has a fixed address, announces it after carrier comes up (RFC 5227 clause 2.3; paper
//! 001 §4.2.2 learns hosts from that), answers requests for it, and resolves given addresses one
//! after another at a steady interval. A request without an answer is repeated a few times. Without
//! an IP stack it takes a few hundred bytes, so that a world can hold tens of thousands.

use crate::PORT;
use axon_node::{Action, Awaited, Input, Node, NodeKind, Shortcuts};
use axon_wire::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use axon_wire::{FrameBuf, MacAddr, Span, Time};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    EthernetRepr,
};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Number of announcements of the address (RFC 5227 clause 1.1, ANNOUNCE_NUM).
const ANNOUNCEMENTS: u32 = 2;
/// Maximum number of requests for one address.
pub const TRIES_MAX: u32 = 4;

/// Configuration of an ARP host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpHostConfig {
    /// MAC address.
    pub mac: MacAddr,
    /// Fixed IPv4 address.
    pub ip: Ipv4Addr,
    /// Interval between requests for one address, and between announcements.
    pub retry: Span,
    /// Delay from carrier to the first announcement; `None` disables announcements.
    pub announce_after: Option<Span>,
}

/// Configuration of the ARP hosts of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpHosts {
    /// Interval between requests for one address, and between announcements.
    pub retry: Span,
    /// Maximum random delay from carrier to each host's first announcement, since hosts do not boot
    /// simultaneously; `None` disables announcements.
    pub announce_within: Option<Span>,
}

impl Default for ArpHosts {
    /// Returns one second for both.
    fn default() -> ArpHosts {
        let second = Span::from_secs(1);
        ArpHosts { retry: second, announce_within: Some(second) }
    }
}

/// Addresses to resolve, one after another at a steady interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskPlan {
    /// Addresses to resolve, in order.
    pub targets: Vec<Ipv4Addr>,
    /// Time of the first request.
    pub first_at: Time,
    /// Interval between addresses.
    pub interval: Span,
}

/// Statistics of address resolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskStats {
    /// Addresses requested.
    pub asked: u64,
    /// Addresses answered.
    pub answered: u64,
    /// Addresses given up.
    pub failed: u64,
    /// Requests sent, repetitions included.
    pub requests: u64,
    /// Sum of the times from first request to answer.
    pub waited: Span,
    /// Maximum time from first request to answer.
    pub waited_max: Span,
}

impl AskStats {
    /// Adds the statistics of another host.
    pub fn add(&mut self, other: &AskStats) {
        self.asked += other.asked;
        self.answered += other.answered;
        self.failed += other.failed;
        self.requests += other.requests;
        self.waited = self.waited + other.waited;
        self.waited_max = self.waited_max.max(other.waited_max);
    }
}

/// Unanswered request.
#[derive(Clone, Copy, Debug)]
struct Open {
    target: Ipv4Addr,
    asked_at: Time,
    again_at: Time,
    tries: u32,
}

/// ARP host.
#[derive(Debug)]
pub struct ArpHost {
    config: ArpHostConfig,
    carrier: bool,
    busy: bool,
    tx: VecDeque<FrameBuf>,
    announce: Option<(Time, u32)>,
    plan: AskPlan,
    /// Number of targets requested.
    next: usize,
    open: Vec<Open>,
    stats: AskStats,
    made: u64,
    unsent: u64,
    received: u64,
}

impl ArpHost {
    /// Returns a host that was just powered on, without carrier.
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

    /// Returns the host's IPv4 address.
    pub fn address(&self) -> Ipv4Addr {
        self.config.ip
    }

    /// Returns the host's MAC address.
    pub fn mac(&self) -> MacAddr {
        self.config.mac
    }

    /// Replaces the rest of the plan. Open requests continue.
    pub fn ask(&mut self, plan: AskPlan) {
        self.plan = plan;
        self.next = 0;
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> AskStats {
        self.stats
    }

    /// Returns whether every address of the plan is answered or given up.
    pub fn is_done(&self) -> bool {
        self.next == self.plan.targets.len() && self.open.is_empty()
    }

    /// Returns the numbers of frames made, dropped unsent, and queued.
    pub fn accounts(&self) -> (u64, u64, u64) {
        (self.made, self.unsent, self.tx.len() as u64)
    }

    /// Returns the number of received frames.
    pub fn received(&self) -> u64 {
        self.received
    }

    fn link(&mut self, now: Time, up: bool) {
        self.carrier = up;
        // No `TxDone` is pending for a frame that lost its carrier.
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

    /// Sends the due announcements and requests.
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

    /// Queues an ARP frame with headroom for the route that the edge inserts. Drops it without
    /// carrier.
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
}

impl Shortcuts for ArpHost {
    fn awaited(&mut self) -> Awaited {
        if self.tx.is_empty() { Awaited::None } else { Awaited::Every }
    }
}
