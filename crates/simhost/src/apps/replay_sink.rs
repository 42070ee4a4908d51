//! Counting of replayed frames at a receiving host.
//!
//! Captured frames carry no stamp, no port identifies their counter, and the host sends and
//! receives other frames too. So frames are recognized by their contents, except for the addresses
//! that the replay or the network replaces.

use super::replay::{sent_bytes, set_addresses};
use super::{App, FlowStats, Received};
use crate::stack::Stack;
use axon_capture::CapturedFrame;
use axon_wire::constants::length::ETHERNET_ADDRESSES;
use axon_wire::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use axon_wire::{MacAddr, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Hashes of all frames of a capture, and the length of each before padding by a NIC.
#[derive(Clone, Debug)]
pub struct Likenesses(Arc<BTreeMap<u64, usize>>);

impl Likenesses {
    /// Returns the hashes of the frames that a host with this MTU sends.
    pub fn of(frames: &[CapturedFrame], mtu: u16) -> Likenesses {
        let whole = |frame: &CapturedFrame| {
            let length = sent_bytes(frame, mtu)?;
            let mut bytes = vec![0; length.max(FRAME_BYTES_MIN)];
            bytes[..frame.bytes.len()].copy_from_slice(&frame.bytes);
            Some((likeness(bytes), length))
        };
        Likenesses(Arc::new(frames.iter().filter_map(whole).collect()))
    }
}

/// Returns the hash of a frame without its MACs and IPv4 addresses, with checksums adjusted
/// accordingly.
fn likeness(mut frame: Vec<u8>) -> u64 {
    let macs = frame.len().min(ETHERNET_ADDRESSES);
    frame[..macs].fill(0);
    if frame.len() >= ETHERNET_BYTES {
        set_addresses(&mut frame, Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
    }
    xxh3_64(&frame)
}

/// Counter of the frames of one replay. Two replays of one capture are distinguished by their
/// senders' MACs, where these are known.
#[derive(Debug)]
pub(crate) struct ReplaySink {
    frames: Likenesses,
    from: Option<MacAddr>,
    to: BTreeSet<MacAddr>,
    stats: FlowStats,
}

impl ReplaySink {
    /// Counts frames with a destination MAC in `to` and, if given, the source MAC `from`.
    pub(crate) fn new(
        frames: Likenesses,
        from: Option<MacAddr>,
        to: BTreeSet<MacAddr>,
    ) -> ReplaySink {
        ReplaySink { frames, from, to, stats: FlowStats::default() }
    }
}

impl App for ReplaySink {
    fn poll(&mut self, _now: Time, _stack: &mut Stack) -> bool {
        false
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn stop(&mut self, now: Time, _stack: &mut Stack) {
        self.stats.done = Some(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn watches(&self) -> bool {
        true
    }

    fn watch(&mut self, now: Time, frame: &[u8]) {
        let Some((to, rest)) = frame.split_first_chunk::<6>() else { return };
        let Some((from, _)) = rest.split_first_chunk::<6>() else { return };
        if self.from.is_none_or(|known| known.0 == *from)
            && self.to.contains(&MacAddr(*to))
            && self.stats.done.is_none()
            && let Some(&bytes) = self.frames.0.get(&likeness(frame.to_vec()))
        {
            self.stats.received.count(now, bytes);
        }
    }

    fn received_from(&self, _from: (Ipv4Addr, u16)) -> Option<&Received> {
        Some(&self.stats.received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{self, Addresses};

    #[test]
    fn what_no_host_sends_is_not_even_looked_at() {
        let frame = |wire_bytes| CapturedFrame {
            at: axon_wire::Span::ZERO,
            bytes: vec![7; 13],
            wire_bytes,
        };
        // Each of these would take 4 GiB if expanded.
        let hostile = vec![frame(u32::MAX as usize); 1_000];
        assert!(Likenesses::of(&hostile, 1500).0.is_empty());
        let edges = [13, 14, 1514, 1515].map(frame);
        let mut lengths: Vec<usize> = Likenesses::of(&edges, 1500).0.values().copied().collect();
        lengths.sort_unstable();
        assert_eq!(lengths, [14, 1514]);
    }

    #[test]
    fn a_frame_is_known_whatever_its_addresses_and_checksums_are() {
        let frame = |octet: u8, fill: u16| {
            let ends = Addresses {
                source: (MacAddr([octet; 6]), Ipv4Addr::new(192, 168, 7, octet), 1),
                target: (MacAddr([4; 6]), Ipv4Addr::new(8, 8, octet, 4), 2),
            };
            let mut frame = vec![0; datagram::HEADER_BYTES + 33];
            datagram::emit(&mut frame, ends, |payload| {
                payload.fill(0);
                payload[..2].copy_from_slice(&fill.to_be_bytes());
            });
            frame
        };
        // Payloads with every checksum, including zero.
        for fill in 0..=u16::MAX {
            let there = frame(9, fill);
            let mut rewritten = there.clone();
            set_addresses(&mut rewritten, Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
            assert_eq!(likeness(there), likeness(rewritten), "{fill:#x}");
        }
        assert_ne!(likeness(frame(9, 1)), likeness(frame(9, 2)));
        for bytes in 0..60 {
            likeness(vec![0x45; bytes]);
        }
    }
}
