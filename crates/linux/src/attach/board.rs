//! What the thread that runs an agent and the one that answers for it share.

use super::status::AttachmentStatus;
use axon_agents::Counters;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an agent may take to show its counters: it looks ten times a second.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The state of an attachment, and what is asked of it.
pub(super) struct Board {
    to_end: AtomicBool,
    /// The counters are to be shown.
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

    /// Nothing here panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the agent is to end.
    pub(super) fn is_to_end(&self) -> bool {
        self.to_end.load(Ordering::Relaxed)
    }

    /// The same, for the loop that runs it.
    pub(super) fn end_flag(&self) -> &AtomicBool {
        &self.to_end
    }

    /// Lets the agent end.
    pub(super) fn ask_to_end(&self) {
        self.to_end.store(true, Ordering::Relaxed);
        let _state = self.state();
        self.changed.notify_all();
    }

    /// The agent has ended.
    pub(super) fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }

    /// Whether the agent has ended, or does so within this time.
    pub(super) fn ends_within(&self, limit: Duration) -> bool {
        let state = self.changed.wait_timeout_while(self.state(), limit, |state| !state.ended);
        state.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// Waits so long, or until the agent is to end.
    pub(super) fn pause(&self, limit: Duration) {
        let waits = |_: &mut State| !self.is_to_end();
        drop(self.changed.wait_timeout_while(self.state(), limit, waits));
    }

    /// Whether the counters are to be shown.
    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The agent is attached.
    pub(super) fn attached(&self) {
        let mut state = self.state();
        (state.status.attached, state.status.attachments) = (true, state.status.attachments + 1);
    }

    /// The agent is no longer attached, and has counted this.
    pub(super) fn detached(&self, counters: Counters) {
        self.state().status.attached = false;
        self.show(counters);
    }

    /// Shows what the agent has counted.
    pub(super) fn show(&self, counters: Counters) {
        let mut state = self.state();
        let counters = counters.into_iter().map(|(name, count)| (name.to_owned(), count));
        state.status.counters = counters.collect();
        self.asked.store(false, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// The status as it was shown last.
    pub(super) fn status(&self) -> AttachmentStatus {
        self.state().status.clone()
    }

    /// The status as it is now.
    pub(super) fn ask(&self) -> AttachmentStatus {
        let state = self.state();
        self.asked.store(true, Ordering::Relaxed);
        let waits = |state: &mut State| state.status.attached && self.is_asked();
        let state = self.changed.wait_timeout_while(state, ANSWER_MAX, waits);
        state.unwrap_or_else(PoisonError::into_inner).0.status.clone()
    }
}
