//! A switch or a controller as a process: from a fabric file and a name to a running node.

use crate::inspect::{Controller, Switch};
use crate::lab::StateDir;
use crate::lab::plan::{controller_ports, switch_ports};
use crate::pcapng::CaptureOptions;
use crate::run::{Body, Clock, Inspect, RunOptions};
use crate::slot::PortSetup;
use anyhow::{Context, Result, bail};
use axon_control::node::{ControllerNode, SwitchNode};
use axon_fabric::assemble::{controller_config, switch_config, switch_index};
use axon_fabric::model::Fabric;
use axon_plane::Node;
use axon_wire::FrameBuf;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a daemon may be told beside its fabric and its name.
#[derive(Clone, Debug, Default)]
pub struct DaemonOptions {
    /// Where to answer `status`; nowhere if `None`.
    pub status_socket: Option<PathBuf>,
    /// Where to write what the ports carry.
    pub capture: Option<CaptureOptions>,
}

/// Reads a fabric file.
///
/// # Errors
/// File, line, key and what was expected.
pub fn load(path: &Path) -> Result<Fabric> {
    Ok(axon_fabric::load(path)?)
}

/// Runs switch `name` of the fabric on the ports `name-p0`, `name-p1`, ... of this network
/// namespace, until SIGTERM or SIGINT. Ports whose device is not there are down.
///
/// # Errors
/// No such switch, no right to open packet sockets, or no capture file.
pub fn switch(fabric: &Fabric, name: &str, options: &DaemonOptions) -> Result<()> {
    let index = switch_index(fabric, name)
        .with_context(|| format!("fabric {} has no switch {name}", fabric.name))?;
    let clock = Clock::start();
    let config = switch_config(fabric, index, incarnation(&clock), seed()?);
    let node = Switch(SwitchNode::<FrameBuf>::new(config, clock.now()));
    run(node, clock, name, switch_ports(fabric, index), options)
}

/// Runs the fabric's controller on its one port `c1-p0`; see [`switch`].
///
/// # Errors
/// As [`switch`].
pub fn controller(fabric: &Fabric, options: &DaemonOptions) -> Result<()> {
    let clock = Clock::start();
    let config = controller_config(fabric, incarnation(&clock), seed()?);
    let node = Controller(ControllerNode::<FrameBuf>::new(config, clock.now()));
    run(node, clock, &fabric.controller.name, controller_ports(fabric), options)
}

/// Runs a node of a lab, from the inside.
pub(crate) fn in_lab(state: &StateDir, name: &str, capture: bool) -> Result<()> {
    // Its standard error is its log.
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    let fabric = state.load_fabric()?;
    let options = DaemonOptions {
        status_socket: Some(state.socket(name)),
        capture: capture.then(|| CaptureOptions::to(state.capture(name))),
    };
    if name == fabric.controller.name {
        controller(&fabric, &options)
    } else {
        switch(&fabric, name, &options)
    }
}

fn run<N: Node<FrameBuf> + Inspect>(
    node: N,
    clock: Clock,
    name: &str,
    ports: Vec<PortSetup>,
    options: &DaemonOptions,
) -> Result<()> {
    // Without the right to packet sockets every port would be silently down.
    if let Err(error) = crate::sys::packet_socket() {
        bail!("{name} cannot open packet sockets ({error}); it needs CAP_NET_RAW");
    }
    // Without the right to it, a busy machine may make links slower than they are meant to
    // be: `late` in the status tells.
    if let Err(error) = crate::sys::prefer_this_process() {
        tracing::info!(node = name, %error, "runs at ordinary priority");
    }
    let options = RunOptions {
        name: name.into(),
        ports,
        status_socket: options.status_socket.clone(),
        capture: options.capture.clone(),
    };
    let mut body =
        Body::open(node, clock, options).with_context(|| format!("cannot start {name}"))?;
    tracing::info!(node = name, "running");
    body.run().with_context(|| format!("{name} ended"))
}

/// No two lives of a node start in the same nanosecond, and a later one starts later, as
/// long as the machine's wall clock is not set back between them.
fn incarnation(clock: &Clock) -> u64 {
    clock.unix_nanos(axon_wire::Time::ZERO).max(1)
}

/// Unpredictable bits. The device blocks at boot until the kernel has some.
fn seed() -> Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/random")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/random")?;
    Ok(u64::from_ne_bytes(bytes))
}
