//! What an agent port carries with payload caching and without (paper 003):
//! `cargo bench -p axon-linux --bench agents`.
//!
//! The agent is a process of its own (this program, started again), the switch is this one. Turns
//! of both kinds alternate, and medians count; the spread is that of the ratios of neighbouring
//! turns. `copied` is what both have copied between switch and agent, counted at each copy.
//!
//! Then the same agent in Python (`crates/py/examples/rewriter.py`) beside that in Rust, if there
//! is a Python with the module: that in `AXON_PYTHON`, or `target/python/bin/python`.
//!
//! `-- TURNS MILLISECONDS`: other numbers of turns and other lengths of one.

use anyhow::{Context, Result};
use axon_external::Interpreter;
use axon_linux::agent_port::client::Client;
use axon_linux::agent_port::live::{Bench, Rewriter, Turn};
use axon_linux::agent_port::{PayloadMode, runner};
use axon_linux::chain::bind_to;
use axon_linux::sys;
use axon_wire::Span;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

const SIZES: [usize; 2] = [1_500, 9_000];
const TURNS: usize = 9;
const MILLIS: u64 = 300;
/// The bar: what payload caching is to carry at least, in times of what copying does.
const BAR: f64 = 1.5;
/// What an agent in Python is to carry at least, in packets a second.
const PYTHON_BAR: f64 = 100_000.0;

fn main() -> Result<()> {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--bench")).collect();
    // As a daemon does; without the right to it both go without.
    let _ = sys::prefer_this_process();
    // Each on a CPU of its own where there are two: both look for work without a pause, and would
    // wait for each other.
    if let [word, socket] = &arguments[..]
        && word == "agent"
    {
        let _ = bind_to(1);
        return agent(Path::new(socket));
    }
    bind_to(0)?;
    let number = |at: usize| arguments.get(at).map(|word| word.parse::<u64>()).transpose();
    let turns = number(0)?.map_or(TURNS, |turns| turns as usize);
    let millis = number(1)?.unwrap_or(MILLIS);
    println!("frame    payload  Gb/s   packets/s  copied/packet  ns/packet");
    for frame_bytes in SIZES {
        measure(frame_bytes, turns, Span::from_millis(millis))?;
    }
    let python = std::env::var_os("AXON_PYTHON").map(PathBuf::from);
    let python = python.unwrap_or_else(|| root().join("target/python/bin/python"));
    match Interpreter::at(python) {
        Ok(python) => measure_python(&python, turns, Span::from_millis(millis)),
        Err(error) => {
            println!("no agent in Python: {error}");
            Ok(())
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The other process.
fn agent(socket: &Path) -> Result<()> {
    let mut client = Client::connect(socket, "rewriter")?;
    let options = runner::RunOptions { spin: Span::from_millis(1) };
    let ended =
        runner::run(&mut client, &mut Rewriter::default(), options, &AtomicBool::new(false));
    match ended {
        Err(error) if error.kind() == ErrorKind::ConnectionAborted => Ok(()),
        ended => ended.context("the agent"),
    }
}

struct Running {
    bench: Bench,
    agent: Child,
}

impl Running {
    fn start(payload: PayloadMode, frame_bytes: usize) -> Result<Running> {
        let mut agent = Command::new(std::env::current_exe()?);
        agent.arg("agent");
        Running::with(agent, &format!("{payload:?}"), payload, frame_bytes)
    }

    fn python(python: &Interpreter) -> Result<Running> {
        let mut agent = Command::new(python.path());
        agent.arg(root().join("crates/py/examples/rewriter.py")).stdout(Stdio::null());
        let running = Running::with(agent, "python", PayloadMode::Cached, SIZES[0])?;
        let mut other = CpuSet::new();
        other.set(1)?;
        // As the others; where there is but one CPU all share it.
        let _ = sched_setaffinity(Pid::from_raw(running.agent.id() as i32), &other);
        Ok(running)
    }

    /// Runs a command, whose last argument is the socket.
    fn with(
        mut agent: Command,
        name: &str,
        payload: PayloadMode,
        frame_bytes: usize,
    ) -> Result<Running> {
        let socket =
            std::env::temp_dir().join(format!("axon-agents-{name}-{}.sock", std::process::id()));
        let mut bench = Bench::new(&socket, payload, frame_bytes)?;
        let agent = agent.arg(&socket).spawn()?;
        bench.wait()?;
        Ok(Running { bench, agent })
    }

    /// Ends the agent by the end of its attachment.
    fn stop(mut self) -> Result<()> {
        drop(self.bench);
        let ended = self.agent.wait()?;
        anyhow::ensure!(ended.success(), "the agent has ended with {ended}");
        Ok(())
    }
}

fn measure(frame_bytes: usize, rounds: usize, span: Span) -> Result<()> {
    let kinds = [PayloadMode::Cached, PayloadMode::Copied];
    let mut found: [Vec<Turn>; 2] = [Vec::new(), Vec::new()];
    let mut all = kinds
        .into_iter()
        .map(|kind| Running::start(kind, frame_bytes))
        .collect::<Result<Vec<_>>>()?;
    for number in 0..=rounds {
        for (running, found) in all.iter_mut().zip(&mut found) {
            let result = running.bench.turn(span)?;
            // The first warms up.
            if number > 0 {
                found.push(result);
            }
        }
    }
    for running in all {
        running.stop()?;
    }
    for (kind, found) in kinds.iter().zip(&found) {
        let rate = median(found.iter().map(Turn::packets_per_second));
        println!(
            "{frame_bytes:>5} B  {:7}  {:5.2}  {rate:>9.0}  {:>13.1}  {:>9.0}",
            format!("{kind:?}").to_lowercase(),
            median(found.iter().map(Turn::gbps)),
            median(found.iter().map(Turn::copied_per_packet)),
            1e9 / rate,
        );
    }
    let ratios = || found[0].iter().zip(&found[1]).map(|(a, b)| a.gbps() / b.gbps());
    let (least, most) = (ratios().fold(f64::MAX, f64::min), ratios().fold(0.0, f64::max));
    let ratio = median(ratios());
    let held = if ratio >= BAR { "held" } else { "MISSED" };
    println!(
        "{frame_bytes:>5} B  cached is {ratio:.2} times copied, {least:.2} to {most:.2} of \
         {rounds} turns; bar {BAR} {held}"
    );
    Ok(())
}

/// The same agent in Python and in Rust, turn by turn.
fn measure_python(python: &Interpreter, rounds: usize, span: Span) -> Result<()> {
    let mut python = Running::python(python)?;
    let mut rust = Running::start(PayloadMode::Cached, SIZES[0])?;
    let mut found = Vec::new();
    for number in 0..=rounds {
        let turns = [python.bench.turn(span)?, rust.bench.turn(span)?];
        if number > 0 {
            found.push(turns.map(|turn| turn.packets_per_second()));
        }
    }
    python.stop()?;
    rust.stop()?;
    let ratios = || found.iter().map(|[python, rust]| python / rust);
    let (least, most) = (ratios().fold(f64::MAX, f64::min), ratios().fold(0.0, f64::max));
    let rate = median(found.iter().map(|turns| turns[0]));
    let held = if rate >= PYTHON_BAR { "held" } else { "MISSED" };
    println!(
        "{:>5} B  an agent in Python: {rate:.0} packets/s, {:.3} times that in Rust ({:.0}), \
         {least:.3} to {most:.3} of {rounds} turns; bar {PYTHON_BAR} {held}",
        SIZES[0],
        median(ratios()),
        median(found.iter().map(|turns| turns[1])),
    );
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
