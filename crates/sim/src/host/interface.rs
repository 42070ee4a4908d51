//! The interface of a host's IP stack, which is made when something needs it.
//!
//! Streams of datagrams, their sinks and connections of the host's own TCP do without smoltcp, and
//! so does much of a large fabric for all of its time. An interface takes 10 KiB, nearly all for
//! its cache of neighbours. So its configuration is kept here until there is a socket, or a packet
//! of IP that it may have to answer. ARP is answered here meanwhile, as it would answer, and a few
//! neighbours are remembered, which it learns when it is made. When that is does not show: it does
//! nothing of its own.

use crate::host::nic::Nic;
use crate::host::resolve::arp_frame;
use axon_wire::{FrameBuf, MacAddr};
use smoltcp::iface::{Config, Context, Interface as IpInterface, SocketSet};
use smoltcp::time::Instant;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol,
    HardwareAddress, Icmpv6Message, Icmpv6Packet, IpCidr, IpProtocol, Ipv4Cidr, Ipv4Packet,
    Ipv6ExtHeader, Ipv6ExtHeaderRepr, Ipv6HopByHopHeader, Ipv6HopByHopRepr, Ipv6OptionRepr,
    Ipv6Packet,
};
use std::net::Ipv4Addr;

/// Neighbours that are remembered without it, at most.
const NEIGHBOURS_MAX: usize = 8;

/// A neighbour that has sent an ARP packet to this host, at last then.
type Neighbour = (Instant, Ipv4Addr, EthernetAddress);

/// The interface, made or not.
pub(crate) struct Interface {
    mac: MacAddr,
    /// Of its random numbers.
    seed: u64,
    addresses: Vec<IpCidr>,
    /// Those that it has to learn when it is made.
    neighbours: Vec<Neighbour>,
    made: Option<Box<IpInterface>>,
}

impl Interface {
    /// Without an address.
    pub(crate) fn new(mac: MacAddr, seed: u64) -> Interface {
        Interface { mac, seed, addresses: Vec::new(), neighbours: Vec::new(), made: None }
    }

    /// Gives it these addresses, and no others. It forgets its neighbours.
    pub(crate) fn set_addresses(&mut self, addresses: impl Iterator<Item = IpCidr>) {
        self.addresses = addresses.collect();
        self.addresses.shrink_to_fit();
        self.neighbours.clear();
        if let Some(made) = &mut self.made {
            enter_addresses(made, &self.addresses);
        }
    }

    /// Enters the router for all that is outside the subnet, or that there is none. A router comes
    /// by DHCP, whose socket has made it.
    pub(crate) fn set_router(&mut self, router: Option<Ipv4Addr>) {
        let Some(made) = &mut self.made else { return };
        let routes = made.routes_mut();
        // The table has room for one, and takes it in the place of the one before.
        let _ = match router {
            Some(router) => routes.add_default_ipv4_route(router).ok().flatten(),
            None => routes.remove_default_ipv4_route(),
        };
    }

    /// Forgets the MACs of all neighbours.
    pub(crate) fn forget_neighbours(&mut self) {
        self.neighbours.clear();
        if let Some(made) = &mut self.made {
            made.update_ip_addrs(|_| ());
        }
    }

    /// Takes in the frames that wait for it, and lets sockets send.
    pub(crate) fn poll(&mut self, at: Instant, nic: &mut Nic, sockets: &mut SocketSet<'_>) {
        let has_sockets = has_any(sockets);
        if self.made.is_none() && !has_sockets {
            self.take_first(at, nic);
        }
        if has_sockets || nic.has_room() && !nic.rx.is_empty() {
            self.make(at, nic).poll(at, nic, sockets);
        }
    }

    /// Takes the frames for which it need not be made, up to the first for which it has to be.
    fn take_first(&mut self, at: Instant, nic: &mut Nic) {
        // The interface takes no frame before it could answer it.
        while nic.has_room() {
            match nic.rx.front().map(|frame| self.use_of(frame.bytes())) {
                Some(Use::Ignore) => {}
                Some(Use::Learn { ip, mac, answer }) if self.remember((at, ip, mac)) => {
                    answer.iter().for_each(|answer| nic.put(answer));
                }
                _ => break,
            }
            nic.rx.pop_front();
        }
    }

    /// What it would do with a frame.
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

    /// The same with an ARP packet; `None` if nothing.
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

    /// Remembers a neighbour, if there is room.
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

    /// When it is to be polled next.
    pub(crate) fn poll_at(
        &mut self,
        at: Instant,
        nic: &mut Nic,
        sockets: &SocketSet<'_>,
    ) -> Option<Instant> {
        has_any(sockets).then(|| self.make(at, nic).poll_at(at, sockets)).flatten()
    }

    /// What a connection needs of it to be opened.
    pub(crate) fn context(&mut self, nic: &mut Nic) -> &mut Context {
        // It has the time from its first poll.
        self.make(Instant::ZERO, nic).context()
    }

    fn make(&mut self, at: Instant, nic: &mut Nic) -> &mut IpInterface {
        let Interface { mac, seed, addresses, neighbours, made } = self;
        made.get_or_insert_with(|| {
            let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(mac.0)));
            config.random_seed = *seed;
            let mut made = IpInterface::new(config, nic, at);
            enter_addresses(&mut made, addresses);
            let own = addresses.iter().find_map(as_v4);
            let own = own.map_or(Ipv4Addr::UNSPECIFIED, |own| own.address());
            // Replies, to which nothing is answered, by a NIC that is never full.
            let mut aside = Nic::new(nic.mtu());
            for (at, ip, from) in std::mem::take(neighbours) {
                let reply = arp_reply((from, ip), (EthernetAddress(mac.0), own));
                aside.rx.push_back(FrameBuf::new(&reply));
                made.poll(at, &mut aside, &mut SocketSet::new(Vec::new()));
            }
            Box::new(made)
        })
    }
}

fn has_any(sockets: &SocketSet<'_>) -> bool {
    sockets.iter().next().is_some()
}

/// What an IP interface does with a frame.
enum Use {
    /// The interface learns where a neighbour is, and may answer with ARP.
    Learn { ip: Ipv4Addr, mac: EthernetAddress, answer: Option<Vec<u8>> },
    /// It drops it and learns nothing.
    Ignore,
    /// It has to be made to find out.
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

/// An ARP reply from one to another: MAC and address.
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

/// Whether a packet speaks of groups of IPv4, of which the interface knows nothing.
fn is_igmp(packet: &[u8]) -> bool {
    let packet = Ipv4Packet::new_checked(packet);
    packet.is_ok_and(|ip| ip.next_header() == IpProtocol::Igmp && ip.dst_addr().is_multicast())
}

/// Whether a packet asks for groups of IPv6, with no option that may have to be answered.
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

    /// An ARP packet to 10.0.0.1 from an address of the same subnet.
    fn arp(operation: u8, last: u8) -> Vec<u8> {
        let mut frame = [&MAC.0[..], &OTHER.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, operation]].concat();
        frame.extend([&OTHER.0[..], &[10, 0, 0, last], &MAC.0, &[10, 0, 0, 1]].concat());
        frame.resize(60, 0);
        frame
    }

    /// A query of all groups of IPv4 (`17`: what a datagram is otherwise) to 224.0.0.1.
    fn query_v4(protocol: u8) -> Vec<u8> {
        let mut frame = vec![1, 0, 0x5e, 0, 0, 1];
        frame.extend(OTHER.0);
        frame.extend([8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, 1, protocol, 0, 0]);
        frame.extend([10, 0, 0, 2, 224, 0, 0, 1]);
        frame.resize(60, 0);
        Ipv4Packet::new_unchecked(&mut frame[14..]).fill_checksum();
        frame
    }

    /// The same of IPv6, behind the option that routers look at.
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

    /// One that is not made, with a NIC.
    fn unmade(prefix_len: u8) -> (Interface, Nic) {
        let (mut interface, mut nic) = (Interface::new(MAC, 7), Nic::new(1500));
        nic.carrier = true;
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

    /// An interface, and what it is given, at a time each; says whether it is made after.
    fn given(frames: &[Vec<u8>]) -> (Interface, Nic, bool) {
        let (mut interface, mut nic) = unmade(8);
        for (frame, millis) in frames.iter().zip(0..) {
            nic.rx.push_back(FrameBuf::new(frame));
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
        assert!(!is_made && nic.rx.is_empty() && !nic.has_frames());
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

    /// What is sent when a frame comes in, without an interface and with one.
    fn answers(prefix_len: u8, frame: &[u8]) -> [Vec<FrameBuf>; 2] {
        [false, true].map(|is_made| {
            let (mut interface, mut nic) = unmade(prefix_len);
            if is_made {
                interface.make(Instant::ZERO, &mut nic);
            }
            nic.rx.push_back(FrameBuf::new(frame));
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
        // Of another subnet, of a group, for another address, for another MAC, cut.
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
        nic.rx.extend([arp(1, 2), query_v4(17)].map(|frame| FrameBuf::new(&frame)));
        poll(&mut interface, &mut nic, 1);
        assert!(interface.made.is_none() && nic.rx.len() == 2);
        nic.next(axon_wire::Time::ZERO).expect("a frame leaves");
        // The answer takes the room, so the next frame waits still.
        poll(&mut interface, &mut nic, 2);
        assert!(interface.made.is_none() && nic.rx.len() == 1 && !nic.has_room());
        // Made for another reason, it learns whom it has heard of all the same.
        interface.context(&mut nic);
        assert!(interface.neighbours.is_empty() && nic.rx.len() == 1);
    }

    /// What the host answers to a ping of 10.0.0.2 then. The frame comes from a router, so that it
    /// learns nothing of it.
    fn answer_to_ping(interface: &mut Interface, nic: &mut Nic, millis: i64) -> FrameBuf {
        let router = [2, 0x68, 0, 0, 0, 9];
        let mut ping = [&MAC.0[..], &router, &[8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1]].concat();
        ping.extend([0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 8, 0, 0xf7, 0xff, 0, 0, 0, 0]);
        ping.resize(60, 0);
        Ipv4Packet::new_unchecked(&mut ping[14..]).fill_checksum();
        nic.rx.push_back(FrameBuf::new(&ping));
        poll(interface, nic, millis);
        nic.next(axon_wire::Time::ZERO).expect("an answer")
    }

    #[test]
    fn what_it_would_have_learned_before_it_was_made_it_knows_after_for_as_long() {
        // Learned at 0 s, and made at 50 s.
        for (seconds, is_known) in [(59, true), (61, false)] {
            let (mut interface, mut nic, is_made) = given(&[arp(2, 2)]);
            assert!(!is_made);
            nic.rx.push_back(FrameBuf::new(&query_v4(17)));
            poll(&mut interface, &mut nic, 50_000);
            assert!(interface.made.is_some() && nic.rx.is_empty());
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
