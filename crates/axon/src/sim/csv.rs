//! The report as CSV files: `flows.csv`, `ports.csv`, `drops.csv`, `ended.csv`, and, over time,
//! `samples.csv`. Beside them, `format.json` has the version of their format and their columns:
//! CSV has no place for it that its readers would understand.
//!
//! RFC 4180, but with a newline only at the end of a line. Fields that need quotes have them:
//! a name may hold what the fabric file gives it.

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
    /// The name of its entry in the traffic section.
    name: &'a str,
    /// What runs: `udp`, `tcp`, ...
    app: &'a str,
    /// The host that sends or asks.
    from: &'a str,
    /// The host that receives or answers; `*` for several.
    to: &'a str,
    /// Datagrams, frames of a replay, writes or requests sent.
    sent_packets: u64,
    /// Bytes of payload sent; of a replay, of frames.
    sent_bytes: u64,
    /// Datagrams, frames of a replay or reads received at the other end, or answers.
    received_packets: u64,
    /// Bytes of payload received; of a replay, of frames.
    received_bytes: u64,
    /// Of the missing, those that have ended for a counted reason; empty if not known.
    lost_packets: Option<u64>,
    /// Of the missing, those that are neither lost nor received; empty if not known.
    in_flight_packets: Option<u64>,
    /// Sent and not received so far: lost or in flight; empty if not known.
    missing_packets: Option<u64>,
    /// The lost ones by reason: `queue_full 3;link_cut 1`.
    lost_by: String,
    /// Datagrams that came after one that was sent later.
    reordered: u64,
    /// Segments or requests that were sent again.
    retransmits: u64,
    /// When the first was sent; empty if none was.
    first_ns: Option<u64>,
    /// When the last was received; empty if none was.
    last_ns: Option<u64>,
    /// Payload received per time from the first sending to the last arrival, in bits per second.
    goodput_bps: Option<u64>,
    /// Transfers, rounds or transactions that came to their end.
    completed: u64,
    /// What was given up or broke.
    failed: u64,
    /// The shortest time that one of the completed took; empty if none was measured, as are the
    /// four that follow.
    times_min_ns: Option<u64>,
    /// The mean time of the completed, in nanoseconds.
    times_mean_ns: Option<u64>,
    /// What half of them do not exceed, at most 1.6 % too high.
    times_p50_ns: Option<u64>,
    /// What 99 of 100 do not exceed, at most 1.6 % too high.
    times_p99_ns: Option<u64>,
    /// The longest time of a completed one, in nanoseconds.
    times_max_ns: Option<u64>,
    /// The shortest time of a datagram from sending to arrival; empty if none was measured, as are
    /// the four that follow.
    latency_min_ns: Option<u64>,
    /// The mean latency of the datagrams, in nanoseconds.
    latency_mean_ns: Option<u64>,
    /// What half of them do not exceed, at most 1.6 % too high.
    latency_p50_ns: Option<u64>,
    /// What 99 of 100 do not exceed, at most 1.6 % too high.
    latency_p99_ns: Option<u64>,
    /// The longest latency of a datagram, in nanoseconds.
    latency_max_ns: Option<u64>,
    /// When all that there was to do was done; empty if it is not.
    done_ns: Option<u64>,
    /// Whether it should have come to its end and has not, or its connection broke.
    unfinished: bool,
}

/// A line of `ports.csv`: one port of a switch or of the controller, in the last incarnation of its
/// node.
#[derive(Default, Serialize)]
struct PortRow<'a> {
    /// The name of the port, `s1-p0`.
    port: &'a str,
    /// The port at the other end of its link; empty without one.
    peer: &'a str,
    /// Frames that came in.
    rx_frames: u64,
    /// Their bytes, without FCS.
    rx_bytes: u64,
    /// Frames that went out.
    tx_frames: u64,
    /// Their bytes, without FCS.
    tx_bytes: u64,
    /// Frames that came in here and that the node dropped.
    dropped_frames: u64,
}

/// A line of `drops.csv`: frames that were dropped or lost at one place for one reason.
#[derive(Default, Serialize)]
struct DropRow<'a> {
    /// The node that dropped them, the port by which they had come in, or, for what links lose,
    /// the port that had sent them.
    place: &'a str,
    /// The reason for which the frames were dropped: `queue_full`.
    reason: &'a str,
    /// Frames that were dropped there for this reason.
    frames: u64,
}

/// A line of `ended.csv`: frames that ended at one place in normal operation, which are no drops:
/// control packets and MAC control frames that were taken in, and what came in before it was known
/// what is at a port.
#[derive(Default, Serialize)]
struct EndedRow<'a> {
    /// The node in which they ended, or the port by which they had come in.
    place: &'a str,
    /// The reason for which the frames ended: `consumed`.
    reason: &'a str,
    /// Frames that ended there for this reason.
    frames: u64,
}

/// A line of `samples.csv`: one port at one sample. Ports that sent nothing are left out.
#[derive(Default, Serialize)]
struct SampleRow<'a> {
    /// Simulated time of the sample.
    time_ns: u64,
    /// The name of the port, `s1-p0`.
    port: &'a str,
    /// Bytes of frames, without FCS, that had begun to go out by then, over all incarnations of the
    /// switch; empty without power.
    tx_bytes: Option<u64>,
    /// Bytes that were queued then; empty without power.
    queued_bytes: Option<u64>,
}

/// The files of a folder.
pub const FILES: [&str; 6] =
    ["flows.csv", "ports.csv", "drops.csv", "ended.csv", "samples.csv", output::CSV_FORMAT];

/// Writes all files into `folder`, which is made if it is not there.
pub fn write(folder: &Path, report: &Report, unwritten: &mut Unwritten) {
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

/// What the file system says, where it is that.
fn plain(error: csv::Error) -> anyhow::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.into(),
        other => anyhow::anyhow!("{other:?}"),
    }
}

/// The names of the columns of a table, which it has also without rows.
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
