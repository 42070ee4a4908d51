//! A switch's edge with hosts, for the tests of this folder.

use super::queries::QUERIES_PER_PORT_MAX;
use super::route_requests::{FAILURES_MAX, SETUPS_PER_PORT_MAX};
pub(super) use super::test_device::{PORTS, TestDevice, udp_frame, waits_by};
use super::*;
use crate::config::EdgeConfig;
use crate::config::{ByteLimit, GroupConfig};
use crate::effect::Effect;
use crate::waiting::Waiting;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_link::config::{NodeConfig, ServerIdentity, Timers};
use axon_node::telemetry::EdgeDebts;
use axon_node::{Drop, PortKind, PortView, RouteKey, Snapshot};
use axon_wire::host_frame::{self, Arp, Kind};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::message::{ArpReply, ArpTarget, Grant, HostFrame, Item, Message, Stamp, Target};
use axon_wire::{FrameBuf, Hops, Incarnation, MacAddr, NodeId, PortNo, Route, Span, Time};
use core::net::Ipv4Addr;

pub(super) const INCARNATION: Incarnation = Incarnation { node: NodeId(1), number: 7 };
pub(super) const CONTROLLER: Incarnation = Incarnation { node: NodeId(99), number: 5 };
pub(super) const OTHER: Incarnation = Incarnation { node: NodeId(2), number: 3 };
pub(super) const SERVER: ServerIdentity =
    ServerIdentity { mac: MacAddr([2, 0xff, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 254) };

pub(super) fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

pub(super) fn ip(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

pub(super) fn stamp(number: u64) -> Stamp {
    Stamp { epoch: CONTROLLER.number, number }
}

/// Builds a broadcast ARP request from one host for another's address.
pub(super) fn arp_request(from: u8, wanted: u8) -> Vec<u8> {
    let mut frame = host_frame::request(mac(from), ip(from), MacAddr::BROADCAST, ip(wanted));
    frame[32..38].fill(0);
    frame
}

/// Builds a DHCP message as an Ethernet frame: broadcast by IP, with checksums by the wire library.
pub(super) fn dhcp_frame(
    to: MacAddr,
    from: MacAddr,
    (source, destination): (u16, u16),
    payload: &[u8],
) -> Vec<u8> {
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv4Repr, UdpPacket, UdpRepr};
    let (src_addr, dst_addr) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
    let udp = UdpRepr { src_port: source, dst_port: destination };
    let udp_bytes = udp.header_len() + payload.len();
    let next_header = IpProtocol::Udp;
    let ip = Ipv4Repr { src_addr, dst_addr, next_header, payload_len: udp_bytes, hop_limit: 64 };
    let mut frame = alloc::vec![0; ETHERNET_BYTES + ip.buffer_len() + udp_bytes];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let checksums = ChecksumCapabilities::default();
    let mut packet = Ipv4Packet::new_unchecked(&mut frame[ETHERNET_BYTES..]);
    ip.emit(&mut packet, &checksums);
    udp.emit(
        &mut UdpPacket::new_unchecked(packet.payload_mut()),
        &src_addr.into(),
        &dst_addr.into(),
        payload.len(),
        |bytes| bytes.copy_from_slice(payload),
        &checksums,
    );
    frame
}

/// The switch under test. Host `n` has MAC ..:n and address 10.0.0.n.
pub(super) struct Bench {
    pub(super) edge: Edges,
    pub(super) tables: TestDevice,
    pub(super) now: Time,
    waiting: Waiting,
    /// Forwarded frames of hosts with their routes, and dropped ones with their reasons.
    pub(super) sent: Vec<(PortNo, Route, Vec<u8>)>,
    pub(super) dropped: Vec<(PortNo, Drop, Vec<u8>)>,
    limits: (usize, usize, usize),
}

impl Bench {
    /// Creates a switch with a controller, host ports up, and no host yet.
    pub(super) fn new() -> Bench {
        Bench::with(8, 1000, 4)
    }

    /// Creates a switch with these limits: routes per port, waiting bytes, hosts per port.
    pub(super) fn with(routes: usize, waiting: usize, hosts: usize) -> Bench {
        Bench::on(TestDevice::new(routes), Bench::config(waiting, hosts))
    }

    pub(super) fn config(waiting: usize, hosts: usize) -> EdgeConfig {
        EdgeConfig {
            node: NodeConfig {
                incarnation: INCARNATION,
                mac: MacAddr([2, 0xee, 0, 0, 0, 1]),
                keys: [0; 32].into(),
                seed: 1,
                timers: Timers::default(),
                server: SERVER,
            },
            waiting_bytes_max: waiting,
            hosts_per_port_max: hosts,
            host_control: ByteLimit::default(),
            groups: GroupConfig::default(),
            ports: Vec::new(),
            services: Default::default(),
            vlans: Vec::new(),
        }
    }

    /// Creates a switch with this many table places and route memory indexes per port.
    pub(super) fn masquerading(routes: usize, indexes: usize) -> Bench {
        let mut tables = TestDevice::new(routes);
        tables.masqueraded_per_port_max = indexes;
        Bench::on(tables, Bench::config(1000, 4))
    }

    pub(super) fn on(tables: TestDevice, config: EdgeConfig) -> Bench {
        let (waiting, hosts) = (config.waiting_bytes_max, config.hosts_per_port_max);
        let routes = tables.capabilities().routes_per_port_max;
        let mut bench = Bench {
            edge: Edges::new(&config, &tables.capabilities()),
            tables,
            now: Time::from_nanos(1_000_000_000),
            waiting: Waiting::new(waiting),
            sent: Vec::new(),
            dropped: Vec::new(),
            limits: (routes, waiting, hosts),
        };
        for port in 0..PORTS {
            bench.port(port, Some(if port == 3 { PortKind::Axon } else { PortKind::Host }));
        }
        bench.controller(Some(CONTROLLER));
        bench
    }

    /// Calls the edge and carries out its requests to its node; returns the other effects.
    pub(super) fn call(
        &mut self,
        call: impl FnOnce(&mut Edges, Time, &TestDevice, &mut Vec<Effect>),
    ) -> Vec<Effect> {
        let mut out = Vec::new();
        call(&mut self.edge, self.now, &self.tables, &mut out);
        let mut left = Vec::new();
        let mut ahead: VecDeque<Effect> = out.into();
        while let Some(effect) = ahead.pop_front() {
            match effect {
                Effect::Route { ticket, change } => {
                    if let Some(late) = &mut self.tables.late {
                        late.push((ticket, change));
                        continue;
                    }
                    let answer = self.tables.change(ticket, &change);
                    let mut more = Vec::new();
                    self.edge.route_changed(self.now, answer, &self.tables, &mut more);
                    more.into_iter().rev().for_each(|effect| ahead.push_front(effect));
                }
                Effect::Release { ingress, key, route } => {
                    for frame in self.waiting.take(ingress, key) {
                        self.sent.push((ingress, route.clone(), frame.bytes().to_vec()));
                    }
                }
                Effect::Abandon { ingress, key } => {
                    for frame in self.waiting.take(ingress, key) {
                        self.dropped.push((ingress, Drop::NoRoute, frame.bytes().to_vec()));
                    }
                }
                Effect::Spread { ingress, key } => {
                    for frame in self.waiting.take(ingress, key) {
                        let mut more = Vec::new();
                        let mut call = self.edge.untagged(self.now, &self.tables, &mut more);
                        let fate = call.waited_for_list(ingress, frame.bytes());
                        if let Ok(Outcome::Copies(fates)) = fate {
                            self.copies(ingress.0, fates, frame.bytes(), Vec::new());
                        }
                        more.into_iter().rev().for_each(|effect| ahead.push_front(effect));
                    }
                }
                effect => left.push(effect),
            }
        }
        self.check_bounds();
        left
    }

    /// Makes the changes held by the device, in order, and answers. Changes that follow from the
    /// answers are held again.
    pub(super) fn answer_late(&mut self) {
        let held = self.tables.late.as_mut().map(core::mem::take).unwrap_or_default();
        for (ticket, change) in held {
            let answer = self.tables.change(ticket, &change);
            self.call(|edge, now, tables, out| edge.route_changed(now, answer, tables, out));
        }
    }

    pub(super) fn port(&mut self, port: u16, kind: Option<PortKind>) -> Vec<Effect> {
        if let Some(of_port) = self.tables.kinds.get_mut(usize::from(port)) {
            *of_port = kind.unwrap_or_default();
        }
        self.call(|edge, now, tables, out| {
            edge.untagged(now, tables, out).port_changed(PortNo(port))
        })
    }

    pub(super) fn link(&mut self, port: u16, up: bool) -> Vec<Effect> {
        let link = (PortNo(port), up);
        self.call(|edge, now, tables, out| edge.untagged(now, tables, out).link(link))
    }

    pub(super) fn controller(&mut self, incarnation: Option<Incarnation>) -> Vec<Effect> {
        self.call(|edge, now, tables, out| edge.controller_changed(now, incarnation, tables, out))
    }

    pub(super) fn frame(&mut self, port: u16, frame: &[u8]) -> Vec<Effect> {
        let (ingress, host_ports) = (PortNo(port), PORTS - 1);
        let mut fate = Ok(Outcome::Served);
        let effects = self.call(|edge, now, tables, out| {
            fate = edge.untagged(now, tables, out).host_frame(ingress, frame);
        });
        let reason = match fate {
            Ok(Outcome::Served) => return effects,
            Ok(Outcome::Forward(route)) => {
                self.sent.push((ingress, route, frame.to_vec()));
                return effects;
            }
            Ok(Outcome::Readdress(route, to)) => {
                let frame = [&to.0, &frame[6..]].concat();
                self.sent.push((ingress, route, frame));
                return effects;
            }
            Ok(Outcome::Copies(fates)) => return self.copies(port, fates, frame, effects),
            Ok(Outcome::Wait(to)) => {
                let (key, frame) = (waits_by(to, frame), FrameBuf::new(frame));
                match self.waiting.push(ingress, key, frame, host_ports.into()) {
                    Ok(()) => return effects,
                    Err(_) => Drop::NoRoute,
                }
            }
            Err(reason) => reason,
        };
        self.dropped.push((ingress, reason, frame.to_vec()));
        effects
    }

    /// Handles each copy according to its fate.
    fn copies(
        &mut self,
        port: u16,
        fates: Vec<Outcome>,
        frame: &[u8],
        effects: Vec<Effect>,
    ) -> Vec<Effect> {
        for fate in fates {
            match fate {
                Outcome::Forward(route) => self.sent.push((PortNo(port), route, frame.to_vec())),
                Outcome::Wait(to) => {
                    let ports = usize::from(PORTS - 1);
                    let (key, frame) = (waits_by(to, frame), FrameBuf::new(frame));
                    self.waiting.push(PortNo(port), key, frame, ports).unwrap();
                }
                fate => panic!("{fate:?}"),
            }
        }
        effects
    }

    /// Returns the bytes of frames queued for routes, with their overhead.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting.bytes()
    }

    /// Returns whether no route is installed and no place taken.
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty() && (0..PORTS).all(|port| self.places(port) == 0)
    }

    /// Returns the places taken on a port, for current and pending routes.
    pub(super) fn places(&self, port: u16) -> usize {
        self.edge.tables().taken(PortNo(port))
    }

    /// Restarts the device and resynchronises it; it refuses the routes to `refused`.
    pub(super) fn lose_routes(&mut self, refused: &[MacAddr]) {
        self.tables.routes.clear();
        for ((port, key), _, route) in self.edge.wanted_routes() {
            if !refused.contains(&key.destination) {
                self.tables.routes.insert((port, key), route.clone());
            }
        }
        let mut has = Snapshot::default();
        has.ports.resize_with(usize::from(PORTS), Default::default);
        for ((port, key), route) in &self.tables.routes {
            has.ports[port.index()].routes.push((*key, route.clone()));
        }
        self.call(|edge, now, tables, out| edge.resynchronised(now, &has, tables, out));
    }

    /// Returns the drop reason of the last frame dropped since the previous call.
    pub(super) fn last_drop(&mut self) -> Option<Drop> {
        self.dropped.drain(..).next_back().map(|(_, reason, _)| reason)
    }

    pub(super) fn target(&mut self, m: ArpTarget) -> Vec<Effect> {
        self.call(|edge, now, tables, out| edge.untagged(now, tables, out).arp_target(m))
    }

    pub(super) fn reply(&mut self, m: ArpReply) -> Vec<Effect> {
        self.call(|edge, now, tables, out| edge.untagged(now, tables, out).arp_reply(m))
    }

    pub(super) fn remove_idle(&mut self, idle: &[(PortNo, RouteKey)]) -> Vec<Effect> {
        self.call(|edge, now, tables, out| edge.untagged(now, tables, out).remove_idle(idle))
    }

    pub(super) fn item(&mut self, item: Item) -> Vec<Effect> {
        self.call(|edge, now, tables, out| edge.untagged(now, tables, out).item(item))
    }

    pub(super) fn send_to_host(&mut self, port: u16, frame: Vec<u8>) -> Vec<Effect> {
        let m = HostFrame { port: PortNo(port), frame };
        self.call(|edge, now, tables, out| edge.untagged(now, tables, out).host_frame_out(m))
    }

    pub(super) fn set_route(&mut self, port: u16, to: u8, number: u64, hop: u16) -> Vec<Effect> {
        let (port, destination) = (PortNo(port), mac(to));
        let route = Route::from([hop]);
        let (source, stamp) = (None, stamp(number));
        self.item(Item::SetRoute { port, destination, source, stamp, route })
    }

    pub(super) fn remove_route(&mut self, port: u16, to: u8, number: u64) -> Vec<Effect> {
        let (port, destination) = (PortNo(port), mac(to));
        self.item(Item::RemoveRoute { port, destination, source: None, stamp: stamp(number) })
    }

    /// Host `n` appears on `port` and announces its address.
    pub(super) fn host(&mut self, port: u16, n: u8) -> Vec<Effect> {
        self.frame(port, &arp_request(n, n))
    }

    /// Advances time, handling each timer when it is due.
    pub(super) fn pass(&mut self, span: Span) -> Vec<Effect> {
        let end = self.now + span;
        let mut all = Vec::new();
        while let Some(at) = self.edge.deadline().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            all.extend(self.call(|edge, now, tables, out| edge.timeout(now, tables, out)));
        }
        self.now = end;
        all
    }

    /// Returns the route in the port's table.
    pub(super) fn placed(&self, port: u16, to: u8) -> Option<Route> {
        self.tables.route((PortNo(port), mac(to).into())).cloned()
    }

    /// Checks that all state is within its bounds, and that every reserved place has an owner.
    pub(super) fn check_bounds(&self) {
        let (routes, waiting, hosts) = self.limits;
        let (edge, parts, of) =
            (&self.edge, self.edge.plain().parts(), self.edge.plain().parts().routes());
        let (setups, (queries, _)) = (of.setups(), of.pending());
        assert!(self.waiting.bytes() <= waiting);
        for (port, RouteKey { destination: mac, source, .. }) in self.waiting.keys() {
            let list = parts.groups().senders().count_on(port) > 0;
            let is_open = |source| setups.contains((port, Target::Mac(mac), source));
            let waits = source.is_some_and(is_open) || mac.is_multicast() && list;
            assert!(waits, "a frame waits for nothing");
        }
        assert!(of.removed() <= 16_384 && setups.failures() <= FAILURES_MAX);
        for port in (0..PORTS).map(PortNo) {
            assert!(edge.tables().taken(port) <= routes);
            let hosts = if parts.hosts().is_uplink(port) { 1_000 } else { hosts };
            assert!(parts.hosts().count_on(port) <= hosts);
            assert!(setups.count_on(port) <= SETUPS_PER_PORT_MAX);
            assert!(queries.count_on(port) <= QUERIES_PER_PORT_MAX);
            if self.tables.late.is_none() && edge.debts() == EdgeDebts::default() {
                self.check_places(port);
            }
        }
        let hosts_due = parts.hosts().all().filter(|(_, host)| !host.ips.is_empty()).count();
        let recalls = parts.learning().recalls();
        let recalled = recalls.keys().filter(|key| self.tables.is_host(key.0)).count();
        let asked = (0..PORTS).map(|on| queries.count_on(PortNo(on))).sum::<usize>() + recalled;
        let refused = (0..PORTS).filter(|&on| edge.tables().is_paused(PortNo(on))).count();
        let new_ports = parts.learning().search().asked();
        let groups = parts.groups().timers();
        let waits = setups.count() + setups.failures() + asked;
        let advertised = parts.services().advertising.count();
        let due = waits + hosts_due + refused + new_ports + groups + advertised;
        assert_eq!(edge.plain().timers(), due, "each thing is due once");
    }

    fn check_places(&self, port: PortNo) {
        let (edge, of) = (&self.edge, self.edge.plain().parts().routes());
        let (queries, inherited) = of.pending();
        let of_port = || of.installer().flows().all().filter(|((on, _), _)| *on == port);
        let placed = of_port().filter(|(_, flow)| flow.placement == Placement::Installed).count();
        assert_eq!(of_port().filter(|(_, flow)| flow.is_placed()).count(), placed, "all answered");
        let (found, found_by_index) = inherited.found_on(port);
        let by_index = self.tables.memory.keys().filter(|key| key.0 == port).count();
        assert_eq!(self.tables.count(port) + by_index, placed + found);
        let by_index = by_index - found_by_index;
        let reserved = edge.tables().taken(port) + by_index - placed;
        let macs = of.setups().macs_on(port).count();
        let asked = queries.count_on(port);
        let held = of.setups().held_on(port);
        assert!(held <= reserved && reserved <= held + macs + asked, "a place belongs to nobody");
        for ((on, key), flow) in of_port() {
            let for_hosts = edge.plain().parts().hosts().count_on(on) > 0 || flow.inherited;
            assert!(for_hosts, "a port without hosts has a flow");
            let given = edge.masquerade_of(on, key.destination).filter(|_| key.source.is_none());
            let has = match given {
                None => self.tables.route((on, key)),
                Some(mac) => {
                    let (to, route) = self.tables.memory.get(&(on, mac)).expect("its route");
                    assert_eq!(*to, key.destination);
                    Some(route)
                }
            };
            assert_eq!(has, flow.is_placed().then_some(&flow.route));
        }
    }
}

/// Returns the only message to the controller among these effects.
pub(super) fn asked(effects: &[Effect]) -> axon_wire::message::ArpRequest {
    let mut requests = effects.iter().filter_map(|effect| match effect {
        Effect::ToController(Message::ArpRequest(request)) => Some(*request),
        _ => None,
    });
    let request = requests.next().expect("a request to the controller");
    assert_eq!(requests.next(), None, "one request");
    request
}

/// Returns the ARP packets to hosts among these effects, with their ports.
pub(super) fn arps(effects: &[Effect]) -> Vec<(PortNo, Arp)> {
    let arp = |effect: &Effect| match effect {
        Effect::Host { port, frame } => match host_frame::classify(frame) {
            Kind::Arp(arp) => Some((*port, arp)),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(arp).collect()
}

/// Builds the target switch's answer to the request of host 1 for host 9, on port 0.
pub(super) fn answer_to(request: axon_wire::message::ArpRequest, number: u64) -> ArpReply {
    ArpReply {
        id: request.id,
        source_port: request.port,
        source_mac: request.source_mac,
        target_mac: mac(9),
        target_ip: Some(ip(9).into()),
        stamp: stamp(number),
        to_target: Route::from([3, 4]),
        target_by_pair: false,
        grant: Grant::default(),
    }
}

/// Builds the controller's lookup of local host 1 on port 0 by remote host 9.
pub(super) fn looked_for(number: u64) -> ArpTarget {
    ArpTarget {
        id: 42,
        source_switch: OTHER,
        source_port: PortNo(6),
        source_mac: mac(9),
        source_ip: Some(ip(9).into()),
        target_port: PortNo(0),
        target_mac: mac(1),
        target_ip: Some(ip(1).into()),
        stamp: stamp(number),
        to_source: Route::from([3, 6]),
        source_by_pair: false,
        to_target: Route::from([2, 0]),
        target_by_pair: false,
        answer_by: Hops::from([3, PortNo::CONTROL.0]),
        grant: Grant::default(),
    }
}
