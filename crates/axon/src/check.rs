//! `axon check FILE`: checks a fabric file.

use anyhow::Result;
use axon_fabric::assemble::port_name;
use axon_fabric::model::{End, Fabric, Network, Wire};
use axon_fabric::units::span_text;
use axon_linux::dataplane_choice::choose;
use axon_linux::machine::Machine;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Maximum number of switches that are all tried.
const TRIED_MAX: usize = 256;

/// Check a fabric file, and list the nodes and links that it describes
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 the file is correct; 1 it has an error; 2 it cannot be read, or \
    wrong usage"
)]
pub struct Arguments {
    /// Fabric file; `-` is standard input
    file: PathBuf,
}

/// Prints every node and link. The exit status shows whether the file is correct.
///
/// # Errors
/// The file cannot be read.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let fabric = match crate::cli::file::load(&arguments.file) {
        Err(error) if error.position.is_some() => {
            crate::cli::say::note!("{error}");
            return Ok(crate::cli::say::answer(false));
        }
        fabric => fabric?,
    };
    let mut out = String::new();
    writeln!(
        out,
        "{}: {}, {}, {} between switches, {}",
        fabric.name,
        counted(fabric.switches.len(), "switch", "switches"),
        counted(fabric.hosts.len(), "host", "hosts"),
        counted(fabric.links.len(), "link", "links"),
        counted(fabric.faults.len() + fabric.faults_after_start.len(), "fault", "faults")
    )?;
    let Fabric { controller, .. } = &fabric;
    if !fabric.is_static() && fabric.network != Network::Program {
        let near = format!("{}-p0", controller.name);
        link(&mut out, &near, &end(&fabric, controller.at), controller.wire)?;
    }
    for host in &fabric.hosts {
        let at = End { switch: host.switch, port: host.port };
        link(&mut out, &format!("{}-p0", host.name), &end(&fabric, at), host.wire)?;
    }
    for one in &fabric.links {
        link(&mut out, &end(&fabric, one.a), &end(&fabric, one.b), one.wire)?;
    }
    crate::cli::say::print(&out)?;
    if fabric.network != Network::Program && axon_fabric::has_lab_key(&fabric.keys) {
        crate::cli::say::note!("warning: the key is the published lab key, which protects nothing");
    }
    let refused = |index| choose(&fabric, index, &Machine::ABLE).err();
    if let Some(problem) = tried(&fabric).into_iter().find_map(refused) {
        crate::cli::say::note!("warning: `axon up` refuses it: {problem}");
    }
    if let Some(what) = crate::cli::real::exposed_key_file(&fabric) {
        crate::cli::say::note!("warning: {what}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the switches whose data planes are tried: all, or of many one for each number of ports
/// and each data plane, since the needs of a switch depend on all links.
fn tried(fabric: &Fabric) -> Vec<usize> {
    let all = 0..fabric.switches.len();
    if all.len() <= TRIED_MAX {
        return all.collect();
    }
    let mut seen = BTreeSet::new();
    let kind = |&index: &usize| {
        (fabric.switches[index].ports, axon_fabric::dataplane::of_switch(fabric, index).0)
    };
    all.filter(|index| seen.insert(kind(index))).collect()
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn end(fabric: &Fabric, end: End) -> String {
    port_name(&fabric.switches[end.switch].name, end.port)
}

fn link(out: &mut String, a: &str, b: &str, wire: Wire) -> std::fmt::Result {
    let latency = span_text(wire.latency);
    writeln!(out, "{a:<15} {b:<15} {} {latency} loss {} ppm", wire.rate, wire.loss_ppm)
}
