//! Time, time spans, rates and byte counts, all as integers.
//!
//! One tick is 10 ps. It divides the time of one byte on every Ethernet from 1 Gb/s (800 ticks) to
//! 800 Gb/s (1 tick), and 64 bits of ticks last 5.8 years.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use serde::{Deserialize, Serialize};

/// Ticks of 10 ps in one nanosecond.
const TICKS_PER_NANO: u64 = 100;
/// Ticks of 10 ps in one second.
const TICKS_PER_SECOND: u64 = 100_000_000_000;

/// Point in time: 10 ps ticks since the runtime's start, never wall-clock time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(u64);

/// Length of time, in ticks of 10 ps.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Span(u64);

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Bytes(pub u64);

/// Bits per second, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Rate(u64);

/// Error: a rate of zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("0 bits per second, where more was expected")]
pub struct ZeroRate;

impl Time {
    /// The start of the runtime.
    pub const ZERO: Time = Time(0);
    /// The latest time that can be represented.
    pub const MAX: Time = Time(u64::MAX);

    /// Returns the time `nanos` nanoseconds after the start. Saturates at [`Time::MAX`].
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos.saturating_mul(TICKS_PER_NANO))
    }

    /// Returns the time `ticks` of 10 ps after the start.
    pub const fn from_ticks(ticks: u64) -> Time {
        Time(ticks)
    }

    /// Returns the ticks of 10 ps since the start.
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Returns the whole nanoseconds since the start, rounded down.
    pub const fn as_nanos(self) -> u64 {
        self.0 / TICKS_PER_NANO
    }

    /// Returns the whole microseconds since the start, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.as_nanos() / 1_000
    }

    /// Returns the time passed since `earlier`, or zero if `earlier` is in the future.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// The empty span.
    pub const ZERO: Span = Span(0);

    /// Returns a span of `ticks` of 10 ps.
    pub const fn from_ticks(ticks: u64) -> Span {
        Span(ticks)
    }

    /// Returns a span of `nanos` nanoseconds. Saturates.
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos.saturating_mul(TICKS_PER_NANO))
    }

    /// Returns a span of `micros` microseconds. Saturates.
    pub const fn from_micros(micros: u64) -> Span {
        Span::from_nanos(micros.saturating_mul(1_000))
    }

    /// Returns a span of `millis` milliseconds. Saturates.
    pub const fn from_millis(millis: u64) -> Span {
        Span::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// Returns a span of `seconds` seconds. Saturates.
    pub const fn from_secs(seconds: u64) -> Span {
        Span::from_nanos(seconds.saturating_mul(1_000_000_000))
    }

    /// Returns the ticks of 10 ps.
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Returns the whole nanoseconds, rounded down.
    pub const fn as_nanos(self) -> u64 {
        self.0 / TICKS_PER_NANO
    }

    /// Returns the whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.as_nanos() / 1_000_000
    }
}

impl Rate {
    /// 800 Gb/s, the highest rate at which a byte takes at least one tick: exactly one.
    pub const FASTEST: Rate = Rate::gbps(800);

    /// Returns the rate of `bits` bits per second, or `None` if it is zero.
    pub const fn from_bits_per_second(bits: u64) -> Option<Rate> {
        if bits == 0 { None } else { Some(Rate(bits)) }
    }

    /// Returns the rate of `megabits` million bits per second.
    ///
    /// # Panics
    /// If `megabits` is zero, or the product exceeds 64 bits. Use it for constants, not for input.
    pub const fn mbps(megabits: u64) -> Rate {
        assert!(megabits > 0);
        Rate(megabits * 1_000_000)
    }

    /// Returns the rate of `gigabits` thousand million bits per second.
    ///
    /// # Panics
    /// If `gigabits` is zero, or the product exceeds 64 bits. Use it for constants, not for input.
    pub const fn gbps(gigabits: u64) -> Rate {
        Rate::mbps(gigabits * 1_000)
    }

    /// Returns the bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the time that `bytes` take on the wire, rounded up to a whole tick. It is exact at
    /// every Ethernet rate from 1 Gb/s to 800 Gb/s. Saturates.
    pub const fn time_for(self, bytes: Bytes) -> Span {
        let ticks = (bytes.0 as u128 * 8 * TICKS_PER_SECOND as u128).div_ceil(self.0 as u128);
        Span(if ticks > u64::MAX as u128 { u64::MAX } else { ticks as u64 })
    }

    /// Returns the number of whole bytes sent in `span`, rounded down. Saturates.
    pub const fn bytes_in(self, span: Span) -> Bytes {
        let bytes = span.0 as u128 * self.0 as u128 / (8 * TICKS_PER_SECOND as u128);
        Bytes(if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 })
    }
}

impl TryFrom<u64> for Rate {
    type Error = ZeroRate;
    fn try_from(bits: u64) -> Result<Rate, ZeroRate> {
        Rate::from_bits_per_second(bits).ok_or(ZeroRate)
    }
}

impl From<Rate> for u64 {
    fn from(rate: Rate) -> u64 {
        rate.0
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        self.0 = self.0.saturating_sub(other.0);
    }
}

impl fmt::Display for Time {
    /// Formats seconds with nanoseconds: `1.000000250s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.as_nanos();
        write!(f, "{}.{:09}s", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

impl fmt::Display for Span {
    /// Formats the span exactly, in the largest unit that it reaches: `41.96us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let picos = u128::from(self.0) * 10;
        let units = [("s", 12), ("ms", 9), ("us", 6), ("ns", 3), ("ps", 0)];
        let fits = units.into_iter().find(|&(_, digits)| picos >= 10_u128.pow(digits));
        let Some((unit, digits)) = fits else { return f.write_str("0s") };
        let scale = 10_u128.pow(digits);
        write!(f, "{}", picos / scale)?;
        let (mut rest, mut width) = (picos % scale, digits as usize);
        while rest > 0 && rest.is_multiple_of(10) {
            (rest, width) = (rest / 10, width - 1);
        }
        if rest > 0 {
            write!(f, ".{rest:0width$}")?;
        }
        f.write_str(unit)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bits if bits % 1_000_000_000 == 0 => write!(f, "{} Gb/s", bits / 1_000_000_000),
            bits if bits % 1_000_000 == 0 => write!(f, "{} Mb/s", bits / 1_000_000),
            bits => write!(f, "{bits} b/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_shown_in_its_own_unit() {
        let shown = |ticks| alloc::format!("{}", Span::from_ticks(ticks));
        let known = [
            (0, "0s"),
            (1, "10ps"),
            (61_440, "614.4ns"),
            (4_196_000, "41.96us"),
            (335_539_200, "3.355392ms"),
            (100_000_000_001, "1.00000000001s"),
            (6_000_000_000_000, "60s"),
        ];
        for (ticks, text) in known {
            assert_eq!(shown(ticks), text);
        }
    }

    #[test]
    fn every_ethernet_byte_time_is_a_whole_number_of_ticks() {
        for (gigabits, ticks) in
            [(1, 800), (10, 80), (25, 32), (40, 20), (100, 8), (200, 4), (400, 2), (800, 1)]
        {
            assert_eq!(Rate::gbps(gigabits).time_for(Bytes(1)).ticks(), ticks);
        }
    }

    #[test]
    fn an_awkward_rate_rounds_up_and_never_runs_fast() {
        let rate = Rate::mbps(3);
        let span = rate.time_for(Bytes(1));
        assert_eq!(span.ticks(), 266_667);
        assert_eq!(rate.bytes_in(span), Bytes(1));
    }

    #[test]
    fn the_ends_of_time_saturate() {
        assert_eq!(Time::MAX + Span::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO - Span::from_secs(1), Time::ZERO);
        assert_eq!(Time::ZERO.since(Time::MAX), Span::ZERO);
        assert_eq!(Rate::mbps(1).time_for(Bytes(u64::MAX)), Span::from_ticks(u64::MAX));
    }
}
