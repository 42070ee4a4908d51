//! `axon sweep FILE --over KEY=VALUES`: many runs of the simulator, one table.
//!
//! A sweep forms the product of all values and checks every run. It opens the folder, and uses the
//! results that an interrupted sweep has left there. It runs what is missing, several runs at a
//! time, each in a process of its own, and stores each result. Runs that needed more memory than
//! their share are repeated alone. Finally it writes the tables.

mod arguments;
mod child;
mod figures;
mod jobs;
mod memory;
mod over;
mod parquet;
mod plan;
mod progress;
mod results;
mod store;
mod table;

pub use arguments::Arguments;

use crate::cli::output;
use crate::cli::say::{self, INTERRUPTED, Unwritten, note};
use crate::cli::stop;
use crate::sim::{Base, size};
use anyhow::{Context, Result, ensure};
use axon_fabric::units::span_text;
use axon_wire::Bytes;
use memory::Shares;
use plan::{Checked, Plan};
use progress::Progress;
use results::Results;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{CSV, Kept, PARQUET, Record, Status, Store};
use table::Table;
use xxhash_rust::xxh3::xxh3_128;

/// Maximum number of listed runs that did not pass; the tables have all of them.
const LISTED_MAX: usize = 20;

/// Runs the sweep; the exit status shows whether all runs passed.
///
/// # Errors
/// The sweep could not start, or a result could not be stored.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let plan = Plan::read(arguments)?;
    let asked = arguments.jobs.map_or(cores, usize::from);
    // Each check builds one fabric at a time, and memory is counted from then on.
    let checks = if arguments.memory_max.is_some() { 1 } else { asked.min(cores) };
    let checked = plan.check(checks)?;
    let shares = memory::shares(arguments.memory_max, asked, &checked.least)?;
    let folder = folder(arguments, &checked)?;
    let store = Store::open(&folder, &record(arguments, &plan, &checked)?, arguments.again)?;
    let kept = store.kept(plan.len());
    let todo: Vec<usize> = (0..plan.len()).filter(|run| !kept.contains_key(run)).collect();
    if !kept.is_empty() {
        let (there, all) = (kept.len(), plan.len());
        note!("{there} of {all} runs are finished already in {}", folder.display());
    }
    let stop = stop::on_signals()?;
    let base = match todo.is_empty() {
        true => None,
        false => plan.warm_up(arguments.memory_max)?,
    };
    let base = match base {
        Some(Err(status)) => return Ok(status.into()),
        base => base.and_then(Result::ok),
    };
    let shares = match base {
        // The warm simulation stays in the memory of this process.
        Some(_) => memory::shares(arguments.memory_max, asked, &checked.least)?,
        None => shares,
    };
    if shares.jobs < asked.min(todo.len()) {
        note!("{} at a time: --memory-max has no room for {asked}", shares.jobs);
    }
    let not_passed = kept.values().filter(|kept| kept.status != Status::Passed).count();
    let progress = Progress::new(&checked.name, plan.len(), kept.len(), not_passed)?;
    let memory_max = arguments.memory_max;
    let mut results = Results { store, kept, progress, large: Vec::new(), memory_max };
    let ran = run_all((&plan, base), &todo, shares, &stop, &mut results);
    let Results { store, kept, progress, .. } = results;
    progress.finish();
    let mut unwritten = Unwritten::default();
    let columns = write(&plan, &kept, &store, &mut unwritten);
    let text = summary(&checked.name, &plan, &kept, (&folder, columns));
    unwritten.take(say::print(&text));
    let failed = list(&plan, &kept);
    // Finished runs are in the tables even after an error.
    ran?;
    if kept.len() < plan.len() && stop.load(Ordering::Relaxed) {
        let left = plan.len() - kept.len();
        note!("interrupted with {left} runs to go; the same command goes on with them");
        return Ok(INTERRUPTED.into());
    }
    Ok(unwritten.answer(failed == 0))
}

/// Returns the folder of the results.
fn folder(arguments: &Arguments, checked: &Checked) -> Result<PathBuf> {
    let Some(out) = &arguments.out else {
        return Ok(Path::new("results/sweep").join(&checked.name));
    };
    ensure!(!output::is_standard(out), "--out -: there are several files; expected a folder");
    Ok(out.clone())
}

/// Returns the record of everything that determines the results of this sweep.
fn record(arguments: &Arguments, plan: &Plan, checked: &Checked) -> Result<Record> {
    let hash = |bytes: &[u8]| format!("{:032x}", xxh3_128(bytes));
    let file = |name: &PathBuf| -> Result<(String, String)> {
        let path = plan.folder().join(name);
        let read = std::fs::read(&path).with_context(|| path.display().to_string())?;
        Ok((name.display().to_string(), hash(&read)))
    };
    Ok(Record {
        axon: format!("{} of {}", env!("CARGO_PKG_VERSION"), axon_cli::COMMIT),
        fabric: hash(plan.text.as_bytes()),
        files: checked.files.iter().map(file).collect::<Result<_>>()?,
        over: arguments.over.clone(),
        warm_up: plan.warm_up.map(span_text),
        duration: arguments.duration.map(span_text),
        dataplane: plan.dataplane.name().to_owned(),
    })
}

/// Runs all of `todo`, and those that need more memory than their share once more, alone.
fn run_all(
    (plan, mut base): (&Plan, Option<Base>),
    todo: &[usize],
    shares: Shares,
    stop: &AtomicBool,
    results: &mut Results,
) -> Result<()> {
    let Shares { jobs, each, alone } = shares;
    let mut part = |todo: &[usize], shares, results: &mut Results| match &mut base {
        Some(base) => jobs::fork((plan, base), todo, shares, stop, results),
        None => jobs::run(plan, todo, shares, stop, results),
    };
    part(todo, (jobs, each), results)?;
    let mut large = std::mem::take(&mut results.large);
    large.sort_unstable();
    if jobs > 1 && !large.is_empty() && !stop.load(Ordering::Relaxed) {
        let share = each.map_or_else(String::new, |Bytes(each)| size(each));
        let runs = if large.len() == 1 { "run needs" } else { "runs need" };
        note!("{} {runs} more memory than {share}: again, one at a time", large.len());
        part(&large, (1, alone), results)?;
        large = std::mem::take(&mut results.large);
    } else if stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    large.into_iter().try_for_each(|run| results.too_large(run, plan.parameters(run)))
}

/// Writes the tables of the finished runs. Returns their number of columns.
fn write(
    plan: &Plan,
    kept: &BTreeMap<usize, Kept>,
    store: &Store,
    unwritten: &mut Unwritten,
) -> usize {
    let rows: Vec<_> = kept.iter().map(|(run, kept)| (plan.values(*run), kept)).collect();
    let table = match Table::of(&plan.axes, &rows) {
        Ok(table) => table,
        Err(error) => {
            unwritten.take(Err(error));
            return 0;
        }
    };
    let tables = BTreeMap::from([(CSV, table.names()), (PARQUET, table.names())]);
    unwritten.take(table.csv().and_then(|text| store.write(CSV, &text)));
    unwritten.take(parquet::file(&table).and_then(|bytes| store.write(PARQUET, &bytes)));
    let format = output::json(&output::CsvFormat { tables });
    unwritten.take(format.and_then(|text| store.write(output::CSV_FORMAT, text.as_bytes())));
    table.columns.len()
}

/// Returns the summary for standard output.
fn summary(
    name: &str,
    plan: &Plan,
    kept: &BTreeMap<usize, Kept>,
    (folder, columns): (&Path, usize),
) -> String {
    let of = |status| kept.values().filter(|kept| kept.status == status).count();
    let all = [Status::Passed, Status::Failed, Status::Stopped, Status::Crashed];
    let mut counts: Vec<String> = all
        .into_iter()
        .filter(|&status| status == Status::Passed || of(status) > 0)
        .map(|status| format!("{} {}", of(status), status.name()))
        .collect();
    let (runs, rows) = (plan.len(), kept.len());
    if rows < runs {
        counts.push(format!("{} not run", runs - rows));
    }
    let table = folder.join(CSV);
    format!(
        "{name}: {runs} runs, {}\n{} and {PARQUET}: {rows} rows, {columns} columns\n",
        counts.join(", "),
        table.display()
    )
}

/// Lists the runs that did not pass on standard error. Returns their number.
fn list(plan: &Plan, kept: &BTreeMap<usize, Kept>) -> usize {
    let bad = || kept.iter().filter(|(_, kept)| kept.status != Status::Passed);
    for (run, kept) in bad().take(LISTED_MAX) {
        let reason = kept.reason.as_deref().unwrap_or_default();
        note!("{}: {}: {reason}", kept.status.name(), plan.label(*run));
    }
    let count = bad().count();
    if count > LISTED_MAX {
        note!("and {} more; {CSV} has all", count - LISTED_MAX);
    }
    count
}
