//! LLDP agent of one port: its timers, its counters and its neighbours.

use super::neighbours::{Neighbours, Reception};
use super::{LldpConfig, Neighbour};
use alloc::vec::Vec;
use axon_wire::lldp::{self, Id, LldpFrame, Lldpdu, Tlv};
use axon_wire::{MacAddr, Span, Time};

/// Interval after which the credit grows by one.
const CREDIT_TICK: Span = Span::from_secs(1);

/// The identity of a port in LLDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LldpIdentity {
    /// Source address of the port's frames.
    pub mac: MacAddr,
    /// Chassis ID, which identifies the switch.
    pub chassis: Id,
    /// Port ID, which is the name of the port on its switch.
    pub port: Id,
}

/// A request from the agent to its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LldpRequest {
    /// Send this frame, untagged, ahead of data.
    Send(Vec<u8>),
    /// Read [`LldpAgent::neighbours`] again, because the table has changed.
    Neighbours,
}

/// Counters of an LLDP agent (clause 9.2.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LldpCounters {
    /// LLDPDUs sent.
    pub sent: u64,
    /// Own LLDPDUs that were too long to be sent.
    pub too_long: u64,
    /// LLDPDUs received and parsed successfully.
    pub received: u64,
    /// Malformed LLDPDUs, which were dropped.
    pub malformed: u64,
    /// Dropped frames that were sent to another LLDP address, or from this port itself.
    pub foreign: u64,
    /// Frames that arrived while the link was down.
    pub link_down: u64,
    /// LLDPDUs from neighbours for which the table had no room.
    pub no_room: u64,
    /// Neighbours whose time to live has expired.
    pub aged_out: u64,
}

/// LLDP agent of one port.
#[derive(Clone, Debug)]
pub struct LldpAgent {
    config: LldpConfig,
    identity: LldpIdentity,
    /// The optional TLVs to send.
    local: Vec<Tlv>,
    up: bool,
    neighbours: Neighbours,
    counters: LldpCounters,
    /// Credit: LLDPDUs that may be sent at once.
    credit: u32,
    /// Time of the next credit, if the credit is below its maximum.
    credit_at: Time,
    /// True if an LLDPDU is waiting for credit.
    due: bool,
    /// Time of the next periodic LLDPDU (txTTR).
    next_at: Time,
    /// Number of LLDPDUs still to be sent in quick succession (txFast).
    fast: u32,
}

impl LldpAgent {
    /// Creates an agent whose link is down. A credit of 0, with which the agent could never send,
    /// counts as 1.
    pub fn new(mut config: LldpConfig, identity: LldpIdentity) -> LldpAgent {
        config.credit_max = config.credit_max.max(1);
        LldpAgent {
            config,
            identity,
            local: Vec::new(),
            up: false,
            neighbours: Neighbours::default(),
            counters: LldpCounters::default(),
            credit: config.credit_max,
            credit_at: Time::ZERO,
            due: false,
            next_at: Time::ZERO,
            fast: 0,
        }
    }

    /// Returns the identity of the port.
    pub(crate) const fn identity(&self) -> &LldpIdentity {
        &self.identity
    }

    /// Returns the neighbours at the other end of the link, oldest first.
    pub fn neighbours(&self) -> &[Neighbour] {
        self.neighbours.all()
    }

    /// Returns the counters since the start.
    pub const fn counters(&self) -> LldpCounters {
        self.counters
    }

    /// Processes a carrier change. Without carrier, there are no neighbours.
    pub fn link(&mut self, now: Time, up: bool, out: &mut Vec<LldpRequest>) {
        if self.up != up {
            self.up = up;
            if up {
                self.begin(now);
            } else if self.neighbours.clear() {
                out.push(LldpRequest::Neighbours);
            }
        }
        self.timeout(now, out);
    }

    fn begin(&mut self, now: Time) {
        (self.credit, self.fast, self.due) = (self.config.credit_max, 0, false);
        self.next_at = now;
    }

    /// Sets the optional TLVs and sends an LLDPDU at once if they have changed.
    pub fn set_local(&mut self, now: Time, local: Vec<Tlv>, out: &mut Vec<LldpRequest>) {
        if self.local != local {
            self.local = local;
            self.signal(now);
        }
        self.timeout(now, out);
    }

    /// Schedules an LLDPDU now, and the next one an interval later (SIGNAL_TX, figure 9-2).
    fn signal(&mut self, now: Time) {
        if !self.up {
            return;
        }
        self.due = true;
        let interval =
            if self.fast > 0 { self.config.fast_interval } else { self.config.tx_interval() };
        self.next_at = now + interval;
    }

    /// Handles a frame with LLDP's EtherType.
    pub fn receive(&mut self, now: Time, frame: &[u8], out: &mut Vec<LldpRequest>) {
        match Lldpdu::parse_frame(frame) {
            _ if !self.up => self.counters.link_down += 1,
            Err(_) => self.counters.malformed += 1,
            Ok(frame) if self.is_foreign(&frame) => self.counters.foreign += 1,
            Ok(frame) => self.update_neighbours(now, frame, out),
        }
        self.timeout(now, out);
    }

    fn is_foreign(&self, frame: &LldpFrame) -> bool {
        let LldpIdentity { chassis, port, .. } = &self.identity;
        frame.destination != lldp::NEAREST_BRIDGE
            || (&frame.lldpdu.chassis, &frame.lldpdu.port) == (chassis, port)
    }

    fn update_neighbours(&mut self, now: Time, frame: LldpFrame, out: &mut Vec<LldpRequest>) {
        self.counters.received += 1;
        self.age(now, out);
        match self.neighbours.receive(now, frame, self.config.neighbours_max) {
            Reception::Refreshed => {}
            Reception::Full => self.counters.no_room += 1,
            Reception::Changed => out.push(LldpRequest::Neighbours),
            Reception::New => {
                out.push(LldpRequest::Neighbours);
                // Fast start (TX_FAST_START), so that the new neighbour soon gets our LLDPDU.
                if self.fast == 0 {
                    self.fast = self.config.fast_count;
                    self.next_at = now;
                }
            }
        }
    }

    fn age(&mut self, now: Time, out: &mut Vec<LldpRequest>) {
        let gone = self.neighbours.age(now);
        if gone > 0 {
            self.counters.aged_out += gone as u64;
            out.push(LldpRequest::Neighbours);
        }
    }

    /// Processes timers due at `now`. Early and repeated calls are harmless.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<LldpRequest>) {
        self.age(now, out);
        if !self.up {
            return;
        }
        if now >= self.next_at {
            self.fast = self.fast.saturating_sub(1);
            self.signal(now);
        }
        while self.credit < self.config.credit_max && now >= self.credit_at {
            self.credit += 1;
            self.credit_at += CREDIT_TICK;
        }
        if self.due && self.credit > 0 {
            if self.credit == self.config.credit_max {
                self.credit_at = now + CREDIT_TICK;
            }
            self.credit -= 1;
            self.due = false;
            let LldpIdentity { chassis, port, .. } = self.identity.clone();
            let ttl_secs = self.config.ttl_secs();
            self.send(Lldpdu { chassis, port, ttl_secs, optional: self.local.clone() }, out);
        }
    }

    fn send(&mut self, lldpdu: Lldpdu, out: &mut Vec<LldpRequest>) {
        let source = self.identity.mac;
        match (LldpFrame { destination: lldp::NEAREST_BRIDGE, source, lldpdu }).emit() {
            Ok(frame) => {
                self.counters.sent += 1;
                out.push(LldpRequest::Send(frame));
            }
            Err(_) => self.counters.too_long += 1,
        }
    }

    /// Returns the time of the next [`LldpAgent::timeout`].
    pub fn deadline(&self) -> Option<Time> {
        let send = self.up.then(|| match self.due {
            // A due LLDPDU only waits for credit.
            true => self.credit_at.min(self.next_at),
            false => self.next_at,
        });
        [send, self.neighbours.deadline()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn identity(last: u8) -> LldpIdentity {
        let mac = MacAddr([2, 0, 0, 0, 0, last]);
        LldpIdentity { mac, chassis: Id::chassis_of_mac(mac), port: Id::port_of_mac(mac) }
    }

    fn agent() -> LldpAgent {
        LldpAgent::new(LldpConfig::default(), identity(1))
    }

    fn frame_of(last: u8, ttl_secs: u16, optional: Vec<Tlv>) -> Vec<u8> {
        let LldpIdentity { mac, chassis, port } = identity(last);
        let lldpdu = Lldpdu { chassis, port, ttl_secs, optional };
        let frame = LldpFrame { destination: lldp::NEAREST_BRIDGE, source: mac, lldpdu };
        frame.emit().unwrap()
    }

    fn tlv(value: u8) -> Tlv {
        Tlv { kind: 99, value: vec![value] }
    }

    /// Wakes the agent at its deadlines up to `end`. Returns the time of each LLDPDU in
    /// milliseconds.
    fn sent_until(agent: &mut LldpAgent, end: Time) -> Vec<u64> {
        let mut sent = Vec::new();
        while let Some(now) = agent.deadline().filter(|&now| now <= end) {
            let mut out = Vec::new();
            agent.timeout(now, &mut out);
            let frames =
                out.iter().filter(|request| matches!(request, LldpRequest::Send(_))).count();
            sent.extend(core::iter::repeat_n(now.since(Time::ZERO).as_millis(), frames));
        }
        sent
    }

    fn count(out: &[LldpRequest], request: impl Fn(&LldpRequest) -> bool) -> usize {
        out.iter().filter(|&one| request(one)).count()
    }

    #[test]
    fn a_port_sends_when_it_comes_up_and_every_half_minute_after() {
        let (mut agent, mut out) = (agent(), Vec::new());
        assert_eq!(agent.deadline(), None);
        agent.link(at(500), true, &mut out);
        let [LldpRequest::Send(frame)] = &out[..] else { panic!("{out:?}") };
        assert_eq!(Lldpdu::parse_frame(frame).unwrap().lldpdu.ttl_secs, 121);
        assert_eq!(sent_until(&mut agent, at(91_000)), [30_500, 60_500, 90_500]);
    }

    #[test]
    fn a_new_neighbour_gets_four_lldpdus_in_a_row_and_a_known_one_is_not() {
        let (mut agent, mut out) = (agent(), Vec::new());
        agent.link(at(0), true, &mut out);
        out.clear();
        agent.receive(at(10_000), &frame_of(2, 120, vec![]), &mut out);
        assert_eq!(out.len(), 2, "sent at once, and the table has changed: {out:?}");
        assert_eq!(sent_until(&mut agent, at(50_000)), [11_000, 12_000, 13_000, 43_000]);
        out.clear();
        agent.receive(at(50_000), &frame_of(2, 120, vec![]), &mut out);
        assert_eq!(out, []);
    }

    #[test]
    fn changes_are_sent_at_once_while_there_is_credit_and_once_a_second_after() {
        let (mut agent, mut out) = (agent(), Vec::new());
        agent.link(at(0), true, &mut out);
        for change in 0..10 {
            agent.set_local(at(5_000 + change), vec![tlv(change as u8)], &mut out);
        }
        assert_eq!(out.len(), 1 + 5);
        // One LLDPDU carries all changes made without credit. After it, nothing is due.
        assert_eq!(sent_until(&mut agent, at(20_000)), [6_000]);
        agent.set_local(at(20_000), vec![tlv(9)], &mut out);
        assert_eq!(out.len(), 1 + 5, "the same again is no change");
    }

    #[test]
    fn an_interval_begins_anew_with_each_change() {
        let (mut agent, mut out) = (agent(), Vec::new());
        agent.link(at(0), true, &mut out);
        agent.set_local(at(20_000), vec![tlv(1)], &mut out);
        assert_eq!(sent_until(&mut agent, at(60_000)), [50_000]);
    }

    #[test]
    fn a_neighbour_is_kept_for_its_time_to_live() {
        let (mut agent, mut out) = (agent(), Vec::new());
        agent.link(at(0), true, &mut out);
        agent.receive(at(0), &frame_of(2, 7, vec![tlv(1)]), &mut out);
        agent.receive(at(5_000), &frame_of(2, 7, vec![tlv(1)]), &mut out);
        assert_eq!(agent.neighbours()[0].until, at(12_000));
        out.clear();
        agent.timeout(at(11_999), &mut out);
        assert_eq!(count(&out, |request| *request == LldpRequest::Neighbours), 0);
        agent.timeout(at(12_000), &mut out);
        assert_eq!(count(&out, |request| *request == LldpRequest::Neighbours), 1);
        assert_eq!((agent.neighbours().len(), agent.counters().aged_out), (0, 1));
    }

    #[test]
    fn an_lldpdu_replaces_all_of_the_one_before() {
        let (mut agent, mut out) = (agent(), Vec::new());
        agent.link(at(0), true, &mut out);
        agent.receive(at(0), &frame_of(2, 120, vec![tlv(1), tlv(2)]), &mut out);
        out.clear();
        agent.receive(at(1), &frame_of(2, 120, vec![tlv(3)]), &mut out);
        assert_eq!(out, [LldpRequest::Neighbours]);
        assert_eq!(agent.neighbours()[0].optional, [tlv(3)]);
        out.clear();
        agent.receive(at(2), &frame_of(2, 0, vec![]), &mut out);
        assert_eq!(out, [LldpRequest::Neighbours]);
        assert_eq!(agent.neighbours(), []);
        agent.receive(at(3), &frame_of(2, 0, vec![]), &mut out);
        assert_eq!(out.len(), 1, "goodbye of nobody");
    }

    #[test]
    fn several_neighbours_are_kept_up_to_a_bound_and_none_without_carrier() {
        let (mut agent, mut out) = (agent(), Vec::new());
        agent.link(at(0), true, &mut out);
        for last in 10..50 {
            agent.receive(at(0), &frame_of(last, 120, vec![]), &mut out);
        }
        assert_eq!((agent.neighbours().len(), agent.counters().no_room), (32, 8));
        out.clear();
        agent.link(at(1), false, &mut out);
        assert_eq!((out, agent.neighbours()), (vec![LldpRequest::Neighbours], &[][..]));
        agent.receive(at(2), &frame_of(10, 120, vec![]), &mut vec![]);
        assert_eq!((agent.counters().link_down, agent.neighbours().len()), (1, 0));
    }

    #[test]
    fn frames_that_are_not_for_this_agent_are_counted_and_dropped() {
        let (mut agent, mut out) = (agent(), Vec::new());
        agent.link(at(0), true, &mut out);
        out.clear();
        let good = frame_of(2, 120, vec![]);
        agent.receive(at(1), &good[..20], &mut out);
        let mut other = good.clone();
        other[5] = 0x03;
        agent.receive(at(1), &other, &mut out);
        agent.receive(at(1), &frame_of(1, 120, vec![]), &mut out);
        let counters = agent.counters();
        assert_eq!((counters.malformed, counters.foreign, counters.received), (1, 2, 0));
        assert_eq!(out, []);
    }

    #[test]
    fn what_is_too_long_is_not_sent_and_counted() {
        let (mut agent, mut out) = (agent(), Vec::new());
        agent.set_local(at(0), vec![Tlv { kind: 99, value: vec![0; 511] }; 3], &mut out);
        agent.link(at(0), true, &mut out);
        assert_eq!((out, agent.counters().too_long), (vec![], 1));
    }
}
