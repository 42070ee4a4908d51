//! DHCP packets as processed by the server (RFC 2131 §2, options of RFC 2132).
//!
//! Bytes are read and written through smoltcp's packet views. Its parsed representation is not
//! used. It refuses valid client identifiers in requests (RFC 2132 §9.14) and has too few options
//! for replies.

use alloc::vec;
use alloc::vec::Vec;
use axon_wire::MacAddr;
use axon_wire::constants::ethertype;
use axon_wire::host_frame;
use core::net::Ipv4Addr;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpHardware, DHCP_CLIENT_PORT, DHCP_SERVER_PORT, DhcpFlags, DhcpMessageType, DhcpOption,
    DhcpPacket, DhcpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr, UDP_HEADER_LEN, UdpPacket, UdpRepr,
};

/// Magic cookie before the options (RFC 2131 §3).
const COOKIE: u32 = 0x6382_5363;
/// Size of a BOOTP message (RFC 951 §3). Some clients refuse shorter ones.
const MESSAGE_BYTES_MIN: usize = 300;
/// Size of a message that every client accepts: 576 bytes of IP packet, less its headers (RFC 2131
/// §2).
const MESSAGE_BYTES_MAX: usize = 548;
/// Time to live. The frame stays within one subnet, but some clients check for a usual value.
const TTL: u8 = 64;

const OPTION_DNS: u8 = 6;
const OPTION_DOMAIN: u8 = 15;
const OPTION_MTU: u8 = 26;
const OPTION_BROADCAST: u8 = 28;
const OPTION_REQUESTED: u8 = 50;
const OPTION_TYPE: u8 = 53;
const OPTION_SERVER: u8 = 54;
const OPTION_T1: u8 = 58;
const OPTION_T2: u8 = 59;
const OPTION_CLIENT: u8 = 61;

/// Request from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Message type.
    pub kind: DhcpMessageType,
    /// Hardware address of the client, which is also the source address of the frame.
    pub mac: MacAddr,
    /// Transaction ID, which the reply repeats.
    pub xid: u32,
    /// Current address of the client, or 0.0.0.0.
    pub ciaddr: Ipv4Addr,
    /// True if the client can only receive broadcasts.
    pub broadcast: bool,
    /// Address that the client requests (option 50).
    pub requested: Option<Ipv4Addr>,
    /// Server that the client has selected (option 54).
    pub server: Option<Ipv4Addr>,
    /// Client identifier (option 61), which the reply repeats (RFC 6842).
    pub client_id: Vec<u8>,
}

impl Request {
    /// Parses a client's request from an Ethernet frame, which may have a priority tag.
    ///
    /// # Errors
    /// Returns `None` for anything else: other protocols, fragments, wrong checksums or lengths,
    /// BOOTP without a message type, relayed requests (because no relay can be at a host port), and
    /// requests on behalf of another hardware address.
    pub fn parse(frame: &[u8]) -> Option<Request> {
        let mac = MacAddr::source_of(frame)?;
        let (_, message) = message_of(frame)?;
        let dhcp = DhcpPacket::new_checked(message).ok()?;
        let ethernet = dhcp.hardware_type() == ArpHardware::Ethernet && dhcp.hardware_len() == 6;
        let direct = dhcp.relay_agent_ip().is_unspecified();
        let own = dhcp.client_hardware_address().0 == mac.0 && mac.is_unicast();
        if !ethernet || !direct || !own || dhcp.magic_number() != COOKIE {
            return None;
        }
        Request::from_options(mac, &dhcp)
    }

    fn from_options(mac: MacAddr, dhcp: &DhcpPacket<&[u8]>) -> Option<Request> {
        const BOOT_REQUEST: u8 = 1;
        if u8::from(dhcp.opcode()) != BOOT_REQUEST {
            return None;
        }
        let mut kind = None;
        let mut request = Request {
            kind: DhcpMessageType::Unknown(0),
            mac,
            xid: dhcp.transaction_id(),
            ciaddr: dhcp.client_ip(),
            broadcast: dhcp.flags().contains(DhcpFlags::BROADCAST),
            requested: None,
            server: None,
            client_id: Vec::new(),
        };
        for option in dhcp.options() {
            match (option.kind, option.data) {
                (OPTION_TYPE, &[code]) => kind = Some(DhcpMessageType::from(code)),
                (OPTION_REQUESTED, data) => request.requested = address(data),
                (OPTION_SERVER, data) => request.server = address(data),
                (OPTION_CLIENT, data) => request.client_id = data.into(),
                _ => {}
            }
        }
        request.kind = kind?;
        Some(request)
    }
}

/// Returns the source IP address of a frame and the message that it carries for port 67. The
/// message must be in one unfragmented datagram with correct checksums.
pub(super) fn message_of(frame: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    let Some((ethertype::IPV4, packet)) = host_frame::contents(frame) else {
        return None;
    };
    let ip = Ipv4Packet::new_checked(packet).ok()?;
    let whole = !ip.more_frags() && ip.frag_offset() == 0;
    let plain = ip.version() == 4 && ip.header_len() >= 20 && ip.verify_checksum();
    if !whole || !plain || ip.next_header() != IpProtocol::Udp {
        return None;
    }
    let udp = UdpPacket::new_checked(ip.payload()).ok()?;
    let ends = (IpAddress::Ipv4(ip.src_addr()), IpAddress::Ipv4(ip.dst_addr()));
    let intact = udp.checksum() == 0 || udp.verify_checksum(&ends.0, &ends.1);
    (udp.dst_port() == DHCP_SERVER_PORT && intact).then(|| (ip.src_addr(), udp.payload()))
}

pub(super) fn address(data: &[u8]) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = data.try_into().ok()?;
    Some(Ipv4Addr::from(octets))
}

/// Subnet and lease parameters for a reply.
#[derive(Clone, Debug)]
pub struct Grant<'a> {
    /// Address for the client, or 0.0.0.0 if the client has its own (DHCPINFORM).
    pub address: Ipv4Addr,
    /// Duration of the lease in seconds, or `None` for DHCPINFORM.
    pub lease_seconds: Option<u32>,
    /// Subnet mask.
    pub mask: Ipv4Addr,
    /// Broadcast address of the subnet.
    pub broadcast: Ipv4Addr,
    /// Default router.
    pub router: Option<Ipv4Addr>,
    /// Name servers, in order of preference. The list is truncated to fit.
    pub dns: &'a [Ipv4Addr],
    /// Domain name for the client.
    pub domain: Option<&'a str>,
    /// MTU of the subnet, in bytes.
    pub mtu: Option<u16>,
}

/// Builds the Ethernet frame for a reply. Without a grant, the reply is a DHCPNAK.
///
/// The destination follows RFC 2131 §4.1. A DHCPNAK is broadcast. Otherwise the reply goes to the
/// client's current address. If the client has none, the reply is broadcast if the client asked for
/// that. Otherwise it goes to the assigned address and the client's hardware address.
pub(crate) fn reply(
    request: &Request,
    kind: DhcpMessageType,
    from: (MacAddr, Ipv4Addr),
    grant: Option<&Grant<'_>>,
) -> Vec<u8> {
    let message = message(request, kind, from.1, grant);
    let (mac, ip) = match grant {
        None => (MacAddr::BROADCAST, Ipv4Addr::BROADCAST),
        Some(_) if !request.ciaddr.is_unspecified() => (request.mac, request.ciaddr),
        Some(_) if request.broadcast => (MacAddr::BROADCAST, Ipv4Addr::BROADCAST),
        Some(grant) => (request.mac, grant.address),
    };
    datagram(from, (mac, ip), DHCP_CLIENT_PORT, &message)
}

/// Builds the Ethernet frame for a datagram from port 67 of one host to a port of another.
pub(super) fn datagram(
    from: (MacAddr, Ipv4Addr),
    (mac, ip): (MacAddr, Ipv4Addr),
    dst_port: u16,
    message: &[u8],
) -> Vec<u8> {
    let ethernet = EthernetRepr {
        src_addr: EthernetAddress(from.0.0),
        dst_addr: EthernetAddress(mac.0),
        ethertype: EthernetProtocol::Ipv4,
    };
    let ipv4 = Ipv4Repr {
        src_addr: from.1,
        dst_addr: ip,
        next_header: IpProtocol::Udp,
        payload_len: UDP_HEADER_LEN + message.len(),
        hop_limit: TTL,
    };
    let udp = UdpRepr { src_port: DHCP_SERVER_PORT, dst_port };
    let checksums = ChecksumCapabilities::default();
    let ip_at = ethernet.buffer_len();
    let udp_at = ip_at + ipv4.buffer_len();
    let mut frame = vec![0; udp_at + ipv4.payload_len];
    ethernet.emit(&mut EthernetFrame::new_unchecked(&mut frame[..]));
    ipv4.emit(&mut Ipv4Packet::new_unchecked(&mut frame[ip_at..]), &checksums);
    udp.emit(
        &mut UdpPacket::new_unchecked(&mut frame[udp_at..]),
        &IpAddress::Ipv4(from.1),
        &IpAddress::Ipv4(ip),
        message.len(),
        |payload| payload.copy_from_slice(message),
        &checksums,
    );
    frame
}

/// Builds the DHCP message for a reply, padded to the BOOTP minimum.
fn message(
    request: &Request,
    kind: DhcpMessageType,
    server: Ipv4Addr,
    grant: Option<&Grant<'_>>,
) -> Vec<u8> {
    let seconds = grant.and_then(|grant| grant.lease_seconds);
    // By RFC 2131 §4.4.5, T1 is half of the lease and T2 is seven eighths of it.
    let t1 = seconds.map(|s| (s / 2).to_be_bytes());
    let t2 = seconds.map(|s| (s - s / 8).to_be_bytes());
    let broadcast = grant.map(|grant| grant.broadcast.octets());
    let mut options: Vec<DhcpOption<'_>> = Vec::new();
    let mut push = |kind, data| options.push(DhcpOption { kind, data });
    t1.iter().for_each(|data| push(OPTION_T1, data));
    t2.iter().for_each(|data| push(OPTION_T2, data));
    broadcast.iter().for_each(|data| push(OPTION_BROADCAST, data));
    let domain = grant.and_then(|grant| grant.domain);
    domain.iter().for_each(|name| push(OPTION_DOMAIN, name.as_bytes()));
    let mtu = grant.and_then(|grant| grant.mtu).map(u16::to_be_bytes);
    mtu.iter().for_each(|data| push(OPTION_MTU, data));
    if !request.client_id.is_empty() {
        push(OPTION_CLIENT, &request.client_id);
    }
    let mut repr = DhcpRepr {
        message_type: kind,
        transaction_id: request.xid,
        secs: 0,
        client_hardware_address: EthernetAddress(request.mac.0),
        client_ip: grant.map_or(Ipv4Addr::UNSPECIFIED, |_| request.ciaddr),
        your_ip: grant.map_or(Ipv4Addr::UNSPECIFIED, |grant| grant.address),
        server_ip: Ipv4Addr::UNSPECIFIED,
        router: grant.and_then(|grant| grant.router),
        subnet_mask: grant.map(|grant| grant.mask),
        relay_agent_ip: Ipv4Addr::UNSPECIFIED,
        // A DHCPNAK is broadcast even if the client could receive unicast (RFC 2131 §4.3.2).
        broadcast: request.broadcast || grant.is_none(),
        requested_ip: None,
        client_identifier: None,
        server_identifier: Some(server),
        parameter_request_list: None,
        dns_servers: None,
        max_size: None,
        lease_duration: seconds,
        renew_duration: None,
        rebind_duration: None,
        additional_options: &[],
    };
    let taken = repr.buffer_len() + options.iter().map(|o| 2 + o.data.len()).sum::<usize>();
    let room = MESSAGE_BYTES_MAX.saturating_sub(taken + 2) / 4;
    let names = grant.map_or(&[][..], |grant| grant.dns);
    let dns: Vec<u8> = names.iter().take(room.min(63)).flat_map(Ipv4Addr::octets).collect();
    if !dns.is_empty() {
        options.push(DhcpOption { kind: OPTION_DNS, data: &dns });
    }
    repr.additional_options = &options;
    let mut bytes = vec![0; repr.buffer_len().max(MESSAGE_BYTES_MIN)];
    let emitted = repr.emit(&mut DhcpPacket::new_unchecked(&mut bytes[..]));
    debug_assert!(emitted.is_ok(), "the buffer was measured");
    bytes
}
