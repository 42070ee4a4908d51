//! One control message of every type and shape, by the name it has in `vectors/control.txt`.

use axon_wire::header::HopWidth;
use axon_wire::message::*;
use axon_wire::{Hops, Life, MacAddr, NodeId, PortNo, Route};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LIFE: Life = Life { node: NodeId(0x0102_0304_0506_0708), incarnation: 300 };
const STAMP: Stamp = Stamp { epoch: 2, number: 1000 };
const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const TARGET: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const SOURCE_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
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

fn arp_request(target: Target, source_ip: Option<IpAddr>) -> Message {
    let (id, port) = (7, PortNo(1));
    Message::ArpRequest(ArpRequest { id, port, source_mac: SOURCE, source_ip, target })
}

fn arp_target() -> ArpTarget {
    ArpTarget {
        id: 7,
        source_switch: LIFE,
        source_port: PortNo(1),
        source_mac: SOURCE,
        source_ip: Some(SOURCE_IP),
        target_port: PortNo(5),
        target_mac: TARGET,
        target_ip: Some(TARGET_IP),
        stamp: STAMP,
        to_source: Route::from([3, 1]),
        to_target: Route::from([2, 5]),
        answer_by: Hops::from([3, PortNo::CONTROL.0]),
    }
}

fn segment() -> Segment {
    let (port, destination, stamp) = (PortNo(1), TARGET, STAMP);
    let items = vec![
        Item::HostSeen { port, mac: SOURCE, ip: Some(SOURCE_IP) },
        Item::HostGone { port, mac: SOURCE },
        Item::SetRoute { port, destination, stamp, route: Route::from([2, 5]) },
        Item::RemoveRoute { port, destination, stamp },
        Item::AskHost { port, mac: SOURCE, ip: SOURCE_IP },
    ];
    Segment { first: 128, ack: 5, items }
}

/// The message of that name.
pub fn message(name: &str) -> Option<Message> {
    let (port, challenge, echo) = (PortNo(2), 0x1122_3344_5566_7788, 0x99aa);
    let hello = Hello { port, role: Role::Switch, hop_width: HopWidth::Eight, challenge };
    let path = ControllerPath { controller: LIFE, hops: Hops::from([3, PortNo::CONTROL.0]) };
    Some(match name {
        "hello" => Message::Hello(hello),
        "hello-controller-nibble" => {
            Message::Hello(Hello { role: Role::Controller, hop_width: HopWidth::Four, ..hello })
        }
        "hello-reply" => Message::HelloReply(HelloReply {
            port,
            role: Role::Controller,
            hop_width: HopWidth::Sixteen,
            echo,
            challenge,
        }),
        "hello-confirm" => Message::HelloConfirm(HelloConfirm { echo }),
        "heartbeat" => Message::Heartbeat(Heartbeat { echo, path: Some(path) }),
        "heartbeat-without-path" => Message::Heartbeat(Heartbeat { echo, path: None }),
        "controller-hello" => Message::ControllerHello(controller_hello()),
        "controller-hello-ack" => {
            Message::ControllerHelloAck(ControllerHelloAck { version: 3, nonce: u64::MAX })
        }
        "arp-request-ip" => {
            arp_request(Target::Ip(IpAddr::V6(Ipv6Addr::LOCALHOST)), Some(SOURCE_IP))
        }
        "arp-request-mac" => arp_request(Target::Mac(TARGET), None),
        "arp-target" => Message::ArpTarget(arp_target()),
        "arp-reply" => Message::ArpReply(ArpReply {
            id: 7,
            source_port: PortNo(1),
            source_mac: SOURCE,
            target_mac: TARGET,
            target_ip: None,
            stamp: STAMP,
            to_target: Route::from([2, 5]),
        }),
        "dhcp-relay" => Message::DhcpRelay(host_frame()),
        "host-frame" => Message::HostFrame(host_frame()),
        "segment" => Message::Segment(segment()),
        "segment-empty" => Message::Segment(Segment { first: 0, ack: 0, items: vec![] }),
        _ => return None,
    })
}
