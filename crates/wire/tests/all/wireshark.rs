//! Our frames as decoded by Wireshark's dissectors: those of Data Center Bridging below, Axon's own
//! in `dissector`. Module `tshark` describes the behaviour without tshark.

mod dissector;

use crate::tshark::dissect;
use axon_wire::cn::{CnTag, Cnm, CnmFormat, CnmFrame, Tagged};
use axon_wire::dcbx::cee::{
    APPLICATION_OUI, Cee, CeeApplication, CeePfc, Control, Feature, FeatureHead, GROUP_STRICT,
    Groups,
};
use axon_wire::dcbx::ieee::{
    self, Application, CongestionNotification, Ets, EtsConfiguration, EtsRecommendation,
    PfcConfiguration, Selector, Tsa,
};
use axon_wire::lldp::{self, Id, LldpFrame, Lldpdu, Tlv, kind};
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::vlan::{TagKind, VlanTag};
use axon_wire::{MacAddr, Priority, PrioritySet, TrafficClass};

const PORT: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const CHASSIS: MacAddr = MacAddr([4, 0, 0, 0, 0, 1]);

fn ets() -> Ets {
    Ets {
        class_of: TrafficClass::ALL,
        percent: [10, 20, 30, 40, 0, 0, 0, 0],
        tsa: [2, 2, 2, 2, 0, 1, 255, 0].map(Tsa),
    }
}

fn applications() -> Tlv {
    let entry = |priority: usize, selector, protocol| Application {
        priority: Priority::ALL[priority],
        selector,
        protocol,
    };
    ieee::emit_applications(&[
        entry(3, Selector::ETHERTYPE, 0x8906),
        entry(4, Selector::STREAM_PORT, 3260),
        entry(5, Selector::DATAGRAM_PORT, 4791),
        entry(2, Selector::PORT, 860),
        entry(6, Selector::DSCP, 48),
    ])
}

fn cee() -> Tlv {
    let head = FeatureHead { enabled: true, willing: true, ..FeatureHead::default() };
    let groups = Groups {
        group_of: [0, 0, 1, 1, 2, 2, 3, GROUP_STRICT],
        percent: [25, 25, 50, 0, 0, 0, 0, 0],
        classes_max: 8,
    };
    let pfc = CeePfc { enabled: PrioritySet::from_bits(8), classes_max: 8 };
    let entry =
        CeeApplication { protocol: 0x8906, oui: APPLICATION_OUI, selector: 0, priorities: 8 };
    let features = vec![
        Feature::Groups(head, groups),
        Feature::Pfc(head, pfc),
        Feature::Application(head, vec![entry]),
    ];
    let control = Control { sequence: 5, acknowledged: 4, ..Control::default() };
    Cee { control, features }.emit().unwrap()
}

fn lldp(optional: Vec<Tlv>) -> Vec<u8> {
    let lldpdu = Lldpdu {
        chassis: Id::chassis_of_mac(CHASSIS),
        port: Id::port_of_mac(PORT),
        ttl_secs: 121,
        optional,
    };
    LldpFrame { destination: lldp::NEAREST_BRIDGE, source: PORT, lldpdu }.emit().unwrap()
}

fn text(kind: u8, text: &str) -> Tlv {
    Tlv { kind, value: text.as_bytes().to_vec() }
}

#[test]
fn mac_control_is_read_as_it_was_meant() {
    let mut pfc = Pfc::of(PrioritySet::from_bits(0x88), Quanta::MAX);
    pfc.set(Priority::ALL[0], Quanta::ZERO);
    let frames = [MacControl::Pause(Quanta(77)), MacControl::Pfc(pfc)]
        .map(|control| control.emit(PORT).to_vec());
    let fields = [
        "eth.dst",
        "macc.opcode",
        "macc.pause_time",
        "macc.cbfc.enbv",
        "macc.cbfc.pause_time.c0",
        "macc.cbfc.pause_time.c3",
        "macc.cbfc.pause_time.c6",
        "macc.cbfc.pause_time.c7",
        "_ws.expert",
        "_ws.malformed",
    ];
    let Some(lines) = dissect("mac-control", &frames, &fields) else { return };
    assert_eq!(lines[0], "01:80:c2:00:00:01|0x0001|77|||||||");
    assert_eq!(lines[1], "01:80:c2:00:00:01|0x0101||0x0089|0|65535|0|65535||");
}

#[test]
fn lldp_with_dcbx_is_read_as_it_was_meant() {
    let configuration =
        EtsConfiguration { willing: true, credit_based: true, classes_max: 3, ets: ets() };
    let pfc = PfcConfiguration {
        willing: true,
        macsec_bypass: true,
        classes_max: 8,
        enabled: PrioritySet::from_bits(9),
    };
    let cn = CongestionNotification {
        values: PrioritySet::from_bits(0x20),
        ready: PrioritySet::from_bits(0x20),
    };
    let frame = lldp(vec![
        text(kind::PORT_DESCRIPTION, "s1-p0"),
        text(kind::SYSTEM_NAME, "s1"),
        configuration.emit(),
        EtsRecommendation(ets()).emit(),
        pfc.emit(),
        applications(),
        cn.emit(),
    ]);
    let fields = [
        "lldp.chassis.id.mac",
        "lldp.port.id.mac",
        "lldp.time_to_live",
        "lldp.ieee.802_1.subtype",
        "lldp.dcbx.ieee.willing",
        "lldp.dcbx.ieee.ets.cbs",
        "lldp.dcbx.ieee.ets.maxtcs",
        "lldp.dcbx.ieee.ets.tsa6",
        "lldp.dcbx.feature.pg.per3",
        "lldp.dcbx.feature.pg.pgid_prio7",
        "lldp.dcbx.ieee.pfc.mbc",
        "lldp.dcbx.ieee.pfc.numtcs",
        "lldp.dcbx.feature.pfc.prio3",
        "lldp.dcbx.ieee.app.prio",
        "lldp.dcbx.feature.app.proto",
        "lldp.ieee.802_1qau.cnpv.prio5",
        "_ws.expert",
        "_ws.malformed",
    ];
    // A frame with the first three alone would fail: tshark 4.0 takes the end of its TTL for a
    // trailer and reports it, unless it is zero.
    let last = LldpFrame {
        destination: lldp::NEAREST_BRIDGE,
        source: PORT,
        lldpdu: Lldpdu::shutdown(Id::chassis_of_mac(CHASSIS), Id::port_of_mac(PORT)),
    };
    let last = last.emit().unwrap();
    let Some(lines) = dissect("lldp", &[frame, last], &fields) else { return };
    assert_eq!(
        lines[0],
        "04:00:00:00:00:01|02:00:00:00:00:01|121|0x09,0x0a,0x0b,0x0c,0x08|1,1|1|3|255,255|40,40|7,7\
         |1|8|1|3,4,5,2,6|0x8906,0x0cbc,0x12b7,0x035c,0x0030|1||"
    );
    assert_eq!(lines[1], format!("04:00:00:00:00:01|02:00:00:00:00:01|0{}", "|".repeat(15)));
}

#[test]
fn cee_is_read_as_it_was_meant() {
    let fields = [
        "lldp.dcbx.control.seq",
        "lldp.dcbx.control.ack",
        "lldp.dcbx.feature.enabled",
        "lldp.dcbx.feature.pg.pgid_prio7",
        "lldp.dcbx.feature.pg.per2",
        "lldp.dcbx.feature.pfc.prio3",
        "lldp.dcbx.feature.app.proto",
        "_ws.expert",
        "_ws.malformed",
    ];
    let Some(lines) = dissect("cee", &[lldp(vec![cee()])], &fields) else { return };
    assert_eq!(lines[0], "5|4|1,1,1|15|50|1|0x8906||");
}

#[test]
fn tags_and_congestion_notification_are_found_where_they_stand() {
    let vlan = VlanTag { kind: TagKind::Customer, pcp: Priority::ALL[3], dei: false, vid: 100 };
    let mut sampled = [CHASSIS.0, PORT.0].concat();
    sampled.extend_from_slice(&vlan.emit());
    sampled.extend_from_slice(&CnTag { flow: 0x1234 }.emit());
    sampled.extend_from_slice(&[0x88, 0xb5]);
    sampled.resize(80, 0);
    let tagged = Tagged::parse(&sampled).unwrap();
    let cnm = Cnm { feedback: 63, cpid: 1, offset: -100, delta: 20, ..Cnm::default() };
    let format = CnmFormat::default();
    let answer = CnmFrame::answer(&tagged, CHASSIS, Priority::ALL[6], cnm.clone(), 40, &format);
    let untagged = CnmFrame { vlan: None, cn: None, ..answer.clone() };
    let frames = [sampled, answer.emit(&format), untagged.emit(&format)];
    let fields = [
        "eth.dst",
        "eth.type",
        "vlan.priority",
        "vlan.id",
        "vlan.etype",
        "data.data",
        "_ws.expert",
        "_ws.malformed",
    ];
    let Some(lines) = dissect("cn", &frames, &fields) else { return };
    assert!(lines[0].starts_with("04:00:00:00:00:01|0x8100|3|100|0x22e9|1234"), "{}", lines[0]);
    assert!(
        lines[1].starts_with("02:00:00:00:00:01|0x8100|6|100|0x22e9|123422e7003f"),
        "{}",
        lines[1]
    );
    assert!(lines[2].starts_with("02:00:00:00:00:01|0x22e7||||003f"), "{}", lines[2]);
    assert!(lines.iter().all(|line| line.ends_with("||")), "{lines:?}");
}
