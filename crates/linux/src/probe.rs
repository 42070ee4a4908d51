//! Sends probes from a running daemon. The plan is a command, and the report is part of the
//! telemetry.

use crate::{request, status};
use anyhow::{Result, anyhow, bail};
use axon_node::probe::{ProbePlan, ProbeReport};
use axon_node::{Done, Request};
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval at which the status is polled.
const LOOK: Duration = Duration::from_millis(20);
/// Time limit for a report, in addition to the duration of its probes.
const PATIENCE: Duration = Duration::from_secs(3);

/// Makes the switch whose status socket is `socket` send probes, and waits for the report.
///
/// # Errors
/// No daemon accepts commands there, the plan is refused, or the switch restarts in the meantime.
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
