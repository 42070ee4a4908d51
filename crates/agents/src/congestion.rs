//! Congestion responder: QCN's congestion point in software (paper 004, section 5.2; IEEE 802.1Q
//! clause 30.2.1).
//!
//! The switching chip cannot sample by queue length. Instead, the source marks frames, and marks
//! more of them the worse the congestion is. The chip mirrors the marked frames to its CPU. The
//! agent reads the queue length, computes the feedback from that and from the length at the last
//! marked frame, and sends it to the source of the frame. The mirrored copy is dropped.
//!
//! The feedback is that of the plane's congestion point. Only the sampling differs.

use crate::agent::{Agent, Counters, Event, Outbox};
use axon_plane::qcn::{CpConfig, CpError};
use axon_wire::cn::{self, Cnm, CnmFrame, MSDU_BYTES_MAX, Tagged};
use axon_wire::vlan::TAG_BYTES;
use axon_wire::{Bytes, MacAddr, PortNo, Priority, Time};

/// Required head length of a responder, in bytes: the addresses, two tags, a CN-TAG and the MSDU of
/// a CNM.
pub const HEAD_BYTES: usize = 12 + 3 * TAG_BYTES + MSDU_BYTES_MAX;

/// Configuration of a congestion responder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponderConfig {
    /// MAC address of the switch, which is the source address of CNMs.
    pub mac: MacAddr,
    /// Port of the observed queue.
    pub egress: PortNo,
    /// Q_EQ, the weight of growth, and the contents of a CNM. The source of the frames controls the
    /// sampling.
    pub point: CpConfig,
    /// Priority of CNMs.
    pub cnm_priority: Priority,
    /// Name of the congestion point, `cnCpid`, 8 bytes.
    pub cpid: u64,
}

/// Congestion responder.
#[derive(Debug)]
pub struct CongestionResponder {
    config: ResponderConfig,
    /// Queue length at the last sample.
    queue_old: Bytes,
    samples: u64,
    cnms: u64,
    unread: u64,
    no_room: u64,
    other: u64,
}

impl CongestionResponder {
    /// Creates a responder with an empty last sample.
    ///
    /// # Errors
    /// A value of `point` is out of range.
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

    /// Returns the CNM that answers a marked frame, if any.
    fn sample(&mut self, head: &[u8], queue: Bytes) -> Option<CnmFrame> {
        let ResponderConfig { mac, point, cnm_priority, cpid, .. } = &self.config;
        let sampled = Tagged::parse(head)?;
        // CNMs and frames with a multicast source get no notification.
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
