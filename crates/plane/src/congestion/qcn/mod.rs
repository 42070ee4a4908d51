//! Quantized congestion notification (IEEE 802.1Qau; IEEE 802.1Q clauses 30 to 33).
//!
//! A [`CongestionPoint`] watches one queue, samples the frames that join it and computes a six-bit
//! feedback from its excess length and growth. A [`ReactionPoint`] in the station that sent the
//! sampled frame cuts its rate by that feedback and raises it again by itself, since there is no
//! message to speed up. A [`RateLimiter`] keeps a flow to the rate of its reaction point.
//! [`Defences`] determine, by port and priority, whether the neighbour belongs to the congestion
//! notification domain.
//!
//! All values are integers: rates in bits per second, lengths in bytes, times in ticks. Time is an
//! argument, random numbers come from generators with an explicit seed, and no frame is read or
//! written here: the bytes of CNM and CN-TAG are in [`axon_wire::cn`].
//!
//! Where sources disagree on the standard, the interpretation is a field of the configuration, and
//! the default follows IEEE's MIB module or most sources.
//!
//! # Behaviour of the control loop
//!
//! Mean queue length at 10 Gb/s in percent of the set point, for 1, 2, 8 and 32 sources that always
//! have 1500 bytes to send, with 20 us from a sample to the first frame that it slows down; and
//! Jain's index of 32 sources at 100 KB. Measured over one second, one second after a start at full
//! rate (`examples/qcn_survey.rs` prints this); link utilisation is above 99.9 % throughout.
//!
//! | changed from the MIB's defaults | 25 KB: 1 | 2 | 8 | 32 | 100 KB: 1 | 2 | 8 | 32 | Jain |
//! |---|---|---|---|---|---|---|---|---|---|
//! | nothing                   |  95 |  95 |  94 |  94 | 105 | 105 | 106 | 108 | 0.96 |
//! | rounding to the nearest   |  89 |  92 |  93 |  92 | 102 | 102 | 103 | 105 | 0.95 |
//! | w = 1                     |  95 |  97 |  96 |  83 | 103 | 102 | 103 | 104 | 0.94 |
//! | w = 4                     |  95 |  99 |  99 | 101 | 113 | 112 | 113 | 117 | 0.94 |
//! | sample base 75 KB         |  94 |  90 |  84 |  73 | 105 | 103 | 103 | 102 | 0.96 |
//! | sample base 300 KB        |  98 | 100 | 108 | 126 | 106 | 107 | 111 | 124 | 0.94 |
//! | gain 1/64                 |  87 |  90 |  89 |  82 | 103 | 104 | 105 | 106 | 0.94 |
//! | gain 1/256                | 101 |  98 |  98 | 102 | 106 | 106 | 107 | 111 | 0.88 |
//! | timer 1.5 ms              |  95 |  96 | 104 | 157 | 105 | 105 | 110 | 159 | 0.99 |
//! | timer 0.3 ms              |  95 | 104 | 149 | 392 |  98 | 118 | 157 | 395 | 1.00 |
//! | increase 50 and 500 Mb/s  |  98 | 100 | 106 | 109 | 107 | 109 | 113 | 120 | 0.88 |
//!
//! The defaults keep queues of 25 to 200 KB within a tenth, with 1 to 32 sources, 5 to 50 us, and
//! frames of 1500 bytes or of 64 to 1500. The remaining deviation has three causes:
//!
//! - **Step size of the feedback.** A queue of constant length causes CNMs only when it is too long
//!   by a whole step, `(2w + 1) / 63` of the set point if fractions are dropped: 8 % with w = 2, 14
//!   % with 4. Rounding to the nearest halves it.
//! - **Random growth.** A frame more than at the last sample counts w times, and a queue that is
//!   short but has grown causes CNMs too, while no CNM raises a rate when the queue has shrunk.
//!   This effect, which shortens the queue, grows with a smaller set point, larger frames and more
//!   samples; frames of 64 to 1500 bytes leave 25 KB at 97 to 101 %.
//! - **Balancing of increases.** CNMs must undo the increases of all sources. More sources, a
//!   shorter timer, larger increases, rarer samples and a smaller gain all need more feedback for
//!   each CNM, which only a longer queue provides.
//!
//! A shorter timer makes many sources converge to equal rates faster. It lengthens the queue and,
//! at large set points with few sources, destabilises it: with 1.5 ms and 200 KB one or two sources
//! oscillate between an empty queue and 330 KB, at 98 % of the link.
//!
//! When half of the sources stop, the others use the whole link after some 75 ms: five timers of 15
//! ms, until hyper-active increase begins. The bandwidth goes to the first sources that reach it:
//! of 32 sources at 50 KB the 16 that stay have a Jain's index of 0.66 in the next 200 ms and 0.98
//! after a second.
//!
//! The defaults are made for 10 Gb/s. On a slower link the increases are a larger part of the rate,
//! which lengthens the queue, and five timers are shorter than the queue takes to drain after a
//! cut: hyper-active increase begins in that pause and causes the next excess. One source on a link
//! of 1 Gb/s whose bottleneck falls to 200 Mb/s (paper 004, figure 11) has queues of 110, 113 and
//! up to 117 % of 50, 100 and 200 KB with the defaults. With increases of 1 and 10 Mb/s and the
//! default timer, 400 Mb/s and 200 KB oscillate for seconds between an empty queue and 400 KB; with
//! 1 and 1 Mb/s, that is without hyper-active increase, they do not. With
//! [`RpConfig::scaled_for_port`], 150 ms and 0.5 and 5 Mb/s there, the queue is at 93 to 107 % of
//! 25 to 200 KB at any bottleneck of 200 to 800 Mb/s; the cost is half a second until a bottleneck
//! that has doubled is full. At 100 Gb/s and 5 us both choices keep 100 to 400 KB within a tenth.
//!
//! The step from 1 Gb/s down to 200 Mb/s fills 111 KB for a set point of 25 KB and 632 KB for one
//! of 200 KB: room for five times the set point loses nothing.
//!
//! QCN alone is not lossless: 32 sources that start together at 10 Gb/s with a delay of 50 us fill
//! nearly 4 MB before they have been slowed down. Losslessness requires PFC, targeted or not, with
//! thresholds above the set point (paper 002 §7.6).

mod defence;
mod limiter;
mod point;
mod reaction;

pub use defence::{
    Choice, DefenceConfig, DefenceError, DefenceMode, Defences, InputPriority, Several, Treatment,
};
pub use limiter::{RateLimiter, TokenBucket};
pub use point::{CongestionPoint, CpConfig, CpError, CpInterpretations, Feedback, Rounding};
pub use reaction::{HalfPeriod, Increase, ReactionPoint, RpConfig, RpError, RpInterpretations};

use axon_node::random::Random;

/// Returns `value` times a uniform random number from 0.85 up to 1.15, rounded down: jitter that
/// prevents synchronisation of the sampling intervals and recovery cycles of different queues and
/// flows. Saturates.
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
