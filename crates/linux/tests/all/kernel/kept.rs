//! Data that the XDP program caches beside the tables that the node writes: recently used routes,
//! and the devices of ports.

use super::random::raw;
use super::step::{LOOPBACK, run};
use super::{bpf, kernel, settings};
use axon_linux::kernel::{Hook, Kernel, KernelSettings, LoadedProgram};
use axon_node::PortKind;
use axon_wire::{HopWidth, MacAddr, PortNo, Route};
use aya::maps::xdp::DevMap;
use aya::maps::{Array, HashMap, MapData};

const HOSTS: PortNo = PortNo(0);
const OUT: PortNo = PortNo(1);
const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn xdp() -> KernelSettings {
    settings(Hook::Xdp, HopWidth::Eight, 4)
}

/// A switch with a host port and a link, and the program of the host port.
fn switch() -> (Kernel, LoadedProgram) {
    let mut kernel = kernel("switch", xdp());
    kernel.set_port(HOSTS, LOOPBACK, PortKind::Host).unwrap();
    kernel.set_port(OUT, LOOPBACK, PortKind::Axon).unwrap();
    let program = kernel.load(HOSTS).unwrap();
    (kernel, program)
}

/// Passes a frame of the host; returns the frame behind the switch.
fn pass(program: &mut LoadedProgram) -> Option<Vec<u8>> {
    run(program, Hook::Xdp, &[&HOST.0[..], &[0x5a; 60]].concat())
}

pub fn routes() {
    if bpf().is_none() {
        return;
    }
    let (mut kernel, mut program) = switch();
    let mut table: HashMap<MapData, [u8; 8], [u64; 10]> =
        raw("switch", "routes").try_into().unwrap();
    let mut version: Array<MapData, u64> = raw("switch", "version").try_into().unwrap();
    let [one, two] = [7, 8].map(|last| {
        kernel.set_route(HOSTS, HOST, &Route::from([OUT.0, last])).unwrap();
        let out = pass(&mut program).unwrap();
        assert_eq!(u16::from(out[6]), last, "a route that is changed is another at once");
        (table.iter().next().unwrap().unwrap(), out)
    });
    let mut write = |(route, _): &(([u8; 8], [u64; 10]), Vec<u8>)| {
        table.insert(route.0, route.1, 0).unwrap();
    };
    write(&one);
    assert_eq!(pass(&mut program).unwrap(), two.1, "it does not look in the table each time");
    kernel.remove_route(HOSTS, MacAddr([2; 6])).unwrap();
    assert_eq!(pass(&mut program).unwrap(), one.1, "it does after any change");

    // A node that ends in the middle of a change.
    let is = version.get(&0, 0).unwrap();
    version.set(0, is + 1, 0).unwrap();
    for route in [&two, &one, &two] {
        write(route);
        assert_eq!(pass(&mut program).unwrap(), route.1, "it keeps none");
    }
    drop(kernel);
    let mut kernel = super::kernel("switch", xdp());
    assert_eq!(pass(&mut program).unwrap(), two.1);
    write(&one);
    assert_eq!(pass(&mut program).unwrap(), two.1, "with the next node it keeps them again");

    for _ in 0..3 {
        assert!(kernel.take_used(HOSTS, HOST).unwrap(), "one that is kept is in use");
        assert!(!kernel.take_used(HOSTS, HOST).unwrap());
        assert!(pass(&mut program).is_some());
    }
    assert!(kernel.remove_route(HOSTS, HOST).unwrap());
    assert_eq!(pass(&mut program), None);
}

pub fn devices() {
    if bpf().is_none() {
        return;
    }
    let (mut kernel, mut program) = switch();
    kernel.set_route(HOSTS, HOST, &Route::from([OUT.0, 7])).unwrap();
    let length = |program: &mut LoadedProgram| pass(program).map(|out| out.len());
    let cases = [
        (LOOPBACK, PortKind::Host, Some(66)),
        (LOOPBACK, PortKind::Axon, Some(74)),
        (LOOPBACK, PortKind::Unknown, None),
        (LOOPBACK, PortKind::Axon, Some(74)),
        (0, PortKind::Axon, None),
        (0, PortKind::Host, None),
        (LOOPBACK, PortKind::Host, Some(66)),
        // A device that was removed.
        (4711, PortKind::Host, None),
        (4711, PortKind::Axon, None),
        (LOOPBACK, PortKind::Axon, Some(74)),
    ];
    for (ifindex, kind, expected) in cases {
        kernel.set_port(OUT, ifindex, kind).unwrap();
        assert_eq!(length(&mut program), expected, "{ifindex} {kind:?}");
        assert_eq!(kernel.port(OUT).unwrap(), (ifindex, kind));
    }
    // A node that ends between the two tables.
    let mut links: DevMap<MapData> = raw("switch", "links").try_into().unwrap();
    links.set(OUT.0.into(), 0, None, 0).unwrap();
    assert_eq!(length(&mut program), None);
    drop(kernel);
    let _kernel = super::kernel("switch", xdp());
    assert_eq!(length(&mut program), Some(74), "the next one makes them agree");
}
