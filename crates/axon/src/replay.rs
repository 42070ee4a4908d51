//! `axon replay FILE`: runs a recorded node again, and compares its outputs bit for bit.

use crate::cli::output::is_standard;
use crate::cli::say::{self, NO, UNTRIED, note};
use anyhow::{Context, Result, ensure};
use axon_capture::recording::{EndReason, Ending};
use axon_fabric::{FabricText, units};
use axon_linux::replay::{self, Difference, ReplayEnd, ReplayOptions, Replayed};
use axon_wire::Span;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run a recorded switch, controller or agent again, and compare its outputs bit for bit
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 no difference; 1 a difference; 2 a recording that cannot \
    be replayed or is altered, or wrong usage")]
pub struct Arguments {
    /// File that `--record` wrote, or a directory of them
    file: PathBuf,
    /// Write the frames that each port received and transmitted to this pcapng file; of a
    /// directory, to FILE/NAME.pcapng
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Replay up to this time, counted from the start of the node, such as 90s
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    until: Option<Span>,
    /// Refuse recordings that are not of this fabric file
    #[arg(long, value_name = "FILE")]
    fabric: Option<PathBuf>,
}

/// Replays the recordings; continues with the next one after a difference or an error.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    crate::cli::file::check_there(&arguments.file, "a recording, or a directory of recordings")?;
    let found = replay::recordings(&arguments.file);
    let fabric = arguments.fabric.as_deref().map(|file| FabricText::read(file, None)).transpose();
    let (files, fabric) = (found?, fabric?);
    let several = arguments.file.is_dir();
    if let (true, Some(folder)) = (several, &arguments.into) {
        ensure!(!is_standard(folder), "--into -: there are several captures; expected a folder");
        let made = std::fs::create_dir_all(folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let is_quiet = arguments.into.as_deref().is_some_and(is_standard);
    let mut worst = 0;
    for file in &files {
        let into = arguments.into.as_ref().map(|into| capture(into, file, several));
        let options = ReplayOptions { until: arguments.until, into, fabric: fabric.clone() };
        let replayed = replay::replay(file, &options).and_then(|replayed| {
            // A file that is named on the command line may have any name.
            if several {
                replay::check_name(file, &replayed.name)?;
            }
            Ok(replayed)
        });
        let code = match replayed {
            Ok(replayed) => {
                let (text, code) = show(file, &replayed);
                if is_quiet {
                    note!("{}", text.trim_end());
                } else {
                    say::print(&text)?;
                }
                code
            }
            Err(error) => {
                note!("{error:#}");
                UNTRIED
            }
        };
        worst = worst.max(code);
    }
    Ok(worst.into())
}

/// Returns the capture file for the ports of one recording.
fn capture(into: &Path, file: &Path, several: bool) -> PathBuf {
    if several {
        let name = file.file_name().map(Path::new).unwrap_or(file);
        return into.join(name).with_extension("pcapng");
    }
    into.into()
}

/// Returns the result of a replay as text, and the exit status.
fn show(file: &Path, replayed: &Replayed) -> (String, u8) {
    let Replayed { name, kind, inputs, actions, reached, took, end } = replayed;
    let seconds = took.as_secs_f64().max(1e-9);
    let faster = reached.as_nanos() as f64 / 1e9 / seconds;
    let rate = *inputs as f64 / seconds;
    let done = format!(
        "{name} ({kind}): {inputs} inputs, {actions} actions, {reached} replayed in {seconds:.2} s \
         ({rate:.0} inputs a second, {faster:.0} times as fast)"
    );
    let file = file.display();
    let (rest, code) = match end {
        ReplayEnd::Ending(Ending::Whole(EndReason::Stopped)) => ("0 differences".into(), 0),
        ReplayEnd::Ending(Ending::Whole(EndReason::SizeBound)) => {
            ("0 differences; the recording ends there, at its bound on size".into(), 0)
        }
        ReplayEnd::Ending(Ending::Whole(EndReason::Behind)) => {
            ("0 differences; the recording ends there, as its disk was too slow".into(), 0)
        }
        ReplayEnd::Ending(Ending::Cut { offset }) => (
            format!(
                "0 differences\n{file}: byte {offset}: the file is cut short here, and was \
                 replayed up to there"
            ),
            0,
        ),
        ReplayEnd::Until => ("0 differences up to there".into(), 0),
        ReplayEnd::Difference(found) => {
            (format!("a DIFFERENCE\n{}", difference(&file.to_string(), found)), NO)
        }
        ReplayEnd::Unreadable(error) => {
            note!("{file}: {error}");
            ("0 differences up to there".into(), UNTRIED)
        }
    };
    (format!("{done}: {rest}\n"), code)
}

fn difference(file: &str, difference: &Difference) -> String {
    let Difference { record, offset, at, input, expected, hash, actions } = difference;
    let mut lines = vec![
        format!("{file}: byte {offset}, record {record}, {at}"),
        format!("  input:    {input}"),
        format!("  recorded: {} actions ({:016x})", expected.0, expected.1),
        format!("  now:      {} actions ({hash:016x})", actions.len()),
    ];
    lines.extend(actions.iter().map(|action| format!("    {action}")));
    lines.join("\n")
}
