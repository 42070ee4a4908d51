//! `make demo`: table 1 with real Linux hosts, a link cut under traffic, captures at the hosts'
//! ports, and a comparison with Linux bridges on the same ring.
//!
//! There are four labs, each with its own fresh switches:
//! 1. the ring with Linux bridges, whose spanning tree converges while the others run;
//! 2. a line in which only h1 and h3 communicate, with captures at all switch ports, which shows
//!    source routes in `axon.pcapng` and a transit switch whose tables stay empty;
//! 3. the line, in which all pairs ping, then six flows run over UDP and six over TCP;
//! 4. the ring, in which the same is done and then a link is cut under traffic.
//!
//! Finally, the bridges get the same load and the same cut. `docs/demo.md` describes how each
//! figure is measured.

#![forbid(unsafe_code)]

pub mod beside;
pub mod bridges;
pub mod capture;
pub mod check;
pub mod checksum;
pub mod cut;
pub mod dhcp;
pub mod fabric;
pub mod gap;
pub mod iperf;
pub mod machine;
mod part;
pub mod phases;
pub mod planes;
pub mod plot;
pub mod process;
pub mod progress;
pub mod report;
mod table;
pub mod table1;
pub mod world;

pub use fabric::{LINE, RING};
pub use part::part;

use crate::table1::{Comparison, Transport};
use anyhow::{Context, Result, ensure};
use axon_fabric::model::DataplaneKind;
use axon_linux::machine::Machine;
use beside::{Bridges, BridgesResult};
use capture::Captured;
use check::Findings;
use cut::Cut;
use iperf::Load;
use machine::CpuTime;
use phases::CutPlan;
use planes::Dataplanes;
use process::{Process, Stop};
use progress::Progress;
use report::{Pairs, Summary, Tables, TransportResult};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use world::{Setup, World};

/// Number of steps in the progress display.
const STEPS: u64 = 18;
/// Plan for the link cut in the fabric.
const CUT: CutPlan = CutPlan { load_s: 8, probes: Duration::from_secs(5), is_tree: false };

/// Results of the whole demo so far.
#[derive(Default)]
struct Found {
    udp: Comparison,
    tcp: Comparison,
    pairs: Pairs,
    tables: Tables,
    captures: Findings,
    cut: Option<Cut>,
    leases: Vec<report::Leased>,
    cpu_busy: BTreeMap<String, f64>,
    link_mbps: f64,
    dataplanes: Dataplanes,
}

/// State that all labs of a run share.
struct Run<'a> {
    machine: Machine,
    logs: PathBuf,
    stop: &'a Stop,
    congestion: &'static str,
    progress: Progress,
}

/// Runs the demo and writes `summary.json`, `axon.pcapng` and `plot.svg` to `out`; `commit` is the
/// commit of the program, for the summary. Logs and captures of all hosts go to `out/logs`.
/// Everything that was started is stopped again, also on an error and on Ctrl-C.
///
/// # Errors
/// A program is missing, the lab cannot be built, or a step fails. Missed bounds are not errors but
/// part of the summary.
pub fn run(out: &Path, commit: &str, stop: &Stop) -> Result<Summary> {
    machine::check_programs()?;
    let (out, logs) = folders(out)?;
    let date = machine::date()?;
    let mut run = Run {
        machine: Machine::tried(),
        logs,
        stop,
        congestion: machine::congestion_control(),
        progress: Progress::new(STEPS),
    };
    let mut found = Found { dataplanes: Dataplanes::expected(&run.machine), ..Found::default() };
    run.progress.step("demo-bridges: up; its spanning tree comes to rest meanwhile");
    let logs = run.logs.clone();
    let mut bridges = World::up(&run.setup("demo-bridges", RING), &logs, stop)?;
    trace(&out, &mut run, &mut found)?;
    let mut captures = Vec::new();
    for ring in [false, true] {
        captures.extend(measured(ring, &mut run, &mut found)?);
    }
    let (bridges, findings) = run.bridges(&mut bridges, &mut found, &captures)?;
    found.captures = findings;
    let mut summary = summary(found, bridges, (commit, date), run.congestion)?;
    summary.seconds = run.progress.elapsed().as_secs_f64();
    summary.judge();
    drop(run);
    fs::write(out.join("summary.json"), serde_json::to_string_pretty(&summary)? + "\n")?;
    plot::draw(&summary, &out.join("plot.svg"))?;
    Ok(summary)
}

/// Creates the folder for the results and removes an earlier summary from it. Creates an empty
/// folder for the logs.
fn folders(out: &Path) -> Result<(PathBuf, PathBuf)> {
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let out = out.canonicalize()?;
    let logs = out.join("logs");
    if logs.exists() {
        fs::remove_dir_all(&logs).with_context(|| format!("cannot empty {}", logs.display()))?;
    }
    fs::create_dir_all(&logs)?;
    // A summary describes the captures next to it, so an older summary must be removed.
    let json = out.join("summary.json");
    if json.exists() {
        fs::remove_file(&json).with_context(|| format!("cannot remove {}", json.display()))?;
    }
    Ok((out, logs))
}

/// Runs the first lab with switches, in which one pair communicates and the switches' ports are
/// captured.
fn trace(out: &Path, run: &mut Run<'_>, found: &mut Found) -> Result<()> {
    run.progress.step("demo-trace: h1 talks to h3 through s2, switches' ports captured");
    let setup = Setup { capture_switches: true, ..run.setup("demo-trace", LINE) };
    let mut world = World::up(&setup, &run.logs, run.stop)?;
    found.link_mbps = link_bits_per_second(&world) as f64 / 1e6;
    world.get_addresses()?;
    found.tables = phases::transit_state(&world)?;
    found.dataplanes.add("demo-trace", world.dataplanes()?);
    let captures = world.down_with_switch_captures()?;
    merge(&captures, &out.join("axon.pcapng"), &run.logs, run.stop)
}

/// Merges captures in the order of time. Ports keep their names and link types.
fn merge(captures: &[PathBuf], to: &Path, logs: &Path, stop: &Stop) -> Result<()> {
    let mut mergecap = Command::new("mergecap");
    mergecap.arg("-w").arg(to).args(captures);
    Process::start(mergecap, logs, "mergecap")?.succeed(Duration::from_secs(30), stop)?;
    Ok(())
}

/// Runs the line or the ring from start to end. Returns the captures of its hosts.
fn measured(ring: bool, run: &mut Run<'_>, found: &mut Found) -> Result<Vec<Captured>> {
    let (name, topology) = if ring { ("demo-ring", RING) } else { ("demo-line", LINE) };
    run.progress.step(&format!("{name}: up, captures on all hosts"));
    let (setup, logs) = (run.setup(name, topology), run.logs.clone());
    let mut world = World::up(&setup, &logs, run.stop)?;
    world.start_captures()?;
    run.progress.step(&format!("{name}: addresses by dhclient and udhcpc"));
    found.leases.extend(world.get_addresses()?);
    run.progress.step(&format!("{name}: all pairs ping"));
    let reachable = phases::ping_all(&world, "ping")?;
    found.tables.axon_port_entries += phases::axon_port_entries(&world)?;
    found.dataplanes.add(name, world.dataplanes()?);
    let loads = run.loads(&world, if ring { "ring" } else { "line" }, found)?;
    for (comparison, mbps) in [&mut found.udp, &mut found.tcp].into_iter().zip(loads) {
        *(if ring { &mut comparison.ring } else { &mut comparison.line }) = mbps;
    }
    if ring {
        found.pairs.ring = reachable;
        run.progress.step(&format!("{name}: a link is cut under traffic"));
        let cut = phases::cut(&world, &CUT, link_bits_per_second(&world), run.congestion)?;
        found.cut = Some(cut);
        found.pairs.ring_cut = phases::ping_all(&world, "ping-cut")?;
    } else {
        found.pairs.line = reachable;
    }
    world.end_captures()
}

fn link_bits_per_second(world: &World<'_>) -> u64 {
    world.fabric().hosts[0].wire.rate.bits_per_second()
}

impl<'a> Run<'a> {
    /// Returns a lab of this run without captures at the switches. It has bridges if `name`
    /// contains that word.
    fn setup<'b>(&'b self, name: &'b str, topology: &'b str) -> Setup<'b> {
        let bridges = name == "demo-bridges";
        Setup { name, topology, machine: &self.machine, capture_switches: false, bridges }
    }

    /// Runs the six flows over each transport. Returns the goodput of each flow in Mb/s.
    fn loads(&mut self, world: &World<'_>, what: &str, found: &mut Found) -> Result<[[f64; 6]; 2]> {
        let mut loads = [[0.0; 6]; 2];
        for (transport, mbps) in Transport::ALL.into_iter().zip(&mut loads) {
            self.progress.step(&format!("demo-{what}: six flows, {}", transport.name()));
            let load = Load {
                transport,
                // TCP takes seconds to share a bottleneck after all flows have started slowly at
                // once.
                seconds: if transport == Transport::Udp { 5 } else { 10 },
                warm_up: if transport == Transport::Udp { 1.0 } else { 4.0 },
                cool_down: 0.5,
                link_bits_per_second: link_bits_per_second(world),
            };
            let before = CpuTime::now()?;
            let label = transport.name().to_lowercase();
            *mbps = phases::load(world, &load, self.congestion, &label)?;
            found.cpu_busy.insert(format!("{what}_{label}"), before.busy_since()?);
        }
        Ok(loads)
    }

    /// Runs the bridges under the same load and the same cut. Meanwhile, all captures are checked,
    /// because the bridges are silent for seconds, and a busy machine does not change that.
    fn bridges(
        &mut self,
        world: &mut World<'_>,
        found: &mut Found,
        captures: &[Captured],
    ) -> Result<(Bridges, Findings)> {
        let spanning = bridges::settle(world)?;
        self.progress.step("demo-bridges: all pairs ping");
        let pairs = phases::ping_all(world, "ping")?;
        ensure!(pairs == table1::PAIRS, "only {pairs} pairs of hosts ping through the bridges");
        // Captures cost CPU time, so they also run with the bridges.
        world.start_captures()?;
        let [udp, tcp] = self.loads(world, "bridges", found)?;
        for capture in world.end_captures()? {
            fs::remove_file(capture.file)?;
        }
        let world = &*world;
        self.progress.step("demo-bridges: the same link is cut; tshark reads all captures");
        let offloads = fabric::carrier(&self.machine) != DataplaneKind::Software;
        let (rate, congestion) = (link_bits_per_second(world), self.congestion);
        let (cut, findings) = std::thread::scope(|scope| {
            let cut = scope.spawn(|| bridges::cut(world, rate, congestion));
            let mac = |host: &str| world.mac(host);
            let judged = check::judge(captures, mac, offloads, &self.logs, self.stop);
            (cut.join(), judged)
        });
        let cut = cut.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((Bridges { spanning, udp, tcp, cut }, findings?))
    }
}

fn summary(
    found: Found,
    bridges: Bridges,
    run: (&str, String),
    congestion: &str,
) -> Result<Summary> {
    let (commit, date) = run;
    let cut = found.cut.context("the link was not cut")?;
    Ok(Summary {
        format: 2,
        commit: commit.to_owned(),
        date,
        machine: machine::describe(),
        units: report::units(),
        dataplanes: found.dataplanes,
        link_mbps: found.link_mbps,
        tcp_congestion: congestion.to_owned(),
        pairs_reachable: found.pairs.line.min(found.pairs.ring),
        pairs: found.pairs,
        udp: TransportResult::new(Transport::Udp, &found.udp, &bridges.udp),
        tcp: TransportResult::new(Transport::Tcp, &found.tcp, &bridges.tcp),
        cut_gap_ms: cut.gap_ms(),
        cut,
        bridges: BridgesResult::new(bridges),
        leases: found.leases,
        captures: found.captures,
        tables: found.tables,
        cpu_busy: found.cpu_busy,
        bars: Vec::new(),
        pass: false,
        seconds: 0.0,
    })
}
