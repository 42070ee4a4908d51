//! Replay of a capture with its original timing.
//!
//! A truncated frame is padded with zeros to its length on the wire. MACs, or MACs and IPv4
//! addresses, can be replaced by those of the host and its target; checksums of IPv4, TCP and UDP
//! are updated (RFC 1624).

use super::beginning::Beginning;
use super::{App, FlowStats};
use crate::stack::Stack;
use axon_capture::CapturedFrame;
use axon_wire::cn;
use axon_wire::constants::ethertype::IPV4;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::{MacAddr, Time};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Capture to replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayPlan {
    /// Target address, for rewritten frames.
    pub target: Ipv4Addr,
    /// Captured frames. A frame longer than the host's MTU allows is not sent.
    pub frames: Arc<[CapturedFrame]>,
    /// Fields to rewrite.
    pub rewrite: Rewrite,
}

/// Fields that replay rewrites in the frames of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Source and destination MAC become those of the two hosts.
    Macs,
    /// MACs and IPv4 addresses become those of the two hosts, and checksums are updated.
    Addresses,
    /// Frames are sent as they were captured.
    Nothing,
}

/// Returns the length in bytes at which a captured frame is sent, or `None` if it is not sent
/// because it is shorter than an Ethernet header or longer than the MTU allows, tags aside. A
/// capture may claim 4 GiB for a frame of which it holds no bytes.
pub fn sent_bytes(frame: &CapturedFrame, mtu: u16) -> Option<usize> {
    let bytes = frame.wire_bytes.max(frame.bytes.len());
    let most = ETHERNET_BYTES + cn::tag_bytes(&frame.bytes) + usize::from(mtu);
    (ETHERNET_BYTES..=most).contains(&bytes).then_some(bytes)
}

/// Running replay.
pub(crate) struct Replay {
    plan: ReplayPlan,
    next: usize,
    /// Time of the first frame.
    began: Time,
    beginning: Beginning,
    stats: FlowStats,
}

impl Replay {
    pub(crate) fn new(plan: ReplayPlan, now: Time) -> Replay {
        let stats = FlowStats::default();
        Replay { plan, next: 0, began: now, beginning: Beginning::default(), stats }
    }

    fn due(&self) -> Option<Time> {
        let frame = self.plan.frames.get(self.next).filter(|_| self.stats.done.is_none())?;
        Some(self.began + frame.at)
    }

    /// Returns the target's address and MAC, as far as they are needed.
    fn way(&self, stack: &mut Stack) -> Option<(Ipv4Addr, MacAddr)> {
        match self.plan.rewrite {
            Rewrite::Nothing => Some((Ipv4Addr::UNSPECIFIED, MacAddr::BROADCAST)),
            Rewrite::Macs | Rewrite::Addresses => stack.way_to(self.plan.target),
        }
    }

    fn send(&mut self, now: Time, way: (Ipv4Addr, MacAddr), stack: &mut Stack) {
        let Some(frame) = self.plan.frames.get(self.next) else { return };
        self.next += 1;
        let Some(bytes) = sent_bytes(frame, stack.ip.mtu()).filter(|_| stack.nic.has_room()) else {
            self.stats.failed += 1;
            return;
        };
        let (own, from, to) = (stack.ip.mac(), way.0, (way.1, self.plan.target));
        let rewrite = self.plan.rewrite;
        stack.nic.build(bytes, |room| {
            room[..frame.bytes.len()].copy_from_slice(&frame.bytes);
            room[frame.bytes.len()..].fill(0);
            if rewrite != Rewrite::Nothing {
                room[..6].copy_from_slice(&to.0.0);
                room[6..12].copy_from_slice(&own.0);
            }
            if rewrite == Rewrite::Addresses {
                set_addresses(room, from, to.1);
            }
        });
        self.stats.count_sent(now, bytes);
    }
}

/// Replaces the addresses of an IPv4 packet and updates its checksums. Ignores other frames.
pub(crate) fn set_addresses(frame: &mut [u8], from: Ipv4Addr, to: Ipv4Addr) {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let packet = &mut frame[ETHERNET_BYTES - 2..];
    if packet.len() < 22 || packet[..2] != IPV4.to_be_bytes() || packet[2] >> 4 != 4 {
        return;
    }
    let packet = &mut packet[2..];
    let mut new = [0; 8];
    new[..4].copy_from_slice(&from.octets());
    new[4..].copy_from_slice(&to.octets());
    let mut difference = 0u64;
    for (old, new) in packet[12..20].chunks_exact(2).zip(new.chunks_exact(2)) {
        difference += u64::from(!u16::from_be_bytes([old[0], old[1]]));
        difference += u64::from(u16::from_be_bytes([new[0], new[1]]));
    }
    packet[12..20].copy_from_slice(&new);
    mend(packet, 10, difference);
    let header_bytes = usize::from(packet[0] & 15) * 4;
    let later_fragment = (packet[6] & 0x1f, packet[7]) != (0, 0);
    let place = match packet[9] {
        TCP => header_bytes + 16,
        UDP => header_bytes + 6,
        _ => return,
    };
    // A UDP checksum of zero means none.
    let none = packet[9] == UDP && packet.get(place..place + 2) == Some(&[0, 0]);
    if later_fragment || none {
        return;
    }
    mend(packet, place, difference);
    // A computed zero is sent as all ones (RFC 768).
    if packet[9] == UDP && packet.get(place..place + 2) == Some(&[0, 0]) {
        packet[place..place + 2].fill(0xff);
    }
}

/// Adds a difference to the checksum at `place`, if the packet is long enough.
fn mend(packet: &mut [u8], place: usize, difference: u64) {
    let Some(checksum) = packet.get_mut(place..place + 2) else { return };
    let mut sum = u64::from(!u16::from_be_bytes([checksum[0], checksum[1]])) + difference;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    checksum.copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

impl App for Replay {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        while self.due().is_some_and(|due| due <= now) {
            let Some(way) = self.way(stack) else {
                if self.beginning.has_begun() {
                    // The target is no longer known: this frame is lost.
                    self.next += 1;
                    self.stats.failed += 1;
                    continue;
                }
                return self.beginning.wait();
            };
            if self.beginning.begin() {
                self.began = now;
            }
            self.send(now, way, stack);
            if self.next == self.plan.frames.len() {
                self.stats.completed = 1;
                self.stats.done = Some(now);
            }
        }
        false
    }

    fn deadline(&self) -> Option<Time> {
        self.due().filter(|_| !self.beginning.is_waiting())
    }

    fn stop(&mut self, now: Time, _stack: &mut Stack) {
        self.stats.done.get_or_insert(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{self, Addresses};
    use smoltcp::wire::{Ipv4Packet, UdpPacket};

    #[test]
    fn a_tag_comes_on_top_of_the_longest_frame() {
        let sent = |wire_bytes: usize, ethertype: [u8; 2]| {
            let bytes = [&[2; 12][..], &ethertype, &[0; 46]].concat();
            sent_bytes(&CapturedFrame { at: axon_wire::Span::ZERO, bytes, wire_bytes }, 1500)
        };
        assert_eq!((sent(1514, [8, 0]), sent(1515, [8, 0])), (Some(1514), None));
        assert_eq!((sent(1518, [0x81, 0]), sent(1519, [0x81, 0])), (Some(1518), None));
    }

    #[test]
    fn other_addresses_bring_their_checksums_along() {
        let ends = Addresses {
            source: (MacAddr([2; 6]), Ipv4Addr::new(192, 168, 7, 9), 1),
            target: (MacAddr([4; 6]), Ipv4Addr::new(8, 8, 4, 4), 2),
        };
        let mut frame = vec![0; datagram::HEADER_BYTES + 33];
        datagram::emit(&mut frame, ends, |payload| payload.fill(0x5a));
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 255, 254));
        set_addresses(&mut frame, from, to);
        let packet = Ipv4Packet::new_checked(&frame[ETHERNET_BYTES..]).unwrap();
        assert_eq!((packet.src_addr(), packet.dst_addr()), (from, to));
        assert!(packet.verify_checksum());
        let datagram = UdpPacket::new_checked(packet.payload()).unwrap();
        assert!(datagram.verify_checksum(&from.into(), &to.into()));
        // Non-IPv4 frames and frames too short for addresses stay unchanged.
        for bytes in ETHERNET_BYTES..60 {
            let mut frame = vec![0x45; bytes];
            set_addresses(&mut frame, from, to);
            assert_eq!(frame, vec![0x45; bytes], "{bytes}: EtherType 0x4545");
        }
        for bytes in ETHERNET_BYTES..ETHERNET_BYTES + 20 {
            let mut short = frame[..bytes].to_vec();
            set_addresses(&mut short, to, from);
            assert_eq!(short, frame[..bytes], "{bytes}");
        }
    }
}
