//! Masquerading at the edge: addresses given to hosts instead of a destination's own MAC address
//! when their port's table is full, and handling of frames to expired addresses (thesis 000 §3.2.1,
//! §4.1.1).
//!
//! Wherever a host would receive the MAC address of a destination, in an answer or in the query of
//! a remote host, it receives the masqueraded one if the destination has one at this port. Frames
//! that still miss are handled by destination address:
//!
//! - the destination's own MAC address, from a host that had it before: the frame is forwarded in
//!   software, and the host is sent the current address, at most once a second;
//! - an address that is given and not in the data plane: the frame is forwarded in software with
//!   the true MAC address;
//! - an expired address: the frame is dropped, and its sender is sent the current address, after a
//!   set-up if there is no route.

use super::answers::Requester;
use super::answers::answer_with;
use super::context::Cx;
use super::fate::Fate;
use super::flows::{Flows, Placement};
use super::parts::Parts;
use super::places::Key;
use axon_link::effect::Effect;
use axon_node::{Drop, RouteKey};
use axon_wire::host_frame;
use axon_wire::masquerade::index_of;
use axon_wire::{MacAddr, PortNo, Span};
use core::net::IpAddr;

/// Minimum interval at which a host is sent the current address of one destination.
const CORRECT_PAUSE: Span = Span::from_secs(1);

impl Parts {
    /// Returns the fate of a frame to `destination` that missed, if this port has a route for it.
    pub(super) fn by_software(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        (source, destination): (MacAddr, MacAddr),
        hint: Option<IpAddr>,
    ) -> Option<Fate> {
        let address = (port, RouteKey::to(destination));
        let owner = self.flows.tables.owner(address).unwrap_or(destination);
        let key = self.flows.key_of(port, source, owner);
        let flow = self.flows.live.get_mut(&key)?;
        flow.used = true;
        cx.counters.slow_path += 1;
        let route = flow.route.clone();
        if self.flows.tables.address(key).1.destination != destination {
            self.correct(cx, source, key, hint);
        }
        Some(match owner == destination {
            true => Fate::Forward(route),
            false => Fate::Readdress(route, owner),
        })
    }

    /// Sends a host at `key.0` the current address of a masqueraded destination, unless it was sent
    /// recently. `like` is an address of the family that the host uses.
    pub(super) fn correct(&mut self, cx: &mut Cx, host: MacAddr, key: Key, like: Option<IpAddr>) {
        let flow = self.flows.live.get(&key).and_then(|flow| flow.ip);
        let Some(place) = self.flows.tables.given_place(key) else { return };
        let same = |ip: &IpAddr| like.is_none_or(|like| like.is_ipv4() == ip.is_ipv4());
        let Some(ip) = flow.filter(same).or(place.ip(like)) else { return };
        let recently = place.corrected.is_some_and(|at| cx.now.since(at) < CORRECT_PAUSE);
        let Some(requester) = self.hosts.requester(host, ip).filter(|_| !recently) else { return };
        if let Some(place) = self.flows.tables.given_place(key) {
            place.corrected = Some(cx.now);
        }
        cx.counters.macs_corrected += 1;
        self.flows.show(cx, key.0, requester, key.1.destination, ip);
    }

    /// Handles a frame to an address of masqueraded form without a route. If this port has given
    /// it, its sender is sent the current one, and the frame is dropped. Otherwise it may be from
    /// before a restart, or a host's own: both lookups are tried.
    pub(super) fn over(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        (source, destination): (MacAddr, MacAddr),
        hint: Option<IpAddr>,
    ) -> Result<(), Drop> {
        let tables = &self.flows.tables;
        if index_of(destination).is_none() || !tables.can_masquerade() {
            return Ok(());
        }
        let former = tables.former((port, RouteKey::to(destination)));
        let ip = former.and_then(|place| place.ip(hint)).or(hint);
        let was_given = former.is_some();
        if let Some(ip) = ip.filter(|&ip| cx.settings.is_host_ip(ip))
            && let Some(requester) = self.hosts.requester(source, ip)
        {
            cx.counters.macs_corrected += 1;
            self.resolve(cx, port, requester, ip);
        }
        if was_given { Err(Drop::NoRoute) } else { Ok(()) }
    }
}

impl Flows {
    /// Sends a host an answer: `ip` is at the MAC address that its port has for `destination`. A
    /// host gets no answer for its own address.
    pub(super) fn show(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        requester: Requester,
        destination: MacAddr,
        ip: IpAddr,
    ) {
        if requester.mac != destination {
            let key = self.key_of(port, requester.mac, destination);
            let shown = self.tables.show(key, ip);
            answer_with(cx, port, requester, (shown, ip), cx.settings.advertise_neighbour(ip));
        }
    }

    /// Reserves the MAC address of a host of `port`, which is not given there meanwhile.
    pub(super) fn keep_own(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        if index_of(mac).is_some() {
            self.tables.occupy(port, mac);
            self.evade(cx, port, mac);
        }
    }

    /// Handles a MAC address in use by a host of `port` or one that its hosts reach. If it was
    /// given for another destination there, that gets another address, and the hosts of the port
    /// are sent it.
    pub(super) fn evade(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) {
        let Some(destination) = self.tables.owner((port, mac.into())) else {
            // A destination that had it before does not get it back.
            return self.tables.give_up(port, mac);
        };
        let key = (port, RouteKey::to(destination));
        if let Some(flow) = self.live.get_mut(&key).filter(|flow| flow.is_placed()) {
            flow.placement = Placement::Software;
            self.unplaced.insert(key);
            self.tables.take_out(cx, (port, mac.into()));
        }
        self.tables.give_up(port, mac);
        if !self.place(cx, key) {
            self.tables.reserve(key);
        }
        self.announce(cx, key);
    }

    /// Sends all hosts of a port the current MAC address of a destination.
    fn announce(&mut self, cx: &mut Cx, key: Key) {
        let Some(ip) = self.live.get(&key).and_then(|flow| flow.ip) else { return };
        let (port, mac) = (key.0, self.tables.show(key, ip));
        let frame = match ip {
            IpAddr::V4(ip) => host_frame::request(mac, ip, MacAddr::BROADCAST, ip),
            IpAddr::V6(of) => cx.settings.advertise_neighbour(ip)(mac, of, None),
        };
        cx.out.push(Effect::Host { port, frame });
    }
}

#[cfg(test)]
mod tests;
