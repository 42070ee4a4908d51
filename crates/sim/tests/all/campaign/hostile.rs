//! A host that attacks others: it forges ARP and DHCP under its own and other addresses, forges
//! messages of switches, replays received frames, and sends garbage.

use axon_fabric::model::End;
use axon_node::{Action, Input, Node, Shortcuts};
use axon_sim::World;
use axon_sim::links::{LinkId, WireEnd};
use axon_sim::station::StationNode;
use axon_wire::header::{self, PacketType};
use axon_wire::host_frame::{self, Arp, ArpOperation};
use axon_wire::mac_control::{MacControl, Pfc, Quanta};
use axon_wire::{FrameBuf, HopWidth, MacAddr, PortNo, PrioritySet, Span, Time, link};
use oorandom::Rand64;
use std::net::Ipv4Addr;

/// Received frames that it stores.
const HEARD_MAX: usize = 16;
/// The only port of a host.
const PORT: PortNo = PortNo(0);

/// A hostile host, which becomes silent at `until`.
pub struct Hostile {
    random: Rand64,
    /// Addresses of honest hosts.
    victims: Vec<(MacAddr, Ipv4Addr)>,
    hop_width: HopWidth,
    /// Maximum time between two frames.
    pause: Span,
    until: Time,
    next: Time,
    up: bool,
    busy: bool,
    heard: Vec<Vec<u8>>,
}

impl Hostile {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.rand_range(0..limit)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.random.rand_u64() as u8).collect()
    }

    fn someone(&mut self) -> (MacAddr, Ipv4Addr) {
        let own = MacAddr([2, 0xba, 0xd0, 0, 0, self.below(100) as u8]);
        let one = self.below(self.victims.len() as u64 * 2) as usize;
        let stranger = (own, Ipv4Addr::new(10, 0, self.below(3) as u8, self.below(256) as u8));
        self.victims.get(one).copied().unwrap_or(stranger)
    }

    fn arp(&mut self) -> Vec<u8> {
        let ((sender_mac, _), (_, sender_ip)) = (self.someone(), self.someone());
        let (target_mac, target_ip) = self.someone();
        let operation =
            if self.below(2) == 0 { ArpOperation::Request } else { ArpOperation::Reply };
        let to = if self.below(2) == 0 { MacAddr::BROADCAST } else { target_mac };
        host_frame::emit(to, Arp { operation, sender_mac, sender_ip, target_mac, target_ip })
    }

    /// Draws a DHCP client's message of any kind, with options that fit and some that do not.
    fn dhcp(&mut self) -> Vec<u8> {
        let ((mac, _), (_, ip)) = (self.someone(), self.someone());
        let mut bootp = vec![1, 1, 6, 0];
        bootp.extend(self.bytes(4));
        bootp.extend([0, 0, 0, 0]);
        bootp.extend(if self.below(2) == 0 { ip.octets() } else { [0; 4] });
        bootp.extend([0; 12]);
        bootp.extend(mac.0);
        bootp.resize(236, 0);
        bootp.extend([99, 130, 83, 99]);
        bootp.extend([53, 1, 1 + self.below(8) as u8]);
        if self.below(2) == 0 {
            bootp.extend([50, 4]);
            bootp.extend(ip.octets());
        }
        if self.below(2) == 0 {
            bootp.extend([54, 4, 10, 0, 0, 1]);
        }
        bootp.push(255);
        bootp.resize(300, 0);
        let (udp, total) = (bootp.len() + 8, bootp.len() + 28);
        let mut packet = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, 17, 0, 0];
        packet.extend([0, 0, 0, 0, 255, 255, 255, 255]);
        let sum: u32 = packet.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
        let sum = !(sum + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([0, 68, 0, 67, (udp >> 8) as u8, udp as u8, 0, 0]);
        packet.extend(bootp);
        ethernet(MacAddr::BROADCAST, mac, 0x0800, &packet)
    }

    /// Draws a frame that looks like one between switches.
    fn routed(&mut self) -> Vec<u8> {
        let forward: Vec<PortNo> =
            (0..1 + self.below(4)).map(|_| PortNo(self.below(8) as u16)).collect();
        let kinds = [PacketType::Ethernet, PacketType::Control, PacketType::Congestion];
        let mut packet = vec![0; 64];
        let kind = kinds[self.below(3) as usize];
        let header = header::emit(&mut packet, self.hop_width, kind, &forward, &[]);
        packet.truncate(header.expect("ports below 8 have a name in every width"));
        packet.extend(self.bytes(60));
        packet
    }

    fn frame(&mut self) -> Vec<u8> {
        let (victim, _) = self.someone();
        match self.below(12) {
            0..3 => self.arp(),
            3..6 => self.dhcp(),
            6 => {
                let length = 20 + self.below(100) as usize;
                let payload = self.bytes(length);
                link::emit(victim, &payload)
            }
            7 if !self.heard.is_empty() => {
                let which = self.below(self.heard.len() as u64) as usize;
                let mut again = self.heard[which].clone();
                if self.below(2) == 0 {
                    let at = self.below(again.len() as u64) as usize;
                    again[at] ^= 1 << self.below(8);
                }
                again
            }
            8 => self.routed(),
            9 => MacControl::Pfc(Pfc::of(PrioritySet::ALL, Quanta::MAX)).emit(victim).to_vec(),
            10 => {
                let payload = self.bytes(46);
                let (target, _) = self.someone();
                ethernet(target, victim, self.below(0x10000) as u16, &payload)
            }
            _ => {
                let length = 1 + self.below(200) as usize;
                self.bytes(length)
            }
        }
    }
}

fn ethernet(to: MacAddr, from: MacAddr, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [to.0, from.0].concat();
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

impl Node for Hostile {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Link { up, .. } => (self.up, self.busy) = (up, false),
            Input::TxDone { .. } => self.busy = false,
            Input::Frame { frame, .. } => {
                if self.heard.len() == HEARD_MAX {
                    self.heard.remove(0);
                }
                self.heard.push(frame.bytes().to_vec());
            }
            Input::Timeout | Input::Command(_) => {}
        }
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            let frame = FrameBuf::with_headroom(0, &self.frame());
            self.busy = true;
            self.next = now + Span::from_nanos(self.below(self.pause.as_nanos()));
            out.push(Action::Transmit { port: PORT, frame, complete_at: now, intact: true });
        }
    }

    fn deadline(&self) -> Option<Time> {
        (self.up && !self.busy && self.next < self.until).then_some(self.next)
    }
}

impl Shortcuts for Hostile {}

/// Connects a hostile host to a free port; the link can be disconnected later.
pub fn connect(world: &mut World, at: End, seed: u64, pause: Span, until: Time) -> LinkId {
    let fabric = world.fabric();
    let (hop_width, wire) = (fabric.hop_width, fabric.hosts[0].wire);
    let victims = (0..fabric.hosts.len())
        .filter_map(|host| Some((fabric.hosts[host].mac, world.address(host)?)));
    let node = Hostile {
        victims: victims.collect(),
        random: Rand64::new(u128::from(seed)),
        hop_width,
        pause,
        until,
        next: world.now(),
        up: false,
        busy: false,
        heard: Vec::new(),
    };
    let engine = world.engine_mut();
    let station = engine.add_station(&format!("x{seed}"));
    let near = WireEnd { station, port: PORT };
    let link = engine.connect(near, WireEnd { station: at.switch, port: at.port }, wire);
    engine.power_on(station, StationNode::Other(Box::new(node)));
    link
}
