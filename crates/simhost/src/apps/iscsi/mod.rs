//! iSCSI (RFC 7143): an initiator that keeps several commands outstanding, and a target with an
//! in-memory disk.
//!
//! Both ends exchange protocol data units (PDUs) on one TCP connection, each a header of 48 bytes
//! and data. A read is a command, answered by Data-In PDUs; the last of them carries the status. A
//! write is a command with the first part of its data (immediate data). The target then requests
//! one burst after another (R2T, ready to transfer), the initiator sends each as Data-Out PDUs, and
//! a response ends the command. Each end has one processor. A PDU costs it a fixed time and its
//! data the time of a copy, and nothing more is read from the socket until that is done. So data
//! that is not drained stays in TCP's window, not in the application.
//!
//! Login, digests, error recovery, and the sequence numbers that they need are not implemented.

mod exchange;
mod initiator;
mod pdu;
mod target;

pub use initiator::InitiatorPlan;
pub use target::TargetPlan;

pub(crate) use initiator::Initiator;
pub(crate) use target::Target;

use axon_wire::{Bytes, Rate, Span, Time};

/// Limits negotiated at login (RFC 7143 clause 13), in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IscsiLimits {
    /// Maximum data of one PDU (MaxRecvDataSegmentLength of both ends).
    pub segment: u32,
    /// Maximum data of a write before the first R2T (FirstBurstLength). It is sent as immediate
    /// data, so it is limited to one segment. Zero disables immediate data.
    pub first_burst: u32,
    /// Maximum data of one R2T (MaxBurstLength).
    pub burst: u32,
}

impl Default for IscsiLimits {
    /// Returns the defaults of RFC 7143: 8 KiB, 64 KiB, 256 KiB.
    fn default() -> IscsiLimits {
        IscsiLimits { segment: 8 << 10, first_burst: 64 << 10, burst: 256 << 10 }
    }
}

impl IscsiLimits {
    /// Returns the immediate data of a write of `length` bytes.
    fn immediate(&self, length: u32) -> u32 {
        length.min(self.first_burst).min(self.segment)
    }

    /// Returns the data length of each PDU that together carry `length` bytes.
    fn segments(&self, length: u32) -> impl Iterator<Item = u32> {
        let segment = self.segment.max(1);
        (0..length).step_by(segment as usize).map(move |at| segment.min(length - at))
    }
}

/// Processor cost of iSCSI at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// Time for each PDU sent or received.
    pub per_pdu: Span,
    /// Rate at which PDU data is copied; `None` copies in zero time.
    pub copy: Option<Rate>,
}

/// Processor state.
#[derive(Debug)]
struct Work {
    processor: Processor,
    free_at: Time,
}

impl Work {
    fn new(processor: Processor) -> Work {
        Work { processor, free_at: Time::ZERO }
    }

    /// Returns whether the processor is free at this time.
    fn is_free(&self, now: Time) -> bool {
        self.free_at <= now
    }

    /// Adds the work of `pdus` PDUs and `bytes` bytes of data.
    fn take(&mut self, now: Time, pdus: u64, bytes: u64) {
        let copy = self.processor.copy.map_or(Span::ZERO, |rate| rate.time_for(Bytes(bytes)));
        self.free_at = self.free_at.max(now) + self.processor.per_pdu * pdus + copy;
    }

    /// Returns when the processor becomes free, if it is busy.
    fn due(&self, now: Time) -> Option<Time> {
        (!self.is_free(now)).then_some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_cut_into_segments_and_a_write_begins_with_no_more_than_one() {
        let limits = IscsiLimits { segment: 8192, first_burst: 65536, burst: 262_144 };
        let segments: Vec<u32> = limits.segments(20_000).collect();
        assert_eq!(segments, [8192, 8192, 3616]);
        assert_eq!(limits.segments(0).count(), 0);
        assert_eq!([100, 1 << 20].map(|length| limits.immediate(length)), [100, 8192]);
        let none = IscsiLimits { first_burst: 0, ..limits };
        assert_eq!(none.immediate(1 << 20), 0);
    }

    #[test]
    fn a_processor_works_on_one_thing_after_the_other() {
        let processor = Processor { per_pdu: Span::from_micros(10), copy: Some(Rate::mbps(8)) };
        let mut work = Work::new(processor);
        work.take(Time::ZERO, 1, 5);
        assert_eq!(work.due(Time::ZERO), Some(Time::from_nanos(15_000)), "a byte takes 1 us");
        work.take(Time::from_nanos(1_000), 0, 5);
        assert_eq!(work.free_at, Time::from_nanos(20_000));
        assert!(work.is_free(Time::from_nanos(20_000)));
    }
}
