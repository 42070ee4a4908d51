//! `axon replay FILE`: a recorded node run again, its answers compared bit for bit.

use anyhow::{Context, Result};
use axon_capture::recording::{EndReason, Ending};
use axon_fabric::{FabricText, units};
use axon_linux::replay::{self, Difference, ReplayEnd, ReplayOptions, Replayed};
use axon_wire::Span;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The exit code if a node answered otherwise.
const DIFFERENCE: u8 = 1;
/// The exit code if a recording could not be replayed, or not to its end.
const UNTRIED: u8 = 2;

/// Run a recorded switch, controller or agent again, and compare its outputs bit for bit
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 no difference; 1 a difference; 2 a recording that \
    cannot be replayed or is altered, or wrong usage")]
pub struct Arguments {
    /// A file that `--record` wrote, or a directory of them
    file: PathBuf,
    /// Write what each port received and transmitted to this pcapng file; of a directory, to
    /// FILE/NAME.pcapng
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Replay no further than this, counted from the start of the node, such as 90s
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    until: Option<Span>,
    /// Refuse recordings that are not of this fabric file
    #[arg(long, value_name = "FILE")]
    fabric: Option<PathBuf>,
}

/// Goes on to the next recording after a difference, and after one that cannot be replayed.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let found = replay::recordings(&arguments.file);
    let fabric = arguments.fabric.as_deref().map(|file| FabricText::read(file, None)).transpose();
    let (files, fabric) = match (found, fabric) {
        (Ok(files), Ok(fabric)) => (files, fabric),
        (Err(error), _) => return untried(&error),
        (_, Err(error)) => return untried(&error.into()),
    };
    let several = arguments.file.is_dir();
    if let (true, Some(folder)) = (several, &arguments.into) {
        let made = std::fs::create_dir_all(folder);
        if let Err(error) = made.with_context(|| folder.display().to_string()) {
            return untried(&error);
        }
    }
    let mut worst = 0;
    for file in &files {
        let into = arguments.into.as_ref().map(|into| capture(into, file, several));
        let options = ReplayOptions { until: arguments.until, into, fabric: fabric.clone() };
        let replayed = replay::replay(file, &options).and_then(|replayed| {
            // A file that is named on the command line may be called anything.
            if several {
                replay::check_name(file, &replayed.name)?;
            }
            Ok(replayed)
        });
        let code = match replayed {
            Ok(replayed) => show(file, &replayed),
            Err(error) => {
                eprintln!("{error:#}");
                UNTRIED
            }
        };
        worst = worst.max(code);
    }
    Ok(worst.into())
}

fn untried(error: &anyhow::Error) -> Result<ExitCode> {
    eprintln!("{error:#}");
    Ok(UNTRIED.into())
}

/// Where the ports of one recording go.
fn capture(into: &Path, file: &Path, several: bool) -> PathBuf {
    if several {
        let name = file.file_name().map(Path::new).unwrap_or(file);
        return into.join(name).with_extension("pcapng");
    }
    into.into()
}

/// Prints what came of a replay; answers with the exit code.
fn show(file: &Path, replayed: &Replayed) -> u8 {
    let Replayed { name, kind, inputs, actions, reached, took, end } = replayed;
    let seconds = took.as_secs_f64().max(1e-9);
    let faster = reached.as_nanos() as f64 / 1e9 / seconds;
    let rate = *inputs as f64 / seconds;
    let done = format!(
        "{name} ({kind}): {inputs} inputs, {actions} actions, {reached} replayed in {seconds:.2} s \
         ({rate:.0} inputs a second, {faster:.0} times as fast)"
    );
    let file = file.display();
    match end {
        ReplayEnd::Ending(Ending::Whole(EndReason::Stopped)) => println!("{done}: 0 differences"),
        ReplayEnd::Ending(Ending::Whole(EndReason::SizeBound)) => {
            println!("{done}: 0 differences; the recording ends there, at its bound on size");
        }
        ReplayEnd::Ending(Ending::Cut { offset }) => {
            println!("{done}: 0 differences");
            println!(
                "{file}: byte {offset}: the file is cut short here, and was replayed up to there"
            );
        }
        ReplayEnd::Until => println!("{done}: 0 differences up to there"),
        ReplayEnd::Difference(difference) => {
            println!("{done}: a DIFFERENCE");
            show_difference(&file.to_string(), difference);
            return DIFFERENCE;
        }
        ReplayEnd::Unreadable(error) => {
            println!("{done}: 0 differences up to there");
            eprintln!("{file}: {error}");
            return UNTRIED;
        }
    }
    0
}

fn show_difference(file: &str, difference: &Difference) {
    let Difference { record, offset, at, input, expected, hash, actions } = difference;
    println!("{file}: byte {offset}, record {record}, {at}");
    println!("  input:    {input}");
    println!("  recorded: {} actions ({:016x})", expected.0, expected.1);
    println!("  now:      {} actions ({hash:016x})", actions.len());
    for action in actions {
        println!("    {action}");
    }
}
