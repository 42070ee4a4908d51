//! What a wire does to frames at random: some it takes, in some it flips a bit.
//!
//! Each direction of each link has random streams of its own, one for losses, one for bit errors
//! and one for what `disorder.rs` does, so that what happens elsewhere, or another kind of noise,
//! never shifts it. The streams move on for every frame while their rate is not zero, whatever else
//! befalls it.
//!
//! Whether any of a frame's bits flips is drawn once for the frame. Bits are independent, so
//! all of `n` survive with probability (1 - p)^n, which is worked out by repeated squaring in
//! fixed point: integers only, the same on every machine. One bit then flips, every one as
//! likely; at the rates of real cables a second one in the same frame would be a wonder.

use crate::link::disorder::{Disorder, Odd};
use crate::link::timing::padded_bytes;
use axon_fabric::model::Wire;
use oorandom::Rand64;

/// One, in the fixed point of probabilities.
const ONE: u64 = 1 << 63;
/// A rate of bit errors of one.
const PER_BIT_MAX: u64 = 1_000_000_000_000_000;
/// The bit that separates the random streams of bit errors from those of losses.
const BIT_STREAMS: u128 = 1 << 100;
/// The same for those of disorder.
const DISORDER_STREAMS: u128 = 1 << 101;

/// The noise of one direction of a link.
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
    /// Fresh streams for one direction; `stream` differs for each in the world.
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

    /// Takes over other rates of disorder.
    pub(crate) fn set_disorder(&mut self, disorder: Disorder) {
        self.disorder = disorder;
    }

    /// In which odd way the next frame comes out, if in one.
    pub(crate) fn disturbs(&mut self, frame: &[u8]) -> Option<Odd> {
        self.disorder.draw(&mut self.oddities, frame)
    }

    /// Takes over changed rates.
    pub(crate) fn set(&mut self, wire: &Wire) {
        self.loss_ppm = wire.loss_ppm;
        self.bit_errors_per_1e15 = wire.bit_errors_per_1e15;
    }

    /// Whether there is any.
    pub(crate) fn is_on(&self) -> bool {
        self.loss_ppm > 0 || self.bit_errors_per_1e15 > 0 || self.disorder.is_on()
    }

    /// Whether the next frame is lost.
    pub(crate) fn takes(&mut self) -> bool {
        self.loss_ppm > 0 && self.losses.rand_range(0..1_000_000) < u64::from(self.loss_ppm)
    }

    /// Which bit of the next frame flips, if one does, counted from the first of its
    /// destination address; beyond its bytes are its padding and its FCS.
    pub(crate) fn flips(&mut self, bytes: usize) -> Option<u64> {
        if self.bit_errors_per_1e15 == 0 {
            return None;
        }
        let bits = padded_bytes(bytes) * 8;
        let draw = self.errors.rand_u64() >> 1;
        (draw >= survival(self.bit_errors_per_1e15, bits)).then(|| self.errors.rand_range(0..bits))
    }
}

/// The probability, in fixed point, that `bits` bits all arrive as they were sent.
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
