//! Records of probes (thesis 000 §3.2.2).

use crate::config::PlaneConfig;
use axon_wire::header::{HeaderView, HopWidth, PacketType};
use axon_wire::probe::{self, ProbeOptions, ProbeRecord, ProbeUnit, RECORD_BYTES};
use axon_wire::{Bytes, FrameBuf, PortNo, Time};

/// Returns the byte offset of the head of a probe in a packet; `None` if the packet is not a probe.
pub(super) fn head_of(packet: &[u8], width: HopWidth) -> Option<usize> {
    let view = HeaderView::parse(packet, width).ok()?;
    (view.packet_type() == PacketType::Probe).then_some(view.header_bytes())
}

/// Appends the record of `unit` at `port`, which sees the frame at `now`, if the probe whose head
/// is at byte `head` requests it; returns whether there was room. `queued` is queued at the port.
pub(super) fn stamp(
    config: &PlaneConfig,
    (frame, head): (&mut FrameBuf, usize),
    (unit, port): (ProbeUnit, PortNo),
    (now, queued): (Time, Bytes),
) -> bool {
    let options = probe::options_at(frame.bytes(), head);
    let (asked, queued) = match unit {
        ProbeUnit::Ingress => (options.has(ProbeOptions::INGRESS), Bytes(0)),
        ProbeUnit::Egress if options.has(ProbeOptions::QUEUED) => {
            (options.has(ProbeOptions::EGRESS), queued)
        }
        ProbeUnit::Egress => (options.has(ProbeOptions::EGRESS), Bytes(0)),
    };
    let bytes = frame.bytes().len();
    let time = config.probe_units.time(unit, now, bytes);
    let fits = bytes + RECORD_BYTES <= config.probe_bytes_max();
    !asked || fits && probe::append(frame, &ProbeRecord { unit, port, queued, time }).is_ok()
}
