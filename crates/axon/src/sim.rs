//! `axon sim FILE`: simulates the fabric deterministically.

mod arguments;
mod csv;
mod finish;
mod fork;
mod lines;
mod memory;
mod needs;
mod outputs;
mod pcap;
mod plot;
mod show;
mod wall;
mod watch;

pub use arguments::Arguments;
pub use fork::{Base, Continuation};
pub use memory::least as least_memory;
pub use needs::{check_dataplane, python};
pub use pcap::Pcaps;
pub use show::size;
pub use watch::{Watcher, memory as memory_used};

use crate::cli::output;
use crate::cli::say::{Unwritten, note};
use anyhow::{Context, Result, anyhow, ensure};
use axon_external::Interpreter;
use axon_fabric::model::Fabric;
use axon_sim::run::{Options, Report};
use axon_sim::warm::Warm;
use axon_sim::world::PythonLoader;
use axon_wire::Span;
use finish::{finish, json};
use std::io::{BufWriter, Write};
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
    if !arguments.fork.is_empty() {
        return fork::run(arguments);
    }
    let (text, path) = crate::cli::file::text(&arguments.file)?;
    let mut fabric = crate::cli::file::parse(&path, &text)?;
    fabric.set_router(arguments.world.router.unwrap_or(fabric.controller.router))?;
    let dataplane = arguments.world.dataplane;
    check_dataplane(&arguments.file, dataplane, &fabric)?;
    if let Some(most) = arguments.world.memory_max {
        memory::check(&fabric, most)?;
    }
    let seed = arguments.world.seed.unwrap_or(fabric.seed);
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
    let warm = Warm::up(&fabric, &mut options, &mut watcher);
    let (report, world) = warm.go_to_the_end(&fabric, &options, &mut watcher);
    if options.python.is_none() {
        // Memory is freed when this process ends. Control programs in Python must be ended.
        std::mem::forget(world);
    } else {
        drop(world);
    }
    let wall = watcher.finish(report.packet_hops);
    if report.threads < threads {
        note!("on one thread: some links take no time, so their ends cannot run apart");
    }
    let mut unwritten = Unwritten::default();
    if !is_quiet {
        unwritten.take(crate::cli::say::print(&show::text(&report, &wall)));
    }
    pcaps.finish(&mut unwritten);
    write(arguments, &report, &wall, &mut unwritten);
    Ok(finish(&report, &wall, &unwritten).into())
}

/// Makes this process end with the one that started it, by any cause.
fn end_with(parent: u32) -> Result<()> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // The parent may have ended before the call above.
    ensure!(std::os::unix::process::parent_id() == parent, "the sweep of this run has ended");
    Ok(())
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
