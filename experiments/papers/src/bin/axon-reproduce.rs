//! `axon-reproduce ID...`: tables and figures of the papers beside our results. `axon reproduce`
//! runs it.

#![forbid(unsafe_code)]
// Both panic where the reader has left or the disk is full; see `say`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use anyhow::{Result, ensure};
use axon_cli::output;
use axon_cli::reserve::{Reserved, apart};
use axon_cli::say::{self, Unwritten};
use axon_demo::process::Stop;
use axon_papers::reproduce::outcome::{Remark, Row};
use axon_papers::reproduce::provenance::Provenance;
use axon_papers::reproduce::store::{self, Kept};
use axon_papers::reproduce::{Experiment, Options, Verdict, page, run as run_one, select, show};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run experiments of the papers and compare their results with ours
#[derive(Debug, clap::Parser)]
#[command(
    name = "axon-reproduce",
    version,
    after_help = "Exit status: 0 all bounds held; 1 a bound missed; 2 an experiment could not be \
    run, or wrong usage; 130 interrupted"
)]
struct Arguments {
    /// Experiments to run, such as axon/table1, or patterns, such as 'axon/*'
    #[arg(value_name = "ID", required_unless_present_any = ["list", "write_docs"])]
    ids: Vec<String>,
    /// List all experiments with the results of their last runs
    #[arg(long, conflicts_with = "ids")]
    list: bool,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "results/reproduce")]
    out: PathBuf,
    /// Write rows and verdicts as JSON; `-` writes only JSON to standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads of a simulation, 1 or more; results are the same with any number
    #[arg(long, value_name = "K", default_value_t = 1)]
    threads: usize,
    /// Write a page of all results in the results folder, as docs/papers.md
    #[arg(long, value_name = "FILE")]
    write_docs: Option<PathBuf>,
}

fn main() -> ExitCode {
    // Must precede any thread: this may be a process of a lab, of the demo, or of a measurement.
    if let Some(code) = axon_lab::part()
        .or_else(axon_demo::part)
        .or_else(axon_linux::agent_port::measure::process::part)
    {
        return code;
    }
    axon_cli::program::run(run, |error| error.is::<axon_lab::Interrupted>())
}

/// Runs the selected experiments. Returns whether every bound is met. If an experiment cannot be
/// run, the others are run anyway.
///
/// # Errors
/// No such experiment, or a file cannot be written.
fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.list {
        say::print(&show::list(&arguments.out)?)?;
    }
    ensure!(arguments.threads > 0, "--threads: expected at least 1, got 0");
    let chosen = select(&arguments.ids)?;
    reserve(arguments, &chosen)?;
    let stop = Stop::on_signals()?;
    let is_quiet = arguments.json.as_deref().is_some_and(output::is_standard);
    let threads = say::threads(arguments.threads);
    let (out, seed) = (arguments.out.as_path(), arguments.seed);
    let options = Options { out, seed, threads, commit: axon_cli::COMMIT };
    let mut results = Vec::new();
    let (mut is_good, mut unwritten) = (true, Unwritten::default());
    for experiment in chosen {
        match run_one(experiment, &options, &stop) {
            Ok(kept) => {
                if !is_quiet {
                    let text = show::side_by_side(experiment, &kept);
                    unwritten.take(say::print(&format!("{text}\n")));
                }
                is_good &= kept.verdict.is_good();
                results.push(Judged::of(experiment.id, kept));
            }
            Err(error) => {
                results.push(Judged::failed(experiment.id, &error));
                unwritten.take(Err(error));
            }
        }
        if stop.check().is_err() {
            // Results so far are written; a missing one is reported.
            break;
        }
    }
    if let Some(path) = &arguments.json {
        let machine = Machine { date: Provenance::now("").date, threads };
        let text = output::json(&Output { results, machine });
        unwritten.take(text.and_then(|text| output::write(path, &text)));
    }
    if let Some(path) = &arguments.write_docs {
        unwritten.take(page::write(out, path));
    }
    if !arguments.ids.is_empty() && !is_quiet {
        let total = show::total(out)?;
        unwritten.take(say::print(&format!("{total}\nResults are in {}\n", out.display())));
    }
    if stop.check().is_err() {
        return Ok(say::INTERRUPTED.into());
    }
    Ok(unwritten.answer(is_good))
}

/// Checks that every file can be written before anything runs, so that a failure shows at once and
/// not after hours. Results of earlier runs stay as they are.
fn reserve(arguments: &Arguments, chosen: &[&Experiment]) -> Result<()> {
    let named = [("--json", &arguments.json), ("--write-docs", &arguments.write_docs)];
    let files = named.into_iter().filter_map(|(what, path)| Some((what, path.as_ref()?)));
    let files = files.filter(|(_, path)| !output::is_standard(path));
    let page = arguments.write_docs.as_deref();
    ensure!(
        !page.is_some_and(output::is_standard),
        "--write-docs -: plots go beside the page; expected a file"
    );
    let files: Vec<_> = files.map(|(what, path)| (what.to_owned(), path.clone())).collect();
    apart(&[], &files)?;
    let mut reserved = Reserved::default();
    for experiment in chosen {
        reserved.folder(&store::folder(&arguments.out, experiment.id))?;
        store::reserve(&arguments.out, experiment.id)?;
    }
    files.iter().try_for_each(|(_, path)| reserved.file(path))?;
    reserved.keep();
    Ok(())
}

/// Output of `axon reproduce --json`.
#[derive(Serialize)]
struct Output {
    /// The experiments, in the order in which they ran.
    results: Vec<Judged>,
    /// Machine of the run. All else is the same whenever the same seed runs, except for
    /// measurements on Linux.
    machine: Machine,
}

/// Machine of a run.
#[derive(Serialize)]
struct Machine {
    /// The day of the run in UTC, `2026-11-22`.
    date: String,
    /// Threads of a simulation.
    threads: usize,
}

/// Result of one experiment.
#[derive(Serialize)]
struct Judged {
    /// The name of the experiment: `axon/table1`.
    id: &'static str,
    /// True if its verdict is `held` or `by_construction`.
    pass: bool,
    /// Verdict over its rows; null if it could not be run.
    verdict: Option<Verdict>,
    /// Figures with a bound.
    rows: Vec<Row>,
    /// Figures without a bound.
    remarks: Vec<Remark>,
    /// Reasons for differences, and interpretations of the paper.
    notes: Vec<String>,
    /// Seed of the run; null if it could not be run.
    seed: Option<u64>,
    /// Commit of the program; null if it could not be run.
    commit: Option<String>,
    /// Error; null if it was run.
    error: Option<String>,
}

impl Judged {
    fn of(id: &'static str, kept: Kept) -> Judged {
        let Kept { verdict, rows, remarks, notes, seed, provenance, .. } = kept;
        let (pass, commit) = (verdict.is_good(), provenance.commit);
        let (verdict, seed, commit) = (Some(verdict), Some(seed), Some(commit));
        Judged { id, pass, verdict, rows, remarks, notes, seed, commit, error: None }
    }

    fn failed(id: &'static str, error: &anyhow::Error) -> Judged {
        Judged {
            id,
            pass: false,
            verdict: None,
            rows: Vec::new(),
            remarks: Vec::new(),
            notes: Vec::new(),
            seed: None,
            commit: None,
            error: Some(format!("{error:#}")),
        }
    }
}
