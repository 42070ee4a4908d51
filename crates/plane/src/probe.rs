//! The probe units of a switch (thesis 000 §3.2.2): one at every ingress, one at every egress.
//!
//! A unit that sees a probe with its option bit set appends one record to the frame: the time,
//! the port, and at an egress the bytes that wait there. The ingress unit acts when the plane
//! gets the frame, the egress unit when the plane gives it to the wire, so what lies between
//! is the time in the buffer. [`ProbeUnits`] moves both to where the frame enters and leaves
//! the whole device.

use crate::ports::FrameMeta;
use axon_wire::probe::{self, ProbeOptions, ProbeRecord, ProbeUnit};
use axon_wire::{Bytes, PortNo, Span, Time};

/// Where the units of a device stand, as time from the plane.
///
/// A switch takes time for its work, which the body adds around the plane: pipeline stages
/// before the plane sees a frame and stages between the plane and the wire. A unit at the
/// port sees the frame so much earlier, or later. All zero puts the units beside the plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeUnits {
    /// From the ingress unit to the plane.
    pub ingress: Span,
    /// The same, for each byte of the frame.
    pub ingress_per_byte: Span,
    /// From the plane to the egress unit.
    pub egress: Span,
    /// The same, for each byte of the frame as it leaves.
    pub egress_per_byte: Span,
}

impl ProbeUnits {
    /// When the unit saw a frame of `bytes` bytes that the plane has at `now`; not before the
    /// beginning of time.
    pub fn time(&self, unit: ProbeUnit, now: Time, bytes: usize) -> Time {
        let bytes = bytes as u64;
        match unit {
            ProbeUnit::Ingress => {
                let before = self.ingress + self.ingress_per_byte * bytes;
                Time::from_ticks(now.ticks().saturating_sub(before.ticks()))
            }
            ProbeUnit::Egress => now + (self.egress + self.egress_per_byte * bytes),
        }
    }
}

/// Appends the record of `unit`, if the probe asks for it. Says whether there was room: a
/// frame never grows beyond `bytes_max` bytes.
#[cold]
pub(crate) fn stamp(
    meta: &mut FrameMeta,
    (unit, port): (ProbeUnit, PortNo),
    (time, queued): (Time, Bytes),
    bytes_max: usize,
) -> bool {
    let Some(head) = meta.probe_at() else { return true };
    let options = probe::options_at(meta.frame.bytes(), head);
    let asked = match unit {
        ProbeUnit::Ingress => options.has(ProbeOptions::INGRESS),
        ProbeUnit::Egress => options.has(ProbeOptions::EGRESS),
    };
    if !asked {
        return true;
    }
    if meta.frame.length() + probe::RECORD_BYTES > bytes_max {
        return false;
    }
    let with_queued = unit == ProbeUnit::Egress && options.has(ProbeOptions::QUEUED);
    let queued = if with_queued { queued } else { Bytes(0) };
    probe::append(&mut meta.frame, &ProbeRecord { unit, port, queued, time }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stand_at_the_ports_of_the_device() {
        let span = Span::from_nanos;
        let units = ProbeUnits {
            ingress: span(100),
            ingress_per_byte: span(1),
            egress: span(20),
            egress_per_byte: span(2),
        };
        let at = Time::from_nanos;
        assert_eq!(units.time(ProbeUnit::Ingress, at(1000), 64), at(836));
        assert_eq!(units.time(ProbeUnit::Egress, at(1000), 64), at(1148));
        assert_eq!(units.time(ProbeUnit::Ingress, at(10), 64), Time::ZERO);
        assert_eq!(ProbeUnits::default().time(ProbeUnit::Egress, at(10), 64), at(10));
    }
}
