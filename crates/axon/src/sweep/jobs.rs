//! Concurrent runs: one worker for each job, each with one run after the other; or copies of this
//! process that go on from one warmed-up simulation.

use super::child::{Slot, outcome};
use super::plan::Plan;
use super::results::Results;
use crate::cli::say::INTERRUPTED;
use crate::sim::{Base, Continuation};
use anyhow::{Context, Result};
use axon_linux::fork::first_ended;
use axon_wire::Bytes;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Interval between checks for an interruption, and between updates of the display.
const LOOK: Duration = Duration::from_millis(100);

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
    results: &mut Results,
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
                    Ok((run, outcome)) => results.done(run, outcome?)?,
                    Err(RecvTimeoutError::Timeout) => results.look(),
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
            results.done(run, outcome?)?;
        }
        ended
    })
}

/// Runs all of `todo` like [`run`], each as a copy of this process that goes on from `base`.
///
/// # Errors
/// As for [`run`].
pub(crate) fn fork(
    (plan, base): (&Plan, &mut Base),
    todo: &[usize],
    (jobs, memory_max): (usize, Option<Bytes>),
    stop: &AtomicBool,
    results: &mut Results,
) -> Result<()> {
    let (mut ahead, mut runs, mut copies) = (todo.iter(), Vec::new(), Vec::new());
    loop {
        while copies.len() < jobs
            && !stop.load(Ordering::Relaxed)
            && let Some(&run) = ahead.next()
        {
            let (fabric, _) = plan.fabric(run)?;
            let (duration, threads) = (plan.duration, 1);
            let on = Continuation { fabric: &fabric, duration, threads, memory_max, is_json: true };
            copies.push(base.fork(&on)?);
            runs.push(run);
        }
        if copies.is_empty() {
            return Ok(());
        }
        // After an interruption, runs that have ended are kept, and the others are killed.
        let stopped = stop.load(Ordering::Relaxed);
        let limit = if stopped { Duration::ZERO } else { LOOK };
        match first_ended(&copies, limit).context("cannot wait for runs")? {
            Some(index) => {
                let run = runs.swap_remove(index);
                let ended = copies.swap_remove(index).wait().context("a run is lost")?;
                // An interrupted run has no outcome.
                if ended.status.code() == Some(INTERRUPTED.into()) {
                    continue;
                }
                let said = String::from_utf8_lossy(&ended.errors);
                let parameters = plan.parameters(run);
                results.done(run, outcome(ended.status, &ended.output, &said, parameters))?;
            }
            None if stopped => return Ok(()),
            None => {}
        }
        results.look();
    }
}
