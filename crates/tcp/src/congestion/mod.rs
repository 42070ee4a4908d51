//! Congestion control: the limit of data in flight (RFC 5681), set by one of several algorithms.
//!
//! All algorithms begin with slow start from an initial window of ten segments (RFC 6928). They
//! differ in window growth after slow start and in the reduction. The window is in bytes.

mod acked;
mod cubic;
mod dctcp;
mod hystart;
mod reno;

use crate::config::Algorithm;
use crate::segment::Seq;
pub(crate) use acked::Acked;
use axon_wire::Time;
use cubic::Cubic;
use dctcp::Dctcp;
use hystart::HyStart;
use reno::Reno;

/// Maximum window, in bytes; larger than any receive window.
const WINDOW_MAX: u32 = 1 << 30;

/// Window growth after slow start.
#[derive(Clone, Debug)]
enum Law {
    None,
    Reno(Reno),
    Cubic(Cubic),
    Dctcp(Dctcp),
}

/// Congestion window of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    /// Maximum bytes in flight (cwnd).
    window: u32,
    /// Slow start threshold, in bytes (ssthresh).
    threshold: u32,
    mss: u32,
    law: Law,
    /// State of CUBIC's first slow start, until the threshold is set.
    hystart: Option<HyStart>,
}

/// Returns the initial window in bytes (RFC 6928 §2).
fn initial(mss: u32) -> u32 {
    (10 * mss).min((2 * mss).max(14_600))
}

impl Congestion {
    pub(crate) fn new(algorithm: Algorithm, mss: u32) -> Congestion {
        let law = match algorithm {
            Algorithm::None => Law::None,
            Algorithm::Reno => Law::Reno(Reno::default()),
            Algorithm::Cubic => Law::Cubic(Cubic::default()),
            Algorithm::Dctcp => Law::Dctcp(Dctcp::default()),
        };
        let window = if algorithm == Algorithm::None { WINDOW_MAX } else { initial(mss) };
        let hystart = (algorithm == Algorithm::Cubic).then(HyStart::default);
        Congestion { window, threshold: u32::MAX, mss, law, hystart }
    }

    /// Returns the window in bytes.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Returns the slow start threshold in bytes.
    pub(crate) fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Returns whether the window is in slow start.
    pub(crate) fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Grows the window after an acknowledgement outside recovery.
    pub(crate) fn acknowledged(&mut self, acked: &Acked) {
        if let Law::None = self.law {
            return;
        }
        if self.threshold < u32::MAX {
            self.hystart = None;
        } else if self.hystart.as_mut().is_some_and(|hystart| hystart.takes(acked)) {
            self.threshold = self.window;
        }
        if !acked.limited {
            if let Law::Cubic(cubic) = &mut self.law {
                cubic.pause(acked.now);
            }
            return;
        }
        let mut bytes = acked.bytes;
        if self.in_slow_start() {
            let grow = match &self.hystart {
                _ if acked.after_timeout => bytes.min(self.mss),
                Some(hystart) => hystart.growth(bytes, self.mss),
                None => bytes,
            };
            let room = self.threshold - self.window;
            self.window = self.window.saturating_add(grow.min(room));
            if grow <= room {
                self.window = self.window.min(WINDOW_MAX);
                return;
            }
            bytes = grow - room;
        }
        self.window = match &mut self.law {
            Law::None => self.window,
            Law::Reno(reno) => reno.grown(self.window, self.mss, bytes),
            Law::Dctcp(dctcp) => dctcp.reno.grown(self.window, self.mss, bytes),
            Law::Cubic(cubic) => cubic.grown((acked.now, acked.rtt), self.window, self.mss, bytes),
        };
        self.window = self.window.min(WINDOW_MAX);
    }

    /// Updates DCTCP's estimate of marked bytes (RFC 8257 §3.3) after an acknowledgement up to
    /// `ack` of `bytes` new bytes. `echo` is its ECE flag, `next` the next number to send.
    pub(crate) fn marked(&mut self, ack: Seq, next: Seq, bytes: u32, echo: bool) {
        if let Law::Dctcp(dctcp) = &mut self.law {
            dctcp.count(ack, next, bytes, echo);
        }
    }

    /// Returns the threshold after congestion, at least two segments (RFC 5681, equation 4).
    fn reduced(&mut self) -> u32 {
        let window = self.window;
        let threshold = match &mut self.law {
            Law::None => return window,
            Law::Reno(_) | Law::Dctcp(_) => window / 2,
            Law::Cubic(cubic) => cubic.reduced(window),
        };
        threshold.max(2 * self.mss)
    }

    /// Reduces the threshold after a loss. Proportional rate reduction then lowers the window.
    pub(crate) fn lost(&mut self) {
        self.threshold = self.reduced();
    }

    /// Sets the window computed by proportional rate reduction.
    pub(crate) fn set(&mut self, window: u32) {
        if !matches!(self.law, Law::None) {
            self.window = window.min(WINDOW_MAX);
        }
    }

    /// Sets the window to the threshold at the end of loss recovery (RFC 6937 §3).
    pub(crate) fn recovered(&mut self) {
        self.set(self.threshold);
    }

    /// Reduces window and threshold at once, after a loss that is already repaired.
    pub(crate) fn lost_last(&mut self) {
        self.threshold = self.reduced();
        self.window = self.window.min(self.threshold);
    }

    /// Returns whether the algorithm is DCTCP.
    pub(crate) const fn is_dctcp(&self) -> bool {
        matches!(self.law, Law::Dctcp(_))
    }

    /// Reduces window and threshold at once on ECE. DCTCP reduces them by the share of marked bytes
    /// (RFC 8257 §3.4), the others as after a loss (RFC 3168 §6.1.2).
    pub(crate) fn signalled(&mut self) {
        self.threshold = match &self.law {
            Law::Dctcp(dctcp) => dctcp.reduced(self.window).max(2 * self.mss),
            _ => self.reduced(),
        };
        self.window = self.window.min(self.threshold);
    }

    /// Sets the window to one segment and enters slow start after a retransmission timeout (RFC
    /// 5681 §3.1). `first` is whether the lost data had not timed out before.
    pub(crate) fn timed_out(&mut self, first: bool) {
        if let Law::None = self.law {
            return;
        }
        if first {
            self.threshold = self.reduced();
        }
        if let Law::Cubic(cubic) = &mut self.law {
            cubic.timed_out();
        }
        self.window = self.mss;
    }

    /// Restores the initial window after an idle period longer than the timeout (RFC 5681 §4.1).
    pub(crate) fn idle(&mut self, now: Time) {
        match &mut self.law {
            Law::None => return,
            Law::Cubic(cubic) => cubic.pause(now),
            _ => {}
        }
        self.window = self.window.min(initial(self.mss));
    }

    /// Returns DCTCP's share of marked bytes, in units of 1 / 2^20.
    pub(crate) fn alpha(&self) -> Option<u32> {
        match &self.law {
            Law::Dctcp(dctcp) => Some(dctcp.alpha()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Span;

    pub(crate) fn acked(bytes: u32) -> Acked {
        let rtt = Span::from_millis(100);
        Acked {
            now: Time::ZERO,
            bytes,
            rtt,
            limited: true,
            after_timeout: false,
            sample: None,
            ack: Seq(0),
            next: Seq(bytes),
        }
    }

    #[test]
    fn the_initial_window_is_that_of_rfc_6928() {
        for (mss, window) in [(536, 5360), (1460, 14_600), (8960, 17_920)] {
            assert_eq!(Congestion::new(Algorithm::Reno, mss).window, window, "{mss}");
        }
    }

    #[test]
    fn slow_start_doubles_and_congestion_avoidance_adds_a_segment_a_round() {
        let mut control = Congestion::new(Algorithm::Reno, 1000);
        control.threshold = 20_000;
        (0..10).for_each(|_| control.acknowledged(&acked(1000)));
        assert_eq!(control.window, 20_000);
        (0..20).for_each(|_| control.acknowledged(&acked(1000)));
        assert_eq!(control.window, 21_000);
        (0..7).for_each(|_| control.acknowledged(&acked(3000)));
        assert_eq!(control.window, 22_000);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        for algorithm in [Algorithm::Reno, Algorithm::Cubic, Algorithm::Dctcp] {
            let mut control = Congestion::new(algorithm, 1000);
            control.acknowledged(&Acked { limited: false, ..acked(10_000) });
            assert_eq!(control.window, 10_000);
        }
    }

    #[test]
    fn losses_marks_and_timeouts_shrink_it() {
        let cases =
            [(Algorithm::Reno, 50_000), (Algorithm::Cubic, 70_000), (Algorithm::Dctcp, 50_000)];
        for (algorithm, threshold) in cases {
            let mut control = Congestion::new(algorithm, 1000);
            control.window = 100_000;
            control.lost();
            assert_eq!((control.threshold, control.window), (threshold, 100_000));
            control.window = 1500;
            control.timed_out(true);
            assert_eq!((control.threshold, control.window), (2000, 1000), "two segments at least");
            control.threshold = 7000;
            control.timed_out(false);
            assert_eq!(control.threshold, 7000);
            control.acknowledged(&Acked { after_timeout: true, ..acked(5000) });
            assert_eq!(control.window, 2000, "a segment per acknowledgement");
            control.window = 90_000;
            control.idle(Time::ZERO);
            assert_eq!(control.window, 10_000);
        }
        let mut none = Congestion::new(Algorithm::None, 1000);
        none.lost();
        none.timed_out(true);
        none.signalled();
        none.idle(Time::ZERO);
        assert_eq!(none.window, WINDOW_MAX);
    }

    #[test]
    fn ece_shrinks_window_and_threshold_at_once() {
        let cases =
            [(Algorithm::Reno, 50_000), (Algorithm::Cubic, 70_000), (Algorithm::Dctcp, 50_000)];
        for (algorithm, window) in cases {
            let mut control = Congestion::new(algorithm, 1000);
            control.window = 100_000;
            control.signalled();
            assert_eq!((control.window, control.threshold), (window, window), "alpha begins at 1");
        }
    }
}
