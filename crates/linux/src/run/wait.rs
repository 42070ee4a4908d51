//! Waits for the events of a run loop.

use super::Runtime;
use super::events::Ready;
use crate::inspect::Inspect;
use axon_wire::{Span, Time};
use std::io;
use std::time::Duration;

impl<N: Inspect> Runtime<N> {
    /// Returns the wake-up time if there are no external events.
    fn wake_at(&self) -> Option<Time> {
        let ports = self.ports.wake_at().into_iter();
        ports
            .chain(self.node.deadline())
            .chain(self.recording.flush_at())
            .chain(self.load.due())
            .min()
    }

    /// Waits for the events of the next round, until `until` at most.
    ///
    /// While frames arrive, ports with frames are found without a system call, and all other events
    /// are polled only once per millisecond.
    pub(super) fn wait(&mut self, until: Time) -> io::Result<Ready> {
        let wake_at = self.wake_at().unwrap_or(Time::MAX).min(until);
        let pause = self.load.pause();
        if pause > Span::ZERO {
            std::thread::sleep(Duration::from_nanos(pause.as_nanos()));
        }
        let now = self.clock.now();
        // With a kernel data plane, finding ports with frames takes a system call.
        let with_frames = if self.kernel.is_none() { self.ports.with_frames() } else { None };
        let ready = match with_frames {
            Some(ports) if self.load.skips_look(now) && !ports.is_empty() => {
                Ready { ports, ..Ready::default() }
            }
            _ => {
                let has_more = self.load.has_more();
                let at_once = has_more || pause > Span::ZERO || self.ports.before_wait();
                let ready = self.poll(if at_once { now } else { wake_at })?;
                self.load.looked(self.clock.now());
                ready
            }
        };
        self.load.woken(self.clock.now(), wake_at);
        Ok(ready)
    }

    /// Waits for any of the descriptors to become ready, until `wake_at` at most.
    fn poll(&self, wake_at: Time) -> io::Result<Ready> {
        let span = wake_at.since(self.clock.now());
        let timeout = (wake_at < Time::MAX).then(|| Duration::from_nanos(span.as_nanos()));
        let is_due = || {
            let now = self.clock.now();
            self.load.has_more() || self.node.deadline().is_some_and(|deadline| deadline <= now)
        };
        let kernel = self.kernel.as_ref().map(|kernel| kernel.borrow());
        self.events.poll(timeout, kernel.as_deref(), &self.ports, is_due)
    }
}
