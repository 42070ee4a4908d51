//! Throughput, computed from counters that grow by whole frames.
//!
//! A counter grows by a whole frame at one instant, although the frame takes time on the wire. In a
//! bin shorter than a few frames, the counted bytes may therefore exceed the capacity of the link.
//! The excess is moved to the next bin if frames are counted when they start, or to the previous
//! bin if they are counted when they are complete, and so on. The bytes are then in the bins in
//! which they were on the wire. Bytes of a stream that arrived out of order are counted only when
//! the missing bytes have arrived, and are moved back in the same way.

/// Point in time at which a counter counts a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Time at which its first bit is sent.
    AtStart,
    /// Time at which it is complete, or later.
    AtEnd,
}

/// Moves bytes between consecutive bins so that none has more than its value in `most`, the
/// capacity of its link. Bytes that are moved beyond the last bin (or the first, for
/// [`Counted::AtEnd`]), or into a bin that is `None`, are omitted, because they were on the wire
/// after or before.
///
/// # Panics
/// If the two series have different numbers of bins.
pub fn spread(bytes: &mut [Option<f64>], most: &[f64], counted: Counted) {
    assert_eq!(bytes.len(), most.len(), "as many bins");
    let mut more = 0.0;
    let mut settle = |(bytes, most): (&mut Option<f64>, &f64)| match bytes {
        Some(bytes) => {
            let all = *bytes + more;
            *bytes = all.min(*most);
            more = all - *bytes;
        }
        None => more = 0.0,
    };
    let bins = bytes.iter_mut().zip(most);
    match counted {
        Counted::AtStart => bins.for_each(&mut settle),
        Counted::AtEnd => bins.rev().for_each(&mut settle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_where_they_were_on_the_wire_and_none_is_lost() {
        let some = |bytes: [f64; 4]| bytes.map(Some);
        // Bins of 1,000 bytes at line rate, and frames of 1,500 bytes.
        let most = [1_000.0; 4];
        let mut starts = some([1_500.0, 1_500.0, 0.0, 500.0]);
        spread(&mut starts, &most, Counted::AtStart);
        assert_eq!(starts, some([1_000.0, 1_000.0, 1_000.0, 500.0]));
        let mut ends = some([0.0, 0.0, 3_000.0, 0.0]);
        spread(&mut ends, &most, Counted::AtEnd);
        assert_eq!(ends, some([1_000.0, 1_000.0, 1_000.0, 0.0]));
    }

    #[test]
    fn what_came_before_the_first_bin_or_a_gap_is_left_out() {
        let mut bytes = [Some(1_500.0), Some(200.0), None, Some(900.0), Some(300.0)];
        spread(&mut bytes, &[1_000.0, 500.0, 500.0, 500.0, 500.0], Counted::AtEnd);
        assert_eq!(bytes, [Some(1_000.0), Some(200.0), None, Some(500.0), Some(300.0)]);
    }
}
