//! Compares the edge in the exact-match table with the route tables of the plane.

use axon_node::{RouteError, RouteKey};
use axon_pipeline::{MacKey, Modify, Sizes, TableName, Target};
use axon_plane::{Lookups, PlaneConfig, RouteTables};
use axon_programs::axon::AxonTables;
use axon_wire::vlan::VlanId;
use axon_wire::{HopWidth, Layer, MacAddr, PortNo, Route};
use oorandom::Rand64;

fn config(width: HopWidth, routes_per_port_max: usize) -> PlaneConfig {
    let defaults = PlaneConfig::with_ports(3, MacAddr([2; 6]));
    PlaneConfig { hop_width: width, routes_per_port_max, ..defaults }
}

fn mac(last: u64) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last as u8])
}

/// Key of frames to this host that are not in a VLAN.
fn key(last: u64) -> RouteKey {
    mac(last).into()
}

/// Builds a frame from one host to another.
fn frame_between(source: MacAddr, destination: MacAddr) -> Vec<u8> {
    [&destination.0[..], &source.0, &[8, 0], &[0; 46]].concat()
}

fn route(random: &mut Rand64) -> Route {
    let count = random.rand_range(0..20);
    let hop = |random: &mut Rand64| match random.rand_range(0..12) {
        0 => PortNo::CONTROL,
        1 => PortNo(random.rand_range(0..300) as u16),
        _ => PortNo(random.rand_range(0..10) as u16),
    };
    let hops: Vec<PortNo> = (0..count).map(|_| hop(random)).collect();
    let layer = Layer::new(random.rand_range(0..8) as u8).expect("below eight");
    Route { layer, ..hops.into_iter().collect() }
}

/// Asserts that both give the same results for all queries.
fn assert_same(pipeline: &AxonTables, plane: &RouteTables, context: &str) {
    for port in (0..4).map(PortNo) {
        assert_eq!(pipeline.len(port), plane.len(port), "{context}");
        assert_eq!(pipeline.routes(port), plane.routes(port), "{context}");
    }
}

#[test]
fn whatever_is_installed_removed_and_looked_up_both_hold_the_same_routes() {
    for (seed, width) in (0..).zip([HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen]) {
        let mut random = Rand64::new(seed);
        let config = config(width, 4);
        let (mut pipeline, mut plane) =
            (AxonTables::with_config(&config), RouteTables::with_config(&config));
        for number in 0..4000 {
            let port = PortNo(random.rand_range(0..4) as u16);
            // One MAC in several VLANs counts as one destination in each.
            let vlan = VlanId::new(random.rand_range(0..3) as u16).expect("a VLAN");
            let destination = mac(random.rand_range(0..3));
            let source = mac(10 + random.rand_range(0..3));
            let any = RouteKey { vlan, ..destination.into() };
            let key = any.from_source(Some(source).filter(|_| random.rand_range(0..2) == 0));
            let context = format!("seed {seed}, change {number}: {port} {key}");
            match random.rand_range(0..20) {
                0..8 => {
                    let route = route(&mut random);
                    let made = plane.install(port, key, &route);
                    assert_eq!(pipeline.install(port, key, &route), made, "{context}");
                }
                8..11 => {
                    let known = plane.remove(port, key);
                    assert_eq!(pipeline.remove(port, key), known, "{context}");
                }
                11 => {
                    plane.clear(port);
                    pipeline.clear(port);
                }
                12..16 => {
                    let frame = frame_between(source, destination);
                    let header = plane.lookup(port, any, &frame);
                    assert_eq!(pipeline.lookup(port, any, &frame), header, "{context}");
                }
                _ => {
                    let used = plane.take_used(port, key);
                    assert_eq!(pipeline.take_used(port, key), used, "{context}");
                }
            }
            assert_same(&pipeline, &plane, &context);
        }
    }
}

#[test]
fn sources_that_come_and_go_use_no_bridges_up() {
    let mut tables = AxonTables::with_config(&config(HopWidth::Eight, 4));
    for number in 0..70_000u32 {
        let [_, a, b, c] = number.to_be_bytes();
        let key = key(7).from_source(Some(MacAddr([2, 0, 0, a, b, c])));
        assert_eq!(tables.install(PortNo(1), key, &Route::from([2])), Ok(()), "{number}");
        assert!(tables.remove(PortNo(1), key), "{number}");
    }
}

#[test]
fn a_route_is_one_entry_of_the_mac_table_whose_bridge_is_the_port() {
    let mut tables = AxonTables::with_config(&config(HopWidth::Eight, 4));
    tables.install(PortNo(1), key(7), &Route::from([2, 5])).unwrap();
    tables.install(PortNo(2), key(7), &Route::from([PortNo::CONTROL.0])).unwrap();
    let entries = tables.tables().entries(TableName::Mac);
    let expected = [(1, Target::Port(PortNo(2)), vec![2, 5]), (2, Target::Cpu, vec![0xffff])];
    assert_eq!(entries.len(), expected.len());
    for (shown, (bridge, target, hops)) in entries.iter().zip(expected) {
        let axon_pipeline::Change::Mac(key, Some(action)) = &shown.change else { panic!() };
        assert_eq!(*key, MacKey { bridge, mac: mac(7) });
        let route: Route = hops.into_iter().map(PortNo).collect();
        assert_eq!((action.target, &action.modify[..]), (target, &[Modify::AxonPush(route)][..]));
    }
}

#[test]
fn a_full_mac_table_refuses_a_route_and_keeps_what_it_has() {
    let sizes = Sizes { mac: 2, ..Sizes::default() };
    let mut tables = AxonTables::new(&config(HopWidth::Eight, 4), sizes);
    let route = Route::from([1]);
    assert_eq!(tables.install(PortNo(0), key(1), &route), Ok(()));
    assert_eq!(tables.install(PortNo(1), key(1), &route), Ok(()));
    assert_eq!(tables.install(PortNo(2), key(1), &route), Err(RouteError::Full));
    assert_eq!((tables.len(PortNo(2)), tables.routes(PortNo(2))), (0, vec![]));
    assert_eq!(tables.install(PortNo(0), key(1), &Route::from([2])), Ok(()), "replaced");
    assert!(tables.remove(PortNo(1), key(1)));
    assert_eq!(tables.install(PortNo(2), key(1), &route), Ok(()));
}
