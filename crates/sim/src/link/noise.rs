//! Random noise of a wire: frame losses and bit errors.
//!
//! Each direction of each link has its own random streams, one for losses, one for bit errors and
//! one for `disorder.rs`, so that events elsewhere, or another kind of noise, never shift them. A
//! stream advances for every frame while its rate is not zero, regardless of the frame's fate.
//!
//! Whether any of a frame's bits flips is drawn once per frame. Bits are independent, so all of `n`
//! survive with probability (1 - p)^n, computed by repeated squaring in fixed point: integers only,
//! the same on every machine. Then one bit flips, drawn uniformly; at the rates of real cables a
//! second one in the same frame is negligible.

use crate::link::disorder::{Disorder, Odd};
use crate::link::timing::padded_bytes;
use axon_fabric::model::Wire;
use oorandom::Rand64;

/// Probability 1 in fixed point.
const ONE: u64 = 1 << 63;
/// Bit error rate of 1.
const PER_BIT_MAX: u64 = 1_000_000_000_000_000;
/// Bit that separates the random streams of bit errors from those of losses.
const BIT_STREAMS: u128 = 1 << 100;
/// Bit that separates the random streams of disorder from those of losses.
const DISORDER_STREAMS: u128 = 1 << 101;

/// Noise of one direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    losses: Rand64,
    errors: Rand64,
    loss_ppm: u32,
    bit_errors_per_1e15: u64,
    disorder: Disorder,
    oddities: Rand64,
}

impl Noise {
    /// Returns fresh streams for one direction. `stream` is unique in the world.
    pub(crate) fn new(seed: u64, stream: u64, wire: &Wire) -> Noise {
        let stream = u128::from(stream);
        Noise {
            losses: Rand64::new_inc(u128::from(seed), stream),
            errors: Rand64::new_inc(u128::from(seed), BIT_STREAMS | stream),
            loss_ppm: wire.loss_ppm,
            bit_errors_per_1e15: wire.bit_errors_per_1e15,
            disorder: Disorder::default(),
            oddities: Rand64::new_inc(u128::from(seed), DISORDER_STREAMS | stream),
        }
    }

    /// Sets the disorder rates.
    pub(crate) fn set_disorder(&mut self, disorder: Disorder) {
        self.disorder = disorder;
    }

    /// Returns the disorder of the next frame, if any.
    pub(crate) fn disturbs(&mut self, frame: &[u8]) -> Option<Odd> {
        self.disorder.draw(&mut self.oddities, frame)
    }

    /// Sets the noise rates.
    pub(crate) fn set(&mut self, wire: &Wire) {
        self.loss_ppm = wire.loss_ppm;
        self.bit_errors_per_1e15 = wire.bit_errors_per_1e15;
    }

    /// Returns whether there is any noise.
    pub(crate) fn is_on(&self) -> bool {
        self.loss_ppm > 0 || self.bit_errors_per_1e15 > 0 || self.disorder.is_on()
    }

    /// Returns whether the next frame is lost.
    pub(crate) fn takes(&mut self) -> bool {
        self.loss_ppm > 0 && self.losses.rand_range(0..1_000_000) < u64::from(self.loss_ppm)
    }

    /// Returns the flipped bit of the next frame, if any, counted from the first of its destination
    /// address. A bit beyond its bytes lies in its padding or FCS.
    pub(crate) fn flips(&mut self, bytes: usize) -> Option<u64> {
        if self.bit_errors_per_1e15 == 0 {
            return None;
        }
        let bits = padded_bytes(bytes) * 8;
        let draw = self.errors.rand_u64() >> 1;
        (draw >= survival(self.bit_errors_per_1e15, bits)).then(|| self.errors.rand_range(0..bits))
    }
}

/// Returns the probability, in fixed point, that `bits` bits all arrive unchanged.
fn survival(per_1e15: u64, bits: u64) -> u64 {
    let sound = u128::from(PER_BIT_MAX.saturating_sub(per_1e15));
    let mut factor = (u128::from(ONE) * sound / u128::from(PER_BIT_MAX)) as u64;
    let (mut result, mut left) = (ONE, bits);
    let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 63) as u64;
    while left > 0 {
        if left & 1 == 1 {
            result = times(result, factor);
        }
        factor = times(factor, factor);
        left >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::{Bytes, Rate, Span};

    fn noise(stream: u64, loss_ppm: u32, bit_errors_per_1e15: u64) -> Noise {
        let wire = Wire {
            rate: Rate::gbps(1),
            latency: Span::ZERO,
            loss_ppm,
            bit_errors_per_1e15,
            queue: Bytes(0),
        };
        Noise::new(7, stream, &wire)
    }

    #[test]
    fn the_stated_share_is_lost_and_each_direction_has_its_own() {
        let lost = |stream: u64| -> Vec<bool> {
            let mut noise = noise(stream, 50_000, 0);
            (0..20_000).map(|_| noise.takes()).collect()
        };
        let streams = [lost(6), lost(7)];
        for stream in &streams {
            let lost = stream.iter().filter(|&&lost| lost).count();
            assert!((900..1100).contains(&lost), "{lost} of 20000 at 5 %");
        }
        assert_ne!(streams[0], streams[1]);
    }

    #[test]
    fn survival_is_the_power_that_it_should_be() {
        assert_eq!(survival(0, 12_000), ONE);
        assert_eq!(survival(PER_BIT_MAX, 1), 0);
        assert_eq!(survival(PER_BIT_MAX / 2, 3), ONE / 8);
        // 1 - (1 - 1e-9)^12144 = 1.2143926e-5, in units of 2^-63.
        let broken = ONE - survival(1_000_000, 12_144);
        let parts_per_1e12 = u128::from(broken) * 1_000_000_000_000 / u128::from(ONE);
        assert_eq!(parts_per_1e12, 12_143_926);
    }

    #[test]
    fn frames_break_as_often_as_their_length_says_and_anywhere() {
        let (mut noise, bytes) = (noise(1, 0, 10_000_000_000), 1514);
        let bits: Vec<u64> = (0..20_000).filter_map(|_| noise.flips(bytes)).collect();
        // 1 - (1 - 1e-5)^12144 = 11.4 %.
        assert!((2_100..2_460).contains(&bits.len()), "{} of 20000", bits.len());
        let (low, high) = (bits.iter().min().unwrap(), bits.iter().max().unwrap());
        assert!(*low < 200 && *high > 11_944 && *high < 12_144, "{low} to {high}");
    }
}
