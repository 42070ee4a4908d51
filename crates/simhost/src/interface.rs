//! The interface of a host's IP stack, created on demand.
//!
//! Datagrams and TCP do not use smoltcp, and nor do most hosts of a large fabric. An interface
//! takes 10 KiB, mostly for its neighbour cache. So only its configuration is kept here until there
//! is a socket, or an IP packet that it may have to answer. Until then ARP is answered here as the
//! interface would answer, and a few neighbours are kept for it. The time of creation has no
//! visible effect: an interface does nothing of its own.

use crate::device::Wire;
use crate::nic::Nic;
use crate::resolve::arp_frame;
use axon_wire::{FrameBuf, MacAddr};
use smoltcp::iface::{Config, Interface as IpInterface, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    HardwareAddress, Icmpv6Message, Icmpv6Packet, IpCidr, IpProtocol, Ipv4Cidr, Ipv4Packet,
    Ipv6ExtHeader, Ipv6ExtHeaderRepr, Ipv6HopByHopHeader, Ipv6HopByHopRepr, Ipv6OptionRepr,
    Ipv6Packet,
};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Maximum number of neighbours kept without an interface.
const NEIGHBOURS_MAX: usize = 8;

/// Neighbour that has sent an ARP packet to this host, and the time of its last one.
type Neighbour = (Instant, Ipv4Addr, EthernetAddress);

/// Interface, created or not.
pub(crate) struct Interface {
    mac: MacAddr,
    /// Seed of the random numbers.
    seed: u64,
    addresses: Vec<IpCidr>,
    /// Received frames to process.
    rx: VecDeque<FrameBuf>,
    /// Neighbours to add when the interface is created.
    neighbours: Vec<Neighbour>,
    made: Option<Box<IpInterface>>,
}

impl Interface {
    /// Returns an interface without an address.
    pub(crate) fn new(mac: MacAddr, seed: u64) -> Interface {
        let (addresses, rx, neighbours) = (Vec::new(), VecDeque::new(), Vec::new());
        Interface { mac, seed, addresses, rx, neighbours, made: None }
    }

    /// Sets the addresses, replacing all others. Clears the neighbours.
    pub(crate) fn set_addresses(&mut self, addresses: impl Iterator<Item = IpCidr>) {
        self.addresses = addresses.collect();
        self.addresses.shrink_to_fit();
        self.neighbours.clear();
        if let Some(made) = &mut self.made {
            enter_addresses(made, &self.addresses);
        }
    }

    /// Sets or removes the router for destinations outside the subnet. A router comes by DHCP,
    /// whose socket has created the interface.
    pub(crate) fn set_router(&mut self, router: Option<Ipv4Addr>) {
        let Some(made) = &mut self.made else { return };
        let routes = made.routes_mut();
        // The table has room for one route, which replaces the previous one.
        let _ = match router {
            Some(router) => routes.add_default_ipv4_route(router).ok().flatten(),
            None => routes.remove_default_ipv4_route(),
        };
    }

    /// Clears the MACs of all neighbours.
    pub(crate) fn forget_neighbours(&mut self) {
        self.neighbours.clear();
        if let Some(made) = &mut self.made {
            made.update_ip_addrs(|_| ());
        }
    }

    /// Queues a received frame.
    pub(crate) fn put(&mut self, frame: FrameBuf) {
        self.rx.push_back(frame);
    }

    /// Processes the queued frames, and lets sockets send.
    pub(crate) fn poll(&mut self, at: Instant, nic: &mut Nic, sockets: &mut SocketSet<'_>) {
        let has_sockets = has_any(sockets);
        if self.made.is_none() && !has_sockets {
            self.take_first(at, nic);
        }
        if has_sockets || nic.has_room() && !self.rx.is_empty() {
            self.make(at, nic);
            let Interface { made: Some(made), rx, .. } = self else { return };
            made.poll(at, &mut Wire { nic, rx }, sockets);
        }
    }

    /// Processes frames that do not need the interface, up to the first that does.
    fn take_first(&mut self, at: Instant, nic: &mut Nic) {
        // The interface takes no frame that it has no room to answer.
        while nic.has_room() {
            match self.rx.front().map(|frame| self.use_of(frame.bytes())) {
                Some(Use::Ignore) => {}
                Some(Use::Learn { ip, mac, answer }) if self.remember((at, ip, mac)) => {
                    answer.iter().for_each(|answer| nic.put(answer));
                }
                _ => break,
            }
            self.rx.pop_front();
        }
    }

    /// Returns how the interface would handle a frame.
    fn use_of(&self, frame: &[u8]) -> Use {
        let Ok(frame) = EthernetFrame::new_checked(frame) else { return Use::Ignore };
        let to = frame.dst_addr();
        if to.is_unicast() && to.0 != self.mac.0 {
            return Use::Ignore;
        }
        let is_ignored = match frame.ethertype() {
            EthernetProtocol::Arp => {
                return self.use_of_arp(frame.payload()).unwrap_or(Use::Ignore);
            }
            EthernetProtocol::Ipv4 => is_igmp(frame.payload()),
            EthernetProtocol::Ipv6 => is_mld_query(frame.payload()),
            EthernetProtocol::Unknown(_) => true,
        };
        if is_ignored { Use::Ignore } else { Use::Poll }
    }

    /// Returns how the interface would handle an ARP packet; `None` if it would ignore it.
    fn use_of_arp(&self, packet: &[u8]) -> Option<Use> {
        let packet = ArpRepr::parse(&ArpPacket::new_checked(packet).ok()?).ok()?;
        let ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: mac,
            source_protocol_addr: ip,
            target_protocol_addr: target,
            ..
        } = packet
        else {
            return None;
        };
        let mut own = self.addresses.iter().filter_map(as_v4);
        let is_near = own.clone().any(|own| own.contains_addr(&ip));
        let is_sound = ip_is_unicast(ip) && mac.is_unicast() && is_near;
        if !is_sound || !own.any(|own| own.address() == target) {
            return None;
        }
        let answer = match operation {
            ArpOperation::Request => {
                Some(arp_reply((EthernetAddress(self.mac.0), target), (mac, ip)))
            }
            ArpOperation::Reply => None,
            ArpOperation::Unknown(_) => return None,
        };
        Some(Use::Learn { ip, mac, answer })
    }

    /// Adds or updates a neighbour. Returns false if there is no room.
    fn remember(&mut self, neighbour: Neighbour) -> bool {
        if let Some(known) = self.neighbours.iter_mut().find(|known| known.1 == neighbour.1) {
            *known = neighbour;
            return true;
        }
        let has_room = self.neighbours.len() < NEIGHBOURS_MAX;
        if has_room {
            self.neighbours.push(neighbour);
        }
        has_room
    }

    /// Returns when to poll the interface next.
    pub(crate) fn poll_at(
        &mut self,
        at: Instant,
        nic: &mut Nic,
        sockets: &SocketSet<'_>,
    ) -> Option<Instant> {
        has_any(sockets).then(|| self.make(at, nic).poll_at(at, sockets)).flatten()
    }

    fn make(&mut self, at: Instant, nic: &mut Nic) -> &mut IpInterface {
        let Interface { mac, seed, addresses, rx, neighbours, made } = self;
        made.get_or_insert_with(|| {
            let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(mac.0)));
            config.random_seed = *seed;
            let mut made = IpInterface::new(config, &mut Wire { nic, rx }, at);
            enter_addresses(&mut made, addresses);
            let own = addresses.iter().find_map(as_v4);
            let own = own.map_or(Ipv4Addr::UNSPECIFIED, |own| own.address());
            // Feed ARP replies, which cause no answer, through a NIC that is never full.
            let (mut aside, mut replies) = (Nic::new(nic.mtu(), None), VecDeque::new());
            for (at, ip, from) in std::mem::take(neighbours) {
                let reply = arp_reply((from, ip), (EthernetAddress(mac.0), own));
                replies.push_back(FrameBuf::new(&reply));
                let mut device = Wire { nic: &mut aside, rx: &mut replies };
                made.poll(at, &mut device, &mut SocketSet::new(Vec::new()));
            }
            Box::new(made)
        })
    }
}

fn has_any(sockets: &SocketSet<'_>) -> bool {
    sockets.iter().next().is_some()
}

/// Handling of a frame by an IP interface.
enum Use {
    /// The interface learns a neighbour, and may answer with ARP.
    Learn { ip: Ipv4Addr, mac: EthernetAddress, answer: Option<Vec<u8>> },
    /// The interface drops the frame and learns nothing.
    Ignore,
    /// The interface must be created to process the frame.
    Poll,
}

fn as_v4(address: &IpCidr) -> Option<Ipv4Cidr> {
    match address {
        IpCidr::Ipv4(cidr) => Some(*cidr),
        IpCidr::Ipv6(_) => None,
    }
}

fn ip_is_unicast(ip: Ipv4Addr) -> bool {
    !(ip.is_multicast() || ip.is_broadcast() || ip.is_unspecified())
}

/// Returns an ARP reply between two ends, each given by MAC and address.
fn arp_reply(from: (EthernetAddress, Ipv4Addr), to: (EthernetAddress, Ipv4Addr)) -> Vec<u8> {
    let arp = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Reply,
        source_hardware_addr: from.0,
        source_protocol_addr: from.1,
        target_hardware_addr: to.0,
        target_protocol_addr: to.1,
    };
    arp_frame(arp, from.0, to.0)
}

/// Returns whether a packet is IGMP, which the interface does not support.
fn is_igmp(packet: &[u8]) -> bool {
    let packet = Ipv4Packet::new_checked(packet);
    packet.is_ok_and(|ip| ip.next_header() == IpProtocol::Igmp && ip.dst_addr().is_multicast())
}

/// Returns whether a packet is an MLD query without options that may need an answer.
fn is_mld_query(packet: &[u8]) -> bool {
    let message = || {
        let ip = Ipv6Packet::new_checked(packet).ok()?;
        let extension = Ipv6ExtHeader::new_checked(ip.payload()).ok()?;
        let extension = Ipv6ExtHeaderRepr::parse(&extension).ok()?;
        let options = Ipv6HopByHopHeader::new_checked(extension.data).ok()?;
        let options = Ipv6HopByHopRepr::parse(&options).ok()?.options;
        let is_known = |option: &Ipv6OptionRepr| !matches!(option, Ipv6OptionRepr::Unknown { .. });
        let is_icmp = ip.next_header() == IpProtocol::HopByHop
            && extension.next_header == IpProtocol::Icmpv6
            && options.iter().all(is_known);
        let icmp = ip.payload().get(extension.header_len() + extension.data.len()..)?;
        is_icmp.then_some(Icmpv6Packet::new_checked(icmp).ok()?.msg_type())
    };
    message() == Some(Icmpv6Message::MldQuery)
}

fn enter_addresses(made: &mut IpInterface, addresses: &[IpCidr]) {
    made.update_ip_addrs(|entered| {
        entered.clear();
        for &address in addresses {
            entered.push(address).expect("few addresses fit");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::wire::IpAddress;
    use std::net::Ipv6Addr;

    const MAC: MacAddr = MacAddr([2, 0x68, 0, 0, 0, 1]);
    const OTHER: MacAddr = MacAddr([2, 0x68, 0, 0, 0, 2]);

    /// Returns an ARP packet to 10.0.0.1 from an address of the same subnet.
    fn arp(operation: u8, last: u8) -> Vec<u8> {
        let mut frame = [&MAC.0[..], &OTHER.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation]].concat();
        frame.extend([&OTHER.0[..], &[10, 0, 0, last], &MAC.0, &[10, 0, 0, 1]].concat());
        frame.resize(60, 0);
        frame
    }

    /// Returns a query of all IPv4 groups to 224.0.0.1, or a datagram if `protocol` is 17.
    fn query_v4(protocol: u8) -> Vec<u8> {
        let mut frame = vec![1, 0, 0x5e, 0, 0, 1];
        frame.extend(OTHER.0);
        frame.extend([8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 1, protocol, 0, 0]);
        frame.extend([10, 0, 0, 2, 224, 0, 0, 1]);
        frame.resize(60, 0);
        Ipv4Packet::new_unchecked(&mut frame[14..]).fill_checksum();
        frame
    }

    /// Returns a query of all IPv6 groups, after a router alert option.
    fn query_v6(kind: u8) -> Vec<u8> {
        let mut frame = vec![0x33, 0x33, 0, 0, 0, 1];
        frame.extend(OTHER.0);
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 36, 0, 1]);
        frame.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0, 2]);
        frame.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        frame.extend([58, 0, 5, 2, 0, 0, 1, 0, kind, 0, 0, 0]);
        frame.resize(90, 0);
        let ip = Ipv6Packet::new_unchecked(&frame[14..]);
        let (from, to) = (ip.src_addr(), ip.dst_addr());
        Icmpv6Packet::new_unchecked(&mut frame[62..]).fill_checksum(&from, &to);
        frame
    }

    /// Returns an interface that is not created, with a NIC.
    fn unmade(prefix_len: u8) -> (Interface, Nic) {
        let (mut interface, mut nic) = (Interface::new(MAC, 7), Nic::new(1500, None));
        nic.link(axon_wire::Time::ZERO, true);
        let v6 = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
        let addresses =
            [(IpAddress::from(Ipv4Addr::new(10, 0, 0, 1)), prefix_len), (v6.into(), 64)];
        let addresses = addresses.map(|(ip, prefix_len)| IpCidr::new(ip, prefix_len));
        interface.set_addresses(addresses.into_iter());
        (interface, nic)
    }

    fn poll(interface: &mut Interface, nic: &mut Nic, millis: i64) {
        let at = Instant::from_millis(millis);
        interface.poll(at, nic, &mut SocketSet::new(Vec::new()));
    }

    /// Feeds frames to an interface, each at its own time. Returns whether it is created
    /// afterwards.
    fn given(frames: &[Vec<u8>]) -> (Interface, Nic, bool) {
        let (mut interface, mut nic) = unmade(8);
        for (frame, millis) in frames.iter().zip(0..) {
            interface.put(FrameBuf::new(frame));
            poll(&mut interface, &mut nic, millis);
        }
        let is_made = interface.made.is_some();
        (interface, nic, is_made)
    }

    #[test]
    fn it_is_made_for_what_it_may_have_to_answer_and_for_nothing_else() {
        let hello = [&MAC.0[..], &OTHER.0, &[0x88, 0xb5], &[0; 46]].concat();
        let (interface, nic, is_made) =
            given(&[hello, query_v4(2), query_v6(130), arp(2, 2), query_v4(2), arp(2, 2)]);
        assert!(!is_made && interface.rx.is_empty() && !nic.has_frames());
        let other = EthernetAddress(OTHER.0);
        let seen = (Instant::from_millis(5), Ipv4Addr::new(10, 0, 0, 2), other);
        assert_eq!(interface.neighbours, [seen]);
        let mut unknown = query_v6(130);
        unknown[56] = 0x85;
        for other in [query_v4(17), query_v6(128), unknown] {
            assert!(given(std::slice::from_ref(&other)).2, "{other:02x?}");
        }
        let many = |count: u8| (0..count).map(|last| arp(2, 2 + last)).collect::<Vec<_>>();
        assert!(!given(&many(NEIGHBOURS_MAX as u8)).2);
        assert!(given(&many(NEIGHBOURS_MAX as u8 + 1)).2, "it remembers no more than a few");
    }

    /// Returns the answers to a frame, without an interface and with one.
    fn answers(prefix_len: u8, frame: &[u8]) -> [Vec<FrameBuf>; 2] {
        [false, true].map(|is_made| {
            let (mut interface, mut nic) = unmade(prefix_len);
            if is_made {
                interface.make(Instant::ZERO, &mut nic);
            }
            interface.put(FrameBuf::new(frame));
            poll(&mut interface, &mut nic, 0);
            assert_eq!(interface.made.is_some(), is_made, "{frame:02x?}");
            std::iter::from_fn(|| nic.next(axon_wire::Time::ZERO)).collect()
        })
    }

    #[test]
    fn without_an_interface_the_same_is_answered() {
        let [without, with] = answers(8, &arp(1, 2));
        assert_eq!(without, with);
        assert_eq!(without.len(), 1);
        let mut others = vec![arp(2, 2), arp(3, 2), arp(1, 255), query_v4(2), query_v6(130)];
        // From another subnet or a group, for another address or MAC, truncated.
        for (at, byte) in [(28, 11), (22, 3), (41, 9), (5, 9)] {
            others.push(arp(1, 2));
            others.last_mut().expect("one")[at] = byte;
        }
        others.push(arp(1, 2)[..30].to_vec());
        for other in others {
            let [without, with] = answers(8, &other);
            assert_eq!(without, with, "{other:02x?}");
        }
        for from in [[0, 0, 0, 0], [255, 255, 255, 255], [224, 0, 0, 1]] {
            let mut other = arp(1, 2);
            other[28..32].copy_from_slice(&from);
            assert_eq!(answers(0, &other), [vec![], vec![]], "from {from:?}");
        }
    }

    #[test]
    fn what_finds_the_nic_full_waits_and_makes_nothing() {
        let (mut interface, mut nic) = unmade(8);
        while nic.has_room() {
            nic.put(&[0; 60]);
        }
        interface.rx.extend([arp(1, 2), query_v4(17)].map(|frame| FrameBuf::new(&frame)));
        poll(&mut interface, &mut nic, 1);
        assert!(interface.made.is_none() && interface.rx.len() == 2);
        nic.next(axon_wire::Time::ZERO).expect("a frame leaves");
        // The answer fills the NIC, so the next frame still waits.
        poll(&mut interface, &mut nic, 2);
        assert!(interface.made.is_none() && interface.rx.len() == 1 && !nic.has_room());
        // Created for another reason, it still adds the neighbours heard before.
        interface.make(Instant::ZERO, &mut nic);
        assert!(interface.neighbours.is_empty() && interface.rx.len() == 1);
    }

    /// Returns the host's answer to a ping from 10.0.0.2. The frame comes from a router, so that
    /// the interface learns nothing from it.
    fn answer_to_ping(interface: &mut Interface, nic: &mut Nic, millis: i64) -> FrameBuf {
        let router = [2, 0x68, 0, 0, 0, 9];
        let mut ping = [&MAC.0[..], &router, &[8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1]].concat();
        ping.extend([0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
        ping.resize(60, 0);
        Ipv4Packet::new_unchecked(&mut ping[14..]).fill_checksum();
        interface.put(FrameBuf::new(&ping));
        poll(interface, nic, millis);
        nic.next(axon_wire::Time::ZERO).expect("an answer")
    }

    #[test]
    fn what_it_would_have_learned_before_it_was_made_it_knows_after_for_as_long() {
        // Learned at 0 s, created at 50 s.
        for (seconds, is_known) in [(59, true), (61, false)] {
            let (mut interface, mut nic, is_made) = given(&[arp(2, 2)]);
            assert!(!is_made);
            interface.put(FrameBuf::new(&query_v4(17)));
            poll(&mut interface, &mut nic, 50_000);
            assert!(interface.made.is_some() && interface.rx.is_empty());
            let answer = answer_to_ping(&mut interface, &mut nic, 1000 * seconds);
            let expected = if is_known { [8, 0] } else { [8, 6] };
            assert_eq!(answer.bytes()[12..14], expected, "after {seconds} s");
        }
    }

    #[test]
    fn what_was_forgotten_before_it_was_made_it_has_to_ask_for() {
        let (mut interface, mut nic, _) = given(&[arp(2, 2)]);
        interface.forget_neighbours();
        let asks = answer_to_ping(&mut interface, &mut nic, 9);
        assert_eq!(asks.bytes()[12..14], [8, 6]);
        let (mut interface, mut nic, _) = given(&[arp(2, 2)]);
        assert_eq!(answer_to_ping(&mut interface, &mut nic, 9).bytes()[..6], OTHER.0);
    }
}
