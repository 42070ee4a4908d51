//! The edge: how hosts and the fabric meet at a switch (paper 001 §4.2.2 and §4.2.3).
//!
//! The data plane hands over every host frame without a valid route. The edge learns from it
//! who is where, and then:
//!
//! - ARP, broadcast or unicast, is never passed on. For an existing flow the answer is known;
//!   otherwise [Axon-ARP](setup) asks the controller, whose request reaches the
//!   [target switch](target), which asks its host and answers. Four phases, and each switch
//!   reserves memory before it asks.
//! - DHCP goes to the controller.
//! - A unicast frame waits while a route for its MAC is sought, or takes a route that only
//!   software has.
//! - Other broadcast and multicast ends here.
//!
//! Local hosts with an address are probed; one that is silent too long takes its flows along.
//! Everything that a host can make grow is bounded. Nothing here depends on the order of
//! messages: see [`flows`].

mod agenda;
mod flows;
mod hosts;
mod packet;
mod setup;
mod target;
mod waiting;

#[cfg(test)]
mod testing;

pub use flows::Flow;
pub use hosts::Host;

use crate::config::{ServerIdentity, SwitchConfig};
use crate::effect::Effect;
use agenda::Agenda;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_plane::{Drop, PortKind, RouteTables};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::message::{ArpReply, ArpTarget, HostFrame, Item, Message, Stamp, Target};
use axon_wire::{Hops, Life, MacAddr, NodeId, PortNo, Span, Time};
use core::net::{IpAddr, Ipv4Addr};
use flows::{Flows, Verdict};
use hosts::Hosts;
use packet::{Arp, Kind};
use setup::{Asker, Setups};
use smoltcp::wire::ArpOperation;
use waiting::Waiting;

/// The shortest interval that the edge works with, whatever it is configured to.
const INTERVAL_MIN: Span = Span::from_millis(1);

/// The edge of one switch. What it wants done it appends to `out`.
#[derive(Debug)]
pub struct Edge {
    node: NodeId,
    mac: MacAddr,
    server: ServerIdentity,
    retry: Span,
    arp_wait: Span,
    host_probe: Span,
    host_probes_max: u32,
    frame_bytes_max: usize,
    waiting_bytes_max: usize,
    /// Whether each port has carrier and is for hosts.
    host_ports: Vec<bool>,
    /// The controller whose decisions hold, even while there is no way to it.
    controller: Option<Life>,
    reachable: bool,
    hosts: Hosts,
    flows: Flows,
    setups: Setups,
    askings: BTreeMap<target::Key, target::Asking>,
    waiting: Waiting,
    agenda: Agenda<Timer>,
    counters: EdgeCounters,
}

/// What an edge has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeCounters {
    /// Frames of hosts that were not learned: their port has all the hosts it may have, or
    /// they appear on two ports at once.
    pub hosts_refused: u64,
    /// Hosts that moved from one local port to another.
    pub hosts_moved: u64,
    /// Hosts that stopped answering probes.
    pub hosts_lost: u64,
    /// ARP requests answered from an existing flow.
    pub arp_cached: u64,
    /// Routes that the controller was asked for.
    pub setups_begun: u64,
    /// Of these, how many came.
    pub setups_done: u64,
    /// Of these, how many did not come in time.
    pub setups_failed: u64,
    /// Routes that were not asked for: too many under way, or too soon after a failure.
    pub setups_refused: u64,
    /// Frames that the control plane forwarded by a route of its own.
    pub slow_path: u64,
    /// Control messages that came too late or name a host or port that is not here.
    pub messages_ignored: u64,
}

/// What comes with every call: the time, the route memories, and the list of wishes.
struct Cx<'a> {
    now: Time,
    tables: &'a mut RouteTables,
    out: &'a mut Vec<Effect>,
}

/// What may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Host(MacAddr),
    Setup(PortNo, Target),
    Failed(PortNo, Target),
    Asking(PortNo, MacAddr, MacAddr),
}

impl Edge {
    /// The edge of a switch whose ports have no carrier yet and which knows no controller.
    ///
    /// Intervals below 1 ms count as 1 ms.
    pub fn new(config: &SwitchConfig) -> Edge {
        let node = &config.node;
        Edge {
            node: node.life.node,
            mac: node.mac,
            server: node.server,
            retry: node.timers.retry.max(INTERVAL_MIN),
            arp_wait: node.timers.arp_wait.max(INTERVAL_MIN),
            host_probe: node.timers.host_probe.max(INTERVAL_MIN),
            host_probes_max: node.timers.host_probes_max,
            frame_bytes_max: node.plane.frame_bytes_max,
            waiting_bytes_max: config.waiting_bytes_max,
            host_ports: alloc::vec![false; usize::from(node.plane.ports)],
            controller: None,
            reachable: false,
            hosts: Hosts::new(config.hosts_per_port_max),
            flows: Flows::new(node.plane.routes_per_port_max),
            setups: Setups::new(),
            askings: BTreeMap::new(),
            waiting: Waiting::new(config.waiting_bytes_max),
            agenda: Agenda::new(),
            counters: EdgeCounters::default(),
        }
    }

    /// A frame that a host sent and that had no route, without Axon header.
    ///
    /// A frame that ends here for a reason comes back as [`Effect::Drop`], now or later; one
    /// that goes on, as [`Effect::Forward`]; one that was served (ARP, DHCP) does not come back.
    pub fn host_frame(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &[u8],
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
        let cx = &mut Cx { now, tables, out };
        if let Err(reason) = self.serve(cx, port, frame) {
            out.push(Effect::Drop {
                ingress: port,
                reason,
                frame: frame.to_vec(),
            });
        }
    }

    fn serve(&mut self, cx: &mut Cx, port: PortNo, frame: &[u8]) -> Result<(), Drop> {
        let header = (MacAddr::destination_of(frame), MacAddr::source_of(frame));
        let (Some(destination), Some(source)) = header else {
            return Err(Drop::Malformed);
        };
        if frame.len() < ETHERNET_BYTES || !source.is_unicast() {
            return Err(Drop::Malformed);
        }
        if frame.len() > self.frame_bytes_max {
            return Err(Drop::Oversized);
        }
        let from_host = self.is_host_port(port) && self.is_host_mac(source);
        if !from_host || !self.learn(cx, port, source) {
            return Err(Drop::Refused);
        }
        let to_us = destination == MacAddr::BROADCAST || destination == self.server.mac;
        match packet::classify(frame) {
            Kind::Arp(arp) => self.arp(cx, port, source, arp),
            Kind::BadArp => Err(Drop::Malformed),
            Kind::DhcpClient if to_us => {
                let frame = frame.to_vec();
                let relay = Message::DhcpRelay(HostFrame { port, frame });
                cx.out.push(Effect::ToController(relay));
                Ok(())
            }
            _ if destination.is_multicast() => Err(Drop::Broadcast),
            _ if !self.is_host_mac(destination) => Err(Drop::Refused),
            _ => self.unicast(cx, port, source, destination, frame),
        }
    }

    /// An ARP packet from a host. All of them end here, unicast ones too: thesis §4.1.1 found
    /// that hosts refresh their caches by unicast.
    fn arp(&mut self, cx: &mut Cx, port: PortNo, source: MacAddr, arp: Arp) -> Result<(), Drop> {
        let probe = arp.sender_ip.is_unspecified();
        let sane = arp.sender_mac == source
            && (probe || packet::is_host_ip(arp.sender_ip))
            && arp.sender_ip != self.server.ip;
        if !sane {
            return Err(Drop::Refused);
        }
        if !probe {
            self.learn_ip(cx.now, source, arp.sender_ip, cx.out);
        }
        let asker = Asker {
            mac: source,
            ip: arp.sender_ip,
        };
        match arp.operation {
            ArpOperation::Reply => self.target_answered(cx, port, source, arp.sender_ip),
            ArpOperation::Request if arp.sender_ip == arp.target_ip => {}
            ArpOperation::Request if arp.target_ip == self.server.ip => {
                let frame = packet::reply(self.server.mac, self.server.ip, source, asker.ip);
                cx.out.push(Effect::Host { port, frame });
            }
            ArpOperation::Request if packet::is_host_ip(arp.target_ip) => {
                self.resolve(cx, port, asker, arp.target_ip);
            }
            _ => return Err(Drop::Refused),
        }
        Ok(())
    }

    /// A unicast frame that missed: by the software route if there is one; else it waits
    /// while its route is sought. The frame that finds no room to wait is dropped.
    fn unicast(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        source: MacAddr,
        destination: MacAddr,
        frame: &[u8],
    ) -> Result<(), Drop> {
        if let Some(flow) = self.flows.get(port, destination) {
            self.counters.slow_path += 1;
            let (hops, frame) = (flow.hops.clone(), frame.to_vec());
            cx.out.push(Effect::Forward {
                ingress: port,
                hops,
                frame,
            });
            return Ok(());
        }
        if self.hosts.is_on(destination, port) {
            return Err(Drop::Refused);
        }
        let source_ip = self.hosts.get(source).and_then(|host| host.ip);
        if !self.begin(cx, (port, Target::Mac(destination)), source, source_ip) {
            return Err(Drop::NoRoute);
        }
        let host_ports = self.host_ports.iter().filter(|&&host| host).count();
        let share = self.waiting_bytes_max / host_ports.max(1);
        match self.waiting.push(port, destination, frame, share) {
            true => Ok(()),
            false => Err(Drop::NoRoute),
        }
    }

    /// Phase II of Axon-ARP: the controller looks for a host of this switch.
    pub fn arp_target(
        &mut self,
        now: Time,
        m: ArpTarget,
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
        self.phase_two(&mut Cx { now, tables, out }, m);
    }

    /// Phase IV of Axon-ARP: the target switch answers.
    pub fn arp_reply(
        &mut self,
        now: Time,
        m: ArpReply,
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
        self.phase_four(&mut Cx { now, tables, out }, &m);
    }

    /// A command of the controller from its reliable stream. Items that only a switch sends
    /// are counted and ignored.
    pub fn item(&mut self, now: Time, item: Item, tables: &mut RouteTables, out: &mut Vec<Effect>) {
        let cx = &mut Cx { now, tables, out };
        match item {
            Item::SetRoute {
                port,
                destination,
                stamp,
                hops,
            } if self.is_current(stamp) => {
                match self.set_route(cx, (port, destination), stamp, &hops, None) {
                    Verdict::Removed | Verdict::Unusable => self.counters.messages_ignored += 1,
                    _ => self.route_ready(cx, port, destination, &hops),
                }
                self.flows.promote(cx, port);
            }
            Item::RemoveRoute {
                port,
                destination,
                stamp,
            } if self.is_current(stamp) => {
                self.flows.remove(cx, (port, destination), Some(stamp));
                self.flows.promote(cx, port);
            }
            _ => self.counters.messages_ignored += 1,
        }
    }

    /// The controller sends a frame to a host: a DHCP reply. An acknowledgement teaches the
    /// host's address.
    pub fn host_frame_out(&mut self, now: Time, m: HostFrame, out: &mut Vec<Effect>) {
        let HostFrame { port, frame } = m;
        let sane = (ETHERNET_BYTES..=self.frame_bytes_max).contains(&frame.len());
        if !sane || !self.is_host_port(port) {
            self.counters.messages_ignored += 1;
            return;
        }
        if let Some((mac, ip)) = packet::dhcp_ack(&frame)
            && self.hosts.is_on(mac, port)
        {
            self.learn_ip(now, mac, ip, out);
        }
        out.push(Effect::Host { port, frame });
    }

    /// A port became a host port, an Axon port, or lost its carrier (`None`). Where hosts were
    /// and are no more, they and their flows are gone.
    pub fn port_changed(
        &mut self,
        now: Time,
        port: PortNo,
        kind: Option<PortKind>,
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
        let cx = &mut Cx { now, tables, out };
        let Some(host_port) = self.host_ports.get_mut(port.index()) else {
            return;
        };
        *host_port = kind == Some(PortKind::Host);
        if *host_port {
            return;
        }
        let macs: Vec<_> = self.hosts.on_port(port).collect();
        for mac in macs {
            self.forget_host(cx, mac);
        }
        cx.tables.clear(port);
    }

    /// The controller became known, changed, or cannot be reached (`None`).
    ///
    /// While it cannot be reached everything stands. When the same life is back, it is told
    /// what has changed. A new life knows nothing of the old one's decisions: all flows and
    /// routes are forgotten, and all hosts reported. In both cases open requests are repeated
    /// at once.
    pub fn controller_changed(
        &mut self,
        now: Time,
        controller: Option<Life>,
        tables: &mut RouteTables,
        out: &mut Vec<Effect>,
    ) {
        let cx = &mut Cx { now, tables, out };
        let was_reachable = core::mem::replace(&mut self.reachable, controller.is_some());
        let Some(life) = controller else { return };
        let new_life = self.controller.replace(life) != Some(life);
        if !new_life && was_reachable {
            return;
        }
        if new_life {
            self.flows.clear(cx);
            self.stop_all_asking(cx);
            for port in 0..self.host_ports.len() {
                cx.tables.clear(PortNo(port as u16));
            }
        }
        self.tell_all(cx.out, new_life);
        self.ask_again(cx, new_life);
    }

    /// Does what is due. Early or repeated calls are harmless.
    pub fn timeout(&mut self, now: Time, tables: &mut RouteTables, out: &mut Vec<Effect>) {
        let cx = &mut Cx { now, tables, out };
        self.flows.expire(now);
        let due: Vec<_> = core::iter::from_fn(|| self.agenda.pop_due(now)).collect();
        for timer in due {
            match timer {
                Timer::Host(mac) => self.probe_host(cx, mac),
                Timer::Setup(port, target) => self.setup_due(cx, (port, target)),
                Timer::Failed(port, target) => self.forget_failure((port, target)),
                Timer::Asking(port, target, source) => {
                    self.asking_due(cx, (port, target, source));
                }
            }
        }
    }

    /// When to call [`Edge::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        [self.agenda.next(), self.flows.next_expiry()]
            .into_iter()
            .flatten()
            .min()
    }

    /// All local hosts, in the order of their MACs.
    pub fn hosts(&self) -> impl Iterator<Item = (MacAddr, &Host)> {
        self.hosts.all()
    }

    /// All flows of local hosts: ingress port, destination, route.
    pub fn flows(&self) -> impl Iterator<Item = (PortNo, MacAddr, &Flow)> {
        self.flows.all()
    }

    /// Routes that the controller has been asked for and that have not come yet.
    pub fn setups(&self) -> usize {
        self.setups.count()
    }

    /// Bytes of frames that wait for routes, with 64 bytes of overhead for each frame.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.bytes()
    }

    /// What this edge has done so far.
    pub fn counters(&self) -> EdgeCounters {
        self.counters
    }

    fn is_host_port(&self, port: PortNo) -> bool {
        self.host_ports.get(port.index()).copied().unwrap_or(false)
    }

    /// Whether a host can have this MAC: it is no group's, nor one of the fabric's own.
    fn is_host_mac(&self, mac: MacAddr) -> bool {
        mac.is_unicast() && mac != self.server.mac && mac != self.mac
    }

    /// Whether this was decided by the controller that is in charge now.
    fn is_current(&self, stamp: Stamp) -> bool {
        self.controller
            .is_some_and(|life| life.incarnation == stamp.epoch)
    }

    /// Takes a route. A port without hosts has none, and no route leads to the control plane.
    fn set_route(
        &mut self,
        cx: &mut Cx,
        key: (PortNo, MacAddr),
        stamp: Stamp,
        hops: &Hops,
        ip: Option<Ipv4Addr>,
    ) -> Verdict {
        if self.hosts.count_on(key.0) == 0 || !self.is_host_mac(key.1) {
            if self.is_host_port(key.0) {
                self.flows.remove(cx, key, Some(stamp));
            }
            return Verdict::Unusable;
        }
        self.flows.set(cx, key, stamp, hops, ip)
    }
}

/// The IPv4 address, where it is one.
fn ipv4(ip: Option<IpAddr>) -> Option<Ipv4Addr> {
    match ip? {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}
