//! Invalid frames sent to the nodes of the other networks. None may cause a panic, and every frame
//! has one fate.

use axon_baselines::bridge::{BridgeNode, BridgeNodeConfig};
use axon_baselines::portland::message::{Ldm, Level, Message, Place, Report, Way};
use axon_baselines::portland::plane::PortLandConfig;
use axon_baselines::portland::{ManagerConfig, ManagerNode, PortLandNode, SwitchConfig};
use axon_baselines::rstp::bpdu::SentRole;
use axon_baselines::rstp::{Bpdu, Times, Vector};
use axon_node::{Action, Input, Node};
use axon_plane::Ports;
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Span, Time};
use proptest::prelude::*;

const OWN: MacAddr = MacAddr([2, 0x73, 0, 0, 0, 1]);
const PORTS: u16 = 4;

/// One event on a port: a frame made from valid bytes, some of which are changed.
#[derive(Clone, Debug)]
struct Happening {
    port: u16,
    good: usize,
    changes: Vec<(usize, u8)>,
    length: usize,
    link: Option<bool>,
    pause_ms: u64,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let changes = prop::collection::vec((0_usize..80, any::<u8>()), 0..4);
    let link = prop_oneof![9 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let one = (
        0..PORTS,
        0_usize..8,
        changes,
        prop_oneof![4 => Just(usize::MAX), 1 => 0_usize..80],
        link,
        0_u64..300,
    )
        .prop_map(|(port, good, changes, length, link, pause_ms)| Happening {
            port,
            good,
            changes,
            length,
            link,
            pause_ms,
        });
    prop::collection::vec(one, 1..120)
}

fn good(which: usize) -> Vec<u8> {
    let mac = |last| MacAddr([2, 0x73, 0, 0, 0, last]);
    let place = Place { pod: 9000, position: 3 };
    let message = |message: Message| message.emit(OWN, mac(2));
    match which {
        0 => Bpdu {
            vector: Vector::default(),
            times: Times::default(),
            role: SentRole::Designated,
            topology_change: true,
            proposal: true,
            agreement: true,
            learning: true,
            forwarding: true,
            acknowledgment: true,
        }
        .emit(mac(2)),
        1 => message(Message::Report(Report {
            sequence: 1,
            incarnation: 1,
            level: Level::Edge,
            place: Some(place),
            links: vec![(PortNo(0), OWN, PortNo(900)), (PortNo(7), mac(2), PortNo(7))],
        })),
        2 => message(Message::Place(place)),
        3 => message(Message::Routes { sequence: 1, entries: vec![(place, vec![PortNo(60_000)])] }),
        4 => message(Message::RouteQuery(place)),
        // Location discovery from a fabric manager, which makes a switch accept the other messages.
        5 => Message::Ldm(Ldm {
            port: PortNo(0),
            level: Level::Manager,
            pod: None,
            position: None,
            way: Some(Way {
                manager: mac(2),
                incarnation: 1,
                fat_tree: true,
                distance: 0,
                path: 5,
            }),
            towards_you: false,
        })
        .emit_link(mac(2)),
        6 => vec![0xff; 60],
        _ => {
            let mut frame = vec![0; 60];
            frame[..12].copy_from_slice(&[6, 1, 2, 3, 0, 1, 2, 0, 0, 0, 0, 9]);
            frame[12] = 8;
            frame
        }
    }
}

/// Runs all events. The wires are free again at once.
fn run<N: Node>(
    mut node: N,
    ports: impl Fn(&N) -> &Ports,
    kept: impl Fn(&N) -> u64,
    story: &[Happening],
) {
    let (mut now, mut out) = (Time::ZERO, Vec::new());
    let (mut received, mut sent, mut dropped) = (0, 0, 0);
    let mut give = |node: &mut N, now: Time, input: Input| {
        node.handle(now, input, &mut out);
        let mut actions = std::mem::take(&mut out);
        while let Some(action) = actions.pop() {
            match action {
                Action::Transmit { port, .. } => {
                    sent += 1;
                    node.handle(now, Input::TxDone { port }, &mut actions);
                }
                Action::Dropped { .. } => dropped += 1,
                Action::Note(_) => {}
                other => panic!("a whole node keeps this to itself: {other:?}"),
            }
        }
    };
    let count = ports(&node).wires().count();
    for port in (0..count).map(PortNo) {
        give(&mut node, now, Input::Link { port, up: true });
    }
    for event in story {
        now += Span::from_millis(event.pause_ms);
        give(&mut node, now, Input::Timeout);
        let port = PortNo(event.port % count);
        if let Some(up) = event.link {
            give(&mut node, now, Input::Link { port, up });
        }
        let mut bytes = good(event.good);
        for &(at, byte) in event.changes.iter().filter(|(at, _)| *at < 60) {
            bytes[at] = byte;
        }
        bytes.truncate(event.length);
        let frame = FrameBuf::with_headroom(0, &bytes);
        received += 1;
        give(&mut node, now, Input::Frame { port, frame, complete_at: now, intact: true });
    }
    let ports = ports(&node);
    let total = ports.counters().total();
    let own = ports.counters().port(PortNo::CONTROL).rx_frames;
    assert_eq!((total.rx_frames - own, total.tx_frames), (received, sent));
    let queued: u64 =
        (0..ports.wires().count()).map(|port| ports.queues().frames(PortNo(port))).sum();
    let gone = sent + queued + ports.held_frames() + dropped + kept(&node);
    assert_eq!(total.rx_frames + total.copies, gone);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bridges_survive_any_frame(story in happenings()) {
        let node = BridgeNode::new(BridgeNodeConfig::new(OWN, vec![20_000; PORTS.into()]));
        run(node, BridgeNode::ports, |_| 0, &story);
    }

    #[test]
    fn portland_switches_survive_any_frame(story in happenings()) {
        let node = PortLandNode::new(SwitchConfig {
            plane: PortLandConfig {
                ports: PORTS,
                queue_bytes_max: Bytes(1 << 17),
                frame_bytes_max: 1514,
                mac: OWN,
                seed: 1,
            },
            incarnation: 1,
            interval: Span::from_millis(20),
            retry: Span::from_millis(10),
            waiting_bytes_max: 1 << 12,
        });
        let kept = |node: &PortLandNode| node.waiting_frames() + node.resumed_frames();
        run(node, PortLandNode::ports, kept, &story);
    }

    #[test]
    fn fabric_managers_survive_any_frame(story in happenings()) {
        let node = ManagerNode::new(ManagerConfig {
            mac: OWN,
            incarnation: 1,
            interval: Span::from_millis(20),
            retry: Span::from_millis(10),
            queue_bytes_max: Bytes(1 << 17),
        });
        run(node, ManagerNode::ports, |_| 0, &story);
    }
}
