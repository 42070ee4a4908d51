//! CUBIC (RFC 9438): the window is a cubic function of the time since the last congestion event.
//!
//! W(t) = C * (t - K)^3 + W_max, in segments and seconds, with C = 0.4. W reaches W_max again at K
//! = cbrt((W_max - cwnd) / C). This code uses whole microseconds and bytes, with 128-bit products:
//! C * mss * t^3 / 10^18. It also computes a window that grows as Reno's would on average (§4.3),
//! and uses the larger of the two.

use axon_wire::{Span, Time};

/// C = 2/5 (§4.6).
const C: (u128, u128) = (2, 5);
/// Beta = 7/10: the factor applied to the window on congestion (§4.6).
const BETA: (u64, u64) = (7, 10);
/// Cube of the microseconds in a second.
const SECOND_CUBED: u128 = 1_000_000_000_000_000_000;
/// Maximum time in microseconds. Later times give the same window, and its cube fits 128 bits.
const MICROS_MAX: u64 = 1 << 34;

/// CUBIC state of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cubic {
    /// Start of the current congestion avoidance stage.
    epoch: Option<Time>,
    /// Time since which the sender has not used its window.
    paused: Option<Time>,
    /// Window before the last congestion event, in bytes; zero if there was none.
    w_max: u32,
    /// Window at the time of the last reduction (`cwnd_prior`), in bytes.
    prior: u32,
    /// Time at which W reaches `w_max`, in microseconds since the epoch.
    k: u64,
    /// Estimate of Reno's window (`W_est`), in bytes.
    estimate: u32,
    /// Division remainder of the estimate, followed by that of the window.
    estimate_rest: u64,
    rest: u64,
}

/// Returns the integer cube root, rounded down.
fn cube_root(number: u128) -> u64 {
    let mut root: u128 = 0;
    for bit in (0..43).rev() {
        let next = root | (1 << bit);
        if next * next <= number / next {
            root = next;
        }
    }
    root as u64
}

/// Returns K in microseconds for a window that is `below` bytes under W_max.
fn k_of(below: u32, mss: u32) -> u64 {
    let segments = u128::from(below) * C.1 * SECOND_CUBED;
    cube_root(segments / (u128::from(mss.max(1)) * C.0))
}

impl Cubic {
    /// Returns W in bytes at `micros` microseconds after the epoch.
    fn curve(&self, micros: u64, mss: u32) -> u32 {
        let micros = micros.min(MICROS_MAX);
        let away = u128::from(micros.abs_diff(self.k));
        let cubed = away * away * away;
        let bytes = cubed / C.1 * C.0 * u128::from(mss) / SECOND_CUBED;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if micros < self.k {
            self.w_max.saturating_sub(bytes)
        } else {
            self.w_max.saturating_add(bytes)
        }
    }

    fn begin(&mut self, now: Time, window: u32, mss: u32) {
        self.epoch = Some(now);
        if self.w_max <= window {
            // The first stage, or one after a timeout: K = 0 (§4.2, §4.8).
            (self.w_max, self.k) = (window, 0);
        } else {
            self.k = k_of(self.w_max - window, mss);
        }
        self.prior = self.prior.max(window);
        (self.estimate, self.estimate_rest, self.rest) = (window, 0, 0);
    }

    /// Returns the window after `bytes` more were acknowledged in congestion avoidance (§4.2 to
    /// §4.5), with a round-trip time of `rtt`.
    pub(crate) fn grown(
        &mut self,
        (now, rtt): (Time, Span),
        window: u32,
        mss: u32,
        bytes: u32,
    ) -> u32 {
        if let (Some(since), Some(epoch)) = (self.paused.take(), self.epoch) {
            // Time in which the window was unused does not count (§4.2).
            self.epoch = Some(epoch + now.since(since));
        }
        if self.epoch.is_none() {
            self.begin(now, window, mss);
        }
        let now = now.since(self.epoch.unwrap_or(now)).as_nanos() / 1000;
        let ahead = now.saturating_add(rtt.as_nanos() / 1000);
        let wide = u64::from(window.max(1));
        self.estimate_rest += self.step(mss) * u64::from(bytes);
        let step = self.estimate_rest / (17 * wide);
        self.estimate_rest %= 17 * wide;
        self.estimate = self.estimate.saturating_add(u32::try_from(step).unwrap_or(u32::MAX));
        if self.curve(now, mss) < self.estimate {
            return window.max(self.estimate);
        }
        let most = window.saturating_add(window / 2);
        let target = self.curve(ahead, mss).clamp(window, most);
        self.rest = (self.rest % wide) + u64::from(target - window) * u64::from(bytes);
        let step = self.rest / wide;
        self.rest %= wide;
        window.saturating_add(u32::try_from(step).unwrap_or(u32::MAX)).min(most)
    }

    /// Returns the growth of the Reno estimate per window, in bytes times 17: alpha = 3 * (1 -
    /// beta) / (1 + beta) = 9/17 segments until it reaches `prior`, then 1 segment (§4.3).
    fn step(&self, mss: u32) -> u64 {
        let alpha = if self.estimate < self.prior { 9 } else { 17 };
        alpha * u64::from(mss)
    }

    /// Returns the threshold after congestion (§4.6). A window that has not reached the previous
    /// W_max gives up bandwidth to other flows (fast convergence, §4.7).
    pub(crate) fn reduced(&mut self, window: u32) -> u32 {
        self.epoch = None;
        self.prior = window;
        let wide = u64::from(window);
        self.w_max = if window < self.w_max {
            (wide * (BETA.1 + BETA.0) / (2 * BETA.1)) as u32
        } else {
            window
        };
        (wide * BETA.0 / BETA.1) as u32
    }

    /// Resets the state after a timeout. The next stage begins where slow start ends, with K = 0
    /// (§4.8).
    pub(crate) fn timed_out(&mut self) {
        (self.epoch, self.w_max, self.paused) = (None, 0, None);
    }

    /// Records that the window is unused from `now`.
    pub(crate) fn pause(&mut self, now: Time) {
        if self.epoch.is_some() {
            self.paused.get_or_insert(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Span;

    const MSS: u32 = 1460;

    #[test]
    fn the_cube_root_is_the_greatest_whose_cube_is_not_more() {
        let some = (0..2000u128).chain((1..42).flat_map(|bit| {
            let root = (1u128 << bit) + 12_345 % (1 << bit);
            [root.pow(3) - 1, root.pow(3), root.pow(3) + 1]
        }));
        for number in some {
            let root = u128::from(cube_root(number));
            assert!(root.pow(3) <= number && number < (root + 1).pow(3), "{number}: {root}");
        }
    }

    /// With 100 segments before the loss, K = cbrt(30 / 0.4) = 4.217 s.
    #[test]
    fn the_curve_is_that_of_rfc_9438() {
        for segments in [10, 100, 1000, 80_000] {
            let mut cubic = Cubic::default();
            let window = cubic.reduced(segments * MSS);
            assert_eq!(window, segments * MSS / 10 * 7);
            cubic.begin(Time::ZERO, window, MSS);
            let k = (f64::from(segments) * 0.3 / 0.4).cbrt();
            assert!((cubic.k as f64 / 1e6 - k).abs() < 2e-6, "{} {k}", cubic.k);
            for tenth in 0..300u32 {
                let t = f64::from(tenth) / 10.0;
                let formula = (0.4 * (t - k).powi(3) + f64::from(segments)) * f64::from(MSS);
                let curve = f64::from(cubic.curve(u64::from(tenth) * 100_000, MSS));
                let near = (curve - formula).abs() <= 2.0 + formula.abs() * 1e-5;
                assert!(near, "{segments} at {t}: {curve} and {formula}");
            }
        }
    }

    fn run(cubic: &mut Cubic, window: &mut u32, from: Time, rtt: Span, rounds: u32) -> Time {
        let mut now = from;
        for _ in 0..rounds {
            let (acks, left) = (*window / (2 * MSS), Span::from_ticks(rtt.ticks()));
            for _ in 0..acks {
                *window = cubic.grown((now, rtt), *window, MSS, 2 * MSS);
                now += Span::from_ticks(left.ticks() / u64::from(acks));
            }
        }
        now
    }

    #[test]
    fn a_window_in_use_follows_the_curve() {
        // A large window and a long round trip reach the cubic region.
        let mut cubic = Cubic::default();
        let mut window = cubic.reduced(2000 * MSS);
        let rtt = Span::from_millis(100);
        let now = run(&mut cubic, &mut window, Time::ZERO, rtt, 200);
        let t = now.as_nanos() as f64 / 1e9;
        let k = (2000.0f64 * 0.3 / 0.4).cbrt();
        let formula = (0.4 * (t - k).powi(3) + 2000.0) * f64::from(MSS);
        let off = f64::from(window) / formula;
        assert!((0.99..1.01).contains(&off), "{window} and {formula} at {t}");
    }

    #[test]
    fn with_a_short_round_trip_it_grows_as_reno_would() {
        let mut cubic = Cubic::default();
        let mut window = cubic.reduced(100 * MSS);
        run(&mut cubic, &mut window, Time::ZERO, Span::from_micros(100), 40);
        // The estimate grows by 9/17 of a segment per round.
        let grown = f64::from(window) / f64::from(MSS) - 70.0;
        assert!((grown - 40.0 * 9.0 / 17.0).abs() < 1.0, "{grown}");
        run(&mut cubic, &mut window, Time::from_nanos(4_000_000), Span::from_micros(100), 60);
        let grown = f64::from(window) / f64::from(MSS) - 100.0;
        // The estimate takes 56.7 rounds to 100 segments, then grows by one segment per round.
        assert!((42.0..45.0).contains(&grown), "{grown}");
    }

    #[test]
    fn a_lower_maximum_makes_way() {
        let mut cubic = Cubic::default();
        assert_eq!((cubic.reduced(100_000), cubic.w_max), (70_000, 100_000));
        assert_eq!((cubic.reduced(80_000), cubic.w_max), (56_000, 68_000), "80,000 * 0.85");
        cubic.timed_out();
        cubic.begin(Time::ZERO, 40_000, MSS);
        assert_eq!((cubic.k, cubic.w_max), (0, 40_000));
    }

    #[test]
    fn a_pause_does_not_count() {
        let rtt = Span::from_millis(100);
        let mut cubic = Cubic::default();
        let window = cubic.reduced(1000 * MSS);
        let one = cubic.grown((Time::ZERO, rtt), window, MSS, MSS);
        let mut other = cubic;
        other.pause(Time::from_nanos(1000));
        let later = Time::from_nanos(1000) + Span::from_secs(60);
        let grown = other.grown((later, rtt), one, MSS, MSS);
        let at_once = cubic.grown((Time::from_nanos(1000), rtt), one, MSS, MSS);
        assert_eq!(grown, at_once);
    }
}
