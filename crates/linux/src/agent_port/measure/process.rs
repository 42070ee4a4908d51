//! Agents for measurements, each in its own process.

use super::super::client::Client;
use super::super::runner::{self, RunOptions};
use super::delay;
use super::rewriter::Rewriter;
use crate::chain::bind_to;
use crate::sys;
use anyhow::{Context, Result, bail, ensure};
use axon_agents::Agent;
use axon_wire::Span;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::AtomicBool;

/// First command-line argument of such a process.
const PART: &str = "agent-port-part";
/// CPU for the agents. The switch runs on CPU 0, so neither waits for the other.
const AGENT_CPU: usize = 1;

/// Kind of agent for a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredAgent {
    /// Increments a byte of each head and forwards the packet.
    Rewriter,
    /// Congestion responder that [`delay`] queries.
    Responder,
}

impl MeasuredAgent {
    fn name(self) -> &'static str {
        match self {
            MeasuredAgent::Rewriter => "rewriter",
            MeasuredAgent::Responder => "responder",
        }
    }

    fn agent(self) -> Result<Box<dyn Agent>> {
        Ok(match self {
            MeasuredAgent::Rewriter => Box::new(Rewriter::default()),
            MeasuredAgent::Responder => Box::new(delay::responder()?),
        })
    }
}

/// Runs the agent of a measurement if a measurement has started this process. Call this first in
/// `main`.
pub fn part() -> Option<ExitCode> {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [PART, rest @ ..] = &words[..] else { return None };
    Some(match run(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::log::line(format_args!("axon: {error:#}"));
            ExitCode::FAILURE
        }
    })
}

fn run(words: &[&str]) -> Result<()> {
    let [name, spin_us, socket] = words else { bail!("{PART} is for measurements of agents") };
    let all = [MeasuredAgent::Rewriter, MeasuredAgent::Responder];
    let which = all.into_iter().find(|which| which.name() == *name).context("no such agent")?;
    take_cpu(AGENT_CPU);
    let spin = Span::from_micros(spin_us.parse().context("no number of microseconds")?);
    let mut client = Client::connect(Path::new(socket), name)?;
    let mut agent = which.agent()?;
    let options = RunOptions { spin };
    match runner::run(&mut client, &mut *agent, options, &AtomicBool::new(false)) {
        Err(error) if error.kind() == ErrorKind::ConnectionAborted => Ok(()),
        ended => ended.context("the agent"),
    }
}

/// Binds the calling thread to this CPU, with the priority of a daemon. Does nothing without such a
/// CPU or without permission. Switch and agent then share a CPU.
pub fn take_cpu(number: usize) {
    let _ = sys::prefer_this_process();
    let _ = bind_to(number);
}

/// Running agent.
pub struct Process(Child);

impl Process {
    /// Starts an agent that attaches at `socket` and polls for packets for `spin` before it sleeps.
    /// The calling program must begin with [`part`].
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(agent: MeasuredAgent, spin: Span, socket: &Path) -> Result<Process> {
        let spin_us = (spin.as_nanos() / 1_000).to_string();
        let mut command = Command::new(std::env::current_exe()?);
        Process::of(command.args([PART, agent.name(), &spin_us]).arg(socket))
    }

    /// Starts an agent program, on the CPU for agents if there is one.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn of(command: &mut Command) -> Result<Process> {
        let child = command.spawn().context("the agent cannot be started")?;
        let mut cpu = CpuSet::new();
        cpu.set(AGENT_CPU)?;
        let _ = sched_setaffinity(Pid::from_raw(child.id() as i32), &cpu);
        Ok(Process(child))
    }

    /// Waits until the process ends, as it does when it is detached.
    ///
    /// # Errors
    /// The process has failed.
    pub fn join(mut self) -> Result<()> {
        let ended = self.0.wait()?;
        ensure!(ended.success(), "the agent has ended with {ended}");
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
