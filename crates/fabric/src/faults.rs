//! Links and nodes by name: single links that differ, and what breaks when.

use crate::build::{changed, check_wire};
use crate::error::Problem;
use crate::file;
use crate::model::{End, Fabric, Fault, FaultKind, Wire};
use crate::names;
use crate::topology::wire_change;
use axon_wire::PortNo;

/// A link that a pair of names may mean.
#[derive(Clone, Copy, Debug)]
enum Found {
    Link(usize),
    Host(usize),
    Controller,
}

/// Sets what `overrides` say, in order.
pub(crate) fn apply_overrides(
    fabric: &mut Fabric,
    overrides: &[file::Override],
) -> Result<(), Problem> {
    for (index, asked) in overrides.iter().enumerate() {
        let key = format!("overrides[{index}]");
        let found = find(fabric, &format!("{key}.between"), &asked.between)?;
        let wire: &mut Wire = match found {
            Found::Link(link) => &mut fabric.links[link].wire,
            Found::Host(host) => &mut fabric.hosts[host].wire,
            Found::Controller => &mut fabric.controller.wire,
        };
        *wire = changed(*wire, wire_change(&asked.rate, &asked.latency, &asked.loss_ppm));
        check_wire(&key, wire)?;
    }
    Ok(())
}

/// The one link whose ends have these names. An end is a node or, where a node is not
/// enough, a port of it.
fn find(fabric: &Fabric, key: &str, between: &[String; 2]) -> Result<Found, Problem> {
    for (index, name) in between.iter().enumerate() {
        if !exists(fabric, name) {
            let what = format!("there is no node or port `{name}`");
            return Err(Problem::new(
                format!("{key}[{index}]"),
                what,
                "a name such as s1 or s1-p0",
            ));
        }
    }
    let switch_end = |end: End| (fabric.switches[end.switch].name.as_str(), end.port);
    let same = |name: &str, (node, port): (&str, PortNo)| {
        name == node || names::split_port(name) == Some((node, port))
    };
    let joins = |a: (&str, PortNo), b: (&str, PortNo)| {
        let [first, second] = between;
        same(first, a) && same(second, b) || same(first, b) && same(second, a)
    };
    let links = fabric.links.iter().enumerate();
    let links = links
        .filter(|(_, link)| joins(switch_end(link.a), switch_end(link.b)))
        .map(|(index, _)| Found::Link(index));
    let hosts = fabric.hosts.iter().enumerate();
    let hosts = hosts
        .filter(|(_, host)| {
            let edge = End { switch: host.switch, port: host.port };
            joins((&host.name, PortNo(0)), switch_end(edge))
        })
        .map(|(index, _)| Found::Host(index));
    let controller = &fabric.controller;
    let controller = joins((&controller.name, PortNo(0)), switch_end(controller.at))
        .then_some(Found::Controller);
    let found: Vec<Found> = links.chain(hosts).chain(controller).collect();
    let [a, b] = between;
    match found[..] {
        [found] => Ok(found),
        [] => {
            let what = format!("there is no link between {a} and {b}");
            Err(Problem::new(key, what, "the two ends of a link"))
        }
        _ => {
            let what = format!("there are {} links between {a} and {b}", found.len());
            Err(Problem::new(key, what, "a port such as s1-p0 that tells which"))
        }
    }
}

fn exists(fabric: &Fabric, name: &str) -> bool {
    let node = |name: &str, port: PortNo| {
        let alone = |other: &str| other == name && port == PortNo(0);
        fabric.switches.iter().any(|s| s.name == name && port.0 < s.ports.max(1))
            || fabric.hosts.iter().any(|host| alone(&host.name))
            || alone(&fabric.controller.name)
    };
    node(name, PortNo(0)) || names::split_port(name).is_some_and(|(name, port)| node(name, port))
}

/// Resolves the faults and puts them in order of time; those at one time keep their order.
pub(crate) fn resolve(fabric: &Fabric, asked: &[file::Fault]) -> Result<Vec<Fault>, Problem> {
    let mut faults = Vec::new();
    for (index, fault) in asked.iter().enumerate() {
        let key = format!("faults[{index}]");
        faults.push(Fault { at: fault.at.0, what: kind(fabric, &key, fault)? });
    }
    faults.sort_by_key(|fault| fault.at);
    Ok(faults)
}

fn kind(fabric: &Fabric, key: &str, fault: &file::Fault) -> Result<FaultKind, Problem> {
    let mut kinds = Vec::new();
    let links = [
        ("down", &fault.down, FaultKind::LinkDown as fn(usize) -> FaultKind),
        ("up", &fault.up, FaultKind::LinkUp),
        ("silent", &fault.silent, FaultKind::LinkSilent),
    ];
    for (name, between, kind) in links {
        if let Some(between) = between {
            kinds.push(kind(link(fabric, &format!("{key}.{name}"), between)?));
        }
    }
    if let Some(name) = &fault.crash {
        let node = node(fabric, &format!("{key}.crash"), name)?;
        kinds.push(node.map_or(FaultKind::ControllerDown, FaultKind::SwitchDown));
    }
    if let Some(name) = &fault.start {
        let node = node(fabric, &format!("{key}.start"), name)?;
        kinds.push(node.map_or(FaultKind::ControllerUp, FaultKind::SwitchUp));
    }
    if let Some(name) = &fault.unplug {
        kinds.push(FaultKind::HostDown(host(fabric, &format!("{key}.unplug"), name)?));
    }
    if let Some(name) = &fault.plug {
        kinds.push(FaultKind::HostUp(host(fabric, &format!("{key}.plug"), name)?));
    }
    match kinds[..] {
        [kind] => Ok(kind),
        _ => {
            let what = format!("{} things happen at once", kinds.len());
            let expected = "exactly one of down, up, silent, crash, start, unplug, plug";
            Err(Problem::new(key, what, expected))
        }
    }
}

/// A link between switches.
fn link(fabric: &Fabric, key: &str, between: &[String; 2]) -> Result<usize, Problem> {
    match find(fabric, key, between)? {
        Found::Link(link) => Ok(link),
        Found::Host(_) => {
            Err(Problem::new(key, "this is a host's link", "unplug or plug for hosts"))
        }
        Found::Controller => {
            Err(Problem::new(key, "this is the controller's link", "crash or start for c1"))
        }
    }
}

/// A switch by index, or `None` for the controller.
fn node(fabric: &Fabric, key: &str, name: &str) -> Result<Option<usize>, Problem> {
    if name == fabric.controller.name {
        return Ok(None);
    }
    let switch = fabric.switches.iter().position(|switch| switch.name == name);
    switch.map(Some).ok_or_else(|| {
        let what = format!("there is no switch or controller `{name}`");
        Problem::new(key, what, "a name such as s1 or c1")
    })
}

fn host(fabric: &Fabric, key: &str, name: &str) -> Result<usize, Problem> {
    let host = fabric.hosts.iter().position(|host| host.name == name);
    host.ok_or_else(|| {
        let what = format!("there is no host `{name}`");
        Problem::new(key, what, "the name of a host such as h1")
    })
}
