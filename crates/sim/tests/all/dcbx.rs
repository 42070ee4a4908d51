//! Switches of a fabric with DCBX: they agree before traffic starts, traffic follows the agreement,
//! and a fabric without `dcbx` sends none.

use crate::common;
use axon_node::{Note, PortView};
use axon_sim::capture::port_by_name;
use axon_sim::{Setup, World};
use axon_wire::lldp::{self, Lldpdu};
use axon_wire::{PortNo, PrioritySet, Span, Time};

/// Two hosts at s1 and s2 send as fast as they can to one at s3; s2 has no PFC of its own.
const FABRIC: &str = "
name: dcbx
topology: { line: { switches: 3, hosts_per_switch: 1 } }
links: { rate: 10Gbps, latency: 500ns }
dcb:
  classes:
  - { priorities: [0, 1, 2, 5, 6], ets: 40 }
  - { priorities: [3, 4], ets: 60, lossless: true }
  - { priorities: [7] }
  dcbx:
    overrides:
    - { switches: [s2], willing: WILLING, pfc: [] }
traffic:
- { udp: { rate: 9Gbps, count: 5000 }, from: h1, to: h3, priority: 3 }
- { udp: { rate: 9Gbps, count: 5000 }, from: h2, to: h3, priority: 3 }
";

fn started(willing: &str) -> World {
    let text = FABRIC.replace("WILLING", willing);
    let fabric = common::fabric(&text);
    let mut world = World::new(&fabric, 1);
    common::await_addresses(&mut world);
    world.run_for(Span::from_secs(5));
    world
}

/// Frames of each sender that were lost.
fn lost(world: &mut World) -> Vec<u64> {
    world.start_traffic();
    world.run_for(Span::from_millis(200));
    world.engine().check_conservation().unwrap();
    world.flows().report().iter().map(|flow| flow.lost_packets.unwrap_or(0)).collect()
}

#[test]
fn what_a_willing_switch_takes_over_keeps_its_neighbours_traffic() {
    let mut world = started("both");
    let both = PrioritySet::from_bits(0x18);
    let links: Vec<PortNo> = world
        .fabric()
        .links
        .iter()
        .flat_map(|link| [link.a, link.b])
        .filter(|end| end.switch == 1)
        .map(|end| end.port)
        .collect();
    assert_eq!(links.len(), 2);
    let switch = world.switch(1).unwrap();
    for port in (0..switch.plane().count()).map(PortNo) {
        // Hosts in the simulator do not send DCBX: their ports use the settings of the file.
        let expected = if links.contains(&port) { both } else { PrioritySet::EMPTY };
        assert_eq!(switch.plane().ports().unwrap().dcb().unwrap().pfc(port), expected, "{port:?}");
    }
    let note = |port| Note::PfcInForce { port, pfc: both };
    let noted = |port| world.engine().notes().iter().filter(|one| one.2 == note(port)).count();
    assert_eq!(links.iter().map(|&port| noted(port)).collect::<Vec<_>>(), [1, 1]);
    let [with, without] = [&mut world, &mut started("none")].map(lost);
    assert_eq!(with[0], 0, "s1 stops when s2 says so, and h1 when s1 does");
    assert!(with[1] > 0, "h2 has not agreed on anything with s2");
    assert!(without[0] > 0 && without[1] > 0, "{without:?}");
}

#[test]
fn hosts_receive_their_own_switch_and_no_other_and_nobody_without_dcbx() {
    let heard = |text: &str| {
        let fabric = common::fabric(text);
        let ports = ["h1-p0", "h3-p0"].map(|name| port_by_name(&fabric, name).unwrap());
        let mut world =
            World::begin(&fabric, Setup { seed: 1, capture: ports.into(), ..Setup::default() });
        world.run_until(Time::ZERO + Span::from_secs(40));
        let captured = world.engine_mut().take_captured();
        ports.map(|port| {
            let here = captured.iter().filter(|one| one.station == port.station);
            let names = here.filter(|one| lldp::is_lldp(&one.frame)).map(|one| {
                let said = Lldpdu::parse_frame(&one.frame).unwrap().lldpdu;
                String::from_utf8(said.port.name).unwrap()
            });
            names.collect::<Vec<_>>()
        })
    };
    let spoken = heard(&FABRIC.replace("WILLING", "both"));
    for (names, switch) in spoken.iter().zip(["s1-p", "s3-p"]) {
        assert_eq!(names.len(), 2, "when the carrier comes, and half a minute later");
        assert!(names.iter().all(|name| name.starts_with(switch)), "{names:?}");
    }
    let from = FABRIC.find("  dcbx:").unwrap();
    let silent = format!("{}{}", &FABRIC[..from], &FABRIC[FABRIC.find("traffic:").unwrap()..]);
    assert_eq!(heard(&silent), [vec![], vec![]] as [Vec<String>; 2]);
}
