//! A host's ARP and neighbour discovery beside its stack: requests per neighbour, announcements,
//! and received packets.
//!
//! A kernel repeats a request for each neighbour independently, once per interval (Linux:
//! `retrans_time_ms`, one second). smoltcp has a single interval for all neighbours, so a host with
//! many would seem slow for a reason unrelated to the fabric. These requests are sent beside those
//! of the stack, whose cache is filled by the answers.

use crate::ipv6::Ipv6;
use crate::nic::Nic;
use axon_wire::constants::ethertype::IPV6;
use axon_wire::nd::{self, Nd};
use axon_wire::{MacAddr, Span, Time, host_frame};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress,
    EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet, UdpPacket,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Source addresses of a host's requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own<'a> {
    pub(crate) v4: Option<Ipv4Addr>,
    pub(crate) v6: Option<&'a Ipv6>,
}

/// Neighbours wanted by the host's applications, and their known addresses.
#[derive(Debug)]
pub(crate) struct Neighbours {
    interval: Span,
    known: BTreeMap<IpAddr, MacAddr>,
    /// Unresolved addresses and the time of the next request for each.
    unknown: BTreeMap<IpAddr, Time>,
    /// True if an address was added that [`Neighbours::ask`] has not seen.
    has_new: bool,
}

/// Maximum number of unresolved addresses at which the sender of a stray segment is resolved.
const STRAYS_MAX: usize = 16;

impl Neighbours {
    pub(crate) fn new(interval: Span) -> Neighbours {
        Neighbours { interval, known: BTreeMap::new(), unknown: BTreeMap::new(), has_new: false }
    }

    /// Marks `ip` as wanted by an application.
    pub(crate) fn want(&mut self, ip: impl Into<IpAddr>) {
        let ip = ip.into();
        if !self.known.contains_key(&ip) && !self.unknown.contains_key(&ip) {
            self.unknown.insert(ip, Time::ZERO);
            self.has_new = true;
        }
    }

    /// Returns the MAC of the sender of a stray segment. Resolves the sender if it is unknown and
    /// few addresses are unresolved: anyone may send such segments.
    pub(crate) fn stray(&mut self, ip: IpAddr) -> Option<MacAddr> {
        if self.unknown.len() < STRAYS_MAX {
            self.want(ip);
        }
        self.known(ip)
    }

    /// Returns whether [`Neighbours::ask`] has to be called now.
    pub(crate) const fn has_new(&self) -> bool {
        self.has_new
    }

    /// Returns the MAC of `ip`, if it is known.
    pub(crate) fn known(&self, ip: impl Into<IpAddr>) -> Option<MacAddr> {
        self.known.get(&ip.into()).copied()
    }

    /// Returns the IPv6 addresses with known MACs, and these MACs.
    pub(crate) fn known_v6(&self) -> impl Iterator<Item = (Ipv6Addr, MacAddr)> {
        self.known.iter().filter_map(|(ip, &mac)| match ip {
            IpAddr::V6(ip) => Some((*ip, mac)),
            IpAddr::V4(_) => None,
        })
    }

    /// Marks `ip` as wanted if `still`; otherwise stops its requests.
    pub(crate) fn wanted(&mut self, ip: IpAddr, still: bool) {
        if still {
            self.want(ip);
        } else {
            self.unknown.remove(&ip);
        }
    }

    /// Requests a known address again. Returns whether it was known.
    pub(crate) fn mark_stale(&mut self, ip: IpAddr) -> bool {
        let known = self.known.remove(&ip).is_some();
        self.want(ip);
        known
    }

    /// Clears all learned addresses.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Sends the due requests, for neighbours of the address families in which the host has an
    /// address.
    pub(crate) fn ask(&mut self, now: Time, mac: MacAddr, own: Own<'_>, nic: &mut Nic) {
        self.has_new = false;
        for (&target, next) in &mut self.unknown {
            if *next > now {
                continue;
            }
            match (target, own.v4) {
                (IpAddr::V4(target), Some(ip)) => request(mac, ip, target, nic),
                (IpAddr::V4(_), None) => continue,
                (IpAddr::V6(target), _) => {
                    let Some(ip) = own.v6.and_then(|v6| v6.source_for(target)) else { continue };
                    nic.put(&nd::solicitation((mac, ip), None, target));
                }
            }
            *next = now + self.interval;
        }
    }

    /// Returns when the next request is due.
    pub(crate) fn deadline(&self, own: Own<'_>) -> Option<Time> {
        let has_v6 = own.v6.is_some_and(|v6| v6.valid().next().is_some());
        let asks = |ip: &IpAddr| if ip.is_ipv4() { own.v4.is_some() } else { has_v6 };
        self.unknown.iter().filter(|(ip, _)| asks(ip)).map(|(_, &at)| at).min()
    }

    /// Processes a received frame. Returns whether a known address has moved to another MAC.
    pub(crate) fn receive(&mut self, frame: &[u8], own: Own<'_>) -> bool {
        own.v6.is_some() && self.receive_v6(frame) || self.receive_arp(frame, own.v4)
    }

    /// Processes a neighbour advertisement for a wanted or known address. Returns whether a known
    /// address has moved to another MAC.
    fn receive_v6(&mut self, frame: &[u8]) -> bool {
        let Some((IPV6, packet)) = host_frame::contents(frame) else { return false };
        let Some(Some(Nd::Advertisement { target, target_mac: Some(mac) })) = nd::parse(packet)
        else {
            return false;
        };
        let ip = IpAddr::V6(target);
        let before = self.known.get(&ip).copied();
        if self.unknown.remove(&ip).is_none() && before.is_none() {
            return false;
        }
        self.known.insert(ip, mac);
        before.is_some_and(|before| before != mac)
    }

    /// Processes an ARP frame to this host or to all. Returns whether a known address has moved to
    /// another MAC.
    fn receive_arp(&mut self, frame: &[u8], own: Option<Ipv4Addr>) -> bool {
        let Some((sender_ip, sender, target)) = parse_arp(frame) else {
            return false;
        };
        let gratuitous = sender_ip == target;
        if Some(target) != own && !gratuitous {
            return false;
        }
        let sender_ip = IpAddr::V4(sender_ip);
        let before = self.known.get(&sender_ip).copied();
        if gratuitous && before.is_none() {
            return false;
        }
        self.unknown.remove(&sender_ip);
        self.known.insert(sender_ip, sender);
        gratuitous && before != Some(sender)
    }
}

/// Sends a gratuitous ARP request that announces the address (RFC 5227 clause 2.3).
pub(crate) fn announce(mac: MacAddr, ip: Ipv4Addr, nic: &mut Nic) {
    request(mac, ip, ip, nic);
}

fn request(mac: MacAddr, ip: Ipv4Addr, target: Ipv4Addr, nic: &mut Nic) {
    let arp = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr: EthernetAddress(mac.0),
        source_protocol_addr: ip,
        target_hardware_addr: EthernetAddress([0; 6]),
        target_protocol_addr: target,
    };
    nic.put(&arp_frame(arp, EthernetAddress(mac.0), EthernetAddress::BROADCAST));
}

/// Returns an ARP packet in a frame.
pub(crate) fn arp_frame(arp: ArpRepr, from: EthernetAddress, to: EthernetAddress) -> Vec<u8> {
    let ethernet = EthernetRepr { src_addr: from, dst_addr: to, ethertype: EthernetProtocol::Arp };
    let mut bytes = vec![0; ethernet.buffer_len() + arp.buffer_len()];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    ethernet.emit(&mut frame);
    arp.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
    bytes
}

/// Returns sender address, sender MAC and target address of an ARP frame.
fn parse_arp(frame: &[u8]) -> Option<(Ipv4Addr, MacAddr, Ipv4Addr)> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    if frame.ethertype() != EthernetProtocol::Arp {
        return None;
    }
    match ArpRepr::parse(&ArpPacket::new_checked(frame.payload()).ok()?).ok()? {
        ArpRepr::EthernetIpv4 {
            source_hardware_addr,
            source_protocol_addr,
            target_protocol_addr,
            ..
        } => Some((source_protocol_addr, MacAddr(source_hardware_addr.0), target_protocol_addr)),
        _ => None,
    }
}

/// Returns whether a frame carries a DHCP acknowledgement.
pub(crate) fn is_dhcp_ack(frame: &[u8]) -> bool {
    let message = || {
        let frame = EthernetFrame::new_checked(frame).ok()?;
        if frame.ethertype() != EthernetProtocol::Ipv4 {
            return None;
        }
        let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
        if packet.next_header() != IpProtocol::Udp {
            return None;
        }
        let datagram = UdpPacket::new_checked(packet.payload()).ok()?;
        if datagram.dst_port() != 68 {
            return None;
        }
        let message = DhcpPacket::new_checked(datagram.payload()).ok()?;
        Some(DhcpRepr::parse(&message).ok()?.message_type)
    };
    message() == Some(DhcpMessageType::Ack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_of_stray_segments_are_resolved_if_they_are_few() {
        let mut neighbours = Neighbours::new(Span::from_secs(1));
        for last in 0..200 {
            let stray = IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
            assert_eq!(neighbours.stray(stray), None);
        }
        assert_eq!(neighbours.unknown.len(), STRAYS_MAX);
        neighbours.want(Ipv4Addr::new(10, 0, 1, 1));
        assert!(neighbours.has_new() && neighbours.unknown.len() == STRAYS_MAX + 1);
    }
}
