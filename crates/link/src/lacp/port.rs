//! LACP at one port: the receive, periodic, mux and transmit machines (clauses 6.4.12 to 6.4.16).
//!
//! **Receive**: a LACPDU makes the partner information current. After three seconds without one (90
//! with the long time-out) it expires, and the port requests fast LACPDUs. After another three
//! seconds it is defaulted: there is no aggregating partner. **Periodic**: a LACPDU is sent every
//! second to a partner with the short time-out, every 30 seconds to one with the long. **Mux**: the
//! owner of the port selects it when its partner is that of the other ports. A selected port
//! advertises that it is in sync. It collects once its partner is in sync too, and distributes once
//! the partner collects, so no frame is sent to an end that does not accept it. **Transmit**:
//! changes are sent at once, but at most three LACPDUs in a second.
//!
//! Deviations from the standard: the port does not wait for others before it is attached
//! (`Aggregate_Wait_Time`), because a later port joins a bond that carries frames without
//! disturbing it. A port without partner is in no aggregate; its owner decides whether it carries
//! frames individually.

use axon_wire::lacp::{Lacpdu, PortInfo, PortState, SystemId};
use axon_wire::{Span, Time};

/// Interval of LACPDUs to a partner with the short time-out (`Fast_Periodic_Time`).
const FAST: Span = Span::from_secs(1);
/// Interval of LACPDUs to a partner with the long time-out (`Slow_Periodic_Time`).
const SLOW: Span = Span::from_secs(30);
/// Short time-out (`Short_Timeout_Time`).
const SHORT: Span = Span::from_secs(3);
/// Long time-out (`Long_Timeout_Time`).
const LONG: Span = Span::from_secs(90);
/// Maximum number of LACPDUs within [`FAST`] (clause 6.4.16).
const SENT_MAX: usize = 3;
/// State bits that trigger a LACPDU when the partner's copy is wrong (`update_NTT`).
const NEGOTIATED: u8 = PortState::ACTIVE.0
    | PortState::SHORT_TIMEOUT.0
    | PortState::AGGREGATION.0
    | PortState::SYNCHRONIZATION.0;

/// Configuration of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LacpConfig {
    /// Advertised system.
    pub system: SystemId,
    /// Advertised key.
    pub key: u16,
    /// Priority of the port.
    pub port_priority: u16,
    /// Number of the port, unique within the system.
    pub port: u16,
    /// True if the port sends before its partner does.
    pub active: bool,
    /// True if the port expects a LACPDU each second, or one in 30 seconds.
    pub short_timeout: bool,
}

/// State of the receive machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receive {
    /// No carrier.
    Disabled,
    /// No LACPDU yet, or none recently.
    Expired,
    /// No partner sends LACPDUs.
    Defaulted,
    /// The partner information is current.
    Current,
}

/// State of the mux machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mux {
    /// In no aggregate.
    Detached,
    /// In sync; the partner is not yet.
    Attached,
    /// Received frames are accepted.
    Collecting,
    /// Frames are sent, too.
    Distributing,
}

/// LACP state of a port.
#[derive(Clone, Debug)]
pub struct LacpPort {
    config: LacpConfig,
    receive: Receive,
    mux: Mux,
    selected: bool,
    partner: PortInfo,
    defaulted: bool,
    /// Expiry of the partner information.
    current_while: Option<Time>,
    /// Time of the next periodic LACPDU, and whether the interval is the fast one.
    periodic: Option<(Time, bool)>,
    /// True if a LACPDU must be sent (`NTT`).
    wants_to_send: bool,
    /// Times of the last LACPDUs, the oldest first.
    sent: [Option<Time>; SENT_MAX],
}

impl LacpPort {
    /// Creates a port without carrier.
    pub fn new(config: LacpConfig) -> LacpPort {
        LacpPort {
            config,
            receive: Receive::Disabled,
            mux: Mux::Detached,
            selected: false,
            partner: PortInfo::default(),
            defaulted: true,
            current_while: None,
            periodic: None,
            wants_to_send: false,
            sent: [None; SENT_MAX],
        }
    }

    /// Returns the state of the receive machine.
    pub const fn receive_state(&self) -> Receive {
        self.receive
    }

    /// Returns the state of the mux machine.
    pub const fn mux_state(&self) -> Mux {
        self.mux
    }

    /// Returns the partner as last received; `None` if no LACPDU has come for long.
    pub fn partner(&self) -> Option<&PortInfo> {
        (!self.defaulted).then_some(&self.partner)
    }

    /// Returns whether the port is selected for its aggregate.
    pub const fn is_selected(&self) -> bool {
        self.selected
    }

    /// Returns the port's own advertised state.
    pub(crate) fn actor(&self) -> PortInfo {
        let LacpConfig { system, key, port_priority, port, active, short_timeout } = self.config;
        let state = PortState(0)
            .with(PortState::ACTIVE, active)
            .with(PortState::SHORT_TIMEOUT, short_timeout)
            .with(PortState::AGGREGATION, true)
            .with(PortState::SYNCHRONIZATION, self.mux >= Mux::Attached)
            .with(PortState::COLLECTING, self.mux >= Mux::Collecting)
            .with(PortState::DISTRIBUTING, self.mux == Mux::Distributing)
            .with(PortState::DEFAULTED, self.defaulted)
            .with(PortState::EXPIRED, self.receive == Receive::Expired);
        PortInfo { system, key, port_priority, port, state }
    }

    /// Processes a carrier change.
    pub fn link(&mut self, now: Time, up: bool) {
        if up == (self.receive != Receive::Disabled) {
            return;
        }
        self.selected = false;
        self.record_default();
        self.current_while = None;
        self.receive = Receive::Disabled;
        if up {
            self.expire(now);
            self.wants_to_send = true;
        }
        self.settle(now);
    }

    /// Processes a LACPDU.
    pub fn receive(&mut self, now: Time, pdu: &Lacpdu) {
        if self.receive == Receive::Disabled {
            return;
        }
        let (mine, theirs) = (self.actor(), pdu.actor);
        let aggregates = |info: &PortInfo| info.state.has(PortState::AGGREGATION);
        // update_Selected
        let is_same = theirs.is_same_port(&self.partner);
        self.selected &= is_same && aggregates(&theirs) == aggregates(&self.partner);
        // update_NTT
        let knows_me = pdu.partner.is_same_port(&mine);
        let differs = (pdu.partner.state.0 ^ mine.state.0) & NEGOTIATED != 0;
        self.wants_to_send |= !knows_me || differs;
        // recordPDU
        let is_kept_up = theirs.state.has(PortState::ACTIVE)
            || self.config.active && pdu.partner.state.has(PortState::ACTIVE);
        let matches = knows_me && aggregates(&pdu.partner) == aggregates(&mine);
        let in_sync = (matches || !aggregates(&theirs))
            && theirs.state.has(PortState::SYNCHRONIZATION)
            && is_kept_up;
        self.partner = theirs;
        self.partner.state = theirs.state.with(PortState::SYNCHRONIZATION, in_sync);
        self.defaulted = false;
        self.receive = Receive::Current;
        let timeout = if self.config.short_timeout { SHORT } else { LONG };
        self.current_while = Some(now + timeout);
        self.settle(now);
    }

    /// Selects or deselects the port, as its owner decides by the partner of the aggregate.
    pub fn select(&mut self, now: Time, selected: bool) {
        self.selected = selected && self.receive != Receive::Disabled && !self.defaulted;
        self.settle(now);
    }

    /// Processes timeouts; to be called at [`LacpPort::deadline`]. Early or repeated calls are
    /// harmless.
    pub fn timeout(&mut self, now: Time) {
        if self.current_while.is_some_and(|at| at <= now) {
            match self.receive {
                Receive::Current => self.expire(now),
                _ => {
                    self.receive = Receive::Defaulted;
                    self.selected = false;
                    self.record_default();
                    self.current_while = None;
                }
            }
        }
        if let Some((_, fast)) = self.periodic.filter(|(at, _)| *at <= now) {
            self.wants_to_send = true;
            self.periodic = Some((now + interval(fast), fast));
        }
        self.settle(now);
    }

    /// Returns the time of the next [`LacpPort::timeout`] or [`LacpPort::transmit`].
    pub fn deadline(&self) -> Option<Time> {
        let sends = (self.wants_to_send && self.may_send()).then(|| self.not_before());
        let periodic = self.periodic.map(|(at, _)| at);
        [self.current_while, periodic, sends].into_iter().flatten().min()
    }

    /// Returns the LACPDU to send now, if there is one.
    pub fn transmit(&mut self, now: Time) -> Option<Lacpdu> {
        if !self.may_send() {
            self.wants_to_send = false;
        }
        if !self.wants_to_send || self.not_before() > now {
            return None;
        }
        self.wants_to_send = false;
        self.sent.rotate_left(1);
        self.sent[SENT_MAX - 1] = Some(now);
        Some(Lacpdu { actor: self.actor(), partner: self.partner, collector_max_delay: 0 })
    }

    /// Returns whether this port may send: one of the two ends has to be active.
    fn may_send(&self) -> bool {
        let active = self.config.active || self.partner.state.has(PortState::ACTIVE);
        self.receive != Receive::Disabled && active
    }

    fn not_before(&self) -> Time {
        self.sent[0].map_or(Time::ZERO, |oldest| oldest + FAST)
    }

    /// Requests fast LACPDUs of the partner until its information is defaulted.
    fn expire(&mut self, now: Time) {
        self.receive = Receive::Expired;
        let state = self.partner.state.with(PortState::SYNCHRONIZATION, false);
        self.partner.state = state.with(PortState::SHORT_TIMEOUT, true);
        self.current_while = Some(now + SHORT);
    }

    fn record_default(&mut self) {
        // Without a partner the port sends each second, as one may appear.
        self.partner = PortInfo { state: PortState::SHORT_TIMEOUT, ..PortInfo::default() };
        self.defaulted = true;
    }

    /// Updates the mux and periodic machines.
    fn settle(&mut self, now: Time) {
        let is = |bits| self.partner.state.has(bits);
        let mux = match (self.selected, is(PortState::SYNCHRONIZATION), is(PortState::COLLECTING)) {
            (false, ..) => Mux::Detached,
            (true, false, _) => Mux::Attached,
            (true, true, false) => Mux::Collecting,
            (true, true, true) => Mux::Distributing,
        };
        self.wants_to_send |= mux != self.mux;
        self.mux = mux;
        if !self.may_send() {
            self.periodic = None;
            return;
        }
        let fast = is(PortState::SHORT_TIMEOUT);
        self.periodic = match self.periodic {
            Some(stands) if stands.1 == fast => Some(stands),
            before => {
                self.wants_to_send |= before.is_some() && fast;
                Some((now + interval(fast), fast))
            }
        };
    }
}

const fn interval(fast: bool) -> Span {
    if fast { FAST } else { SLOW }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use axon_wire::MacAddr;

    fn port(number: u8, active: bool) -> LacpPort {
        let system = SystemId { priority: 1, mac: MacAddr([2, 0, 0, 0, 0, number]) };
        let (port, short_timeout) = (u16::from(number), true);
        LacpPort::new(LacpConfig { system, key: 7, port_priority: 1, port, active, short_timeout })
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Two ports with a link of no latency between them. Both are selected as soon as they know
    /// their partner.
    struct Pair {
        ports: [LacpPort; 2],
        now: Time,
        sent: [Vec<Time>; 2],
        /// True if the frames of each port are lost.
        lost: [bool; 2],
        selects: bool,
    }

    impl Pair {
        fn new(active: [bool; 2]) -> Pair {
            let ports = [port(1, active[0]), port(2, active[1])];
            let mut pair = Pair {
                ports,
                now: Time::ZERO,
                sent: Default::default(),
                lost: [false; 2],
                selects: true,
            };
            pair.ports.iter_mut().for_each(|port| port.link(Time::ZERO, true));
            pair.exchange();
            pair
        }

        fn exchange(&mut self) {
            loop {
                let mut idle = true;
                for side in 0..2 {
                    if self.selects && self.ports[side].partner().is_some() {
                        self.ports[side].select(self.now, true);
                    }
                    let Some(pdu) = self.ports[side].transmit(self.now) else { continue };
                    idle = false;
                    self.sent[side].push(self.now);
                    if !self.lost[side] {
                        self.ports[1 - side].receive(self.now, &pdu);
                    }
                }
                if idle {
                    return;
                }
            }
        }

        fn run_until(&mut self, ms: u64) {
            while let Some(due) = self.ports.iter().filter_map(LacpPort::deadline).min()
                && due <= at(ms)
            {
                self.now = due.max(self.now);
                self.ports.iter_mut().for_each(|port| port.timeout(self.now));
                self.exchange();
            }
            self.now = at(ms);
        }

        fn muxes(&self) -> [Mux; 2] {
            [self.ports[0].mux_state(), self.ports[1].mux_state()]
        }
    }

    #[test]
    fn two_ports_distribute_within_the_time_that_the_rate_of_lacpdus_takes() {
        for active in [[true, true], [true, false], [false, true]] {
            let mut pair = Pair::new(active);
            pair.run_until(1_000);
            assert_eq!(pair.muxes(), [Mux::Distributing; 2], "{active:?}");
            let state = pair.ports[0].actor().state;
            let expected = if active[0] { 0x3f } else { 0x3e };
            assert_eq!(state, PortState(expected));
        }
    }

    #[test]
    fn two_passive_ports_say_nothing() {
        let mut pair = Pair::new([false, false]);
        pair.run_until(10_000);
        assert_eq!((pair.sent[0].len(), pair.sent[1].len()), (0, 0));
        assert_eq!(pair.ports[0].receive_state(), Receive::Defaulted);
    }

    #[test]
    fn a_partner_gets_a_lacpdu_each_second_and_never_more_than_three() {
        let mut pair = Pair::new([true, true]);
        pair.run_until(60_000);
        for sent in &pair.sent {
            assert!((60..70).contains(&sent.len()), "{}", sent.len());
            let many = sent.windows(4).any(|four| four[3].since(four[0]) < FAST);
            assert!(!many, "{sent:?}");
        }
    }

    #[test]
    fn a_partner_with_the_long_time_out_gets_one_in_thirty_seconds() {
        let mut pair = Pair::new([true, true]);
        pair.ports[1].config.short_timeout = false;
        pair.run_until(2_000);
        let before = pair.sent[0].len();
        pair.run_until(152_000);
        assert!((4..=6).contains(&(pair.sent[0].len() - before)));
        assert!(pair.sent[1].len() > 140, "the other wants them each second");
        assert_eq!(pair.muxes(), [Mux::Distributing; 2]);
    }

    #[test]
    fn a_port_whose_partner_is_silent_stops_after_three_seconds_and_gives_up_after_six() {
        let mut pair = Pair::new([true, true]);
        pair.run_until(10_000);
        pair.lost[1] = true;
        let last = *pair.sent[1].last().unwrap();
        let (before, after) = (last + SHORT, last + SHORT * 2);
        pair.run_until((before.as_nanos() / 1_000_000) - 1);
        assert_eq!(pair.muxes(), [Mux::Distributing; 2]);
        pair.run_until((before.as_nanos() / 1_000_000) + 1);
        assert_eq!(pair.ports[0].receive_state(), Receive::Expired);
        assert_eq!(pair.muxes()[0], Mux::Attached);
        assert_eq!(pair.muxes()[1], Mux::Collecting, "it sends nothing that nobody would take");
        pair.run_until((after.as_nanos() / 1_000_000) + 1);
        assert_eq!(pair.ports[0].receive_state(), Receive::Defaulted);
        assert!(pair.ports[0].partner().is_none() && pair.muxes()[0] == Mux::Detached);
        pair.lost[1] = false;
        pair.run_until(20_000);
        assert_eq!(pair.muxes(), [Mux::Distributing; 2], "it is back");
    }

    #[test]
    fn ends_that_have_given_up_each_other_find_each_other_within_seconds() {
        let mut pair = Pair::new([true, true]);
        pair.run_until(5_000);
        pair.lost = [true; 2];
        pair.run_until(25_000);
        assert!(pair.ports.iter().all(|port| port.receive_state() == Receive::Defaulted));
        pair.lost = [false; 2];
        pair.run_until(27_500);
        assert_eq!(pair.muxes(), [Mux::Distributing; 2]);
    }

    #[test]
    fn a_port_that_its_owner_does_not_select_is_out_of_sync_and_its_partner_does_not_send() {
        let mut pair = Pair::new([true, true]);
        pair.selects = false;
        pair.run_until(5_000);
        pair.ports[0].select(at(5_000), false);
        pair.run_until(7_000);
        assert_eq!(pair.muxes(), [Mux::Detached, Mux::Attached]);
        assert!(pair.ports[0].partner().is_some());
        pair.ports[0].select(at(7_000), true);
        pair.run_until(8_000);
        assert_eq!(pair.muxes(), [Mux::Distributing; 2]);
    }

    #[test]
    fn another_partner_is_selected_anew() {
        let mut pair = Pair::new([true, true]);
        pair.run_until(5_000);
        pair.selects = false;
        let mut other = port(3, true);
        other.link(at(5_000), true);
        pair.ports[0].receive(at(5_000), &other.transmit(at(5_000)).unwrap());
        assert!(!pair.ports[0].is_selected());
        assert_eq!(pair.muxes()[0], Mux::Detached);
    }

    #[test]
    fn without_carrier_nothing_is_known_and_nothing_sent() {
        let mut pair = Pair::new([true, true]);
        pair.run_until(5_000);
        pair.ports[0].link(at(5_000), false);
        let port = &mut pair.ports[0];
        assert_eq!((port.deadline(), port.transmit(at(9_000)), port.partner()), (None, None, None));
        assert_eq!(port.mux_state(), Mux::Detached);
        port.receive(at(9_000), &Lacpdu::default());
        assert_eq!(port.receive_state(), Receive::Disabled);
    }
}
