//! The probe units of a switch (thesis 000 §3.2.2): one at every ingress, one at every egress.
//!
//! A unit that sees a probe with its option bit set appends one record to the frame: the time, the
//! port, and at an egress the bytes queued there. The ingress unit acts when the plane receives the
//! frame, the egress unit when the plane gives it to the wire, so the difference is the time in the
//! buffer. [`ProbeUnits`] moves both to where the frame enters and leaves the whole device.

use crate::ports::FrameMeta;
use axon_wire::probe::{self, ProbeOptions, ProbeRecord, ProbeUnit};
use axon_wire::{Bytes, PortNo, Span, Time};

/// Position of the probe units of a device, as time from the plane.
///
/// The runtime adds the processing time of a switch around the plane: pipeline stages before the
/// plane and stages between the plane and the wire. A unit at the port sees the frame that much
/// earlier or later. All zero places the units beside the plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeUnits {
    /// Time from the ingress unit to the plane.
    pub ingress: Span,
    /// Additional time from the ingress unit to the plane, per byte of the frame.
    pub ingress_per_byte: Span,
    /// Time from the plane to the egress unit.
    pub egress: Span,
    /// Additional time from the plane to the egress unit, per byte of the frame as it leaves.
    pub egress_per_byte: Span,
}

impl ProbeUnits {
    /// Returns the time at which the unit sees a frame of `bytes` bytes that the plane has at
    /// `now`; at least time zero.
    pub(crate) fn time(&self, unit: ProbeUnit, now: Time, bytes: usize) -> Time {
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

/// The probe units of one switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeStamps {
    units: ProbeUnits,
    /// Maximum length of a probe with its records, in bytes.
    bytes_max: usize,
}

impl Default for ProbeStamps {
    fn default() -> ProbeStamps {
        ProbeStamps::new(ProbeUnits::default(), usize::MAX)
    }
}

impl ProbeStamps {
    /// Returns units at this position, for probes of at most `bytes_max` bytes with their records.
    pub(crate) fn new(units: ProbeUnits, bytes_max: usize) -> ProbeStamps {
        ProbeStamps { units, bytes_max }
    }

    /// Appends the record of `unit` at `port`, where `queued` bytes are queued, if the probe
    /// requests it. Returns whether there was room.
    #[cold]
    pub(crate) fn stamp(
        &self,
        meta: &mut FrameMeta,
        (unit, port): (ProbeUnit, PortNo),
        (now, queued): (Time, Bytes),
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
        if meta.frame.length() + probe::RECORD_BYTES > self.bytes_max {
            return false;
        }
        let with_queued = unit == ProbeUnit::Egress && options.has(ProbeOptions::QUEUED);
        let queued = if with_queued { queued } else { Bytes(0) };
        let time = self.units.time(unit, now, meta.frame.length());
        probe::append(&mut meta.frame, &ProbeRecord { unit, port, queued, time }).is_ok()
    }
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
