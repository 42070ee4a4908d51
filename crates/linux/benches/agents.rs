//! What an agent port carries with payload caching and without (paper 003):
//! `cargo bench -p axon-linux --bench agents`.
//!
//! The agent is a process of its own (this program, started again), the switch is this one. Turns
//! of both kinds alternate, and medians count; the spread is that of the ratios of neighbouring
//! turns. `copied` is what both have copied between switch and agent, counted at each copy.
//!
//! `-- TURNS MILLISECONDS`: other numbers of turns and other lengths of one.

use anyhow::{Context, Result};
use axon_linux::agent_port::client::Client;
use axon_linux::agent_port::live::{Bench, Rewriter, Turn};
use axon_linux::agent_port::{PayloadMode, runner};
use axon_linux::chain::bind_to;
use axon_linux::sys;
use axon_wire::Span;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;

const SIZES: [usize; 2] = [1_500, 9_000];
const TURNS: usize = 9;
const MILLIS: u64 = 300;
/// The bar: what payload caching is to carry at least, in times of what copying does.
const BAR: f64 = 1.5;

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
    Ok(())
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
        let socket = std::env::temp_dir()
            .join(format!("axon-agents-{payload:?}-{}.sock", std::process::id()));
        let mut bench = Bench::new(&socket, payload, frame_bytes)?;
        let agent = Command::new(std::env::current_exe()?).arg("agent").arg(&socket).spawn()?;
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

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
