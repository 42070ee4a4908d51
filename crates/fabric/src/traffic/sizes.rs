//! Distributions of sizes and pauses, drawn in integers.
//!
//! A draw converts a uniform 32-bit number to a size by the inverse of the distribution's function.
//! Logarithms and powers of two are computed bit by bit in fixed point, so that equal numbers give
//! equal sizes on every machine.

/// Fractional bits of a logarithm.
const POINT: u32 = 32;
/// Natural logarithm of two, with 32 fractional bits.
const LN_2: u64 = 2_977_044_472;

/// A distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Constant.
    Fixed(u64),
    /// Exponential: intervals of random events.
    Exponential {
        /// Mean.
        mean: u64,
    },
    /// Bounded Pareto: many are small and a few are most of the sum.
    Pareto {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
        /// Shape, times 1000; above zero.
        shape_per_mille: u32,
    },
    /// By points: a size, and how many of a thousand are no larger; both rising, the last 1000.
    Cdf(Vec<(u64, u32)>),
}

impl Sizes {
    /// Returns the size for a uniform number.
    ///
    /// The number `n` stands for the middle of its interval, `u = (n + 1/2) / 2^32`. Exponential:
    /// `-mean ln u`. Pareto with shape `a`, bounded by `max`: draw `v` evenly from `(min/max)^a` to
    /// 1, and take `min v^(-1/a)`. By points: interpolate linearly between the two points around
    /// `u`.
    pub fn draw(&self, number: u32) -> u64 {
        // With 33 fractional bits, so that the middle is a whole number.
        let middle = u64::from(number) << 1 | 1;
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Exponential { mean } => {
                let log = (33u64 << POINT) - log2(middle);
                let natural = (u128::from(log) * u128::from(LN_2)) >> POINT;
                clamp((u128::from(*mean) * natural) >> POINT)
            }
            Sizes::Pareto { min, max, shape_per_mille } => {
                let shape = u128::from(*shape_per_mille);
                let ratio = log2((*max).max(1)) - log2((*min).max(1));
                // (min/max)^a, with 33 fractional bits.
                let power = u128::from(ratio) * shape / 1000;
                let least = exp2_shifted(33, clamp(power));
                let range = (1u64 << 33) - least;
                let v = least + ((u128::from(middle) * u128::from(range)) >> 33) as u64;
                let log = u128::from((33u64 << POINT) - log2(v.max(1))) * 1000 / shape;
                let whole = log2((*min).max(1)) as u128 + log;
                exp2(clamp(whole)).clamp(*min, *max)
            }
            Sizes::Cdf(points) => {
                let share = (u128::from(middle) * 1000) >> 1;
                let mut from = (points.first().map_or(0, |point| point.0), 0u128);
                for &(size, per_mille) in points {
                    let to = u128::from(per_mille) << POINT;
                    if share < to {
                        let step = (u128::from(size - from.0) * (share - from.1)) / (to - from.1);
                        return from.0 + clamp(step);
                    }
                    from = (size, to);
                }
                from.0
            }
        }
    }
}

fn clamp(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Returns the logarithm to base two of `value >= 1`, with 32 fractional bits, rounded down.
///
/// The position of the leading bit is the integer part. The remainder is between 1 and 2; squared,
/// it is at least 2 if the next bit of the logarithm is one, and is then halved; and so on.
fn log2(value: u64) -> u64 {
    let whole = value.ilog2();
    let mut rest = value << (63 - whole);
    let mut log = u64::from(whole);
    for _ in 0..POINT {
        let square = u128::from(rest) * u128::from(rest);
        // The square of two would have its leading bit at 128.
        let bit = (square >> 127) as u64;
        rest = (square >> (63 + bit)) as u64;
        log = log << 1 | bit;
    }
    log
}

/// Returns two to the power of `log`, which has 32 fractional bits, rounded down; saturates at the
/// largest number.
fn exp2(log: u64) -> u64 {
    let whole = (log >> POINT) as u32;
    if whole >= 64 {
        return u64::MAX;
    }
    // 2^fraction with 63 fractional bits: below 2.
    let mantissa = u128::from(power_of_fraction(log as u32));
    clamp((mantissa << whole) >> 63)
}

/// Returns two to the power of `places - log`, rounded down.
fn exp2_shifted(places: u64, log: u64) -> u64 {
    let exponent = places << POINT;
    if log >= exponent { 0 } else { exp2(exponent - log) }
}

/// Returns two to the power of a fraction, with 63 fractional bits: the product of `2^(1/2)`,
/// `2^(1/4)`, ... for the bits that are set. Each root is the integer root of the one before.
fn power_of_fraction(fraction: u32) -> u64 {
    let mut root = 2u128 << 63;
    let mut power = 1u128 << 63;
    for bit in (0..POINT).rev() {
        root = (root << 63).isqrt();
        if fraction >> bit & 1 == 1 {
            power = (power * root) >> 63;
        }
    }
    power as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns evenly spaced numbers, as from an ideal source.
    fn numbers(count: u64) -> impl Iterator<Item = u32> {
        (0..count).map(move |n| ((2 * n + 1) * (1 << 31) / count) as u32)
    }

    #[test]
    fn logarithms_and_powers_are_each_others_inverse() {
        assert_eq!(log2(1), 0);
        assert_eq!(log2(1 << 40), 40 << POINT);
        for value in [3, 10, 1000, 123_456_789, 9_876_543_210] {
            let log = log2(value);
            let exact = (value as f64).log2() * (1u64 << POINT) as f64;
            assert!((log as f64 - exact).abs() < 4.0, "{value}: {log} {exact}");
            let back = exp2(log);
            assert!(back <= value && value - back <= 1 + value / (1 << 30), "{value}: {back}");
        }
        assert_eq!(exp2(64 << POINT), u64::MAX);
    }

    #[test]
    fn the_mean_of_an_exponential_is_its_mean() {
        let sizes = Sizes::Exponential { mean: 1_000_000 };
        let count = 100_000;
        let sum: u64 = numbers(count).map(|number| sizes.draw(number)).sum();
        let mean = sum / count;
        assert!((999_900..=1_000_100).contains(&mean), "{mean}");
        assert!(sizes.draw(0) > 20_000_000 && sizes.draw(u32::MAX) < 10);
    }

    #[test]
    fn a_pareto_keeps_its_bounds_and_its_mean() {
        let (min, max, shape) = (1_000u64, 1_000_000u64, 1.2f64);
        let sizes = Sizes::Pareto { min, max, shape_per_mille: 1200 };
        let count = 200_000;
        let sum: u64 = numbers(count).map(|number| sizes.draw(number)).sum();
        let (low, high) = (min as f64, max as f64);
        let exact = low.powf(shape) / (1.0 - (low / high).powf(shape)) * shape / (shape - 1.0)
            * (low.powf(1.0 - shape) - high.powf(1.0 - shape));
        let mean = sum as f64 / count as f64;
        assert!((mean / exact - 1.0).abs() < 0.001, "{mean} {exact}");
        assert_eq!(sizes.draw(u32::MAX), min);
        assert!(sizes.draw(0) <= max && sizes.draw(0) > max / 10 * 9);
    }

    #[test]
    fn points_are_joined_by_straight_lines() {
        let sizes = Sizes::Cdf(vec![(100, 0), (200, 500), (1200, 1000)]);
        assert_eq!(sizes.draw(0), 100);
        assert_eq!(sizes.draw(1 << 30), 150);
        assert_eq!(sizes.draw(3 << 30), 700);
        assert_eq!(sizes.draw(u32::MAX), 1199);
        assert_eq!(Sizes::Fixed(7).draw(123), 7);
    }
}
