//! State of the fabric manager (paper §3.1, §3.3, §3.6): the network, the hosts, and messages to
//! switches.
//!
//! Switches report their neighbours. When the network has not changed for a while, the manager
//! determines whether it is a fat tree and sends the edge switches their locations. It stores the
//! PMAC of every host by its IP address and answers all ARP requests. For an unregistered address,
//! it sends a query to all edge switches. In a fat tree, after each change, it compares every
//! switch's own rules with the current shortest paths and corrects differences. In any other
//! network, a switch that has no route for a frame sends a query. The manager then installs the
//! shortest paths in every switch along them, and records these paths so that it can correct them
//! when the network changes.

use super::graph::{FAR, Graph, place_of};
use super::message::{Message, Place, Register, Report, Requester};
use crate::portland::plane::{ALL_SWITCHES, Location};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::agenda::Agenda;
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::Ipv4Addr;

/// Number of intervals without changes before the first evaluation of the network.
const QUIET_INTERVALS: u64 = 5;
/// Delay after a change, so that several changes are evaluated together.
const REFRESH_DELAY: Span = Span::from_millis(10);
/// Lifetime of an unanswered ARP request.
const QUESTION: Span = Span::from_secs(3);
/// Maximum number of entries in a message. With ten ports in each, it stays below 1,500 bytes.
const ENTRIES_MAX: usize = 40;
/// Maximum number of attempts to send to a switch. After that, the switch has to report itself
/// again.
const TRIES_MAX: u32 = 20;

/// Message and its receiver.
pub(super) type Letter = (MacAddr, Message);

/// Routes sent to one switch.
#[derive(Debug, Default)]
struct Sent {
    /// All routes, acknowledged or not.
    entries: BTreeMap<Location, Vec<PortNo>>,
    /// Locations whose routes have not been acknowledged, with the number of the message.
    unacknowledged: BTreeMap<Location, u32>,
    tries: u32,
}

/// Counters of the fabric manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagerCounters {
    /// ARP requests answered.
    pub answered: u64,
    /// Unanswered ARP requests, which were sent to all edge switches.
    pub broadcast: u64,
    /// Routes sent to switches.
    pub routes: u64,
}

/// State of the fabric manager, without its port.
#[derive(Debug)]
pub(super) struct Manager {
    interval: Span,
    retry: Span,
    graph: Graph,
    /// True if the network is a fat tree. `None` until the network has been quiet.
    fat_tree: Option<bool>,
    /// Time at which the graph is evaluated next.
    refresh: Option<Time>,
    hosts: BTreeMap<Ipv4Addr, Register>,
    questions: BTreeMap<Ipv4Addr, BTreeMap<Requester, Time>>,
    sent: BTreeMap<usize, Sent>,
    /// Switches that have unacknowledged routes.
    resend: Agenda<usize>,
    /// Distances from all switches to one target, by target. They are valid while the graph is
    /// unchanged.
    distances: BTreeMap<usize, Vec<u16>>,
    sequence: u32,
    counters: ManagerCounters,
}

impl Manager {
    pub(crate) fn new(interval: Span, retry: Span) -> Manager {
        Manager {
            interval,
            retry,
            graph: Graph::default(),
            fat_tree: None,
            refresh: None,
            hosts: BTreeMap::new(),
            questions: BTreeMap::new(),
            sent: BTreeMap::new(),
            resend: Agenda::new(),
            distances: BTreeMap::new(),
            sequence: 0,
            counters: ManagerCounters::default(),
        }
    }

    pub fn counters(&self) -> ManagerCounters {
        self.counters
    }

    pub(crate) fn fat_tree(&self) -> Option<bool> {
        self.fat_tree
    }

    pub(crate) fn hosts(&self) -> &BTreeMap<Ipv4Addr, Register> {
        &self.hosts
    }

    pub(crate) fn switches(&self) -> usize {
        self.graph.len()
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        [self.refresh, self.resend.next()].into_iter().flatten().min()
    }

    /// Handles a message from a switch. Returns whether the message was for the manager.
    pub(crate) fn message(
        &mut self,
        now: Time,
        from: MacAddr,
        message: Message,
        letters: &mut Vec<Letter>,
    ) -> bool {
        match message {
            Message::Report(report) => self.report(now, from, &report, letters),
            Message::Register(register) => self.register(now, from, register, letters),
            Message::ArpQuery { ip, from: requester } => {
                self.query(now, from, ip, requester, letters)
            }
            Message::RouteQuery(place) => self.route_query(now, from, place.into(), letters),
            Message::RoutesAck { sequence } => self.routes_acknowledged(from, sequence),
            _ => return false,
        }
        true
    }

    fn report(&mut self, now: Time, mac: MacAddr, report: &Report, letters: &mut Vec<Letter>) {
        letters.push((mac, Message::ReportAck { sequence: report.sequence }));
        let news = self.graph.report(mac, report);
        let sent = self.sent.entry(news.switch).or_default();
        sent.tries = 0;
        if news.reborn {
            *sent = Sent::default();
        } else if !sent.unacknowledged.is_empty() {
            self.resend.set(news.switch, now);
        }
        let place = place_of(self.graph.switch(news.switch));
        if let Some(place) = place.filter(|_| report.place != place) {
            letters.push((mac, Message::Place(place)));
        }
        if news.changed || news.reborn {
            // Before the first evaluation, every change restarts the delay.
            let soon = now + REFRESH_DELAY;
            let quiet = now + self.interval * QUIET_INTERVALS;
            self.refresh = Some(match self.fat_tree {
                None => quiet,
                Some(_) => self.refresh.unwrap_or(soon),
            });
        }
    }

    fn register(
        &mut self,
        now: Time,
        from: MacAddr,
        register: Register,
        letters: &mut Vec<Letter>,
    ) {
        let Register { ip, amac, pmac } = register;
        letters.push((from, Message::RegisterAck { amac, pmac }));
        let before = self.hosts.insert(ip, register);
        if let Some(old) = before.filter(|old| old.pmac != pmac && old.amac == amac)
            && let Some(edge) = self.edge_of(old.pmac)
        {
            letters.push((edge, Message::Moved { ip, old: old.pmac, new: pmac }));
        }
        for (requester, until) in self.questions.remove(&ip).unwrap_or_default() {
            if until > now
                && let Some(edge) = self.edge_of(requester.pmac)
            {
                letters.push((edge, Message::ArpAnswer { ip, pmac, to: requester.pmac }));
            }
        }
    }

    /// Returns the edge switch that a PMAC belongs to.
    fn edge_of(&self, pmac: MacAddr) -> Option<MacAddr> {
        let switch = self.graph.at(Location::of(pmac)?)?;
        Some(self.graph.switch(switch).mac)
    }

    fn query(
        &mut self,
        now: Time,
        edge: MacAddr,
        ip: Ipv4Addr,
        requester: Requester,
        letters: &mut Vec<Letter>,
    ) {
        if let Some(host) = self.hosts.get(&ip) {
            self.counters.answered += 1;
            letters.push((edge, Message::ArpAnswer { ip, pmac: host.pmac, to: requester.pmac }));
            return;
        }
        self.counters.broadcast += 1;
        let requesters = self.questions.entry(ip).or_default();
        requesters.retain(|_, until| *until > now);
        requesters.insert(requester, now + QUESTION);
        letters.push((ALL_SWITCHES, Message::ArpBroadcast { ip, from: requester }));
    }
}

/// Computation and distribution of routes.
impl Manager {
    pub(crate) fn timeout(&mut self, now: Time, letters: &mut Vec<Letter>) {
        if self.refresh.is_some_and(|at| at <= now) {
            self.refresh = None;
            self.look(now, letters);
        }
        while let Some(switch) = self.resend.pop_due(now) {
            self.send_routes(now, switch, letters);
        }
    }

    /// Evaluates the graph after a change.
    fn look(&mut self, now: Time, letters: &mut Vec<Letter>) {
        self.graph.refresh();
        self.distances.clear();
        let fat_tree = *self.fat_tree.get_or_insert_with(|| self.graph.is_fat_tree());
        for switch in self.graph.place_all(fat_tree) {
            let switch = self.graph.switch(switch);
            letters.extend(place_of(switch).map(|place| (switch.mac, Message::Place(place))));
        }
        for switch in 0..self.graph.len() {
            if fat_tree {
                self.compare(switch);
            } else {
                self.reconsider(switch);
            }
            self.send_routes(now, switch, letters);
        }
    }

    /// In a fat tree, compares the switch's own rules and the routes sent to it with the shortest
    /// paths.
    fn compare(&mut self, switch: usize) {
        let rules = self.graph.rules(switch);
        let targets: Vec<(Location, usize)> = self.graph.locations().collect();
        for (location, target) in targets.into_iter().filter(|&(_, target)| target != switch) {
            let sent = self.sent.get(&switch).and_then(|sent| sent.entries.get(&location));
            let current = sent.or_else(|| rules.ports_towards(location)).cloned();
            self.correct(switch, location, target, current);
        }
    }

    /// In any other network, compares the routes sent to a switch with the shortest paths.
    fn reconsider(&mut self, switch: usize) {
        let entries = self.sent.get(&switch).map_or(Vec::new(), |sent| {
            sent.entries.iter().map(|(&location, ports)| (location, ports.clone())).collect()
        });
        for (location, ports) in entries {
            if let Some(target) = self.graph.at(location).filter(|&target| target != switch) {
                self.correct(switch, location, target, Some(ports));
            }
        }
    }

    /// Records a correction for `switch` if its route to `target` is wrong. Returns the next
    /// switches on the path.
    fn correct(
        &mut self,
        switch: usize,
        location: Location,
        target: usize,
        current: Option<Vec<PortNo>>,
    ) -> Vec<usize> {
        let graph = &self.graph;
        let distances = self.distances.entry(target).or_insert_with(|| graph.distances(target));
        let closer =
            if distances[switch] == FAR { Vec::new() } else { graph.closer(switch, distances) };
        let ports: Vec<PortNo> = closer.iter().map(|&(port, _)| port).collect();
        if current.as_ref() != Some(&ports) {
            let sent = self.sent.entry(switch).or_default();
            sent.entries.insert(location, ports);
            sent.unacknowledged.insert(location, 0);
            self.counters.routes += 1;
        }
        closer.into_iter().map(|(_, other)| other).collect()
    }

    /// Handles a query for a route by installing it in every switch on the path to the destination.
    fn route_query(
        &mut self,
        now: Time,
        from: MacAddr,
        location: Location,
        letters: &mut Vec<Letter>,
    ) {
        let (Some(start), Some(target)) = (self.graph.find(from), self.graph.at(location)) else {
            return;
        };
        // The querying switch has no route, regardless of any that was sent to it.
        if let Some(sent) = self.sent.get_mut(&start) {
            sent.entries.remove(&location);
        }
        let mut seen = BTreeSet::from([start]);
        let mut next = Vec::from([start]);
        let mut order = Vec::new();
        while let Some(switch) = next.pop() {
            if switch == target {
                continue;
            }
            let known = self.sent.get(&switch).and_then(|sent| sent.entries.get(&location));
            let current = match (known, self.fat_tree) {
                (Some(ports), _) => Some(ports.clone()),
                (None, Some(true)) if switch != start => {
                    self.graph.rules(switch).ports_towards(location).cloned()
                }
                _ => None,
            };
            for other in self.correct(switch, location, target, current) {
                if seen.insert(other) {
                    next.push(other);
                }
            }
            order.push(switch);
        }
        // The last switch first, so that the path exists when the frame arrives.
        for switch in order.into_iter().rev() {
            self.send_routes(now, switch, letters);
        }
    }

    /// Sends a switch the routes that it has not acknowledged.
    fn send_routes(&mut self, now: Time, switch: usize, letters: &mut Vec<Letter>) {
        let Some(sent) = self.sent.get_mut(&switch).filter(|sent| !sent.unacknowledged.is_empty())
        else {
            return;
        };
        sent.tries += 1;
        if sent.tries > TRIES_MAX {
            return;
        }
        let mac = self.graph.switch(switch).mac;
        let locations: Vec<Location> = sent.unacknowledged.keys().copied().collect();
        for chunk in locations.chunks(ENTRIES_MAX) {
            self.sequence = self.sequence.wrapping_add(1).max(1);
            let entries = chunk.iter().map(|&location| {
                sent.unacknowledged.insert(location, self.sequence);
                (Place::from(location), sent.entries.get(&location).cloned().unwrap_or_default())
            });
            let entries = entries.collect();
            letters.push((mac, Message::Routes { sequence: self.sequence, entries }));
        }
        let pause = self.retry * (1 << sent.tries.min(4));
        self.resend.set(switch, now + pause);
    }

    fn routes_acknowledged(&mut self, from: MacAddr, sequence: u32) {
        let Some(switch) = self.graph.find(from) else {
            return;
        };
        if let Some(sent) = self.sent.get_mut(&switch) {
            sent.unacknowledged.retain(|_, sent| *sent != sequence);
            sent.tries = 0;
            if sent.unacknowledged.is_empty() {
                self.resend.cancel(switch);
            }
        }
    }
}
