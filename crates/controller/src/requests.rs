//! Requests of hosts, forwarded by their switches, for routes (Axon-ARP) and addresses (DHCP). Each
//! is a datagram that is repeated until it is answered.

use super::conductor::Controller;
use super::flows::Origin;
use super::hosts::HostIndex;
use super::hosts::{Learned, Place};
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_wire::dhcpv6::Datagram;
use axon_wire::message::{ArpRequest, HostFrame, Message, Target};
use axon_wire::{Incarnation, Time};
use core::net::IpAddr;

impl Controller {
    /// Handles phase II of Axon-ARP (paper 001 §4.2.2). The source is learned, routes are chosen in
    /// both directions and registered, and the request is forwarded to the target switch. An
    /// existing route is used unchanged, so repeated requests have no further effect. A request
    /// that cannot be fulfilled is counted and dropped; the switch repeats it. An unknown target is
    /// searched for (`seeking.rs`).
    pub fn arp_request(
        &mut self,
        now: Time,
        from: Incarnation,
        m: ArpRequest,
        out: &mut Vec<Effect>,
    ) {
        self.request(now, from, m, out);
        self.fulfil_found(now, out);
    }

    /// Handles a request, without others that wait for its source address.
    pub(super) fn request(
        &mut self,
        now: Time,
        switch_of: Incarnation,
        m: ArpRequest,
        out: &mut Vec<Effect>,
    ) {
        let Some(switch) = self.admit(now, switch_of, out) else {
            return;
        };
        let place = Place { switch, port: m.port };
        let source = match self.fwd.requested(now, place, m.source_mac, out) {
            Learned::Here(source) => source,
            Learned::Full => return self.fwd.too_many_hosts(now, place, out),
            Learned::Refused | Learned::Moved(_) => {
                self.counters.arp_misplaced += 1;
                return;
            }
        };
        let Some(m) = self.addresses.in_own_name(&mut self.fwd, now, source, m, out) else {
            return;
        };
        let target = match m.target {
            Target::Ip(ip) => self.fwd.net.hosts().by_ip(ip),
            Target::Mac(mac) => self.fwd.net.hosts().by_mac(mac),
        };
        let Some(target) = target else {
            self.counters.arp_unknown_target += 1;
            self.scans.record_failed(
                now,
                self.fwd.net.fabric(),
                place,
                (m.source_mac, m.target),
                out,
            );
            return self.fwd.seeking.seek(
                now,
                (&self.fwd.net, &mut self.fwd.routes, self.addresses.dhcp()),
                (switch_of, place),
                &m,
                out,
            );
        };
        if target == source {
            self.counters.arp_self += 1;
            return;
        }
        let there = self.fwd.net.reachable_port(target).unwrap_or(place);
        let (from, back) = (
            self.fwd.routes.origin(&self.fwd.net, place, source, target),
            self.fwd.routes.origin(&self.fwd.net, there, target, source),
        );
        let (Some(from), Some(back)) = (from, back) else {
            self.counters.arp_denied += 1;
            let failed = (m.source_mac, m.target);
            return self.scans.record_failed(now, self.fwd.net.fabric(), place, failed, out);
        };
        if self.fwd.net.needs_probe(target, out) {
            return;
        }
        if there != place && self.fwd.net.fabric().is_one_place(there, place) {
            // Hosts behind one bond reach each other without the fabric.
            self.counters.arp_self += 1;
            return;
        }
        self.route_both(now, (switch_of, &m), ([from, back], [target, source]), out);
    }

    /// Makes the routes of a request that do not exist, and answers it.
    fn route_both(
        &mut self,
        now: Time,
        (switch_of, m): (Incarnation, &ArpRequest),
        ([from, back], [target, source]): ([Origin; 2], [HostIndex; 2]),
        out: &mut Vec<Effect>,
    ) {
        let (place, there) = (from.at, back.at);
        let found = [
            self.fwd.routes.flows().find(from, target),
            self.fwd.routes.flows().find(back, source),
        ];
        let (made_at, count) = self.fwd.missing((place, there), found);
        if let Some((here, other)) = self.fwd.bounds.excess_of(
            self.fwd.routes.flows(),
            place,
            there.switch,
            &made_at[..count],
        ) {
            other
                .into_iter()
                .for_each(|other| self.fwd.bounds.note(now, self.fwd.net.fabric(), other, out));
            return self.fwd.over_bound(now, here, out);
        }
        let asked = match m.target {
            Target::Ip(ip) => Some(ip),
            Target::Mac(_) => None,
        };
        let round_wanted = self.fwd.routes.round_wanted();
        let answered = self
            .fwd
            .answer(m, switch_of, ([from, back], [target, source]), (found, asked), out)
            .is_some();
        if answered {
            self.counters.arp_answered += 1;
        } else {
            self.counters.arp_unreachable += 1;
            self.fwd.routes.unmake([(found[0], from, target), (found[1], back, source)]);
            self.fwd.routes.want_round(round_wanted);
        }
        self.plan_round(now);
    }

    /// Handles a host's DHCP frame. The reply leaves by the ingress port.
    pub fn dhcp_relay(
        &mut self,
        now: Time,
        from: Incarnation,
        m: HostFrame,
        out: &mut Vec<Effect>,
    ) {
        let Some(switch) = self.admit(now, from, out) else {
            return;
        };
        let place = Place { switch, port: m.port };
        let (fwd, addresses) = (&mut self.fwd, &mut self.addresses);
        if let Some(datagram) = Datagram::parse(&m.frame) {
            return match &mut self.relay6 {
                Some(relay) => relay.frame(fwd, addresses, now, place, &datagram, out),
                None => addresses.dhcp_mut().relaying().malformed += 1,
            };
        }
        if let Some(relay) = &mut self.relay {
            return relay.frame(fwd, addresses, now, place, &m.frame, out);
        }
        let Some(request) = self.addresses.dhcp_mut().read(&m.frame) else { return };
        let learned = self.fwd.requested(now, place, request.mac, out);
        if learned == Learned::Full {
            return self.fwd.too_many_hosts(now, place, out);
        }
        let here = matches!(learned, Learned::Here(_));
        let place = self.fwd.net.fabric().first_port(place);
        let done = self.addresses.dhcp_mut().serve(now, place, here, &request);
        if let Learned::Here(host) = learned {
            if let Some(ip) = done.released {
                self.addresses.disown(&mut self.fwd, now, host, IpAddr::V4(ip), out);
                self.fwd.cut_off(host, out);
            }
            if let Some(ip) = done.leased {
                self.addresses.own(&mut self.fwd, now, host, IpAddr::V4(ip), out);
            }
        }
        self.addresses.settle(&mut self.fwd, now, out);
        let Some(frame) = done.reply else { return };
        let Some(hops) = self.fwd.routes.paths_mut().path_to(&self.fwd.net, from.node) else {
            self.counters.dhcp_unreachable += 1;
            return;
        };
        let message = Message::HostFrame(HostFrame { port: m.port, frame });
        out.push(Effect::Routed { hops, to: from, message });
    }
}
