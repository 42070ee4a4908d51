//! Search for unknown hosts.
//!
//! A host with a fixed address that has never sent a frame is in no table. In a bridged Ethernet,
//! the broadcast of an ARP request finds it. Here, the controller sends a message ([`Seek`]) to
//! each switch with host ports by source route, and the switch queries its hosts by ARP. A host
//! that answers is learned and reported as usual, and the requests that wait for its address are
//! fulfilled at once. Nothing is flooded.
//!
//! Queries for an address are sent in rounds, a second apart as in RFC 4861 clause 10
//! (RETRANS_TIMER), with three rounds in a row (MAX_MULTICAST_SOLICIT there, PROBE_NUM in RFC
//! 5227). A round begins with a request, so there is no query without a waiting request. After
//! three rounds without an answer the address counts as unused for some seconds. A round takes one
//! token each from the buckets of the requesting port, of its switch, and of the fabric. So a host
//! that scans the subnet cannot make others receive more than these rates, and uses up its own rate
//! before those of others. Only valid host addresses of this fabric are searched for.
//!
//! A switch without host ports is not queried. When it gets its first host port, for example
//! because a host is moved there, it is queried at once for the addresses that requests wait for.

use super::dhcp::DhcpServer;
use super::hosts::{Host, Place};
use super::network::Network;
use super::routes::Routes;
use super::topology::SwitchIndex;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::bucket::{Bucket, Rate};
use axon_node::telemetry::ControllerCounters;
use axon_wire::message::{ArpRequest, Message, Seek, Target};
use axon_wire::{Incarnation, NodeId, PortNo, Span, Time};
use core::net::IpAddr;

/// Interval between rounds.
const ROUND: Span = Span::from_secs(1);
/// Number of rounds without an answer before an address counts as unused.
const ROUNDS: u32 = 3;
/// Time for which an address counts as unused.
const UNUSED: Span = Span::from_secs(4);
/// Time after the last request for an address until the address is dropped from the table.
const FORGOTTEN: Span = Span::from_secs(5);
/// Maximum number of addresses in the table.
const SOUGHT_MAX: usize = 4_096;
/// Maximum number of requests that wait for one address. Others are repeated by their switch.
const WAITING_MAX: usize = 8;
/// Time for which a request waits. Switches repeat their requests within this time.
const WAIT: Span = Span::from_secs(1);
/// Rate of rounds caused by the hosts at one port.
const OF_PORT: Rate = Rate { every: Span::from_millis(100), burst: 64 };
/// Rate of rounds caused by the hosts at one switch.
const OF_SWITCH: Rate = Rate { every: Span::from_millis(20), burst: 256 };
/// Rate of rounds in the whole fabric.
const OF_ALL: Rate = Rate { every: Span::from_millis(10), burst: 512 };

/// Address that is being searched for, or that was found to be unused.
#[derive(Clone, Debug, Default)]
struct Sought {
    /// Number of rounds in a row so far.
    rounds: u32,
    /// Earliest time of the next round.
    again_at: Time,
    /// Requests that wait for the address, with their arrival times.
    waiting: Vec<(Time, Incarnation, ArpRequest)>,
}

/// All addresses that are being searched for.
#[derive(Clone, Debug, Default)]
pub(super) struct Seeking {
    sought: BTreeMap<IpAddr, Sought>,
    /// Expiry of each address.
    ends: BTreeSet<(Time, IpAddr)>,
    ports: BTreeMap<Place, Bucket>,
    switches: BTreeMap<SwitchIndex, Bucket>,
    all: Bucket,
    /// Requests for addresses that were found.
    found: Vec<(Time, Incarnation, ArpRequest)>,
    /// Counts of rounds, of refused rounds, and of addresses found.
    counters: ControllerCounters,
}

/// Result of a request for an unknown address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    /// A round begins.
    Round,
    /// The address was queried a short while ago.
    Before,
    /// The switch or the fabric exceeds its rate, or the table is full.
    Over,
}

impl Seeking {
    /// Handles a request from a host at `by` for an unknown address.
    fn ask(&mut self, now: Time, by: Place, ip: IpAddr) -> Asked {
        self.age(now);
        if self.sought.get(&ip).is_some_and(|sought| now < sought.again_at) {
            return Asked::Before;
        }
        let of_port = self.ports.entry(by).or_default();
        if !of_port.has(now, OF_PORT) {
            return Asked::Over;
        }
        let of_switch = self.switches.entry(by.switch).or_default();
        let is_room = self.sought.len() < SOUGHT_MAX || self.sought.contains_key(&ip);
        if !of_switch.has(now, OF_SWITCH) || !self.all.has(now, OF_ALL) || !is_room {
            return Asked::Over;
        }
        of_port.take(now, OF_PORT);
        of_switch.take(now, OF_SWITCH);
        self.all.take(now, OF_ALL);
        let sought = self.sought.entry(ip).or_default();
        self.ends.remove(&(sought.again_at + FORGOTTEN, ip));
        sought.rounds = sought.rounds % ROUNDS + 1;
        let pause = if sought.rounds < ROUNDS { ROUND } else { ROUND + UNUSED };
        sought.again_at = now + pause;
        self.ends.insert((sought.again_at + FORGOTTEN, ip));
        Asked::Round
    }

    /// Stores a request until the address is found. A repeated request replaces the older one.
    fn wait(&mut self, now: Time, ip: IpAddr, from: Incarnation, m: ArpRequest) {
        let Some(sought) = self.sought.get_mut(&ip) else { return };
        sought.waiting.retain(|(at, by, other)| {
            now.since(*at) < WAIT && (*by, other.port, other.id) != (from, m.port, m.id)
        });
        if sought.waiting.len() < WAITING_MAX {
            sought.waiting.push((now, from, m));
        }
    }

    /// Returns addresses that requests wait for, as many as the fabric's rate allows now.
    fn wanted(&mut self, now: Time) -> Vec<IpAddr> {
        let Seeking { sought, all, .. } = self;
        let waits = |sought: &Sought| sought.waiting.iter().any(|(at, ..)| now.since(*at) < WAIT);
        let wanted = sought.iter().filter(|(_, sought)| waits(sought)).map(|(&ip, _)| ip);
        let mut may_ask = |_: &IpAddr| {
            let has = all.has(now, OF_ALL);
            if has {
                all.take(now, OF_ALL);
            }
            has
        };
        wanted.take_while(|ip| may_ask(ip)).collect()
    }

    /// Records that an address has an owner. Returns whether the address was being searched for.
    fn has_owner(&mut self, ip: IpAddr) -> bool {
        let Some(sought) = self.sought.remove(&ip) else { return false };
        self.ends.remove(&(sought.again_at + FORGOTTEN, ip));
        self.found.extend(sought.waiting);
        true
    }

    /// Takes the next request whose address was found, and skips those that their switch no longer
    /// repeats.
    fn take_found(&mut self, now: Time) -> Option<(Incarnation, ArpRequest)> {
        while let Some((at, from, m)) = self.found.pop() {
            if now.since(at) < WAIT {
                return Some((from, m));
            }
        }
        None
    }

    /// Drops addresses that were not requested recently.
    fn age(&mut self, now: Time) {
        while let Some(&(end, ip)) = self.ends.first()
            && end <= now
        {
            self.ends.pop_first();
            self.sought.remove(&ip);
        }
        // Only few buckets are not full, because the rate of the fabric limits their number.
        if self.ports.len() > SOUGHT_MAX {
            self.ports.retain(|_, bucket| !bucket.is_full(now));
        }
    }
}

/// Queries.
impl Seeking {
    /// Searches for the unknown target of a request, if a search for its address is allowed.
    pub(super) fn seek(
        &mut self,
        now: Time,
        (net, routes, dhcp): (&Network, &mut Routes, &DhcpServer),
        (from, by): (Incarnation, Place),
        m: &ArpRequest,
        out: &mut Vec<Effect>,
    ) {
        let ip = match m.target {
            Target::Ip(ip) => Some(ip),
            // The address belongs to another MAC address, or the host is known without an address.
            Target::Mac(_) => m.hint.filter(|&ip| net.hosts().by_ip(ip).is_none()),
        };
        let Some(ip) = ip.filter(|&ip| may_be_a_hosts(dhcp, ip)) else { return };
        match self.ask(now, by, ip) {
            Asked::Round => {
                self.counters.seeks += 1;
                self.ask_everywhere((net, routes), ip, (from.node, m.port), out);
            }
            Asked::Before => {}
            Asked::Over => self.counters.seeks_limited += 1,
        }
        self.wait(now, ip, from, *m);
    }

    /// Queries the hosts at all switches, except those at the requesting port.
    fn ask_everywhere(
        &self,
        (net, routes): (&Network, &mut Routes),
        ip: IpAddr,
        by: (NodeId, PortNo),
        out: &mut Vec<Effect>,
    ) {
        let edges = net.graph().switches().filter(|(index, _)| net.fabric().has_hosts(*index));
        let edges: Vec<Incarnation> = edges.map(|(_, switch)| switch.incarnation).collect();
        let by_place = net.graph().index_of(by.0).map(|switch| Place { switch, port: by.1 });
        let own = by_place.map_or(Vec::new(), |place| net.fabric().ports_of(place));
        for to in edges {
            let Some(hops) = routes.paths_mut().path_to(net.fabric(), to.node) else { continue };
            let is_here = |place: &&Place| net.graph().switch(place.switch).incarnation == to;
            let except = own.iter().find(is_here).map(|place| place.port);
            let message = Message::Seek(Seek { ip, except });
            out.push(Effect::Routed { hops, to, message });
        }
    }

    /// Queries a switch that has just got its first host port and was therefore left out before.
    pub(super) fn ask_newcomer(
        &mut self,
        now: Time,
        (net, routes): (&Network, &mut Routes),
        to: Incarnation,
        out: &mut Vec<Effect>,
    ) {
        let Some(hops) = routes.paths_mut().path_to(net.fabric(), to.node) else { return };
        for ip in self.wanted(now) {
            let message = Message::Seek(Seek { ip, except: None });
            out.push(Effect::Routed { hops: hops.clone(), to, message });
        }
    }

    /// Records that an address has an owner. The requests that wait for it can now be fulfilled
    /// ([`Seeking::next_found`]).
    pub(super) fn found(&mut self, ip: IpAddr) {
        self.counters.seeks_found += u64::from(self.has_owner(ip));
    }

    /// Takes the next request whose address was found while it waited.
    pub(super) fn next_found(
        &mut self,
        now: Time,
        net: &Network,
    ) -> Option<(Incarnation, ArpRequest)> {
        while let Some((from, m)) = self.take_found(now) {
            let source = net.hosts().by_mac(m.source_mac);
            let is_there = |host: &Host| {
                let at = |place: &Place| {
                    (net.graph().switch(place.switch).incarnation, place.port) == (from, m.port)
                };
                net.fabric().ports_of(host.place()).iter().any(at)
            };
            // The host may have moved in the meantime, and its address may now belong to another
            // host. The newer claim wins.
            if source.and_then(|source| net.hosts().get(source)).is_some_and(is_there) {
                let own = |ip: &IpAddr| net.hosts().by_ip(*ip) == source;
                return Some((from, ArpRequest { source_ip: m.source_ip.filter(own), ..m }));
            }
        }
        None
    }

    /// Returns the counts of rounds, of refused rounds, and of addresses found.
    pub(super) const fn counters(&self) -> &ControllerCounters {
        &self.counters
    }
}

/// Returns whether an address may belong to a host in this fabric. It must be a host address in the
/// subnet, or a unicast IPv6 address.
fn may_be_a_hosts(dhcp: &DhcpServer, ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => dhcp.is_host_ip(ip),
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast()),
    }
}
