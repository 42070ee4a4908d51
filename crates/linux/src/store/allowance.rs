//! Time for which the run loop waits for the thread that writes the store.

use std::time::Duration;

/// Maximum wait in one round: a fifth of the time between two heartbeats.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(20);

/// Remaining time for which the run loop may wait in this round.
#[derive(Debug)]
pub(super) struct Allowance {
    pub(super) left: Duration,
    /// True if the thread has not caught up since a wait timed out. The thread may block on one
    /// write for many rounds, of which only the first waits.
    behind: bool,
}

impl Allowance {
    pub(super) fn new() -> Allowance {
        Allowance { left: WAIT_MAX, behind: false }
    }

    /// Restores the full time at the start of a round.
    pub(super) fn renew(&mut self) {
        self.left = WAIT_MAX;
    }

    /// Returns the time to wait for a new write. `caught_up` is true if the thread has already
    /// written everything before.
    pub(super) fn grant(&mut self, caught_up: bool) -> Duration {
        self.behind &= !caught_up;
        if self.behind { Duration::ZERO } else { self.left }
    }

    /// Records a wait of the run loop. `written` is true if the wait was long enough.
    pub(super) fn spend(&mut self, waited: Duration, written: bool) {
        self.left = self.left.saturating_sub(waited);
        self.behind |= !written;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for `needed` in simulated time, as the run loop does. Returns the duration of the
    /// wait.
    fn wait(allowance: &mut Allowance, caught_up: bool, needed: Duration) -> Duration {
        let granted = allowance.grant(caught_up);
        allowance.spend(granted.min(needed), needed <= granted);
        granted.min(needed)
    }

    #[test]
    fn all_waits_of_a_round_take_no_longer_than_one_may() {
        let mut allowance = Allowance::new();
        for needed in [1, 3, 15, 19, 20, 21] {
            let needed = Duration::from_millis(needed);
            // This holds however quickly the thread catches up between two waits.
            let waited: Duration = (0..100).map(|_| wait(&mut allowance, true, needed)).sum();
            assert_eq!(waited, WAIT_MAX, "waits of {needed:?}");
            allowance.renew();
        }
    }

    #[test]
    fn a_thread_that_does_not_catch_up_is_waited_for_in_one_round_only() {
        let (mut allowance, long) = (Allowance::new(), Duration::from_secs(9));
        assert_eq!(wait(&mut allowance, true, long), WAIT_MAX);
        for _ in 0..10 {
            allowance.renew();
            assert_eq!(wait(&mut allowance, false, long), Duration::ZERO);
        }
        assert_eq!(wait(&mut allowance, true, long), WAIT_MAX, "when it has caught up");
    }
}
