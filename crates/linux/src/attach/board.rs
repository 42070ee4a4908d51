//! State shared by the thread that runs an agent and the thread that answers status requests.

use super::status::AttachmentStatus;
use axon_agents::Counters;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time limit for an agent to publish its counters. It checks ten times per second.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// State of an attachment, and requests that are pending for it.
pub(super) struct Board {
    to_end: AtomicBool,
    /// True if the counters have been requested.
    asked: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    status: AttachmentStatus,
    ended: bool,
}

impl Board {
    pub(super) fn new(agent: &str, kind: &str) -> Board {
        let status = AttachmentStatus {
            agent: agent.to_owned(),
            kind: kind.to_owned(),
            ..AttachmentStatus::default()
        };
        Board {
            to_end: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            state: Mutex::new(State { status, ended: false }),
            changed: Condvar::new(),
        }
    }

    /// No code panics while it holds this lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the agent is to end.
    pub(super) fn is_to_end(&self) -> bool {
        self.to_end.load(Ordering::Relaxed)
    }

    /// Returns the end flag, for the loop that runs the agent.
    pub(super) fn end_flag(&self) -> &AtomicBool {
        &self.to_end
    }

    /// Requests that the agent ends.
    pub(super) fn ask_to_end(&self) {
        self.to_end.store(true, Ordering::Relaxed);
        let _state = self.state();
        self.changed.notify_all();
    }

    /// Records that the agent has ended.
    pub(super) fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }

    /// Returns whether the agent has ended or ends within `limit`.
    pub(super) fn ends_within(&self, limit: Duration) -> bool {
        let state = self.changed.wait_timeout_while(self.state(), limit, |state| !state.ended);
        state.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// Waits for `limit`, or until the agent is to end.
    pub(super) fn pause(&self, limit: Duration) {
        let waits = |_: &mut State| !self.is_to_end();
        drop(self.changed.wait_timeout_while(self.state(), limit, waits));
    }

    /// Returns whether the counters have been requested.
    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Records that the agent is attached.
    pub(super) fn attached(&self) {
        let mut state = self.state();
        (state.status.attached, state.status.attachments) = (true, state.status.attachments + 1);
    }

    /// Records that the agent is detached, and stores its counters.
    pub(super) fn detached(&self, counters: Counters) {
        self.state().status.attached = false;
        self.show(counters);
    }

    /// Publishes the counters of the agent.
    pub(super) fn show(&self, counters: Counters) {
        let mut state = self.state();
        let counters = counters.into_iter().map(|(name, count)| (name.to_owned(), count));
        state.status.counters = counters.collect();
        self.asked.store(false, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Returns the last published status.
    pub(super) fn status(&self) -> AttachmentStatus {
        self.state().status.clone()
    }

    /// Requests the current status and returns it.
    pub(super) fn ask(&self) -> AttachmentStatus {
        let state = self.state();
        self.asked.store(true, Ordering::Relaxed);
        let waits = |state: &mut State| state.status.attached && self.is_asked();
        let state = self.changed.wait_timeout_while(state, ANSWER_MAX, waits);
        state.unwrap_or_else(PoisonError::into_inner).0.status.clone()
    }
}
