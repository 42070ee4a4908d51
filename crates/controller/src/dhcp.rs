//! The DHCP server (RFC 2131, paper 001 §4.2.3).
//!
//! Clients are identified by hardware address. An address may also be reserved for a client
//! identifier. The server is the only one in its subnet, so it is authoritative. It refuses an
//! address that is wrong or in use by another client, and it confirms a free one. So a controller
//! that starts without state confirms the leases of its predecessor. Switches report the addresses
//! that hosts claim again, which keeps such a controller from leasing an address that another host
//! uses.
//!
//! A request changes state only if the host table has its client at the ingress port. A release or
//! decline also requires that the address is held by that client at that port.

use super::allocation::Allocation;
pub use super::allocation::Due;
use super::hosts::Place;
pub use super::leases4::{Holder, Lease, LeaseState};
use super::packet::{Grant, Request, reply};
use crate::config::DhcpConfig;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::config::ServerIdentity;
use axon_node::telemetry::DhcpCounters;
use axon_wire::{MacAddr, Span, Time};
use core::net::{IpAddr, Ipv4Addr};
use ipnet::Ipv4Net;
use smoltcp::wire::DhcpMessageType;

/// Result of a DHCP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Frame to send to the client.
    pub reply: Option<Vec<u8>>,
    /// Address leased to the client.
    pub leased: Option<Ipv4Addr>,
    /// Address released by the client.
    pub released: Option<Ipv4Addr>,
}

/// Result of checking whether a client may have an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Yes,
    No,
    /// The address is in the subnet and unused, but this server does not lease it.
    NotOurs,
}

/// Result of checking an address that the external DHCP server, a host in the fabric, has given to
/// a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// The address is now bound to the client.
    Bound,
    /// The server has already leased the address to another MAC address, namely that of a host with
    /// the same client identifier. That host keeps it, and no DHCPDECLINE is sent to the server.
    Leased,
    /// Another host uses the address without a lease, or no host can have it. It must be declined.
    InUse,
    /// The client's port holds the maximum number of addresses. This one must be released.
    PortFull,
}

/// Owner of a reserved address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    Mac(MacAddr),
    /// Host with this client identifier, unless another host with the same identifier is present.
    Client(Vec<u8>),
}

/// DHCP server of the fabric.
#[derive(Clone, Debug)]
pub struct DhcpServer {
    identity: ServerIdentity,
    config: DhcpConfig,
    subnet: Ipv4Net,
    allocation: Allocation,
    /// Owners of reserved addresses.
    reserved: BTreeMap<Ipv4Addr, Owner>,
    counters: DhcpCounters,
}

impl DhcpServer {
    /// Creates a server without leases. The pool excludes addresses outside the subnet, the
    /// subnet's network and broadcast addresses, the addresses of the server and the router, and
    /// reserved ones.
    pub fn new(identity: ServerIdentity, config: &DhcpConfig) -> DhcpServer {
        // A prefix length over 32 counts as 32.
        let subnet = Ipv4Net::new(identity.ip, config.prefix_len).unwrap_or(identity.ip.into());
        // The first and last addresses of a subnet are not host addresses, except in RFC 3021
        // subnets and host routes.
        let (first, last) = (subnet.network(), subnet.broadcast());
        let by_client = config.clients.iter().map(|(id, &ip)| (ip, Owner::Client(id.clone())));
        let by_mac = config.reservations.iter().map(|(&mac, &ip)| (ip, Owner::Mac(mac)));
        let reserved: BTreeMap<Ipv4Addr, Owner> = by_client.chain(by_mac).collect();
        let mut excluded: BTreeSet<Ipv4Addr> = reserved.keys().copied().collect();
        excluded.extend([first, last, identity.ip]);
        excluded.extend(config.router);
        let (pool_first, pool_last) = (config.pool_first.max(first), config.pool_last.min(last));
        DhcpServer {
            identity,
            config: config.clone(),
            subnet,
            allocation: Allocation::new(
                (pool_first, pool_last),
                excluded,
                config.leases_per_port_max,
            ),
            reserved,
            counters: DhcpCounters::default(),
        }
    }

    /// Removes these addresses from the pool, because they belong to tenants. A host then gets one
    /// of them by reservation only.
    pub fn withhold(&mut self, ips: impl Iterator<Item = Ipv4Addr>) {
        self.allocation.leases_mut().withhold(ips);
    }

    /// Returns the counters.
    pub fn counters(&self) -> DhcpCounters {
        DhcpCounters { reclaimed: self.allocation.reclaimed(), ..self.counters }
    }

    /// Returns all addresses that were ever offered, with their states.
    pub fn leases(&self) -> impl Iterator<Item = (Ipv4Addr, &Lease)> {
        self.allocation.leases().iter()
    }

    /// Returns whether a host may use its source address. It may if the address is outside the pool
    /// and not reserved for another host, or if it is the host's own. A free address of the pool
    /// becomes the host's own while the host is present, within the limit of its port. If the
    /// address belongs to another host, this host gets it when the other one gives it up, see
    /// [`DhcpServer::take_due`].
    pub fn claim(&mut self, now: Time, mac: MacAddr, at: Place, ip: Ipv4Addr) -> bool {
        match self.reserved.get(&ip) {
            Some(Owner::Mac(owner)) => *owner == mac,
            // ARP carries no client identifier, so the address belongs to the host by lease only.
            Some(Owner::Client(_)) if !self.allocation.leases().lasts_with(mac, ip) => false,
            Some(Owner::Client(_)) | None => self.allocation.claim(now, mac, at, ip),
        }
    }

    /// Returns whether an address belongs to a host by reservation, by lease, or because the host
    /// uses this pool address.
    pub(crate) fn is_given_to(&self, mac: MacAddr, ip: Ipv4Addr) -> bool {
        match self.reserved.get(&ip) {
            Some(Owner::Mac(owner)) => *owner == mac,
            Some(Owner::Client(_)) | None => self.allocation.leases().lasts_with(mac, ip),
        }
    }

    /// Returns whether an address belongs to another host, so that a claim by this host is refused.
    pub(crate) fn is_anothers(&self, mac: MacAddr, at: Place, ip: Ipv4Addr) -> bool {
        match self.reserved.get(&ip) {
            Some(Owner::Mac(owner)) => *owner != mac,
            Some(Owner::Client(_)) if !self.allocation.leases().lasts_with(mac, ip) => true,
            Some(Owner::Client(_)) | None => self.allocation.leases().is_anothers(mac, at, ip),
        }
    }

    /// Returns whether an address is a host address: it is in the subnet, is not the server's, and
    /// is neither the network nor the broadcast address if the subnet has these (RFC 3021).
    pub(crate) fn is_host_ip(&self, ip: Ipv4Addr) -> bool {
        let subnet = &self.subnet;
        let ends = subnet.prefix_len() < 31 && (ip == subnet.network() || ip == subnet.broadcast());
        subnet.contains(&ip) && !ends && ip != self.identity.ip
    }

    /// Restores a stored address. `shown_at` is the owner's port in the host table. Returns whether
    /// this server may lease the address to that owner.
    pub(crate) fn restore(
        &mut self,
        now: Time,
        ip: Ipv4Addr,
        lease: Lease,
        shown_at: Option<Place>,
    ) -> bool {
        let fits = match self.reserved.get(&ip) {
            Some(Owner::Mac(owner)) => *owner == lease.holder.mac,
            Some(Owner::Client(id)) => *id == lease.holder.client_id,
            // An external server has its own pool of addresses.
            None if self.config.relay.is_some() => self.is_host_ip(ip),
            None => self.allocation.in_pool(ip),
        };
        let fits = fits && self.allocation.leases().get(ip).is_none();
        if fits {
            self.allocation.restore(now, ip, lease, shown_at);
        }
        fits
    }

    /// Returns the state of an address and its owner, or `None` if the address was never offered.
    pub fn lease(&self, ip: Ipv4Addr) -> Option<&Lease> {
        self.allocation.leases().get(ip)
    }

    /// Returns the addresses whose stored entry may have changed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<Ipv4Addr> {
        self.allocation.leases_mut().take_changed()
    }

    /// Returns the address that a client has by lease or reservation.
    pub fn address_of(&self, mac: MacAddr) -> Option<Ipv4Addr> {
        let leased = || self.allocation.leases().of(mac).map(|(ip, _)| ip);
        self.config.reservations.get(&mac).copied().or_else(leased)
    }

    /// Records that a host which used an address without a lease no longer uses it.
    pub(crate) fn abandon(&mut self, now: Time, mac: MacAddr, ip: Ipv4Addr) {
        self.allocation.abandon(now, mac, ip);
    }

    /// Records the port where the host table has a host, or that it has none. `ips` are the
    /// addresses of the host.
    pub fn shown(&mut self, now: Time, mac: MacAddr, at: Option<Place>, ips: &[IpAddr]) {
        self.allocation.shown(now, mac, at, ips);
    }

    /// Returns the actions due by `now`.
    pub fn take_due(&mut self, now: Time) -> Due {
        self.allocation.expire(now);
        self.allocation.take_due()
    }

    /// Returns when to call [`DhcpServer::take_due`] next, if nothing else happens.
    pub fn deadline(&self) -> Option<Time> {
        self.allocation.deadline()
    }

    /// Parses a frame from a host. Returns `None` and counts the frame if it is not a request from
    /// its sender.
    pub fn read(&mut self, frame: &[u8]) -> Option<Request> {
        let request = Request::parse(frame);
        self.counters.malformed += u64::from(request.is_none());
        request
    }

    /// Handles a request received at `place`. `here` is true if the host table has the client at
    /// that port. If it is false, the request can only end a lease.
    pub fn serve(&mut self, now: Time, place: Place, here: bool, request: &Request) -> Served {
        self.allocation.expire(now);
        let client = Holder { mac: request.mac, client_id: request.client_id.clone(), place };
        let mut served = Served { reply: None, leased: None, released: None };
        match request.kind {
            DhcpMessageType::Discover => {
                served.reply = self.discover(now, client, here, request);
            }
            DhcpMessageType::Request => self.request(now, client, here, request, &mut served),
            DhcpMessageType::Decline if self.is_for_us(request) => {
                let ip = request.requested;
                served.released =
                    ip.filter(|&ip| here && self.allocation.decline(now, &client, ip));
                self.count(served.released.is_some(), |counters| &mut counters.declined);
            }
            DhcpMessageType::Release if self.is_for_us(request) => {
                let ip = Some(request.ciaddr);
                served.released =
                    ip.filter(|&ip| here && self.allocation.release(now, &client, ip));
                self.count(served.released.is_some(), |counters| &mut counters.released);
            }
            DhcpMessageType::Inform if self.subnet.contains(&request.ciaddr) => {
                let grant = self.grant(Ipv4Addr::UNSPECIFIED, false);
                served.reply = Some(self.say(request, DhcpMessageType::Ack, Some(&grant)));
                self.counters.acks += 1;
            }
            _ => self.counters.silent += 1,
        }
        served
    }

    /// Counts an operation if it was done. Otherwise counts that the sender had no right to request
    /// it.
    fn count(&mut self, done: bool, of: impl Fn(&mut DhcpCounters) -> &mut u64) {
        let counter = if done { of(&mut self.counters) } else { &mut self.counters.misplaced };
        *counter += 1;
    }

    /// Handles a DHCPDISCOVER (RFC 2131 §4.3.1).
    fn discover(
        &mut self,
        now: Time,
        client: Holder,
        here: bool,
        request: &Request,
    ) -> Option<Vec<u8>> {
        let mac = client.mac;
        let own = self.allocation.leases().of(mac).map(|(ip, _)| ip);
        let own = own.filter(|&ip| self.allocation.leases().lasts_with(mac, ip));
        let ip = match self.reserved_for(&client).or(own) {
            Some(ip) => Some(ip),
            None if !here => {
                self.counters.misplaced += 1;
                return None;
            }
            None if !self.allocation.has_room(now, client.place) => {
                self.counters.port_full += 1;
                return None;
            }
            None => self.allocation.offer(now, client, request.requested),
        };
        let Some(ip) = ip else {
            self.counters.exhausted += 1;
            return None;
        };
        self.counters.offers += 1;
        let grant = self.grant(ip, true);
        Some(self.say(request, DhcpMessageType::Offer, Some(&grant)))
    }

    /// Handles a DHCPREQUEST (RFC 2131 §4.3.2). With a server identifier, the client has chosen one
    /// of the offers. Without one, it requests an address that it had before (INIT-REBOOT) or has
    /// now (renewing and rebinding, in `ciaddr`).
    fn request(
        &mut self,
        now: Time,
        client: Holder,
        here: bool,
        request: &Request,
        served: &mut Served,
    ) {
        if !self.is_for_us(request) {
            self.allocation.refuse(now, &client);
            self.counters.silent += 1;
            return;
        }
        let had = Some(request.ciaddr).filter(|ip| !ip.is_unspecified());
        let Some(ip) = request.requested.or(had) else {
            self.counters.silent += 1;
            return;
        };
        match self.judge(&client, ip) {
            Judgement::Yes if !here && !self.allocation.leases().lasts_with(client.mac, ip) => {
                self.counters.misplaced += 1;
            }
            Judgement::Yes if self.allocation.bind(now, client, ip, self.config.lease) => {
                self.counters.acks += 1;
                let grant = self.grant(ip, true);
                served.reply = Some(self.say(request, DhcpMessageType::Ack, Some(&grant)));
                served.leased = Some(ip);
            }
            Judgement::Yes => self.counters.port_full += 1,
            Judgement::NotOurs if request.server.is_none() => self.counters.silent += 1,
            Judgement::No | Judgement::NotOurs => {
                self.counters.naks += 1;
                served.reply = Some(self.say(request, DhcpMessageType::Nak, None));
            }
        }
    }

    /// Returns the address reserved for a client, by its identifier or else by its MAC address. If
    /// another host with the same identifier is present, that host keeps the address.
    fn reserved_for(&self, client: &Holder) -> Option<Ipv4Addr> {
        let by_client = self.config.clients.get(&client.client_id).copied();
        let free = |ip: &Ipv4Addr| {
            let lease = self.allocation.leases().get(*ip).filter(|lease| lease.is_held());
            lease.is_none_or(|lease| lease.holder.mac == client.mac || lease.shown_at.is_none())
        };
        let by_mac = || self.config.reservations.get(&client.mac).copied();
        by_client.filter(free).or_else(by_mac)
    }

    fn judge(&self, client: &Holder, ip: Ipv4Addr) -> Judgement {
        let mac = client.mac;
        let reserved = self.reserved_for(client);
        let mismatch = match (reserved, self.allocation.leases().of(mac)) {
            (Some(reserved), _) => reserved != ip,
            (None, Some((held, lease))) => match lease.state {
                LeaseState::Bound => held != ip,
                // At the same port, a host may change from a static address to a lease.
                LeaseState::InUse => held != ip && lease.holder.place != client.place,
                _ => false,
            },
            (None, None) => false,
        };
        if mismatch || !self.subnet.contains(&ip) {
            return Judgement::No;
        }
        if reserved.is_some() {
            return Judgement::Yes;
        }
        let others = self.reserved.contains_key(&ip) || ip == self.identity.ip;
        if others || self.allocation.leases().taken_from(mac, ip) {
            return Judgement::No;
        }
        if self.allocation.in_pool(ip) { Judgement::Yes } else { Judgement::NotOurs }
    }

    /// Returns whether a request names this server, or no server at all.
    fn is_for_us(&self, request: &Request) -> bool {
        request.server.is_none_or(|server| server == self.identity.ip)
    }

    /// Returns whether to relay a request to the external server, and counts a refusal. A new
    /// address needs room at the client's port.
    pub(super) fn may_relay(&mut self, now: Time, client: &Holder, request: &Request) -> bool {
        self.allocation.expire(now);
        if !self.is_for_us(request) {
            self.allocation.refuse(now, client);
            self.counters.silent += 1;
            return false;
        }
        let has_one =
            || self.allocation.leases().of(client.mac).is_some_and(|(_, lease)| lease.is_lasting());
        let wants = matches!(request.kind, DhcpMessageType::Discover | DhcpMessageType::Request);
        let is_new = wants && !has_one();
        if is_new && !self.allocation.has_room(now, client.place) {
            self.counters.port_full += 1;
            return false;
        }
        true
    }

    /// Records an address that the external server has given to a client. `in_use` is true if the
    /// host table has the address with another host.
    pub(super) fn given(
        &mut self,
        now: Time,
        to: Holder,
        (ip, in_use): (Ipv4Addr, bool),
        lease: Span,
    ) -> Given {
        self.allocation.expire(now);
        let holder = self.allocation.leases().get(ip).filter(|lease| lease.is_held());
        let leased = holder
            .is_some_and(|lease| lease.state == LeaseState::Bound && lease.holder.mac != to.mac);
        let reserved = match self.reserved.get(&ip) {
            Some(Owner::Mac(mac)) => *mac != to.mac,
            Some(Owner::Client(id)) => *id != to.client_id,
            None => false,
        };
        if leased {
            Given::Leased
        } else if reserved
            || in_use
            || self.allocation.leases().taken_from(to.mac, ip)
            || !self.is_host_ip(ip)
        {
            Given::InUse
        } else if self.allocation.bind(now, to, ip, lease) {
            Given::Bound
        } else {
            Given::PortFull
        }
    }

    /// Returns the counters that the relay agent updates.
    pub(super) const fn relaying(&mut self) -> &mut DhcpCounters {
        &mut self.counters
    }

    fn grant(&self, address: Ipv4Addr, lease: bool) -> Grant<'_> {
        Grant {
            address,
            lease_seconds: lease.then(|| whole_seconds(self.config.lease)),
            mask: self.subnet.netmask(),
            broadcast: self.subnet.broadcast(),
            router: self.config.router,
            dns: &self.config.dns,
            domain: self.config.domain.as_deref(),
            mtu: self.config.mtu,
        }
    }

    fn say(&self, to: &Request, kind: DhcpMessageType, grant: Option<&Grant<'_>>) -> Vec<u8> {
        reply(to, kind, (self.identity.mac, self.identity.ip), grant)
    }
}

/// Returns the duration of a lease in whole seconds, at least one. A duration that does not fit is
/// infinite (RFC 2132 §9.2).
fn whole_seconds(lease: Span) -> u32 {
    u32::try_from(lease.as_millis() / 1_000).unwrap_or(u32::MAX).max(1)
}
