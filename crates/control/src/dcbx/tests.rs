//! DCBX at one port, and between two.

use super::ieee::Duplicates;
use super::*;
use crate::lldp::{LldpAgent, LldpConfig, LldpIdentity};
use alloc::vec;
use axon_wire::dcbx::cee::{CeeApplication, CeePfc, Groups};
use axon_wire::dcbx::ieee::{EtsConfiguration, EtsRecommendation, PfcConfiguration, Tsa};
use axon_wire::dcbx::{OUI_BEFORE, OUI_IEEE};
use axon_wire::lldp::{Id, LldpFrame, Lldpdu, NEAREST_BRIDGE, Tlv};
use axon_wire::{MacAddr, Span, Time, TrafficClass};
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

/// A port with its link up, and what it says.
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

/// Lets a neighbour speak; what comes out but for frames.
fn hear(port: &mut DcbPort, last: u8, optional: Vec<Tlv>) -> Vec<DcbEvent> {
    let mut out = vec![];
    port.receive(at(10), &frame(last, 120, optional), &mut out);
    out.retain(|event| !matches!(event, DcbEvent::Send(_)));
    out
}

/// Shares for classes 0 and 1, priority 3 in class 1.
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
    assert_eq!(hear(&mut port, 9, vec![configuration.emit()]), []);
    assert_eq!(port.operational().ets, shares(60));
    let recommended = vec![configuration.emit(), EtsRecommendation(shares(30)).emit()];
    assert_eq!(hear(&mut port, 9, recommended), [DcbEvent::Operational]);
    assert_eq!((port.operational().ets, port.operational().ets_from), (shares(30), Source::Peer));
    assert_eq!(port.remote().unwrap().configuration, Some(configuration));
}

#[test]
fn a_recommendation_holds_while_it_is_said_and_the_port_is_willing() {
    let recommended = vec![EtsRecommendation(shares(30)).emit()];
    let mut port = up(ieee(|_| {}));
    let ends: [&dyn Fn(&mut DcbPort); 4] = [
        &|port| drop(hear(port, 9, vec![pfc(false, 0x10)])),
        &|port| port.receive(at(20), &frame(9, 0, vec![]), &mut vec![]),
        &|port| port.timeout(at(120_010), &mut vec![]),
        &|port| port.configure(at(20), ieee(|own| own.ets_willing = false), &mut vec![]),
    ];
    for end in ends {
        hear(&mut port, 9, recommended.clone());
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
        let out = hear(&mut port, 9, vec![EtsRecommendation(ets).emit()]);
        assert_eq!(out, [DcbEvent::Note(DcbxNote::Recommendation(problem))]);
        assert_eq!(port.operational().ets, shares(60));
    }
}

#[test]
fn pfc_follows_willingness_and_of_two_willing_ports_the_tie_rule() {
    // Own willing, peer willing, peer's address, rule: whose PFC is in force.
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
        let out = hear(&mut port, peer, vec![pfc(theirs, 0x08)]);
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
    hear(&mut port, 9, vec![pfc(false, 0x30)]);
    assert_eq!(port.operational().pfc, set(0x30), "both priorities are in class 0");
    let out = hear(&mut port, 9, vec![pfc(false, 0x18)]);
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
    hear(&mut port, 8, vec![pfc(false, 0x08)]);
    assert_eq!(hear(&mut port, 7, vec![]), [], "that one speaks no DCBX");
    assert_eq!(port.operational().pfc, set(0x08));
    let out = hear(&mut port, 9, vec![pfc(false, 0x08)]);
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
    let out = hear(&mut port, 9, twice.clone());
    assert_eq!(out[0], DcbEvent::Note(DcbxNote::Repeated { subtype: 11 }));
    assert_eq!((port.operational().pfc, port.operational().ets), (set(0x10), shares(30)));
    let strict = ieee(|config| config.duplicates = Duplicates::IgnorePeer);
    port.configure(at(20), strict, &mut vec![]);
    assert_eq!(port.operational().ets, shares(60));
    let short = Tlv::of_organisation(OUI_IEEE, 11, &[8]);
    let out = hear(&mut port, 9, vec![short, recommended]);
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
    assert_eq!(hear(&mut port, 9, vec![theirs]), [DcbEvent::Operational]);
    assert_eq!(port.operational().applications, [entry(0x8915)]);
    assert_eq!(port.operational().peer_applications, [entry(0x8906)]);
    hear(&mut port, 9, vec![pfc(false, 0x10)]);
    assert_eq!(port.operational().peer_applications, []);
}

#[test]
fn an_older_form_is_recognised_and_spoken_if_the_port_may() {
    let cin = Tlv::of_organisation(OUI_BEFORE, 1, &[2, 10]);
    let mut port = up(ieee(|_| {}));
    let out = hear(&mut port, 9, vec![cin]);
    assert_eq!(out, [DcbEvent::Note(DcbxNote::Dialect(Dialect::Cin))]);
    let older = Cee::default().to_send().emit().unwrap();
    let out = hear(&mut port, 9, vec![older.clone()]);
    assert_eq!(out, [DcbEvent::Note(DcbxNote::Dialect(Dialect::Cee))]);
    port.configure(at(20), DcbxConfig { mode: Mode::Auto, ..ieee(|_| {}) }, &mut vec![]);
    assert_eq!((port.speaking(), port.notes()), (Dialect::Cee, &[][..]));
    port.link(at(30), false, &mut vec![]);
    assert_eq!(port.speaking(), Dialect::Ieee);
}

fn feature<T>(willing: bool, desired: T) -> CeeFeature<T> {
    CeeFeature { advertised: true, enabled: true, willing, desired }
}

fn cee(willing: bool, bits: u8) -> DcbxConfig {
    let group_of = [0, 0, 0, 1, 0, 0, 0, 15];
    let groups = Groups { group_of, percent: [bits, 100 - bits, 0, 0, 0, 0, 0, 0], classes_max: 8 };
    let entry = CeeApplication { protocol: 0x8906, oui: OUI_BEFORE, selector: 0, priorities: bits };
    let cee = CeeConfig {
        groups: feature(willing, groups),
        pfc: feature(willing, CeePfc { enabled: set(bits), classes_max: 8 }),
        applications: feature(willing, vec![entry]),
        groups_must_match: false,
    };
    let ets = super::cee::ets_of(&groups).unwrap();
    let ieee = IeeeConfig { ets, ..IeeeConfig::default() };
    DcbxConfig { mode: Mode::Cee, cee, ieee, ..DcbxConfig::default() }
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

    /// Carries the frames of one port to the other, and what follows, until nothing is said.
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

    /// Five minutes of loss, then one without; all said in another minute is what is always said.
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
        // With both willing the lower address, that of the first, keeps its PFC.
        let expected = if seed % 2 == 0 { set(0x10) } else { set(0x08) };
        if seed % 3 == 0 {
            // The higher keeps by the other rule.
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
fn in_the_older_form_the_willing_port_follows_whatever_is_lost_on_the_way() {
    for seed in 0..60 {
        let mut pair = Pair::new(seed, [cee(true, 0x10), cee(false, 0x08)]);
        pair.settle(seed);
        for port in &pair.ports {
            assert_eq!(port.notes(), [], "seed {seed}");
            assert_eq!(port.operational().pfc, set(0x08), "seed {seed}");
            let states = (port.cee().pfc(), port.cee().groups(), port.cee().applications());
            assert!(states.0.mode && states.1.mode && states.2.mode, "seed {seed}: {states:?}");
            assert_eq!(states.2.config[0].priorities, 0x08, "seed {seed}");
            assert_eq!(port.operational().ets.percent[..2], [8, 92], "seed {seed}");
            assert_eq!(port.operational().ets.class_of[7], TrafficClass::ALL[2]);
        }
        // A change of mind reaches the other end.
        let mut out = vec![];
        pair.ports[1].configure(pair.now, cee(false, 0x20), &mut out);
        pair.carry(1, out, 3);
        pair.run(at(600_000), 3);
        pair.run(at(700_000), 0);
        assert_eq!(pair.ports[0].operational().pfc, set(0x20), "seed {seed}");
    }
}

#[test]
fn in_the_older_form_one_feature_may_change_after_another() {
    let mut pair = Pair::new(6, [cee(true, 0x10), cee(false, 0x08)]);
    pair.settle(6);
    // The willing port's PFC has a later number than its groups from here on.
    let mut own = cee(true, 0x10);
    own.cee.pfc.desired.enabled = set(0x40);
    let mut out = vec![];
    pair.ports[0].configure(pair.now, own, &mut out);
    pair.carry(0, out, 0);
    let mut config = cee(false, 0x08);
    for (step, bits) in [0x20, 0x21, 0x22].into_iter().enumerate() {
        match step {
            0 => config.cee.pfc.desired.enabled = set(bits),
            1 => config.cee.groups.desired.percent = [bits, 100 - bits, 0, 0, 0, 0, 0, 0],
            _ => config.cee.pfc.desired.enabled = set(bits),
        }
        let mut out = vec![];
        pair.ports[1].configure(pair.now, config.clone(), &mut out);
        pair.carry(1, out, 0);
        pair.run(pair.now + Span::from_secs(60), 0);
        let operational = pair.ports[0].operational();
        let followed = if step == 1 { operational.ets.percent[0] } else { operational.pfc.bits() };
        assert_eq!(followed, bits, "step {step}");
    }
}

#[test]
fn in_the_older_form_two_of_a_kind_must_want_the_same() {
    for willing in [false, true] {
        let mut pair = Pair::new(1, [cee(willing, 0x10), cee(willing, 0x08)]);
        pair.settle(1);
        for port in &pair.ports {
            assert_eq!(port.operational().pfc, PrioritySet::EMPTY);
            assert_eq!(port.notes(), [3, 4].map(DcbxNote::FeatureError));
            assert!(port.cee().groups().mode, "any two groups fit");
        }
        let mut same = Pair::new(2, [cee(willing, 0x10), cee(willing, 0x10)]);
        same.settle(2);
        assert!(same.ports.iter().all(|port| port.operational().pfc == set(0x10)));
        let strict = |bits| {
            let mut config = cee(willing, bits);
            config.cee.groups_must_match = true;
            config
        };
        let mut pair = Pair::new(3, [strict(0x10), strict(0x08)]);
        pair.settle(3);
        assert!(pair.ports.iter().all(|port| port.cee().groups().error));
    }
}

#[test]
fn in_the_older_form_a_feature_is_off_when_one_end_does_without() {
    let mut off = cee(false, 0x08);
    off.cee.pfc.enabled = false;
    off.cee.applications.advertised = false;
    let mut pair = Pair::new(4, [cee(true, 0x10), off]);
    pair.settle(4);
    let [a, b] = &pair.ports;
    assert_eq!(
        (a.operational().pfc, b.operational().pfc),
        (PrioritySet::EMPTY, PrioritySet::EMPTY)
    );
    assert!(!a.cee().pfc().error && !b.cee().pfc().error, "that is no error");
    assert!(a.cee().applications().error, "but to say nothing is");
    assert!(b.cee().applications().mode, "who does not speak of it does what it is set to");
}

#[test]
fn in_the_older_form_a_lost_peer_is_an_error_and_a_new_one_is_welcome() {
    let mut pair = Pair::new(5, [cee(true, 0x10), cee(false, 0x08)]);
    pair.settle(5);
    let mut out = vec![];
    pair.ports[1].shut_down(pair.now, &mut out);
    pair.carry(1, out, 0);
    let port = &pair.ports[0];
    assert!(port.cee().pfc().error && !port.cee().pfc().mode);
    assert_eq!(port.cee().pfc().config.enabled, set(0x10));
    let mut out = vec![];
    pair.ports[1].link(pair.now, true, &mut out);
    pair.carry(1, out, 0);
    pair.run(at(500_000), 0);
    assert!(pair.ports.iter().all(|port| port.operational().pfc == set(0x08)));
    assert!(pair.ports.iter().all(|port| port.notes().is_empty()));
}

proptest! {
    /// Whatever neighbours say, in either form: the table keeps its bound, what is in force can be
    /// done, and the port neither sleeps over what is due nor wakes for nothing.
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
