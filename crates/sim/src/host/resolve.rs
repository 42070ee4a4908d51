//! A host's ARP beside its stack: requests per neighbour, announcements, and received ARP.
//!
//! A kernel repeats a request for each neighbour on its own, once per interval (Linux:
//! `retrans_time_ms`, one second). smoltcp has one interval for all neighbours together, so
//! a host with many would seem slow for a reason that is not the fabric's. These requests
//! go out beside those of the stack, whose cache the answers fill.

use crate::host::nic::Nic;
use axon_wire::{MacAddr, Span, Time};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress,
    EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet, UdpPacket,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Whom the host's applications want to reach, and what is known of them.
#[derive(Debug)]
pub(crate) struct Neighbours {
    interval: Span,
    known: BTreeMap<Ipv4Addr, MacAddr>,
    /// Unknown ones, and when to ask for them (again).
    unknown: BTreeMap<Ipv4Addr, Time>,
}

impl Neighbours {
    pub(crate) fn new(interval: Span) -> Neighbours {
        Neighbours { interval, known: BTreeMap::new(), unknown: BTreeMap::new() }
    }

    /// An application wants to reach `ip`.
    pub(crate) fn want(&mut self, ip: Ipv4Addr) {
        if !self.known.contains_key(&ip) {
            self.unknown.entry(ip).or_insert(Time::ZERO);
        }
    }

    /// The MAC of `ip`, if it is known.
    pub(crate) fn known(&self, ip: Ipv4Addr) -> Option<MacAddr> {
        self.known.get(&ip).copied()
    }

    /// The same while `still`; otherwise `ip` is no longer asked for.
    pub(crate) fn wanted(&mut self, ip: Ipv4Addr, still: bool) {
        if still {
            self.want(ip);
        } else {
            self.unknown.remove(&ip);
        }
    }

    /// Asks for an address that was known again; says whether it was.
    pub(crate) fn mark_stale(&mut self, ip: Ipv4Addr) -> bool {
        let known = self.known.remove(&ip).is_some();
        self.want(ip);
        known
    }

    /// Forgets every address that was learned.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Sends the requests that are due.
    pub(crate) fn ask(&mut self, now: Time, mac: MacAddr, ip: Ipv4Addr, nic: &mut Nic) {
        for (&target, next) in &mut self.unknown {
            if *next <= now {
                *next = now + self.interval;
                request(mac, ip, target, nic);
            }
        }
    }

    /// When a request is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.unknown.values().copied().min()
    }

    /// Learns from an ARP frame to this host or to all; says whether an address that was
    /// known has moved to another MAC.
    pub(crate) fn receive(&mut self, frame: &[u8], own: Option<Ipv4Addr>) -> bool {
        let Some((sender_ip, sender, target)) = parse_arp(frame) else {
            return false;
        };
        let gratuitous = sender_ip == target;
        if Some(target) != own && !gratuitous {
            return false;
        }
        let before = self.known.get(&sender_ip).copied();
        if gratuitous && before.is_none() {
            return false;
        }
        self.unknown.remove(&sender_ip);
        self.known.insert(sender_ip, sender);
        gratuitous && before != Some(sender)
    }
}

/// Sends a gratuitous ARP request: this address is mine (RFC 5227 clause 2.3).
pub(crate) fn announce(mac: MacAddr, ip: Ipv4Addr, nic: &mut Nic) {
    request(mac, ip, ip, nic);
}

fn request(mac: MacAddr, ip: Ipv4Addr, target: Ipv4Addr, nic: &mut Nic) {
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(mac.0),
        dst_addr: EthernetAddress::BROADCAST,
        ethertype: EthernetProtocol::Arp,
    };
    let arp = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Request,
        source_hardware_addr: EthernetAddress(mac.0),
        source_protocol_addr: ip,
        target_hardware_addr: EthernetAddress([0; 6]),
        target_protocol_addr: target,
    };
    nic.build(ethernet.buffer_len() + arp.buffer_len(), |bytes| {
        let mut frame = EthernetFrame::new_unchecked(bytes);
        ethernet.emit(&mut frame);
        arp.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
    });
}

/// Sender's address, sender's MAC and target's address of an ARP frame.
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

/// Whether a frame carries a DHCP acknowledgement.
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
