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

mod counted;

use crate::addressing::Addressing;
use crate::apps::{AppId, Apps, FlowStats, Histogram, Plan, Received};
use crate::bond::Bond;
use crate::config::{HostConfig, PORT};
use crate::datagram;
use crate::dcb_nic::DcbNic;
use crate::gateway;
use crate::interface::Interface;
use crate::ipv4::Ipv4;
use crate::lost::LostDatagrams;
use crate::nic::Nic;
use crate::ping::{PingPlan, PingStats, Pings};
use crate::reception::Reception;
use crate::resolve::Neighbours;
use crate::rx_ring::RxRing;
use crate::stack::Stack;
use crate::tcp::Tcp;
use axon_link::lacp::Mux;
use axon_node::{Action, Awaited, Input, Node, NodeKind, Shortcuts};
use axon_wire::{FrameBuf, MacAddr, PortNo, Span, Time, nd};
use smoltcp::iface::SocketSet;
use smoltcp::time::Instant;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Host. The fields that every frame needs come first.
#[repr(C)]
pub struct Host {
    /// Deadline of everything except the applications and the receive ring.
    due: Option<Time>,
    busy: bool,
    /// True if the stack has more to send than the NIC could take.
    nic_was_full: bool,
    /// True if the host answers pings to all addresses outside its subnet.
    is_gateway: bool,
    bond: Option<Box<Bond>>,
    apps: Apps,
    reception: Reception,
    stack: Stack,
    iface: Interface,
    sockets: SocketSet<'static>,
    addresses: Addressing,
    pings: Pings,
}

impl Host {
    /// Returns a host that was just powered on, without carrier.
    ///
    /// # Panics
    /// If the configuration of its NIC's traffic classes is invalid.
    pub fn new(config: HostConfig) -> Host {
        let HostConfig { mac, mtu, retry, bond_ports, .. } = config;
        let reception = Reception::new(&config);
        let mut sockets = SocketSet::new(Vec::new());
        let addresses = Addressing::new(&config, &mut sockets);
        let mut iface = Interface::new(mac, config.seed);
        addresses.enter(&mut iface);
        let mut ip = Ipv4::new(mac, mtu);
        ip.configure(addresses.cidr(), None);
        let nic = Nic::new(mtu, config.dcb.map(|dcb| DcbNic::new(dcb, mac)));
        Host {
            due: None,
            busy: false,
            nic_was_full: false,
            is_gateway: config.is_gateway && config.fixed.is_some(),
            bond: (bond_ports > 0).then(|| Box::new(Bond::new(mac, bond_ports))),
            apps: Apps::default(),
            reception,
            stack: Stack { ip, nic, neighbours: Neighbours::new(retry), tcp: Tcp::default() },
            iface,
            sockets,
            addresses,
            pings: Pings::new(retry),
        }
    }

    /// Returns the host's current IPv4 address.
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.stack.ip.address()
    }

    /// Returns the host's valid IPv6 address of global scope, if any.
    pub fn address6(&self) -> Option<Ipv6Addr> {
        self.addresses.global_v6()
    }

    /// Returns the host's valid IPv6 addresses, the link-local one first.
    pub fn addresses6(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.addresses.valid_v6()
    }

    /// Returns the host's MAC address.
    pub fn mac(&self) -> MacAddr {
        self.stack.ip.mac()
    }

    /// Returns the number of received DHCP acknowledgements: the first lease and every renewal.
    pub fn dhcp_acks(&self) -> u64 {
        self.addresses.dhcp_acks()
    }

    /// Starts an application, which is polled when the host is next called. A source starts at
    /// `at`, or now if that is past.
    pub fn start(&mut self, plan: Plan, at: Time) -> AppId {
        let app = plan.begin(self.apps.next_id(), at, &mut self.stack);
        self.due = Some(Time::ZERO);
        self.apps.add(app)
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

    /// Returns the statistics of an application.
    pub fn flow_stats(&self, id: AppId) -> Option<&FlowStats> {
        self.apps.get(id).map(|app| app.stats())
    }

    /// Returns what a sink has received from one sender, given by address and port.
    pub fn received_from(&self, id: AppId, from: (Ipv4Addr, u16)) -> Option<&Received> {
        self.apps.get(id)?.received_from(from)
    }

    /// Returns the source port of an application; for a connection, once it is opened.
    pub fn source_port(&self, id: AppId) -> Option<u16> {
        self.apps.get(id)?.source_port()
    }

    /// Starts a ping, which runs when the host is next called. Returns its number.
    pub fn ping(&mut self, plan: PingPlan, now: Time) -> usize {
        self.due = Some(now);
        self.pings.start(plan, now, &mut self.sockets)
    }

    /// Returns the statistics of ping `number` so far.
    pub fn ping_stats(&self, number: usize) -> Option<PingStats> {
        self.pings.get(number).map(|(stats, _)| *stats)
    }

    /// Returns the round-trip times of ping `number` so far.
    pub fn ping_times(&self, number: usize) -> Option<&Histogram> {
        self.pings.get(number).map(|(_, times)| times)
    }

    /// Resolves the MAC of `target` now, so that later transmissions need not wait for it.
    pub fn resolve(&mut self, target: Ipv4Addr, now: Time) {
        self.stack.neighbours.want(target);
        self.due = Some(now);
    }

    /// Returns the receive ring, to set how the host reads.
    pub fn rx_ring_mut(&mut self) -> &mut RxRing {
        self.reception.ring_mut()
    }

    /// Disables selective acknowledgements.
    pub fn without_sack(&mut self) {
        self.stack.tcp.without_sack();
    }

    /// Returns the NIC, if it has priorities.
    pub fn dcb_nic(&self) -> Option<&DcbNic> {
        self.stack.nic.dcb()
    }

    /// Returns the NIC mutably, if it has priorities.
    pub fn dcb_nic_mut(&mut self) -> Option<&mut DcbNic> {
        self.stack.nic.dcb_mut()
    }

    /// Returns the LACP state of a port of the bond; `None` without a bond.
    pub fn bond_state(&self, port: PortNo) -> Option<Mux> {
        self.bond.as_ref()?.state(port)
    }

    /// Returns the numbers of frames made, dropped unsent, and queued.
    pub fn accounts(&self) -> (u64, u64, u64) {
        let (made, unsent, queued) = self.stack.nic.accounts();
        let bonded = self.bond.as_ref().map_or(0, |bond| bond.waiting());
        (made, unsent, (queued + bonded) as u64)
    }

    /// Returns the datagrams among the frames dropped unsent, by flow.
    pub fn lost(&self) -> &LostDatagrams {
        self.stack.nic.lost()
    }

    /// Returns the number of received frames.
    pub fn received(&self) -> u64 {
        self.reception.received()
    }

    /// Returns the number of received frames for the MAC of another host; zero in a correct fabric.
    pub fn misdelivered(&self) -> u64 {
        self.reception.misdelivered()
    }

    /// Returns the senders of frames received in the host's VLAN; empty without VLANs.
    pub fn senders(&self) -> &BTreeSet<MacAddr> {
        self.reception.vlan().senders()
    }

    /// Prefetch hint for the fields that every event needs; ignore the return value.
    #[inline]
    pub fn prefetch(&self) -> u64 {
        let (made, _, queued) = self.stack.nic.accounts();
        let full = u64::from(self.nic_was_full) ^ u64::from(self.busy) ^ self.reception.received();
        full ^ made ^ queued as u64 ^ u64::from(self.due.is_some())
    }

    /// Prefetch hint for the applications; ignore the return value.
    #[inline]
    pub fn prefetch_apps(&self) -> u64 {
        self.apps.prefetch()
    }

    /// Handles a change of carrier, after which the link may be another one.
    fn carrier(&mut self, up: bool, now: Time) {
        // No `TxDone` is pending for a frame that lost its carrier.
        self.busy = false;
        self.stack.nic.link(now, up);
        self.stack.neighbours.forget();
        self.iface.forget_neighbours();
        self.addresses.carrier(now, up, (&mut self.iface, &mut self.sockets));
    }

    /// Handles the part of an input that concerns the bond alone. Returns the input for the stack,
    /// which has one port that stands for all ports of the bond.
    fn bonded(&mut self, now: Time, input: Input, out: &mut Vec<Action>) -> Input {
        let Some(bond) = &mut self.bond else { return input };
        let was_up = bond.is_up();
        let input = bond.handle(now, input, (&mut self.stack.nic, &mut self.reception), out);
        let up = bond.is_up();
        if up != was_up {
            self.carrier(up, now);
            self.due = Some(now);
        }
        input
    }

    /// Delivers a frame to the application that listens for it, or to the stack. Returns whether
    /// the stack has to be called.
    fn take(&mut self, now: Time, mut frame: FrameBuf) -> bool {
        if self.apps.watches() {
            frame.make_whole();
            self.apps.watch(now, frame.bytes());
        }
        if let Some(only_counts) = self.apps.listener(frame.contents(), self.stack.ip.address()) {
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
        if self.addresses.receive(frame.bytes()) {
            // A new prefix was advertised: probe its address at once.
            self.due = Some(Time::ZERO);
        }
        if self.stack.neighbours.receive(frame.bytes(), self.addresses.own()) {
            self.renew_neighbours();
        }
        let subnet = self.addresses.cidr().filter(|_| self.is_gateway);
        let answer =
            subnet.and_then(|subnet| gateway::answer(frame.bytes(), self.stack.ip.mac(), subnet));
        if let Some(answer) = answer {
            self.stack.nic.put(&answer);
            self.stack.nic.recycle(frame);
            return false;
        }
        self.iface.put(frame);
        true
    }

    /// Clears the stack's neighbour cache, since a single entry cannot be removed, and restores the
    /// known IPv6 neighbours. The stack resolves only one address a second in total.
    fn renew_neighbours(&mut self) {
        self.iface.forget_neighbours();
        for (ip, mac) in self.stack.neighbours.known_v6() {
            self.iface.put(FrameBuf::new(&nd::advertisement(mac, ip, None)));
        }
    }

    /// Calls the stack and the applications until none has more to do.
    fn run(&mut self, now: Time) {
        let at = instant(now);
        self.addresses.poll(now, &mut self.stack, &mut self.iface);
        if self.pings.mark_silent(now, &mut self.stack) {
            self.renew_neighbours();
        }
        let Host { apps, stack, iface, sockets, addresses, pings, .. } = self;
        loop {
            iface.poll(at, &mut stack.nic, sockets);
            let mut more = addresses.poll_dhcp(stack, (&mut *iface, &mut *sockets));
            more |= pings.poll(now, stack, sockets);
            if !apps.is_empty() {
                more |= apps.poll(now, stack);
            }
            if !more {
                break;
            }
        }
        self.nic_was_full = !stack.nic.has_room();
        stack.neighbours.ask(now, stack.ip.mac(), addresses.own(), &mut stack.nic);
        self.due = self.next_due(now);
    }

    fn next_due(&mut self, now: Time) -> Option<Time> {
        let stack =
            self.iface.poll_at(instant(now), &mut self.stack.nic, &self.sockets).map(|at| {
                let at = Time::from_nanos(at.total_micros().max(0) as u64 * 1000);
                // What is still due after a poll waits for something else: poll again soon.
                if at <= now { now + Span::from_micros(1000) } else { at }
            });
        let neighbours = self.stack.neighbours.deadline(self.addresses.own());
        let own = [self.pings.deadline(), self.addresses.deadline()];
        [stack, neighbours].into_iter().chain(own).flatten().min()
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

    /// Handles a free wire: sockets refused by the NIC try again. Returns whether the stack has to
    /// be called.
    fn wire_is_free(&mut self, now: Time) -> bool {
        self.busy = false;
        let refused = self.stack.nic.dcb_mut().is_some_and(DcbNic::has_news);
        self.nic_was_full || refused && self.apps.poll(now, &mut self.stack)
    }

    /// Sends the next frame if the wire is free.
    fn transmit(&mut self, now: Time, out: &mut Vec<Action>) {
        if let Some(bond) = &mut self.bond {
            return bond.transmit(now, &mut self.stack.nic, out);
        }
        if self.busy || !self.stack.nic.has_carrier() {
            return;
        }
        let Some(mut frame) = self.stack.nic.next(now) else {
            return;
        };
        self.reception.vlan().tag(&mut frame);
        self.busy = true;
        out.push(Action::Transmit { port: PORT, frame, complete_at: now, intact: true });
    }
}

impl Node for Host {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let mut run = false;
        match self.bonded(now, input, out) {
            Input::Frame { frame, complete_at, intact, .. } => {
                let nic = &mut self.stack.nic;
                let frame = (frame, intact);
                let taken = self.reception.arrived(now, frame, complete_at, (nic, out));
                run = taken.is_some_and(|frame| self.take(now, frame));
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
        while let Some(frame) = self.reception.take(now, &mut self.stack.nic) {
            run |= self.take(now, frame);
        }
        run |= self.due.is_some_and(|at| at <= now);
        if !run && self.apps.deadline().is_some_and(|at| at <= now) {
            run = self.apps.poll_due(now, &mut self.stack);
        }
        if run {
            self.run(now);
        }
        if let Some(dcb) = self.stack.nic.dcb_mut() {
            dcb.timeout(now);
        }
        self.serve_tcp(now);
        if self.stack.neighbours.has_new() {
            self.run(now);
            self.serve_tcp(now);
        }
        self.transmit(now, out);
        if let Some(dcb) = self.stack.nic.dcb_mut() {
            dcb.plan(now, self.busy);
        }
    }

    fn deadline(&self) -> Option<Time> {
        let dcb = self.stack.nic.dcb().and_then(DcbNic::deadline);
        let bond = self.bond.as_ref().and_then(|bond| bond.deadline());
        let earlier = |first: Time, at: Option<Time>| at.map_or(first, |at| at.min(first));
        let tcp = earlier(Time::MAX, self.stack.tcp.deadline());
        let own = earlier(earlier(tcp, self.due), self.apps.deadline());
        let first = earlier(earlier(earlier(own, self.reception.deadline()), dcb), bond);
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
        let nic_waits = || nic.dcb().is_some_and(DcbNic::waits);
        let full = self.nic_was_full || self.stack.tcp.has_ready();
        let waits = self.bond.is_some() || full || nic.has_frames() || nic_waits();
        if waits { Awaited::Every } else { Awaited::None }
    }
}

/// Returns simulated time as smoltcp's, rounded down to a microsecond.
fn instant(now: Time) -> Instant {
    Instant::from_micros(now.as_micros() as i64)
}
