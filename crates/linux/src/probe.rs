//! Probes of a running daemon: the plan as a request, the report as part of its status.

use crate::{request, status};
use anyhow::{Context, Result, bail};
use axon_control::node::SwitchNode;
use axon_node::probe::{ProbeId, ProbePlan, ProbeReport, ProbeReturn};
use axon_node::{Command, Done, Reply, Request, RequestId};
use axon_plane::Plane;
use axon_wire::probe::{ProbeRecord, ProbeUnit};
use axon_wire::{Bytes, FrameBuf, PortNo, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Requests whose outcome a switch remembers.
const KEPT: usize = 4;
/// Between two looks at the status.
const LOOK: Duration = Duration::from_millis(20);
/// How long a report may take beyond what its probes take.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a switch tells of a request.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    token: u64,
    /// Why there is no report, if so.
    refused: Option<String>,
    sent: u32,
    lost: u32,
    learned: bool,
    returns: Vec<ToldReturn>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ToldReturn {
    number: u32,
    sent_at_ticks: u64,
    back_at_ticks: u64,
    /// Unit, port, queued bytes, time in ticks of 10 ps.
    records: Vec<(ProbeUnit, u16, u64, u64)>,
}

impl ToldReturn {
    fn of(back: &ProbeReturn) -> ToldReturn {
        let record = |of: &ProbeRecord| (of.unit, of.port.0, of.queued.0, of.time.ticks());
        ToldReturn {
            number: back.number,
            sent_at_ticks: back.sent_at.ticks(),
            back_at_ticks: back.back_at.ticks(),
            records: back.records.iter().map(record).collect(),
        }
    }

    fn back(&self) -> ProbeReturn {
        let record = |&(unit, port, queued, ticks): &(ProbeUnit, u16, u64, u64)| ProbeRecord {
            unit,
            port: PortNo(port),
            queued: Bytes(queued),
            time: Time::from_ticks(ticks),
        };
        ProbeReturn {
            number: self.number,
            sent_at: Time::from_ticks(self.sent_at_ticks),
            back_at: Time::from_ticks(self.back_at_ticks),
            records: self.records.iter().map(record).collect(),
        }
    }
}

/// The requests that a switch has had.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    outcomes: VecDeque<(u64, Result<ProbeId, String>)>,
}

impl Desk {
    /// Keeps what came of a command, in place of the oldest.
    pub fn replied(&mut self, reply: &Reply) {
        if self.outcomes.len() >= KEPT {
            self.outcomes.pop_front();
        }
        let outcome = reply.result.clone().map(|Done::Probe(id)| id);
        self.outcomes.push_back((reply.id.0, outcome.map_err(|error| error.to_string())));
    }

    /// What came of them, for the status.
    pub fn status(&self, node: &SwitchNode<FrameBuf, Plane<FrameBuf>>) -> Value {
        let told = |(token, outcome): &(u64, Result<ProbeId, String>)| {
            let none = Told {
                token: *token,
                refused: None,
                sent: 0,
                lost: 0,
                learned: false,
                returns: Vec::new(),
            };
            match outcome {
                Err(reason) => Told { refused: Some(reason.clone()), ..none },
                Ok(id) => match node.probes().find(|report| report.id == *id) {
                    None => Told { refused: Some("forgotten: others came since".into()), ..none },
                    Some(report) => Told {
                        sent: report.sent,
                        lost: report.lost,
                        learned: report.learned,
                        returns: report.returns.iter().map(ToldReturn::of).collect(),
                        ..none
                    },
                },
            }
        };
        json!(self.outcomes.iter().map(told).collect::<Vec<_>>())
    }
}

/// Asks the switch whose status socket is `socket` for probes, and waits for them.
///
/// # Errors
/// Nobody listens there, the plan is refused, or the switch restarts meanwhile.
pub fn probe(socket: &Path, plan: &ProbePlan) -> Result<ProbeReport> {
    // Unlike that of any other who asks meanwhile: process and number.
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let number = ASKED.fetch_add(1, Ordering::Relaxed);
    let token = u64::from(std::process::id()) << 32 | u64::from(number);
    let command = Command { id: RequestId(token), request: Request::Probe(plan.clone()) };
    request::send(socket, &serde_json::to_value(command)?)
        .with_context(|| format!("no switch takes requests at {}", socket.display()))?;
    let nanos = plan.interval.as_nanos() * u64::from(plan.count) + 2 * plan.timeout.as_nanos();
    let limit = Instant::now() + Duration::from_nanos(nanos) + PATIENCE;
    loop {
        let status = status::ask(socket)?;
        let all: Vec<Told> = serde_json::from_value(status["node"]["probes"].clone())
            .context("this daemon does not tell of probes")?;
        if let Some(told) = all.into_iter().find(|told| told.token == token) {
            if let Some(reason) = told.refused {
                bail!("the switch refuses: {reason}");
            }
            let returns: Vec<ProbeReturn> = told.returns.iter().map(ToldReturn::back).collect();
            let Told { sent, lost, learned, .. } = told;
            let plan = plan.clone();
            let report = ProbeReport { id: ProbeId(token), plan, sent, lost, learned, returns };
            if report.is_done() {
                return Ok(report);
            }
        }
        if Instant::now() > limit {
            bail!("the switch at {} did not finish its probes in time", socket.display());
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_survive_their_json() {
        let record = ProbeRecord {
            unit: ProbeUnit::Egress,
            port: PortNo(4),
            queued: Bytes(99),
            time: Time::from_ticks(u64::MAX),
        };
        let back = ProbeReturn {
            number: 3,
            sent_at: Time::from_ticks(1),
            back_at: Time::from_ticks(2),
            records: vec![record],
        };
        let text = serde_json::to_string(&ToldReturn::of(&back)).unwrap();
        assert_eq!(serde_json::from_str::<ToldReturn>(&text).unwrap().back(), back);
    }
}
