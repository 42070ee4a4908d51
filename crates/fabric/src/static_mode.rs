//! Fabrics without a controller: settings that the file may have, paths that it states, and the
//! topology that every switch is configured with.

use crate::addresses;
use crate::error::Problem;
use crate::file::{self, File};
use crate::model::{End, Fabric, Mode, Network, StatedPath};
use crate::names::{self, split_port, switch_index};
use axon_controller::config::{StaticSwitch, StaticTopology};
use axon_controller::router::Explicit;
use axon_controller::router::{Router, RouterKind, StatedPath as FlowPath, flow_hash};
use axon_node::StoredHost;
use axon_wire::FrameBuf;
use axon_wire::message::{LinkEnd, Peer, PortState, Role};
use std::collections::BTreeMap;
use std::net::IpAddr;

impl Fabric {
    /// Returns whether a separate node chooses the routes of switches: the controller of Axon.
    pub fn has_controller(&self) -> bool {
        self.network == Network::Axon && self.controller.mode == Mode::Central
    }

    /// Returns whether every Axon computes routes by itself, from the fabric file.
    pub fn is_static(&self) -> bool {
        self.network == Network::Axon && self.controller.mode == Mode::Static
    }

    /// Makes every switch compute routes by itself. Each host then has an address reserved, which
    /// never changes.
    pub fn make_static(&mut self) {
        self.controller.mode = Mode::Static;
        for (index, address) in addresses::of_hosts(self).into_iter().enumerate() {
            let mac = self.hosts[index].mac;
            if let Some(address) = address {
                self.dhcp.reservations.entry(mac).or_insert(address);
            }
        }
    }
}

/// Returns the router of the controller, or of every switch in a fabric without one; `seed`
/// seeds random choices.
pub fn router(fabric: &Fabric, seed: u64) -> Box<dyn Router> {
    let router = fabric.controller.router.build(seed, fabric.layers());
    Explicit::over(router, &flow_paths(fabric))
}

/// Refuses settings that need a controller.
pub(crate) fn check(fabric: &Fabric, file: &File) -> Result<(), Problem> {
    if file.controller.mode == file::Mode::Central {
        return match file.paths.is_empty() {
            true => Ok(()),
            false => Err(Problem::new(
                "paths",
                "the controller chooses the paths",
                "controller: {mode: static}, or no paths",
            )),
        };
    }
    if fabric.network != Network::Axon {
        let what = "the switches of this network do not know the fabric file";
        return Err(Problem::new("controller.mode", what, "network: axon, or no mode"));
    }
    if file.controller.at.is_some() {
        let what = "there is no controller";
        return Err(Problem::new("controller.at", what, "mode: central, or no place for it"));
    }
    if file.dhcp.relay.is_some() {
        let what = "without a controller nothing is relayed";
        return Err(Problem::new("dhcp.relay", what, "hosts with addresses, or no relay"));
    }
    if let Some(id) = file.dhcp.reservations.keys().find(|name| name.starts_with("id:")) {
        let key = format!("dhcp.reservations.{id}");
        let what = "without a controller nobody sees that two hosts show one identifier";
        return Err(Problem::new(key, what, "the name of a host, or a MAC"));
    }
    Ok(())
}

/// Returns the error for a router that does not fit a fabric without a controller.
pub(crate) fn unfit(router: RouterKind) -> Problem {
    let names = RouterKind::ALL.into_iter().filter(|kind| kind.is_fixed());
    let names: Vec<&str> = names.map(RouterKind::name).collect();
    let what = format!(
        "{} chooses by what was placed, measured or drawn before, which no single switch knows",
        router.name()
    );
    let expected = format!("{}, or mode: central", names.join(" or "));
    Problem::new("controller.router", what, expected)
}

/// Reads `paths`.
pub(crate) fn resolve(
    fabric: &Fabric,
    paths: &[file::StatedPath],
) -> Result<Vec<StatedPath>, Problem> {
    let mut all = Vec::new();
    let mut taken = BTreeMap::new();
    if !paths.is_empty() && fabric.controller.router.is_ordered() {
        let what = format!(
            "router {} has an order that a stated path may break",
            fabric.controller.router.name()
        );
        return Err(Problem::new("paths", what, "router: shortest_path, or no paths"));
    }
    for (number, path) in paths.iter().enumerate() {
        let key = format!("paths[{number}]");
        let [from, to] = [("from", &path.from), ("to", &path.to)].map(|(end, name)| {
            names::host(fabric, format!("{key}.{end}"), name, "the name of a host such as h1")
        });
        let (from, to) = (from?, to?);
        if from == to {
            let what = format!("it leads from {0} to {0}", path.from);
            return Err(Problem::new(key, what, "two hosts"));
        }
        if let Some(other) = taken.insert((from.min(to), from.max(to)), number) {
            let what = format!("paths[{other}] is between the same hosts, there and back");
            return Err(Problem::new(key, what, "one path for two hosts"));
        }
        let ends = [fabric.hosts[from].switch, fabric.hosts[to].switch];
        let links = links(fabric, &format!("{key}.via"), &path.via, ends)?;
        let backup = match &path.backup {
            None => Vec::new(),
            Some(via) => {
                let key = format!("{key}.backup");
                let backup = self::links(fabric, &key, via, ends)?;
                if backup == links {
                    let what = "it is the path that it is the backup of";
                    return Err(Problem::new(key, what, "another path, or no backup"));
                }
                backup
            }
        };
        all.push(StatedPath { from, to, links, backup });
    }
    Ok(all)
}

/// Returns the links of a path, each by both of its ends, nearest first.
fn links(
    fabric: &Fabric,
    key: &str,
    via: &[String],
    [first, last]: [usize; 2],
) -> Result<Vec<[End; 2]>, Problem> {
    let mut hops = Vec::new();
    for (place, name) in via.iter().enumerate() {
        let (switch, port) = match (switch_index(fabric, name), split_port(name)) {
            (Some(switch), _) => (switch, None),
            (None, Some((node, port))) => match switch_index(fabric, node) {
                Some(switch) => (switch, Some(port)),
                None => return Err(no_switch(&format!("{key}[{place}]"), name)),
            },
            (None, None) => return Err(no_switch(&format!("{key}[{place}]"), name)),
        };
        if let Some(before) = hops.iter().position(|&(other, _)| other == switch) {
            let what = format!("{name} is at {before} already: a loop");
            return Err(Problem::new(format!("{key}[{place}]"), what, "each switch once"));
        }
        hops.push((switch, port));
    }
    let name = |switch: usize| &fabric.switches[switch].name;
    let ends = (hops.first().map(|hop| hop.0), hops.last().map(|hop| hop.0));
    if ends != (Some(first), Some(last)) {
        let what = match ends {
            (Some(from), Some(to)) => format!("it leads from {} to {}", name(from), name(to)),
            _ => "it names no switch".to_owned(),
        };
        let expected = format!("from {} to {}, where the hosts are", name(first), name(last));
        return Err(Problem::new(key, what, expected));
    }
    let hops_max = fabric.hop_width.hops_in(FrameBuf::HEADROOM);
    if hops.len() > hops_max {
        let what = format!("it has {} hops", hops.len());
        return Err(Problem::new(key, what, format!("at most {hops_max}, for a header")));
    }
    let pairs = hops.iter().zip(hops.iter().skip(1)).enumerate();
    let found = pairs.map(|(place, (&(here, port), &(there, _)))| {
        let between = fabric.links.iter().flat_map(|link| [[link.a, link.b], [link.b, link.a]]);
        let fits = |[a, b]: &[End; 2]| {
            (a.switch, b.switch) == (here, there) && port.is_none_or(|port| a.port == port)
        };
        between.filter(fits).min().ok_or_else(|| {
            let what = format!("no link leads from {} to {}", via[place], name(there));
            Problem::new(format!("{key}[{}]", place + 1), what, "a switch that a link leads to")
        })
    });
    found.collect()
}

fn no_switch(key: &str, name: &str) -> Problem {
    let what = format!("there is no switch `{name}`");
    Problem::new(key, what, "the name of a switch such as s1, or of its port such as s1-p3")
}

/// Returns the stated paths as configuration of the switches' routers, both directions of each.
fn flow_paths(fabric: &Fabric) -> Vec<FlowPath> {
    let one = |from: usize, to: usize, links: Vec<LinkEnd>, backup: Vec<LinkEnd>| {
        let (source, target) = (&fabric.hosts[from], &fabric.hosts[to]);
        let node = crate::identity::switch_id(source.switch);
        FlowPath { flow: flow_hash(node, source.port, target.mac), links, backup }
    };
    let there = |links: &[[End; 2]]| links.iter().map(|[a, _]| link_end(*a)).collect();
    let back = |links: &[[End; 2]]| links.iter().rev().map(|[_, b]| link_end(*b)).collect();
    let both = |path: &StatedPath| {
        let StatedPath { from, to, links, backup } = path;
        [one(*from, *to, there(links), there(backup)), one(*to, *from, back(links), back(backup))]
    };
    fabric.paths.iter().flat_map(both).collect()
}

fn link_end(end: End) -> LinkEnd {
    LinkEnd { node: crate::identity::switch_id(end.switch), port: end.port }
}

/// Returns the topology that every switch is configured with.
pub(crate) fn topology(fabric: &Fabric) -> StaticTopology {
    let mut ports = vec![BTreeMap::new(); fabric.switches.len()];
    for link in &fabric.links {
        for (here, there) in [(link.a, link.b), (link.b, link.a)] {
            let LinkEnd { node, port } = link_end(there);
            ports[here.switch].insert(here.port, Peer::Axon { node, port, role: Role::Switch });
        }
    }
    let mut hosts = Vec::new();
    for host in &fabric.hosts {
        ports[host.switch].insert(host.port, Peer::Host);
        let ip = fabric.dhcp.reservations.get(&host.mac).copied();
        hosts.push(StoredHost {
            mac: host.mac,
            switch: crate::identity::switch_id(host.switch),
            port: host.port,
            ips: ip.map(IpAddr::V4).into_iter().collect(),
        });
    }
    let switches = ports.into_iter().enumerate().map(|(index, ports)| StaticSwitch {
        node: crate::identity::switch_id(index),
        ports: ports.into_iter().map(|(port, peer)| PortState { port, peer }).collect(),
    });
    StaticTopology { switches: switches.collect(), hosts, paths: flow_paths(fabric) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Result<Fabric, String> {
        let text =
            format!("name: a\ntopology: {{ring: {{switches: 4, hosts_per_switch: 1}}}}\n{rest}");
        crate::parse("a.yaml".as_ref(), &text).map_err(|error| error.to_string())
    }

    const STATIC: &str = "controller: {mode: static}\n";

    #[test]
    fn a_stated_path_is_one_of_links_there_and_back() {
        let path = "paths: [{from: h1, to: h2, via: [s1, s4, s3, s2], backup: [s1, s2]}]";
        let fabric = parse(&format!("{STATIC}{path}")).unwrap();
        assert!(fabric.is_static() && !fabric.has_controller());
        let [path] = &fabric.paths[..] else { panic!("{:?}", fabric.paths) };
        let switches = |links: &[[End; 2]]| -> Vec<usize> {
            links.iter().map(|[_, far]| far.switch).collect()
        };
        assert_eq!((switches(&path.links), switches(&path.backup)), (vec![3, 2, 1], vec![1]));
        let [there, back] = &flow_paths(&fabric)[..] else { panic!("two directions") };
        assert_eq!(there.links.len(), 3);
        assert_ne!(there.flow, back.flow);
        assert_eq!(back.links[0].node, crate::identity::switch_id(1));
        // Every host has an address of its own at all times.
        assert_eq!(fabric.dhcp.reservations.len(), 4);
    }

    #[test]
    fn what_a_stated_path_cannot_be_is_refused_with_its_place_and_what_was_expected() {
        for (paths, expected) in [
            ("[{from: h1, to: h9, via: [s1]}]", "a.yaml:4:24: paths[0].to: there is no host `h9`"),
            ("[{from: h1, to: h1, via: [s1]}]", "it leads from h1 to h1"),
            ("[{from: h1, to: h3, via: [s1, s3]}]", "paths[0].via[1]: no link leads from s1 to s3"),
            ("[{from: h1, to: h2, via: [s1, s9, s2]}]", "paths[0].via[1]: there is no switch `s9`"),
            (
                "[{from: h1, to: h2, via: [s2, s1]}]",
                "it leads from s2 to s1; expected from s1 to s2",
            ),
            ("[{from: h1, to: h2, via: [s1, s2, s1, s2]}]", "s1 is at 0 already: a loop"),
            ("[{from: h1, to: h2, via: []}]", "it names no switch"),
            (
                "[{from: h1, to: h2, via: [s1, s2], backup: [s1, s2]}]",
                "the path that it is the backup",
            ),
            (
                "[{from: h1, to: h2, via: [s1, s2]}, {from: h2, to: h1, via: [s2, s1]}]",
                "paths[1]: paths[0] is between the same hosts",
            ),
        ] {
            let error = parse(&format!("{STATIC}paths: {paths}")).unwrap_err();
            assert!(error.contains(expected), "{error}\n{expected}");
        }
    }

    #[test]
    fn what_needs_a_controller_is_refused_without_one_and_paths_with_one() {
        for (rest, expected) in [
            ("controller: {mode: static, at: s1}", "controller.at: there is no controller"),
            ("controller: {mode: static, router: spain}", "spain chooses by what was placed"),
            ("controller: {mode: static, router: balanced}", "expected shortest_path or up_down"),
            ("paths: [{from: h1, to: h2, via: [s1, s2]}]", "paths: the controller chooses"),
            (
                "controller: {mode: static, router: up_down}\npaths: [{from: h1, to: h2, via: \
                 [s1, s2]}]",
                "router up_down has an order",
            ),
            ("controller: {mode: static}\nnetwork: ecmp", "controller.mode: the switches of this"),
            (
                "controller: {mode: static}\ndhcp: {reservations: {\"id:p\": 10.0.0.9}}",
                "nobody sees that two hosts show one identifier",
            ),
        ] {
            let error = parse(rest).unwrap_err();
            assert!(error.contains(expected), "{error}\n{expected}");
        }
    }
}
