//! Quantized congestion notification (IEEE 802.1Qau; IEEE 802.1Q clauses 30 to 33).
//!
//! A [`CongestionPoint`] watches one queue, samples the frames that join it and says, by a
//! number of six bits, how much too full it is or becomes. A [`ReactionPoint`] in the station
//! that sent the sampled frame cuts its rate by that number and finds its way up again by
//! itself, for there is no message that says "faster". A [`RateLimiter`] keeps a flow to the
//! rate of its reaction point. [`Defences`] decide, port by port and priority by priority,
//! whether the neighbour belongs to the domain in which all this holds.
//!
//! All of it is integers: rates in bits per second, lengths in bytes, times in ticks. Time is
//! an argument, random numbers come from generators with an explicit seed, and nothing here
//! reads or writes a frame: the bytes of CNM and CN-TAG are in [`axon_wire::cn`].
//!
//! Where sources disagree on what the standard says, the reading is a field of the
//! configuration, and the default is what IEEE's MIB module or most sources say.

mod defence;
mod limiter;
mod point;
mod reaction;

pub use defence::{
    Choice, DefenceConfig, DefenceError, DefenceMode, Defences, InputPriority, Said, Several,
    Treatment,
};
pub use limiter::{RateLimiter, TokenBucket};
pub use point::{CongestionPoint, CpConfig, CpError, CpReadings, Feedback, Rounding};
pub use reaction::{HalfPeriod, Increase, ReactionPoint, RpConfig, RpError, RpReadings};

use crate::random::Random;

/// `value` times an even draw from 0.85 up to 1.15, rounded down: the jitter that keeps
/// sampling intervals and recovery cycles of different queues and flows from marching in
/// step. Saturates.
fn jittered(value: u64, random: &mut Random) -> u64 {
    let spread = (u128::from(value) * 30 * u128::from(random.next_u32())) >> 32;
    let hundredths = u128::from(value) * 85 + spread;
    u64::try_from(hundredths / 100).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_within_fifteen_percent_and_is_even() {
        let mut random = Random::new(1);
        let draws: alloc::vec::Vec<u64> =
            (0..10_000).map(|_| jittered(100_000, &mut random)).collect();
        assert!(draws.iter().all(|draw| (85_000..=115_000).contains(draw)));
        let mean = draws.iter().sum::<u64>() / 10_000;
        assert!((99_500..=100_500).contains(&mean), "{mean}");
        let below = draws.iter().filter(|draw| **draw < 92_500).count();
        assert!((2_300..=2_700).contains(&below), "{below} in the lowest quarter");
        assert!(jittered(u64::MAX, &mut random) >= u64::MAX / 100 * 85);
    }
}
