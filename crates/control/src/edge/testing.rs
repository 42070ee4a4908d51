//! A switch's edge with hosts around it, for the tests of this folder.

use super::setup::{FAILURES_MAX, SETUPS_PER_PORT_MAX};
use super::target::ASKINGS_PER_PORT_MAX;
use super::*;
use crate::config::{NodeConfig, Timers};
use axon_plane::PlaneConfig;
use axon_wire::host_frame::{Arp, Kind};
use axon_wire::message::Message;
use axon_wire::{HopWidth, Hops};

/// Ports of the switch under test: 0 to 2 for hosts, 3 an Axon port.
pub(super) const PORTS: u16 = 4;
pub(super) const LIFE: Life = Life { node: NodeId(1), incarnation: 7 };
pub(super) const CONTROLLER: Life = Life { node: NodeId(99), incarnation: 5 };
pub(super) const OTHER: Life = Life { node: NodeId(2), incarnation: 3 };
pub(super) const SERVER: ServerIdentity =
    ServerIdentity { mac: MacAddr([2, 0xff, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 254) };

pub(super) fn mac(host: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host])
}

pub(super) fn ip(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

pub(super) fn stamp(number: u64) -> Stamp {
    Stamp { epoch: CONTROLLER.incarnation, number }
}

/// A broadcast ARP request from one host for another's address.
pub(super) fn arp_request(from: u8, wanted: u8) -> Vec<u8> {
    let mut frame = host_frame::request(mac(from), ip(from), MacAddr::BROADCAST, ip(wanted));
    frame[32..38].fill(0);
    frame
}

pub(super) fn udp_frame(to: MacAddr, from: MacAddr, content: u8) -> Vec<u8> {
    let mut frame = alloc::vec![content; 60];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame
}

/// A DHCP message as an Ethernet frame: broadcast by IP, checksums left to the wire library.
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

/// The switch under test. Hosts are numbers: host `n` has MAC ..:n and address 10.0.0.n.
pub(super) struct Bench {
    pub(super) edge: Edge,
    pub(super) tables: RouteTables,
    pub(super) now: Time,
    limits: (usize, usize, usize),
}

impl Bench {
    /// A switch with a controller, host ports up, and no host yet.
    pub(super) fn new() -> Bench {
        Bench::with(8, 1000, 4)
    }

    /// The same with these limits: routes per port, waiting bytes, hosts per port.
    pub(super) fn with(routes: usize, waiting: usize, hosts: usize) -> Bench {
        let mut plane = PlaneConfig::with_ports(PORTS, MacAddr([2, 0xee, 0, 0, 0, 1]));
        plane.routes_per_port_max = routes;
        let config = SwitchConfig {
            node: NodeConfig {
                life: LIFE,
                mac: plane.mac,
                key: [0; 32],
                seed: 1,
                timers: Timers::default(),
                plane,
                dcbx: None,
                server: SERVER,
            },
            waiting_bytes_max: waiting,
            hosts_per_port_max: hosts,
        };
        let mut bench = Bench {
            edge: Edge::new(&config),
            tables: RouteTables::new(HopWidth::Eight, PORTS, routes),
            now: Time::from_nanos(1_000_000_000),
            limits: (routes, waiting, hosts),
        };
        for port in 0..PORTS {
            bench.port(port, Some(if port == 3 { PortKind::Axon } else { PortKind::Host }));
        }
        bench.controller(Some(CONTROLLER));
        bench
    }

    fn call(
        &mut self,
        call: impl FnOnce(&mut Edge, Time, &mut RouteTables, &mut Vec<Effect>),
    ) -> Vec<Effect> {
        let mut out = Vec::new();
        call(&mut self.edge, self.now, &mut self.tables, &mut out);
        self.check_bounds();
        out
    }

    pub(super) fn port(&mut self, port: u16, kind: Option<PortKind>) -> Vec<Effect> {
        self.call(|edge, now, tables, out| {
            edge.port_changed(now, PortNo(port), kind, tables, out);
        })
    }

    pub(super) fn controller(&mut self, life: Option<Life>) -> Vec<Effect> {
        self.call(|edge, now, tables, out| edge.controller_changed(now, life, tables, out))
    }

    pub(super) fn frame(&mut self, port: u16, frame: &[u8]) -> Vec<Effect> {
        self.call(|edge, now, tables, out| {
            if let Err(reason) = edge.host_frame(now, PortNo(port), frame, tables, out) {
                let (ingress, frame) = (PortNo(port), frame.to_vec());
                out.push(Effect::Drop { ingress, reason, frame });
            }
        })
    }

    pub(super) fn target(&mut self, m: ArpTarget) -> Vec<Effect> {
        self.call(|edge, now, tables, out| edge.arp_target(now, m, tables, out))
    }

    pub(super) fn reply(&mut self, m: ArpReply) -> Vec<Effect> {
        self.call(|edge, now, tables, out| edge.arp_reply(now, m, tables, out))
    }

    pub(super) fn item(&mut self, item: Item) -> Vec<Effect> {
        self.call(|edge, now, tables, out| edge.item(now, item, tables, out))
    }

    pub(super) fn send_to_host(&mut self, port: u16, frame: Vec<u8>) -> Vec<Effect> {
        let m = HostFrame { port: PortNo(port), frame };
        self.call(|edge, now, _, out| edge.host_frame_out(now, m, out))
    }

    pub(super) fn set_route(&mut self, port: u16, to: u8, number: u64, hop: u16) -> Vec<Effect> {
        let (port, destination) = (PortNo(port), mac(to));
        let route = Route::from([hop]);
        self.item(Item::SetRoute { port, destination, stamp: stamp(number), route })
    }

    pub(super) fn remove_route(&mut self, port: u16, to: u8, number: u64) -> Vec<Effect> {
        let (port, destination) = (PortNo(port), mac(to));
        self.item(Item::RemoveRoute { port, destination, stamp: stamp(number) })
    }

    /// Host `n` appears on `port` and announces its address.
    pub(super) fn host(&mut self, port: u16, n: u8) -> Vec<Effect> {
        self.frame(port, &arp_request(n, n))
    }

    /// Lets time pass, doing whatever is due at the moment it is due.
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

    /// The route in the port's memory.
    pub(super) fn placed(&self, port: u16, to: u8) -> Option<Route> {
        let routes = self.tables.routes(PortNo(port));
        routes.into_iter().find(|(destination, _)| *destination == mac(to)).map(|(_, route)| route)
    }

    /// Everything stays within its bounds, and every place kept belongs to somebody.
    pub(super) fn check_bounds(&self) {
        let (routes, waiting, hosts) = self.limits;
        let edge = &self.edge;
        assert!(edge.waiting.bytes() <= waiting);
        for (port, mac) in edge.waiting.keys() {
            assert!(edge.setups.contains((port, Target::Mac(mac))), "a frame waits for nothing");
        }
        let (_, _, removed) = edge.flows.sizes();
        assert!(removed <= 16_384 && edge.setups.failures() <= FAILURES_MAX);
        for port in (0..PORTS).map(PortNo) {
            assert!(self.tables.len(port) <= routes);
            assert!(edge.hosts.count_on(port) <= hosts);
            assert!(edge.setups.count_on(port) <= SETUPS_PER_PORT_MAX);
            let asked = edge.askings.keys().filter(|key| key.0 == port).count();
            assert!(asked <= ASKINGS_PER_PORT_MAX);
            self.check_places(port);
        }
        let hosts_due = edge.hosts.all().filter(|(_, host)| host.ip.is_some()).count();
        let recalled = edge.recalls.keys().filter(|key| edge.is_host_port(key.0)).count();
        let asked = edge.askings.len() + recalled;
        let due = edge.setups.count() + edge.setups.failures() + asked + hosts_due;
        assert_eq!(edge.agenda.len(), due, "each thing is due once");
    }

    fn check_places(&self, port: PortNo) {
        let edge = &self.edge;
        let placed = edge.flows.all().filter(|(on, _, flow)| *on == port && flow.placed).count();
        assert_eq!(self.tables.routes(port).len(), placed);
        let reserved = self.tables.len(port) - placed;
        let macs = edge.setups.macs_on(port).count();
        let asked = edge.askings.keys().filter(|key| key.0 == port).count();
        let held = edge.setups.held_on(port);
        assert!(held <= reserved && reserved <= held + macs + asked, "a place belongs to nobody");
        for (on, destination, flow) in edge.flows.all().filter(|(on, ..)| *on == port) {
            assert!(edge.hosts.count_on(on) > 0, "a port without hosts has a flow");
            let software = self.tables.lookup(on, destination).is_none();
            assert_eq!(software, !flow.placed);
        }
    }
}

/// The one message to the controller among these effects.
pub(super) fn asked(effects: &[Effect]) -> axon_wire::message::ArpRequest {
    let mut requests = effects.iter().filter_map(|effect| match effect {
        Effect::ToController(Message::ArpRequest(request)) => Some(*request),
        _ => None,
    });
    let request = requests.next().expect("a request to the controller");
    assert_eq!(requests.next(), None, "one request");
    request
}

/// The ARP packets to hosts among these effects, with their ports.
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

/// The answer of the target switch to the request of host 1 for host 9, on port 0.
pub(super) fn answer_to(request: axon_wire::message::ArpRequest, number: u64) -> ArpReply {
    ArpReply {
        id: request.id,
        source_port: request.port,
        source_mac: request.source_mac,
        target_mac: mac(9),
        target_ip: Some(ip(9).into()),
        stamp: stamp(number),
        to_target: Route::from([3, 4]),
    }
}

/// The controller's request that local host 1 on port 0 be reached by remote host 9.
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
        to_target: Route::from([2, 0]),
        answer_by: Hops::from([3, PortNo::CONTROL.0]),
    }
}
