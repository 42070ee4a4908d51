//! Ownership of addresses, and resolution of conflicts if two hosts claim the same address.
//!
//! The first holder keeps an address (RFC 5227 clause 2.4, RFC 4862 clause 5.4). An address from
//! the DHCP server, the relay or the store belongs to its host at once. If a host claims another
//! host's address in any other way, a conflict begins (`conflicts.rs`). The hosts of the holder's
//! switch are then queried for the address, except those at the claimant's port. If the holder
//! answers, the edge reports it again (`crates/edge/src/seek.rs`), and the conflict stands. A
//! standing conflict is logged, counted, and listed with both hosts. If the holder is silent three
//! times, the claimant gets the address. So a floating address can move, and so can the address of
//! a replaced NIC.
//!
//! While a conflict stands, the claimant's edge must report the next use of the address. To this
//! end, the hosts at that edge are queried too, except those at the claimant's port. The query
//! clears the edge's record that it has already reported the address. So a later claim counts, and
//! a failover after a conflict works.
//!
//! A host claims an address in ARP or neighbour discovery, which its edge reports. An edge's route
//! request with that source address is not an answer from the holder. It may be a repetition, or
//! the edge may have made it from stored state, and the host may have given up the address in the
//! meantime.
//!
//! In a fabric without a controller all switches receive a claim. The switches of the holder and of
//! the claimant send the queries. All switches receive the answer, because it is a report too.

use super::conflicts::{Claim, Conflicts, Due};
use super::dhcp::DhcpServer;
use super::forwarding::Forwarding;
use super::hosts::{Host, HostIndex, Learned, Place};
use super::leases6::Leases6;
use super::network::{Network, View};
use super::topology::SwitchIndex;
use crate::effect::Effect;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_node::Note;
use axon_node::telemetry::{ConflictingHost, ControllerCounters, IpConflict};
use axon_wire::message::{ArpRequest, HostFrame, Message, Seek, Target};
use axon_wire::{MacAddr, Time};
use core::net::IpAddr;

/// Addresses of hosts: their leases, and conflicts in which two hosts claim one address.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    dhcp: DhcpServer,
    /// IPv6 addresses leased by the DHCPv6 server.
    leases6: Leases6,
    /// Addresses claimed by two hosts.
    conflicts: Conflicts,
    /// Counts of refused claims, of conflicts, and of frames for unreachable switches.
    counters: ControllerCounters,
}

impl Addresses {
    /// Creates the state without conflicts.
    pub(super) fn new(dhcp: DhcpServer, leases6: Leases6) -> Addresses {
        let (conflicts, counters) = (Conflicts::default(), ControllerCounters::default());
        Addresses { dhcp, leases6, conflicts, counters }
    }

    pub(super) const fn dhcp(&self) -> &DhcpServer {
        &self.dhcp
    }

    pub(super) const fn dhcp_mut(&mut self) -> &mut DhcpServer {
        &mut self.dhcp
    }

    pub(super) const fn leases6(&self) -> &Leases6 {
        &self.leases6
    }

    pub(super) const fn leases6_mut(&mut self) -> &mut Leases6 {
        &mut self.leases6
    }

    /// Returns the counts of refused claims, of conflicts, and of frames for unreachable switches.
    pub(super) const fn counters(&self) -> &ControllerCounters {
        &self.counters
    }

    /// Returns when the next lease or conflict is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        [self.dhcp.deadline(), self.conflicts.deadline()].into_iter().flatten().min()
    }

    /// Assigns freed addresses to the hosts that wait for them, and queries hosts whose MAC address
    /// is at a different port from their IP address.
    pub(super) fn settle(&mut self, fwd: &mut Forwarding, now: Time, out: &mut Vec<Effect>) {
        let due = self.dhcp.take_due(now);
        for (ip, mac) in due.free {
            if let Some(host) = fwd.net.hosts().by_mac(mac) {
                self.own(fwd, now, host, IpAddr::V4(ip), out);
            }
        }
        for (place, mac, ip) in due.queries {
            fwd.net.hosts_mut().queried(now, mac, place);
            fwd.net.query(place, mac, IpAddr::V4(ip), out);
        }
    }

    /// Serves a host's DHCP frame, received at `place`. The reply leaves by that port.
    pub(super) fn serve(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        place: Place,
        frame: &[u8],
        out: &mut Vec<Effect>,
    ) {
        let Some(request) = self.dhcp.read(frame) else { return };
        let learned = fwd.requested(now, place, request.mac, out);
        if learned == Learned::Full {
            return fwd.bounds.too_many_hosts(now, &fwd.net, place, out);
        }
        let here = matches!(learned, Learned::Here(_));
        let done = self.dhcp.serve(now, fwd.net.fabric().first_port(place), here, &request);
        if let Learned::Here(host) = learned {
            if let Some(ip) = done.released {
                self.disown(fwd, now, host, IpAddr::V4(ip), out);
                fwd.cut_off(host, out);
            }
            if let Some(ip) = done.leased {
                self.own(fwd, now, host, IpAddr::V4(ip), out);
            }
        }
        self.settle(fwd, now, out);
        if let Some(frame) = done.reply {
            self.send(fwd, place, frame, out);
        }
    }

    /// Sends a frame out of a host port; returns whether its switch is reachable.
    pub(super) fn send(
        &mut self,
        fwd: &mut Forwarding,
        place: Place,
        frame: Vec<u8>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let to = fwd.net.graph().switch(place.switch).incarnation;
        let Some(hops) = fwd.routes.paths_mut().path_to(fwd.net.fabric(), to.node) else {
            self.counters.dhcp_unreachable += 1;
            return false;
        };
        let message = Message::HostFrame(HostFrame { port: place.port, frame });
        out.push(Effect::Routed { hops, to, message });
        true
    }

    /// Reports the location of a host to the address service.
    pub(super) fn show(&mut self, net: &Network, now: Time, host: HostIndex) {
        if let Some(host) = net.hosts().get(host) {
            self.dhcp.shown(now, host.mac, Some(net.fabric().first_port(host.place())), &host.ips);
        }
    }

    /// Handles a host's use of an address in ARP or neighbour discovery.
    pub(super) fn claimed(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        host: HostIndex,
        ip: IpAddr,
        out: &mut Vec<Effect>,
    ) {
        if self.is_rival(&fwd.net, now, host, ip) {
            return self.contest(fwd, now, host, ip, out);
        }
        let is_holder = fwd.net.hosts().by_ip(ip) == Some(host);
        self.own(fwd, now, host, ip, out);
        if is_holder && self.conflicts.answered(ip) {
            self.conflict_stands(fwd, ip, out);
        }
    }

    /// Returns a known host's request, without the source address if that address is not the host's
    /// own. Returns `None` if the source address belongs to another host. With a route to its
    /// target, the host would query the target directly, and the target would record the wrong MAC
    /// address for the IP address.
    pub(super) fn in_own_name(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        source: HostIndex,
        m: ArpRequest,
        out: &mut Vec<Effect>,
    ) -> Option<ArpRequest> {
        let Some(ip) = m.source_ip else { return Some(m) };
        let is_word = matches!(m.target, Target::Ip(_));
        match self.is_rival(&fwd.net, now, source, ip) {
            false => self.own(fwd, now, source, ip, out),
            // The edge has made the request from a frame, with an address from its stored state.
            true if !is_word => {}
            true => self.contest(fwd, now, source, ip, out),
        }
        let owner = fwd.net.hosts().by_ip(ip);
        if owner == Some(source) {
            return Some(m);
        }
        let has_others = fwd.net.hosts().get(source).is_some_and(|host| !host.ips.is_empty());
        if owner.is_some() && (is_word || !has_others) {
            self.counters.arp_not_owner += 1;
            return None;
        }
        Some(ArpRequest { source_ip: None, ..m })
    }

    /// Gives an address to a host. Edges answer ARP from their flows, so the flows towards the
    /// previous owner are removed; frames request them again by MAC address. If the host has too
    /// many addresses, the one it loses goes to the host that claims it.
    ///
    /// An address that is reserved for another host, leased to it, or in the pool and in use by it
    /// stays with that host. So does one that the policy reserves, or whose owner this host may not
    /// reach. The address of a gateway is valid at its uplink only.
    pub(super) fn own(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        host: HostIndex,
        ip: IpAddr,
        out: &mut Vec<Effect>,
    ) {
        let mut next = Some((host, ip));
        while let Some((host, ip)) = next {
            let surplus = self.own_one(fwd, now, host, ip, out);
            next = surplus.and_then(|ip| Some((self.heir(&fwd.net, ip)?, ip)));
        }
    }

    /// Gives an address to a host. Returns the address that the host had to give up for lack of
    /// room, if any.
    fn own_one(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        host: HostIndex,
        ip: IpAddr,
        out: &mut Vec<Effect>,
    ) -> Option<IpAddr> {
        let (mac, place) = fwd.net.hosts().get(host).map(|host| (host.mac, host.place()))?;
        let leases6 = &self.leases6;
        let place = fwd.net.fabric().first_port(place);
        let claims = |dhcp: &mut DhcpServer| match ip {
            IpAddr::V4(ip) => dhcp.claim(now, mac, place, ip),
            IpAddr::V6(ip) => leases6.holder(now, ip).is_none_or(|holder| holder == mac),
        };
        let may = fwd.net.may_own(host, mac, ip) && fwd.net.may_be_gateway(place, ip);
        if !may || !claims(&mut self.dhcp) {
            self.counters.ip_refused += 1;
            return None;
        }
        let owned = fwd.net.hosts_mut().own(host, ip, self.dhcp.address_of(mac).map(IpAddr::V4));
        fwd.seeking.found(ip);
        if let Some(before) = owned.before {
            fwd.cut_off(before, out);
        }
        if owned.before.is_some() || self.conflicts.claimant(ip) == Some(mac) {
            self.conflicts.end(ip);
        }
        if let Some(IpAddr::V4(surplus)) = owned.surplus {
            self.dhcp.abandon(now, mac, surplus);
        }
        owned.surplus
    }

    /// Returns whether a host has no right of its own to an address that another host holds.
    fn is_rival(&self, net: &Network, now: Time, host: HostIndex, ip: IpAddr) -> bool {
        let is_held = net.hosts().by_ip(ip).is_some_and(|owner| owner != host);
        let Some(host) = net.hosts().get(host).filter(|_| is_held) else { return false };
        !match ip {
            IpAddr::V4(ip) => self.dhcp.is_given_to(host.mac, ip),
            IpAddr::V6(ip) => self.leases6.holder(now, ip) == Some(host.mac),
        }
    }

    /// Handles a host's claim of an address that another host holds.
    fn contest(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        host: HostIndex,
        ip: IpAddr,
        out: &mut Vec<Effect>,
    ) {
        let Some((mac, at)) = fwd
            .net
            .hosts()
            .get(host)
            .map(|host| (host.mac, fwd.net.fabric().first_port(host.place())))
        else {
            return;
        };
        if !fwd.net.may_own(host, mac, ip) || !fwd.net.may_be_gateway(at, ip) {
            self.counters.ip_refused += 1;
            return;
        }
        // An address that was assigned to another host cannot be claimed. The claimant is next in
        // line for it.
        let is_given = match ip {
            IpAddr::V4(ip) => {
                self.dhcp.is_anothers(mac, at, ip) && !self.dhcp.claim(now, mac, at, ip)
            }
            IpAddr::V6(ip) => self.leases6.holder(now, ip).is_some(),
        };
        let claim = self.conflicts.claim(now, at, ip, mac);
        if is_given || claim == Claim::Refused {
            self.counters.ip_refused += 1;
        }
        if claim == Claim::Ask {
            self.ask_holder(fwd, ip, out);
        }
    }

    /// Sends the due queries to holders and claimants of addresses in conflict. Gives the addresses
    /// of silent holders to the claimants.
    pub(super) fn conflicts_due(&mut self, fwd: &mut Forwarding, now: Time, out: &mut Vec<Effect>) {
        while let Some((ip, due)) = self.conflicts.take_due(now) {
            if let Due::Listen(mac) = due {
                self.listen(fwd, ip, mac, out);
                continue;
            }
            let Some([holder, claimant]) = self.conflict_of(&fwd.net.view(), ip) else {
                self.conflicts.end(ip);
                continue;
            };
            match due {
                Due::AskHolder => self.ask_holder(fwd, ip, out),
                Due::AskClaimant => self.ask_at(fwd, ip, (claimant, holder), false, out),
                Due::Listen(_) => {}
                Due::Watch => self.ask_at(fwd, ip, (claimant, claimant), true, out),
                // The holder's switch may not have reported yet. A provisional host expires.
                Due::HolderSilent if self.is_provisional(&fwd.net, holder) => {}
                Due::HolderSilent => {
                    self.conflicts.end(ip);
                    self.own(fwd, now, claimant, ip, out);
                }
            }
        }
    }

    /// Asks the edge of a refused claimant to report its next use of the address.
    fn listen(&mut self, fwd: &mut Forwarding, ip: IpAddr, mac: MacAddr, out: &mut Vec<Effect>) {
        let host = fwd.net.hosts().by_mac(mac);
        if let Some(host) = host.filter(|&host| fwd.net.hosts().by_ip(ip) != Some(host)) {
            self.ask_at(fwd, ip, (host, host), true, out);
        }
    }

    fn is_provisional(&self, net: &Network, host: HostIndex) -> bool {
        net.hosts().get(host).is_some_and(Host::is_provisional)
    }

    /// Returns the holder and the claimant of an address in conflict. Returns `None` if one of them
    /// is gone, or if the claimant may not have the address.
    fn conflict_of(&self, net: &View, ip: IpAddr) -> Option<[HostIndex; 2]> {
        let mac = self.conflicts.claimant(ip)?;
        let (holder, claimant) = (net.hosts().by_ip(ip)?, net.hosts().by_mac(mac)?);
        let is_one = holder != claimant && net.may_own(claimant, mac, ip);
        is_one.then_some([holder, claimant])
    }

    /// Queries the hosts of the holder's switch for an address.
    fn ask_holder(&mut self, fwd: &mut Forwarding, ip: IpAddr, out: &mut Vec<Effect>) {
        if let Some([holder, claimant]) = self.conflict_of(&fwd.net.view(), ip) {
            self.ask_at(fwd, ip, (holder, claimant), false, out);
        }
    }

    /// Queries the hosts of a host's switch for an address, except those at the port of `but`. If
    /// the host is at that port too, the port is excluded only if `spared` is true.
    fn ask_at(
        &mut self,
        fwd: &mut Forwarding,
        ip: IpAddr,
        (of, but): (HostIndex, HostIndex),
        spared: bool,
        out: &mut Vec<Effect>,
    ) {
        let place = |host| fwd.net.hosts().get(host).map(Host::place);
        let (Some(of), Some(but)) = (place(of), place(but)) else { return };
        if fwd.net.fabric().is_elsewhere(of.switch) && fwd.net.fabric().is_elsewhere(but.switch) {
            return;
        }
        let (asked, but) = (fwd.net.fabric().ports_of(of), fwd.net.fabric().ports_of(but));
        let switches: BTreeSet<SwitchIndex> = asked.iter().map(|place| place.switch).collect();
        for switch in switches {
            let is_here = |place: &&Place| place.switch == switch;
            let is_apart = |place: &&Place| spared || !asked.contains(place);
            let except = but.iter().filter(is_here).find(is_apart).map(|place| place.port);
            self.seek_at(fwd, switch, Seek { ip, except }, out);
        }
    }

    fn seek_at(
        &mut self,
        fwd: &mut Forwarding,
        switch: SwitchIndex,
        m: Seek,
        out: &mut Vec<Effect>,
    ) {
        let to = fwd.net.graph().switch(switch).incarnation;
        if let Some(hops) = fwd.routes.paths_mut().path_to(fwd.net.fabric(), to.node) {
            out.push(Effect::Routed { hops, to, message: Message::Seek(m) });
        }
    }

    /// Counts and logs a conflict whose holder has answered.
    fn conflict_stands(&mut self, fwd: &mut Forwarding, ip: IpAddr, out: &mut Vec<Effect>) {
        let Some(conflict) = self
            .conflict_of(&fwd.net.view(), ip)
            .and_then(|of| self.described(&fwd.net.view(), ip, of))
        else {
            return;
        };
        self.counters.ip_conflicts += 1;
        let end = |host: ConflictingHost| (host.switch, host.port, host.mac);
        let (holder, claimant) = (end(conflict.holder), end(conflict.claimant));
        out.push(Effect::Note(Note::IpConflict { ip, holder, claimant }));
    }

    /// Describes a conflict. Returns `None` in a fabric without a controller, unless this is the
    /// claimant's switch, which reports the conflict.
    fn described(
        &self,
        net: &View,
        ip: IpAddr,
        [holder, claimant]: [HostIndex; 2],
    ) -> Option<IpConflict> {
        let end = |host: HostIndex| {
            let host = net.hosts().get(host)?;
            let Place { switch, port } = host.place();
            let switch = net.fabric().node(switch);
            Some(ConflictingHost { mac: host.mac, switch, port })
        };
        let at = net.hosts().get(claimant)?.place().switch;
        let (holder, claimant) = (end(holder)?, end(claimant)?);
        let conflict = IpConflict { ip, vlan: net.vlan(), holder, claimant };
        Some(conflict).filter(|_| !net.fabric().is_elsewhere(at))
    }

    /// Returns the standing conflicts: addresses that two hosts use.
    pub(super) fn ip_conflicts(&self, net: View) -> impl Iterator<Item = IpConflict> {
        let standing = self.conflicts.standing();
        standing.filter_map(move |(ip, _)| self.described(&net, ip, self.conflict_of(&net, ip)?))
    }

    /// Removes an address that a host has given up. Its claimant, if any, gets it.
    pub(super) fn disown(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        host: HostIndex,
        ip: IpAddr,
        out: &mut Vec<Effect>,
    ) {
        fwd.net.hosts_mut().disown(host, ip);
        self.inherit(fwd, now, ip, out);
    }

    /// Handles the removal of a host with these addresses. The claimants get the addresses, and
    /// conflicts that the host's own claims have caused end.
    pub(super) fn forgotten(
        &mut self,
        fwd: &mut Forwarding,
        now: Time,
        mac: MacAddr,
        ips: Vec<IpAddr>,
        out: &mut Vec<Effect>,
    ) {
        for ip in self.conflicts.claimed_by(mac) {
            self.conflicts.end(ip);
        }
        for ip in ips {
            self.inherit(fwd, now, ip, out);
        }
    }

    fn inherit(&mut self, fwd: &mut Forwarding, now: Time, ip: IpAddr, out: &mut Vec<Effect>) {
        if fwd.net.hosts().by_ip(ip).is_none()
            && let Some(heir) = self.heir(&fwd.net, ip)
        {
            self.own(fwd, now, heir, ip, out);
        }
    }

    /// Ends the conflict about an address that has no holder any more, and returns its claimant.
    fn heir(&mut self, net: &Network, ip: IpAddr) -> Option<HostIndex> {
        let claimant = self.conflicts.end(ip)?;
        net.hosts().by_mac(claimant)
    }

    /// Ends the conflicts about addresses that their claimants may no longer have.
    pub(super) fn end_conflicts(&mut self, net: &Network) {
        for ip in self.conflicts.all() {
            if self.conflict_of(&net.view(), ip).is_none() {
                self.conflicts.end(ip);
            }
        }
    }
}
