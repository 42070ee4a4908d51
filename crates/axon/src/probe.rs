//! `axon probe`: delays along a path, hop by hop, in the simulator or in a running lab.

mod summary;

use crate::cli::lab::Choice;
use anyhow::{Context, Result, bail, ensure};
use axon_fabric::assemble::{host_index, split_port, switch_index};
use axon_fabric::model::{DataplaneKind, Fabric};
use axon_lab::Lab;
use axon_linux::status::NodeStatus;
use axon_node::probe::{PlanKind, ProbePlan, ProbeReport};
use axon_node::telemetry::NodeTelemetry;
use axon_sim::probe::{finish, is_path_known, links_of, plan_along, shortest_path, switches_of};
use axon_sim::{PingPlan, World};
use axon_wire::{Hops, Span, Time};
use std::path::PathBuf;
use std::process::ExitCode;
use summary::Summary;

/// Maximum simulated time until switches, hosts and routes are ready.
const READY: Span = Span::from_secs(60);

/// Send probes along a path and back; print the delay of each switch and link
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 all probes came back with all records; 1 a probe is lost \
    or a record is missing; 2 it could not be tried, or wrong usage")]
pub struct Arguments {
    /// Fabric file to simulate; `-` is standard input
    #[arg(required_unless_present = "live", conflicts_with = "live")]
    file: Option<PathBuf>,
    #[command(flatten)]
    way: Way,
    /// Number of probes, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10)]
    count: u32,
    /// Bytes of a probe when sent, 60 or more, header included, without FCS; every switch adds to
    /// it
    #[arg(long, value_name = "N", default_value_t = 60)]
    bytes: usize,
    /// Microseconds from the start of one probe to that of the next, 1 to 3600000000; a run takes
    /// an hour at most
    #[arg(long, value_name = "US", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=3_600_000_000))]
    interval: u64,
    /// In the simulator: start no earlier than this, in simulated milliseconds
    #[arg(long, value_name = "MS", default_value_t = 0)]
    at: u64,
    /// In the simulator: seed; the file's by default
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Probe a running lab instead of a simulation
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    lab: Choice,
    /// Print the report as JSON, times in picoseconds
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = true)]
struct Way {
    /// Switches of the path, of which the first sends, such as s1,s2,s3
    #[arg(long, value_delimiter = ',', value_name = "SWITCHES")]
    #[arg(conflicts_with_all = ["from", "to", "ether"])]
    path: Vec<String>,
    /// Probe the path that frames take from this host to that of --to, such as h1
    #[arg(long, value_name = "HOST", requires = "to", conflicts_with = "ether")]
    from: Option<String>,
    /// Other end of the path of --from
    #[arg(long, value_name = "HOST", requires = "from")]
    to: Option<String>,
    /// With --live: two host ports of one switch that an external Ethernet connects, such as
    /// s1-p0,s1-p3
    #[arg(long, value_delimiter = ',', value_name = "PORTS", requires = "live")]
    ether: Vec<String>,
}

/// Sends the probes; the exit status shows whether every probe came back with the record of each
/// unit of the path.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    ensure!(arguments.live || arguments.lab.name().is_none(), "--lab NAME goes with --live");
    let summary = if arguments.live { live(arguments)? } else { simulated(arguments)? };
    if arguments.json {
        crate::cli::say::print(&crate::cli::output::json(&summary)?)?;
    } else {
        crate::cli::say::print(&summary.to_string())?;
    }
    Ok(crate::cli::say::answer(summary.is_complete()))
}

impl Arguments {
    fn plan(&self, plan: ProbePlan) -> ProbePlan {
        let interval = Span::from_micros(self.interval);
        ProbePlan { bytes: self.bytes, count: self.count, interval, ..plan }
    }

    /// Returns the switches of `--path`, or else those between the hosts `--from` and `--to`.
    fn path(&self, fabric: &Fabric) -> Result<Path> {
        if self.way.path.is_empty() {
            let from = host(fabric, self.way.from.as_deref().unwrap_or_default())?;
            let to = host(fabric, self.way.to.as_deref().unwrap_or_default())?;
            if fabric.hosts[from].switch == fabric.hosts[to].switch {
                let name = &fabric.switches[fabric.hosts[from].switch].name;
                bail!("both hosts are at {name}: no link is between them to be probed");
            }
            return Ok(Path::Hosts(from, to));
        }
        let switches = self.way.path.iter().map(|name| switch(fabric, name));
        Ok(Path::Switches(switches.collect::<Result<Vec<_>>>()?))
    }
}

enum Path {
    Switches(Vec<usize>),
    Hosts(usize, usize),
}

fn switch(fabric: &Fabric, name: &str) -> Result<usize> {
    switch_index(fabric, name).with_context(|| {
        let names = fabric.switches.iter().map(|switch| switch.name.as_str());
        format!("{} has no switch {name}; it has {}", fabric.name, list(names))
    })
}

fn host(fabric: &Fabric, name: &str) -> Result<usize> {
    host_index(fabric, name).with_context(|| {
        let names = fabric.hosts.iter().map(|host| host.name.as_str());
        format!("{} has no host {name}; it has {}", fabric.name, list(names))
    })
}

/// Joins the first of some names, and the number of further ones.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 20;
    let names: Vec<&str> = names.collect();
    match names.len() {
        0 => "none".to_owned(),
        1..=SHOWN => names.join(" "),
        more => format!("{} and {} more", names[..SHOWN].join(" "), more - SHOWN),
    }
}

fn simulated(arguments: &Arguments) -> Result<Summary> {
    let file = arguments.file.as_deref().context("the fabric file is missing")?;
    let fabric = crate::cli::file::load(file)?;
    if fabric.network != axon_fabric::model::Network::Axon {
        bail!("{} is no Axon network: its switches have no probe units", fabric.name);
    }
    crate::sim::check_dataplane(file, DataplaneKind::Software, &fabric)?;
    let path = arguments.path(&fabric)?;
    let mut world = World::new(&fabric, arguments.seed.unwrap_or(fabric.seed));
    let start = Time::ZERO + Span::from_millis(arguments.at);
    let path = match path {
        Path::Switches(path) => path,
        Path::Hosts(from, to) => simulated_route(&mut world, from, to)?,
    };
    let links = links_of(&fabric, &path)?;
    let plan = arguments.plan(plan_along(&fabric, &path)?);
    world.run_until(start.max(world.now()));
    let limit = world.now() + READY;
    if !world.run_until_true(limit, |world| is_path_known(world, &links)) {
        bail!("not all switches of the path have found each other after 60 s");
    }
    let name = &fabric.switches[path[0]].name;
    let id = world
        .nodes_mut()
        .probe(path[0], plan.clone())
        .with_context(|| format!("{name} has no power"))??;
    let limit = world.now() + plan.span_max();
    let report = finish(&mut world, path[0], id, limit);
    let report = report.with_context(|| format!("{name} lost power meanwhile"))?;
    Ok(Summary::of_path(&fabric, &path, &report))
}

/// Returns the switches on the route from host to host that the fabric itself has installed, after
/// a ping that requests it.
fn simulated_route(world: &mut World, from: usize, to: usize) -> Result<Vec<usize>> {
    let limit = world.now() + READY;
    world.run_until_true(limit, |world| {
        world.address(from).is_some() && world.address(to).is_some()
    });
    let fabric = world.fabric().clone();
    let name = |host: usize| &fabric.hosts[host].name;
    let target = world.address(to).with_context(|| format!("{} has no address", name(to)))?;
    let ping = PingPlan::until_reply(target, Span::from_millis(250), 40);
    let id = world.ping(from, ping).with_context(|| format!("{} is off", name(from)))?;
    let limit = world.now() + READY;
    world.run_until_true(limit, |world| world.ping_stats(id).is_none_or(|stats| stats.done));
    let source = &fabric.hosts[from];
    let routes = world.switch(source.switch).map(|node| node.plane().routes_at(source.port));
    let routes = routes.unwrap_or_default();
    let route = routes.iter().find(|(key, _)| *key == fabric.hosts[to].mac.into());
    let (_, route) =
        route.with_context(|| format!("{} found no route to {}", name(from), name(to)))?;
    followed(&fabric, source.switch, &route.hops)
}

fn followed(fabric: &Fabric, switch: usize, hops: &Hops) -> Result<Vec<usize>> {
    switches_of(fabric, switch, hops)
        .with_context(|| format!("the route {hops} leaves the links of {}", fabric.name))
}

fn live(arguments: &Arguments) -> Result<Summary> {
    let lab = arguments.lab.open()?;
    let fabric = lab.fabric()?;
    match &arguments.way.ether[..] {
        [] => {}
        [from, to] => return live_ether(arguments, &lab, (from, to)),
        ports => bail!("--ether takes two ports, as s1-p0,s1-p3, and not {}", ports.len()),
    }
    let path = match arguments.path(&fabric)? {
        Path::Switches(path) => path,
        Path::Hosts(from, to) => live_route(&lab, &fabric, from, to)?,
    };
    let plan = arguments.plan(plan_along(&fabric, &path)?);
    let report = lab.probe(&fabric.switches[path[0]].name, &plan)?;
    Ok(Summary::of_path(&fabric, &path, &report))
}

/// Returns the switches on the route installed at the edge; if no host has requested one yet, those
/// of a shortest path.
fn live_route(lab: &Lab, fabric: &Fabric, from: usize, to: usize) -> Result<Vec<usize>> {
    let (source, target) = (&fabric.hosts[from], &fabric.hosts[to]);
    let edge = fabric.switches[source.switch].name.as_str();
    let all = lab.status()?;
    let answer = all.iter().find(|status| status.name() == edge);
    let node = answer.and_then(NodeStatus::node).and_then(NodeTelemetry::switch);
    let node = node.with_context(|| format!("{edge} does not answer"))?;
    let route =
        node.routes.iter().find(|one| one.port == source.port && one.destination == target.mac);
    let Some(route) = route else {
        crate::cli::say::note!(
            "{} has no route to {} now: this is a shortest path",
            source.name,
            target.name
        );
        return Ok(shortest_path(fabric, source.switch, target.switch)?);
    };
    followed(fabric, source.switch, &route.hops)
}

fn live_ether(arguments: &Arguments, lab: &Lab, (from, to): (&str, &str)) -> Result<Summary> {
    let port = |text: &str| {
        split_port(text)
            .map(|(name, port)| (name.to_owned(), port))
            .with_context(|| format!("{text} is not a port; s1-p0 is one"))
    };
    let ((switch, from), (other, to)) = (port(from)?, port(to)?);
    if switch != other {
        bail!("{switch} and {other} are two switches: an ether probe is between ports of one");
    }
    let plan = arguments.plan(ProbePlan::new(PlanKind::Ether { from, to }));
    let report: ProbeReport = lab.probe(&switch, &plan)?;
    if !report.learned {
        bail!("no Ethernet outside joins {switch}-{from} and {switch}-{to}: nothing came through");
    }
    Ok(Summary::of_ether(&switch, (from, to), &report))
}
