//! Control messages of every type and shape, by their names in `vectors/control.txt`.

use axon_wire::header::HopWidth;
use axon_wire::lacp::{Partner, SystemId};
use axon_wire::message::*;
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, Layer, MacAddr, NodeId, PortNo, Route};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const INCARNATION: Incarnation = Incarnation { node: NodeId(0x0102_0304_0506_0708), number: 300 };
const STAMP: Stamp = Stamp { epoch: 2, number: 1000 };
const GRANT: Grant = Grant { sequence: 500, tag: *b"sixteen bytes.16" };
const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const TARGET: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const SOURCE_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const LOCALHOST: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
const TARGET_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

fn host_frame() -> HostFrame {
    HostFrame { port: PortNo(4), frame: vec![0xff; 14] }
}

fn controller_hello() -> ControllerHello {
    let peer = Peer::Axon { node: NodeId(9), port: PortNo(2), role: Role::Switch };
    let ports = vec![
        PortState { port: PortNo(0), peer: Peer::Host },
        PortState { port: PortNo(200), peer },
    ];
    ControllerHello { version: 3, nonce: u64::MAX, ports }
}

fn arp_request(target: Target, source_ip: Option<IpAddr>, hint: Option<IpAddr>) -> Message {
    let (id, port) = (7, PortNo(1));
    Message::ArpRequest(ArpRequest { id, port, source_mac: SOURCE, source_ip, target, hint })
}

fn arp_target() -> ArpTarget {
    ArpTarget {
        id: 7,
        source_switch: INCARNATION,
        source_port: PortNo(1),
        source_mac: SOURCE,
        source_ip: Some(SOURCE_IP),
        target_port: PortNo(5),
        target_mac: TARGET,
        target_ip: Some(TARGET_IP),
        stamp: STAMP,
        to_source: Route::from([3, 1]),
        source_by_pair: false,
        to_target: Route::from([2, 5]),
        target_by_pair: true,
        answer_by: Hops::from([3, PortNo::CONTROL.0]),
        grant: GRANT,
    }
}

fn segment() -> Segment {
    let (port, destination, stamp) = (PortNo(1), TARGET, STAMP);
    let source = Some(SOURCE);
    let items = vec![
        Item::HostSeen { port, mac: SOURCE, ips: vec![SOURCE_IP, LOCALHOST] },
        Item::HostGone { port, mac: SOURCE },
        Item::SetRoute { port, destination, source, stamp, route: Route::from([2, 5]) },
        Item::RemoveRoute { port, destination, source: None, stamp },
        Item::AskHost { port, mac: SOURCE, ip: SOURCE_IP },
    ];
    Segment { first: 128, ack: 5, items }
}

fn load_segment() -> Segment {
    let ports = vec![
        PortBytes { port: PortNo(0), bytes: 1 << 40 },
        PortBytes { port: PortNo(300), bytes: 0 },
    ];
    let items =
        vec![Item::AskLoad { every_ms: 1000 }, Item::PortLoad { over_us: 1_000_003, ports }];
    Segment { first: 2, ack: u64::MAX, items }
}

fn backup_segment() -> Segment {
    let (port, destination, stamp) = (PortNo(1), TARGET, STAMP);
    let primary = RoutePath { route: Route::from([2, 5]), switches: vec![NodeId(7)] };
    let switches = vec![NodeId(7), NodeId(300)];
    let backup = RoutePath { route: Route::from([3, 1, 5]), switches };
    let route = backup.route.clone();
    let (source, set) = (Some(SOURCE), Some(backup));
    let items = vec![
        Item::SetBackup { port, destination, source, primary: primary.clone(), backup: set },
        Item::SetBackup { port, destination, source: None, primary, backup: None },
        Item::BackupUsed { port, destination, source, stamp, route },
    ];
    Segment { first: 3, ack: 4, items }
}

fn group_segment() -> Segment {
    let (port, mac, group) = (PortNo(1), SOURCE, IpAddr::V4([239, 1, 2, 3].into()));
    let mdns = "ff02::fb".parse().unwrap();
    let items = vec![
        Item::GroupMember { port, mac, group, joined: true },
        Item::GroupMember { port, mac, group: mdns, joined: false },
        Item::AskGroup { port, mac, group, wanted: true },
        Item::GroupHosts { port, mac, group, first: 300, more: true, hosts: vec![TARGET, SOURCE] },
        Item::GroupHosts { port, mac, group: mdns, first: 0, more: false, hosts: Vec::new() },
    ];
    Segment { first: 3, ack: 4, items }
}

fn vlan() -> VlanId {
    VlanId::new(300).unwrap()
}

/// A route whose frames leave tagged.
fn vlan_segment() -> Segment {
    let (port, destination, stamp) = (PortNo(1), TARGET, STAMP);
    let layer = Layer::new(3).unwrap();
    let route = Route { layer, tagged: true, ..Route::from([2, 5]) };
    let item = Item::SetRoute { port, destination, source: None, stamp, route };
    Segment { first: 3, ack: 4, items: vec![item] }
}

fn bond_segment() -> Segment {
    let (port, system) = (PortNo(3), SystemId { priority: 0xffff, mac: SOURCE });
    let partner = Partner { system, key: 9 };
    let (state, none) = (MemberState::Distributing, MemberState::Down);
    let items = vec![
        Item::BondMember { port, state, partner: Some(partner), selected: true },
        Item::BondMember { port, state: none, partner: None, selected: false },
        Item::SelectMember { port, partner, selected: true },
    ];
    Segment { first: 3, ack: 4, items }
}

fn link_down() -> LinkDown {
    let end = |node, port| LinkEnd { node: NodeId(node), port: PortNo(port) };
    LinkDown { ends: [end(7, 2), end(300, 200)], hops_left: 64 }
}

fn of_links() -> Vec<(&'static str, Message)> {
    let (port, challenge, echo) = (PortNo(2), 0x1122_3344_5566_7788, 0x99aa);
    let hello = Hello { port, role: Role::Switch, hop_width: HopWidth::Eight, challenge };
    let nibble = Hello { role: Role::Controller, hop_width: HopWidth::Four, ..hello };
    let (role, hop_width) = (Role::Controller, HopWidth::Sixteen);
    let reply = HelloReply { port, role, hop_width, echo, challenge };
    let path = ControllerPath { controller: INCARNATION, hops: Hops::from([3, PortNo::CONTROL.0]) };
    vec![
        ("hello", Message::Hello(hello)),
        ("hello-controller-nibble", Message::Hello(nibble)),
        ("hello-reply", Message::HelloReply(reply)),
        ("hello-confirm", Message::HelloConfirm(HelloConfirm { echo })),
        ("heartbeat", Message::Heartbeat(Heartbeat { echo, path: Some(path) })),
        ("heartbeat-without-path", Message::Heartbeat(Heartbeat { echo, path: None })),
        ("link-down", Message::LinkDown(link_down())),
    ]
}

fn of_paths() -> Vec<(&'static str, Message)> {
    let ack = ControllerHelloAck { version: 3, nonce: u64::MAX };
    let reply = ArpReply {
        id: 7,
        source_port: PortNo(1),
        source_mac: SOURCE,
        target_mac: TARGET,
        target_ip: None,
        stamp: STAMP,
        to_target: Route::from([2, 5]),
        target_by_pair: true,
        grant: GRANT,
    };
    vec![
        ("controller-hello", Message::ControllerHello(controller_hello())),
        ("controller-hello-ack", Message::ControllerHelloAck(ack)),
        ("arp-request-ip", arp_request(Target::Ip(LOCALHOST), Some(SOURCE_IP), None)),
        ("arp-request-mac", arp_request(Target::Mac(TARGET), None, Some(TARGET_IP))),
        ("arp-target", Message::ArpTarget(arp_target())),
        ("arp-reply", Message::ArpReply(reply)),
        ("dhcp-relay", Message::DhcpRelay(host_frame())),
        ("host-frame", Message::HostFrame(host_frame())),
        ("segment", Message::Segment(segment())),
        ("segment-load", Message::Segment(load_segment())),
        ("segment-backup", Message::Segment(backup_segment())),
        ("segment-group", Message::Segment(group_segment())),
        ("segment-bond", Message::Segment(bond_segment())),
        ("segment-empty", Message::Segment(Segment { first: 0, ack: 0, items: vec![] })),
        ("seek", Message::Seek(Seek { ip: TARGET_IP, except: None })),
        ("seek-except", Message::Seek(Seek { ip: LOCALHOST, except: Some(PortNo(300)) })),
    ]
}

/// Messages about hosts in a VLAN.
fn in_vlan() -> Vec<(&'static str, Message)> {
    let seek = Seek { ip: TARGET_IP, except: None };
    vec![("vlan", Message::Seek(seek)), ("segment-vlan", Message::Segment(vlan_segment()))]
}

/// Returns every sample with its name and VLAN. A new kind of message or item does not compile
/// without a number here, and panics without a sample.
pub fn all() -> Vec<(&'static str, (VlanId, Message))> {
    let samples = [(VlanId::NONE, [of_links(), of_paths()].concat()), (vlan(), in_vlan())];
    let samples = samples.into_iter().flat_map(|(vlan, samples)| {
        samples.into_iter().map(move |(name, message)| (name, (vlan, message)))
    });
    let samples: Vec<_> = samples.collect();
    let mut messages = [false; 14];
    let mut items = [false; 14];
    for (_, (_, message)) in &samples {
        messages[number(message)] = true;
        if let Message::Segment(segment) = message {
            segment.items.iter().for_each(|item| items[item_number(item)] = true);
        }
    }
    assert_eq!(messages, [true; 14], "each kind of message has a sample");
    assert_eq!(items, [true; 14], "each kind of item has a sample");
    samples
}

fn number(message: &Message) -> usize {
    match message {
        Message::Hello(_) => 0,
        Message::HelloReply(_) => 1,
        Message::HelloConfirm(_) => 2,
        Message::Heartbeat(_) => 3,
        Message::ControllerHello(_) => 4,
        Message::ControllerHelloAck(_) => 5,
        Message::ArpRequest(_) => 6,
        Message::ArpTarget(_) => 7,
        Message::ArpReply(_) => 8,
        Message::DhcpRelay(_) => 9,
        Message::HostFrame(_) => 10,
        Message::Segment(_) => 11,
        Message::Seek(_) => 12,
        Message::LinkDown(_) => 13,
    }
}

fn item_number(item: &Item) -> usize {
    match item {
        Item::HostSeen { .. } => 0,
        Item::HostGone { .. } => 1,
        Item::SetRoute { .. } => 2,
        Item::RemoveRoute { .. } => 3,
        Item::AskHost { .. } => 4,
        Item::AskLoad { .. } => 5,
        Item::PortLoad { .. } => 6,
        Item::SetBackup { .. } => 7,
        Item::BackupUsed { .. } => 8,
        Item::GroupMember { .. } => 9,
        Item::AskGroup { .. } => 10,
        Item::GroupHosts { .. } => 11,
        Item::BondMember { .. } => 12,
        Item::SelectMember { .. } => 13,
    }
}
