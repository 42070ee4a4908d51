//! `axon-cam FILE`: required size of a port's CAM for the traffic in a capture. `axon cam` runs it.

#![forbid(unsafe_code)]
// Both panic where the reader has left or the disk is full; see `say`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use anyhow::Result;
use axon_cli::say::{self, Unwritten};
use axon_cli::{file, output, program};
use axon_papers::axon::cam;
use axon_papers::reproduce::Table;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compute how many CAM entries the destinations in a capture need: hit rate against entries
#[derive(Debug, clap::Parser)]
#[command(
    name = "axon-cam",
    version,
    after_help = "Exit status: 0 done; 2 no capture, or a result could not be written, or wrong \
    usage"
)]
struct Arguments {
    /// A pcap or pcapng file
    file: PathBuf,
    /// Write the curves as JSON. For this and every other FILE, `-` is standard output, which takes
    /// nothing else then
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the curves as CSV, and the version of its format and its columns beside it, as
    /// NAME-format.json
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Plot the curves as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn main() -> ExitCode {
    program::run(run, |_| false)
}

/// Reads the capture once and prints the analysis.
///
/// # Errors
/// The file is no capture, or a result cannot be written.
fn run(arguments: &Arguments) -> Result<ExitCode> {
    program::end_at_interrupt();
    let Arguments { file: capture, json, csv, plot } = arguments;
    file::check_no_directory(capture, "a pcap or pcapng file")?;
    let report = cam::analyse(capture)?;
    let named = [("--json", json), ("--csv", csv), ("--plot", plot)];
    let named = named.iter().filter_map(|(option, path)| Some((*option, path.as_deref()?)));
    let is_quiet = output::standard(named)?;
    let mut unwritten = Unwritten::default();
    if !is_quiet {
        unwritten.take(say::print(&report.text()));
    }
    let (table, drawn) = report.drawn(&format!("CAM entries against hits, {}", capture.display()));
    if let Some(path) = csv {
        unwritten.take(output::write(path, &table.to_csv()));
        if !output::is_standard(path) {
            unwritten.take(format_beside(path, &table));
        }
    }
    if let Some(path) = plot {
        unwritten.take(drawn.svg().and_then(|svg| output::write(path, &svg)));
    }
    if let Some(path) = json {
        unwritten.take(output::write(path, &output::json(&report.json())?));
    }
    Ok(unwritten.answer(true))
}

/// Writes the version of the format of a table, and its columns, to `NAME-format.json`.
fn format_beside(path: &Path, table: &Table) -> Result<()> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let tables = [(&*name, table.columns.clone())].into();
    let text = output::json(&output::CsvFormat { tables })?;
    output::write(&path.with_file_name(format!("{stem}-{}", output::CSV_FORMAT)), &text)
}
