//! IPv6 neighbour discovery (RFC 4861): neighbour solicitations and advertisements, as whole
//! Ethernet frames. The formats are smoltcp's.

use crate::MacAddr;
use crate::link::ETHERNET_BYTES;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, HardwareAddress, Icmpv6Packet,
    Icmpv6Repr, IpProtocol, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr,
    RawHardwareAddress,
};

/// Hop limit of neighbour discovery, which proves that no router has forwarded the packet (RFC 4861
/// clause 7.1).
const HOP_LIMIT: u8 = 255;
/// Bytes of an IPv6 header. The first byte after it is the type of an ICMPv6 message.
const IPV6_BYTES: usize = 40;
/// The type of a neighbour solicitation (RFC 4861 clause 4.3).
const SOLICITATION: u8 = 135;
/// The type of a neighbour advertisement (RFC 4861 clause 4.4).
const ADVERTISEMENT: u8 = 136;
/// All nodes of a link (RFC 4291 clause 2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Neighbour discovery message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nd {
    /// Neighbour solicitation: resolves an address.
    Solicitation {
        /// The sender's address; `None` in duplicate address detection (RFC 4862).
        source: Option<Ipv6Addr>,
        /// The sender's MAC, if the message contains it.
        source_mac: Option<MacAddr>,
        /// The address to resolve.
        target: Ipv6Addr,
    },
    /// Neighbour advertisement: the sender has this address.
    Advertisement {
        /// The address.
        target: Ipv6Addr,
        /// The MAC in the message, if any.
        target_mac: Option<MacAddr>,
    },
}

/// Parses the packet that follows the EtherType of IPv6. Returns `None` if it is neither a
/// solicitation nor an advertisement.
///
/// # Errors
/// `Some(None)` for a message that violates RFC 4861 clauses 7.1.1 and 7.1.2 or RFC 4862 clause
/// 5.4.3: hop limit, checksum, code, lengths, addresses.
pub fn parse(packet: &[u8]) -> Option<Option<Nd>> {
    let is_icmp = packet.first()? >> 4 == 6 && *packet.get(6)? == u8::from(IpProtocol::Icmpv6);
    let kind = *packet.get(IPV6_BYTES)?;
    (is_icmp && (kind == SOLICITATION || kind == ADVERTISEMENT)).then(|| sound(packet))
}

fn sound(packet: &[u8]) -> Option<Nd> {
    let ip = Ipv6Packet::new_checked(packet).ok()?;
    if ip.hop_limit() != HOP_LIMIT {
        return None;
    }
    let (from, to) = (ip.src_addr(), ip.dst_addr());
    let message = Icmpv6Packet::new_checked(ip.payload()).ok()?;
    let checksums = ChecksumCapabilities::default();
    let Icmpv6Repr::Ndisc(message) = Icmpv6Repr::parse(&from, &to, &message, &checksums).ok()?
    else {
        return None;
    };
    match message {
        NdiscRepr::NeighborSolicit { target_addr: target, lladdr } if is_host_ip(target) => {
            let source_mac = named(lladdr)?;
            if from.is_unspecified() {
                let sound = to == solicited_node(target) && source_mac.is_none();
                return sound.then_some(Nd::Solicitation { source: None, source_mac, target });
            }
            let source = is_host_ip(from).then_some(from)?;
            Some(Nd::Solicitation { source: Some(source), source_mac, target })
        }
        NdiscRepr::NeighborAdvert { target_addr: target, flags, lladdr } if is_host_ip(target) => {
            let to_all = to.is_multicast() && flags.contains(NdiscNeighborFlags::SOLICITED);
            let target_mac = named(lladdr)?;
            let sound = is_host_ip(from) && !to_all;
            sound.then_some(Nd::Advertisement { target, target_mac })
        }
        _ => None,
    }
}

/// Returns the MAC in an option: `Some(None)` if there is no option, `None` if it is not a MAC.
fn named(address: Option<RawHardwareAddress>) -> Option<Option<MacAddr>> {
    match address {
        None => Some(None),
        Some(raw) => raw.as_bytes().try_into().ok().map(|bytes| Some(MacAddr(bytes))),
    }
}

/// Returns a solicitation for `target`, sent to the MAC `to` or else to the solicited-node group.
pub fn solicitation(from: (MacAddr, Ipv6Addr), to: Option<MacAddr>, target: Ipv6Addr) -> Vec<u8> {
    let group = solicited_node(target);
    let to = to.map_or((group_mac(group), group), |mac| (mac, target));
    let lladdr =
        Some(RawHardwareAddress::from(HardwareAddress::Ethernet(EthernetAddress(from.0.0))));
    emit(from, to, NdiscRepr::NeighborSolicit { target_addr: target, lladdr })
}

/// Returns a solicitation for duplicate address detection (RFC 4862 clause 5.4.2). A host that
/// already has `target` advertises it to all nodes.
pub fn detection(mac: MacAddr, target: Ipv6Addr) -> Vec<u8> {
    let group = solicited_node(target);
    let message = NdiscRepr::NeighborSolicit { target_addr: target, lladdr: None };
    emit((mac, Ipv6Addr::UNSPECIFIED), (group_mac(group), group), message)
}

/// Returns an advertisement that `target` is at `mac`. It answers a neighbour's solicitation, or is
/// sent to all nodes if the solicitation was for duplicate address detection (RFC 4861 clause
/// 7.2.4).
pub fn advertisement(mac: MacAddr, target: Ipv6Addr, to: Option<(MacAddr, Ipv6Addr)>) -> Vec<u8> {
    advertise(mac, target, to, NdiscNeighborFlags::OVERRIDE)
}

/// Returns an advertisement like [`advertisement`], with the router flag. Hosts remove a router
/// whose neighbour advertisements lack the flag (RFC 4861 clause 7.2.5).
pub fn router_neighbour(
    mac: MacAddr,
    target: Ipv6Addr,
    to: Option<(MacAddr, Ipv6Addr)>,
) -> Vec<u8> {
    advertise(mac, target, to, NdiscNeighborFlags::OVERRIDE | NdiscNeighborFlags::ROUTER)
}

fn advertise(
    mac: MacAddr,
    target: Ipv6Addr,
    to: Option<(MacAddr, Ipv6Addr)>,
    mut flags: NdiscNeighborFlags,
) -> Vec<u8> {
    flags.set(NdiscNeighborFlags::SOLICITED, to.is_some());
    let to = to.unwrap_or((group_mac(ALL_NODES), ALL_NODES));
    let lladdr = Some(RawHardwareAddress::from(HardwareAddress::Ethernet(EthernetAddress(mac.0))));
    emit((mac, target), to, NdiscRepr::NeighborAdvert { flags, target_addr: target, lladdr })
}

/// Returns the frame that carries a neighbour discovery message.
fn emit(from: (MacAddr, Ipv6Addr), to: (MacAddr, Ipv6Addr), message: NdiscRepr<'_>) -> Vec<u8> {
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(from.0.0),
        dst_addr: EthernetAddress(to.0.0),
        ethertype: EthernetProtocol::Ipv6,
    };
    let message = Icmpv6Repr::Ndisc(message);
    let ipv6 = Ipv6Repr {
        src_addr: from.1,
        dst_addr: to.1,
        next_header: IpProtocol::Icmpv6,
        payload_len: message.buffer_len(),
        hop_limit: HOP_LIMIT,
    };
    let mut bytes = alloc::vec![0; ETHERNET_BYTES + ipv6.buffer_len() + message.buffer_len()];
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut bytes[..]));
    let mut packet = Ipv6Packet::new_unchecked(&mut bytes[ETHERNET_BYTES..]);
    ipv6.emit(&mut packet);
    message.emit(
        &from.1,
        &to.1,
        &mut Icmpv6Packet::new_unchecked(packet.payload_mut()),
        &ChecksumCapabilities::default(),
    );
    bytes
}

/// Returns whether a single host can have this address.
pub fn is_host_ip(ip: Ipv6Addr) -> bool {
    let mapped = ip.to_ipv4_mapped().is_some();
    !(ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || mapped)
}

/// Returns the solicited-node group of an address (RFC 4291 clause 2.7.1).
pub fn solicited_node(ip: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = ip.octets();
    let [high, low] = [u16::from(a) | 0xff00, u16::from_be_bytes([b, c])];
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, high, low)
}

/// Returns the MAC address of an IPv6 group (RFC 2464 clause 7).
pub fn group_mac(group: Ipv6Addr) -> MacAddr {
    let [.., a, b, c, d] = group.octets();
    MacAddr([0x33, 0x33, a, b, c, d])
}

/// Returns the link-local address of a MAC (RFC 4291 appendix A).
pub fn link_local(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}
