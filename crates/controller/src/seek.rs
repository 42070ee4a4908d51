//! Search for unknown hosts.
//!
//! A host with a fixed address that has never sent a frame is in no table. On a bridged Ethernet
//! the broadcast of an ARP request finds it. Here the controller sends each switch with host ports
//! a message ([`Seek`]) by a source route, and the switch queries its hosts by ARP. A host that
//! answers is learned and reported as usual, and the requests that wait for its address are
//! fulfilled at once. Nothing is flooded.
//!
//! An address is queried for in rounds, a second apart as in RFC 4861 clause 10 (RETRANS_TIMER),
//! three in a row (MAX_MULTICAST_SOLICIT there, PROBE_NUM in RFC 5227). A round begins with a
//! request, so there is no query without a waiting request. After three rounds without an answer
//! the address counts as unused for some seconds. A round takes a token each of the port and the
//! switch of the request, and of the fabric. So a host that scans the subnet cannot make others
//! receive more than these rates, and uses up its own rate before those of others. Only valid host
//! addresses of this fabric are searched for.
//!
//! A switch without host ports is not queried. When it gets its first one, such as when a host is
//! moved there, it is queried at once for the addresses that requests wait for.

use super::conductor::Controller;
use super::hosts::{Host, Place};
use super::sought::Asked;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_wire::message::{ArpRequest, Message, Seek, Target};
use axon_wire::{Incarnation, NodeId, PortNo, Time};
use core::net::IpAddr;

impl Controller {
    /// Searches for the unknown target of a request, if its address may be searched for.
    pub(super) fn seek(
        &mut self,
        now: Time,
        (from, by): (Incarnation, Place),
        m: &ArpRequest,
        out: &mut Vec<Effect>,
    ) {
        let ip = match m.target {
            Target::Ip(ip) => Some(ip),
            // The address belongs to another MAC address, or to a host known without an address.
            Target::Mac(_) => m.hint.filter(|&ip| self.net.hosts().by_ip(ip).is_none()),
        };
        let Some(ip) = ip.filter(|&ip| self.may_be_a_hosts(ip)) else { return };
        match self.seeking.ask(now, by, ip) {
            Asked::Round => {
                self.counters.seeks += 1;
                self.ask_everywhere(ip, (from.node, m.port), out);
            }
            Asked::Before => {}
            Asked::Over => self.counters.seeks_limited += 1,
        }
        self.seeking.wait(now, ip, from, *m);
    }

    /// Returns whether an address may be a host's in this fabric: in the subnet, or a unicast IPv6
    /// address.
    fn may_be_a_hosts(&self, ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(ip) => self.dhcp.is_host_ip(ip),
            IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast()),
        }
    }

    /// Queries the hosts of all switches, except those at the requesting port.
    fn ask_everywhere(&mut self, ip: IpAddr, by: (NodeId, PortNo), out: &mut Vec<Effect>) {
        let edges =
            self.net.graph().switches().filter(|(index, _)| self.net.fabric().has_hosts(*index));
        let edges: Vec<Incarnation> = edges.map(|(_, switch)| switch.incarnation).collect();
        let by_place = self.net.graph().index_of(by.0).map(|switch| Place { switch, port: by.1 });
        let own = by_place.map_or(Vec::new(), |place| self.net.fabric().ports_of(place));
        for to in edges {
            let Some(hops) = self.routes.paths_mut().path_to(&self.net, to.node) else { continue };
            let is_here = |place: &&Place| self.net.graph().switch(place.switch).incarnation == to;
            let except = own.iter().find(is_here).map(|place| place.port);
            let message = Message::Seek(Seek { ip, except });
            out.push(Effect::Routed { hops, to, message });
        }
    }

    /// Queries a switch that has got its first host port and was left out before.
    pub(super) fn ask_newcomer(&mut self, now: Time, to: Incarnation, out: &mut Vec<Effect>) {
        let Some(hops) = self.routes.paths_mut().path_to(&self.net, to.node) else { return };
        for ip in self.seeking.wanted(now) {
            let message = Message::Seek(Seek { ip, except: None });
            out.push(Effect::Routed { hops: hops.clone(), to, message });
        }
    }

    /// Records that an address has an owner; [`Controller::fulfil_found`] fulfils the requests that
    /// wait for it.
    pub(super) fn found(&mut self, ip: IpAddr) {
        self.counters.seeks_found += u64::from(self.seeking.has_owner(ip));
    }

    /// Fulfils the requests that waited for addresses that were found.
    pub(super) fn fulfil_found(&mut self, now: Time, out: &mut Vec<Effect>) {
        while let Some((from, m)) = self.seeking.take_found(now) {
            let source = self.net.hosts().by_mac(m.source_mac);
            let is_there = |host: &Host| {
                let at = |place: &Place| {
                    (self.net.graph().switch(place.switch).incarnation, place.port)
                        == (from, m.port)
                };
                self.net.fabric().ports_of(host.place()).iter().any(at)
            };
            // The host may have moved meanwhile, and its address may be another's: the newer claim
            // wins.
            if source.and_then(|source| self.net.hosts().get(source)).is_some_and(is_there) {
                let own = |ip: &IpAddr| self.net.hosts().by_ip(*ip) == source;
                let m = ArpRequest { source_ip: m.source_ip.filter(own), ..m };
                self.request(now, from, m, out);
            }
        }
    }
}
