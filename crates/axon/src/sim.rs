//! `axon sim FILE`: the fabric in the deterministic simulator.

mod csv;
mod memory;
mod outputs;
mod pcap;
mod plot;
mod show;
mod watch;

use anyhow::{Context, Result, anyhow};
use axon_fabric::model::{Fabric, Network, RouterKind};
use axon_fabric::needs::{self, Runtime};
use axon_fabric::units;
use axon_sim::DataplaneKind;
use axon_sim::run::{Options, Report, run_watched};
use axon_wire::{Bytes, Span};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pcap::Pcaps;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use watch::Watcher;

/// The exit code of a run that was interrupted: that of a shell for SIGINT.
const INTERRUPTED: u8 = 130;
/// How often samples are taken at first; whenever there are too many, half of them go.
const SAMPLE: Span = Span::from_micros(1);

/// Simulate a fabric, its traffic and its faults: the same seed gives the same trace
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 passed; 1 failed: a pair of hosts without an answer, a \
    stale route, a deadlock, frames that are not accounted for, or an error; 2 wrong usage; \
    130 interrupted")]
pub struct Arguments {
    /// The fabric file
    file: PathBuf,
    /// Seed of all random choices; the file's by default
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Router of the controller, instead of the file's controller.router
    #[arg(long, value_name = "NAME", value_parser = crate::router::parser())]
    router: Option<RouterKind>,
    /// The data plane of the switches; `reference` is slow, stores every frame, and has no traffic
    /// classes
    #[arg(long, value_name = "NAME", default_value = "software", value_parser = dataplane())]
    dataplane: DataplaneKind,
    /// Threads to run on, 1 to 64; results are the same with any number
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// How long to run after the network is ready, such as 10ms; by default until all traffic is
    /// done, or for 1s if some has no end
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    duration: Option<Span>,
    /// Write the report as JSON; `-` writes it to standard output, and nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write flows, ports, drops and samples over time as CSV files into this folder
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Plot throughput over time as SVG, and queues over time as FILE-queues.svg
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write what a port carries as pcapng, such as s1-p0=s1.pcapng; may be given more than once
    #[arg(long, value_name = "PORT=FILE")]
    pcap: Vec<String>,
    /// Write a trace, a line of text for each event; `axon trace` reads it
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Interval of the samples for --csv and --plot, from when traffic begins, such as 10us; by
    /// default one that gives 1000 to 2000 samples
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    sample: Option<Span>,
    /// Stop when the process uses more memory than this, such as 8GiB; no limit by default
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    memory_max: Option<Bytes>,
}

/// Fails if a connected pair of hosts has no answer, a route is stale, buffers are deadlocked,
/// frames are not accounted for or the run was stopped.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut fabric = crate::file::load(&arguments.file)?;
    fabric.set_router(arguments.router.unwrap_or(fabric.controller.router))?;
    check_dataplane(arguments, &fabric)?;
    if let Some(most) = arguments.memory_max {
        memory::check(&fabric, most)?;
    }
    let asked = pcap::asked(&fabric, &arguments.pcap)?;
    outputs::reserve(arguments, &fabric, &asked)?;
    let threads = crate::say::threads(arguments.threads.into());
    let mut pcaps = Pcaps::create(&fabric, asked)?;
    let seed = arguments.seed.unwrap_or(fabric.seed);
    let options = Options { threads, ..options(arguments, &fabric, seed, &pcaps)? };
    let mut watcher = Watcher::new(&fabric.name, arguments.memory_max, &mut pcaps)?;
    let report = run_watched(&fabric, options, &mut watcher);
    let wall = watcher.finish();
    pcaps.finish()?;
    if let Some(folder) = &arguments.csv {
        csv::write(folder, &report)?;
    }
    if let Some(path) = &arguments.plot {
        plot::draw(path, &report)?;
    }
    if report.threads < threads {
        eprintln!("on one thread: some links take no time, so their ends cannot run apart");
    }
    write_json(arguments, &report, &wall)?;
    finish(arguments, &report, &wall)
}

/// Takes the name of a data plane, and lists all of them in the help.
fn dataplane() -> impl TypedValueParser<Value = DataplaneKind> {
    let find = |name: &str| DataplaneKind::NAMED.into_iter().find(|kind| kind.name() == name);
    PossibleValuesParser::new(DataplaneKind::NAMED.map(DataplaneKind::name))
        .try_map(move |name| find(&name).ok_or("no such data plane"))
}

/// Refuses a fabric that needs what its data plane cannot do, before anything starts.
fn check_dataplane(arguments: &Arguments, fabric: &Fabric) -> Result<()> {
    let file = || arguments.file.display().to_string();
    let chosen = arguments.dataplane;
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

fn options(arguments: &Arguments, fabric: &Fabric, seed: u64, pcaps: &Pcaps) -> Result<Options> {
    let wanted = arguments.plot.is_some() || arguments.csv.is_some();
    let mut options = Options {
        seed: Some(seed),
        dataplane: arguments.dataplane,
        duration: arguments.duration,
        capture: pcaps.ports(),
        samples: wanted.then_some(arguments.sample.unwrap_or(SAMPLE)),
        ..Options::default()
    };
    if let Some(path) = &arguments.trace {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        head(fabric, seed, &mut out).with_context(|| path.display().to_string())?;
        options.trace = Some(Box::new(out));
    }
    Ok(options)
}

/// What a trace says before its first event: what `axon trace` needs to know of the fabric.
fn head(fabric: &Fabric, seed: u64, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "# axon trace: fabric {}, seed {seed}", fabric.name)?;
    writeln!(out, "# hop_width {}", fabric.hop_width.bits())?;
    fabric.hosts.iter().try_for_each(|host| writeln!(out, "# host {} {}", host.name, host.mac))
}

/// What the run took of the real world.
pub struct Wall {
    /// From the first event to the last.
    pub seconds: f64,
    /// Resident memory at its highest.
    pub memory_bytes: u64,
    /// The user wanted it to end.
    pub interrupted: bool,
}

fn write_json(arguments: &Arguments, report: &Report, wall: &Wall) -> Result<()> {
    let quiet = arguments.json.as_deref() == Some(Path::new("-"));
    if !quiet {
        crate::say::print(&show::text(report, wall))?;
    }
    let Some(path) = &arguments.json else { return Ok(()) };
    let mut value = serde_json::to_value(report)?;
    if let Value::Object(map) = &mut value {
        let rate = report.packet_hops as f64 / wall.seconds.max(1e-9);
        map.insert("threads".into(), json!(report.threads));
        map.insert("wall_seconds".into(), json!(wall.seconds));
        map.insert("packet_hops_per_wall_second".into(), json!(rate));
        map.insert("peak_memory_bytes".into(), json!(wall.memory_bytes));
    }
    let text = serde_json::to_string_pretty(&value)?;
    if quiet {
        return crate::say::print(&(text + "\n"));
    }
    std::fs::write(path, text + "\n").with_context(|| path.display().to_string())
}

fn finish(arguments: &Arguments, report: &Report, wall: &Wall) -> Result<ExitCode> {
    if let Some(reason) = &report.stopped {
        eprintln!("{} stopped: {reason}; what there is was written", report.fabric);
        return Ok(if wall.interrupted { INTERRUPTED.into() } else { ExitCode::FAILURE });
    }
    if let (Some(error), Some(path)) = (&report.trace_error, &arguments.trace) {
        eprintln!("{}: the trace is not whole: {error}", path.display());
    }
    report.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    report.silent.iter().for_each(|entry| eprintln!("{entry}"));
    if report.passed() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} failed; replay it with --seed {}", report.fabric, report.seed);
    Ok(ExitCode::FAILURE)
}
