//! Pseudo-random numbers without floats and without a clock: the same for the same seed.
//!
//! They jitter sampling intervals, draw marks and fill challenges inside sealed messages, so they
//! need to be well distributed, not secret.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one addition and one finaliser.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns the generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns the high half of the next number: uniform in `0 ..= u32::MAX`.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.next_u64(), random.next_u64()], expected);
    }
}
