//! Conversion of a parsed file to a checked [`Fabric`]: numbers ports, sets the properties of
//! links, and refuses what is impossible.

use crate::addresses;
use crate::bonds::BondEnds;
use crate::dcb;
use crate::error::Problem;
use crate::faults;
use crate::file::{self, File, WireKey};
use crate::identity;
use crate::model::{
    BySource, Controller, Dataplanes, End, Fabric, Host, Link, Network, OnFull, Policy,
    PortPolicies, RouterKind, Switch, Timers, Unfit, Wire,
};
use crate::names::{PORT_NAME_MAX, check_kind, port_name};
use crate::ports;
use crate::reach;
use crate::topology::{self, Plan, PlanEnd};
use crate::units::{SpanText, span_text};
use crate::wire::{changed, check_wire};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::vlan::TAG_BYTES;
use axon_wire::{HopWidth, PortNo, Rate, Span};
use std::collections::BTreeSet;

/// The controller's name.
const CONTROLLER: &str = "c1";

/// Builds the fabric that `file` describes; `key_file` is not read.
///
/// # Errors
/// The first impossible setting, by key.
pub(crate) fn build(file: &File) -> Result<Fabric, Problem> {
    check(file)?;
    let hop_width = hop_width(file.hop_width)?;
    let mut plan = plan(file)?;
    let default_wire = default_wire(file)?;
    let (on_full, nack_queue) = crate::when_full::resolve(file)?;
    let controller = controller_end(file, &plan)?;
    let agent_ends = crate::agents::ends(&file.agents, &plan)?;
    let numbered = number_ports(&mut plan, controller, &agent_ends, &file.bonds)?;
    let mut fabric = Fabric {
        name: file.name.clone(),
        seed: file.seed,
        hop_width,
        keys: crate::secret::parse(file.key.as_deref())?,
        key_file: file.key_file.clone(),
        network: network(file),
        shape: crate::program::shape(&file.topology),
        program: crate::program::resolve(file)?,
        device: crate::device::resolve(&file.device)?,
        dataplanes: Dataplanes::default(),
        rate_key: rate_key(file, &plan),
        switches: numbered.switches(&plan),
        hosts: Vec::new(),
        links: Vec::new(),
        paths: Vec::new(),
        controller: Controller {
            mode: file.controller.mode,
            name: CONTROLLER.into(),
            at: numbered.controller,
            wire: default_wire,
            router: RouterKind::default(),
            backups: file.failover.backup,
        },
        timers: timers(file)?,
        dhcp: addresses::without_hosts(&file.dhcp, plan.hosts.len())?,
        cam: file.cam.check()?,
        ipv6: None,
        uplinks: Vec::new(),
        mtu: file.mtu,
        self_congestion_pause: file.self_congestion_pause,
        on_full,
        nack_queue,
        port_policies: PortPolicies::default(),
        policy: Policy::default(),
        by_source: BySource::Never,
        vlans: Vec::new(),
        groups: crate::groups::resolve(&file.multicast)?,
        dcb: dcb::resolve(file, &beside(file, on_full))?,
        faults: Vec::new(),
        faults_after_start: Vec::new(),
        traffic: Vec::new(),
        agents: Vec::new(),
        bonds: Vec::new(),
    };
    fabric.dataplanes = crate::dataplane::resolve(&fabric, file)?;
    finish(&mut fabric, file, (&plan, &numbered), default_wire)?;
    Ok(fabric)
}

/// Adds hosts, links, and the settings that refer to them by name.
fn finish(
    fabric: &mut Fabric,
    file: &File,
    (plan, numbered): (&Plan, &Ports),
    default_wire: Wire,
) -> Result<(), Problem> {
    set_router(fabric, file)?;
    crate::static_mode::check(fabric, file)?;
    file.dcb.as_ref().map_or(Ok(()), |dcb| dcb::resolve_dcbx(dcb, fabric))?;
    check_ports(fabric, plan.key)?;
    add_hosts(fabric, (file, plan), numbered, default_wire)?;
    dcb::check_hosts(fabric)?;
    add_links(fabric, plan, numbered, default_wire)?;
    reach::check(fabric, plan.key)?;
    fabric.vlans = crate::vlans::resolve(fabric, &file.vlans)?;
    crate::bonds::check_vlans(fabric)?;
    addresses::finish(fabric, file, plan)?;
    if fabric.is_static() {
        fabric.make_static();
    }
    fabric.paths = crate::static_mode::resolve(fabric, &file.paths)?;
    crate::agents::resolve(fabric, &file.agents, &numbered.agents)?;
    crate::program::check(fabric)?;
    faults::apply_overrides(fabric, &file.overrides)?;
    dcb::check_detection(fabric)?;
    (fabric.faults, fabric.faults_after_start) = faults::resolve(fabric, &file.faults)?;
    fabric.port_policies = ports::resolve(fabric, &file.ports)?;
    fabric.policy = crate::isolation::resolve(fabric, file)?;
    fabric.by_source = crate::isolation::by_source(fabric, file)?;
    fabric.traffic = crate::traffic::resolve(fabric, &file.traffic)?;
    ports::check_traffic(fabric)?;
    Ok(())
}

fn check(file: &File) -> Result<(), Problem> {
    check_kind("name", "fabric", &file.name)?;
    check_mtu(file.mtu)
}

/// Returns the planned switches, hosts and links, uplinks included.
fn plan(file: &File) -> Result<Plan, Problem> {
    let mut plan = topology::expand(&file.topology, file.seed)?;
    crate::uplinks::add(file, &mut plan)?;
    Ok(plan)
}

fn check_mtu(mtu: u16) -> Result<(), Problem> {
    match mtu {
        576..=9000 => Ok(()),
        _ => Err(Problem::range("mtu", mtu, "576 to 9000")),
    }
}

/// Returns the settings of other sections that `dcb` depends on.
fn beside(file: &File, on_full: OnFull) -> dcb::Beside {
    let frame_bytes_max = u64::from(file.mtu) + (ETHERNET_BYTES + TAG_BYTES) as u64;
    dcb::Beside { network: network(file), on_full, frame_bytes_max }
}

/// Adds the links between switches.
fn add_links(
    fabric: &mut Fabric,
    plan: &Plan,
    numbered: &Ports,
    default_wire: Wire,
) -> Result<(), Problem> {
    for (link, &[a, b]) in plan.links.iter().zip(&numbered.links) {
        let wire = changed(default_wire, &link.wire);
        check_wire(&link.key, &wire)?;
        fabric.links.push(Link { a, b, wire });
    }
    Ok(())
}

/// Returns the default properties of links, checked.
fn default_wire(file: &File) -> Result<Wire, Problem> {
    let wire = Wire {
        rate: file.links.rate.map_or(Rate::gbps(1), |rate| rate.0),
        latency: file.links.latency.0,
        loss_ppm: file.links.loss_ppm,
        bit_errors_per_1e15: file.links.bit_error_rate.0,
        queue: file.links.queue.0,
    };
    check_wire("links", &wire)?;
    Ok(wire)
}

/// Returns the first key that sets the rate of a link: of all links, of one in the topology, or of
/// an override.
fn rate_key(file: &File, plan: &Plan) -> Option<String> {
    let all = file.links.rate.map(|_| "links.rate".to_owned());
    let hosts = plan.hosts.iter().map(|host| (&host.key, &host.wire));
    let wires = hosts.chain(plan.links.iter().map(|link| (&link.key, &link.wire)));
    let sets_rate = |wire: &[WireKey]| wire.iter().any(|key| matches!(key, WireKey::Rate(_)));
    let mut one = wires.filter(|(_, wire)| sets_rate(wire));
    let overrides = file.overrides.iter().position(|one| sets_rate(&one.kinds));
    all.or_else(|| one.next().map(|(key, _)| format!("{key}.rate")))
        .or_else(|| overrides.map(|number| format!("overrides[{number}].rate")))
}

fn set_router(fabric: &mut Fabric, file: &File) -> Result<(), Problem> {
    let router = file.controller.router.kind();
    fabric.set_router(router).map_err(|unfit| match unfit {
        Unfit::NoLayers => {
            let expected = "dcb.layers, or another router";
            Problem::new("controller.router", "no priority has layers", expected)
        }
        Unfit::NeedsController(_) | Unfit::StatedPaths(_) => crate::static_mode::unfit(router),
    })
}

fn hop_width(bits: u8) -> Result<HopWidth, Problem> {
    match bits {
        4 => Ok(HopWidth::Four),
        8 => Ok(HopWidth::Eight),
        16 => Ok(HopWidth::Sixteen),
        _ => Err(Problem::range("hop_width", bits, "4, 8 or 16")),
    }
}

fn network(file: &File) -> Network {
    let is_program = file.network == Network::Axon && file.program.is_some();
    if is_program { Network::Program } else { file.network }
}

fn timers(file: &File) -> Result<Timers, Problem> {
    let ours = Timers::default();
    let pick = |key: &str, asked: Option<SpanText>, default: Span| match asked {
        None => Ok(default),
        Some(SpanText(span)) if (1..=3_600_000).contains(&span.as_millis()) => Ok(span),
        Some(SpanText(span)) => {
            Err(Problem::range(format!("timers.{key}"), span_text(span), "1ms to 1h"))
        }
    };
    let asked = &file.timers;
    Ok(Timers {
        hello: pick("hello", asked.hello, ours.hello)?,
        heartbeat: pick("heartbeat", asked.heartbeat, ours.heartbeat)?,
        retry: pick("retry", asked.retry, ours.retry)?,
        host_probe: pick("host_probe", asked.host_probe, ours.host_probe)?,
        ..ours
    })
}

fn controller_end(file: &File, plan: &Plan) -> Result<(PlanEnd, &'static str), Problem> {
    let key = "controller.at";
    let none = PlanEnd { switch: 0, port: None };
    let Some(at) = &file.controller.at else {
        return Ok((none, key));
    };
    Ok((topology::end(key, at, &plan.numbers())?, key))
}

/// Port numbers of hosts, links, controller and agents.
struct Ports {
    taken: Vec<BTreeSet<u16>>,
    hosts: Vec<PortNo>,
    links: Vec<[End; 2]>,
    controller: End,
    agents: Vec<End>,
    bonds: Vec<BondEnds>,
}

/// Numbers the ports of every switch: named ones first, then the lowest free number for each
/// host in order, for each link in order, for the controller, and for each agent in order.
fn number_ports(
    plan: &mut Plan,
    (controller, key): (PlanEnd, &str),
    agents: &[PlanEnd],
    bonds: &[file::Bond],
) -> Result<Ports, Problem> {
    let bonds = crate::bonds::ends(bonds, plan)?;
    let mut taken = vec![BTreeSet::new(); plan.switches.len()];
    let mut claim = |end: PlanEnd, key: &str| -> Result<(), Problem> {
        let Some(port) = end.port else { return Ok(()) };
        if taken[end.switch].insert(port.0) {
            return Ok(());
        }
        let name = port_name(&plan.switches[end.switch], port);
        Err(Problem::new(key, format!("{name} is in use already"), "a free port"))
    };
    for host in &plan.hosts {
        claim(host.at, &host.key)?;
    }
    for link in &plan.links {
        let [a, b] = link.ends;
        if a.switch == b.switch {
            let name = &plan.switches[a.switch];
            let what = format!("it links {name} to itself");
            return Err(Problem::new(&link.key, what, "two switches"));
        }
        claim(a, &link.key)?;
        claim(b, &link.key)?;
    }
    claim(controller, key)?;
    for (end, key) in bonds.iter().flat_map(BondEnds::further) {
        claim(*end, key)?;
    }
    for (index, &end) in agents.iter().enumerate() {
        claim(end, &format!("agents[{index}].at"))?;
    }

    let mut next = vec![0; plan.switches.len()];
    let mut number = |end: PlanEnd| -> PortNo {
        if let Some(port) = end.port {
            return port;
        }
        let (taken, next) = (&mut taken[end.switch], &mut next[end.switch]);
        while !taken.insert(*next) {
            *next += 1;
        }
        PortNo(*next)
    };
    let hosts = plan.hosts.iter().map(|host| number(host.at)).collect();
    let mut full = |end: PlanEnd| End { switch: end.switch, port: number(end) };
    let links = plan.links.iter().map(|link| link.ends.map(&mut full)).collect();
    let controller = full(controller);
    let agents = agents.iter().map(|&end| full(end)).collect();
    Ok(Ports { taken, hosts, links, controller, agents, bonds })
}

impl Ports {
    fn switches(&self, plan: &Plan) -> Vec<Switch> {
        let sized = plan.switches.iter().zip(&self.taken);
        sized
            .map(|(name, taken)| Switch {
                name: name.clone(),
                ports: taken.last().map_or(0, |last| last + 1),
            })
            .collect()
    }
}

/// Refuses switches with more ports than a hop can address, or than Linux can.
fn check_ports(fabric: &Fabric, key: &str) -> Result<(), Problem> {
    let most = fabric.hop_width.ports_max();
    for switch in &fabric.switches {
        let Switch { name, ports } = switch;
        if usize::from(*ports) > most {
            let bits = fabric.hop_width.bits();
            let what = format!("{name} has {ports} ports");
            let expected = format!("at most {most} with a hop_width of {bits}");
            return Err(Problem::new(key, what, expected));
        }
        let last = port_name(name, PortNo(ports.saturating_sub(1)));
        if last.len() > PORT_NAME_MAX {
            let what = format!("the port name {last} is too long for Linux");
            let expected = format!("at most {PORT_NAME_MAX} characters");
            return Err(Problem::new(key, what, expected));
        }
        if name == CONTROLLER {
            let what = format!("a switch is called {name}");
            return Err(Problem::new(key, what, "that name for the controller only"));
        }
    }
    Ok(())
}

fn add_hosts(
    fabric: &mut Fabric,
    (file, plan): (&File, &Plan),
    ports: &Ports,
    default_wire: Wire,
) -> Result<(), Problem> {
    let mut macs = BTreeSet::from([crate::assemble::SERVER_MAC]);
    macs.extend((0..plan.switches.len()).map(identity::switch_mac));
    macs.insert(crate::assemble::CONTROLLER_MAC);
    for (index, (host, &port)) in plan.hosts.iter().zip(&ports.hosts).enumerate() {
        let mac = host.mac.unwrap_or_else(|| identity::host_mac(index));
        if !macs.insert(mac) {
            let key = format!("{}.mac", host.key);
            return Err(Problem::new(key, format!("{mac} is in use already"), "another MAC"));
        }
        if host.name == CONTROLLER {
            let what = format!("a host is called {CONTROLLER}");
            return Err(Problem::new(&host.key, what, "that name for the controller only"));
        }
        let wire = changed(default_wire, &host.wire);
        check_wire(&host.key, &wire)?;
        fabric.hosts.push(Host {
            name: host.name.clone(),
            mac,
            ip: host.ip,
            ip6: host.ip6,
            switch: host.at.switch,
            port,
            wire,
        });
    }
    fabric.uplinks = crate::uplinks::of(file, plan);
    crate::bonds::resolve(fabric, &ports.bonds)
}
