//! The report as CSV files: `flows.csv`, `ports.csv`, `drops.csv`, `ended.csv`, and, over time,
//! `samples.csv`. In addition, `format.json` has the version of their format and their columns, for
//! which CSV itself has no standard place.
//!
//! RFC 4180, but with a newline only at the end of a line. Fields are quoted where needed, since
//! the fabric file chooses names.

use crate::cli::output;
use crate::cli::say::Unwritten;
use anyhow::{Context, Result};
use axon_sim::results::{EndCount, FlowReport, PortSamples, Times};
use axon_sim::run::Report;
use csv::{Reader, StringRecord, Writer, WriterBuilder};
use serde::Serialize;
use std::fs::File;
use std::path::Path;

/// A line of `flows.csv`: one flow. Times are simulated.
#[derive(Default, Serialize)]
struct FlowRow<'a> {
    /// Name of its entry in the traffic section.
    name: &'a str,
    /// Application: `udp`, `tcp`, ...
    app: &'a str,
    /// Host that sends data or requests.
    from: &'a str,
    /// Host that receives data or answers requests; `*` for several.
    to: &'a str,
    /// Datagrams, frames of a replay, writes or requests sent.
    sent_packets: u64,
    /// Bytes of payload sent; of a replay, of frames.
    sent_bytes: u64,
    /// Datagrams, frames of a replay or reads received at the other end, or responses received.
    received_packets: u64,
    /// Bytes of payload received; of a replay, of frames.
    received_bytes: u64,
    /// Number of the missing packets that have ended for a counted reason; empty if not known.
    lost_packets: Option<u64>,
    /// Number of the missing packets that are neither lost nor received; empty if not known.
    in_flight_packets: Option<u64>,
    /// Packets sent and not received so far: lost or in flight; empty if not known.
    missing_packets: Option<u64>,
    /// Lost packets by reason: `queue_full 3;link_cut 1`.
    lost_by: String,
    /// Datagrams that arrived after one that was sent later.
    reordered: u64,
    /// Segments or requests that were retransmitted.
    retransmits: u64,
    /// Time at which the first packet was sent; empty if none was.
    first_ns: Option<u64>,
    /// Time at which the last packet was received; empty if none was.
    last_ns: Option<u64>,
    /// Payload received per time from the first transmission to the last arrival, in bits per
    /// second.
    goodput_bps: Option<u64>,
    /// Completed transfers, rounds or transactions.
    completed: u64,
    /// Transfers, rounds or transactions that were given up or broke.
    failed: u64,
    /// Minimum time of a completed one, in nanoseconds; empty if none was measured, as are the next
    /// four.
    times_min_ns: Option<u64>,
    /// Mean time of the completed ones, in nanoseconds.
    times_mean_ns: Option<u64>,
    /// Median time of the completed ones, at most 1.6 % too high.
    times_p50_ns: Option<u64>,
    /// 99th percentile of the times of the completed ones, at most 1.6 % too high.
    times_p99_ns: Option<u64>,
    /// Maximum time of a completed one, in nanoseconds.
    times_max_ns: Option<u64>,
    /// Minimum latency of a datagram from sending to arrival, in nanoseconds; empty if none was
    /// measured, as are the next four.
    latency_min_ns: Option<u64>,
    /// Mean latency of the datagrams, in nanoseconds.
    latency_mean_ns: Option<u64>,
    /// Median latency of the datagrams, at most 1.6 % too high.
    latency_p50_ns: Option<u64>,
    /// 99th percentile of the latency of the datagrams, at most 1.6 % too high.
    latency_p99_ns: Option<u64>,
    /// Maximum latency of a datagram, in nanoseconds.
    latency_max_ns: Option<u64>,
    /// Time at which everything was done; empty if it was not.
    done_ns: Option<u64>,
    /// True if the flow should have ended and has not, or its connection broke.
    unfinished: bool,
}

/// A line of `ports.csv`: one port of a switch or of the controller, in the last incarnation of its
/// node.
#[derive(Default, Serialize)]
struct PortRow<'a> {
    /// Name of the port, `s1-p0`.
    port: &'a str,
    /// Port at the other end of its link; empty without one.
    peer: &'a str,
    /// Frames received by the port.
    rx_frames: u64,
    /// Bytes of the frames received, without FCS.
    rx_bytes: u64,
    /// Frames sent by the port.
    tx_frames: u64,
    /// Bytes of the frames sent, without FCS.
    tx_bytes: u64,
    /// Frames received at the port and dropped by the node.
    dropped_frames: u64,
}

/// A line of `drops.csv`: frames that were dropped or lost at one place for one reason.
#[derive(Default, Serialize)]
struct DropRow<'a> {
    /// Node that dropped the frames, port by which they had arrived, or, for losses on links, port
    /// that had sent them.
    place: &'a str,
    /// Reason of the drops: `queue_full`.
    reason: &'a str,
    /// Frames that were dropped there for this reason.
    frames: u64,
}

/// A line of `ended.csv`: frames that ended at one place in normal operation, which are not drops:
/// control packets and MAC control frames that were consumed, and frames that arrived before the
/// port's neighbour was known.
#[derive(Default, Serialize)]
struct EndedRow<'a> {
    /// Node in which the frames ended, or port by which they had arrived.
    place: &'a str,
    /// Reason that the frames ended: `consumed`.
    reason: &'a str,
    /// Frames that ended there for this reason.
    frames: u64,
}

/// A line of `samples.csv`: one port at one sample. Ports that sent nothing are left out.
#[derive(Default, Serialize)]
struct SampleRow<'a> {
    /// Simulated time of the sample.
    time_ns: u64,
    /// Name of the port, `s1-p0`.
    port: &'a str,
    /// Bytes of frames, without FCS, whose transmission had begun by then, over all incarnations of
    /// the switch; empty without power.
    tx_bytes: Option<u64>,
    /// Bytes queued at that time; empty without power.
    queued_bytes: Option<u64>,
}

/// Names of the files in the folder.
pub(crate) const FILES: [&str; 6] =
    ["flows.csv", "ports.csv", "drops.csv", "ended.csv", "samples.csv", output::CSV_FORMAT];

/// Writes all files into `folder`, which is created if missing.
pub(crate) fn write(folder: &Path, report: &Report, unwritten: &mut Unwritten) {
    let made = std::fs::create_dir_all(folder);
    if let Err(error) = made.with_context(|| format!("cannot make {}", folder.display())) {
        return unwritten.take(Err(error));
    }
    unwritten.take(file(folder, FILES[0], |out| flows(out, report)));
    unwritten.take(file(folder, FILES[1], |out| ports(out, report)));
    unwritten.take(file(folder, FILES[2], |out| drops(out, report)));
    unwritten.take(file(folder, FILES[3], |out| ended(out, report)));
    unwritten.take(file(folder, FILES[4], |out| samples(out, report)));
    let columns = [
        columns::<FlowRow<'_>>(),
        columns::<PortRow<'_>>(),
        columns::<DropRow<'_>>(),
        columns::<EndedRow<'_>>(),
        columns::<SampleRow<'_>>(),
    ];
    let named = FILES.into_iter().zip(columns);
    let tables: csv::Result<_> = named
        .map(|(name, columns)| Ok((name, columns?.iter().map(str::to_owned).collect())))
        .collect();
    let written = tables.map_err(plain).and_then(|tables| {
        output::json(&output::CsvFormat { tables })
            .and_then(|text| output::write(&folder.join(output::CSV_FORMAT), &text))
    });
    unwritten.take(written);
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

/// Returns the error of the file system, if it is the cause.
fn plain(error: csv::Error) -> anyhow::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => anyhow::anyhow!("{other:?}"),
    }
}

/// Returns the names of the columns of a table, even without rows.
fn columns<Row: Default + Serialize>() -> csv::Result<StringRecord> {
    let mut table = Writer::from_writer(Vec::new());
    table.serialize(Row::default())?;
    let table = table.into_inner().map_err(|error| error.into_error())?;
    Reader::from_reader(&table[..]).headers().cloned()
}

fn flows(out: &mut Writer<File>, report: &Report) -> csv::Result<()> {
    out.write_record(&columns::<FlowRow<'_>>()?)?;
    for flow in &report.flows {
        let [times_min_ns, times_mean_ns, times_p50_ns, times_p99_ns, times_max_ns] =
            times(flow.times);
        let [latency_min_ns, latency_mean_ns, latency_p50_ns, latency_p99_ns, latency_max_ns] =
            times(flow.latency);
        out.serialize(FlowRow {
            name: &flow.name,
            app: flow.app,
            from: &flow.from,
            to: &flow.to,
            sent_packets: flow.sent_packets,
            sent_bytes: flow.sent_bytes,
            received_packets: flow.received_packets,
            received_bytes: flow.received_bytes,
            lost_packets: flow.lost_packets,
            in_flight_packets: flow.in_flight_packets,
            missing_packets: flow.missing_packets,
            lost_by: by_reason(flow),
            reordered: flow.reordered,
            retransmits: flow.retransmits,
            first_ns: flow.first_ns,
            last_ns: flow.last_ns,
            goodput_bps: flow.goodput_bps,
            completed: flow.completed,
            failed: flow.failed,
            times_min_ns,
            times_mean_ns,
            times_p50_ns,
            times_p99_ns,
            times_max_ns,
            latency_min_ns,
            latency_mean_ns,
            latency_p50_ns,
            latency_p99_ns,
            latency_max_ns,
            done_ns: flow.done_ns,
            unfinished: flow.unfinished,
        })?;
    }
    Ok(())
}

/// Returns one field: `queue_full 3;link_cut 1`.
fn by_reason(flow: &FlowReport) -> String {
    let reasons = flow.lost.iter().map(|(reason, count)| format!("{reason} {count}"));
    reasons.collect::<Vec<_>>().join(";")
}

/// Returns five fields, empty if nothing was measured.
fn times(times: Option<Times>) -> [Option<u64>; 5] {
    times.map_or([None; 5], |Times { min_ns, mean_ns, p50_ns, p99_ns, max_ns, .. }| {
        [min_ns, mean_ns, p50_ns, p99_ns, max_ns].map(Some)
    })
}

fn ports(out: &mut Writer<File>, report: &Report) -> csv::Result<()> {
    out.write_record(&columns::<PortRow<'_>>()?)?;
    for port in &report.ports {
        out.serialize(PortRow {
            port: &port.name,
            peer: &port.peer,
            rx_frames: port.rx_frames,
            rx_bytes: port.rx_bytes,
            tx_frames: port.tx_frames,
            tx_bytes: port.tx_bytes,
            dropped_frames: port.dropped,
        })?;
    }
    Ok(())
}

fn drops(out: &mut Writer<File>, report: &Report) -> csv::Result<()> {
    out.write_record(&columns::<DropRow<'_>>()?)?;
    for EndCount { place, reason, frames, .. } in &report.dropped_at {
        out.serialize(DropRow { place, reason, frames: *frames })?;
    }
    Ok(())
}

fn ended(out: &mut Writer<File>, report: &Report) -> csv::Result<()> {
    out.write_record(&columns::<EndedRow<'_>>()?)?;
    for EndCount { place, reason, frames, .. } in &report.ended_at {
        out.serialize(EndedRow { place, reason, frames: *frames })?;
    }
    Ok(())
}

fn samples(out: &mut Writer<File>, report: &Report) -> csv::Result<()> {
    out.write_record(&columns::<SampleRow<'_>>()?)?;
    let Some(samples) = &report.samples else { return Ok(()) };
    let has_sent = |port: &&PortSamples| port.tx_bytes.iter().any(|sent| *sent > Some(0));
    for (index, time) in samples.times.iter().enumerate() {
        for port in samples.ports.iter().filter(has_sent) {
            out.serialize(SampleRow {
                time_ns: time.as_nanos(),
                port: &port.name,
                tx_bytes: port.tx_bytes[index],
                queued_bytes: port.queued_bytes[index],
            })?;
        }
    }
    Ok(())
}
