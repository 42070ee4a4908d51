//! Source of a frame drawn from a queue (paper 002 appendix A): a source with more frames in it is
//! drawn more often.

use axon_node::random::Random;

/// Draws one of `all` frames uniformly and returns its source. `frames` are the frames of each
/// source.
pub(super) fn draw(random: &mut Random, frames: impl Iterator<Item = u64>, all: u64) -> usize {
    // Scaled down from 2^32 numbers: uniform to one part in 2^32 / `all`.
    let mut drawn = (u64::from(random.next_u32()) * all) >> 32;
    let mut source = 0;
    for (index, frames) in frames.enumerate() {
        source = index;
        if drawn < frames {
            break;
        }
        drawn -= frames;
    }
    source
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_more_frames_is_drawn_more_often_and_who_has_none_never() {
        let seed = 7;
        let mut random = Random::new(seed);
        let frames = [10, 0, 60, 30];
        let mut drawn = [0; 4];
        for _ in 0..100_000 {
            drawn[draw(&mut random, frames.into_iter(), 100)] += 1;
        }
        for (drawn, frames) in drawn.into_iter().zip(frames) {
            let expected = 1_000 * frames as i64;
            assert!((drawn as i64 - expected).abs() <= 500, "seed {seed}: {drawn} of {expected}");
        }
    }
}
