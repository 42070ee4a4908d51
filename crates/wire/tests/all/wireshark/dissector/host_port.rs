//! Frames at a host port: plain Ethernet. Frames of other programs that use our EtherTypes are not
//! decoded.

use super::axon_port::{arp, envelope, probe};
use super::*;
use crate::wireshark::{cee, lldp};
use axon_wire::cn::{CnTag, Cnm, CnmFormat, CnmFrame};
use axon_wire::constants::{address, ethertype};
use axon_wire::dcbx::ieee::PfcConfiguration;
use axon_wire::lldp::kind;
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::probe::{self as probes, ProbeHead, ProbeOptions};
use axon_wire::vlan::VlanTag;
use axon_wire::{NodeId, PrioritySet};

fn ethernet_fields(destination: MacAddr, ethertype: u16) -> Fields {
    vec![("eth.dst", destination.to_string()), ("eth.type", format!("{ethertype:#06x}"))]
}

/// Frames between the two ends of a link, on any port: MAC control, LLDP with DCBX, discovery.
pub fn link_local() -> Vec<Case> {
    let mac_control = |name, control: MacControl, more: Fields| {
        let fields = ethernet_fields(address::MAC_CONTROL, ethertype::MAC_CONTROL);
        good(name, control.emit(HOST).to_vec(), [fields, more].concat())
    };
    let pause = vec![("macc.opcode", "0x0001".into()), ("macc.pause_time", "77".into())];
    let pfc = vec![("macc.opcode", "0x0101".into()), ("macc.cbfc.enbv", "0x0088".into())];
    let classes = Pfc::of(PrioritySet::from_bits(0x88), Quanta::MAX);
    let of_lldp = |name, tlvs, more: Fields| {
        let fields = ethernet_fields(address::NEAREST_BRIDGE, ethertype::LLDP);
        let chassis = vec![("lldp.chassis.id.mac", crate::wireshark::CHASSIS.to_string())];
        good(name, lldp(tlvs), [fields, chassis, more].concat())
    };
    let ieee = PfcConfiguration {
        willing: true,
        macsec_bypass: false,
        classes_max: 8,
        enabled: PrioritySet::from_bits(8),
    };
    let (sealed, fields) = envelope(b"opaque");
    let link = ethernet_fields(address::NEAREST_BRIDGE, ethertype::LINK);
    // Longer than the Ethernet minimum: tshark 4.0 takes the end of the TTL of a padded frame for a
    // trailer and reports it.
    let long =
        crate::wireshark::text(kind::SYSTEM_DESCRIPTION, "a switch of an Axon fabric in a test");
    vec![
        mac_control("PAUSE", MacControl::Pause(Quanta(77)), pause),
        mac_control("PFC", MacControl::Pfc(classes), pfc),
        of_lldp("LLDP", vec![long.clone()], vec![]),
        of_lldp("DCBX", vec![long, ieee.emit()], vec![("lldp.dcbx.ieee.pfc.numtcs", "8".into())]),
        of_lldp("DCBX, CEE", vec![cee()], vec![("lldp.dcbx.control.seq", "5".into())]),
        good("link frame", axon_wire::link::emit(HOST, &sealed), [link, fields].concat()),
    ]
}

/// An ether probe from port 1 to port 2 of a switch, and its fields.
pub fn ether_probe() -> (Vec<u8>, Fields) {
    let [from, to] = [1, 2].map(|port| probes::ether_address(HOST, PortNo(port)));
    let head =
        ProbeHead { options: ProbeOptions::ALL, body_bytes: 46, sequence: 1, origin: NodeId(7) };
    let mut frame = head.emit_ether(to, from);
    // The head and the records of the packet's probe, in this frame.
    let (bytes, fields) = probe(46);
    frame.truncate(14);
    frame.extend_from_slice(&bytes);
    (frame, [ethernet_fields(to, ethertype::PROBE), fields].concat())
}

#[test]
fn frames_of_the_link_and_ether_probes_are_read_on_host_ports() {
    let mut cases = link_local();
    let (frame, fields) = ether_probe();
    cases.push(good("ether probe", frame, fields));
    let (frame, fields) = arp();
    cases.push(good("ARP", frame, fields));
    check("host-port", crate::tshark::ETHERNET, &cases);
}

#[test]
fn congestion_notification_is_read_behind_its_tags() {
    let vlan = VlanTag::of_priority(Priority::ALL[3]);
    let cnm = Cnm { feedback: 63, cpid: 1, offset: -100, delta: 20, ..Cnm::default() };
    let frame = CnmFrame {
        destination: HOST,
        source: OTHER,
        vlan: Some(vlan),
        cn: Some(CnTag { flow: 0x1234 }),
        cnm,
    };
    let bytes = frame.emit(&CnmFormat::default());
    // tshark decodes neither CN-TAG nor CNM: their bytes are data.
    let fields = |data: &[u8]| {
        vec![
            ("eth.dst", HOST.to_string()),
            ("eth.type", "0x8100".into()),
            ("vlan.priority", "3".into()),
            ("data.data", hex(data)),
        ]
    };
    let cases = [good("CNM", bytes.clone(), fields(&bytes[18..]))];
    check("cnm", crate::tshark::ETHERNET, &cases);
}

#[test]
fn frames_of_others_with_our_ethertypes_are_left_alone() {
    let (sealed, _) = envelope(b"opaque");
    let mut cases = Vec::new();
    for kind in [ethertype::LINK, ethertype::PROBE] {
        for payload in [&sealed[..], b"axcf", &[0; 46], &[0xff; 46]] {
            let frame = ethernet(OTHER, kind, payload);
            let mut fields = ethernet_fields(OTHER, kind);
            fields.push(("data.data", hex(&frame[14..])));
            cases.push(good(format!("{kind:#06x} {}", hex(payload)), frame, fields));
        }
    }
    check("others", crate::tshark::ETHERNET, &cases);
}
