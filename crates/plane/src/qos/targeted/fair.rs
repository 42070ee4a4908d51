//! Sources with more than an even share of a queue (paper 002 appendix B, equation 7.2); their
//! frames in it stand for their bandwidth.
//!
//! The pseudo code compares the frames of one source with themselves over N; the text and the
//! equation mean all frames over N, which is implemented here. A source with few long frames
//! appears smaller than one with many short ones: the paper counts frames.

/// Returns N, the number of sources with frames in the queue.
pub(super) fn sources(frames: impl Iterator<Item = u64>) -> u64 {
    frames.filter(|&frames| frames > 0).count() as u64
}

/// Returns whether a source with `frames` of `all` frames has more than its share among `sources`.
pub(super) fn exceeds(frames: u64, all: u64, sources: u64) -> bool {
    frames * sources > all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_an_even_part_is_too_much() {
        let frames = [20, 0, 5, 5];
        let sources = sources(frames.into_iter());
        assert_eq!(sources, 3);
        assert_eq!(frames.map(|frames| exceeds(frames, 30, sources)), [true, false, false, false]);
        assert!(!exceeds(10, 30, 3), "an even part is not too much");
        assert!(!exceeds(30, 30, 1), "whoever is alone has the whole of it");
    }
}
