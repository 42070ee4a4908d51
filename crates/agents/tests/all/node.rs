//! Tests of the port of an agent in the simulator.

use crate::port::Port;
use axon_agents::node::{PayloadMode, WhenFull};
use axon_agents::{Agent, AgentPortConfig, Event, Handle, Outbox};
use axon_node::Drop;
use axon_wire::{Bytes, Span, Time};
use std::collections::VecDeque;

/// Verdicts for the packets that arrive, in this order. The agent holds all further packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Forward,
    Drop,
    Hold,
    Longer,
    Replace,
    Fetch,
    Twice,
    Forged,
}

#[derive(Default)]
struct Script {
    work: VecDeque<Work>,
    held: Vec<Handle>,
    fetched: Vec<Vec<u8>>,
}

impl Agent for Script {
    fn handle(&mut self, _: Time, event: Event<'_>, out: &mut dyn Outbox) {
        let packet = match event {
            Event::Packet(packet) => packet,
            Event::Payload { handle, bytes, .. } => {
                self.fetched.push(bytes.to_vec());
                return out.forward(handle);
            }
            Event::Timeout => return,
        };
        let handle = packet.handle;
        match self.work.pop_front().unwrap_or(Work::Hold) {
            Work::Forward => {
                out.head(handle).unwrap()[0] ^= 0xff;
                if let Some(byte) = out.payload(handle).unwrap().first_mut() {
                    *byte ^= 0xff;
                }
                out.forward(handle);
            }
            Work::Drop => out.drop(handle),
            Work::Hold => self.held.push(handle),
            Work::Longer => {
                assert!(out.resize_head(handle, packet.head_bytes + 2));
                out.head(handle).unwrap()[..2].copy_from_slice(&[0xaa, 0xbb]);
                out.forward(handle);
            }
            Work::Replace => out.replace(handle, b"new").unwrap(),
            Work::Fetch => out.fetch(handle, packet.frame_bytes - 2, 100),
            Work::Twice => {
                out.forward(handle);
                assert!(out.head(handle).is_none());
                out.forward(handle);
                out.drop(handle);
                out.fetch(handle, 0, 1);
            }
            Work::Forged => {
                out.forward(Handle::from_raw(handle.raw() ^ 1 << 20));
                out.forward(Handle::NONE);
                out.forward(handle);
            }
        }
    }
}

fn port(work: &[Work], config: AgentPortConfig) -> Port<Script> {
    Port::new(config, Script { work: work.iter().copied().collect(), ..Script::default() })
}

fn config() -> AgentPortConfig {
    let mut config = AgentPortConfig::default();
    (config.cache.buffers, config.cache.head_bytes) = (4, 4);
    config
}

const FRAME: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn what_an_agent_does_with_a_packet_is_done_with_the_whole_frame() {
    let mut port =
        port(&[Work::Forward, Work::Drop, Work::Longer, Work::Replace, Work::Fetch], config());
    assert_eq!(port.give(&FRAME), [[0xfe, 2, 3, 4, 5, 6, 7, 8]]);
    assert!(port.give(&FRAME).is_empty());
    assert_eq!(port.dropped, [Drop::Consumed]);
    assert_eq!(port.give(&FRAME), [[0xaa, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8]]);
    assert_eq!(port.give(&FRAME), [[1, 2, 3, 4, b'n', b'e', b'w']]);
    assert_eq!(port.give(&FRAME), [FRAME]);
    assert_eq!(port.node.agent().fetched, [[7, 8]], "as much as there is");
    let counters = port.node.cache_counters();
    // Five heads of 4 bytes and two fetched bytes go to the agent. From it come 4 bytes, 6 bytes,
    // the 7 bytes of the frame with a new payload, and 4 bytes.
    assert_eq!((counters.copied_to_agent_bytes, counters.copied_from_agent_bytes), (22, 21));
    assert_eq!((counters.hits, counters.saved_bytes), (3, 12));
}

#[test]
fn a_payload_that_is_copied_crosses_twice_and_can_be_rewritten() {
    let config = AgentPortConfig { payload: PayloadMode::Copied, ..config() };
    let mut port = port(&[Work::Forward], config);
    assert_eq!(port.give(&FRAME), [[0xfe, 2, 3, 4, 0xfa, 6, 7, 8]]);
    let counters = port.node.cache_counters();
    assert_eq!((counters.copied_to_agent_bytes, counters.copied_from_agent_bytes), (8, 8));
    assert_eq!(counters.saved_bytes, 0);
}

#[test]
fn an_agent_that_answers_twice_or_forges_handles_sends_nothing_twice() {
    let mut port = port(&[Work::Twice, Work::Forged, Work::Hold], config());
    assert_eq!(port.give(&FRAME), [FRAME]);
    assert_eq!(port.node.refused(), 3);
    assert_eq!(port.give(&FRAME), [FRAME]);
    assert_eq!(port.node.refused(), 5);
}

#[test]
fn a_full_cache_drops_or_waits_up_to_the_queue_as_configured() {
    let dropping = AgentPortConfig { when_full: WhenFull::Drop, ..config() };
    let mut port = port(&[], dropping);
    (0..6).for_each(|_| drop(port.give(&FRAME)));
    assert_eq!(port.dropped, [Drop::QueueFull; 2], "four buffers");

    let waiting = AgentPortConfig { queue_bytes_max: Bytes(24), ..config() };
    let mut port = self::port(&[Work::Forward; 9], waiting);
    port.wire = false;
    (0..10).for_each(|_| drop(port.give(&FRAME)));
    assert_eq!(port.dropped, [Drop::QueueFull; 2], "one on the wire, 4 buffers, 3 in the queue");
    assert_eq!(port.sent.len(), 1);
    port.wire = true;
    port.tx_done();
    assert_eq!(port.sent.len(), 8, "what waited goes on by itself");
    assert_eq!(port.node.accounts(), (10, 0, 0));
}

#[test]
fn what_is_held_for_too_long_comes_back() {
    let mut config = config();
    config.cache.hold_max = Some(Span::from_millis(2));
    let mut port = port(&[], config);
    (0..5).for_each(|_| drop(port.give(&FRAME)));
    port.wait(Span::from_millis(1));
    assert_eq!(port.dropped, []);
    port.wait(Span::from_millis(1));
    assert_eq!(port.dropped, [Drop::NoProgram; 4]);
    port.wait(Span::from_millis(2));
    assert_eq!(port.dropped, [Drop::NoProgram; 5], "the one that waited was held, too");
}

#[test]
fn a_busy_cpu_takes_packets_one_after_another() {
    let config = AgentPortConfig { service: Span::from_micros(10), ..config() };
    let mut port = port(&[Work::Forward; 3], config);
    (0..3).for_each(|_| assert!(port.give(&FRAME).is_empty()));
    for expected in 1..=3 {
        port.wait(Span::from_nanos(9_999));
        assert_eq!(port.sent.len(), expected - 1);
        port.wait(Span::from_nanos(1));
        assert_eq!(port.sent.len(), expected);
    }
}
