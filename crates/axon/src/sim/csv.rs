//! The report as CSV files: `flows.csv`, `ports.csv`, `drops.csv`, and, over time,
//! `samples.csv`.
//!
//! RFC 4180, but with a newline only at the end of a line. No field needs quotes: names of
//! nodes and reasons have neither commas nor quotes in them, and those of traffic lose theirs.

use anyhow::{Context, Result};
use axon_sim::results::{FlowReport, Times};
use axon_sim::run::Report;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The files of a folder.
pub const FILES: [&str; 4] = ["flows.csv", "ports.csv", "drops.csv", "samples.csv"];

/// Writes all files into `folder`, which is made if it is not there.
pub fn write(folder: &Path, report: &Report) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    file(folder, FILES[0], |out| flows(out, report))?;
    file(folder, FILES[1], |out| ports(out, report))?;
    file(folder, FILES[2], |out| drops(out, report))?;
    file(folder, FILES[3], |out| samples(out, report))
}

fn file(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    let path = folder.join(name);
    let written = File::create(&path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.with_context(|| path.display().to_string())
}

fn flows(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    writeln!(
        out,
        "name,app,from,to,sent_packets,sent_bytes,received_packets,received_bytes,lost_packets,\
         in_flight_packets,missing_packets,lost_by,reordered,retransmits,first_ns,last_ns,goodput_bps,completed,failed,times_min_ns,\
         times_mean_ns,times_p50_ns,times_p99_ns,times_max_ns,latency_min_ns,latency_mean_ns,\
         latency_p50_ns,latency_p99_ns,latency_max_ns,done_ns"
    )?;
    let or_empty = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
    let times = |times: Option<Times>| match times {
        None => ",,,,".to_owned(),
        Some(Times { min_ns, mean_ns, p50_ns, p99_ns, max_ns, .. }) => {
            format!("{min_ns},{mean_ns},{p50_ns},{p99_ns},{max_ns}")
        }
    };
    // One field: `queue_full 3;link_cut 1`.
    let by_reason = |flow: &FlowReport| {
        let reasons = flow.lost.iter().map(|(reason, count)| format!("{reason} {count}"));
        reasons.collect::<Vec<_>>().join(";")
    };
    for flow in &report.flows {
        let fields = [
            flow.name.replace([',', '"', '\n', '\r'], " "),
            flow.app.to_owned(),
            flow.from.clone(),
            flow.to.clone(),
            flow.sent_packets.to_string(),
            flow.sent_bytes.to_string(),
            flow.received_packets.to_string(),
            flow.received_bytes.to_string(),
            or_empty(flow.lost_packets),
            or_empty(flow.in_flight_packets),
            or_empty(flow.missing_packets),
            by_reason(flow),
            flow.reordered.to_string(),
            flow.retransmits.to_string(),
            or_empty(flow.first_ns),
            or_empty(flow.last_ns),
            or_empty(flow.goodput_bps),
            flow.completed.to_string(),
            flow.failed.to_string(),
            times(flow.times),
            times(flow.latency),
            or_empty(flow.done_ns),
        ];
        writeln!(out, "{}", fields.join(","))?;
    }
    Ok(())
}

fn ports(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    writeln!(out, "port,peer,rx_frames,rx_bytes,tx_frames,tx_bytes,dropped_frames")?;
    for port in &report.ports {
        writeln!(
            out,
            "{},{},{},{},{},{},{}",
            port.name,
            port.peer,
            port.rx_frames,
            port.rx_bytes,
            port.tx_frames,
            port.tx_bytes,
            port.dropped
        )?;
    }
    Ok(())
}

fn drops(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    writeln!(out, "place,reason,frames")?;
    for drop in &report.ends {
        writeln!(out, "{},{},{}", drop.place, drop.reason, drop.frames)?;
    }
    Ok(())
}

/// Ports that sent nothing are left out.
fn samples(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    writeln!(out, "time_ns,port,tx_bytes,queued_bytes")?;
    let Some(samples) = &report.samples else { return Ok(()) };
    for (index, time) in samples.times.iter().enumerate() {
        for port in samples.ports.iter().filter(|port| port.tx_bytes.iter().any(|&sent| sent > 0)) {
            let (sent, queued) = (port.tx_bytes[index], port.queued_bytes[index]);
            writeln!(out, "{},{},{sent},{queued}", time.as_nanos(), port.name)?;
        }
    }
    Ok(())
}
