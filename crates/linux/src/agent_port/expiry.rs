//! Timer for the packets that an agent holds.

use super::listener::{timer, token, wake_after};
use super::looks::Looks;
use crate::clock::Clock;
use axon_cache::PayloadCache;
use axon_wire::{FrameBuf, Span};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::timerfd::TimerFd;

/// Shortest timeout until the next expiry check.
const TIMER_MIN: Span = Span::from_millis(1);

/// Timer of the next expiry check.
pub(super) struct ExpiryTimer {
    timer: TimerFd,
    is_set: bool,
}

impl ExpiryTimer {
    /// Creates a disarmed timer and registers it with `epoll`.
    pub(super) fn open(epoll: &Epoll) -> nix::Result<ExpiryTimer> {
        let timer = timer()?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, token::TIMER))?;
        Ok(ExpiryTimer { timer, is_set: false })
    }

    /// Records that the timer has fired.
    pub(super) fn fired(&mut self) {
        let _ = self.timer.wait();
        self.is_set = false;
    }

    /// Arms the timer, unless it is armed, for the expiry of the oldest packet, or for the next
    /// sample of the agent's read counter if that is earlier.
    pub(super) fn arm(&mut self, clock: &Clock, cache: &PayloadCache<FrameBuf>) {
        if self.is_set {
            return;
        }
        let Some((expiry, hold_max)) = cache.next_expiry().zip(cache.hold_max()) else { return };
        let wait = expiry.since(clock.now()).min(Looks::pause(hold_max)).max(TIMER_MIN);
        self.is_set = wake_after(&self.timer, wait);
    }
}
