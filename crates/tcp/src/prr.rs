//! Proportional rate reduction (RFC 6937): lowers the window to the threshold during recovery.
//!
//! While the data in flight exceeds the threshold, each delivered byte releases threshold / flight
//! bytes, where flight is the data in flight at the start of recovery. Below the threshold the
//! window grows back by the delivered bytes, plus one segment if the acknowledgement advances and
//! shows no new loss (slow start reduction bound; otherwise conservative reduction bound).

/// State of one recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prr {
    /// Bytes in flight at the start of recovery (`RecoverFS`).
    flight: u32,
    /// Bytes delivered since the start of recovery (`prr_delivered`).
    delivered: u32,
    /// Bytes sent since the start of recovery (`prr_out`).
    out: u32,
}

impl Prr {
    pub(crate) fn new(flight: u32) -> Prr {
        Prr { flight: flight.max(1), delivered: 0, out: 0 }
    }

    /// Records sent bytes.
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(bytes);
    }

    /// Returns the window after an acknowledgement that delivers `delivered` bytes, with `pipe`
    /// bytes in flight. `safe` is whether it advances and reports no new loss.
    pub(crate) fn window(
        &mut self,
        delivered: u32,
        pipe: u32,
        threshold: u32,
        mss: u32,
        safe: bool,
    ) -> u32 {
        self.delivered = self.delivered.saturating_add(delivered);
        let room = if pipe > threshold {
            let share = u64::from(self.delivered) * u64::from(threshold);
            let share = share.div_ceil(u64::from(self.flight));
            u32::try_from(share.saturating_sub(u64::from(self.out))).unwrap_or(u32::MAX)
        } else {
            let conservative = self.delivered.saturating_sub(self.out);
            let limit = if safe { conservative.max(delivered) + mss } else { conservative };
            limit.min(threshold - pipe)
        };
        // The first lost segment is retransmitted at once (RFC 6675 §5, step 4.3).
        let room = if self.out == 0 { room.max(mss) } else { room };
        pipe.saturating_add(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 §3.1: of 20 segments the first is lost, and the threshold is half. Of the 19
    /// acknowledgements, every second one releases a segment.
    #[test]
    fn half_of_what_arrives_leaves() {
        let mut prr = Prr::new(20_000);
        let (mut pipe, mut left) = (19_000, 0);
        for _ in 0..19 {
            pipe -= 1000;
            let window = prr.window(1000, pipe, 10_000, 1000, false);
            while pipe + 1000 <= window {
                prr.sent(1000);
                pipe += 1000;
                left += 1;
            }
        }
        assert_eq!((left, pipe), (10, 10_000));
    }

    /// Of 20 segments 16 are lost; the window grows from the remaining flight.
    #[test]
    fn after_heavy_losses_the_window_grows_as_in_slow_start() {
        let mut prr = Prr::new(20_000);
        let mut window = prr.window(1000, 3000, 10_000, 1000, false);
        assert_eq!(window, 4000, "as much as has arrived");
        prr.sent(1000);
        window = prr.window(1000, 3000, 10_000, 1000, true);
        assert_eq!(window, 5000, "a segment more");
        prr.sent(2000);
        assert_eq!(prr.window(0, 9500, 10_000, 1000, true), 10_000, "no more than the threshold");
    }
}
