//! Tests of QCN's congestion point as an agent.

use axon_agents::agent::{Full, Packet};
use axon_agents::{Agent, CongestionResponder, Event, Handle, Outbox, ResponderConfig};
use axon_plane::qcn::CpConfig;
use axon_wire::cn::{CnTag, CnmFormat, CnmFrame};
use axon_wire::vlan::VlanTag;
use axon_wire::{Bytes, MacAddr, PortNo, Priority, Time};

const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 1, 1]);
const SWITCH: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const EGRESS: PortNo = PortNo(3);

/// A switch whose queue length the test sets, with one packet for the agent.
struct Switch {
    queue: Option<u64>,
    head: Vec<u8>,
    sent: Vec<Vec<u8>>,
    dropped: u32,
}

impl Outbox for Switch {
    fn head(&mut self, _: Handle) -> Option<&mut [u8]> {
        Some(&mut self.head)
    }

    fn payload(&mut self, _: Handle) -> Option<&mut [u8]> {
        None
    }

    fn resize_head(&mut self, _: Handle, _: usize) -> bool {
        false
    }

    fn forward(&mut self, _: Handle) {
        panic!("a copy goes nowhere");
    }

    fn drop(&mut self, _: Handle) {
        self.dropped += 1;
    }

    fn fetch(&mut self, _: Handle, _: usize, _: usize) {}

    fn replace(&mut self, _: Handle, _: &[u8]) -> Result<(), Full> {
        Err(Full)
    }

    fn queue_bytes(&mut self, port: PortNo) -> Option<u64> {
        self.queue.filter(|_| port == EGRESS)
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Full> {
        self.sent.push(frame.to_vec());
        Ok(())
    }
}

fn point() -> CpConfig {
    CpConfig { set_point: Bytes(50_000), ..CpConfig::default() }
}

fn responder() -> CongestionResponder {
    CongestionResponder::new(ResponderConfig {
        mac: SWITCH,
        egress: EGRESS,
        point: point(),
        cnm_priority: Priority::from_low_bits(6),
        cpid: 77,
    })
    .unwrap()
}

fn frame(source: MacAddr) -> Vec<u8> {
    let mut frame = [[2, 0, 0, 0, 1, 2], source.0].concat();
    frame.extend_from_slice(&VlanTag::of_priority(Priority::from_low_bits(3)).emit());
    frame.extend_from_slice(&CnTag { flow: 9 }.emit());
    frame.extend_from_slice(&[0x08, 0, 0x45]);
    frame.resize(200, 0);
    frame
}

/// Returns the CNM for a marked frame that finds `queue` bytes in the queue.
fn mark(agent: &mut CongestionResponder, source: MacAddr, queue: Option<u64>) -> Option<CnmFrame> {
    let mut switch = Switch { queue, head: frame(source), sent: Vec::new(), dropped: 0 };
    let handle = Handle::from_raw(1);
    let packet = Packet { handle, head_bytes: 200, frame_bytes: 200 };
    agent.handle(Time::ZERO, Event::Packet(packet), &mut switch);
    assert_eq!(switch.dropped, 1, "the copy ends here, whatever becomes of it");
    assert!(switch.sent.len() <= 1);
    let sent = switch.sent.first()?;
    Some(CnmFrame::parse(sent, &CnmFormat::default()).unwrap())
}

#[test]
fn the_source_of_a_marked_frame_gets_the_feedback_of_the_standard() {
    let mut agent = responder();
    let mut before = 0;
    for queue in [10_000, 60_000, 80_000, 80_000, 30_000, 200_000, 0, 50_000] {
        let cnm = mark(&mut agent, SOURCE, Some(queue));
        let expected = point().quantized(Bytes(queue), Bytes(before));
        assert_eq!(cnm.as_ref().map_or(0, |cnm| cnm.cnm.feedback), expected, "{queue}");
        if let Some(CnmFrame { destination, source, vlan, cn, cnm }) = cnm {
            assert_eq!((destination, source), (SOURCE, SWITCH));
            assert_eq!((cn.unwrap().flow, cnm.cpid), (9, 77));
            assert_eq!(vlan.unwrap().pcp, Priority::from_low_bits(6));
            assert_eq!(cnm.delta, point().format.delta(Bytes(queue), Bytes(before)));
        }
        before = queue;
    }
    let counters = agent.counters();
    assert_eq!((counters["samples"], counters["cnms"]), (8, 5));
}

#[test]
fn without_a_register_or_a_source_that_listens_nothing_is_sent() {
    let mut agent = responder();
    assert_eq!(mark(&mut agent, SOURCE, None), None);
    let group = MacAddr([3, 0, 0, 0, 1, 1]);
    assert_eq!(mark(&mut agent, group, Some(1 << 20)), None);
    let counters = agent.counters();
    assert_eq!((counters["unread"], counters["other"], counters["samples"]), (1, 1, 0));
}
