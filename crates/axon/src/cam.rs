//! `axon cam FILE`: how large a port's CAM must be for the traffic in a capture.

use anyhow::{Context, Result};
use axon_papers::axon::cam;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Compute how many CAM entries the destinations in a capture need: hit rate against entries
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 success; 1 an error; 2 wrong usage")]
pub struct Arguments {
    /// A pcap or pcapng file
    file: PathBuf,
    /// Write the curves as JSON; `-` writes them to standard output, and nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the curves as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Plot the curves as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Reads the capture once and prints what it found.
///
/// # Errors
/// The file is no capture, or a result cannot be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { file, json, csv, plot } = arguments;
    let report = cam::analyse(file)?;
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let (table, drawn) = report.drawn(&format!("CAM entries against hits, {}", file.display()));
    if let Some(path) = csv {
        write(path, table.to_csv())?;
    }
    if let Some(path) = plot {
        drawn.draw(path)?;
    }
    let quiet = json.as_deref() == Some(Path::new("-"));
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&report.json())?;
        if quiet {
            println!("{text}");
        } else {
            write(path, text + "\n")?;
        }
    }
    if !quiet {
        print!("{}", report.text());
    }
    Ok(ExitCode::SUCCESS)
}
