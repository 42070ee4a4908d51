//! DCTCP: the window shrinks in proportion to the share of marked bytes (RFC 8257).
//!
//! The receiver echoes the marks of segments exactly. Once per window the sender computes the share
//! M of marked bytes and updates its estimate: alpha = alpha * (1 - g) + g * M, with g = 1/16. On
//! ECE it reduces the window by the factor alpha / 2, once per window. Window growth and the
//! reaction to losses are Reno's.

use super::reno::Reno;
use crate::segment::Seq;

/// Fixed-point 1.0: the share when all bytes are marked.
const ONE: u32 = 1 << 20;
/// g = 2^-4, the estimation gain (§3.3, §4.2).
const GAIN_BITS: u32 = 4;

/// DCTCP state of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dctcp {
    pub(crate) reno: Reno,
    alpha: u32,
    acked: u32,
    marked: u32,
    /// End of the current observation window (§3.3, DCTCP.WindowEnd).
    end: Option<Seq>,
}

impl Default for Dctcp {
    /// Returns the initial state, with alpha = 1 (§4.2).
    fn default() -> Dctcp {
        Dctcp { reno: Reno::default(), alpha: ONE, acked: 0, marked: 0, end: None }
    }
}

impl Dctcp {
    /// Records an acknowledgement. `next` is the next number to send.
    pub(crate) fn count(&mut self, ack: Seq, next: Seq, bytes: u32, echo: bool) {
        self.acked = self.acked.saturating_add(bytes);
        if echo {
            self.marked = self.marked.saturating_add(bytes);
        }
        let end = *self.end.get_or_insert(next);
        if !ack.is_after(end) || self.acked == 0 {
            return;
        }
        let share = u64::from(self.marked) * u64::from(ONE) / u64::from(self.acked);
        // Rounded up, so that the estimate reaches zero.
        let decay = self.alpha.div_ceil(1 << GAIN_BITS);
        self.alpha = self.alpha - decay + (share as u32 >> GAIN_BITS);
        (self.acked, self.marked, self.end) = (0, 0, Some(next));
    }

    /// Returns the window after a mark: cwnd * (1 - alpha / 2) (§3.4).
    pub(crate) fn reduced(&self, window: u32) -> u32 {
        let less = u64::from(window) * u64::from(self.alpha) / u64::from(2 * ONE);
        window - less as u32
    }

    /// Returns alpha in units of 1 / 2^20.
    pub(crate) fn alpha(&self) -> u32 {
        self.alpha
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_follows_the_share_of_marks_by_a_sixteenth_per_window() {
        let mut dctcp = Dctcp::default();
        assert_eq!(dctcp.reduced(100_000), 50_000);
        // Each window has 10,000 bytes, a fifth of them marked. After n windows alpha is M + (1 -
        // M) * (15/16)^n.
        let mut expected = u64::from(ONE);
        dctcp.count(Seq(0), Seq(8000), 0, false);
        for n in 1..=500 {
            // Ten thousand bytes are acknowledged before the acknowledgement passes the window's
            // end.
            let ack = Seq(n * 2000);
            dctcp.count(ack, ack + 8000, 2000, n % 5 == 0);
            if n % 5 == 0 {
                expected = expected - expected.div_ceil(16) + u64::from(ONE / 5 / 16);
            }
            assert!(u64::from(dctcp.alpha).abs_diff(expected) <= 8, "{n}");
        }
        assert!(dctcp.alpha.abs_diff(ONE / 5) < ONE / 200, "{}", dctcp.alpha);
        assert!(dctcp.reduced(100_000).abs_diff(90_000) < 300);
    }

    #[test]
    fn without_marks_alpha_reaches_zero() {
        let mut dctcp = Dctcp::default();
        for n in 1..400 {
            dctcp.count(Seq(n * 10), Seq(n * 10 + 5), 10, false);
        }
        assert_eq!((dctcp.alpha, dctcp.reduced(77_777)), (0, 77_777));
    }
}
