//! Tests of DCBX on one port and between two ports. `tests/older.rs` tests CEE.

mod older;

use self::older::cee;
use super::ieee::Duplicates;
use super::*;
use crate::lldp::{LldpAgent, LldpConfig, LldpIdentity};
use alloc::vec;
use alloc::vec::Vec;
use axon_plane::qcn::DefenceConfig;
use axon_wire::dcbx::ieee::{
    Application, Ets, EtsConfiguration, EtsProblem, EtsRecommendation, PfcConfiguration, Tsa,
};
use axon_wire::dcbx::{DcbxError, Dialect, OUI_BEFORE, OUI_IEEE};
use axon_wire::lldp::{Id, LldpFrame, Lldpdu, NEAREST_BRIDGE, Tlv};
use axon_wire::{MacAddr, PrioritySet, Span, Time, TrafficClass};
use proptest::prelude::*;

const OWN: u8 = 5;

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

fn set(bits: u8) -> PrioritySet {
    PrioritySet::from_bits(bits)
}

fn port(last: u8, config: DcbxConfig) -> DcbPort {
    let mac = mac(last);
    let identity =
        LldpIdentity { mac, chassis: Id::chassis_of_mac(mac), port: Id::port_of_mac(mac) };
    DcbPort::new(LldpAgent::new(LldpConfig::default(), identity), config, vec![])
}

/// Returns a port with its link up, and the first events.
fn up(config: DcbxConfig) -> DcbPort {
    let mut port = port(OWN, config);
    port.link(at(0), true, &mut vec![]);
    port
}

fn frame(last: u8, ttl_secs: u16, optional: Vec<Tlv>) -> Vec<u8> {
    let (chassis, port) = (Id::chassis_of_mac(mac(last)), Id::port_of_mac(mac(last)));
    let lldpdu = Lldpdu { chassis, port, ttl_secs, optional };
    LldpFrame { destination: NEAREST_BRIDGE, source: mac(last), lldpdu }.emit().unwrap()
}

/// Delivers a neighbour's LLDPDU. Returns the events other than frames.
fn receive(port: &mut DcbPort, last: u8, optional: Vec<Tlv>) -> Vec<DcbEvent> {
    let mut out = vec![];
    port.receive(at(10), &frame(last, 120, optional), &mut out);
    out.retain(|event| !matches!(event, DcbEvent::Send(_)));
    out
}

/// Returns an ETS table with shares for classes 0 and 1, and priority 3 in class 1.
fn shares(first: u8) -> Ets {
    let mut ets = Ets::default();
    ets.class_of[3] = TrafficClass::ALL[1];
    (ets.percent[0], ets.percent[1]) = (first, 100 - first);
    (ets.tsa[0], ets.tsa[1]) = (Tsa::ETS, Tsa::ETS);
    ets
}

fn pfc(willing: bool, bits: u8) -> Tlv {
    let enabled = set(bits);
    PfcConfiguration { willing, macsec_bypass: false, classes_max: 8, enabled }.emit()
}

fn ieee(change: impl FnOnce(&mut IeeeConfig)) -> DcbxConfig {
    let mut config = DcbxConfig::default();
    (config.ieee.ets, config.ieee.pfc) = (shares(60), set(0x10));
    change(&mut config.ieee);
    config
}

#[test]
fn a_willing_port_does_what_is_recommended_and_not_what_the_peer_does() {
    let mut port = up(ieee(|_| {}));
    let configuration =
        EtsConfiguration { willing: false, credit_based: false, classes_max: 8, ets: shares(20) };
    assert_eq!(receive(&mut port, 9, vec![configuration.emit()]), []);
    assert_eq!(port.operational().ets, shares(60));
    let recommended = vec![configuration.emit(), EtsRecommendation(shares(30)).emit()];
    assert_eq!(receive(&mut port, 9, recommended), [DcbEvent::Operational]);
    assert_eq!((port.operational().ets, port.operational().ets_from), (shares(30), Source::Peer));
    assert_eq!(port.remote().unwrap().configuration, Some(configuration));
}

#[test]
fn a_recommendation_holds_while_it_is_said_and_the_port_is_willing() {
    let recommended = vec![EtsRecommendation(shares(30)).emit()];
    let mut port = up(ieee(|_| {}));
    let ends: [&dyn Fn(&mut DcbPort); 4] = [
        &|port| drop(receive(port, 9, vec![pfc(false, 0x10)])),
        &|port| port.receive(at(20), &frame(9, 0, vec![]), &mut vec![]),
        &|port| port.timeout(at(120_010), &mut vec![]),
        &|port| port.configure(at(20), ieee(|own| own.ets_willing = false), &mut vec![]),
    ];
    for end in ends {
        receive(&mut port, 9, recommended.clone());
        assert_eq!(port.operational().ets, shares(30));
        end(&mut port);
        assert_eq!(port.operational().ets, shares(60));
    }
}

#[test]
fn what_the_port_says_is_what_is_in_force() {
    let mut port = up(ieee(|own| own.recommendation = Some(shares(40))));
    let mut out = vec![];
    let tlvs = vec![EtsRecommendation(shares(30)).emit(), pfc(false, 0x08)];
    port.receive(at(10), &frame(9, 120, tlvs), &mut out);
    let sent = out.iter().rev().find_map(|event| match event {
        DcbEvent::Send(frame) => Some(Lldpdu::parse_frame(frame).unwrap().lldpdu.optional),
        _ => None,
    });
    let configuration =
        EtsConfiguration { willing: true, credit_based: false, classes_max: 8, ets: shares(30) };
    let expected =
        vec![configuration.emit(), EtsRecommendation(shares(40)).emit(), pfc(true, 0x08)];
    assert_eq!(sent, Some(expected));
}

#[test]
fn a_recommendation_that_cannot_be_done_is_not_done() {
    let mut port = up(ieee(|own| own.classes_max = 2));
    let mut three = shares(30);
    three.class_of[7] = TrafficClass::ALL[2];
    let mut sum = shares(30);
    sum.percent[0] = 31;
    for (ets, problem) in
        [(three, EtsProblem::Classes(TrafficClass::ALL[2])), (sum, EtsProblem::Sum(101))]
    {
        let out = receive(&mut port, 9, vec![EtsRecommendation(ets).emit()]);
        assert_eq!(out, [DcbEvent::Note(DcbxNote::Recommendation(problem))]);
        assert_eq!(port.operational().ets, shares(60));
    }
}

#[test]
fn pfc_follows_willingness_and_of_two_willing_ports_the_tie_rule() {
    // Own willing, peer willing, peer's address, rule, and source of the PFC in force.
    let (lower, higher) = (OWN - 1, OWN + 1);
    for (own, theirs, peer, tie, follows) in [
        (true, false, higher, TieRule::LowerKeeps, true),
        (true, false, lower, TieRule::HigherKeeps, true),
        (false, true, lower, TieRule::LowerKeeps, false),
        (false, false, lower, TieRule::LowerKeeps, false),
        (true, true, lower, TieRule::LowerKeeps, true),
        (true, true, higher, TieRule::LowerKeeps, false),
        (true, true, lower, TieRule::HigherKeeps, false),
        (true, true, higher, TieRule::HigherKeeps, true),
    ] {
        let mut port = up(ieee(|config| (config.pfc_willing, config.tie) = (own, tie)));
        let out = receive(&mut port, peer, vec![pfc(theirs, 0x08)]);
        let case = (own, theirs, peer, tie);
        let (expected, from) =
            if follows { (set(0x08), Source::Peer) } else { (set(0x10), Source::Local) };
        assert_eq!(
            (port.operational().pfc, port.operational().pfc_from),
            (expected, from),
            "{case:?}"
        );
        let differs = DcbEvent::Note(DcbxNote::PfcDiffers(set(0x08)));
        assert_eq!(out.contains(&differs), !own && !theirs, "{case:?}");
    }
}

#[test]
fn pfc_for_more_classes_than_the_port_has_it_for_is_not_followed() {
    let mut port = up(ieee(|config| config.pfc_classes_max = 1));
    receive(&mut port, 9, vec![pfc(false, 0x30)]);
    assert_eq!(port.operational().pfc, set(0x30), "both priorities are in class 0");
    let out = receive(&mut port, 9, vec![pfc(false, 0x18)]);
    assert!(out.contains(&DcbEvent::Note(DcbxNote::PfcClasses(1))));
    assert_eq!(port.operational().pfc, set(0x10));
    for (zero, follows) in [(ZeroClasses::None, 0x10), (ZeroClasses::All, 0x18)] {
        let config = ieee(|own| (own.pfc_classes_max, own.pfc_classes_zero) = (0, zero));
        port.configure(at(20), config, &mut vec![]);
        assert_eq!(port.operational().pfc, set(follows), "{zero:?}");
    }
}

#[test]
fn with_several_peers_a_port_does_as_without_any() {
    let mut port = up(ieee(|_| {}));
    receive(&mut port, 8, vec![pfc(false, 0x08)]);
    assert_eq!(receive(&mut port, 7, vec![]), [], "that one speaks no DCBX");
    assert_eq!(port.operational().pfc, set(0x08));
    let out = receive(&mut port, 9, vec![pfc(false, 0x08)]);
    assert_eq!(out, [DcbEvent::Note(DcbxNote::SeveralPeers(2)), DcbEvent::Operational]);
    assert_eq!((port.operational().pfc, port.remote()), (set(0x10), None));
    port.receive(at(20), &frame(9, 0, vec![]), &mut vec![]);
    assert_eq!((port.operational().pfc, port.notes()), (set(0x08), &[][..]));
}

#[test]
fn a_repeated_or_unreadable_tlv_counts_as_absent() {
    let mut port = up(ieee(|_| {}));
    let recommended = EtsRecommendation(shares(30)).emit();
    let twice = vec![pfc(false, 8), recommended.clone(), pfc(false, 8)];
    let out = receive(&mut port, 9, twice.clone());
    assert_eq!(out[0], DcbEvent::Note(DcbxNote::Repeated { subtype: 11 }));
    assert_eq!((port.operational().pfc, port.operational().ets), (set(0x10), shares(30)));
    let strict = ieee(|config| config.duplicates = Duplicates::IgnorePeer);
    port.configure(at(20), strict, &mut vec![]);
    assert_eq!(port.operational().ets, shares(60));
    let short = Tlv::of_organisation(OUI_IEEE, 11, &[8]);
    let out = receive(&mut port, 9, vec![short, recommended]);
    let error = DcbxError::Length(1);
    assert_eq!(out[0], DcbEvent::Note(DcbxNote::Unreadable { subtype: 11, error }));
    assert_eq!((port.operational().pfc, port.operational().ets), (set(0x10), shares(30)));
}

#[test]
fn application_priorities_are_information() {
    let entry = |protocol| Application {
        priority: axon_wire::Priority::ALL[3],
        selector: axon_wire::dcbx::ieee::Selector::ETHERTYPE,
        protocol,
    };
    let mut port = up(ieee(|config| config.applications = vec![entry(0x8915)]));
    let theirs = axon_wire::dcbx::ieee::emit_applications(&[entry(0x8906)]);
    assert_eq!(receive(&mut port, 9, vec![theirs]), [DcbEvent::Operational]);
    assert_eq!(port.operational().applications, [entry(0x8915)]);
    assert_eq!(port.operational().peer_applications, [entry(0x8906)]);
    receive(&mut port, 9, vec![pfc(false, 0x10)]);
    assert_eq!(port.operational().peer_applications, []);
}

/// Two ports on one link that loses `lost` of 10 frames until `lossy_until`.
struct Pair {
    ports: [DcbPort; 2],
    random: u64,
    sent: usize,
    now: Time,
}

impl Pair {
    fn new(seed: u64, configs: [DcbxConfig; 2]) -> Pair {
        let [a, b] = configs;
        let mut pair =
            Pair { ports: [port(3, a), port(4, b)], random: seed, sent: 0, now: Time::ZERO };
        for index in 0..2 {
            let mut out = vec![];
            pair.ports[index].link(Time::ZERO, true, &mut out);
            pair.carry(index, out, 10);
        }
        pair
    }

    fn loses(&mut self, lost: u64) -> bool {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % 10 < lost
    }

    /// Delivers frames between the ports until neither sends any more.
    fn carry(&mut self, from: usize, out: Vec<DcbEvent>, lost: u64) {
        let mut ahead = vec![(from, out)];
        while let Some((from, out)) = ahead.pop() {
            for event in out {
                let DcbEvent::Send(frame) = event else { continue };
                self.sent += 1;
                if !self.loses(lost) {
                    let mut answer = vec![];
                    self.ports[1 - from].receive(self.now, &frame, &mut answer);
                    ahead.insert(0, (1 - from, answer));
                }
            }
        }
    }

    fn run(&mut self, until: Time, lost: u64) {
        let next = |pair: &Pair| {
            let deadline = |index: usize| Some((pair.ports[index].deadline()?, index));
            [0, 1].into_iter().filter_map(deadline).min().filter(|&(time, _)| time <= until)
        };
        while let Some((time, index)) = next(self) {
            self.now = time;
            let mut out = vec![];
            self.ports[index].timeout(time, &mut out);
            self.carry(index, out, lost);
        }
        self.now = until;
    }

    /// Runs five minutes with loss and one without. Another minute must bring only repetitions.
    fn settle(&mut self, seed: u64) {
        self.run(at(300_000), 3);
        self.run(at(360_000), 0);
        let before = self.sent;
        self.run(at(420_000), 0);
        assert!(self.sent - before <= 4, "seed {seed}: they do not come to rest");
    }
}

#[test]
fn two_ports_agree_whatever_is_lost_on_the_way() {
    for seed in 0..60 {
        let mut willing = ieee(|_| {});
        let mut other = ieee(|config| {
            (config.pfc, config.recommendation) = (set(0x08), Some(shares(30)));
            (config.pfc_willing, config.ets_willing) = (seed % 2 == 0, false);
        });
        // If both are willing, the port with the lower address, the first, keeps its PFC.
        let expected = if seed % 2 == 0 { set(0x10) } else { set(0x08) };
        if seed % 3 == 0 {
            // With the other rule, the higher address keeps its PFC.
            (willing.ieee.tie, other.ieee.tie) = (TieRule::HigherKeeps, TieRule::HigherKeeps);
        }
        let expected = if seed % 3 == 0 { set(0x08) } else { expected };
        let mut pair = Pair::new(seed, [willing, other]);
        pair.settle(seed);
        let [a, b] = pair.ports.each_ref().map(DcbPort::operational);
        assert_eq!((a.pfc, b.pfc), (expected, expected), "seed {seed}");
        assert_eq!((a.ets, b.ets), (shares(30), shares(60)), "seed {seed}");
    }
}

#[test]
fn another_defence_is_applied_when_it_is_set() {
    let cnpvs = |bits| DcbxConfig {
        congestion: Some(DefenceConfig { cnpvs: set(bits), ..DefenceConfig::default() }),
        ..ieee(|_| {})
    };
    let mut port = up(cnpvs(0x08));
    let changed = |out: &[DcbEvent]| out.contains(&DcbEvent::Operational);
    for (bits, changes) in [(0x10, true), (0x10, false), (0x18, true)] {
        let (before, mut out) = (port.treatments(), vec![]);
        port.configure(at(20), cnpvs(bits), &mut out);
        assert_eq!((before != port.treatments(), changed(&out)), (changes, changes), "{bits:#x}");
    }
    let mut out = vec![];
    port.configure(at(30), ieee(|_| {}), &mut out);
    assert!(changed(&out) && port.treatments().is_none());
}

proptest! {
    /// For any neighbours in either form, the table keeps its bound, the state in force is
    /// feasible, and the port neither misses a deadline nor wakes early.
    #[test]
    fn no_neighbour_brings_a_port_out_of_order(
        mode in prop::sample::select(vec![Mode::Ieee, Mode::Cee, Mode::Auto]),
        said in prop::collection::vec(
            (
                any::<u8>(), 0_u16..5, 0_u64..3_000, any::<bool>(), 1_u8..14,
                prop::collection::vec(0_u8..9, 0..40),
            ),
            0..60,
        ),
    ) {
        let config = DcbxConfig { mode, cee: cee(true, 0x10).cee, ..ieee(|_| {}) };
        let mut port = up(config);
        let mut now = at(0);
        for (last, ttl_secs, later, standard, subtype, info) in said {
            now += Span::from_millis(later);
            let oui = if standard { OUI_IEEE } else { OUI_BEFORE };
            let subtype = if standard { subtype } else { subtype % 3 };
            let tlvs = vec![Tlv::of_organisation(oui, subtype, &info); 1 + usize::from(last) % 2];
            let mut out = vec![];
            port.receive(now, &frame(last, ttl_secs, tlvs), &mut out);
            prop_assert!(port.agent().neighbours().len() <= 32);
            prop_assert!(port.operational().ets.check(8, false).is_ok());
            prop_assert!(port.deadline().is_some_and(|deadline| deadline > now));
            prop_assert!(out.len() < 20, "{out:?}");
        }
    }
}
