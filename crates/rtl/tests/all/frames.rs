//! Random frames on the wires of a switch.

use crate::fates::{FRAME_BYTES_MIN, MASQUERADED, PORTS};
use axon_node::PortKind;
use axon_node::random::Random;
use axon_wire::constants::ethertype;
use axon_wire::header::{self, HopWidth, PacketType};
use axon_wire::masquerade;
use axon_wire::probe::{HEAD_BYTES, ProbeHead, ProbeOptions};
use axon_wire::{Hops, MacAddr, PortNo, Priority, Route};

/// MACs of hosts; some have routes.
const HOSTS: u64 = 12;

/// Source of random frames, each of which is unlike all others.
pub struct Frames {
    random: Random,
    width: HopWidth,
    count: u64,
}

impl Frames {
    pub fn new(seed: u64, width: HopWidth) -> Frames {
        Frames { random: Random::new(seed), width, count: 0 }
    }

    /// Returns a number less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    /// Returns whether an event with probability one in `of` happens.
    pub fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// Returns `least` to `most` random bytes.
    pub fn bytes(&mut self, least: usize, most: usize) -> Vec<u8> {
        let length = least + self.below((most - least + 1) as u64) as usize;
        (0..length).map(|_| self.random.next_u64() as u8).collect()
    }

    pub const fn width(&self) -> HopWidth {
        self.width
    }

    pub fn kind(&mut self) -> PortKind {
        match self.below(8) {
            0 => PortKind::Unknown,
            1..=4 => PortKind::Axon,
            _ => PortKind::Host,
        }
    }

    /// Returns the MAC of a host, or a masqueraded address.
    pub fn host(&mut self) -> MacAddr {
        if self.one_in(3) {
            let index = self.below(MASQUERADED as u64 + 1) as u16;
            return masquerade::address(index, self.below(2) as u32);
        }
        MacAddr([2, 0, 0, 0, 0, self.below(HOSTS) as u8])
    }

    /// Returns a route of 1 to 6 hops.
    pub fn route(&mut self) -> Route {
        let hops = 1 + self.below(6) as usize;
        let layer = axon_wire::Layer::new(self.below(8) as u8).unwrap_or_default();
        Route { hops: self.hops(hops), layer, ..Route::default() }
    }

    fn hop(&mut self) -> PortNo {
        match self.below(20) {
            0 => PortNo::CONTROL,
            1 => PortNo(PORTS + self.below(self.width.ports_max() as u64 - 4) as u16),
            _ => PortNo(self.below(PORTS.into()) as u16),
        }
    }

    fn hops(&mut self, count: usize) -> Hops {
        (0..count).map(|_| self.hop()).collect()
    }

    /// Returns a frame for a port of this kind, whose length without header is at most
    /// `bytes_max`.
    pub fn frame(&mut self, kind: PortKind, bytes_max: usize) -> Vec<u8> {
        let lengths = (bytes_max - FRAME_BYTES_MIN) as u64;
        let length = match self.below(3) {
            0 => FRAME_BYTES_MIN + self.below(lengths.min(60) + 1) as usize,
            _ => FRAME_BYTES_MIN + self.below(lengths + 1) as usize,
        };
        let ethernet = self.ethernet(length, kind != PortKind::Host);
        if kind == PortKind::Host || self.one_in(20) {
            return ethernet;
        }
        let mut packet = self.header();
        let at = packet.len();
        packet.extend(ethernet);
        if packet[0] >> 4 == PacketType::Probe as u8 && !self.one_in(4) {
            self.make_probe(&mut packet, at);
        }
        if self.one_in(30) {
            let bit = self.below(8 * packet.len().min(48) as u64) as usize;
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        packet
    }

    /// Puts the head of a probe into a frame, without a record so far.
    fn make_probe(&mut self, frame: &mut [u8], at: usize) {
        let head = ProbeHead {
            options: ProbeOptions(self.below(8) as u8),
            body_bytes: (frame.len() - at) as u16,
            sequence: self.random.next_u64() as u32,
            origin: axon_wire::NodeId(self.random.next_u64()),
        };
        frame[at..at + HEAD_BYTES].copy_from_slice(&head.emit()[..HEAD_BYTES]);
    }

    /// Returns an Axon header, whose length is right.
    fn header(&mut self) -> Vec<u8> {
        let (forward, reverse) = (self.below(7) as usize, self.below(6) as usize);
        let (forward, reverse) = match self.below(12) {
            0 => (forward + 30, reverse),
            1 => (forward, reverse + 30),
            2 => (0, reverse),
            _ => (forward.max(1), reverse),
        };
        let kinds = PacketType::ALL.len() as u64;
        let kind = match self.below(2) {
            0 => PacketType::Ethernet,
            _ => PacketType::ALL[self.below(kinds) as usize],
        };
        let mut bytes = vec![0; self.width.header_bytes(forward + reverse)];
        let (forward, reverse) = (self.hops(forward), self.hops(reverse));
        header::emit(&mut bytes, self.width, kind, &forward, &reverse).expect("ports of a switch");
        header::set_priority(&mut bytes, self.width, Priority::from_low_bits(self.below(8) as u8));
        bytes
    }

    /// Returns an Ethernet frame of random content; some are probes.
    fn ethernet(&mut self, length: usize, is_inside: bool) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..length).map(|_| self.random.next_u64() as u8).collect();
        let MacAddr(destination) = match self.below(16) {
            0 => MacAddr::BROADCAST,
            1 if !is_inside => MacAddr([1, 0x80, 0xc2, 0, 0, self.below(16) as u8]),
            2 => MacAddr([1, 0, 0x5e, 0, 0, self.below(256) as u8]),
            _ => self.host(),
        };
        frame[..6].copy_from_slice(&destination);
        frame[6..12].copy_from_slice(&self.host().0);
        let is_mac_control = self.one_in(40);
        frame[12..14].copy_from_slice(if is_mac_control { &[0x88, 8] } else { &[8, 0] });
        match self.below(16) {
            0 => frame[12..14].copy_from_slice(&ethertype::ARP.to_be_bytes()),
            1 => {
                frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
                frame[20..22].copy_from_slice(&[58, 255]);
                frame[54] = 135 + self.below(2) as u8;
            }
            2 => frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]),
            _ => {}
        }
        if self.one_in(20) {
            frame[12..14].copy_from_slice(&axon_wire::probe::ETHERTYPE.to_be_bytes());
            self.make_probe(&mut frame, 14);
        }
        self.count += 1;
        frame[38..46].copy_from_slice(&self.count.to_be_bytes());
        frame
    }
}
