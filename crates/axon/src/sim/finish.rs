//! End of a run: its report as JSON, its errors, its exit status.

use super::wall::Wall;
use crate::cli::output;
use crate::cli::say::{INTERRUPTED, UNTRIED, Unwritten, note};
use anyhow::Result;
use axon_sim::run::Report;
use serde::Serialize;

/// JSON output of `axon sim --json`.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Figures of this machine; all others are equal for equal seeds.
    machine: Machine,
}

/// Resources that a run used on this machine.
#[derive(Serialize)]
struct Machine {
    /// Number of threads of the run.
    threads: usize,
    /// Wall time from the first event to the last, in seconds.
    wall_seconds: f64,
    /// Frames that left a link, per second of wall time.
    packet_hops_per_wall_second: f64,
    /// Peak resident memory, in bytes.
    peak_memory_bytes: u64,
}

/// Returns the report as JSON.
///
/// # Errors
/// The report cannot be serialised.
pub(crate) fn json(report: &Report, wall: &Wall) -> Result<String> {
    let machine = Machine {
        threads: report.threads,
        wall_seconds: wall.seconds,
        packet_hops_per_wall_second: wall.pace(),
        peak_memory_bytes: wall.memory_bytes,
    };
    output::json(&Output { report, machine })
}

/// Prints the errors of the run on standard error. Returns the exit status.
pub(crate) fn finish(report: &Report, wall: &Wall, unwritten: &Unwritten) -> u8 {
    report.warnings.iter().for_each(|warning| note!("warning: {warning}"));
    report.silent.iter().for_each(|entry| note!("{entry}"));
    if let Some(reason) = &report.stopped {
        note!("{} stopped: {reason}; what there is was written", report.fabric);
        return if wall.interrupted { INTERRUPTED } else { UNTRIED };
    }
    let (unfinished, all) = (report.unfinished.len(), report.flows.len());
    if unfinished > 0 {
        note!("{unfinished} of {all} flows did not come to their end");
    }
    let (lacking, hosts) = (report.without_address.len(), report.hosts);
    if lacking > 0 {
        note!("{lacking} of {hosts} hosts are connected and have no address");
    }
    if !report.passed() && report.trace_error.is_none() {
        note!("{} failed; replay it with --seed {}", report.fabric, report.seed);
    }
    unwritten.status(report.passed())
}
