//! Congestion point: detection and quantification of congestion (IEEE 802.1Q clause 30.2.1).

use super::jittered;
use axon_node::random::Random;
use axon_wire::Bytes;
use axon_wire::cn::{CnmFormat, FEEDBACK_MAX, MSDU_BYTES_MAX};

/// Fractional bits of the feedback: enough for the smallest weight, 2^-10, so that no weight causes
/// rounding.
const FRACTION_BITS: u32 = 10;
/// Sampling interval by the three high bits of `QntzFb`, in tenths of a kilobyte where the base is
/// 150 kilobytes: about the base divided by 1 to 8.
const INTERVALS: [u16; 8] = [1500, 750, 500, 375, 300, 250, 215, 185];

/// MIB variables of a congestion point (IEEE8021-CN-MIB, `ieee8021CnCpTable`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpConfig {
    /// `cpQueueSizeSetPoint`, Q_EQ: target length of the queue, at least 100 bytes.
    pub set_point: Bytes,
    /// `cpFeedbackWeight`: weight of the queue's growth relative to its length, as a power of two,
    /// -10..=10.
    pub weight_log2: i8,
    /// `cpMinSampleBase`: bytes between two samples of a queue that is not too full, at least
    /// 10,000.
    pub sample_base: Bytes,
    /// `cpMinHeaderOctets`: bytes of a sampled frame's MSDU that a CNM carries, at most 64.
    pub header_octets_min: u8,
    /// Fraction of the base between two samples, by the three high bits of the last `QntzFb`, in
    /// 1/1500.
    pub intervals: [u16; 8],
    /// Interpretations on which sources disagree.
    pub interpretations: CpInterpretations,
    /// CNM format, which determines unit and sign of the queue fields.
    pub format: CnmFormat,
}

/// Interpretations of the congestion point on which sources disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpInterpretations {
    /// Bytes of a kilobyte in `sample_base`: 1000, as the MIB's 150,000 bytes for 150 KB suggest,
    /// or 1024, as in a public Linux queue discipline.
    pub kilobyte: u16,
    /// Rounding of the feedback to six bits.
    pub rounding: Rounding,
}

/// Rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Down.
    Down,
    /// To the nearest, a half up.
    Nearest,
    /// Up: any excess is signalled.
    Up,
}

/// Errors in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpError {
    /// A set point below the MIB's minimum.
    #[error("a set point of {} bytes, where 100 is the least", .0.0)]
    SetPoint(Bytes),
    /// A weight outside the MIB's range.
    #[error("a feedback weight of 2^{0}, where -10 to 10 is the range")]
    Weight(i8),
    /// A sample base below the MIB's minimum.
    #[error("a sample base of {} bytes, where 10000 is the least", .0.0)]
    SampleBase(Bytes),
    /// More header octets than a CNM holds.
    #[error("{0} octets of the sampled frame, where 64 is the most")]
    HeaderOctets(u8),
    /// An interval of zero, which would sample every frame without end.
    #[error("a sampling interval of zero")]
    Interval,
    /// A kilobyte of neither 1000 nor 1024 bytes.
    #[error("a kilobyte of {0} bytes, where it is 1000 or 1024")]
    Kilobyte(u16),
}

/// Queue fields of a CNM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// `QntzFb`, 1..=63: the quantized feedback.
    pub qntz_fb: u8,
    /// `cnmQOffset`: deviation of the length from the set point, in the configured unit and sign;
    /// saturates.
    pub offset: i16,
    /// `cnmQDelta`: growth of the queue since the last sample, in the configured unit; saturates.
    pub delta: i16,
}

impl Default for CpInterpretations {
    fn default() -> CpInterpretations {
        CpInterpretations { kilobyte: 1000, rounding: Rounding::Down }
    }
}

impl Default for CpConfig {
    fn default() -> CpConfig {
        CpConfig {
            set_point: Bytes(26_000),
            weight_log2: 1,
            sample_base: Bytes(150_000),
            header_octets_min: 0,
            intervals: INTERVALS,
            interpretations: CpInterpretations::default(),
            format: CnmFormat::default(),
        }
    }
}

impl CpConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn check(&self) -> Result<(), CpError> {
        let kilobyte = self.interpretations.kilobyte;
        if self.set_point < Bytes(100) {
            return Err(CpError::SetPoint(self.set_point));
        }
        if !(-10..=10).contains(&self.weight_log2) {
            return Err(CpError::Weight(self.weight_log2));
        }
        if self.sample_base < Bytes(10_000) {
            return Err(CpError::SampleBase(self.sample_base));
        }
        if usize::from(self.header_octets_min) > MSDU_BYTES_MAX {
            return Err(CpError::HeaderOctets(self.header_octets_min));
        }
        if self.intervals.contains(&0) {
            return Err(CpError::Interval);
        }
        if ![1000, 1024].contains(&kilobyte) {
            return Err(CpError::Kilobyte(kilobyte));
        }
        Ok(())
    }

    /// Returns the feedback of a queue that has grown from `queue_old` to `queue`: `QntzFb`,
    /// 0..=63.
    ///
    /// `Fb = (set point - length) - w * growth` is clamped to the range from minus full scale, `set
    /// point * (2w + 1)`, to zero; the result is that range in 63 steps. So a queue that is too
    /// long but shrinks may cause no feedback, and one that is short but grows may cause some.
    pub fn quantized(&self, queue: Bytes, queue_old: Bytes) -> u8 {
        let one = 1i128 << FRACTION_BITS;
        let weight = 1i128 << (FRACTION_BITS as i32 + i32::from(self.weight_log2));
        let set_point = i128::from(self.set_point.0);
        let (queue, queue_old) = (i128::from(queue.0), i128::from(queue_old.0));
        let scale = set_point * (2 * weight + one);
        let excess = ((queue - set_point) * one + (queue - queue_old) * weight).clamp(0, scale);
        let parts = excess * i128::from(FEEDBACK_MAX);
        let rounded = match self.interpretations.rounding {
            Rounding::Down => parts / scale,
            Rounding::Nearest => (parts + scale / 2) / scale,
            Rounding::Up => (parts + scale - 1) / scale,
        };
        rounded as u8
    }

    /// Returns the bytes between two samples after `qntz_fb`, before jitter.
    pub fn interval(&self, qntz_fb: u8) -> Bytes {
        let part = self.intervals[usize::from(qntz_fb.min(FEEDBACK_MAX) >> 3)];
        let bytes = u128::from(self.sample_base.0)
            * u128::from(part)
            * u128::from(self.interpretations.kilobyte)
            / (1_500 * 1_000);
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// Congestion point of one queue: of one port and one congestion-controlled class.
///
/// It counts the bytes that join the queue down from an interval. The frame that brings the count
/// below zero is the sample: the lengths of the queue now and at the last sample give the feedback,
/// and the feedback gives the next interval, shorter for stronger feedback. Jitter prevents
/// synchronisation with the traffic. Feedback above zero is sent as a CNM to the source of the
/// sampled frame. The count starts with the longest interval.
#[derive(Clone, Debug)]
pub struct CongestionPoint {
    config: CpConfig,
    /// Bytes left until the next sample.
    to_mark: u64,
    queue_old: Bytes,
    random: Random,
    samples: u64,
    cnms: u64,
}

impl CongestionPoint {
    /// Returns the congestion point of an empty queue; `seed` fixes the jitter.
    ///
    /// # Errors
    /// A configuration that [`CpConfig::check`] refuses.
    pub fn new(config: CpConfig, seed: u64) -> Result<CongestionPoint, CpError> {
        config.check()?;
        let mut random = Random::new(seed);
        let to_mark = jittered(config.interval(0).0, &mut random);
        Ok(CongestionPoint { config, to_mark, queue_old: Bytes(0), random, samples: 0, cnms: 0 })
    }

    /// Records that a frame of `frame` bytes has joined the queue, which now holds `queue` bytes.
    /// Returns the feedback of a CNM to the frame's source, if one is due.
    ///
    /// Whether lengths include the FCS or preamble and gap is the caller's choice, the same for
    /// both. CNMs themselves, and frames from group addresses, should not be passed: their senders
    /// cannot react.
    #[inline]
    pub fn enqueued(&mut self, frame: Bytes, queue: Bytes) -> Option<Feedback> {
        match self.to_mark.checked_sub(frame.0) {
            Some(left) => {
                self.to_mark = left;
                None
            }
            None => self.sample(queue),
        }
    }

    fn sample(&mut self, queue: Bytes) -> Option<Feedback> {
        self.samples = self.samples.saturating_add(1);
        let qntz_fb = self.config.quantized(queue, self.queue_old);
        let offset = self.config.format.offset(self.config.set_point, queue);
        let delta = self.config.format.delta(queue, self.queue_old);
        self.queue_old = queue;
        self.to_mark = jittered(self.config.interval(qntz_fb).0, &mut self.random);
        if qntz_fb == 0 {
            return None;
        }
        self.cnms = self.cnms.saturating_add(1);
        Some(Feedback { qntz_fb, offset, delta })
    }

    /// Returns the number of sampled frames, including those without a CNM.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns `cpTransmittedCnms`, the number of CNMs requested.
    #[cfg(test)]
    pub(crate) fn cnms(&self) -> u64 {
        self.cnms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cp() -> CpConfig {
        CpConfig::default()
    }

    fn interpreted(change: impl Fn(&mut CpInterpretations)) -> CpConfig {
        let mut config = cp();
        change(&mut config.interpretations);
        config
    }

    #[test]
    fn feedback_is_what_the_reference_vectors_say() {
        for (queue, queue_old, qntz_fb) in [
            (40_000, 30_000, 16),
            (30_000, 20_000, 11),
            (100_000, 60_000, 63),
            (26_001, 26_000, 0),
            (20_000, 10_000, 6),
            (30_000, 40_000, 0),
        ] {
            assert_eq!(cp().quantized(Bytes(queue), Bytes(queue_old)), qntz_fb, "{queue}");
        }
    }

    #[test]
    fn rounding_is_as_configured() {
        let quantized = |rounding| {
            let config = interpreted(|of| of.rounding = rounding);
            [(30_000, 20_000), (26_001, 26_000), (156_000, 0), (10_000, 10_000)]
                .map(|(queue, old)| config.quantized(Bytes(queue), Bytes(old)))
        };
        assert_eq!(quantized(Rounding::Down), [11, 0, 63, 0]);
        assert_eq!(quantized(Rounding::Nearest), [12, 0, 63, 0]);
        assert_eq!(quantized(Rounding::Up), [12, 1, 63, 0]);
    }

    #[test]
    fn the_weight_is_a_power_of_two_on_both_sides_of_one() {
        let quantized =
            |weight_log2| CpConfig { weight_log2, ..cp() }.quantized(Bytes(40_000), Bytes(30_000));
        assert_eq!(quantized(0), 19, "24,000 * 63 / (26,000 * 3)");
        assert_eq!(quantized(-10), 33, "(14,000 + 9.77) * 63 / (26,000 * (1 + 2/1024))");
        assert_eq!(quantized(10), 12, "(14,000 + 10,240,000) * 63 / (26,000 * 2049)");
    }

    #[test]
    fn intervals_are_the_published_ones_for_both_kilobytes() {
        let all = |config: CpConfig| [0, 8, 16, 24, 32, 40, 48, 63].map(|q| config.interval(q).0);
        let thousand = [150_000, 75_000, 50_000, 37_500, 30_000, 25_000, 21_500, 18_500];
        assert_eq!(all(cp()), thousand);
        let binary = [153_600, 76_800, 51_200, 38_400, 30_720, 25_600, 22_016, 18_944];
        assert_eq!(all(interpreted(|of| of.kilobyte = 1024)), binary);
    }

    #[test]
    fn a_queue_is_sampled_by_the_interval_and_more_often_when_it_is_too_long() {
        for (queue, interval) in
            [(1_000, 150_000), (40_000, 150_000), (60_000, 50_000), (1_000_000, 18_500)]
        {
            let mut point = CongestionPoint::new(cp(), 7).unwrap();
            let mut gaps = alloc::vec::Vec::new();
            let mut since = 0;
            for _ in 0..20_000 {
                since += 100;
                let old = point.to_mark;
                point.enqueued(Bytes(100), Bytes(queue));
                if point.to_mark > old {
                    gaps.push(core::mem::take(&mut since));
                }
            }
            assert_eq!(point.samples(), gaps.len() as u64, "each is counted, with a CNM or not");
            // The first sample sees growth from zero, the others a constant queue.
            let range = interval * 85 / 100..=interval * 115 / 100 + 100;
            assert!(gaps[2..].iter().all(|gap| range.contains(gap)), "{queue}: {gaps:?}");
        }
    }

    #[test]
    fn offset_and_delta_are_in_the_configured_format() {
        let after = |format: CnmFormat| {
            let config = CpConfig { sample_base: Bytes(10_000), format, ..cp() };
            let mut point = CongestionPoint::new(config, 1).unwrap();
            point.enqueued(Bytes(20_000), Bytes(30_000));
            point.enqueued(Bytes(20_000), Bytes(40_000)).unwrap()
        };
        let standard = Feedback { qntz_fb: 16, offset: -218, delta: 156 };
        assert_eq!(after(CnmFormat::default()), standard);
        let bytes = CnmFormat {
            offset_falls_with_queue: false,
            queue_in_units: false,
            ..CnmFormat::default()
        };
        assert_eq!(after(bytes), Feedback { offset: 14_000, delta: 10_000, ..standard });
    }

    #[test]
    fn values_outside_their_ranges_are_refused() {
        let refused = |config: CpConfig| CongestionPoint::new(config, 0).unwrap_err();
        let short = CpConfig { set_point: Bytes(99), ..cp() };
        assert_eq!(refused(short), CpError::SetPoint(Bytes(99)));
        assert_eq!(refused(CpConfig { weight_log2: 11, ..cp() }), CpError::Weight(11));
        assert_eq!(refused(CpConfig { weight_log2: -11, ..cp() }), CpError::Weight(-11));
        let often = CpConfig { sample_base: Bytes(9_999), ..cp() };
        assert_eq!(refused(often), CpError::SampleBase(Bytes(9_999)));
        let much = CpConfig { header_octets_min: 65, ..cp() };
        assert_eq!(refused(much), CpError::HeaderOctets(65));
        assert_eq!(refused(CpConfig { intervals: [0; 8], ..cp() }), CpError::Interval);
        let kilobyte = interpreted(|of| of.kilobyte = 1_023);
        assert_eq!(refused(kilobyte), CpError::Kilobyte(1_023));
    }

    proptest! {
        #[test]
        fn any_queue_gives_values_in_range_and_more_queue_never_less_feedback(
            set_point in 100u64..=u64::MAX, weight_log2 in -10i8..=10,
            queue: u64, queue_old: u64, more: u64,
        ) {
            let config = CpConfig { set_point: Bytes(set_point), weight_log2, ..cp() };
            let qntz_fb = config.quantized(Bytes(queue), Bytes(queue_old));
            let longer = config.quantized(Bytes(queue.saturating_add(more)), Bytes(queue_old));
            prop_assert!(qntz_fb <= FEEDBACK_MAX && qntz_fb <= longer);
        }

        #[test]
        fn any_frames_and_lengths_are_taken(
            frames in prop::collection::vec(any::<(u64, u64)>(), 1..50),
        ) {
            let mut point = CongestionPoint::new(cp(), 3).unwrap();
            let mut cnms = 0;
            for (frame, queue) in frames {
                if let Some(feedback) = point.enqueued(Bytes(frame), Bytes(queue)) {
                    prop_assert!((1..=FEEDBACK_MAX).contains(&feedback.qntz_fb));
                    let short = queue <= 26_000 + 63;
                    prop_assert_eq!(feedback.offset >= 0, short);
                    let far = i128::from(queue) > 26_000 + 64 * 32_768;
                    prop_assert!(!far || feedback.offset == i16::MIN);
                    cnms += 1;
                }
            }
            prop_assert_eq!(point.cnms(), cnms);
        }
    }
}
