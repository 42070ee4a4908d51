//! PortLand switch, which combines data plane, location discovery and edge agent in one node.

use super::hosts::{Host, Hosts};
use super::ldp::Ldp;
use super::message::{Level, Message, Place, Report, Requester};
use super::rules::{Neighbour, rules};
use super::waiting::Waiting;
use crate::portland::plane::{Location, PortLand, PortLandConfig};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::{
    Action, Awaited, Drop, Input, Node, NodeKind, PortEvent, PortKind, Punt, Shortcuts,
};
use axon_plane::{FrameMeta, Ports};
use axon_wire::host_frame::{self, Arp, Kind};
use axon_wire::{FrameBuf, MacAddr, PortNo, Span, Time};
use core::net::Ipv4Addr;
use smoltcp::wire::ArpOperation;

/// Delay after a change, so that several changes share one report.
const REPORT_DELAY: Span = Span::from_millis(10);
/// Maximum interval between reports that are not acknowledged, or that request a location.
const REPORT_PAUSE_MAX: Span = Span::from_secs(1);
/// Maximum number of departed hosts that are remembered.
const MOVED_MAX: usize = 1024;

/// Configuration of a switch.
#[derive(Clone, Copy, Debug)]
pub struct SwitchConfig {
    /// Configuration of ports and buffers, and the switch's MAC address.
    pub plane: PortLandConfig,
    /// Incarnation of the switch. Later incarnations are greater.
    pub incarnation: u32,
    /// Interval between location discovery messages (10 ms in the paper).
    pub interval: Span,
    /// Initial interval between retransmissions of unacknowledged messages.
    pub retry: Span,
    /// Maximum total size of frames waiting for a route, in bytes.
    pub waiting_bytes_max: usize,
}

/// Node of a PortLand switch.
pub struct PortLandNode {
    config: SwitchConfig,
    plane: PortLand,
    ldp: Ldp,
    hosts: Hosts,
    waiting: Waiting,
    /// PMACs from this switch whose hosts have moved away, with their IP address and new PMAC.
    moved: BTreeMap<MacAddr, (Ipv4Addr, MacAddr)>,
    /// Incarnation of the manager to which this switch has reported.
    manager: Option<u32>,
    /// Discovery version in the last or pending report.
    reported: u64,
    /// Time of the next report, and the interval that follows it.
    report: Option<(Time, Span)>,
    /// Number of punted frames that have been forwarded.
    resumed: u64,
    actions: Vec<Action>,
}

impl PortLandNode {
    /// Creates a switch with empty state.
    ///
    /// # Panics
    /// If it has more than 256 ports, since a PMAC cannot distinguish more.
    pub fn new(config: SwitchConfig) -> PortLandNode {
        let plane = config.plane;
        assert!(plane.ports <= 256, "a PMAC has 8 bits for the port");
        PortLandNode {
            plane: PortLand::new(plane),
            ldp: Ldp::new(plane.mac, plane.ports, config.interval),
            hosts: Hosts::new(config.retry),
            waiting: Waiting::new(config.waiting_bytes_max, config.retry),
            moved: BTreeMap::new(),
            manager: None,
            reported: 0,
            report: None,
            resumed: 0,
            actions: Vec::new(),
            config,
        }
    }

    /// Returns the ports of the switch.
    pub fn ports(&self) -> &Ports {
        self.plane.ports()
    }

    /// Returns the data plane of the switch.
    pub fn plane(&self) -> &PortLand {
        &self.plane
    }

    /// Returns the level that the switch has determined.
    pub fn level(&self) -> Level {
        self.ldp.level()
    }

    /// Returns the hosts on this switch, by AMAC.
    pub fn hosts(&self) -> impl Iterator<Item = (MacAddr, &Host)> {
        self.hosts.iter()
    }

    /// Returns the number of frames that are waiting for a route.
    pub fn waiting_frames(&self) -> u64 {
        self.waiting.frames()
    }

    /// Returns the number of punted frames that have been forwarded. The plane counts each of them
    /// a second time, as the switch's own.
    pub fn resumed_frames(&self) -> u64 {
        self.resumed
    }

    /// Forwards a punted frame.
    fn resume(&mut self, now: Time, frame: FrameBuf) {
        self.resumed += 1;
        self.plane.send_on(now, frame, &mut self.actions);
    }

    /// Processes the plane's actions until there are no more.
    fn settle(&mut self, now: Time, out: &mut Vec<Action>) {
        while !self.actions.is_empty() {
            for action in core::mem::take(&mut self.actions) {
                match action {
                    Action::Punt { ingress, frame, punt, .. } => {
                        self.arrival(now, ingress, frame, punt, out);
                    }
                    action => out.push(action),
                }
            }
        }
    }

    fn arrival(
        &mut self,
        now: Time,
        ingress: PortNo,
        frame: FrameBuf,
        punt: Punt,
        out: &mut Vec<Action>,
    ) {
        match punt {
            Punt::LinkLocal | Punt::Addressed => {
                let message = Message::parse(frame.bytes());
                let known = message.is_some_and(|(from, message)| {
                    self.message(now, ingress, from, message, punt == Punt::LinkLocal)
                });
                let reason = if known { Drop::Consumed } else { Drop::Refused };
                self.end(ingress, reason, frame, out);
            }
            Punt::Miss if self.is_new_host(ingress, frame.bytes()) => {
                self.host_frame(now, ingress, frame, out);
            }
            Punt::Miss => self.wait(now, ingress, frame, out),
            // The destination's PMAC belongs to this switch, but has no host.
            _ => self.misdirected(now, ingress, frame, out),
        }
    }

    fn end(&mut self, ingress: PortNo, reason: Drop, frame: FrameBuf, out: &mut Vec<Action>) {
        self.plane.ports_mut().count(ingress, PortEvent::Drop(reason));
        out.push(Action::Dropped { ingress, reason, frame });
    }

    /// Returns whether a frame from a host was punted on ingress, and not because it has no route.
    fn is_new_host(&self, ingress: PortNo, frame: &[u8]) -> bool {
        let source = MacAddr::source_of(frame).unwrap_or_default();
        let renamed = self.hosts.by_pmac(source).is_some();
        self.ldp.kind(ingress) == PortKind::Host && !renamed
    }

    /// Handles ARP, or the first frame from a host.
    fn host_frame(&mut self, now: Time, port: PortNo, mut frame: FrameBuf, out: &mut Vec<Action>) {
        let bytes = frame.bytes();
        let source = MacAddr::source_of(bytes).unwrap_or_default();
        let group = MacAddr::destination_of(bytes).is_some_and(MacAddr::is_multicast);
        let reason = match host_frame::classify(bytes) {
            Kind::Arp(arp) => {
                self.arp(now, port, arp);
                Drop::Consumed
            }
            Kind::BadArp => Drop::Refused,
            _ if !source.is_unicast() => Drop::Malformed,
            Kind::DhcpClient | Kind::Nd(_) | Kind::BadNd | Kind::Other => {
                self.learn(now, port, source, None);
                let pmac = self.hosts.get(source).and_then(|host| host.pmac);
                match pmac {
                    Some(pmac) if !group => {
                        frame.bytes_mut()[6..12].copy_from_slice(&pmac.0);
                        return self.resume(now, frame);
                    }
                    Some(_) => Drop::Broadcast,
                    None => Drop::NoRoute,
                }
            }
        };
        self.end(port, reason, frame, out);
    }

    fn learn(&mut self, now: Time, port: PortNo, amac: MacAddr, ip: Option<Ipv4Addr>) {
        let location = self.ldp.location();
        if let Some(pmac) = self.hosts.learn(now, location, port, amac, ip) {
            self.plane.set_host(port, amac, pmac);
        }
    }

    /// Answers ARP by proxy (paper §3.3). No request from a host is forwarded.
    fn arp(&mut self, now: Time, port: PortNo, arp: Arp) {
        if !arp.sender_mac.is_unicast() {
            return;
        }
        let ip = Some(arp.sender_ip).filter(|&ip| host_frame::is_host_ip(ip));
        self.learn(now, port, arp.sender_mac, ip);
        let asks = arp.operation == ArpOperation::Request && arp.target_ip != arp.sender_ip;
        let pmac = self.hosts.get(arp.sender_mac).and_then(|host| host.pmac);
        if let (true, Some(ip), Some(pmac)) = (asks, ip, pmac) {
            let from = Requester { ip, pmac };
            self.send_to_manager(now, &Message::ArpQuery { ip: arp.target_ip, from });
        }
    }

    fn wait(&mut self, now: Time, ingress: PortNo, frame: FrameBuf, out: &mut Vec<Action>) {
        let destination = MacAddr::destination_of(frame.bytes()).and_then(Location::of);
        let Some(location) = destination else {
            return self.end(ingress, Drop::NoRoute, frame, out);
        };
        if let Err(frame) = self.waiting.push(now, location, ingress, frame) {
            self.end(ingress, Drop::NoRoute, frame, out);
        }
    }

    /// Forwards a frame to a host that has moved to the new location, and informs the sender (paper
    /// §3.3).
    fn misdirected(
        &mut self,
        now: Time,
        ingress: PortNo,
        mut frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        let old = MacAddr::destination_of(frame.bytes()).unwrap_or_default();
        let sender = MacAddr::source_of(frame.bytes()).unwrap_or_default();
        let Some(&(ip, new)) = self.moved.get(&old) else {
            return self.end(ingress, Drop::NoRoute, frame, out);
        };
        let announcement = Arp {
            operation: ArpOperation::Request,
            sender_mac: new,
            sender_ip: ip,
            target_mac: MacAddr::default(),
            target_ip: ip,
        };
        let announcement = host_frame::emit(sender, announcement);
        self.plane.send_on(now, FrameBuf::with_headroom(0, &announcement), &mut self.actions);
        frame.bytes_mut()[..6].copy_from_slice(&new.0);
        self.resume(now, frame);
    }

    /// Handles a message. Returns whether the message was for this switch.
    fn message(
        &mut self,
        now: Time,
        port: PortNo,
        from: MacAddr,
        message: Message,
        link: bool,
    ) -> bool {
        if let Message::Ldm(ldm) = message {
            if link {
                self.ldp.receive(now, port, from, ldm);
            }
            return link;
        }
        if link || self.ldp.way().is_none_or(|way| way.manager != from) {
            return false;
        }
        match message {
            Message::ReportAck { sequence } => self.report_acknowledged(now, sequence),
            Message::Place(place) => self.place(now, place.into()),
            Message::RegisterAck { amac, pmac } => self.hosts.acknowledged(amac, pmac),
            Message::ArpAnswer { ip, pmac, to } => {
                if let Some((amac, &Host { port, ip: Some(own), .. })) = self.hosts.by_pmac(to) {
                    let frame = host_frame::reply(pmac, ip, amac, own);
                    self.send_to_host(now, port, &frame);
                }
            }
            Message::ArpBroadcast { ip, from } => self.ask_all(now, ip, from),
            Message::Routes { sequence, entries } => {
                self.send_to_manager(now, &Message::RoutesAck { sequence });
                for (place, ports) in entries {
                    self.plane.set_location_ports(place.into(), ports);
                    for (_, frame) in self.waiting.take(place.into()) {
                        self.resume(now, frame);
                    }
                }
            }
            Message::Moved { ip, old, new } => {
                if let Some(amac) = self.hosts.gone(old) {
                    self.plane.remove_host(amac);
                }
                while self.moved.len() >= MOVED_MAX {
                    self.moved.pop_first();
                }
                self.moved.insert(old, (ip, new));
            }
            _ => return false,
        }
        true
    }

    fn place(&mut self, now: Time, location: Location) {
        if self.ldp.location() == Some(location) {
            return;
        }
        self.ldp.set_location(now, location);
        self.plane.set_location(Some(location));
        for (port, amac, pmac) in self.hosts.place(now, location) {
            self.plane.set_host(port, amac, pmac);
        }
    }

    /// Sends an ARP request for an address to the hosts on all ports except the requester's.
    fn ask_all(&mut self, now: Time, ip: Ipv4Addr, from: Requester) {
        let request = Arp {
            operation: ArpOperation::Request,
            sender_mac: from.pmac,
            sender_ip: from.ip,
            target_mac: MacAddr::default(),
            target_ip: ip,
        };
        let frame = host_frame::emit(MacAddr::BROADCAST, request);
        let own = self.hosts.by_pmac(from.pmac).map(|(_, host)| host.port);
        for port in (0..self.config.plane.ports).map(PortNo) {
            let host =
                self.ldp.kind(port) == PortKind::Host && self.plane.ports().wires().is_up(port);
            if host && own != Some(port) {
                self.send_to_host(now, port, &frame);
            }
        }
    }

    fn send_to_host(&mut self, now: Time, port: PortNo, frame: &[u8]) {
        self.plane.send(now, port, frame, Some(PortKind::Host), &mut self.actions);
    }

    fn send_to_manager(&mut self, now: Time, message: &Message) {
        if let (Some(port), Some(way)) = (self.ldp.parent(), self.ldp.way()) {
            let frame = message.emit(way.manager, self.config.plane.mac);
            self.plane.send(now, port, &frame, Some(PortKind::Axon), &mut self.actions);
        }
    }
}

/// Processing of discovery results and timers.
impl PortLandNode {
    fn discover(&mut self, now: Time) {
        if self.ldp.deadline().is_some_and(|at| at <= now) {
            self.ldp.timeout(now);
        }
        if !self.ldp.take_changed() {
            return;
        }
        for port in (0..self.config.plane.ports).map(PortNo) {
            self.plane.ports_mut().set_kind(port, self.ldp.kind(port));
        }
        let way = self.ldp.way();
        let up = self.ldp.parent().zip(way.map(|way| way.manager));
        self.plane.set_tree(up, self.ldp.children());
        if way.is_some_and(|way| way.fat_tree) {
            let neighbours: Vec<Neighbour> = self.ldp.neighbours().collect();
            self.plane.set_rules(rules(self.ldp.level(), self.ldp.pod(), &neighbours));
        }
        let Some(way) = way else { return };
        if self.manager != Some(way.incarnation) {
            self.manager = Some(way.incarnation);
            self.plane.forget_location_ports();
            self.hosts.register_all(now);
            self.reported = u64::MAX;
        }
        if self.ldp.is_settled() && self.reported != self.ldp.version() {
            self.reported = self.ldp.version();
            self.report = Some((now + REPORT_DELAY, self.config.retry));
        }
    }

    /// Continues an edge switch's reports until the switch has a location.
    fn report_acknowledged(&mut self, now: Time, sequence: u32) {
        if sequence != self.reported as u32 {
            return;
        }
        let placed = self.ldp.level() != Level::Edge || self.ldp.location().is_some();
        let again = (now + REPORT_PAUSE_MAX, REPORT_PAUSE_MAX);
        self.report = if placed { None } else { Some(again) };
    }

    fn send_due(&mut self, now: Time) {
        let mac = self.config.plane.mac;
        for (port, ldm) in self.ldp.due(now) {
            let frame = Message::Ldm(ldm).emit_link(mac);
            self.plane.send(now, port, &frame, None, &mut self.actions);
        }
        if let Some((_, pause)) = self.report.filter(|(at, _)| *at <= now) {
            self.report = Some((now + pause, (pause * 2).min(REPORT_PAUSE_MAX)));
            let report = Report {
                sequence: self.reported as u32,
                incarnation: self.config.incarnation,
                level: self.ldp.level(),
                place: self.ldp.location().map(Place::from),
                links: self.ldp.links(),
            };
            self.send_to_manager(now, &Message::Report(report));
        }
        for register in self.hosts.due(now) {
            self.send_to_manager(now, &Message::Register(register));
        }
    }

    fn ask_due(&mut self, now: Time, out: &mut Vec<Action>) {
        let (ask, vain) = self.waiting.due(now);
        for location in ask {
            self.send_to_manager(now, &Message::RouteQuery(location.into()));
        }
        for (ingress, frame) in vain {
            self.end(ingress, Drop::NoRoute, frame, out);
        }
    }
}

impl Node for PortLandNode {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                let meta = FrameMeta::new(frame, port, complete_at, intact);
                self.plane.receive(now, meta, &mut self.actions);
            }
            Input::TxDone { port } => self.plane.ports_mut().tx_done(now, port, &mut self.actions),
            Input::Link { port, up } => {
                self.plane.ports_mut().link(now, port, up, &mut self.actions);
                self.ldp.link(now, port, up);
            }
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Baseline)));
            }
        }
        self.plane.ports_mut().timeout(now, &mut self.actions);
        self.settle(now, out);
        self.discover(now);
        self.send_due(now);
        self.ask_due(now, out);
        self.settle(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        let report = self.report.map(|(at, _)| at);
        let ports = self.plane.ports().deadline();
        let others = [self.ldp.deadline(), self.hosts.deadline(), self.waiting.deadline()];
        others.into_iter().chain([report, ports]).flatten().min()
    }
}

impl Shortcuts for PortLandNode {
    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.plane.ports_mut().awaited()
    }
}
