//! A daemon among the lab's processes: where its fabric, status socket and log are.

use super::state::StateDir;
use crate::daemon::{DaemonOptions, controller, host_agent, switch};
use anyhow::{Context, Result};
use axon_capture::pcap::CaptureOptions;
use nix::unistd::setsid;
use std::ffi::OsString;

/// Runs a node of a lab, from the inside.
pub(super) fn run(state: &StateDir, name: &str, capture: Option<&OsString>) -> Result<()> {
    // Its standard error is its log.
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    // A session of its own, which it may ask the scheduler to prefer; its host's programs, and
    // those who started the lab, are none of its.
    setsid().context("a daemon has just been started and can lead a session")?;
    let fabric = state.load_fabric()?;
    let options = DaemonOptions {
        status_socket: Some(state.socket(name)),
        capture: capture.map(CaptureOptions::to),
        state: Some(state.incarnation(name)),
        taps: Vec::new(),
    };
    if name == fabric.controller.name {
        controller(&fabric, &options)
    } else if fabric.hosts.iter().any(|host| host.name == name) {
        host_agent(&fabric, name, &options)
    } else {
        switch(&fabric, name, &options)
    }
}
