//! Route memory by index, observed at the ports.

use axon_node::{Action, Dataplane, PortKind, PortSetting, Punt, RouteChange, RouteTicket};
use axon_plane::{Plane, PlaneConfig};
use axon_wire::header::HeaderView;
use axon_wire::masquerade::address;
use axon_wire::nd;
use axon_wire::{FrameBuf, HopWidth, MacAddr, PortNo, Route, Time, host_frame};
use std::net::{Ipv4Addr, Ipv6Addr};

const T0: Time = Time::ZERO;
const HOST: PortNo = PortNo(0);
const OTHER_HOST: PortNo = PortNo(1);
const AXON: PortNo = PortNo(2);

fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, last])
}

/// Two host ports and an Axon port, with a table of one entry, which leads to host 8.
fn plane(change: impl FnOnce(&mut PlaneConfig)) -> Plane {
    let config = PlaneConfig::with_ports(3, MacAddr([2, 0, 0, 0, 0, 0xaa]));
    let mut config = PlaneConfig { routes_per_port_max: 1, ..config };
    change(&mut config);
    let mut plane = Plane::new(config);
    for (port, kind) in
        [(HOST, PortKind::Host), (OTHER_HOST, PortKind::Host), (AXON, PortKind::Axon)]
    {
        plane.set_port(T0, port, PortSetting::Kind(kind), &mut Vec::new()).unwrap();
        plane.link(T0, port, true, &mut Vec::new());
    }
    plane.install(HOST, mac(8), &Route::from([2, 7])).unwrap();
    plane
}

fn ask(plane: &mut Plane, change: RouteChange) -> bool {
    plane.change_route(T0, RouteTicket(1), change) == Some(Ok(()))
}

/// Installs a route from an address to host 9.
fn masquerade(plane: &mut Plane, mac_given: MacAddr) -> bool {
    let (destination, route) = (mac(9), Route::from([2, 4]));
    ask(plane, RouteChange::Masquerade { port: HOST, key: mac_given.into(), destination, route })
}

fn frame(to: MacAddr) -> Vec<u8> {
    let mut frame = vec![0x33; 60];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&mac(1).0);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame
}

/// Returns the frame sent for `came`; `None` if it goes to the control plane unchanged.
fn sent(plane: &mut Plane, port: PortNo, came: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    plane.receive(T0, port, FrameBuf::new(came), T0, true, &mut out);
    plane.tx_done(T0, AXON, &mut Vec::new());
    match &out[..] {
        [Action::Transmit { port: AXON, frame, .. }] => Some(frame.bytes().to_vec()),
        [Action::Punt { punt: Punt::Miss, frame, header_bytes, .. }] => {
            assert_eq!(&frame.bytes()[usize::from(*header_bytes)..], came);
            None
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_masqueraded_address_gives_way_to_the_true_one_and_the_frame_takes_its_route() {
    let mut plane = plane(|_| ());
    let given = address(5, 77);
    assert!(masquerade(&mut plane, given));
    let bytes = sent(&mut plane, HOST, &frame(given)).expect("it has a route");
    let view = HeaderView::parse(&bytes, HopWidth::Eight).unwrap();
    assert_eq!(view.forward(), Route::from([4]).hops);
    assert_eq!(&bytes[bytes.len() - 60..], frame(mac(9)), "the source is as it was");
    assert!(plane.take_used(HOST, given.into()) && !plane.take_used(HOST, given.into()));
    assert_eq!(Dataplane::routes(&plane, HOST), 1, "it has no place in the table");
}

#[test]
fn only_the_whole_address_and_only_from_its_port_has_a_route() {
    let mut plane = plane(|_| ());
    let given = address(5, 77);
    assert!(masquerade(&mut plane, given));
    for forged in [address(5, 76), address(4, 77), address(6, 77), mac(9)] {
        assert_eq!(sent(&mut plane, HOST, &frame(forged)), None, "{forged}");
    }
    assert_eq!(sent(&mut plane, OTHER_HOST, &frame(given)), None, "another port");
    // Another generation takes the index, and a late removal of the first generation keeps it.
    assert!(masquerade(&mut plane, address(5, 78)));
    assert!(ask(&mut plane, RouteChange::Remove { port: HOST, key: given.into() }));
    assert_eq!(sent(&mut plane, HOST, &frame(given)), None);
    assert!(sent(&mut plane, HOST, &frame(address(5, 78))).is_some());
    assert!(ask(&mut plane, RouteChange::Remove { port: HOST, key: address(5, 78).into() }));
    assert_eq!(sent(&mut plane, HOST, &frame(address(5, 78))), None);
}

#[test]
fn resolution_of_masqueraded_neighbours_is_the_control_planes() {
    let given = address(0, 1);
    let (ip, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9));
    let ip6 = |n| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
    let questions = |mac_of_target: MacAddr| {
        let ask6 = nd::solicitation((mac(1), ip6(1)), Some(mac_of_target), ip6(9));
        [host_frame::request(mac(1), ip, mac_of_target, to), ask6]
    };
    for all in [false, true] {
        let mut plane = plane(|config| config.punts_resolution = all);
        assert!(masquerade(&mut plane, given));
        for question in questions(given) {
            assert_eq!(sent(&mut plane, HOST, &question), None);
        }
        for question in questions(mac(8)) {
            assert_eq!(sent(&mut plane, HOST, &question).is_none(), all, "by the table");
        }
        assert!(sent(&mut plane, HOST, &frame(mac(8))).is_some());
    }
}

#[test]
fn a_snapshot_has_route_memory_and_brings_it_back() {
    let mut one = plane(|_| ());
    assert!(masquerade(&mut one, address(5, 77)) && !masquerade(&mut one, mac(3)));
    let snapshot = Dataplane::snapshot(&one);
    assert_eq!(snapshot.ports[0].masqueraded.len(), 1);
    let mut other = plane(|_| ());
    assert!(masquerade(&mut other, address(6, 1)));
    other.resynchronise(T0, &snapshot, &mut Vec::new()).unwrap();
    assert_eq!(Dataplane::snapshot(&other), snapshot);
    assert_eq!(sent(&mut other, HOST, &frame(address(6, 1))), None);
    assert!(sent(&mut other, HOST, &frame(address(5, 77))).is_some());
    let mut none = plane(|config| config.masqueraded_per_port_max = 0);
    assert!(!masquerade(&mut none, address(0, 1)));
}
