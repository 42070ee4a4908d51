//! Frames that wait for their route (paper 001 §4.2.2, last paragraph on route set-up).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use axon_wire::{MacAddr, PortNo};

/// What a waiting frame costs beside its bytes, so that tiny frames do not wait for free.
const FRAME_OVERHEAD_BYTES: usize = 64;

/// The waiting room: one queue for each (ingress port, destination).
///
/// All queues together hold at most `bytes_max`, those of one port at most the share that
/// the caller names. A frame that finds no room is the one that is dropped, so those that
/// wait stay in order and the first of a conversation is not lost to its repetitions.
#[derive(Debug)]
pub(super) struct Waiting {
    bytes_max: usize,
    bytes: usize,
    /// Frames let in so far.
    pushed: u64,
    port_bytes: BTreeMap<PortNo, usize>,
    queues: BTreeMap<(PortNo, MacAddr), VecDeque<Vec<u8>>>,
}

impl Waiting {
    /// Room for `bytes_max` bytes, frames and their overhead.
    pub(super) fn new(bytes_max: usize) -> Waiting {
        Waiting {
            bytes_max,
            bytes: 0,
            pushed: 0,
            port_bytes: BTreeMap::new(),
            queues: BTreeMap::new(),
        }
    }

    /// Puts `frame` at the end of its queue; `false` if there is no room.
    pub(super) fn push(
        &mut self,
        port: PortNo,
        destination: MacAddr,
        frame: &[u8],
        port_bytes_max: usize,
    ) -> bool {
        let cost = cost(frame);
        let of_port = self.port_bytes.get(&port).copied().unwrap_or(0);
        if self.bytes + cost > self.bytes_max || of_port + cost > port_bytes_max {
            return false;
        }
        self.bytes += cost;
        self.pushed += 1;
        self.port_bytes.insert(port, of_port + cost);
        self.queues.entry((port, destination)).or_default().push_back(frame.to_vec());
        true
    }

    /// Takes all frames from `port` to `destination`, oldest first.
    pub(super) fn take(&mut self, port: PortNo, destination: MacAddr) -> VecDeque<Vec<u8>> {
        let frames = self.queues.remove(&(port, destination)).unwrap_or_default();
        let cost: usize = frames.iter().map(|frame| cost(frame)).sum();
        self.bytes -= cost;
        if let Some(of_port) = self.port_bytes.get_mut(&port) {
            *of_port -= cost;
            if *of_port == 0 {
                self.port_bytes.remove(&port);
            }
        }
        frames
    }

    /// Bytes that wait, overhead included.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frames let in so far.
    pub(super) fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Frames that wait.
    pub(super) fn frames(&self) -> u64 {
        self.queues.values().map(|queue| queue.len() as u64).sum()
    }

    /// The queues that hold anything.
    #[cfg(test)]
    pub(super) fn keys(&self) -> impl Iterator<Item = (PortNo, MacAddr)> {
        self.queues.keys().copied()
    }
}

fn cost(frame: &[u8]) -> usize {
    frame.len() + FRAME_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    #[test]
    fn frames_come_out_in_order_and_leave_no_bytes_behind() {
        let mut waiting = Waiting::new(1000);
        for byte in 0..3 {
            assert!(waiting.push(PortNo(0), A, &[byte; 20], 1000));
        }
        assert_eq!(waiting.bytes(), 3 * 84);
        assert_eq!(waiting.take(PortNo(0), A), [[0; 20], [1; 20], [2; 20]]);
        assert_eq!(waiting.bytes(), 0);
        assert!(waiting.take(PortNo(0), A).is_empty());
    }

    #[test]
    fn one_port_cannot_fill_the_room_of_another() {
        let mut waiting = Waiting::new(200);
        assert!(waiting.push(PortNo(0), A, &[0; 36], 100));
        assert!(!waiting.push(PortNo(0), A, &[0; 36], 100), "the share of port 0 is used");
        assert!(waiting.push(PortNo(1), A, &[0; 36], 100));
        assert!(!waiting.push(PortNo(2), A, &[0; 36], 100), "the room is full");
    }
}
