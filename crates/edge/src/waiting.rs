//! Frames queued for their route (paper 001 §4.2.2, last paragraph on route set-up).

use alloc::collections::{BTreeMap, VecDeque};
use axon_node::RouteKey;
use axon_wire::{FrameBuf, PortNo};

/// Overhead charged for each queued frame in bytes, so that tiny frames are not free.
const FRAME_OVERHEAD_BYTES: usize = 64;

/// Hosts' frames whose routes are being set up: one queue for each ingress port and key.
///
/// All queues together hold at most `bytes_max`, and those of one port at most an equal share of it
/// for each port with hosts. A frame that does not fit is itself dropped. So queued frames stay in
/// order, and the first frame of a conversation is not lost to its repetitions.
#[derive(Debug)]
pub struct Waiting {
    bytes_max: usize,
    bytes: usize,
    port_bytes: BTreeMap<PortNo, usize>,
    queues: BTreeMap<(PortNo, RouteKey), VecDeque<FrameBuf>>,
}

impl Waiting {
    /// Creates queues for `bytes_max` bytes, frames and their overhead.
    pub fn new(bytes_max: usize) -> Waiting {
        Waiting { bytes_max, bytes: 0, port_bytes: BTreeMap::new(), queues: BTreeMap::new() }
    }

    /// Appends `frame` to its queue; `host_ports` ports share the room.
    ///
    /// # Errors
    /// Returns the frame if it does not fit.
    pub fn push(
        &mut self,
        port: PortNo,
        key: RouteKey,
        frame: FrameBuf,
        host_ports: usize,
    ) -> Result<(), FrameBuf> {
        let cost = cost(&frame);
        let of_port = self.port_bytes.get(&port).copied().unwrap_or(0);
        let share = self.bytes_max / host_ports.max(1);
        if self.bytes + cost > self.bytes_max || of_port + cost > share {
            return Err(frame);
        }
        self.bytes += cost;
        self.port_bytes.insert(port, of_port + cost);
        self.queues.entry((port, key)).or_default().push_back(frame);
        Ok(())
    }

    /// Removes and returns all frames from `port` with this key, oldest first.
    pub fn take(&mut self, port: PortNo, key: RouteKey) -> VecDeque<FrameBuf> {
        let frames = self.queues.remove(&(port, key)).unwrap_or_default();
        let cost: usize = frames.iter().map(cost).sum();
        self.bytes -= cost;
        if let Some(of_port) = self.port_bytes.get_mut(&port) {
            *of_port -= cost;
            if *of_port == 0 {
                self.port_bytes.remove(&port);
            }
        }
        frames
    }

    /// Returns the queued bytes, overhead included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of queued frames.
    pub fn frames(&self) -> u64 {
        self.queues.values().map(|queue| queue.len() as u64).sum()
    }

    /// Returns the keys of all non-empty queues.
    #[cfg(test)]
    pub(crate) fn keys(&self) -> impl Iterator<Item = (PortNo, RouteKey)> {
        self.queues.keys().copied()
    }
}

fn cost(frame: &FrameBuf) -> usize {
    frame.length() + FRAME_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::{FrameBuf, MacAddr};

    const A: RouteKey = RouteKey::to(MacAddr([2, 0, 0, 0, 0, 1]));

    fn frame(byte: u8, length: usize) -> FrameBuf {
        FrameBuf::new(&alloc::vec![byte; length])
    }

    #[test]
    fn frames_come_out_in_order_and_leave_no_bytes_behind() {
        let mut waiting = Waiting::new(1000);
        for byte in 0..3 {
            waiting.push(PortNo(0), A, frame(byte, 20), 1).unwrap();
        }
        assert_eq!((waiting.bytes(), waiting.frames()), (3 * 84, 3));
        assert_eq!(waiting.take(PortNo(0), A), [0, 1, 2].map(|byte| frame(byte, 20)));
        assert_eq!((waiting.bytes(), waiting.frames()), (0, 0));
        assert!(waiting.take(PortNo(0), A).is_empty());
    }

    #[test]
    fn one_port_cannot_fill_the_room_of_another() {
        let mut waiting = Waiting::new(200);
        waiting.push(PortNo(0), A, frame(0, 36), 2).unwrap();
        let refused = waiting.push(PortNo(0), A, frame(1, 36), 2);
        assert_eq!(refused, Err(frame(1, 36)), "the share of port 0 is used");
        waiting.push(PortNo(1), A, frame(0, 36), 2).unwrap();
        assert!(waiting.push(PortNo(2), A, frame(0, 36), 2).is_err(), "the room is full");
    }
}
