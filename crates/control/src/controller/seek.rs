//! Search for hosts that nobody knows.
//!
//! A host with a fixed address that has never sent a frame is in no table. On a bridged Ethernet
//! the broadcast of an ARP request finds it. Here the controller asks at the edges: it sends each
//! switch with host ports a message ([`Seek`]) by a source route, and the switch asks its hosts by
//! ARP. Whoever answers is learned and reported like any host, and the requests that wait for its
//! address are fulfilled at once. Nothing is flooded.
//!
//! In plain English: an address is asked for in rounds, a second apart as RFC 4861 clause 10 has it
//! (RETRANS_TIMER), three in a row (MAX_MULTICAST_SOLICIT there, PROBE_NUM in RFC 5227); a round
//! begins with a request, so nobody is asked when nobody waits. After three rounds without an
//! answer the address counts as unused for some seconds. A round takes a token each of the port,
//! of the switch where the request came from, and of the fabric. So no host that scans the subnet
//! makes others receive more than these rates, and its own rate is used up before those of others.
//! Only addresses that a host of this fabric can have are looked for.

use super::Controller;
use super::bounds::Scope;
use super::hosts::Place;
use super::topology::SwitchIndex;
use crate::bucket::{Bucket, Rate};
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::Note;
use axon_wire::message::{ArpRequest, Message, Peer, Seek, Target};
use axon_wire::{Incarnation, NodeId, PortNo, Span, Time};
use core::net::IpAddr;

/// From one round to the next.
const ROUND: Span = Span::from_secs(1);
/// Rounds without an answer before an address counts as unused.
const ROUNDS: u32 = 3;
/// For how long it does.
const UNUSED: Span = Span::from_secs(4);
/// For how long an address that nobody asks for any more is remembered.
const FORGOTTEN: Span = Span::from_secs(5);
/// Addresses that are remembered.
const SOUGHT_MAX: usize = 4_096;
/// Requests that wait for one address. All others are repeated.
const WAITING_MAX: usize = 8;
/// For how long a request waits: switches repeat theirs within this time.
const WAIT: Span = Span::from_secs(1);
/// Rounds for the hosts of one port.
const OF_PORT: Rate = Rate { every: Span::from_millis(100), burst: 64 };
/// Rounds for the hosts of one switch.
const OF_SWITCH: Rate = Rate { every: Span::from_millis(20), burst: 256 };
/// Rounds for the whole fabric.
const OF_ALL: Rate = Rate { every: Span::from_millis(10), burst: 512 };

/// An address that is being looked for, or was in vain.
#[derive(Debug, Default)]
struct Sought {
    /// Rounds in a row.
    rounds: u32,
    /// No round before.
    again_at: Time,
    /// Requests that wait for it, and when they came.
    waiting: Vec<(Time, Incarnation, ArpRequest)>,
}

/// All addresses that are being looked for.
#[derive(Debug, Default)]
pub(super) struct Seeking {
    sought: BTreeMap<IpAddr, Sought>,
    /// When each of them is forgotten.
    ends: BTreeSet<(Time, IpAddr)>,
    ports: BTreeMap<Place, Bucket>,
    switches: BTreeMap<SwitchIndex, Bucket>,
    all: Bucket,
    /// Requests for addresses that were found.
    found: Vec<(Time, Incarnation, ArpRequest)>,
}

/// What a request for an unknown address comes to.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// A round begins.
    Round,
    /// The address was asked for a short while ago.
    Before,
    /// The port is over its rate.
    PortOver,
    /// The switch or the fabric is over its rate, or too many addresses are remembered.
    Over,
}

impl Seeking {
    /// A request of a host at `by` for an address that nobody has.
    fn ask(&mut self, now: Time, by: Place, ip: IpAddr) -> Asked {
        self.age(now);
        if self.sought.get(&ip).is_some_and(|sought| now < sought.again_at) {
            return Asked::Before;
        }
        let of_port = self.ports.entry(by).or_default();
        if !of_port.has(now, OF_PORT) {
            return Asked::PortOver;
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

    /// Keeps a request until the address is found. One that is repeated replaces the older one.
    fn wait(&mut self, now: Time, ip: IpAddr, from: Incarnation, m: ArpRequest) {
        let Some(sought) = self.sought.get_mut(&ip) else { return };
        sought.waiting.retain(|(at, by, other)| {
            now.since(*at) < WAIT && (*by, other.port, other.id) != (from, m.port, m.id)
        });
        if sought.waiting.len() < WAITING_MAX {
            sought.waiting.push((now, from, m));
        }
    }

    /// An address has an owner now.
    fn has_owner(&mut self, ip: IpAddr) -> bool {
        let Some(sought) = self.sought.remove(&ip) else { return false };
        self.ends.remove(&(sought.again_at + FORGOTTEN, ip));
        self.found.extend(sought.waiting);
        true
    }

    /// Forgets what nobody has asked for of late.
    fn age(&mut self, now: Time) {
        while let Some(&(end, ip)) = self.ends.first()
            && end <= now
        {
            self.ends.pop_first();
            self.sought.remove(&ip);
        }
        // Each that is not full has taken a token of the fabric's a while ago: there are few.
        if self.ports.len() > SOUGHT_MAX {
            self.ports.retain(|_, bucket| !bucket.is_full(now));
        }
    }
}

impl Controller {
    /// Looks for the target of a request, which nobody is known to be, if its address may be
    /// looked for.
    pub(super) fn seek(
        &mut self,
        now: Time,
        (from, by): (Incarnation, Place),
        m: &ArpRequest,
        out: &mut Vec<Effect>,
    ) {
        let ip = match m.target {
            Target::Ip(ip) => Some(ip),
            // A host that has the address is at another MAC, or is known without an address.
            Target::Mac(_) => m.hint.filter(|&ip| self.hosts.by_ip(ip).is_none()),
        };
        let Some(ip) = ip.filter(|&ip| self.may_be_a_hosts(ip)) else { return };
        match self.seeking.ask(now, by, ip) {
            Asked::Round => {
                self.counters.seeks += 1;
                self.ask_everywhere(ip, (from.node, m.port), out);
            }
            Asked::Before => {}
            Asked::PortOver => {
                self.counters.seeks_limited += 1;
                if self.bounds.is_news(now, by.switch, Scope::Scan) {
                    out.push(Effect::Note(Note::Scan { node: from.node, port: m.port }));
                }
            }
            Asked::Over => self.counters.seeks_limited += 1,
        }
        self.seeking.wait(now, ip, from, *m);
    }

    /// Whether a host of this fabric can have an address: one of the subnet, or an IPv6 address of
    /// a single host.
    fn may_be_a_hosts(&self, ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(ip) => self.dhcp.is_host_ip(ip),
            IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast()),
        }
    }

    /// Asks the hosts of all switches, except those at the port where the question came from.
    fn ask_everywhere(&mut self, ip: IpAddr, by: (NodeId, PortNo), out: &mut Vec<Effect>) {
        let has_hosts = |ports: &BTreeMap<PortNo, Peer>| ports.values().any(|at| *at == Peer::Host);
        let edges = self.graph.switches().filter(|(_, switch)| has_hosts(&switch.ports));
        let edges: Vec<Incarnation> = edges.map(|(_, switch)| switch.incarnation).collect();
        for to in edges {
            let Some(hops) = self.path_to(to.node) else { continue };
            let except = Some(by.1).filter(|_| to.node == by.0);
            let message = Message::Seek(Seek { ip, except });
            out.push(Effect::Routed { hops, to, message });
        }
    }

    /// An address has an owner now; the requests that wait for it are fulfilled by
    /// [`Controller::fulfil_found`].
    pub(super) fn found(&mut self, ip: IpAddr) {
        self.counters.seeks_found += u64::from(self.seeking.has_owner(ip));
    }

    /// Fulfils the requests that have waited for addresses that were found.
    pub(super) fn fulfil_found(&mut self, now: Time, out: &mut Vec<Effect>) {
        while let Some((at, from, m)) = self.seeking.found.pop() {
            if now.since(at) < WAIT {
                self.request(now, from, m, out);
            }
        }
    }
}
