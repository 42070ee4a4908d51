//! Checks that the API is the same in Rust, in a Python program, and on an in-memory switch in
//! Python.

use crate::python::interpreter;
use crate::rig::{OWN, Rig, site};
use axon_pipeline::{
    Action, Change, Field, FrameType, Group, Interface, Label, MacKey, Mirror, Modify, Pipeline,
    PipelineConfig, PortOptions, Prefix, TableName, Tables, Target, TcamEntry, Tunnel, Udlk,
    UdlkId,
};
use axon_wire::{Layer, MacAddr, PortNo, Route};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn mac(bridge: u16, last: u8, action: Action) -> Change {
    let mac = MacAddr([2, 0, 0, 0, 0, last]);
    Change::Mac(MacKey { bridge, mac }, Some(action))
}

fn tcam(index: u16, udlk: u8, value: &[u8], mask: &[u8], action: Action) -> Change {
    let (value, mask) = (value.to_vec(), mask.to_vec());
    Change::Tcam(index, Some(TcamEntry { udlk: UdlkId(udlk), value, mask, action }))
}

fn prefix(second: u8, length: u8, action: Action) -> Change {
    Change::Prefix(Prefix { address: [10, second, 0, 0].into(), length }, Some(action))
}

fn to(target: Target) -> Action {
    Action::from(target)
}

/// Returns the changes that `parity.py` makes.
fn changes() -> Vec<Change> {
    let port = |port| to(Target::Port(PortNo(port)));
    let bytes = |first, last| Field::Bytes { first, last };
    let metadata = [Field::Ingress, Field::Priority, bytes(30, 33)];
    let interface =
        |port, destination, source| Interface { port: PortNo(port), destination, source };
    let vif = Some(MacAddr([0, 0x1f, 0x29, 0xd4, 0x17, 0xe8]));
    let source = Some(MacAddr([2, 0, 0, 0, 0, 7]));
    let (near, far) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let tunnel = Tunnel { source: near, destination: far, protocol: 47, ttl: 9, shim: vec![0; 4] };
    let route: Route = [1, 2].map(PortNo).into_iter().collect();
    let layered = Route { layer: Layer::new(5).unwrap(), ..Route::from([3]) };
    let mirrored = to(Target::Tables).mirrored(Mirror::Port(PortNo(1)));
    vec![
        Change::Udlk(UdlkId(1), Some(Udlk::new([bytes(0, 5)]))),
        Change::Udlk(UdlkId(2), Some(Udlk::of(FrameType::Ipv4, metadata))),
        Change::Interface(3, Some(interface(1, vif, None))),
        Change::Interface(4, Some(interface(0, None, source))),
        Change::Group(5, Some(Group { interfaces: vec![3, 4] })),
        Change::Tunnel(6, Some(tunnel)),
        tcam(
            0,
            1,
            &[0, 0, 1, 2, 0, 255],
            &[255; 6],
            to(Target::Interface(3)).mirrored(Mirror::Cpu),
        ),
        tcam(7, 2, &[0, 1, 3, 10, 0, 0, 0], &[255, 255, 7, 255, 0, 0, 0], to(Target::Group(5))),
        tcam(8, 1, &[0, 0, 0, 0, 0, 1], &[255; 6], mirrored),
        mac(3, 9, port(1).with(Modify::SetSource(OWN))),
        mac(0, 10, to(Target::Drop).with(Modify::SetDestination(MacAddr::default()))),
        Change::Ipv4(
            [10, 1, 2, 3].into(),
            Some(to(Target::Spread(5)).with(Modify::DecrementTtl).with(Modify::SetDscp(46))),
        ),
        Change::Mpls(
            77,
            Some(
                to(Target::Interface(4))
                    .with(Modify::MplsSwap(Label(78)))
                    .mirrored(Mirror::Port(PortNo(1))),
            ),
        ),
        Change::Mpls(78, Some(port(0).with(Modify::MplsPop))),
        prefix(0, 8, port(1).with(Modify::TunnelPush(6))),
        prefix(
            2,
            16,
            port(1).with(Modify::TunnelPop { shim_bytes: 4 }).with(Modify::MplsPush(Label(5))),
        ),
        mac(0, 11, port(1).with(Modify::AxonPush(route))),
        mac(0, 12, port(1).with(Modify::AxonHop)),
        mac(0, 13, port(1).with(Modify::AxonStrip)),
        mac(0, 14, port(1).with(Modify::AxonPush(layered))),
        mac(0, 15, port(1).with(Modify::AxonError)),
        Change::Miss(Some(Action::cpu())),
        Change::Port(
            PortNo(1),
            Some(PortOptions { bridge: 3, routed: false, learn: true, axon: false }),
        ),
    ]
}

/// Returns the index of a kind in [`MODIFIES`]. A new kind does not compile until it has one.
fn number(modify: &Modify) -> usize {
    match modify {
        Modify::DecrementTtl => 0,
        Modify::SetDscp(_) => 1,
        Modify::MplsPush(_) => 2,
        Modify::MplsSwap(_) => 3,
        Modify::MplsPop => 4,
        Modify::TunnelPush(_) => 5,
        Modify::TunnelPop { .. } => 6,
        Modify::SetDestination(_) => 7,
        Modify::SetSource(_) => 8,
        Modify::AxonPush(_) => 9,
        Modify::AxonHop => 10,
        Modify::AxonError => 11,
        Modify::AxonStrip => 12,
    }
}

/// Number of kinds of modifications.
const MODIFIES: usize = 13;

fn action(change: &Change) -> Option<&Action> {
    match change {
        Change::Tcam(_, Some(entry)) => Some(&entry.action),
        Change::Mac(_, action)
        | Change::Ipv4(_, action)
        | Change::Mpls(_, action)
        | Change::Prefix(_, action)
        | Change::Miss(action) => action.as_ref(),
        _ => None,
    }
}

#[test]
fn every_kind_of_modification_is_among_the_changes() {
    let changes = changes();
    let made = changes.iter().filter_map(action).flat_map(|action| &action.modify);
    let kinds: BTreeSet<usize> = made.map(number).collect();
    assert_eq!(kinds, (0..MODIFIES).collect());
}

/// Returns all entries as the changes that create them.
fn shown(tables: &Tables) -> Vec<Change> {
    let all = TableName::ALL.into_iter().flat_map(|table| tables.entries(table));
    all.map(|entry| entry.change).collect()
}

#[test]
fn the_same_changes_make_the_same_tables_in_rust_and_in_python() {
    let Some(interpreter) = interpreter() else { return };
    let mut pipeline = Pipeline::new(PipelineConfig::with_ports(2, OWN));
    pipeline.commit(&changes()).unwrap();
    let ours = shown(pipeline.tables());
    assert!(ours.len() >= 18, "{}", ours.len());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/parity.py");

    let mut rig = Rig::new(interpreter.start_waiting(&file, &site()));
    rig.wait("the start", |rig| rig.node.program().is_ready());
    assert_eq!(rig.failure(), None);
    assert_eq!(shown(rig.node.pipeline().tables()), ours, "a program in a process of its own");

    let output = Command::new(interpreter.path()).arg("-P").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let ours: Vec<String> = ours.iter().map(|change| format!("{change:?}")).collect();
    assert_eq!(printed.lines().collect::<Vec<_>>(), ours, "a switch in memory");
}
