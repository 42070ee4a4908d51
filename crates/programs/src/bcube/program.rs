//! The control program of a server.

use super::bandwidth::Bandwidth;
use super::cube::{Cube, Nha};
use super::entries;
use super::header::{BcubePacket, Purpose};
use super::local::Local;
use super::query::Query;
use super::router::{Here, Router};
use crate::server::{Hello, HostPorts, Neighbours};
use crate::site::Site;
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use axon_pipeline::{Control, EntryName, Program, Received};
use axon_wire::{MacAddr, PortNo, Span, Time};

/// Minimum interval between failure reports to one source.
const REPORT_EVERY: Span = Span::from_millis(10);

/// Number of periods after which every live neighbour has announced itself.
const READY_AFTER: u64 = 3;

/// Control program of a BCube server.
pub(crate) struct Bcube {
    local: Local,
    bandwidth: Bandwidth,
    hosts: HostPorts,
    router: Router,
    /// Time of the last failure report to each source.
    reported: BTreeMap<u32, Time>,
    /// Time of the next tick; `None` before the start and after a failure.
    tick_at: Option<Time>,
    /// Number of ticks since the start.
    ticks: u64,
    failure: Option<String>,
    /// Entries that were removed by an operator and could not be restored.
    missing: BTreeSet<EntryName>,
    /// Reason for the refusal.
    refusal: Option<String>,
}

impl Bcube {
    pub(crate) fn new(site: &Site, cube: Cube) -> Bcube {
        Bcube {
            local: Local::new(site, cube),
            bandwidth: Bandwidth::of(site),
            hosts: HostPorts::new(site, entries::HOST_INTERFACES),
            router: Router::new(site.seed),
            reported: BTreeMap::new(),
            tick_at: None,
            ticks: 0,
            failure: None,
            missing: BTreeSet::new(),
            refusal: None,
        }
    }

    fn here<'a>(
        &'a mut self,
        now: Time,
        control: &'a mut dyn Control,
    ) -> (&'a mut Router, Here<'a>) {
        let Bcube { local, bandwidth, hosts, router, .. } = self;
        (router, Here { now, local, bandwidth, hosts, control })
    }

    /// Forwards, answers or consumes a query message.
    fn query(
        &mut self,
        now: Time,
        ingress: PortNo,
        packet: &BcubePacket<'_>,
        control: &mut dyn Control,
    ) {
        let Some(query) = Query::parse(packet.body) else { return };
        let is_here = packet.destination.0 == self.local.own();
        match query {
            Query::Request { id, available } => {
                let available = available.min(self.bandwidth.to_receive(ingress));
                if is_here {
                    let answer = Query::Answer { id, available };
                    return self.send_back(packet, answer, control);
                }
                let Some(nha) = packet.next_hop() else { return };
                let Some(port) = self.local.port(nha).filter(|_| self.local.is_up(nha)) else {
                    return self.report(now, packet, control);
                };
                let available = available.min(self.bandwidth.to_send(port));
                self.pass_on(packet, nha, Query::Request { id, available }, control);
            }
            Query::Answer { id, available } if is_here => {
                let (router, mut here) = self.here(now, control);
                router.answer(id, available, &mut here);
            }
            Query::Failure { server, nha } if is_here => {
                let (router, mut here) = self.here(now, control);
                router.failed(server, nha, &mut here);
            }
            Query::Answer { .. } | Query::Failure { .. } => {
                if let Some(nha) = packet.next_hop() {
                    self.pass_on(packet, nha, query, control);
                }
            }
        }
    }

    fn pass_on(&self, packet: &BcubePacket<'_>, nha: Nha, query: Query, control: &mut dyn Control) {
        let body = query.emit();
        let next = BcubePacket { ttl: packet.ttl - 1, body: &body, ..packet.clone() };
        self.local.send(nha, &next, control);
    }

    /// Sends a message back to the source of a packet.
    fn send_back(&self, packet: &BcubePacket<'_>, query: Query, control: &mut dyn Control) {
        let Some(path) = packet.way_back(self.local.cube(), self.local.own()) else { return };
        let Some(&first) = path.first() else { return };
        let answer = BcubePacket {
            source: self.local.own(),
            destination: (packet.source, 0),
            purpose: Purpose::Query,
            ttl: path.len() as u8,
            path,
            body: &query.emit(),
        };
        self.local.send(first, &answer, control);
    }

    /// Reports to its source a packet whose next hop is down.
    fn report(&mut self, now: Time, packet: &BcubePacket<'_>, control: &mut dyn Control) {
        let Some(nha) = packet.next_hop() else { return };
        if self.local.is_up(nha) {
            // The neighbour has meanwhile come back.
            let next = BcubePacket { ttl: packet.ttl - 1, ..packet.clone() };
            return self.local.send(nha, &next, control);
        }
        self.reported.retain(|_, at| now.since(*at) < REPORT_EVERY);
        if let Entry::Vacant(place) = self.reported.entry(packet.source) {
            place.insert(now);
            let failure = Query::Failure { server: self.local.own(), nha };
            self.send_back(packet, failure, control);
        }
    }

    /// Restores entries that are missing from the tables.
    fn restore(&mut self, control: &mut dyn Control) {
        let mut changes = self.local.entries(&self.hosts);
        changes.extend(self.hosts.entries());
        changes.retain(|change| self.missing.contains(&change.entry()));
        self.refusal = control.commit(&changes).err().map(|error| error.to_string());
        if self.refusal.is_none() {
            self.missing.clear();
        }
    }

    fn lost(&mut self, now: Time, control: &mut dyn Control) {
        let (router, mut here) = self.here(now, control);
        router.leave_failed(&mut here);
    }
}

impl Program for Bcube {
    fn start(&mut self, now: Time, control: &mut dyn Control) {
        let mut changes = self.local.entries(&self.hosts);
        changes.extend(self.hosts.entries());
        self.failure = control.commit(&changes).err().map(|error| error.to_string());
        self.tick_at = self.failure.is_none().then_some(now);
    }

    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        if up {
            self.local.announce_at(port, control);
        } else if self.local.port_down(port, control) {
            self.lost(now, control);
        }
    }

    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control) {
        let Received { ingress, frame } = received;
        if self.hosts.has(ingress) {
            self.hosts.answer_arp(ingress, frame, control);
            let (router, mut here) = self.here(now, control);
            return router.offer(ingress, frame, &mut here);
        }
        let Some(packet) = BcubePacket::parse(frame) else { return };
        match packet.purpose {
            Purpose::Data => self.report(now, &packet, control),
            Purpose::Query => self.query(now, ingress, &packet, control),
            Purpose::Discovery => {
                let from = MacAddr::source_of(frame);
                if let (Some(hello), Some(from)) = (Hello::parse(packet.body), from)
                    && self.local.discover(now, ingress, from, &hello, control)
                {
                    self.lost(now, control);
                }
            }
        }
    }

    /// Flows get their entries again with their next packets, and all other entries are restored at
    /// once.
    fn removed(&mut self, _: Time, entries: &[EntryName], control: &mut dyn Control) {
        self.router.forget(entries, control);
        self.missing.extend(entries);
        self.restore(control);
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        if self.tick_at.is_none_or(|at| now < at) {
            return;
        }
        self.tick_at = Some(now + Neighbours::PERIOD);
        self.ticks += 1;
        self.bandwidth.read(now, control);
        self.local.announce(control);
        if self.local.expire(now, control) {
            self.lost(now, control);
        }
        if !self.missing.is_empty() {
            self.restore(control);
        }
        let (router, mut here) = self.here(now, control);
        router.tick(&mut here);
    }

    fn deadline(&self) -> Option<Time> {
        self.tick_at
    }

    fn is_ready(&self) -> bool {
        self.ticks > READY_AFTER
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }
}
