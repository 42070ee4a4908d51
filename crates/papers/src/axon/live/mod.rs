//! `make demo`: table 1 with real Linux hosts, a link cut under traffic, and the captures that
//! show what the hosts saw of it.
//!
//! Three labs, one after the other, each with its own fresh switches:
//! 1. a line in which only h1 and h3 talk, with captures at all switch ports: source routes
//!    in `axon.pcapng`, and a transit switch whose tables stay empty;
//! 2. the line: all pairs ping, six flows over UDP, six over TCP;
//! 3. the ring: the same, then a link is cut under traffic.
//!
//! See docs/demo.md for how each figure is taken.

pub mod capture;
pub mod check;
pub mod dhcp;
pub mod gap;
pub mod iperf;
pub mod machine;
pub mod phases;
pub mod plot;
pub mod process;
pub mod progress;
pub mod report;
pub mod world;

use crate::axon::table1::{Comparison, Transport};
use anyhow::{Context, Result};
use iperf::Load;
use machine::CpuTime;
use process::{Process, Stop};
use progress::Progress;
use report::{Pairs, Summary, Tables, TransportResult};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use world::World;

/// The line, hosts numbered and placed as in the paper.
pub const LINE: &str = include_str!("../table1-line.yaml");
/// The ring.
pub const RING: &str = include_str!("../table1-ring.yaml");
/// Steps of the progress.
const STEPS: u64 = 14;

/// What was found on the way, topology by topology.
#[derive(Default)]
struct Found {
    udp: Comparison,
    tcp: Comparison,
    pairs: Pairs,
    tables: Tables,
    captures: check::Findings,
    cut: Option<report::Cut>,
    leases: Vec<report::Leased>,
    cpu_busy: BTreeMap<String, f64>,
    link_mbps: f64,
}

/// Runs the demo and writes `summary.json`, `axon.pcapng` and `plot.svg` to `out`; `commit` is
/// that of the program, for the summary. Logs and captures of all hosts are in `out/logs`.
/// Everything that was started is stopped again, also on an error and on Ctrl-C.
///
/// # Errors
/// A program is missing, the lab cannot be built, or a step fails. Bars that are missed are
/// no error but in the summary.
pub fn run(out: &Path, commit: &str, stop: &Stop) -> Result<Summary> {
    machine::check_programs()?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let out = out.canonicalize()?;
    let logs = out.join("logs");
    if logs.exists() {
        fs::remove_dir_all(&logs).with_context(|| format!("cannot empty {}", logs.display()))?;
    }
    fs::create_dir_all(&logs)?;
    // A summary says where the captures beside it come from: an older one must not.
    let json = out.join("summary.json");
    if json.exists() {
        fs::remove_file(&json).with_context(|| format!("cannot remove {}", json.display()))?;
    }
    let date = machine::date()?;
    let congestion = machine::congestion_control();
    let mut progress = Progress::new(STEPS);
    let mut found = Found::default();
    trace(&out, &logs, stop, &mut found, &mut progress)?;
    for (ring, scenario) in [(false, LINE), (true, RING)] {
        let name = if ring { "demo-ring" } else { "demo-line" };
        progress.step(&format!("{name}: up, captures on all hosts"));
        let mut world = World::up(name, scenario, false, &logs, stop)?;
        world.start_captures()?;
        measure(&mut world, ring, congestion, &mut found, &mut progress)?;
        progress.step(&format!("{name}: tshark reads all captures"));
        let captures = world.end_captures()?;
        let findings = check::judge(&captures, |host| world.mac(host), &logs, stop)?;
        found.captures.add(findings);
    }
    let mut summary = summary(found, (commit, date), congestion)?;
    summary.seconds = progress.elapsed().as_secs_f64();
    summary.judge();
    drop(progress);
    fs::write(&json, serde_json::to_string_pretty(&summary)? + "\n")?;
    plot::draw(&summary, &out.join("plot.svg"))?;
    Ok(summary)
}

/// The first lab: one pair talks, and the switches' ports are captured.
fn trace(
    out: &Path,
    logs: &Path,
    stop: &Stop,
    found: &mut Found,
    progress: &mut Progress,
) -> Result<()> {
    progress.step("demo-trace: h1 talks to h3 through s2, switches' ports captured");
    let mut world = World::up("demo-trace", LINE, true, logs, stop)?;
    found.link_mbps = world.fabric().hosts[0].wire.rate.bits_per_second() as f64 / 1e6;
    world.get_addresses()?;
    found.tables = phases::transit_state(&world)?;
    let captures = world.down_with_switch_captures()?;
    merge(&captures, &out.join("axon.pcapng"), logs, stop)
}

/// Joins captures in the order of time. Ports keep their names and link types.
fn merge(captures: &[PathBuf], to: &Path, logs: &Path, stop: &Stop) -> Result<()> {
    let mut mergecap = Command::new("mergecap");
    mergecap.arg("-w").arg(to).args(captures);
    Process::start(mergecap, logs, "mergecap")?.succeed(Duration::from_secs(30), stop)?;
    Ok(())
}

/// Addresses, pings, both loads, and in the ring the cut.
fn measure(
    world: &mut World<'_>,
    ring: bool,
    congestion: &str,
    found: &mut Found,
    progress: &mut Progress,
) -> Result<()> {
    let name = if ring { "demo-ring" } else { "demo-line" };
    progress.step(&format!("{name}: addresses by dhclient and udhcpc"));
    found.leases.extend(world.get_addresses()?);
    progress.step(&format!("{name}: all pairs ping"));
    let reachable = phases::ping_all(world, "ping")?;
    found.tables.axon_port_entries += phases::axon_port_entries(world)?;
    let link_bits_per_second = world.fabric().hosts[0].wire.rate.bits_per_second();
    for transport in Transport::ALL {
        progress.step(&format!("{name}: six flows, {}", transport.name()));
        let load = Load {
            transport,
            // TCP takes seconds to share a bottleneck fairly after a slow start of all at once.
            seconds: if transport == Transport::Udp { 6 } else { 12 },
            warm_up: if transport == Transport::Udp { 1.0 } else { 4.0 },
            cool_down: 0.5,
            link_bits_per_second,
        };
        let before = CpuTime::now()?;
        let label = transport.name().to_lowercase();
        let mbps = phases::load(world, &load, congestion, &label)?;
        let busy = before.busy_since()?;
        found.cpu_busy.insert(format!("{}_{label}", if ring { "ring" } else { "line" }), busy);
        let comparison = match transport {
            Transport::Udp => &mut found.udp,
            Transport::Tcp => &mut found.tcp,
        };
        *(if ring { &mut comparison.ring } else { &mut comparison.line }) = mbps;
    }
    if ring {
        found.pairs.ring = reachable;
        progress.step(&format!("{name}: a link is cut under traffic"));
        let load = Load {
            transport: Transport::Tcp,
            seconds: 9,
            warm_up: 0.0,
            cool_down: 0.0,
            link_bits_per_second,
        };
        found.cut = Some(phases::cut(world, &load, congestion)?);
        found.pairs.ring_cut = phases::ping_all(world, "ping-cut")?;
    } else {
        found.pairs.line = reachable;
    }
    Ok(())
}

fn summary(found: Found, run: (&str, String), congestion: &str) -> Result<Summary> {
    let (commit, date) = run;
    let cut = found.cut.context("the link was not cut")?;
    Ok(Summary {
        format: 1,
        commit: commit.to_owned(),
        date,
        machine: machine::describe(),
        units: report::units(),
        link_mbps: found.link_mbps,
        tcp_congestion: congestion.to_owned(),
        pairs_reachable: found.pairs.line.min(found.pairs.ring),
        pairs: found.pairs,
        udp: TransportResult::new(Transport::Udp, &found.udp),
        tcp: TransportResult::new(Transport::Tcp, &found.tcp),
        cut_gap_ms: cut.gap_ms(),
        cut,
        leases: found.leases,
        captures: found.captures,
        tables: found.tables,
        cpu_busy: found.cpu_busy,
        bars: Vec::new(),
        pass: false,
        seconds: 0.0,
    })
}
