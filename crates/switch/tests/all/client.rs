//! A DHCP client: what it sends, and how it reads what it gets.

use axon_wire::MacAddr;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::*;
use std::net::Ipv4Addr;

pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);
pub const SERVER_MAC: MacAddr = MacAddr([2, 255, 0, 0, 0, 1]);
pub const NONE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

pub fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

pub fn mac(last: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, last])
}

#[derive(Clone, Debug)]
pub struct Client {
    pub mac: MacAddr,
    pub kind: DhcpMessageType,
    pub ciaddr: Ipv4Addr,
    pub requested: Option<Ipv4Addr>,
    pub server: Option<Ipv4Addr>,
    pub broadcast: bool,
    pub client_id: &'static [u8],
}

pub fn client(host: u8, kind: DhcpMessageType) -> Client {
    Client {
        mac: mac(host),
        kind,
        ciaddr: NONE,
        requested: None,
        server: None,
        broadcast: false,
        client_id: &[],
    }
}

impl Client {
    pub fn frame(&self) -> Vec<u8> {
        let options = [DhcpOption { kind: 61, data: self.client_id }];
        let repr = DhcpRepr {
            message_type: self.kind,
            transaction_id: 0x1234_5678,
            secs: 3,
            client_hardware_address: EthernetAddress(self.mac.0),
            client_ip: self.ciaddr,
            your_ip: NONE,
            server_ip: NONE,
            router: None,
            subnet_mask: None,
            relay_agent_ip: NONE,
            broadcast: self.broadcast,
            requested_ip: self.requested,
            client_identifier: None,
            server_identifier: self.server,
            parameter_request_list: Some(&[1, 3, 6]),
            dns_servers: None,
            max_size: None,
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: if self.client_id.is_empty() { &[] } else { &options },
        };
        let ip = Ipv4Repr {
            src_addr: self.ciaddr,
            dst_addr: Ipv4Addr::BROADCAST,
            next_header: IpProtocol::Udp,
            payload_len: 8 + repr.buffer_len(),
            hop_limit: 64,
        };
        let mut frame = vec![0; 34 + ip.payload_len];
        let ethernet = EthernetRepr {
            src_addr: EthernetAddress(self.mac.0),
            dst_addr: EthernetAddress::BROADCAST,
            ethertype: EthernetProtocol::Ipv4,
        };
        let checksums = ChecksumCapabilities::default();
        ethernet.emit(&mut EthernetFrame::new_unchecked(&mut frame[..]));
        ip.emit(&mut Ipv4Packet::new_unchecked(&mut frame[14..]), &checksums);
        UdpRepr { src_port: 68, dst_port: 67 }.emit(
            &mut UdpPacket::new_unchecked(&mut frame[34..]),
            &ip.src_addr.into(),
            &ip.dst_addr.into(),
            repr.buffer_len(),
            |payload| repr.emit(&mut DhcpPacket::new_unchecked(payload)).unwrap(),
            &checksums,
        );
        frame
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub kind: DhcpMessageType,
    pub to: (MacAddr, Ipv4Addr),
    pub chaddr: MacAddr,
    pub yiaddr: Ipv4Addr,
    pub seconds: (Option<u32>, Option<u32>, Option<u32>),
    pub mask: Option<Ipv4Addr>,
    pub router: Option<Ipv4Addr>,
    pub client_id: Option<Vec<u8>>,
    pub dns: Vec<u8>,
}

impl Reply {
    /// Every length and checksum is verified on the way.
    pub fn parse(frame: &[u8]) -> Reply {
        assert!(frame.len() >= 60);
        let ethernet = EthernetFrame::new_checked(frame).unwrap();
        assert_eq!(ethernet.src_addr().0, SERVER_MAC.0);
        let ip = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
        let checksums = ChecksumCapabilities::default();
        let ip_repr = Ipv4Repr::parse(&ip, &checksums).unwrap();
        assert_eq!(ip_repr.src_addr, SERVER);
        assert_eq!(usize::from(ip.total_len()) + 14, frame.len());
        let udp = UdpPacket::new_checked(ip.payload()).unwrap();
        let ends = (ip.src_addr().into(), ip.dst_addr().into());
        let udp_repr = UdpRepr::parse(&udp, &ends.0, &ends.1, &checksums).unwrap();
        assert_ne!(udp.checksum(), 0);
        assert_eq!((udp_repr.src_port, udp_repr.dst_port), (67, 68));
        let payload = udp.payload();
        assert!((300..=548).contains(&payload.len()));
        let packet = DhcpPacket::new_checked(payload).unwrap();
        let repr = DhcpRepr::parse(&packet).unwrap();
        assert_eq!((repr.transaction_id, repr.server_identifier), (0x1234_5678, Some(SERVER)));
        let option = |kind| packet.options().find(|option| option.kind == kind);
        Reply {
            kind: repr.message_type,
            to: (MacAddr(ethernet.dst_addr().0), ip.dst_addr()),
            chaddr: MacAddr(repr.client_hardware_address.0),
            yiaddr: repr.your_ip,
            seconds: (repr.lease_duration, repr.renew_duration, repr.rebind_duration),
            mask: repr.subnet_mask,
            router: repr.router,
            client_id: option(61).map(|option| option.data.to_vec()),
            dns: option(6).map_or(Vec::new(), |option| option.data.to_vec()),
        }
    }
}

pub fn selecting(host: u8, address: Ipv4Addr) -> Client {
    Client {
        requested: Some(address),
        server: Some(SERVER),
        ..client(host, DhcpMessageType::Request)
    }
}

pub fn reboot(host: u8, address: Ipv4Addr) -> Client {
    Client { requested: Some(address), ..client(host, DhcpMessageType::Request) }
}

pub fn renewing(host: u8, address: Ipv4Addr) -> Client {
    Client { ciaddr: address, ..client(host, DhcpMessageType::Request) }
}
