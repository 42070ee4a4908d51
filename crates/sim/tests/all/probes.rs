//! Probes through whole worlds: exact times, with the clocks of real switches.

use crate::common::{BOOT, Builder, wire};
use axon_baselines::bridge::{BridgeNode, BridgeNodeConfig};
use axon_fabric::model::{Device, FaultKind};
use axon_node::CommandError;
use axon_node::probe::{PlanKind, ProbeId, ProbePlan, ProbeRefusal, ProbeReport, ProbeTimes};
use axon_sim::World;
use axon_sim::links::WireEnd;
use axon_sim::probe::{PathError, finish, links_of, plan_along, report, shortest_path};
use axon_sim::station::StationNode;
use axon_wire::probe::{ProbeOptions, RECORD_BYTES};
use axon_wire::{Bytes, Hops, MacAddr, PortNo, Span, Time};

/// A line of switches, one link between neighbours; links of 1 Gb/s and 1 us.
fn line(switches: usize) -> World {
    line_of(switches, Device::ideal())
}

fn line_of(switches: usize, device: Device) -> World {
    let mut builder = Builder::new(switches);
    builder.fabric.device = device;
    for switch in 1..switches {
        builder.link(switch - 1, switch);
    }
    let mut world = World::new(&builder.fabric, 1);
    world.run_until(BOOT);
    world
}

fn probe(world: &mut World, plan: ProbePlan) -> ProbeReport {
    let id = world.nodes_mut().probe(0, plan).expect("s1 has power").expect("a good plan");
    let limit = world.now() + Span::from_secs(3);
    finish(world, 0, id, limit).expect("it is finished by then")
}

/// Nanoseconds on a wire of 1 Gb/s: preamble, bytes, FCS, and the cable.
fn hop_nanos(bytes: usize) -> u64 {
    8 * (8 + bytes as u64 + 4) + 1000
}

#[test]
fn a_probe_through_one_to_five_switches_measures_what_its_bytes_take() {
    for beyond in 1..=5 {
        let mut world = line(beyond + 1);
        for bytes in [60, 1514] {
            let path: Vec<usize> = (0..=beyond).collect();
            let plan = ProbePlan { bytes, ..plan_along(world.fabric(), &path).unwrap() };
            let report = probe(&mut world, plan);
            let times = report.returns[0].times().expect("every unit left its record");
            // A probe grows by one record at each unit, so each wire takes longer. The switches of
            // this world take no time and have empty queues.
            let wires = 2 * beyond;
            let length = |wire: usize| bytes + RECORD_BYTES * (2 * wire + 1);
            let total: u64 = (0..wires).map(|wire| hop_nanos(length(wire))).sum();
            assert_eq!(times.total, Span::from_nanos(total), "{bytes} bytes over {wires} wires");
            assert_eq!(times.passages.len(), wires - 1);
            for passage in &times.passages {
                assert_eq!((passage.residence, passage.queued), (Span::ZERO, Bytes(0)));
            }
            let links = times.round_trips().expect("out and back");
            for (near, &round_trip) in links.iter().enumerate() {
                let there = hop_nanos(length(near));
                let back = hop_nanos(length(wires - 1 - near));
                assert_eq!(round_trip, Span::from_nanos(there + back));
            }
        }
    }
}

#[test]
fn probe_units_stand_at_the_ports_of_the_device() {
    // Table 4.2 of the thesis: 65 cycles of 8 ns from port to port, for any size; the wire takes
    // its microsecond, because the first of those cycles begins with the first bit.
    let cable = 2 * 1000;
    for bytes in [60, 1514] {
        let mut world = line_of(4, Device::axon_netfpga());
        let plan = plan_along(world.fabric(), &[0, 1, 2, 3]).unwrap();
        let report = probe(&mut world, ProbePlan { bytes, ..plan });
        let times = report.returns[0].times().unwrap();
        assert!(times.passages.iter().all(|passage| passage.residence == Span::from_nanos(520)));
        assert_eq!(times.round_trips(), Some(vec![Span::from_nanos(cable); 3]));
        assert_eq!(times.total, Span::from_nanos(5 * 520 + 3 * cable));
    }
    // A switch that stores the frame before the look-up: 6068.2 ns, and 5.93 ns for each received
    // byte. The frame is received with its last bit, so its time on the wire counts for the link.
    let mut world = line_of(3, Device::store_and_forward());
    let plan = plan_along(world.fabric(), &[0, 1, 2]).unwrap();
    let report = probe(&mut world, ProbePlan { bytes: 1514, ..plan });
    let times = report.returns[0].times().unwrap();
    for (index, passage) in times.passages.iter().enumerate() {
        let bytes = (1514 + RECORD_BYTES * (2 * index + 1)) as u64;
        assert_eq!(passage.residence, Span::from_ticks(606_820 + 593 * bytes));
    }
}

#[test]
fn a_probe_that_waits_behind_another_records_for_how_long() {
    let mut world = line(3);
    // Away from heartbeats, which precede probes.
    world.run_for(Span::from_millis(3));
    // The second leaves s1 a microsecond later, and finds the wire busy.
    let plan = plan_along(world.fabric(), &[0, 1, 2]).unwrap();
    let plan = ProbePlan { bytes: 1514, count: 2, interval: Span::from_micros(1), ..plan };
    let report = probe(&mut world, plan);
    let [first, second] = &report.returns[..] else { panic!("both come back: {report:?}") };
    let (ahead, behind) = (first.times().unwrap(), second.times().unwrap());
    // The first is longer behind the first wire, so the second catches up with it.
    let inside = |times: &ProbeTimes| {
        times.passages.iter().fold(Span::ZERO, |sum, passage| sum + passage.residence)
    };
    assert!(inside(&behind) >= Span::from_nanos(3 * 8 * 32), "32 bytes at each of three switches");
    assert_eq!(ahead.round_trips(), behind.round_trips(), "waiting is not on the wires");
    assert_eq!(ahead.total + inside(&behind), behind.total + inside(&ahead));
    let apart = second.records[0].time.since(first.records[0].time);
    let gap = 8 * (8 + 1514 + 16 + 4 + 12);
    assert_eq!(apart, Span::from_nanos(gap), "one frame and the gap");
}

#[test]
fn an_ether_probe_measures_the_ethernet_outside() {
    let mut builder = Builder::new(1);
    let ports = [builder.free_port(0), builder.free_port(0), builder.free_port(0)];
    let mut world = World::new(&builder.fabric, 1);
    let engine = world.engine_mut();
    let bridge = engine.add_station("b1");
    for (index, port) in ports[..2].iter().enumerate() {
        let outside = WireEnd { station: bridge, port: PortNo(index as u16) };
        engine.connect(outside, WireEnd { station: 0, port: port.port }, wire());
    }
    let config = BridgeNodeConfig::new(MacAddr([2, 0, 0, 0, 9, 9]), vec![20_000; 2]);
    engine.power_on(bridge, StationNode::Other(Box::new(BridgeNode::new(config))));
    // A bridge listens and learns for half a minute before it forwards (802.1D clause 17.14).
    world.run_until(Time::from_nanos(40_000_000_000));
    let between = |from: usize, to: usize| {
        let kind = PlanKind::Ether { from: ports[from].port, to: ports[to].port };
        ProbePlan { bytes: 1000, count: 3, ..ProbePlan::new(kind) }
    };
    let report = probe(&mut world, between(0, 1));
    assert!(report.learned);
    assert_eq!((report.lost, report.returns.len()), (0, 3));
    for back in &report.returns {
        let times = back.times().expect("both units left their record");
        assert_eq!((times.out, times.back), (ports[0].port, ports[1].port));
        // The bridge itself takes no time; BPDUs of 60 bytes may be on its wires.
        let least = 2 * hop_nanos(1000 + RECORD_BYTES);
        let waited = times.total.as_nanos() - least;
        assert!(waited <= 8 * (8 + 60 + 4 + 12), "{waited} ns beyond {least}");
    }
    let refused = world.nodes_mut().probe(0, between(0, 2)).expect("s1 has power");
    assert_eq!(
        refused,
        Err(CommandError::Probe(ProbeRefusal::Port(ports[2].port))),
        "nothing is connected there"
    );
    // Without the bridge no probe returns, and the report has no measurement.
    let mut alone = World::new(&builder.fabric, 1);
    let engine = alone.engine_mut();
    for port in &ports[..2] {
        let station = engine.add_station("stub");
        let end = WireEnd { station, port: PortNo(0) };
        engine.connect(end, WireEnd { station: 0, port: port.port }, wire());
        let config = BridgeNodeConfig::new(MacAddr([2, 0, 0, 0, 9, 9]), vec![20_000]);
        engine.power_on(station, StationNode::Other(Box::new(BridgeNode::new(config))));
    }
    alone.run_until(BOOT);
    let report = probe(&mut alone, between(0, 1));
    assert_eq!((report.learned, report.sent, report.lost), (false, 0, 3));
    alone.engine().check_conservation().unwrap();
}

#[test]
fn many_probes_come_back_and_a_cut_link_loses_them() {
    let mut world = line(3);
    let plan = plan_along(world.fabric(), &[0, 1, 2]).unwrap();
    let many = ProbePlan { count: 100, interval: Span::from_micros(50), ..plan.clone() };
    let report = probe(&mut world, many);
    assert_eq!((report.sent, report.lost, report.returns.len()), (100, 0, 100));
    let numbers: Vec<u32> = report.returns.iter().map(|back| back.number).collect();
    assert!(numbers.iter().copied().eq(0..100), "in order");
    world.inject(FaultKind::LinkSilent(1));
    let lost = ProbePlan { count: 3, timeout: Span::from_millis(10), ..plan };
    let report = probe(&mut world, lost);
    assert_eq!((report.sent, report.lost, report.returns.len()), (3, 3, 0));
    world.engine().check_conservation().unwrap();
}

#[test]
fn options_choose_who_appends_what() {
    let mut world = line(2);
    let plan = plan_along(world.fabric(), &[0, 1]).unwrap();
    let with = |options| ProbePlan { options, ..plan.clone() };
    for (options, records) in [
        (ProbeOptions::default(), 0),
        (ProbeOptions::INGRESS, 2),
        (ProbeOptions::EGRESS, 2),
        (ProbeOptions::ALL, 4),
    ] {
        let report = probe(&mut world, with(options));
        assert_eq!(report.returns[0].records.len(), records);
        assert_eq!(report.returns[0].times().is_some(), records == 4);
    }
}

#[test]
fn a_plan_that_cannot_be_is_refused_with_the_reason() {
    let mut world = line(2);
    let good = plan_along(world.fabric(), &[0, 1]).unwrap();
    let circuit = |hops: &[u16]| {
        let hops: Hops = hops.iter().map(|&hop| PortNo(hop)).collect();
        ProbePlan::new(PlanKind::Circuit(hops))
    };
    let control = PortNo::CONTROL.0;
    let cases = [
        (circuit(&[1]), ProbeRefusal::NoCircuit),
        (circuit(&[]), ProbeRefusal::NoCircuit),
        (circuit(&[control]), ProbeRefusal::NoCircuit),
        (circuit(&[1, control, 1, control]), ProbeRefusal::NoCircuit),
        (circuit(&[1, 300, control]), ProbeRefusal::Unrepresentable),
        (ProbePlan { count: 0, ..good.clone() }, ProbeRefusal::Count(0)),
        (ProbePlan { count: 1001, ..good.clone() }, ProbeRefusal::Count(1001)),
        (ProbePlan { bytes: 59, ..good.clone() }, ProbeRefusal::TooShort { bytes: 59, min: 60 }),
        (
            ProbePlan { bytes: 9000, ..good.clone() },
            ProbeRefusal::TooLong { bytes: 9000, max: 1514 + 128 + 512 - 64 },
        ),
        (
            ProbePlan::new(PlanKind::Ether { from: PortNo(0), to: PortNo(1) }),
            ProbeRefusal::Port(PortNo(0)),
        ),
    ];
    for (plan, expected) in cases {
        let expected = Some(Err(CommandError::Probe(expected)));
        assert_eq!(world.nodes_mut().probe(0, plan.clone()), expected, "{plan:?}");
    }
    assert_eq!(world.nodes_mut().probe(0, good), Some(Ok(ProbeId(1))));
}

#[test]
fn paths_are_found_and_refused_by_name() {
    let mut builder = Builder::new(4);
    for (a, b) in [(0, 1), (1, 2), (0, 2)] {
        builder.link(a, b);
    }
    let fabric = &builder.fabric;
    assert_eq!(shortest_path(fabric, 0, 2), Ok(vec![0, 2]));
    assert_eq!(shortest_path(fabric, 1, 1), Ok(vec![1]));
    assert_eq!(shortest_path(fabric, 0, 3), Err(PathError::Apart("s1".into(), "s4".into())));
    assert_eq!(links_of(fabric, &[0]), Err(PathError::TooShort));
    let error = links_of(fabric, &[0, 1, 3]).unwrap_err().to_string();
    assert_eq!(error, "s2 has no link to s4; it has links to s1 s3");
    let error = links_of(fabric, &[3, 1]).unwrap_err().to_string();
    assert_eq!(error, "s4 has no link to s2; it has links to nowhere");
}

#[test]
fn a_switch_forgets_old_plans_but_not_unfinished_ones() {
    let mut world = line(2);
    let plan = plan_along(world.fabric(), &[0, 1]).unwrap();
    let slow = ProbePlan { count: 2, interval: Span::from_secs(900), ..plan.clone() };
    let kept = world.nodes_mut().probe(0, slow).unwrap().unwrap();
    for _ in 0..40 {
        probe(&mut world, plan.clone());
    }
    assert_eq!(report(&world, 0, kept).map(|report| report.returns.len()), Some(1));
    let ids: Vec<u64> = world.switch(0).unwrap().probes().map(|report| report.id.0).collect();
    assert_eq!(ids.len(), 16);
    assert_eq!((ids[0], ids[15]), (kept.0, 41));
    assert!(world.now() > Time::ZERO);
}
