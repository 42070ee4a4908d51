//! `axon sim FILE`: the fabric in the deterministic simulator.

mod arguments;
mod csv;
mod memory;
mod outputs;
mod pcap;
mod plot;
mod show;
mod wall;
mod watch;

pub use arguments::Arguments;

use anyhow::{Context, Result, anyhow};
use axon_fabric::model::{Fabric, Network};
use axon_fabric::needs::{self, Runtime};
use axon_sim::DataplaneKind;
use axon_sim::run::{Options, Report, run_watched};
use axon_wire::Span;
use pcap::Pcaps;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use wall::Wall;
use watch::{INTERRUPTED, Watcher};

/// How often samples are taken at first; whenever there are too many, half of them go.
const SAMPLE: Span = Span::from_micros(1);

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
