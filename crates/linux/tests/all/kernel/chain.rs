//! Three switches in a line between two hosts, all of them the tc program on veth pairs of one
//! namespace. Frames and super-packets of a host's stack arrive whole.

use super::step::hex;
use super::{BPF, bpf, kernel, settings};
use crate::alone::ip;
use axon_linux::kernel::{Attachment, Hook, Kernel, KernelSettings};
use axon_linux::packet::PacketPort;
use axon_linux::port::{Pool, Port};
use axon_linux::sys;
use axon_node::PortKind;
use axon_wire::{HopWidth, MacAddr, PortNo, Route};
use nix::sys::socket::sockopt::UdpGsoSegment;
use nix::sys::socket::{MsgFlags, recv, send};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

/// MTU of the fabric, above 1500 and the headers used here.
const MTU: usize = 1600;
/// `struct virtio_net_hdr`, in front of each packet of a [`Host`].
const VIRTIO_BYTES: usize = 10;
/// Payload bytes of each segment of a super-packet.
const CUT: u16 = 1400;

/// Ports of a switch: 0 to the left, 1 to the right.
const LEFT: PortNo = PortNo(0);
const RIGHT: PortNo = PortNo(1);

/// A host at the end of the line, with packets before segmentation.
pub struct Host {
    socket: OwnedFd,
}

impl Host {
    pub fn open(device: &str) -> Host {
        let socket = sys::packet_socket().unwrap();
        sys::set_packet_option(socket.as_fd(), libc::PACKET_VNET_HDR, &1i32).unwrap();
        sys::set_packet_option(socket.as_fd(), libc::PACKET_IGNORE_OUTGOING, &1i32).unwrap();
        let index = nix::net::if_::if_nametoindex(device).unwrap();
        sys::bind_packet(socket.as_fd(), index, libc::ETH_P_ALL as u16).unwrap();
        Host { socket }
    }

    /// Sends a frame behind its virtio header.
    pub fn send(&self, packet: &[u8]) {
        let sent = send(self.socket.as_raw_fd(), packet, MsgFlags::empty());
        assert_eq!(sent, Ok(packet.len()), "{}", hex(packet));
    }

    /// Returns the next packet, with its virtio header.
    pub fn receive(&self, context: impl Fn() -> String) -> Vec<u8> {
        let mut bytes = vec![0; 70_000];
        loop {
            match recv(self.socket.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
                Ok(length) => {
                    bytes.truncate(length);
                    return bytes;
                }
                Err(nix::errno::Errno::EAGAIN) => {}
                Err(error) => panic!("{error}: {}", context()),
            }
            if !comes(&self.socket) {
                panic!("nothing came: {}", context());
            }
        }
    }
}

/// True if a packet arrives within two seconds.
fn comes(socket: &impl AsFd) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(2000u16)).unwrap() > 0
}

/// Creates a pair of devices that are up, with the MTU of a fabric's links.
pub fn pair(a: &str, b: &str) {
    for which in ["all", "default"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
    ip(&format!("link add name {a} mtu {MTU} type veth peer name {b} mtu {MTU}"));
    sys::set_device_up(a, true).unwrap();
    sys::set_device_up(b, true).unwrap();
}

/// Assigns a device to a port of a switch, and attaches the program.
pub fn attach(kernel: &mut Kernel, port: PortNo, device: &str, kind: PortKind) -> Attachment {
    let ifindex = nix::net::if_::if_nametoindex(device).unwrap();
    kernel.set_port(port, ifindex, kind).unwrap();
    kernel.attach(port, device).unwrap()
}

/// True if the program is attached at tc: by a link, or before Linux 6.6 by a filter.
pub fn at_tc(attachment: Attachment) -> bool {
    matches!(attachment, Attachment::Tc | Attachment::TcFilter)
}

/// Hosts `a` and `b`, with the switches between them.
struct Chain {
    switches: Vec<Kernel>,
    a: Host,
    b: Host,
}

impl Chain {
    fn new(width: HopWidth, switches: u16) -> Chain {
        let name = |switch: u16, port: PortNo| match (switch, port) {
            (0, LEFT) => "ha1".to_owned(),
            (switch, RIGHT) if switch + 1 == switches => "hb1".to_owned(),
            _ => format!("s{switch}{}", port.0),
        };
        pair("ha", "ha1");
        pair("hb", "hb1");
        for switch in 1..switches {
            pair(&name(switch - 1, RIGHT), &name(switch, LEFT));
        }
        let made = (0..switches).map(|switch| {
            let settings =
                KernelSettings { routes_per_port_max: 70_000, ..settings(Hook::Tc, width, 2) };
            let mut kernel = kernel(&format!("switch{switch}"), settings);
            for port in [LEFT, RIGHT] {
                let is_host =
                    (switch, port) == (0, LEFT) || (switch + 1, port) == (switches, RIGHT);
                let kind = if is_host { PortKind::Host } else { PortKind::Axon };
                assert!(at_tc(attach(&mut kernel, port, &name(switch, port), kind)));
            }
            kernel
        });
        Chain { switches: made.collect(), a: Host::open("ha"), b: Host::open("hb") }
    }

    /// Removes the devices and pinned objects.
    fn remove(self) {
        for device in ["ha", "hb", "s10", "s20"] {
            let _ = Command::new("ip").args(["link", "delete", device]).output();
        }
        for switch in 0..self.switches.len() {
            Kernel::remove(&Path::new(BPF).join(format!("switch{switch}"))).unwrap();
        }
    }

    /// Installs the route from one end to the other, for frames to `destination`.
    fn route(&mut self, destination: MacAddr) {
        let route: Route = self.switches.iter().map(|_| RIGHT).collect();
        self.switches[0].set_route(LEFT, destination, &route).unwrap();
    }

    /// Sends packets from `a` and compares them with those that arrive at `b`.
    fn pass(&self, packets: &[Vec<u8>]) {
        for some in packets.chunks(16) {
            some.iter().for_each(|packet| self.a.send(packet));
            for packet in some {
                let came = self.b.receive(|| hex(packet));
                // Both mark checksums that are left to the device.
                assert_eq!(hex(&came), hex(packet));
            }
        }
    }
}

/// A frame of any type, behind an empty virtio header.
fn frame(destination: MacAddr, source: [u8; 6], ethertype: u16, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; VIRTIO_BYTES + bytes];
    let frame = &mut packet[VIRTIO_BYTES..];
    for (at, byte) in frame.iter_mut().enumerate() {
        *byte = at as u8 ^ 0x5a;
    }
    frame[..6].copy_from_slice(&destination.0);
    frame[6..12].copy_from_slice(&source);
    frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
    packet
}

/// A socket of host `a` that passes its stack several datagrams at once, which must not be
/// segmented on the path.
struct Sender {
    socket: UdpSocket,
}

impl Sender {
    fn new(is_v6: bool) -> Sender {
        let own = if is_v6 { "[fd00::1]:5000" } else { "10.0.0.1:5000" };
        let socket = UdpSocket::bind(own).unwrap();
        nix::sys::socket::setsockopt(&socket, UdpGsoSegment, &i32::from(CUT)).unwrap();
        Sender { socket }
    }

    fn send(&self, to: SocketAddr, payload: &[u8]) {
        assert_eq!(self.socket.send_to(payload, to).unwrap(), payload.len());
    }
}

/// Address of datagrams for the destination with these two bytes.
fn address(value: u16, is_v6: bool) -> SocketAddr {
    let [a, b] = value.to_be_bytes();
    let ip: IpAddr = if is_v6 {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, value, 7).into()
    } else {
        Ipv4Addr::new(10, a, b, 7).into()
    };
    (ip, 5001).into()
}

/// Destination whose frames have `value` in bytes 12 and 13 behind a header of 9 bytes.
fn destination(value: u16) -> MacAddr {
    let [a, b] = value.to_be_bytes();
    MacAddr([2, 0, 0, a, b, 7])
}

/// Gives host `a` an address and all these neighbours.
fn neighbours(values: impl Iterator<Item = u16>, is_v6: bool) {
    ip("link set ha address 02:00:00:00:00:01");
    let own = if is_v6 { "fd00::1/64 dev ha nodad" } else { "10.0.0.1/8 dev ha" };
    if is_v6 {
        std::fs::write("/proc/sys/net/ipv6/conf/ha/disable_ipv6", "0").unwrap();
    }
    ip(&format!("address add {own}"));
    let mut lines = String::new();
    for value in values {
        let (to, mac) = (address(value, is_v6).ip(), destination(value));
        lines += &format!("neigh add {to} lladdr {mac} dev ha nud permanent\n");
    }
    let mut ip = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    ip.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(ip.wait().unwrap().success());
}

/// True if a packet carries datagrams of a [`Sender`].
fn is_datagrams(packet: &[u8]) -> bool {
    let frame = &packet[VIRTIO_BYTES..];
    let port = |at: usize| frame.get(at..at + 2) == Some(&5001u16.to_be_bytes()[..]);
    match frame[12..14] {
        [0x08, 0] => frame[23] == 17 && port(36),
        [0x86, 0xdd] => frame[20] == 17 && port(56),
        _ => false,
    }
}

/// Several datagrams at once arrive as one packet.
fn super_packets(chain: &Chain, values: impl Iterator<Item = u16>, is_v6: bool) {
    let sender = Sender::new(is_v6);
    let payload: Vec<u8> = (0..3000).map(|at| (at % 251) as u8).collect();
    let headers = if is_v6 { 62 } else { 42 };
    for value in values {
        sender.send(address(value, is_v6), &payload);
        let context = || format!("{value:04x}, v6 {is_v6}");
        let came = loop {
            let came = chain.b.receive(context);
            if is_datagrams(&came) {
                break came;
            }
        };
        let (virtio, frame) = came.split_at(VIRTIO_BYTES);
        assert_eq!(frame.len(), headers + payload.len(), "{}: it was cut", context());
        assert_eq!(virtio[4..6], CUT.to_ne_bytes(), "{}", context());
        assert_eq!(frame[..6], destination(value).0, "{}", context());
        assert!(frame[headers..] == payload, "{}: another payload", context());
    }
}

/// With hops of 8 bits and three of them the header is 9 bytes long: bytes 12 and 13 of the packet
/// are the fourth and the fifth of the destination.
pub fn every_value() {
    if bpf().is_none() {
        return;
    }
    let mut chain = Chain::new(HopWidth::Eight, 3);
    let mut packets = Vec::new();
    for value in 0..=u16::MAX {
        chain.route(destination(value));
        packets.push(frame(destination(value), [2, 0, 0, 0, 0, 1], 0x88b7, 60));
    }
    chain.pass(&packets);
    neighbours(0..=u16::MAX, false);
    super_packets(&chain, 0..=u16::MAX, false);
    for kernel in &chain.switches {
        let (left, right) = (kernel.traffic(LEFT).unwrap(), kernel.traffic(RIGHT).unwrap());
        assert_eq!((left.node_packets, left.lost_packets), (0, 0));
        // 3000 bytes are cut into three frames.
        assert_eq!((left.in_frames, right.out_frames), (4 << 16, 4 << 16));
    }
    // Of IPv6, types that a kernel may treat specially, and some others.
    let types = [0x0800, 0x8100, 0x88a8, 0x86dd, 0x8906, 0x8847, 0x8848, 0x6558, 0x8914, 0x88e5];
    let values = || types.into_iter().chain((0..=u16::MAX).step_by(257));
    neighbours(values(), true);
    super_packets(&chain, values(), true);
}

/// Frames of hosts with tags of their own, and addresses that look like tags behind a header, one
/// after the other.
pub fn tags() {
    if bpf().is_none() {
        return;
    }
    let tags: [&[u16]; 6] = [
        &[0x8100, 0x0064],
        &[0x88a8, 0x2064],
        &[0x88a8, 0x0064, 0x8100, 0xe065],
        &[0x8100, 0x0064, 0x8100, 0x0065],
        &[0x8100, 0x0064, 0x88a8, 0x0065, 0x8100, 0x0066],
        &[],
    ];
    let mut chain = Chain::new(HopWidth::Eight, 3);
    let mut packets = Vec::new();
    for (index, to) in [[0u8, 1], [0x81, 0], [0x88, 0xa8], [0x89, 0x06]].into_iter().enumerate() {
        let destination = MacAddr([2, 0, 0, to[0], to[1], index as u8]);
        chain.route(destination);
        // Behind 9 bytes, bytes 16 and 17 are the second and third of the source, 20 and 21 its
        // last and the first of the type.
        for source in [[2, 0, 0, 0, 0, 1], [2, 0x81, 0, 0, 0, 1], [2, 0x88, 0xa8, 0, 1, 0x81]] {
            for tags in tags {
                for (ethertype, bytes) in [(0x88b7, 46), (0x0800, 46), (0x86dd, 34), (5, 1500)] {
                    let mut packet = frame(destination, source, ethertype, 14 + bytes);
                    let tags = tags.iter().flat_map(|word| word.to_be_bytes());
                    let at = VIRTIO_BYTES + 12;
                    packet.splice(at..at, tags);
                    packets.push(packet);
                }
            }
        }
    }
    // A frame of 1500 bytes may have one tag in addition, and the node forwards no longer frames in
    // this test.
    packets.retain(|packet| packet.len() <= VIRTIO_BYTES + 1518);
    let mut port = PacketPort::open("hb", false).unwrap();
    for packet in packets {
        chain.a.send(&packet);
        let came = next(&mut port, || hex(&packet));
        assert_eq!(hex(&came), hex(&packet[VIRTIO_BYTES..]));
    }
}

/// Returns the next frame at a port, with the tag that the kernel removed.
pub fn next(port: &mut PacketPort, context: impl Fn() -> String) -> Vec<u8> {
    receive(port, 1, context).remove(0)
}

/// Returns the next `count` frames at a port, and asserts that no more arrive.
pub fn receive(port: &mut PacketPort, count: usize, context: impl Fn() -> String) -> Vec<Vec<u8>> {
    let (mut pool, mut frames) = (Pool::default(), Vec::new());
    while frames.len() < count {
        port.receive(&mut pool, &mut frames).unwrap();
        let more = frames.len() >= count || comes(&port.fd());
        assert!(more, "{} of {count} came: {}", frames.len(), context());
    }
    assert_eq!(frames.len(), count, "{}", context());
    frames.iter().map(|frame| frame.bytes().to_vec()).collect()
}

/// Routes to and fro, up to the length that the programs attach, with hops that span several words.
pub fn long_routes() {
    if bpf().is_none() {
        return;
    }
    for (width, most) in [(HopWidth::Four, 109), (HopWidth::Eight, 53), (HopWidth::Sixteen, 27)] {
        let mut chain = Chain::new(width, 3);
        let lengths = (3..=most).step_by(2);
        for hops in lengths.clone() {
            // To the second switch and back to the first, and at last to the end.
            let to_and_fro = (0..hops - 3).map(|hop| if hop % 2 == 0 { RIGHT } else { LEFT });
            let route: Route = to_and_fro.chain([RIGHT; 3]).collect();
            chain.switches[0].set_route(LEFT, destination(hops), &route).unwrap();
            let packet = frame(destination(hops), [2, 0, 0, 0, 0, 1], 0x88b7, 60);
            chain.pass(&[packet]);
        }
        neighbours(lengths.clone(), false);
        super_packets(&chain, lengths, false);
        for kernel in &chain.switches {
            let traffic = kernel.traffic(LEFT).unwrap();
            assert_eq!((traffic.node_packets, traffic.lost_packets), (0, 0), "{width:?}");
        }
        chain.remove();
    }
}
