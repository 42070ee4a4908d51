//! Frames that the programs leave to the node, on real devices.

use super::chain::{Host, at_tc, attach, next, pair};
use super::step::hex;
use super::{bpf, kernel, settings};
use crate::alone::{ip, needs};
use axon_linux::kernel::{Attachment, Hook, Kernel, KernelSettings, NodeQueue, Verdict};
use axon_linux::packet::PacketPort;
use axon_node::PortKind;
use axon_wire::header::{self, PacketType};
use axon_wire::{FrameBuf, HopWidth, MacAddr, PortNo, Route};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::Instant;

const GUEST: PortNo = PortNo(0);
const HOSTS: PortNo = PortNo(1);
const AXON: PortNo = PortNo(2);
const UNKNOWN: PortNo = PortNo(3);
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// A frame to `destination` with this type and these first bytes.
fn frame(destination: [u8; 6], rest: &[u8]) -> Vec<u8> {
    let mut bytes = [&destination[..], &[2, 0, 0, 0, 0, 1], rest].concat();
    bytes.resize(64, 0x5a);
    bytes
}

fn packet(kind: PacketType, forward: &[u16], reverse: &[u16]) -> Vec<u8> {
    let port = |&hop: &u16| if hop == 255 { PortNo::CONTROL } else { PortNo(hop) };
    let ports = |hops: &[u16]| hops.iter().map(port).collect::<Vec<_>>();
    let mut bytes = vec![0x5a; 80];
    header::emit(&mut bytes, HopWidth::Eight, kind, &ports(forward), &ports(reverse)).unwrap();
    bytes
}

/// Ingress port, receiving queue, and frame of each case.
fn cases() -> Vec<(PortNo, NodeQueue, Vec<u8>)> {
    let link_local = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
    let tagged = [0x81, 0, 0, 0x64, 0x81, 0, 0x20, 0x65, 0x88, 0xb7];
    vec![
        (HOSTS, NodeQueue::Hosts, frame(HOST, &[0x88, 0xb7])),
        (HOSTS, NodeQueue::Hosts, frame(HOST, &tagged)),
        (HOSTS, NodeQueue::Hosts, frame([0xff; 6], &[0x08, 0x06])),
        (HOSTS, NodeQueue::Hosts, frame([0xff; 6], &tagged)),
        (HOSTS, NodeQueue::Links, frame(link_local, &[0x88, 0xb5])),
        // A host that sends a frame like a packet of the fabric.
        (HOSTS, NodeQueue::Hosts, packet(PacketType::Ethernet, &[2, 1], &[])),
        (AXON, NodeQueue::Fabric, frame(link_local, &[0x88, 0xb5])),
        (AXON, NodeQueue::Fabric, packet(PacketType::Control, &[255], &[1, 2])),
        (AXON, NodeQueue::Fabric, packet(PacketType::Probe, &[1], &[])),
        // With hops that look like two tags.
        (
            AXON,
            NodeQueue::Fabric,
            packet(PacketType::Control, &[255; 6], &[129, 0, 1, 2, 129, 0, 3]),
        ),
        (UNKNOWN, NodeQueue::Links, frame(link_local, &[0x88, 0xb5])),
        (UNKNOWN, NodeQueue::Hosts, packet(PacketType::Ethernet, &[2, 1], &[])),
    ]
}

/// Each of three queues gets its frames, as they were on the wire, with the port in a tag.
pub fn node() {
    if bpf().is_none() {
        return;
    }
    let mut kernel = kernel("switch", settings(Hook::Tc, HopWidth::Eight, 4));
    let kinds = [(HOSTS, PortKind::Host), (AXON, PortKind::Axon), (UNKNOWN, PortKind::Unknown)];
    let mut outside: Vec<PacketPort> = Vec::new();
    for (port, kind) in kinds {
        let (inner, outer) = (format!("in{}", port.0), format!("out{}", port.0));
        pair(&inner, &outer);
        assert!(at_tc(attach(&mut kernel, port, &inner, kind)));
        outside.push(PacketPort::open(&outer, false).unwrap());
    }
    let queues = [NodeQueue::Fabric, NodeQueue::Links, NodeQueue::Hosts];
    let mut nodes: Vec<PacketPort> = Vec::new();
    for queue in queues {
        let (inner, outer) = (format!("kernel{}", queue as u8), format!("node{}", queue as u8));
        pair(&inner, &outer);
        nodes.push(PacketPort::open(&outer, false).unwrap());
    }
    let cases = cases();
    let send = |outside: &mut [PacketPort], port: PortNo, frame: &[u8]| {
        outside[port.index() - 1].send(&[FrameBuf::new(frame)]).unwrap();
    };
    send(&mut outside, HOSTS, &cases[0].2);
    let lost = || kernel.traffic(HOSTS).unwrap().lost_packets;
    assert_eq!(lost(), 1, "there is no node yet");
    for queue in queues {
        let device = format!("kernel{}", queue as u8);
        let ifindex = nix::net::if_::if_nametoindex(&device[..]).unwrap();
        kernel.set_node(queue, ifindex).unwrap();
    }
    for (port, queue, frame) in &cases {
        send(&mut outside, *port, frame);
        let came = next(&mut nodes[*queue as usize], || format!("{port} {}", hex(frame)));
        let tag = [&[0x81, 0], &port.0.to_be_bytes()[..]].concat();
        let expected = [&frame[..12], &tag, &frame[12..]].concat();
        assert_eq!(hex(&came), hex(&expected), "{port} {queue:?}");
    }
    for (port, _) in kinds {
        let left = cases.iter().filter(|case| case.0 == port).count() as u64;
        assert_eq!(kernel.traffic(port).unwrap().node_packets, left, "{port}");
    }
    if needs::device("/dev/net/tun") {
        untrusted(&mut kernel, &mut outside[AXON.index() - 1]);
    }
    // With a route it is forwarded by the kernel.
    kernel.set_route(HOSTS, MacAddr(HOST), &Route::from([2, 7])).unwrap();
    send(&mut outside, HOSTS, &cases[1].2);
    let came = next(&mut outside[AXON.index() - 1], || "a tagged frame".into());
    let expected = [&[0x10, 0, 0x80, 1, 0, 0x10, 7, 1], &cases[1].2[..]].concat();
    assert_eq!(hex(&came), hex(&expected));
    // MAC control is an exception: it is consumed here for any address.
    let pause = frame(HOST, &[0x88, 0x08, 0, 1, 0xff, 0xff]);
    send(&mut outside, HOSTS, &pause);
    let came = next(&mut nodes[NodeQueue::Hosts as usize], || "a PAUSE".into());
    assert_eq!(came[16..], pause[12..]);
    assert!(kernel.take_used(HOSTS, MacAddr(HOST)).unwrap());
}

/// A port that sends too much to a queue of the node loses the excess; its other queue and other
/// ports are unaffected.
pub fn budget() {
    if bpf().is_none() {
        return;
    }
    let one_per_ms =
        KernelSettings { node_frames_per_ms: 1, ..settings(Hook::Tc, HopWidth::Eight, 2) };
    let mut kernel = kernel("budget", one_per_ms);
    for queue in [NodeQueue::Links, NodeQueue::Hosts] {
        kernel.set_node(queue, 1).unwrap();
    }
    let mut out = [0; 128];
    let mut flood = kernel.load(PortNo(0)).unwrap();
    let (unknown, started) = (frame(HOST, &[0x88, 0xb7]), Instant::now());
    let mut to_node = 0;
    for _ in 0..5000 {
        let verdict = flood.run(&unknown, &mut out, 1).unwrap().verdict;
        to_node += u64::from(verdict == Verdict::Redirect);
    }
    let more = started.elapsed().as_millis() as u64 + 2;
    assert!((1024..=1024 + more).contains(&to_node), "{to_node} frames, {more} ms");
    let traffic = kernel.traffic(PortNo(0)).unwrap();
    assert_eq!((traffic.node_packets, traffic.lost_packets), (to_node, 5000 - to_node));
    let link_local = frame([0x01, 0x80, 0xc2, 0, 0, 0x0e], &[0x88, 0xb5]);
    let mut once = |frame: &[u8]| flood.run(frame, &mut out, 1).unwrap().verdict;
    assert_eq!(once(&link_local), Verdict::Redirect, "a queue of its own");
    let refused = (0..5000).filter(|_| once(&link_local) == Verdict::Drop).count();
    assert!(refused > 0, "with a budget of its own");
    let mut other = kernel.load(PortNo(1)).unwrap();
    for frame in [&unknown, &link_local] {
        assert_eq!(other.run(frame, &mut out, 1).unwrap().verdict, Verdict::Redirect);
    }
}

/// A TAP device whose guest passes packets behind a virtio header.
fn guest(name: &str) -> File {
    let file = File::options().read(true).write(true).open("/dev/net/tun").unwrap();
    // SAFETY: `ifreq` is plain data for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which `request` is.
    let set = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    ip(&format!("link set {name} up"));
    file
}

/// Datagrams that a guest passes as one packet: no device on the path would take them behind a
/// header, so they go to the node. Single frames go through the kernel.
fn untrusted(kernel: &mut Kernel, link: &mut PacketPort) {
    let mut guest = guest("guest");
    attach(kernel, GUEST, "guest", PortKind::Host);
    let destination = [2, 0, 0, 0, 0, 8];
    kernel.set_route(GUEST, MacAddr(destination), &Route::from([2, 7])).unwrap();
    let (length, cut) = (3000u16, 1400u16);
    let mut packet = vec![0; 10 + 42 + usize::from(length)];
    // virtio: a checksum to complete from byte 34, at 6 in there; UDP; 42 bytes before the payload.
    packet[..2].copy_from_slice(&[1, 5]);
    for (at, word) in [(2, 42), (4, cut), (6, 34), (8, 6)] {
        packet[at..at + 2].copy_from_slice(&word.to_ne_bytes());
    }
    let frame = &mut packet[10..];
    frame[..6].copy_from_slice(&destination);
    frame[12..16].copy_from_slice(&[0x08, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&(28 + length).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[38..40].copy_from_slice(&(8 + length).to_be_bytes());
    let node = Host::open("node2");
    guest.write_all(&packet).unwrap();
    let came = node.receive(|| "a super-packet".into());
    assert_eq!(came[10..16], destination);
    let traffic = kernel.traffic(GUEST).unwrap();
    assert_eq!((traffic.in_frames, traffic.node_packets), (0, 1));
    let plain = [&[0; 10], &packet[10..110]].concat();
    guest.write_all(&plain).unwrap();
    let came = next(link, || "a frame of a guest".into());
    assert_eq!(came[8..], plain[10..]);
    assert_eq!(kernel.traffic(GUEST).unwrap().in_frames, 1);
}

/// A chain of one switch, whose XDP programs push and strip, and pass the node's frames up.
pub fn xdp() {
    if bpf().is_none() {
        return;
    }
    let mut kernel = kernel("switch", settings(Hook::Xdp, HopWidth::Eight, 4));
    for (port, kind) in [(HOSTS, PortKind::Host), (AXON, PortKind::Axon)] {
        let (inner, outer) = (format!("in{}", port.0), format!("out{}", port.0));
        pair(&inner, &outer);
        // The far end of a link takes redirected frames only if it has a program or GRO.
        let gro = ["-K", &outer, "gro", "on"];
        let set = std::process::Command::new("ethtool").args(gro).status().unwrap();
        assert!(set.success());
        assert_eq!(attach(&mut kernel, port, &inner, kind), Attachment::XdpNative);
    }
    let mut inside = PacketPort::open("in1", false).unwrap();
    let [mut host, mut axon] =
        ["out1", "out2"].map(|device| PacketPort::open(device, false).unwrap());
    let miss = frame(HOST, &[0x88, 0xb7]);
    host.send(&[FrameBuf::new(&miss)]).unwrap();
    assert_eq!(hex(&next(&mut inside, || "a miss".into())), hex(&miss));
    kernel.set_route(HOSTS, MacAddr(HOST), &Route::from([2, 7])).unwrap();
    host.send(&[FrameBuf::new(&miss)]).unwrap();
    let pushed = [&[0x10, 0, 0x80, 1, 0, 0x10, 7, 1], &miss[..]].concat();
    assert_eq!(hex(&next(&mut axon, || "pushed".into())), hex(&pushed));
    let back = [&[0x10, 0, 0x80, 1, 0, 0x10, 1, 7], &miss[..]].concat();
    axon.send(&[FrameBuf::new(&back)]).unwrap();
    assert_eq!(hex(&next(&mut host, || "stripped".into())), hex(&miss));
    // A bridge is a device whose driver has no XDP.
    ip("link add name slow type bridge");
    assert_eq!(attach(&mut kernel, UNKNOWN, "slow", PortKind::Unknown), Attachment::XdpGeneric);
    let (hosts, fabric) = (kernel.traffic(HOSTS).unwrap(), kernel.traffic(AXON).unwrap());
    assert_eq!((hosts.in_frames, hosts.out_frames, hosts.node_packets), (1, 1, 1));
    assert_eq!((fabric.in_bytes, fabric.out_bytes), (72, 72));
}
