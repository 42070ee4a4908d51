//! A host: a real IP stack (smoltcp) behind one port, unaware of Axon.
//!
//! A host is a [`Node`] like any other: frames, carrier and time come in, frames go out. It
//! gets its address by DHCP (RFC 2131) or has a fixed one, which it announces when carrier
//! comes (RFC 5227 clause 2.3; paper 001 §4.2.2 learns hosts from that), answers pings, and
//! runs the small applications that it is given.
//!
//! smoltcp counts microseconds. `now` is rounded down, and a deadline lies on a whole
//! microsecond, so the stack is never called before the moment it asked for.
//!
//! Three habits of smoltcp would show something that no ordinary host shows, and are evened
//! out here. It asks for at most one address a second whatever the number of neighbours, so
//! applications ask for their target's address themselves (`resolve.rs`). It does not
//! heed gratuitous ARP, so a changed address empties its cache. And it believes an address
//! for a minute even if nobody answers from there; a kernel verifies a neighbour that gives
//! no sign of life after 5 s with 3 requests a second apart (Linux: `delay_first_probe_time`,
//! `mcast_solicit`), so an address that stays silent that long is forgotten and asked for.

use crate::nic::Nic;
use crate::ping::{Ping, PingPlan, PingStats};
use crate::resolve::{self, Neighbours};
use crate::udp::{UdpPlan, UdpSink, UdpSource};
use axon_plane::{Action, Input, Node};
use axon_wire::{Bytes, Frame, FrameBuf, MacAddr, PortNo, Span, Time};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::dhcpv4;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr, Ipv4Cidr};
use std::net::Ipv4Addr;

/// The one port of a host.
pub const PORT: PortNo = PortNo(0);
/// Announcements of a fixed address (RFC 5227 clause 1.1, ANNOUNCE_NUM).
const ANNOUNCEMENTS: u32 = 2;

/// Retry intervals after which a silent neighbour's address is no longer believed.
const PATIENCE: u64 = 8;

/// What a host is told at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Its address at layer 2.
    pub mac: MacAddr,
    /// A fixed address and prefix length; DHCP without.
    pub fixed: Option<(Ipv4Addr, u8)>,
    /// The longest IP packet it sends, in bytes.
    pub mtu: u16,
    /// Feeds the stack's random numbers.
    pub seed: u64,
    /// Between two tries: DHCP DISCOVER, ARP request, announcement.
    pub retry: Span,
}

/// A host.
pub struct Host {
    config: HostConfig,
    iface: Interface,
    nic: Nic,
    sockets: SocketSet<'static>,
    dhcp: Option<SocketHandle>,
    address: Option<Ipv4Addr>,
    busy: bool,
    neighbours: Neighbours,
    pings: Vec<Ping>,
    sources: Vec<UdpSource>,
    sinks: Vec<UdpSink>,
    announce: Option<(Time, u32)>,
    deadline: Option<Time>,
    /// Frames that came in.
    received: u64,
    /// DHCP acknowledgements that came in.
    dhcp_acks: u64,
}

impl Host {
    /// A host that has just been switched on, without carrier yet.
    pub fn new(config: HostConfig, now: Time) -> Host {
        let mut nic = Nic::new(config.mtu);
        let hardware = HardwareAddress::Ethernet(EthernetAddress(config.mac.0));
        let mut start = Config::new(hardware);
        start.random_seed = config.seed;
        let mut iface = Interface::new(start, &mut nic, instant(now));
        let mut sockets = SocketSet::new(Vec::new());
        let dhcp = match config.fixed {
            Some((ip, prefix_len)) => {
                set_address(&mut iface, Some(Ipv4Cidr::new(ip, prefix_len)));
                None
            }
            None => {
                let mut socket = dhcpv4::Socket::new();
                let mut retry = dhcpv4::RetryConfig::default();
                let interval = Duration::from_micros(config.retry.as_nanos() / 1000);
                retry.discover_timeout = interval;
                retry.initial_request_timeout = interval;
                retry.min_renew_timeout = interval;
                socket.set_retry_config(retry);
                Some(sockets.add(socket))
            }
        };
        Host {
            config,
            iface,
            nic,
            sockets,
            dhcp,
            address: config.fixed.map(|(ip, _)| ip),
            busy: false,
            neighbours: Neighbours::new(config.retry),
            pings: Vec::new(),
            sources: Vec::new(),
            sinks: Vec::new(),
            announce: None,
            deadline: None,
            received: 0,
            dhcp_acks: 0,
        }
    }

    /// Its address, if it has one now.
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.address
    }

    /// Its address at layer 2.
    pub fn mac(&self) -> MacAddr {
        self.config.mac
    }

    /// DHCP acknowledgements that it has received: the first lease, and every renewal.
    pub fn dhcp_acks(&self) -> u64 {
        self.dhcp_acks
    }

    /// Starts a ping; it runs when the host is next called. The number names it.
    pub fn ping(&mut self, plan: PingPlan, now: Time) -> usize {
        let number = self.pings.len();
        let ident = number as u16 + 1;
        self.pings.push(Ping::new(plan, ident, now, &mut self.sockets));
        self.deadline = Some(now);
        number
    }

    /// What came of ping `number` so far.
    pub fn ping_stats(&self, number: usize) -> Option<PingStats> {
        self.pings.get(number).map(|ping| ping.stats)
    }

    /// The pings so far, with their plans.
    pub fn pings(&self) -> impl Iterator<Item = (&PingPlan, &PingStats)> {
        self.pings.iter().map(|ping| (&ping.plan, &ping.stats))
    }

    /// Starts a stream of datagrams; the number names it.
    pub fn udp_send(&mut self, plan: UdpPlan, now: Time) -> usize {
        let number = self.sources.len();
        let local_port = 49152 + (number % 16384) as u16;
        self.sources.push(UdpSource::new(plan, local_port, now, &mut self.sockets));
        self.neighbours.want(plan.target);
        self.deadline = Some(now);
        number
    }

    /// Datagrams that stream `number` has handed to the stack.
    pub fn udp_sent(&self, number: usize) -> u64 {
        self.sources.get(number).map_or(0, |source| source.sent)
    }

    /// Counts datagrams on a UDP port from now on; the number names the counter.
    pub fn udp_listen(&mut self, port: u16) -> usize {
        self.sinks.push(UdpSink::new(port, &mut self.sockets));
        self.sinks.len() - 1
    }

    /// Datagrams and bytes of payload that counter `number` has seen.
    pub fn udp_received(&self, number: usize) -> (u64, Bytes) {
        self.sinks.get(number).map_or((0, Bytes(0)), |sink| (sink.datagrams, sink.payload))
    }

    /// Frames that this host has made, that ended inside it unsent, and that wait now.
    pub(crate) fn accounts(&self) -> (u64, u64, u64) {
        (self.nic.made, self.nic.unsent, self.nic.tx.len() as u64)
    }

    /// Frames that came in.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    fn carrier(&mut self, up: bool, now: Time) {
        self.nic.carrier = up;
        // No `TxDone` is owed for a frame that lost its carrier.
        self.busy = false;
        self.nic.flush();
        self.neighbours.forget();
        self.iface.update_ip_addrs(|_| ());
        self.announce = None;
        if !up {
            return;
        }
        match self.dhcp {
            Some(dhcp) => self.sockets.get_mut::<dhcpv4::Socket>(dhcp).reset(),
            None => self.announce = Some((now, ANNOUNCEMENTS)),
        }
    }

    /// Calls the stack and the applications until none has more to do.
    fn run(&mut self, now: Time) {
        let at = instant(now);
        self.announce_if_due(now);
        self.doubt_the_silent(now);
        loop {
            self.iface.poll(at, &mut self.nic, &mut self.sockets);
            let mut more = self.poll_dhcp();
            for ping in &mut self.pings {
                if ping.poll(now, &mut self.sockets) {
                    more = true;
                    self.neighbours.wanted(ping.plan.target, !ping.stats.done);
                }
            }
            for source in &mut self.sources {
                more |= source.poll(now, &mut self.sockets);
            }
            for sink in &mut self.sinks {
                sink.poll(&mut self.sockets);
            }
            if !more {
                break;
            }
        }
        if let Some(ip) = self.address {
            self.neighbours.ask(now, self.config.mac, ip, &mut self.nic);
        }
        self.deadline = self.next_deadline(now);
    }

    fn doubt_the_silent(&mut self, now: Time) {
        let patience = self.config.retry * PATIENCE;
        for ping in &mut self.pings {
            if ping.doubts(now, patience) && self.neighbours.doubt(ping.plan.target) {
                self.iface.update_ip_addrs(|_| ());
            }
        }
    }

    fn poll_dhcp(&mut self) -> bool {
        let Some(handle) = self.dhcp else {
            return false;
        };
        let cidr = match self.sockets.get_mut::<dhcpv4::Socket>(handle).poll() {
            None => return false,
            Some(dhcpv4::Event::Configured(config)) => Some(config.address),
            Some(dhcpv4::Event::Deconfigured) => None,
        };
        self.address = cidr.map(|cidr| cidr.address());
        self.neighbours.forget();
        set_address(&mut self.iface, cidr);
        true
    }

    fn announce_if_due(&mut self, now: Time) {
        let (Some((at, left)), Some(ip)) = (self.announce, self.address) else {
            return;
        };
        if at <= now {
            resolve::announce(self.config.mac, ip, &mut self.nic);
            self.announce = (left > 1).then_some((now + self.config.retry, left - 1));
        }
    }

    fn next_deadline(&mut self, now: Time) -> Option<Time> {
        let stack = self.iface.poll_at(instant(now), &self.sockets).map(|at| {
            let at = Time::from_nanos(at.total_micros().max(0) as u64 * 1000);
            // What is still due after a poll waits for something else: ask again soon.
            if at <= now { now + Span::from_micros(1000) } else { at }
        });
        let pings = self.pings.iter().filter_map(Ping::deadline).min();
        let sources = self.sources.iter().filter_map(UdpSource::deadline).min();
        let announce = self.announce.map(|(at, _)| at);
        let neighbours = self.address.and_then(|_| self.neighbours.deadline());
        [stack, pings, sources, announce, neighbours].into_iter().flatten().min()
    }
}

impl Node<FrameBuf> for Host {
    fn handle(&mut self, now: Time, input: Input<FrameBuf>, out: &mut Vec<Action<FrameBuf>>) {
        match input {
            Input::Frame { frame, .. } => {
                self.received += 1;
                if resolve::is_dhcp_ack(frame.bytes()) {
                    self.dhcp_acks += 1;
                }
                if self.neighbours.hear(frame.bytes(), self.address) {
                    self.iface.update_ip_addrs(|_| ());
                }
                self.nic.rx.push_back(frame);
            }
            Input::TxDone { .. } => self.busy = false,
            Input::Link { up, .. } => self.carrier(up, now),
            Input::Timeout => {}
        }
        self.run(now);
        if self.busy || !self.nic.carrier {
            return;
        }
        if let Some(frame) = self.nic.tx.pop_front() {
            self.busy = true;
            out.push(Action::Transmit { port: PORT, frame, complete_at: now, intact: true });
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }
}

fn instant(now: Time) -> Instant {
    Instant::from_micros(now.as_micros() as i64)
}

fn set_address(iface: &mut Interface, cidr: Option<Ipv4Cidr>) {
    iface.update_ip_addrs(|addresses| {
        addresses.clear();
        if let Some(cidr) = cidr {
            addresses.push(IpCidr::Ipv4(cidr)).expect("one address fits");
        }
    });
}
