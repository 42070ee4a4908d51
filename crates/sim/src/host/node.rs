//! A host: a real IP stack (smoltcp) behind one port, unaware of Axon.
//!
//! A host is a [`Node`] like any other: its input is frames, carrier and time, its output frames.
//! It gets its address by DHCP (RFC 2131) or has a fixed one, which it announces when carrier comes
//! up (RFC 5227 clause 2.3; paper 001 §4.2.2 learns hosts from that). It answers pings and runs
//! small applications.
//!
//! smoltcp counts microseconds. `now` is rounded down, and a deadline lies on a whole microsecond,
//! so the stack is never called before its deadline.
//!
//! Three properties of smoltcp differ from ordinary hosts and are compensated here. It resolves at
//! most one address a second regardless of the number of neighbours, so applications resolve their
//! targets themselves (`resolve.rs`). It ignores gratuitous ARP, so a changed address empties its
//! cache. And it keeps an address for a minute even if the neighbour is silent, whereas a kernel
//! verifies a neighbour silent for 5 s with 3 requests a second apart (Linux:
//! `delay_first_probe_time`, `mcast_solicit`). So an address silent for that long is removed and
//! resolved again.

mod bonded;
mod counted;
mod prefetch;

use crate::host::apps::{App, AppId, Apps};
use crate::host::bond::Bond;
use crate::host::config::HostConfig;
use crate::host::datagram;
use crate::host::dcb_nic::DcbNic;
use crate::host::gateway;
use crate::host::interface::Interface;
use crate::host::ipv6::Ipv6;
use crate::host::nic::Nic;
use crate::host::ping::Ping;
use crate::host::resolve::{self, Neighbours, Own};
use crate::host::rx_ring::RxRing;
use crate::host::stack::{Stack, instant, set_address};
use axon_node::{Action, Awaited, Input, Node, NodeKind, Shortcuts};
use axon_wire::{Contents, FrameBuf, MacAddr, PortNo, Rate, Span, Time};
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Duration;
use smoltcp::wire::Ipv4Cidr;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

mod vlans;

/// Single port of a host.
pub const PORT: PortNo = PortNo(0);
/// Number of announcements of a fixed address (RFC 5227 clause 1.1, ANNOUNCE_NUM).
const ANNOUNCEMENTS: u32 = 2;

/// Host. The fields that every frame needs come first.
#[repr(C)]
pub struct Host {
    /// Deadline of everything except the applications and the receive ring.
    pub(super) due: Option<Time>,
    busy: bool,
    /// True if the stack has more to send than the NIC could take.
    nic_was_full: bool,
    bond: Option<Box<Bond>>,
    /// Number of received frames.
    received: u64,
    /// Number of received frames for other hosts.
    misdelivered: u64,
    apps: Apps,
    pub(crate) rx: RxRing,
    pub(crate) stack: Stack,
    pub(super) config: HostConfig,
    /// IPv6 addresses, if IPv6 is enabled.
    pub(super) ipv6: Option<Ipv6>,
    /// IPv4 address configured in the stack.
    pub(super) cidr: Option<Ipv4Cidr>,
    dhcp: Option<SocketHandle>,
    pub(super) pings: Vec<Ping>,
    announce: Option<(Time, u32)>,
    /// Number of received DHCP acknowledgements.
    dhcp_acks: u64,
    /// Senders of received frames, if the host records them.
    senders: BTreeSet<MacAddr>,
}

impl Host {
    /// Returns a host that was just powered on, without carrier.
    ///
    /// # Panics
    /// If the configuration of its NIC's traffic classes is invalid.
    pub fn new(config: HostConfig) -> Host {
        let (mut nic, mut rx) = (Nic::new(config.mtu), RxRing::new());
        if let Some(dcb) = &config.dcb {
            rx.set_limits(dcb.ring);
            nic.dcb = Some(Box::new(DcbNic::new(dcb.clone(), config.mac)));
        }
        let mut iface = Interface::new(config.mac, config.seed);
        let mut sockets = SocketSet::new(Vec::new());
        let dhcp = match config.fixed {
            Some((ip, prefix_len)) => {
                set_address(&mut iface, Some(Ipv4Cidr::new(ip, prefix_len)), None);
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
        let neighbours = Neighbours::new(config.retry);
        let mut stack = Stack::new((iface, nic), sockets, neighbours, config.mac, config.mtu);
        stack.address = config.fixed.map(|(ip, _)| ip);
        let ipv6 = |fixed| Ipv6::new(config.mac, fixed, !config.announces, config.retry);
        let ipv6 = config.ipv6.map(ipv6);
        let cidr = config.fixed.map(|(ip, prefix_len)| Ipv4Cidr::new(ip, prefix_len));
        let ports = config.bond_ports;
        let bond = (ports > 0).then(|| Box::new(Bond::new(config.mac, ports)));
        Host {
            config,
            stack,
            ipv6,
            cidr,
            dhcp,
            busy: false,
            bond,
            rx,
            pings: Vec::new(),
            apps: Apps::default(),
            announce: None,
            due: None,
            nic_was_full: false,
            received: 0,
            misdelivered: 0,
            dhcp_acks: 0,
            senders: BTreeSet::new(),
        }
    }

    /// Returns the host's current IPv4 address.
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.stack.address
    }

    /// Returns the host's MAC address.
    pub fn mac(&self) -> MacAddr {
        self.config.mac
    }

    /// Returns the number of received DHCP acknowledgements: the first lease and every renewal.
    pub fn dhcp_acks(&self) -> u64 {
        self.dhcp_acks
    }

    /// Adds an application, which is polled when the host is next called.
    pub(crate) fn add(&mut self, make: impl FnOnce(&mut Stack) -> Box<dyn App>) -> AppId {
        self.stack.adding = self.apps.next_id();
        let app = make(&mut self.stack);
        self.due = Some(Time::ZERO);
        self.apps.add(app)
    }

    /// Returns an application.
    pub(crate) fn app(&self, id: AppId) -> Option<&dyn App> {
        self.apps.get(id)
    }

    /// Stops an application permanently: it sends nothing new and closes what is open.
    pub fn stop(&mut self, id: AppId, now: Time) {
        self.apps.stop(id, now, &mut self.stack);
        self.due = Some(now);
    }

    /// Stops an application permanently at a later time.
    pub fn stop_at(&mut self, id: AppId, at: Time) {
        self.apps.stop_at(id, at);
    }

    /// Resolves the MAC of `target` now, so that later transmissions need not wait for it.
    pub fn resolve(&mut self, target: Ipv4Addr, now: Time) {
        self.stack.neighbours.want(target);
        self.due = Some(now);
    }

    /// Limits the rate at which the host reads received frames; `None` removes the limit. The
    /// receive ring holds 512 frames; frames that find it full are dropped and counted
    /// ([`Drop::QueueFull`](axon_node::Drop::QueueFull)). Priorities with flow control have [room
    /// of their own](crate::host::dcb_nic::RingLimits) instead, and their sender is paused.
    pub fn set_receive_rate(&mut self, rate: Option<Rate>) {
        self.rx.set_rate(rate);
    }

    /// Disables selective acknowledgements.
    pub fn without_sack(&mut self) {
        self.stack.tcp.without_sack();
    }

    /// Sets the processing time of each received frame before the stack and the applications get
    /// it. It is a latency: other frames are received meanwhile.
    pub fn set_processing(&mut self, processing: Span) {
        self.rx.set_processing(processing);
    }

    /// Returns the NIC, if it has priorities.
    pub(crate) fn dcb_nic(&self) -> Option<&DcbNic> {
        self.stack.nic.dcb.as_deref()
    }

    /// Returns the NIC mutably, if it has priorities.
    pub(crate) fn dcb_nic_mut(&mut self) -> Option<&mut DcbNic> {
        self.stack.nic.dcb.as_deref_mut()
    }

    /// Returns the numbers of frames made, dropped unsent, and queued.
    pub(crate) fn accounts(&self) -> (u64, u64, u64) {
        let nic = &self.stack.nic;
        let bonded = self.bond.as_ref().map_or(0, |bond| bond.waiting());
        (nic.made, nic.unsent, (nic.waiting() + bonded) as u64)
    }

    /// Returns the number of received frames.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of received frames for the MAC of another host; zero in a correct fabric.
    pub fn misdelivered(&self) -> u64 {
        self.misdelivered
    }

    fn carrier(&mut self, up: bool, now: Time) {
        self.stack.nic.carrier = up;
        // No `TxDone` is pending for a frame that lost its carrier.
        self.busy = false;
        self.stack.nic.flush();
        if let Some(dcb) = &mut self.stack.nic.dcb {
            dcb.link(now, up);
        }
        self.stack.neighbours.forget();
        if let Some(ipv6) = &mut self.ipv6 {
            ipv6.carrier(now, up);
            set_address(&mut self.stack.iface, self.cidr, Some(ipv6));
        }
        self.stack.iface.forget_neighbours();
        self.announce = None;
        if !up {
            return;
        }
        match self.dhcp {
            Some(dhcp) => self.stack.sockets.get_mut::<dhcpv4::Socket>(dhcp).reset(),
            None => self.announce = self.config.announces.then_some((now, ANNOUNCEMENTS)),
        }
    }

    /// Delivers a frame to the application that listens for it, or to the stack. Returns whether
    /// the stack has to be called.
    fn take(&mut self, now: Time, mut frame: FrameBuf) -> bool {
        if self.apps.watches() {
            frame.make_whole();
            self.apps.watch(now, frame.bytes());
        }
        if let Some(only_counts) = self.listener(frame.contents()) {
            if !only_counts {
                frame.make_whole();
            }
            let more = datagram::parse(frame.contents())
                .is_some_and(|datagram| self.apps.receive(now, &datagram, &mut self.stack));
            self.stack.nic.recycle(frame);
            return more;
        }
        if self.stack.receive_tcp(now, frame.contents()) {
            self.stack.nic.recycle(frame);
            return false;
        }
        frame.make_whole();
        if resolve::is_dhcp_ack(frame.bytes()) {
            self.dhcp_acks += 1;
        }
        self.take_v6(frame.bytes());
        if self.stack.neighbours.receive(frame.bytes(), self.stack.address) {
            self.renew_neighbours();
        }
        if let Some(answer) = gateway::answer(frame.bytes(), &self.config) {
            self.stack.nic.put(&answer);
            self.stack.nic.recycle(frame);
            return false;
        }
        self.stack.nic.rx.push_back(frame);
        true
    }

    /// Returns whether the application that listens for a frame only counts it; `None` if no
    /// application listens.
    #[inline]
    fn listener(&self, frame: Contents<'_>) -> Option<bool> {
        let datagram = datagram::parse(frame)?;
        let is_own = Some(datagram.target) == self.stack.address;
        is_own.then(|| self.apps.listens_on(datagram.port)).flatten()
    }

    /// Calls the stack and the applications until none has more to do.
    fn run(&mut self, now: Time) {
        let at = instant(now);
        self.announce_if_due(now);
        self.poll_ipv6(now);
        self.mark_silent_neighbours_stale(now);
        loop {
            let stack = &mut self.stack;
            stack.iface.poll(at, &mut stack.nic, &mut stack.sockets);
            let mut more = self.poll_dhcp();
            let stack = &mut self.stack;
            for ping in &mut self.pings {
                if ping.poll(now, &mut stack.sockets) {
                    more = true;
                    let next = stack.next_hop(ping.plan.target);
                    stack.neighbours.wanted(next, !ping.stats.done);
                }
            }
            if !self.apps.is_empty() {
                more |= self.apps.poll(now, stack);
            }
            if !more {
                break;
            }
        }
        self.nic_was_full = !self.stack.nic.has_room();
        let stack = &mut self.stack;
        let own = Own { v4: stack.address, v6: self.ipv6.as_ref() };
        stack.neighbours.ask(now, self.config.mac, own, &mut stack.nic);
        self.due = self.next_due(now);
    }

    /// Applies the DHCP client's result. Returns whether it is new.
    fn poll_dhcp(&mut self) -> bool {
        let new = self.dhcp.and_then(|dhcp| self.stack.poll_dhcp(dhcp, self.ipv6.as_ref()));
        let Some(cidr) = new else { return false };
        self.cidr = cidr;
        true
    }

    fn announce_if_due(&mut self, now: Time) {
        let (Some((at, left)), Some(ip)) = (self.announce, self.stack.address) else {
            return;
        };
        if at <= now {
            resolve::announce(self.config.mac, ip, &mut self.stack.nic);
            self.announce = (left > 1).then_some((now + self.config.retry, left - 1));
        }
    }

    fn next_due(&mut self, now: Time) -> Option<Time> {
        let Stack { iface, nic, sockets, .. } = &mut self.stack;
        let stack = iface.poll_at(instant(now), nic, sockets).map(|at| {
            let at = Time::from_nanos(at.total_micros().max(0) as u64 * 1000);
            // What is still due after a poll waits for something else: poll again soon.
            if at <= now { now + Span::from_micros(1000) } else { at }
        });
        let pings = self.pings.iter().filter_map(Ping::deadline).min();
        let announce = self.announce.map(|(at, _)| at);
        let own = Own { v4: self.stack.address, v6: self.ipv6.as_ref() };
        let neighbours = self.stack.neighbours.deadline(own);
        let ipv6 = self.ipv6.as_ref().and_then(Ipv6::deadline);
        [stack, pings, announce, neighbours, ipv6].into_iter().flatten().min()
    }

    /// Lets applications handle changes on their connections, and connections send.
    fn serve_tcp(&mut self, now: Time) {
        if self.stack.tcp.is_unused() {
            return;
        }
        loop {
            while let Some((app, id)) = self.stack.tcp.next_news() {
                self.apps.connection(now, (app, id), &mut self.stack);
                self.stack.tcp.forget_closed(id);
            }
            self.stack.pump_tcp(now);
            if !self.stack.tcp.has_news() {
                break;
            }
        }
    }

    /// Sends the next frame if the wire is free.
    fn transmit(&mut self, now: Time, out: &mut Vec<Action>) {
        if self.bond.is_some() {
            return self.transmit_bonded(now, out);
        }
        if self.busy || !self.stack.nic.carrier {
            return;
        }
        let Some(mut frame) = self.stack.nic.next(now) else {
            return;
        };
        self.tag(&mut frame);
        self.busy = true;
        out.push(Action::Transmit { port: PORT, frame, complete_at: now, intact: true });
    }
}

impl Node for Host {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let mut run = false;
        match self.bonded(now, input, out) {
            Input::Frame { frame, complete_at, intact, .. } => {
                run = self.arrived(now, (frame, intact), complete_at, out);
            }
            Input::TxDone { .. } => run = self.wire_is_free(now),
            Input::Link { up, .. } => {
                self.carrier(up, now);
                run = true;
            }
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Host)));
            }
        }
        while let Some((frame, group)) = self.rx.take(now) {
            self.tell_peer(group);
            run |= self.take(now, frame);
        }
        run |= self.due.is_some_and(|at| at <= now);
        if !run && self.apps.deadline().is_some_and(|at| at <= now) {
            run = self.apps.poll_due(now, &mut self.stack);
        }
        if run {
            self.run(now);
        }
        if let Some(dcb) = &mut self.stack.nic.dcb {
            dcb.timeout(now);
        }
        self.serve_tcp(now);
        if self.stack.neighbours.has_new() {
            self.run(now);
            self.serve_tcp(now);
        }
        self.transmit(now, out);
        if let Some(dcb) = &mut self.stack.nic.dcb {
            dcb.plan(now, self.busy);
        }
    }

    fn deadline(&self) -> Option<Time> {
        let dcb = self.stack.nic.dcb.as_ref().and_then(|dcb| dcb.deadline());
        let bond = self.bond.as_ref().and_then(|bond| bond.deadline());
        let earlier = |first: Time, at: Option<Time>| at.map_or(first, |at| at.min(first));
        let tcp = earlier(Time::MAX, self.stack.tcp.deadline());
        let own = earlier(earlier(tcp, self.due), self.apps.deadline());
        let first = earlier(earlier(earlier(own, self.rx.deadline()), dcb), bond);
        (first < Time::MAX).then_some(first)
    }
}

impl Shortcuts for Host {
    #[inline]
    fn absorb(&mut self, now: Time, frame: &mut FrameBuf, complete_at: Time) -> bool {
        self.take_counted(now, frame, complete_at)
    }

    #[inline]
    fn awaited(&mut self) -> Awaited {
        let nic = &self.stack.nic;
        let nic_waits = || nic.dcb.as_ref().is_some_and(|dcb| dcb.waits());
        let full = self.nic_was_full || self.stack.tcp.has_ready();
        let waits = self.bond.is_some() || full || nic.has_frames() || nic_waits();
        if waits { Awaited::Every } else { Awaited::None }
    }
}
