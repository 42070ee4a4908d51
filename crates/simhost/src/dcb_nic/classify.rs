//! Priorities of outgoing frames.

use crate::datagram::Headers;
use axon_wire::priority::Priority;
use axon_wire::vlan::VlanTag;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IPV4_HEADER_LEN, IpProtocol, Ipv4Packet, UdpPacket,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Configured priorities; those of other frames are 0.
#[derive(Debug, Default)]
pub(super) struct Classifier {
    /// Priority by TCP or UDP port, at either end.
    ports: BTreeMap<u16, Priority>,
    /// Priority of echo requests and replies by remote host.
    echoes: BTreeMap<Ipv4Addr, Priority>,
}

/// Classification of an outgoing frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) priority: Priority,
    /// Source and destination ports of TCP and UDP.
    pub(super) ports: Option<(u16, u16)>,
    pub(super) is_datagram: bool,
}

impl Classifier {
    /// Sets the priority of frames with this TCP or UDP port at either end.
    pub(super) fn set_port(&mut self, port: u16, priority: Priority) {
        self.ports.insert(port, priority);
    }

    /// Sets the priority of echo requests and replies to this host.
    pub(super) fn set_echo(&mut self, target: Ipv4Addr, priority: Priority) {
        self.echoes.insert(target, priority);
    }

    /// Returns the priority and the ports of an outgoing frame.
    pub(super) fn classify(&self, frame: &[u8]) -> Class {
        let plain = |priority| Class { priority, ports: None, is_datagram: false };
        if let Some(tag) = VlanTag::of_frame(frame) {
            return plain(tag.pcp);
        }
        let Some((ip, ports)) = first_fragment(frame) else {
            return plain(Priority::ZERO);
        };
        let (source, target) = (ports.src_port(), ports.dst_port());
        let of = |port: u16| self.ports.get(&port).copied();
        let protocol = ip.next_header();
        let priority = match protocol {
            IpProtocol::Icmp => self.echoes.get(&ip.dst_addr()).copied(),
            IpProtocol::Tcp | IpProtocol::Udp => of(target).or_else(|| of(source)),
            _ => None,
        };
        let has_ports = matches!(protocol, IpProtocol::Tcp | IpProtocol::Udp);
        Class {
            priority: priority.unwrap_or(Priority::ZERO),
            ports: has_ports.then_some((source, target)),
            is_datagram: protocol == IpProtocol::Udp,
        }
    }
}

/// Returns the header of an IPv4 packet without options that is not a later fragment, in an
/// untagged Ethernet frame, and the next four bytes, which are the ports of both UDP and TCP.
fn first_fragment(frame: &[u8]) -> Option<Headers<'_>> {
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    let head: &[u8; IPV4_HEADER_LEN + 4] = ethernet.payload().first_chunk()?;
    let (ip, ports) = head.split_at(IPV4_HEADER_LEN);
    let (ip, ports) = (Ipv4Packet::new_unchecked(ip), UdpPacket::new_unchecked(ports));
    let is_ip = ethernet.ethertype() == EthernetProtocol::Ipv4 && ip.version() == 4;
    let plain = is_ip && usize::from(ip.header_len()) == IPV4_HEADER_LEN && ip.frag_offset() == 0;
    plain.then_some((ip, ports))
}
