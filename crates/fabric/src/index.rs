//! Index of a fabric's names, with logarithmic lookup.

use crate::error::Problem;
use crate::model::{Cable, End, Fabric};
use crate::names;
use axon_wire::PortNo;
use std::collections::BTreeMap;

/// Node that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Index of the switch.
    Switch(usize),
    /// Index of the host.
    Host(usize),
    Controller,
}

/// Index of all names and all links of a fabric.
pub(crate) struct Index<'a> {
    fabric: &'a Fabric,
    nodes: BTreeMap<&'a str, Node>,
    /// Cables at each switch.
    cables: Vec<Vec<Cable>>,
}

impl<'a> Index<'a> {
    pub(crate) fn of(fabric: &'a Fabric) -> Index<'a> {
        let mut nodes = BTreeMap::from([(fabric.controller.name.as_str(), Node::Controller)]);
        let switches = fabric.switches.iter().enumerate();
        nodes.extend(switches.map(|(at, switch)| (switch.name.as_str(), Node::Switch(at))));
        let hosts = fabric.hosts.iter().enumerate();
        nodes.extend(hosts.map(|(at, host)| (host.name.as_str(), Node::Host(at))));
        let mut cables = vec![Vec::new(); fabric.switches.len()];
        for (at, link) in fabric.links.iter().enumerate() {
            cables[link.a.switch].push(Cable::Link(at));
            cables[link.b.switch].push(Cable::Link(at));
        }
        for (at, host) in fabric.hosts.iter().enumerate() {
            cables[host.switch].push(Cable::Host(at));
        }
        cables[fabric.controller.at.switch].push(Cable::Controller);
        Index { fabric, nodes, cables }
    }

    /// Returns the node with this name.
    pub(crate) fn node(&self, name: &str) -> Option<Node> {
        self.nodes.get(name).copied()
    }

    /// Returns the node with this name, or the node and port of a port's name.
    fn node_or_port(&self, name: &str) -> Option<(Node, Option<PortNo>)> {
        if let Some(node) = self.node(name) {
            return Some((node, None));
        }
        let (node, port) = names::split_port(name)?;
        let node = self.node(node)?;
        let there = match node {
            Node::Switch(switch) => port.0 < self.fabric.switches[switch].ports,
            Node::Host(_) | Node::Controller => port == PortNo(0),
        };
        there.then_some((node, Some(port)))
    }

    /// Returns the switch port that a name refers to: the port itself, or the one that a host is
    /// plugged into.
    pub(crate) fn port(&self, key: &str, name: &str) -> Result<End, Problem> {
        match self.node_or_port(name) {
            Some((Node::Switch(switch), Some(port))) => Ok(End { switch, port }),
            Some((Node::Host(host), _)) => {
                let host = &self.fabric.hosts[host];
                Ok(End { switch: host.switch, port: host.port })
            }
            _ => {
                let what = format!("there is no port `{name}`");
                Err(Problem::new(key, what, "a port of a switch such as s1-p4, or a host"))
            }
        }
    }

    /// Returns the ends of a cable: nodes and ports.
    fn ends(&self, cable: Cable) -> [(Node, PortNo); 2] {
        let switch = |end: End| (Node::Switch(end.switch), end.port);
        match cable {
            Cable::Link(at) => [switch(self.fabric.links[at].a), switch(self.fabric.links[at].b)],
            Cable::Host(at) => {
                let host = &self.fabric.hosts[at];
                let edge = End { switch: host.switch, port: host.port };
                [(Node::Host(at), PortNo(0)), switch(edge)]
            }
            Cable::Controller => [(Node::Controller, PortNo(0)), switch(self.fabric.controller.at)],
        }
    }

    /// Returns the one cable whose ends have these names. An end is a node or, where a node is
    /// ambiguous, a port of it.
    pub(crate) fn cable(&self, key: &str, between: &[String; 2]) -> Result<Cable, Problem> {
        let mut asked = [(Node::Controller, None); 2];
        for (index, name) in between.iter().enumerate() {
            asked[index] = self.node_or_port(name).ok_or_else(|| {
                let what = format!("there is no node or port `{name}`");
                Problem::new(format!("{key}[{index}]"), what, "a name such as s1 or s1-p0")
            })?;
        }
        let [first, second] = asked;
        // Every cable has a switch at one end at least: search the cables there.
        let near = match (first.0, second.0) {
            (Node::Switch(switch), _) | (_, Node::Switch(switch)) => &self.cables[switch][..],
            _ => &[],
        };
        let same = |(node, port): (Node, Option<PortNo>), end: (Node, PortNo)| {
            node == end.0 && port.is_none_or(|port| port == end.1)
        };
        let joins = |cable: &&Cable| {
            let [a, b] = self.ends(**cable);
            same(first, a) && same(second, b) || same(first, b) && same(second, a)
        };
        let found: Vec<Cable> = near.iter().filter(joins).copied().collect();
        let [a, b] = between;
        match found[..] {
            [found] => Ok(found),
            [] => {
                let what = format!("there is no link between {a} and {b}");
                Err(Problem::new(key, what, "the two ends of a link"))
            }
            _ => {
                let what = format!("there are {} links between {a} and {b}", found.len());
                Err(Problem::new(key, what, "a port such as s1-p0"))
            }
        }
    }

    /// Returns the end of a link between switches that `name`, one of its two ends, refers to.
    pub(crate) fn end_of(&self, link: usize, name: &str) -> Option<End> {
        let (node, port) = self.node_or_port(name)?;
        let (a, b) = (self.fabric.links[link].a, self.fabric.links[link].b);
        let named = |end: &End| {
            node == Node::Switch(end.switch) && port.is_none_or(|port| port == end.port)
        };
        [a, b].into_iter().find(named)
    }

    /// Returns the index of a host by name.
    pub(crate) fn host(&self, key: &str, name: &str) -> Result<usize, Problem> {
        match self.node(name) {
            Some(Node::Host(host)) => Ok(host),
            _ => {
                let what = format!("there is no host `{name}`");
                Err(Problem::new(key, what, "the name of a host such as h1"))
            }
        }
    }
}
