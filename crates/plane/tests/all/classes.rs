//! Invariants of a plane with traffic classes under any sequence of events.

use crate::model::classes::{self, Kinds};
use crate::model::{Event, PORTS, World};
use axon_node::PortKind;
use axon_plane::OnFull;
use axon_wire::header::{self, PacketType};
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{HopWidth, Hops, MacAddr, PortNo, Span};
use proptest::prelude::*;

const WIDTH: HopWidth = HopWidth::Eight;

fn any_port() -> impl Strategy<Value = PortNo> {
    (0..PORTS + 1).prop_map(PortNo)
}

fn any_priority() -> impl Strategy<Value = Priority> {
    prop::sample::select(Priority::ALL.as_slice())
}

/// Draws a packet of some priority, for a port or for the control plane.
fn any_packet() -> impl Strategy<Value = Vec<u8>> {
    (any_priority(), prop::collection::vec(0..PORTS, 0..3), 14..200usize).prop_map(
        |(priority, hops, inner)| {
            let hops: Hops = hops.into_iter().map(PortNo).collect();
            let mut bytes = vec![0; WIDTH.header_bytes(hops.len())];
            header::emit(&mut bytes, WIDTH, PacketType::Ethernet, &hops, &[]).unwrap();
            header::set_priority(&mut bytes, WIDTH, priority);
            bytes.resize(bytes.len() + inner, 0x77);
            bytes
        },
    )
}

/// Draws a host's frame with or without a tag, to a host that may have a route.
fn any_host_frame() -> impl Strategy<Value = Vec<u8>> {
    (0..4u8, prop::option::of(any_priority()), 46..180usize).prop_map(|(last, tag, payload)| {
        let mut frame = vec![2, 0, 0, 0, 1, last, 2, 0, 0, 0, 0, 9];
        if let Some(priority) = tag {
            frame.extend_from_slice(&[0x81, 0, priority.value() << 5, 0]);
        }
        frame.extend_from_slice(&[8, 0]);
        frame.resize(frame.len() + payload, 0x55);
        frame
    })
}

/// Draws a frame of a peer: PFC, sometimes PAUSE, with times from zero to the maximum.
fn any_stop() -> impl Strategy<Value = Vec<u8>> {
    let quanta = prop_oneof![Just(0), 1..2_000u16, Just(u16::MAX)].prop_map(Quanta);
    (any::<u8>(), quanta, 0..8u8).prop_map(|(bits, time, kind)| {
        let pfc = Pfc::of(PrioritySet::from_bits(bits), time);
        let frame = if kind == 0 { MacControl::Pause(time) } else { MacControl::Pfc(pfc) };
        frame.emit(MacAddr([2, 0, 0, 0, 0, 7])).to_vec()
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![
        3 => Just(PortKind::Axon), 3 => Just(PortKind::Host), 1 => Just(PortKind::Unknown)
    ];
    let receive = |tail: Span, intact, port, frame| Event::Receive {
        port,
        headroom: 40,
        tail,
        intact,
        frame,
    };
    let frame = prop_oneof![8 => any_packet(), 3 => any_host_frame(), 3 => any_stop()];
    let tail = prop_oneof![3 => Just(Span::ZERO), 1 => (1..300u64).prop_map(Span::from_micros)];
    let classes = prop::collection::vec(0..PRIORITIES, PRIORITIES);
    prop_oneof![
        12 => (tail, prop::bool::weighted(0.9), any_port(), frame)
            .prop_map(move |(tail, intact, port, frame)| receive(tail, intact, port, frame)),
        8 => any_port().prop_map(Event::TxDone),
        1 => (any_port(), any::<bool>()).prop_map(|(port, up)| Event::Link { port, up }),
        1 => any_packet().prop_map(Event::Inject),
        1 => (any_port(), any_host_frame())
            .prop_map(|(port, frame)| Event::SendRaw { port, frame }),
        1 => (any_port(), kind).prop_map(|(port, kind)| Event::Kind { port, kind }),
        1 => (any_port(), 0..4u8, prop::collection::vec(0..PORTS, 1..3)).prop_map(
            |(port, last, hops)| Event::Route {
                port,
                destination: MacAddr([2, 0, 0, 0, 1, last]),
                hops: hops.into_iter().map(PortNo).collect(),
            }
        ),
        2 => (0..500u64).prop_map(|micros| Event::Wait(Span::from_micros(micros))),
        1 => (any_port(), any::<u8>()).prop_map(|(port, bits)| Event::Pfc {
            port, pfc: PrioritySet::from_bits(bits)
        }),
        1 => (any_port(), classes).prop_map(|(port, classes)| Event::Classes {
            port, prio_tc: core::array::from_fn(|at| TrafficClass::ALL[classes[at]])
        }),
    ]
}

fn any_kinds() -> impl Strategy<Value = Kinds> {
    (0..5u8, 0..3u8, any::<bool>(), any::<bool>()).prop_map(
        |(watermarks, watchdog, pause, arrival)| Kinds { watermarks, watchdog, pause, arrival },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// `World` checks conservation, the bound of the memory, the discipline of the wire, and that
    /// no deadline remains in the past, after every event.
    #[test]
    fn whatever_happens_no_frame_is_lost_and_the_memory_is_bounded(
        kinds in any_kinds(),
        events in prop::collection::vec(any_event(), 1..300),
    ) {
        let mut world = World::new(WIDTH, OnFull::Drop, Some(classes::config(kinds)));
        for event in events {
            world.apply(event);
        }
    }
}
