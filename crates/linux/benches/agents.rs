//! Throughput of an agent port with payload caching and without (paper 003):
//! `cargo bench -p axon-linux --bench agents`.
//!
//! The agent is a separate process (this program, started again); the switch is this one. Rounds of
//! both kinds alternate, and medians count; the spread is that of the ratios of neighbouring
//! rounds. `copied` counts the bytes that both copy between switch and agent. Frames arrive as from
//! a NIC and as from a packet socket (`Arrival`). Both processes request the priority of a daemon
//! (nice -10). The exit status is 1 if a bar is missed.
//!
//! Then the same agent in Python (`crates/py/examples/rewriter.py`) is compared with that in Rust,
//! if there is a Python with the module: that in `AXON_PYTHON`, or `target/python/bin/python`.
//!
//! `-- TURNS MILLISECONDS`: the number of rounds, and the length of each.

use anyhow::Result;
use axon_external::Interpreter;
use axon_linux::agent_port::PayloadMode;
use axon_linux::agent_port::measure::process::{self, Process};
use axon_linux::agent_port::measure::throughput::{
    Arrival, Running, Turn, alternate, cached_and_copied, median,
};
use axon_wire::Span;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const SIZES: [usize; 2] = [1_500, 9_000];
const TURNS: usize = 9;
const MILLIS: u64 = 300;
/// Bar: least throughput of payload caching, relative to copying.
const BAR: f64 = 1.5;
/// Bar: least throughput of an agent in Python, in packets per second.
const PYTHON_BAR: f64 = 100_000.0;

fn main() -> Result<ExitCode> {
    if let Some(code) = process::part() {
        return Ok(code);
    }
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--bench")).collect();
    // Use a CPU each where there are two: both poll without a pause, and would wait for each other.
    process::take_cpu(0);
    let number = |at: usize| arguments.get(at).map(|word| word.parse::<u64>()).transpose();
    let turns = number(0)?.map_or(TURNS, |turns| turns as usize);
    let millis = number(1)?.unwrap_or(MILLIS);
    println!("from    frame    payload  Gb/s   packets/s  copied/packet  ns/packet");
    let mut held = true;
    for (arrival, frame_bytes) in Arrival::ALL.into_iter().flat_map(|a| SIZES.map(|b| (a, b))) {
        held &= measure((arrival, frame_bytes), turns, Span::from_millis(millis))?;
    }
    let python = std::env::var_os("AXON_PYTHON").map(PathBuf::from);
    let python = python.unwrap_or_else(|| root().join("target/python/bin/python"));
    match Interpreter::at(python) {
        Ok(python) => held &= measure_python(&python, turns, Span::from_millis(millis))?,
        Err(error) => {
            println!("no agent in Python: {error}");
            held = false;
        }
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(what: (Arrival, usize), rounds: usize, span: Span) -> Result<bool> {
    let turns = cached_and_copied(what, rounds, span)?;
    let (from, frame_bytes) = (what.0.name(), what.1);
    for (kind, found) in [("cached", &turns.cached), ("copied", &turns.copied)] {
        let rate = median(found.iter().map(Turn::packets_per_second));
        println!(
            "{from:6}  {frame_bytes:>5} B  {kind:7}  {:5.2}  {rate:>9.0}  {:>13.1}  {:>9.0}",
            median(found.iter().map(Turn::gbps)),
            median(found.iter().map(Turn::copied_per_packet)),
            1e9 / rate,
        );
    }
    let (least, ratio, most) = turns.ratio();
    let held = if ratio >= BAR { "held" } else { "MISSED" };
    println!(
        "{from:6}  {frame_bytes:>5} B  cached is {ratio:.2} times copied, {least:.2} to \
         {most:.2} of {rounds} turns; bar {BAR} {held}"
    );
    Ok(ratio >= BAR)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Measures the agent in Python and in Rust, in alternating rounds.
fn measure_python(python: &Interpreter, rounds: usize, span: Span) -> Result<bool> {
    let program = root().join("crates/py/examples/rewriter.py");
    let python =
        Running::start("python", (PayloadMode::Cached, Arrival::Socket, SIZES[0]), |socket| {
            let mut command = Command::new(python.path());
            Process::of(command.arg(program).arg(socket).stdout(Stdio::null()))
        })?;
    let rust = Running::rewriter(PayloadMode::Cached, Arrival::Socket, SIZES[0])?;
    let [python, rust] = alternate([python, rust], rounds, span)?
        .map(|turns| turns.iter().map(Turn::packets_per_second).collect::<Vec<f64>>());
    let ratios = || python.iter().zip(&rust).map(|(python, rust)| python / rust);
    let (least, most) = (ratios().fold(f64::MAX, f64::min), ratios().fold(0.0, f64::max));
    let rate = median(python.iter().copied());
    let held = if rate >= PYTHON_BAR { "held" } else { "MISSED" };
    println!(
        "{:>5} B  an agent in Python: {rate:.0} packets/s, {:.3} times that in Rust ({:.0}), \
         {least:.3} to {most:.3} of {rounds} turns; bar {PYTHON_BAR} {held}",
        SIZES[0],
        median(ratios()),
        median(rust.iter().copied()),
    );
    Ok(rate >= PYTHON_BAR)
}
