//! `axon reproduce ID...`: tables and figures of the papers, theirs beside ours.

use crate::reserve::{Reserved, apart};
use anyhow::{Context, Result, ensure};
use axon_papers::axon::live::process::Stop;
use axon_papers::reproduce::store::{self, Kept};
use axon_papers::reproduce::{Experiment, Options, page, run as run_one, select, show};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run experiments of the papers and compare their results with ours
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 all bounds held; 1 a bound missed, or an experiment \
    that cannot be run; 2 wrong usage")]
pub struct Arguments {
    /// Experiments to run, such as axon/table1, or patterns, such as 'axon/*'
    #[arg(value_name = "ID", required_unless_present_any = ["list", "write_docs"])]
    ids: Vec<String>,
    /// List all experiments, and how their last run ended
    #[arg(long, conflicts_with = "ids")]
    list: bool,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "results/reproduce")]
    out: PathBuf,
    /// Write rows and verdicts as JSON, a list if there are several ids; `-` writes it to standard
    /// output, and nothing else
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

/// Runs what is asked for; fails if a bound is missed or an experiment cannot be run. All
/// others are run all the same.
///
/// # Errors
/// No such experiment, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.list {
        print!("{}", show::list(&arguments.out)?);
    }
    ensure!(arguments.threads > 0, "--threads: expected at least 1, got 0");
    let chosen = select(&arguments.ids)?;
    reserve(arguments, &chosen)?;
    let stop = Stop::on_signals()?;
    let quiet = arguments.json.as_deref() == Some(Path::new("-"));
    let threads = crate::say::threads(arguments.threads);
    let (out, seed) = (arguments.out.as_path(), arguments.seed);
    let options = Options { out, seed, threads, commit: env!("AXON_COMMIT") };
    let mut results = Vec::new();
    let mut failed = 0;
    for experiment in chosen {
        match run_one(experiment, &options, &stop) {
            Ok(kept) => {
                if !quiet {
                    println!("{}", show::side_by_side(experiment, &kept));
                }
                failed += usize::from(!kept.verdict.is_good());
                results.push(json(&kept));
            }
            Err(error) => {
                eprintln!("{error:#}");
                failed += 1;
                let reason = format!("{error:#}");
                let none: [Value; 0] = [];
                let result = json!({
                    "id": experiment.id, "pass": false, "rows": none, "error": reason,
                });
                results.push(result);
            }
        }
        if stop.check().is_err() {
            // What has been done is written; what has not is said.
            break;
        }
    }
    if let Some(path) = &arguments.json {
        write_json(path, results)?;
    }
    if let Some(path) = &arguments.write_docs {
        page::write(out, path)?;
    }
    if !arguments.ids.is_empty() && !quiet {
        println!("{}", show::total(out)?);
        println!("Results are in {}", out.display());
    }
    let done = failed == 0 && stop.check().is_ok();
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sees that every file can be written before anything runs, so that nobody learns after
/// hours that the results have nowhere to go. What earlier runs have left stays as it is.
fn reserve(arguments: &Arguments, chosen: &[&Experiment]) -> Result<()> {
    let named = [("--json", &arguments.json), ("--write-docs", &arguments.write_docs)];
    let files = named.into_iter().filter_map(|(what, path)| Some((what, path.as_ref()?)));
    let files = files.filter(|(_, path)| *path != Path::new("-"));
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

fn json(kept: &store::Kept) -> Value {
    let Kept { id, verdict, rows, remarks, notes, seed, provenance, .. } = kept;
    json!({
        "id": id, "pass": verdict.is_good(), "verdict": verdict, "rows": rows, "remarks": remarks,
        "notes": notes, "seed": seed, "commit": provenance.commit, "date": provenance.date,
    })
}

/// One result as an object, several as a list.
fn write_json(path: &Path, mut results: Vec<Value>) -> Result<()> {
    let value = if results.len() == 1 { results.remove(0) } else { Value::Array(results) };
    let text = serde_json::to_string_pretty(&value)?;
    if path == Path::new("-") {
        println!("{text}");
        return Ok(());
    }
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}
