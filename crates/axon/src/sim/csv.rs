//! The report as CSV files: `flows.csv`, `ports.csv`, `drops.csv`, and, over time,
//! `samples.csv`.
//!
//! RFC 4180, but with a newline only at the end of a line. Fields that need quotes have them:
//! a name may hold what the fabric file gives it.

use crate::say::Unwritten;
use anyhow::{Context, Result};
use axon_sim::results::{FlowReport, Times};
use axon_sim::run::Report;
use csv::{Writer, WriterBuilder};
use std::fs::File;
use std::path::Path;

/// Columns of `flows.csv`. Times are in nanoseconds of simulated time.
const FLOWS: [&str; 31] = [
    "name",
    "app",
    "from",
    "to",
    "sent_packets",
    "sent_bytes",
    "received_packets",
    "received_bytes",
    "lost_packets",
    "in_flight_packets",
    "missing_packets",
    "lost_by",
    "reordered",
    "retransmits",
    "first_ns",
    "last_ns",
    "goodput_bps",
    "completed",
    "failed",
    "times_min_ns",
    "times_mean_ns",
    "times_p50_ns",
    "times_p99_ns",
    "times_max_ns",
    "latency_min_ns",
    "latency_mean_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "latency_max_ns",
    "done_ns",
    "unfinished",
];
const PORTS: [&str; 7] =
    ["port", "peer", "rx_frames", "rx_bytes", "tx_frames", "tx_bytes", "dropped_frames"];

/// The files of a folder.
pub const FILES: [&str; 4] = ["flows.csv", "ports.csv", "drops.csv", "samples.csv"];

/// Writes all files into `folder`, which is made if it is not there.
pub fn write(folder: &Path, report: &Report, unwritten: &mut Unwritten) {
    let made = std::fs::create_dir_all(folder);
    if let Err(error) = made.with_context(|| format!("cannot make {}", folder.display())) {
        return unwritten.take(Err(error));
    }
    unwritten.take(file(folder, FILES[0], |out| flows(out, report)));
    unwritten.take(file(folder, FILES[1], |out| ports(out, report)));
    unwritten.take(file(folder, FILES[2], |out| drops(out, report)));
    unwritten.take(file(folder, FILES[3], |out| samples(out, report)));
}

fn file(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut Writer<File>) -> csv::Result<()>,
) -> Result<()> {
    let path = folder.join(name);
    let write = || -> csv::Result<()> {
        let mut out = WriterBuilder::new().has_headers(false).from_path(&path)?;
        write(&mut out)?;
        Ok(out.flush()?)
    };
    write().map_err(plain).with_context(|| format!("cannot write {}", path.display()))
}

/// What the file system says, where it is that.
fn plain(error: csv::Error) -> anyhow::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => anyhow::anyhow!("{other:?}"),
    }
}

fn flows(out: &mut Writer<File>, report: &Report) -> csv::Result<()> {
    out.write_record(FLOWS)?;
    for flow in &report.flows {
        out.serialize((
            (&flow.name, flow.app, &flow.from, &flow.to),
            (flow.sent_packets, flow.sent_bytes, flow.received_packets, flow.received_bytes),
            (flow.lost_packets, flow.in_flight_packets, flow.missing_packets, by_reason(flow)),
            (flow.reordered, flow.retransmits),
            (flow.first_ns, flow.last_ns, flow.goodput_bps),
            (flow.completed, flow.failed),
            times(flow.times),
            times(flow.latency),
            (flow.done_ns, flow.unfinished),
        ))?;
    }
    Ok(())
}

/// One field: `queue_full 3;link_cut 1`.
fn by_reason(flow: &FlowReport) -> String {
    let reasons = flow.lost.iter().map(|(reason, count)| format!("{reason} {count}"));
    reasons.collect::<Vec<_>>().join(";")
}

/// Five fields, empty if nothing was measured.
fn times(times: Option<Times>) -> [Option<u64>; 5] {
    times.map_or([None; 5], |Times { min_ns, mean_ns, p50_ns, p99_ns, max_ns, .. }| {
        [min_ns, mean_ns, p50_ns, p99_ns, max_ns].map(Some)
    })
}

fn ports(out: &mut Writer<File>, report: &Report) -> csv::Result<()> {
    out.write_record(PORTS)?;
    for port in &report.ports {
        let received = (port.rx_frames, port.rx_bytes);
        let sent = (port.tx_frames, port.tx_bytes);
        out.serialize((&port.name, &port.peer, received, sent, port.dropped))?;
    }
    Ok(())
}

fn drops(out: &mut Writer<File>, report: &Report) -> csv::Result<()> {
    out.write_record(["place", "reason", "frames"])?;
    for drop in &report.ends {
        out.serialize((&drop.place, drop.reason, drop.frames))?;
    }
    Ok(())
}

/// Ports that sent nothing are left out.
fn samples(out: &mut Writer<File>, report: &Report) -> csv::Result<()> {
    out.write_record(["time_ns", "port", "tx_bytes", "queued_bytes"])?;
    let Some(samples) = &report.samples else { return Ok(()) };
    for (index, time) in samples.times.iter().enumerate() {
        for port in samples.ports.iter().filter(|port| port.tx_bytes.iter().any(|&sent| sent > 0)) {
            let (sent, queued) = (port.tx_bytes[index], port.queued_bytes[index]);
            out.serialize((time.as_nanos(), &port.name, sent, queued))?;
        }
    }
    Ok(())
}
