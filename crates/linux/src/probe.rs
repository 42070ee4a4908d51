//! Probes of a running daemon: the plan is a command, the report is in its telemetry.

use crate::{request, status};
use anyhow::{Result, anyhow, bail};
use axon_node::probe::{ProbePlan, ProbeReport};
use axon_node::{Done, Request};
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two looks at the status.
const LOOK: Duration = Duration::from_millis(20);
/// How long a report may take beyond what its probes take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks the switch whose status socket is `socket` for probes, and waits for them.
///
/// # Errors
/// Nobody takes commands there, the plan is refused, or the switch restarts meanwhile.
pub fn probe(socket: &Path, plan: &ProbePlan) -> Result<ProbeReport> {
    let done = request::ask(socket, Request::Probe(plan.clone()))
        .map_err(|error| anyhow!("no probes: {error:#}"))?;
    let Done::Probe(id) = done else { bail!("no probes: {done:?} is no answer to this") };
    let limit = Instant::now() + Duration::from_nanos(plan.span_max().as_nanos()) + PATIENCE;
    loop {
        let status = status::ask(socket)?;
        let report = status.node.probes().iter().find(|report| report.id == id);
        match report.filter(|report| report.plan == *plan) {
            None => bail!("{} has forgotten these probes: it has restarted", status.name),
            Some(report) if report.is_done() => return Ok(report.clone()),
            Some(_) if Instant::now() > limit => {
                bail!("{} did not finish its probes in time", status.name)
            }
            Some(_) => std::thread::sleep(LOOK),
        }
    }
}
