//! The report as CSV files: `ports.csv`, `drops.csv`, and, over time, `samples.csv`.
//!
//! RFC 4180, but with a newline only at the end of a line. No field needs quotes: names of
//! nodes and reasons have neither commas nor quotes in them.

use anyhow::{Context, Result};
use axon_sim::run::Report;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes all files into `folder`, which is made if it is not there.
pub fn write(folder: &Path, report: &Report) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    file(folder, "ports.csv", |out| ports(out, report))?;
    file(folder, "drops.csv", |out| drops(out, report))?;
    file(folder, "samples.csv", |out| samples(out, report))
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
        for port in samples.ports.iter().filter(|port| port.tx_bytes.last() > Some(&0)) {
            let (sent, queued) = (port.tx_bytes[index], port.queued_bytes[index]);
            writeln!(out, "{},{},{sent},{queued}", time.as_nanos(), port.name)?;
        }
    }
    Ok(())
}
