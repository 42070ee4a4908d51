//! `axon sim FILE`: simulates the fabric deterministically.

mod arguments;
mod csv;
mod lines;
mod memory;
mod outputs;
mod pcap;
mod plot;
mod show;
mod wall;
mod watch;

pub use arguments::Arguments;
pub use memory::{check as check_memory, least as least_memory};
pub use pcap::Pcaps;
pub use show::size;
pub use watch::{Watcher, memory as memory_used};

use crate::cli::output;
use crate::cli::saved::Saved;
use crate::cli::say::{INTERRUPTED, UNTRIED, Unwritten, note};
use anyhow::{Context, Result, anyhow, ensure};
use axon_external::Interpreter;
use axon_fabric::model::{Fabric, Network, ProgramSource};
use axon_fabric::needs::{self, Runtime};
use axon_sim::DataplaneKind;
use axon_sim::run::{Options, Report};
use axon_sim::warm::Warm;
use axon_sim::world::PythonLoader;
use axon_wire::Span;
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use wall::Wall;

/// Initial sampling interval; whenever there are too many samples, half of them are discarded.
const SAMPLE: Span = Span::from_micros(1);

/// Runs the simulation; the exit status is that of [`Report::passed`].
///
/// # Errors
/// The run could not start.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(parent) = arguments.part_of {
        end_with(parent)?;
    }
    let saved = arguments.from.as_deref().map(Saved::open).transpose()?;
    let (text, path) = crate::cli::file::text(&arguments.file)?;
    let mut fabric = crate::cli::file::parse(&path, &text)?;
    let router = saved.as_ref().map(Saved::router).transpose()?.or(arguments.world.router);
    fabric.set_router(router.unwrap_or(fabric.controller.router))?;
    let dataplane = saved.as_ref().map(Saved::dataplane).transpose()?;
    let dataplane = dataplane.unwrap_or(arguments.world.dataplane);
    check_dataplane(&arguments.file, dataplane, &fabric)?;
    if let Some(most) = arguments.world.memory_max {
        memory::check(&fabric, most)?;
    }
    let seed = saved.as_ref().map(Saved::seed).or(arguments.world.seed).unwrap_or(fabric.seed);
    let restore = |saved: Saved| saved.restore(&fabric, (&path, &text), arguments.duration);
    let warm = saved.map(restore).transpose()?;
    let asked = pcap::asked(&fabric, &arguments.pcap)?;
    let is_quiet = outputs::reserve(arguments, &fabric, &asked)?;
    let threads = crate::cli::say::threads(arguments.world.threads.into());
    let mut pcaps = Pcaps::create(&fabric, asked)?;
    let python = python(&fabric)?;
    let overtime = python.as_ref().map(|python| python.overtime().clone());
    let python = python.map(loader);
    let options = options(arguments, &fabric, seed, &pcaps)?;
    let mut options = Options { threads, python, dataplane, ..options };
    let mut watcher = Watcher::new(&fabric.name, arguments.world.memory_max, overtime, &mut pcaps)?;
    let before = warm.as_ref().map_or(0, |warm| warm.packet_hops());
    let warm = match warm {
        None => Warm::up(&fabric, &mut options, &mut watcher),
        Some(warm) => continued(*warm, &fabric, &mut options)?,
    };
    let (report, world) = warm.go_to_the_end(&fabric, &options, &mut watcher);
    if options.python.is_none() {
        // Memory is freed when this process ends. Control programs in Python must be ended.
        std::mem::forget(world);
    } else {
        drop(world);
    }
    let wall = watcher.finish(report.packet_hops - before);
    if report.threads < threads {
        note!("on one thread: some links take no time, so their ends cannot run apart");
    }
    let mut unwritten = Unwritten::default();
    if !is_quiet {
        unwritten.take(crate::cli::say::print(&show::text(&report, &wall)));
    }
    pcaps.finish(&mut unwritten);
    write(arguments, &report, &wall, &mut unwritten);
    Ok(finish(&report, &wall, &unwritten))
}

/// Continues a saved run with this fabric.
fn continued(mut warm: Warm, fabric: &Fabric, options: &mut Options) -> Result<Warm> {
    let refused = |_| anyhow!("the snapshot is of another fabric");
    warm.continue_as(fabric, options).map_err(refused)?;
    Ok(warm)
}

/// Makes this process end with the one that started it, by any cause.
fn end_with(parent: u32) -> Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // The parent may have ended before the call above.
    ensure!(std::os::unix::process::parent_id() == parent, "the sweep of this run has ended");
    Ok(())
}

/// Refuses a fabric with needs that its data plane does not meet, before anything starts.
///
/// # Errors
/// The capability that is missing.
pub fn check_dataplane(file: &Path, chosen: DataplaneKind, fabric: &Fabric) -> Result<()> {
    let file = || file.display().to_string();
    if fabric.network != Network::Axon && chosen != DataplaneKind::default() {
        return Err(anyhow!(
            "the switches of this network have data planes of their own, not `{chosen}`; leave \
             --dataplane out"
        ))
        .with_context(file);
    }
    let has = chosen.capabilities(fabric.hop_width);
    let others = DataplaneKind::NAMED.map(|kind| kind.capabilities(fabric.hop_width));
    needs::check(fabric, Runtime::Simulator, &has, &others).with_context(file)
}

/// Returns the interpreter for control programs in Python, if the fabric has any.
///
/// # Errors
/// There is no interpreter, or the program cannot be read.
pub fn python(fabric: &Fabric) -> Result<Option<Interpreter>> {
    let Some(ProgramSource::Python(file)) = fabric.program.as_ref().map(|program| &program.source)
    else {
        return Ok(None);
    };
    let python = Interpreter::find().with_context(|| format!("program {}", file.display()))?;
    std::fs::File::open(file).with_context(|| format!("program {}", file.display()))?;
    Ok(Some(python))
}

/// Returns the loader of such programs.
fn loader(python: Interpreter) -> PythonLoader {
    Arc::new(move |file, site| python.start_waiting(file, &site))
}

fn options(arguments: &Arguments, fabric: &Fabric, seed: u64, pcaps: &Pcaps) -> Result<Options> {
    let wanted = arguments.plot.is_some() || arguments.csv.is_some();
    let mut options = Options {
        seed: Some(seed),
        duration: arguments.duration,
        capture: pcaps.ports(),
        samples: wanted.then_some(arguments.sample.unwrap_or(SAMPLE)),
        ..Options::default()
    };
    if let Some(path) = &arguments.trace {
        let cannot = || format!("cannot write {}", output::name(path));
        let mut out = BufWriter::with_capacity(1 << 20, output::create(path).with_context(cannot)?);
        head(fabric, seed, &mut out).with_context(cannot)?;
        options.trace = Some(Box::new(out));
    }
    Ok(options)
}

/// Writes the head of a trace, before its first event: the properties of the fabric that `axon
/// trace` needs.
fn head(fabric: &Fabric, seed: u64, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "# axon trace: fabric {}, seed {seed}", fabric.name)?;
    writeln!(out, "# hop_width {}", fabric.hop_width.bits())?;
    fabric.hosts.iter().try_for_each(|host| writeln!(out, "# host {} {}", host.name, host.mac))
}

/// Writes every requested result, even if others fail.
fn write(arguments: &Arguments, report: &Report, wall: &Wall, unwritten: &mut Unwritten) {
    if let Some(folder) = &arguments.csv {
        csv::write(folder, report, unwritten);
    }
    if let Some(path) = &arguments.plot {
        plot::draw(path, report, unwritten);
    }
    if let Some(path) = &arguments.json {
        unwritten.take(json(report, wall).and_then(|text| output::write(path, &text)));
    }
    if let (Some(error), Some(path)) = (&report.trace_error, &arguments.trace) {
        unwritten.take(Err(anyhow!("{}: the trace is not whole: {error}", output::name(path))));
    }
}

/// JSON output of `axon sim --json`.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Figures of this machine; all others are equal for equal seeds.
    machine: Machine,
}

/// Resources that a run used on this machine.
#[derive(Serialize)]
struct Machine {
    /// Number of threads of the run.
    threads: usize,
    /// Wall time from the first event to the last, in seconds.
    wall_seconds: f64,
    /// Frames that left a link, per second of wall time.
    packet_hops_per_wall_second: f64,
    /// Peak resident memory, in bytes.
    peak_memory_bytes: u64,
}

fn json(report: &Report, wall: &Wall) -> Result<String> {
    let machine = Machine {
        threads: report.threads,
        wall_seconds: wall.seconds,
        packet_hops_per_wall_second: wall.pace(),
        peak_memory_bytes: wall.memory_bytes,
    };
    output::json(&Output { report, machine })
}

/// Prints the errors of the run on standard error. Returns the exit status.
fn finish(report: &Report, wall: &Wall, unwritten: &Unwritten) -> ExitCode {
    report.warnings.iter().for_each(|warning| note!("warning: {warning}"));
    report.silent.iter().for_each(|entry| note!("{entry}"));
    if let Some(reason) = &report.stopped {
        note!("{} stopped: {reason}; what there is was written", report.fabric);
        return if wall.interrupted { INTERRUPTED.into() } else { UNTRIED.into() };
    }
    let (unfinished, all) = (report.unfinished.len(), report.flows.len());
    if unfinished > 0 {
        note!("{unfinished} of {all} flows did not come to their end");
    }
    let (lacking, hosts) = (report.without_address.len(), report.hosts);
    if lacking > 0 {
        note!("{lacking} of {hosts} hosts are connected and have no address");
    }
    if !report.passed() && report.trace_error.is_none() {
        note!("{} failed; replay it with --seed {}", report.fabric, report.seed);
    }
    unwritten.answer(report.passed())
}
