//! Several hosts behind one port, connected by a plain bridge, with routes of their own.

use crate::common::{self, BOOT, Builder, line, mac, start_steady, states, unreached};
use axon_fabric::model::{BySource, End, Policy, RouterKind};
use axon_node::{Dataplane, Done, HostPair, PolicyChange, Request, Subject};
use axon_sim::apps::{Plan, RawPlan};
use axon_sim::links::WireEnd;
use axon_sim::{DataplaneKind, Setup, World};
use axon_wire::{MacAddr, PortNo, Span};
use std::collections::BTreeSet;

/// The EtherType of the frames that hosts send (IEEE 802, local experimental).
const MARK: [u8; 2] = [0x88, 0xb5];
/// All data planes.
const PLANES: [DataplaneKind; 4] = [
    DataplaneKind::Software,
    DataplaneKind::Reference,
    DataplaneKind::Refusing,
    DataplaneKind::Pipeline,
];

/// Two switches with two hosts each. Hosts 0 and 2 are red, 1 and 3 blue.
fn two_tenants() -> Builder {
    let mut builder = line(2, 2, true);
    let mut policy = Policy::default();
    let tenants = ["red", "blue"].map(|name| policy.add_tenant(name));
    (0..4).for_each(|host| policy.put(Subject::Mac(mac(host)), tenants[host % 2]));
    builder.fabric.policy = policy;
    builder.fabric.by_source = BySource::Policy;
    builder
}

fn at(builder: &Builder, host: usize) -> End {
    let host = &builder.fabric.hosts[host];
    End { switch: host.switch, port: host.port }
}

/// The fabric, with these hosts behind a bridge at the port of the first.
fn boot(builder: &Builder, dataplane: DataplaneKind, behind: &[usize]) -> World {
    let mut world = World::begin(&builder.fabric, Setup { seed: 1, dataplane, ..Setup::default() });
    world.nodes_mut().put_behind(behind, at(builder, behind[0]), false);
    world.set_host_retry(Span::from_millis(200));
    assert!(world.run_until_true(BOOT, World::all_have_addresses), "{}", states(&world));
    world.run_for(Span::from_millis(500));
    common::assert_on(&world, dataplane);
    world
}

/// Sources with routes in the data plane of the first switch at the port of host 0; routes for all
/// hosts there have no source.
fn sources(world: &World, builder: &Builder) -> BTreeSet<Option<MacAddr>> {
    let End { switch, port } = at(builder, 0);
    let ports = world.switch(switch).unwrap().plane().snapshot().ports;
    ports[port.index()].routes.iter().map(|(key, _)| key.source).collect()
}

fn change(world: &mut World, change: PolicyChange) {
    let station = world.layout().controller_station();
    let done = world.engine_mut().command(station, Request::Policy(change));
    assert!(matches!(done, Some(Ok(Done::Policy(_)))), "{done:?}");
}

#[test]
fn each_of_two_tenants_behind_one_port_reaches_its_own_over_every_data_plane() {
    for dataplane in PLANES {
        let builder = two_tenants();
        let mut world = boot(&builder, dataplane, &[0, 1]);
        let (own, others) = ([(0, 2), (2, 0), (1, 3), (3, 1)], [(0, 3), (3, 0), (1, 2), (2, 1)]);
        assert_eq!(unreached(&mut world, &own, 20), [], "{dataplane}");
        assert_eq!(unreached(&mut world, &others, 5), others, "{dataplane}");
        common::take_all(&mut world);
        let both = [0, 1].map(|host| Some(mac(host)));
        assert_eq!(sources(&world, &builder), BTreeSet::from(both), "{dataplane}");
        common::assert_sound(&world);
    }
}

#[test]
fn a_frame_to_a_mac_that_its_neighbour_reaches_comes_to_nobody() {
    for dataplane in PLANES {
        let mut world = boot(&two_tenants(), dataplane, &[0, 1]);
        assert_eq!(unreached(&mut world, &[(0, 2), (1, 3)], 20), []);
        for host in 0..4 {
            let station = world.layout().host_station(host);
            world.engine_mut().capture(WireEnd { station, port: PortNo(0) });
        }
        let to = |to: usize, from: usize| {
            let mut frame = [&mac(to).0[..], &mac(from).0, &MARK].concat();
            frame.resize(60, 0);
            frame
        };
        for (host, frames) in [(0, vec![to(3, 0), to(2, 0)]), (1, vec![to(2, 1), to(3, 1)])] {
            let plan = RawPlan { frames, interval: Span::from_millis(1), count: Some(100) };
            world.with_host(host, |node, now| node.start(Plan::Raw(plan), now)).unwrap();
        }
        world.run_for(Span::from_secs(1));
        let first = world.layout().host_station(0);
        let mut came = [[0; 4]; 4];
        for one in world.engine_mut().take_captured() {
            let source = MacAddr::source_of(&one.frame).filter(|_| !one.outbound);
            // Requests that switches send for a host are not frames of the host.
            let from = (0..4).find(|&from| source == Some(mac(from)) && one.frame[12..14] == MARK);
            if let Some(from) = from {
                came[one.station - first][from] += 1;
            }
        }
        assert_eq!((came[2], came[3]), ([50, 0, 0, 0], [0, 50, 0, 0]), "{dataplane}");
    }
}

#[test]
fn a_pair_that_is_revoked_stops_and_its_neighbour_loses_nothing() {
    for dataplane in [DataplaneKind::Software, DataplaneKind::Pipeline] {
        let mut world = boot(&two_tenants(), dataplane, &[0, 1]);
        assert_eq!(unreached(&mut world, &[(0, 2), (1, 3)], 20), []);
        let steady = [(0, 2), (1, 3)]
            .map(|(from, to)| start_steady(&mut world, from, to, Span::from_secs(2)));
        world.run_for(Span::from_millis(500));
        change(&mut world, PolicyChange::Pair(HostPair::of(mac(1), mac(3)), false));
        world.run_for(Span::from_millis(100));
        let stopped = world.ping_stats(steady[1]).unwrap().received;
        world.run_for(Span::from_secs(2));
        let [kept, revoked] = steady.map(|ping| world.ping_stats(ping).unwrap());
        assert_eq!((kept.sent, kept.received), (2_000, 2_000), "{dataplane}");
        assert!(revoked.received >= 400 && revoked.received == stopped, "{revoked:?}");
    }
}

#[test]
fn a_port_that_becomes_one_of_two_tenants_costs_its_first_host_no_frame() {
    for dataplane in [DataplaneKind::Software, DataplaneKind::Pipeline] {
        let builder = two_tenants();
        let mut world = World::begin(&builder.fabric, Setup { dataplane, ..Setup::default() });
        world.nodes_mut().put_behind(&[0, 1], at(&builder, 0), false);
        let cable = world.layout().access_link(1);
        let ends = world.engine().links()[cable.0].ends;
        world.engine_mut().disconnect(cable);
        world.run_until(BOOT);
        assert_eq!(unreached(&mut world, &[(0, 2)], 20), []);
        assert_eq!(sources(&world, &builder), BTreeSet::from([None]), "it is alone");
        let steady = start_steady(&mut world, 0, 2, Span::from_secs(2));
        world.run_for(Span::from_millis(500));
        world.engine_mut().reconnect(cable, ends[0], ends[1]);
        assert_eq!(unreached(&mut world, &[(1, 3)], 20), [], "{dataplane}");
        world.run_for(Span::from_secs(2));
        let kept = world.ping_stats(steady).unwrap();
        assert_eq!((kept.sent, kept.received), (2_000, 2_000), "{dataplane}");
        let both = [0, 1].map(|host| Some(mac(host)));
        assert_eq!(sources(&world, &builder), BTreeSet::from(both), "{dataplane}");
    }
}

#[test]
fn without_trust_in_sources_two_tenants_behind_one_port_reach_nobody() {
    let mut builder = two_tenants();
    builder.fabric.by_source = BySource::Never;
    let mut world = boot(&builder, DataplaneKind::Software, &[0, 1]);
    let pairs = [(0, 2), (2, 0), (1, 3), (3, 1)];
    assert_eq!(unreached(&mut world, &pairs, 5), pairs);
}

#[test]
fn hosts_behind_one_port_take_different_paths_and_a_failure_moves_each() {
    for dataplane in PLANES {
        let mut builder = Builder::new(2);
        let links: Vec<usize> = (0..4).map(|_| builder.link(0, 1)).collect();
        let hosts: Vec<usize> =
            (0..5).map(|host| builder.host(usize::from(host == 4), true)).collect();
        builder.fabric.by_source = BySource::Always;
        builder.fabric.controller.router = RouterKind::Ecmp;
        let mut world = boot(&builder, dataplane, &hosts[..4]);
        let pairs: Vec<(usize, usize)> = (0..4).flat_map(|host| [(host, 4), (4, host)]).collect();
        assert_eq!(unreached(&mut world, &pairs, 20), [], "{dataplane}");
        common::take_all(&mut world);
        let firsts = |world: &World| -> BTreeSet<PortNo> {
            let End { switch, port } = at(&builder, 0);
            let ports = world.switch(switch).unwrap().plane().snapshot().ports;
            let routes = ports[port.index()].routes.iter();
            let to_last = routes.filter(|(key, _)| key.destination == mac(4));
            to_last.map(|(_, route)| route.hops[0]).collect()
        };
        let before = firsts(&world);
        assert!(before.len() > 1, "{dataplane}: {before:?}");
        // All links but one that is in use fail.
        let kept =
            links.iter().position(|&link| before.contains(&builder.fabric.links[link].a.port));
        for &link in links.iter().filter(|&&link| Some(link) != kept) {
            world.inject(axon_fabric::model::FaultKind::LinkDown(link));
        }
        world.run_for(Span::from_secs(1));
        assert_eq!(unreached(&mut world, &pairs, 20), [], "{dataplane}");
        common::take_all(&mut world);
        assert_eq!(firsts(&world).len(), 1, "{dataplane}");
        common::assert_sound(&world);
    }
}
