//! Tests of CEE on one port and between two ports.

use super::*;
use axon_wire::dcbx::cee::{CeeApplication, CeePfc, Groups};

fn feature<T>(willing: bool, desired: T) -> CeeFeature<T> {
    CeeFeature { advertised: true, enabled: true, willing, desired }
}

pub(super) fn cee(willing: bool, bits: u8) -> DcbxConfig {
    let group_of = [0, 0, 0, 1, 0, 0, 0, 15];
    let groups = Groups { group_of, percent: [bits, 100 - bits, 0, 0, 0, 0, 0, 0], classes_max: 8 };
    let entry = CeeApplication { protocol: 0x8906, oui: OUI_BEFORE, selector: 0, priorities: bits };
    let cee = CeeConfig {
        groups: feature(willing, groups),
        pfc: feature(willing, CeePfc { enabled: set(bits), classes_max: 8 }),
        applications: feature(willing, vec![entry]),
        groups_must_match: false,
    };
    let ets = crate::cee::ets_of(&groups).unwrap();
    let ieee = IeeeConfig { ets, ..IeeeConfig::default() };
    DcbxConfig { mode: Mode::Cee, cee, ieee, ..DcbxConfig::default() }
}

#[test]
fn an_older_form_is_recognised_and_spoken_if_the_port_may() {
    let cin = Tlv::of_organisation(OUI_BEFORE, 1, &[2, 10]);
    let mut port = up(ieee(|_| {}));
    let out = receive(&mut port, 9, vec![cin]);
    assert_eq!(out, [DcbEvent::Note(DcbxNote::Dialect(Dialect::Cin))]);
    let older = Cee::default().to_send().emit().unwrap();
    let out = receive(&mut port, 9, vec![older.clone()]);
    assert_eq!(out, [DcbEvent::Note(DcbxNote::Dialect(Dialect::Cee))]);
    port.configure(at(20), DcbxConfig { mode: Mode::Auto, ..ieee(|_| {}) }, &mut vec![]);
    assert_eq!((port.speaking(), port.notes()), (Dialect::Cee, &[][..]));
    port.link(at(30), false, &mut vec![]);
    assert_eq!(port.speaking(), Dialect::Ieee);
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
        // A changed configuration reaches the other end.
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
    // From here on the willing port's PFC has a later number than its groups.
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
fn in_the_older_form_a_port_without_its_only_peer_does_what_it_is_set_to() {
    let mut config = DcbxConfig { mode: Mode::Auto, ..cee(true, 0x10) };
    config.ieee.pfc = set(0x10);
    let mut peer = Cee::default();
    peer.update(&cee(false, 0x08).cee, None);
    let said = vec![peer.to_send().emit().unwrap()];
    let ends: [&dyn Fn(&mut DcbPort); 3] = [
        &|port| drop(receive(port, 8, said.clone())),
        &|port| port.receive(at(20), &frame(9, 0, vec![]), &mut vec![]),
        &|port| port.timeout(at(121_000), &mut vec![]),
    ];
    for end in ends {
        let mut port = up(config.clone());
        receive(&mut port, 9, said.clone());
        assert_eq!((port.speaking(), port.operational().pfc), (Dialect::Cee, set(0x08)));
        end(&mut port);
        assert_eq!((port.speaking(), port.operational().pfc), (Dialect::Cee, set(0x10)));
        assert_eq!(port.operational().pfc_from, Source::Local);
    }
    // A peer that has not yet acknowledged the port's first LLDPDU cannot switch anything off.
    let mut port = up(DcbxConfig { mode: Mode::Cee, ..config });
    assert_eq!(port.operational().pfc, set(0x10));
    receive(&mut port, 9, said);
    assert_eq!((port.operational().pfc, port.cee().pfc().mode), (set(0x10), false));
}

#[test]
fn in_the_older_form_a_lost_peer_is_an_error_and_a_new_one_is_welcome() {
    let mut pair = Pair::new(5, [cee(true, 0x10), cee(false, 0x08)]);
    pair.settle(5);
    // The peer withdraws all TLVs, and its carrier is lost.
    pair.ports[0].receive(pair.now, &frame(4, 0, vec![]), &mut vec![]);
    pair.ports[1].link(pair.now, false, &mut vec![]);
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
