//! Runs a daemon among the lab's processes, with the lab's fabric, status socket and log.

use super::namespaces;
use super::state::StateDir;
use anyhow::{Context, Result};
use axon_capture::pcap::CaptureOptions;
use axon_linux::daemon::{DaemonOptions, controller, host_agent, switch};
use axon_linux::log;
use axon_linux::record::{EXTENSION, RecordOptions};
use nix::unistd::setsid;
use std::ffi::OsString;
use std::path::Path;

/// Runs a node as a process of the lab.
pub(super) fn run(state: &StateDir, name: &str, capture: Option<&OsString>) -> Result<()> {
    // The log of the process is its standard error.
    log::rotate(state.log(name));
    tracing_subscriber::fmt().with_ansi(false).with_writer(log::writer).init();
    // The daemon gets its own session, and may raise the scheduling priority of that session.
    // Neither the host's programs nor those that started the lab are in it.
    setsid().context("a daemon has just been started and can lead a session")?;
    let fabric = state.load_fabric()?;
    let options = DaemonOptions {
        status_socket: Some(state.socket(name)),
        capture: capture.map(CaptureOptions::to),
        state: Some(state.incarnation(name)),
        record: record(state, name)?,
        taps: Vec::new(),
        machine: state.load_options()?.machine.unwrap_or_default(),
        pins: Some(Path::new(namespaces::PINS).join(name.replace('.', "_"))),
    };
    if name == fabric.controller.name {
        controller(&fabric, &options)
    } else if fabric.hosts.iter().any(|host| host.name == name) {
        host_agent(&fabric, name, &options)
    } else {
        switch(&fabric, name, &options)
    }
}

/// Returns the recording options for the node. In later incarnations, the file name has a number.
fn record(state: &StateDir, name: &str) -> Result<Option<RecordOptions>> {
    let Some(record) = state.load_options()?.record else {
        return Ok(None);
    };
    Ok(Some(RecordOptions {
        file: Path::new(namespaces::RECORDINGS).join(format!("{name}.{EXTENSION}")),
        bytes_max: record.bytes_max,
        fabric: Some(state.load_fabric_text()?),
    }))
}
