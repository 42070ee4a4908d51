//! Handling of hosts' frames without a route: ARP, neighbour discovery, DHCP, groups, unicast, and
//! drops.

use super::answers::Requester;
use super::answers::answer;
use super::context::Cx;
use super::fate::Fate;
use super::hosts::Host;
use super::members::Pair;
use super::parts::Parts;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::{Drop, RouteKey};
use axon_wire::host_frame::{self, Arp, Kind};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::message::{HostFrame, Message, Target};
use axon_wire::nd::Nd;
use axon_wire::{MacAddr, PortNo, membership};
use core::net::IpAddr;
use smoltcp::wire::ArpOperation;

impl Parts {
    /// Learns from a host's frame and handles it by its kind. The error is the drop reason.
    pub(super) fn serve(&mut self, cx: &mut Cx, port: PortNo, frame: &[u8]) -> Result<Fate, Drop> {
        let header = (MacAddr::destination_of(frame), MacAddr::source_of(frame));
        let (Some(destination), Some(source)) = header else {
            return Err(Drop::Malformed);
        };
        if frame.len() < ETHERNET_BYTES || !source.is_unicast() {
            return Err(Drop::Malformed);
        }
        if frame.len() > cx.settings.frame_bytes_max {
            return Err(Drop::Oversized);
        }
        let from_host = cx.ports.is_host(port) && cx.settings.is_host_mac(source);
        if !from_host || self.bonds.is_blocked(port) || !self.learn(cx, port, source) {
            return Err(Drop::Refused);
        }
        if let Some(done) = self.services.configuration(cx, &self.hosts, (port, source), frame) {
            return done;
        }
        let to_us = destination == MacAddr::BROADCAST || destination == cx.settings.server.mac;
        if destination.is_multicast()
            && let Some(read) = membership::read(frame)
        {
            return self.groups.membership(cx, (port, source), read).map(|()| Fate::Served);
        }
        match host_frame::classify(frame) {
            Kind::Arp(arp) => {
                self.arp(cx, port, source, arp)?;
                let is_reply = arp.operation == ArpOperation::Reply;
                Ok(self.answer_to_owner(port, destination, is_reply))
            }
            Kind::Nd(nd) => {
                let is_reply = matches!(nd, Nd::Advertisement { .. });
                self.neighbour_message(cx, port, source, nd)?;
                Ok(self.answer_to_owner(port, destination, is_reply))
            }
            Kind::BadArp | Kind::BadNd => Err(Drop::Malformed),
            Kind::DhcpClient if to_us => {
                let frame = frame.to_vec();
                let relay = Message::DhcpRelay(HostFrame { port, frame });
                cx.out.push(Effect::ToController(relay));
                Ok(Fate::Served)
            }
            _ if destination == cx.settings.server.mac => {
                self.services.ping.answer(cx, port, frame)
            }
            _ if destination.is_multicast() => self.group_frame(cx, port, frame),
            _ if !cx.settings.is_host_mac(destination) => Err(Drop::Refused),
            _ => {
                let hint = host_frame::destination_ip(frame);
                self.unicast(cx, port, (source, destination), hint)
            }
        }
    }

    /// Handles an ARP packet from a host. All of them are terminated here, unicast ones too,
    /// because hosts refresh their caches by unicast (thesis §4.1.1).
    fn arp(&mut self, cx: &mut Cx, port: PortNo, source: MacAddr, arp: Arp) -> Result<(), Drop> {
        let probe = arp.sender_ip.is_unspecified();
        let sane = arp.sender_mac == source
            && (probe || host_frame::is_host_ip(arp.sender_ip))
            && arp.sender_ip != cx.settings.server.ip;
        if !sane {
            return Err(Drop::Refused);
        }
        if !probe {
            self.hosts.learn_ip(
                cx,
                (&mut self.search, &mut self.groups),
                source,
                arp.sender_ip.into(),
            );
        }
        let requester = Requester { mac: source, ip: arp.sender_ip.into() };
        match arp.operation {
            ArpOperation::Reply => self.target_answered(cx, port, source, arp.sender_ip.into()),
            ArpOperation::Request if arp.sender_ip == arp.target_ip => {}
            ArpOperation::Request if arp.target_ip == cx.settings.server.ip => {
                answer(cx, port, requester, cx.settings.server.mac, cx.settings.server.ip.into());
            }
            ArpOperation::Request if host_frame::is_host_ip(arp.target_ip) => {
                self.resolve(cx, port, requester, arp.target_ip.into());
            }
            _ => return Err(Drop::Refused),
        }
        Ok(())
    }

    /// Returns the fate of a reply to a remote host, whose own MAC address was in the query. It
    /// would take the route to that host unless hosts of this port were given another MAC address
    /// for it, so it is forwarded in software (thesis 000 §4.1.1).
    fn answer_to_owner(&self, port: PortNo, destination: MacAddr, is_reply: bool) -> Fate {
        let key = (port, RouteKey::to(destination));
        let flow = self.flows.live.get(&key).filter(|_| is_reply);
        let given_another = self.flows.tables.address(key) != key;
        flow.filter(|_| given_another)
            .map_or(Fate::Served, |flow| Fate::Forward(flow.route.clone()))
    }

    /// Handles a unicast frame that missed: forwards it on a software route, or queues it while its
    /// route is looked up.
    ///
    /// `hint` is the destination IP address.
    pub(super) fn unicast(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        (source, destination): (MacAddr, MacAddr),
        hint: Option<IpAddr>,
    ) -> Result<Fate, Drop> {
        if let Some(fate) = self.by_software(cx, port, (source, destination), hint) {
            return Ok(fate);
        }
        self.over(cx, port, (source, destination), hint)?;
        if self.hosts.is_on(destination, port) && !self.recalls.seems_moved(port, destination) {
            return Err(Drop::Refused);
        }
        let own = |host: &Host| host.ips.ipv4().map(IpAddr::V4).or(host.ips.newest());
        let source_ip = self.hosts.get(source).and_then(own);
        match self.setups.begin(
            cx,
            &mut self.flows,
            (port, Target::Mac(destination), source),
            source_ip,
            hint,
        ) {
            true => Ok(Fate::Wait(destination)),
            false => Err(Drop::NoRoute),
        }
    }

    /// Handles a host's frame to a group or broadcast, within the rate of its port.
    fn group_frame(&mut self, cx: &mut Cx, port: PortNo, frame: &[u8]) -> Result<Fate, Drop> {
        let pair = self.groups.admit(cx, port, frame)?;
        self.send_to_group(cx, port, pair)
    }

    /// Copies a frame that waited for its list.
    pub(super) fn waited_for_list(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        frame: &[u8],
    ) -> Result<Fate, Drop> {
        let (source, group) = self.groups.pair_of(frame)?;
        if !self.hosts.is_on(source, port) {
            return Err(Drop::Refused);
        }
        self.send_to_group(cx, port, (source, group))
    }

    /// Makes the copies of a frame: each takes its route, or waits for it.
    fn send_to_group(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) -> Result<Fate, Drop> {
        let Some(hosts) = self.groups.receivers(cx, port, pair)? else {
            return Ok(Fate::Wait(membership::mac_of(pair.1)));
        };
        let mut copies = Vec::new();
        for host in hosts {
            match self.unicast(cx, port, (pair.0, host), None) {
                Ok(fate) => copies.push(fate),
                Err(_) => cx.counters.group_copies_lost += 1,
            }
        }
        if copies.is_empty() {
            return Err(Drop::Broadcast);
        }
        cx.counters.group_frames += 1;
        cx.counters.group_copies += copies.len() as u64;
        Ok(Fate::Copies(copies))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use axon_wire::priority::Priority;
    use axon_wire::vlan::VlanTag;

    #[test]
    fn dhcp_goes_to_the_controller_by_broadcast_and_by_unicast_to_the_server() {
        let mut bench = Bench::new();
        for to in [MacAddr::BROADCAST, SERVER.mac] {
            let frame = dhcp_frame(to, mac(1), (68, 67), b"discover");
            let effects = bench.frame(0, &frame);
            let relay = Message::DhcpRelay(HostFrame { port: PortNo(0), frame });
            assert_eq!(effects.last(), Some(&Effect::ToController(relay)));
        }
        let from_server = dhcp_frame(MacAddr::BROADCAST, mac(1), (67, 68), b"offer");
        assert_eq!(bench.frame(0, &from_server), []);
        assert_eq!(bench.last_drop(), Some(Drop::Broadcast));
    }

    #[test]
    fn a_priority_tag_hides_neither_arp_nor_dhcp_and_a_vlan_is_not_served() {
        let tagged = |plain: &[u8], vid| {
            let tag = VlanTag { vid, ..VlanTag::of_priority(Priority::MAX) };
            [&plain[..12], &tag.emit(), &plain[12..]].concat()
        };
        let mut bench = Bench::new();
        let request = asked(&bench.frame(0, &tagged(&arp_request(1, 9), 0)));
        assert_eq!(
            (request.source_ip, request.target),
            (Some(ip(1).into()), Target::Ip(ip(9).into()))
        );
        let discover = dhcp_frame(MacAddr::BROADCAST, mac(2), (68, 67), b"discover");
        let frame = tagged(&discover, 0);
        let effects = bench.frame(1, &frame);
        let relay = Message::DhcpRelay(HostFrame { port: PortNo(1), frame });
        assert_eq!(effects.last(), Some(&Effect::ToController(relay)));
        for (port, plain) in [(0, arp_request(1, 8)), (1, discover)] {
            bench.frame(port, &tagged(&plain, 1));
            assert_eq!(bench.last_drop(), Some(Drop::Broadcast));
        }
    }

    #[test]
    fn the_servers_address_is_answered_for_and_its_other_frames_are_refused() {
        let mut bench = Bench::new();
        let effects =
            bench.frame(0, &host_frame::request(mac(1), ip(1), MacAddr::BROADCAST, SERVER.ip));
        let [(PortNo(0), arp)] = arps(&effects)[..] else { panic!("{effects:?}") };
        assert_eq!((arp.sender_mac, arp.sender_ip), (SERVER.mac, SERVER.ip));
        assert_eq!(bench.frame(0, &udp_frame(SERVER.mac, mac(1), 0)), []);
        assert_eq!(bench.last_drop(), Some(Drop::Refused));
    }

    #[test]
    fn other_broadcast_and_broken_frames_end_here() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let multicast = MacAddr([0x33, 0x33, 0, 0, 0, 1]);
        let mut bad_arp = arp_request(1, 9);
        bad_arp[14] = 9;
        let cases = [
            (udp_frame(multicast, mac(1), 0), Drop::Broadcast),
            (udp_frame(MacAddr::BROADCAST, mac(1), 0), Drop::Broadcast),
            (bad_arp, Drop::Malformed),
            (alloc::vec![2; 13], Drop::Malformed),
            (alloc::vec![2; 1515], Drop::Oversized),
            (udp_frame(mac(1), mac(1), 0), Drop::Refused),
        ];
        for (frame, reason) in cases {
            assert_eq!(bench.frame(0, &frame), []);
            assert_eq!(bench.dropped.pop(), Some((PortNo(0), reason, frame)));
        }
        assert!(bench.is_empty());
    }
}
