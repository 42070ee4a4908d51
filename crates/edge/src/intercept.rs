//! Hosts' frames without a route, by kind: ARP, neighbour discovery, DHCP, groups, unicast.

use super::answers::{AddressMessage, Content, Requester};
use super::context::Cx;
use super::nd;
use super::settings::Settings;
use axon_node::Drop;
use axon_wire::cn;
use axon_wire::host_frame::{self, Arp, Kind};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::membership::{self, Membership};
use axon_wire::{MacAddr, PortNo};
use smoltcp::wire::ArpOperation;

/// A host's frame.
#[derive(Debug)]
pub(super) enum Intercepted {
    Membership(Membership),
    /// ARP or neighbour discovery.
    Address(AddressMessage),
    /// DHCP to the fabric's own server.
    Dhcp,
    /// Other frame to the fabric's own MAC address.
    Own,
    /// Frame to a group, or broadcast.
    Group,
    /// Frame to another host.
    Unicast,
}

/// Returns the source and destination of a frame that a host may send at a port.
///
/// # Errors
/// The drop reason.
pub(super) fn header(cx: &Cx, port: PortNo, frame: &[u8]) -> Result<(MacAddr, MacAddr), Drop> {
    let header = (MacAddr::source_of(frame), MacAddr::destination_of(frame));
    let (Some(source), Some(destination)) = header else {
        return Err(Drop::Malformed);
    };
    if frame.len() < ETHERNET_BYTES || !source.is_unicast() {
        return Err(Drop::Malformed);
    }
    if frame.len() > cx.settings.frame_bytes_max + cn::tag_bytes(frame) {
        return Err(Drop::Oversized);
    }
    let from_host = cx.ports.is_host(port) && cx.settings.is_host_mac(source);
    from_host.then_some((source, destination)).ok_or(Drop::Refused)
}

/// Reads a frame with this header.
///
/// # Errors
/// The drop reason.
pub(super) fn read(
    settings: &Settings,
    (source, destination): (MacAddr, MacAddr),
    frame: &[u8],
) -> Result<Intercepted, Drop> {
    let to_us = destination == MacAddr::BROADCAST || destination == settings.server.mac;
    if destination.is_multicast()
        && let Some(read) = membership::read(frame)
    {
        return Ok(Intercepted::Membership(read));
    }
    Ok(match host_frame::classify(frame) {
        Kind::Arp(packet) => Intercepted::Address(arp(settings, source, packet)?),
        Kind::Nd(message) => Intercepted::Address(nd::read(settings, source, message)?),
        Kind::BadArp | Kind::BadNd => return Err(Drop::Malformed),
        Kind::DhcpClient if to_us => Intercepted::Dhcp,
        _ if destination == settings.server.mac => Intercepted::Own,
        _ if destination.is_multicast() => Intercepted::Group,
        _ if !settings.is_host_mac(destination) => return Err(Drop::Refused),
        _ => Intercepted::Unicast,
    })
}

/// Reads an ARP packet of a host. All of them are terminated at the edge, unicast ones too, because
/// hosts refresh their caches by unicast (thesis §4.1.1).
fn arp(settings: &Settings, source: MacAddr, arp: Arp) -> Result<AddressMessage, Drop> {
    let probe = arp.sender_ip.is_unspecified();
    let sane = arp.sender_mac == source
        && (probe || host_frame::is_host_ip(arp.sender_ip))
        && arp.sender_ip != settings.server.ip;
    if !sane {
        return Err(Drop::Refused);
    }
    let is_ours = arp.target_ip == settings.server.ip;
    let content = match arp.operation {
        ArpOperation::Reply => Content::Reply,
        ArpOperation::Request if arp.sender_ip == arp.target_ip => Content::Announcement,
        ArpOperation::Request if is_ours || host_frame::is_host_ip(arp.target_ip) => {
            Content::Request(arp.target_ip.into())
        }
        _ => Content::Refused,
    };
    Ok(AddressMessage { sender: Requester { mac: source, ip: arp.sender_ip.into() }, content })
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::effect::Effect;
    use axon_wire::message::{HostFrame, Message, Target};
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

    /// Returns a frame of this length with a priority tag, to a host that is not known.
    fn tagged(bytes: usize) -> alloc::vec::Vec<u8> {
        let mut frame = udp_frame(mac(9), mac(1), 0);
        frame.splice(12..12, [0x81, 0, 0x60, 0]);
        frame.resize(bytes, 0);
        frame
    }

    #[test]
    fn a_tag_comes_on_top_of_the_longest_frame() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let effects = bench.frame(0, &tagged(1518));
        assert!(bench.last_drop() != Some(Drop::Oversized) && !effects.is_empty(), "{effects:?}");
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
            (tagged(1519), Drop::Oversized),
            (udp_frame(mac(1), mac(1), 0), Drop::Refused),
        ];
        for (frame, reason) in cases {
            assert_eq!(bench.frame(0, &frame), []);
            assert_eq!(bench.dropped.pop(), Some((PortNo(0), reason, frame)));
        }
        assert!(bench.is_empty());
    }
}
