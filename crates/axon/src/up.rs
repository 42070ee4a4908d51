//! `axon up FILE`: runs the fabric with real Linux hosts, each node in a namespace.

use crate::cli::real;
use crate::cli::say::{self, note};
use anyhow::{Result, ensure};
use axon_fabric::model::{Fabric, Network, RouterKind};
use axon_lab::{RecordInto, UpOptions};
use axon_linux::record::RECORD_BYTES_MAX;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;

/// Start a fabric on this machine: switches, controller and hosts in network namespaces
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 every switch has a path to the controller, and the addresses of \
    hosts are known, or every program is ready; and every agent is attached; 1 not so in time: \
    the lab is ended again; 2 it could not be started, or wrong usage; 130 interrupted"
)]
pub struct Arguments {
    /// Fabric file
    file: PathBuf,
    /// Capture whole frames at all ports of this switch into SWITCH.pcapng in the lab's directory,
    /// up to 256 MiB; `axon down` removes it; may be given more than once
    #[arg(long, value_name = "SWITCH")]
    capture: Vec<String>,
    /// Router of the controller, instead of the file's controller.router
    #[arg(long, value_name = "NAME", value_parser = crate::cli::router::parser())]
    router: Option<RouterKind>,
    /// Record every input of every switch, controller and agent to DIR/NAME.axrec, for `axon
    /// replay`; DIR is made if missing, and must not hold recordings. They contain the frames of
    /// hosts and the fabric's key, and only their owner may read them
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// End the recordings of each node before they are larger than this, such as 512MiB; 1GiB by
    /// default
    #[arg(long, value_name = "SIZE", requires = "record", value_parser = crate::cli::record::size)]
    record_bytes_max: Option<u64>,
    /// Give hosts no address except a fixed one of the file, such as to run DHCP clients in them
    #[arg(long)]
    bare: bool,
    /// Seconds to wait until every switch has a path to the controller, and the controller has the
    /// addresses of all hosts; or until every program is ready; and until every agent is attached
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
}

/// Starts the lab; the exit status shows whether all switches and hosts were ready in time; if not,
/// the lab is stopped again.
///
/// # Errors
/// The lab could not be started, and everything is removed.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut fabric = real::load(&arguments.file)?;
    if let Some(router) = arguments.router {
        ensure!(
            fabric.network == Network::Axon,
            "--router {}: {} has a program and no controller",
            router.name(),
            fabric.name
        );
        fabric.set_router(router)?;
    }
    let options = UpOptions {
        timeout_ms: arguments.timeout.saturating_mul(1000),
        capture: arguments.capture.clone(),
        router: arguments.router.map(|router| router.name().to_owned()),
        bare: arguments.bare,
        record: arguments.record.clone().map(|directory| RecordInto {
            directory,
            bytes_max: arguments.record_bytes_max.unwrap_or(RECORD_BYTES_MAX),
        }),
        ..UpOptions::default()
    };
    let bar = ProgressBar::no_length();
    bar.set_style(ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}")?);
    let outcome = axon_lab::up(&arguments.file, &options, |progress| {
        bar.set_message(progress.step.clone());
        bar.set_length(progress.of as u64);
        bar.set_position(progress.done as u64);
    });
    bar.finish_and_clear();
    let (lab, report) = outcome?;
    report.notes.iter().for_each(|note| note!("note: {note}"));
    let name = lab.name();
    if !report.missing.is_empty() || !report.unknown.is_empty() || !report.detached.is_empty() {
        let seconds = arguments.timeout;
        let missing = match fabric.network {
            Network::Program => "whose program is not ready, or a link of which is down",
            _ if fabric.is_static() => "without all links of the file, or all other switches",
            _ => "without a path to the controller",
        };
        for (what, nodes) in [
            (missing, &report.missing),
            ("with an address that the controller does not know", &report.unknown),
            ("agents that are not attached to their switches", &report.detached),
        ] {
            if !nodes.is_empty() {
                note!("{what} after {seconds} s: {}", nodes.join(", "));
            }
        }
        axon_lab::down(Some(name))?;
        note!("{name} was ended again; expected a longer --timeout, or links that carry frames");
        return Ok(say::answer(false));
    }
    let (switches, hosts) = (report.switches, report.hosts);
    let mut text = format!("{name}: {switches} switches and {hosts} hosts are up\n");
    if !arguments.bare && hosts > 0 {
        text += &format!("addresses: {}\n", addresses(&fabric));
    }
    text += &format!("logs and captures: {}\n", lab.state().path().display());
    if let Some(directory) = &arguments.record {
        text += &format!("recordings: {}; see `axon replay`\n", directory.display());
    }
    say::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the first hosts with their addresses, and the number of further ones.
fn addresses(fabric: &Fabric) -> String {
    const LISTED_MAX: usize = 4;
    let mut hosts = fabric.hosts.iter().zip(axon_fabric::addresses::of_hosts(fabric));
    let listed = hosts
        .by_ref()
        .take(LISTED_MAX)
        .filter_map(|(host, address)| Some(format!("{} {}", host.name, address?)));
    let text = listed.collect::<Vec<String>>().join(", ");
    match hosts.count() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
