//! A congestion responder: QCN's congestion point in software (paper 004, section 5.2; IEEE 802.1Q
//! clause 30.2.1).
//!
//! In plain English: the switching chip cannot sample by the length of its queue, so the source
//! marks frames, more of them the worse the congestion is, and the chip mirrors those to its CPU.
//! Here the agent reads the length of the queue, computes the feedback from that and from the
//! length at the last marked frame, and sends it to the frame's source. The copy ends here.
//!
//! The feedback is that of the plane's own congestion point. Only who samples is another one.

use crate::agent::{Agent, Counters, Event, Outbox};
use axon_plane::qcn::{CpConfig, CpError};
use axon_wire::cn::{self, Cnm, CnmFrame, MSDU_BYTES_MAX, Tagged};
use axon_wire::vlan::TAG_BYTES;
use axon_wire::{Bytes, MacAddr, PortNo, Priority, Time};

/// Bytes of head that a responder needs: addresses, two tags, a CN-TAG and the MSDU of a CNM.
pub const HEAD_BYTES: usize = 12 + 3 * TAG_BYTES + MSDU_BYTES_MAX;

/// The settings of a congestion responder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponderConfig {
    /// The MAC of its switch, which CNMs come from.
    pub mac: MacAddr,
    /// The port whose queue it watches.
    pub egress: PortNo,
    /// Q_EQ, the weight of growth, and what a CNM has. How often a source marks is the source's.
    pub point: CpConfig,
    /// The priority of CNMs.
    pub cnm_priority: Priority,
    /// The name of the congestion point, `cnCpid`, 8 bytes.
    pub cpid: u64,
}

/// A congestion responder.
#[derive(Debug)]
pub struct CongestionResponder {
    config: ResponderConfig,
    /// The queue at the last sample.
    queue_old: Bytes,
    samples: u64,
    cnms: u64,
    unread: u64,
    no_room: u64,
    other: u64,
}

impl CongestionResponder {
    /// A responder that has seen an empty queue.
    ///
    /// # Errors
    /// A value of `point` outside its range.
    pub fn new(config: ResponderConfig) -> Result<CongestionResponder, CpError> {
        config.point.check()?;
        Ok(CongestionResponder {
            config,
            queue_old: Bytes(0),
            samples: 0,
            cnms: 0,
            unread: 0,
            no_room: 0,
            other: 0,
        })
    }

    /// The answer to a marked frame.
    fn sample(&mut self, head: &[u8], queue: Bytes) -> Option<CnmFrame> {
        let ResponderConfig { mac, point, cnm_priority, cpid, .. } = &self.config;
        let sampled = Tagged::parse(head)?;
        // Nobody is answered who would not listen.
        if cn::is_cnm(head) || sampled.source.is_multicast() {
            return None;
        }
        self.samples += 1;
        let before = core::mem::replace(&mut self.queue_old, queue);
        let feedback = point.quantized(queue, before);
        if feedback == 0 {
            return None;
        }
        let cnm = Cnm {
            feedback,
            cpid: *cpid,
            offset: point.format.offset(point.set_point, queue),
            delta: point.format.delta(queue, before),
            ..Cnm::default()
        };
        let octets = usize::from(point.header_octets_min);
        Some(CnmFrame::answer(&sampled, *mac, *cnm_priority, cnm, octets, &point.format))
    }
}

impl Agent for CongestionResponder {
    fn handle(&mut self, _: Time, event: Event<'_>, out: &mut dyn Outbox) {
        let handle = match event {
            Event::Packet(packet) => packet.handle,
            Event::Payload { handle, .. } => handle,
            Event::Timeout => return,
        };
        let queue = out.queue_bytes(self.config.egress);
        let before = self.samples;
        let answer = match (queue, out.head(handle)) {
            (Some(queue), Some(head)) => self.sample(head, Bytes(queue)),
            (None, _) => {
                self.unread += 1;
                None
            }
            (_, None) => None,
        };
        self.other += u64::from(queue.is_some() && self.samples == before);
        if let Some(answer) = answer {
            match out.send(&answer.emit(&self.config.point.format)) {
                Ok(()) => self.cnms += 1,
                Err(_) => self.no_room += 1,
            }
        }
        out.drop(handle);
    }

    fn counters(&self) -> Counters {
        Counters::from([
            ("cnms", self.cnms),
            ("no_room", self.no_room),
            ("other", self.other),
            ("samples", self.samples),
            ("unread", self.unread),
        ])
    }
}
