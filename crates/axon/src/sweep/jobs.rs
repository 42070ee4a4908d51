//! Concurrent runs: one worker for each job, each with one run after the other.

use super::child::{Outcome, Slot};
use super::plan::Plan;
use anyhow::Result;
use axon_wire::Bytes;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Interval between checks for an interruption, and between updates of the display.
const LOOK: Duration = Duration::from_millis(100);

/// Observer of a sweep.
pub trait Follow {
    /// Handles a run that has ended.
    ///
    /// # Errors
    /// The sweep cannot continue.
    fn done(&mut self, run: usize, outcome: Outcome) -> Result<()>;

    /// Updates the display; called at intervals.
    fn look(&mut self);
}

/// Runs all of `todo`, in this order, `jobs` at a time, each with at most `memory`. If `stop` is
/// set meanwhile, runs that are not complete are abandoned.
///
/// # Errors
/// A run could not be started, or its result could not be stored: the others are abandoned.
pub fn run(
    plan: &Plan,
    todo: &[usize],
    (jobs, memory): (usize, Option<Bytes>),
    stop: &AtomicBool,
    follow: &mut dyn Follow,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let slots: Vec<Slot> = (0..jobs.min(todo.len())).map(|_| Slot::default()).collect();
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for slot in &slots {
            let (sender, next, is_over) = (sender.clone(), &next, &is_over);
            scope.spawn(move || {
                while let Some(&run) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let over = || is_over.load(Ordering::SeqCst);
                    let outcome = slot.run((plan, run), memory, over).transpose();
                    let Some(outcome) = outcome else { return };
                    // A killed run has no outcome.
                    if is_over.load(Ordering::SeqCst) || sender.send((run, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut end = || -> Result<()> {
            loop {
                match receiver.recv_timeout(LOOK) {
                    Ok((run, outcome)) => follow.done(run, outcome?)?,
                    Err(RecvTimeoutError::Timeout) => follow.look(),
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        };
        let ended = end();
        is_over.store(true, Ordering::SeqCst);
        slots.iter().for_each(Slot::kill);
        // Results from before the error are kept.
        while let (true, Ok((run, outcome))) = (ended.is_ok(), receiver.try_recv()) {
            follow.done(run, outcome?)?;
        }
        ended
    })
}
