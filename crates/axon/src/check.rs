//! `axon check FILE`: what the file would build.

use anyhow::Result;
use axon_fabric::assemble::port_name;
use axon_fabric::model::{End, Fabric, Wire};
use axon_fabric::units::span_text;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Read a fabric file and say what it would build. Exit status: 1 the file is wrong; 2 it cannot be
/// read
#[derive(clap::Args)]
pub struct Arguments {
    /// The fabric file
    file: PathBuf,
}

/// Prints every node and link. Answers whether the file is right.
///
/// # Errors
/// It cannot be read.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let fabric = match crate::file::load(&arguments.file) {
        Err(error) if error.position.is_some() => {
            crate::say::note!("{error}");
            return Ok(crate::say::answer(false));
        }
        fabric => fabric?,
    };
    let mut out = String::new();
    writeln!(
        out,
        "{}: {} switches, {} hosts, {} links between switches, {} faults",
        fabric.name,
        fabric.switches.len(),
        fabric.hosts.len(),
        fabric.links.len(),
        fabric.faults.len() + fabric.faults_after_start.len()
    )?;
    let Fabric { controller, .. } = &fabric;
    link(
        &mut out,
        &format!("{}-p0", controller.name),
        &end(&fabric, controller.at),
        controller.wire,
    )?;
    for host in &fabric.hosts {
        let at = End { switch: host.switch, port: host.port };
        link(&mut out, &format!("{}-p0", host.name), &end(&fabric, at), host.wire)?;
    }
    for one in &fabric.links {
        link(&mut out, &end(&fabric, one.a), &end(&fabric, one.b), one.wire)?;
    }
    crate::say::print(&out)?;
    if fabric.key == axon_fabric::LAB_KEY {
        crate::say::note!("the key is the published lab key, which protects nothing");
    }
    Ok(ExitCode::SUCCESS)
}

fn end(fabric: &Fabric, end: End) -> String {
    port_name(&fabric.switches[end.switch].name, end.port)
}

fn link(out: &mut String, a: &str, b: &str, wire: Wire) -> std::fmt::Result {
    let latency = span_text(wire.latency);
    writeln!(out, "{a:<15} {b:<15} {} {latency} loss {} ppm", wire.rate, wire.loss_ppm)
}
