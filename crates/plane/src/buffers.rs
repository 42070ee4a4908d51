//! The buffers of one output port (paper 001 §4.1.1): one FIFO per ingress port and one for
//! the control plane, each with its own bound in bytes, served in turn.

use crate::config::PortKind;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use axon_wire::{PortNo, Time};

/// A frame that waits for the wire.
#[derive(Clone, Debug)]
pub struct Queued<B> {
    /// The frame as it will leave.
    pub frame: B,
    /// Its length in bytes.
    pub bytes: u32,
    /// The port it came in by.
    pub ingress: PortNo,
    /// When its last byte will be here.
    pub complete_at: Time,
    /// The only kind of port that it may leave by; `None` for link-local frames.
    pub kind: Option<PortKind>,
}

/// The buffers of one output port.
///
/// Round robin, frame by frame: the FIFOs that hold something stand in a ring, and the one
/// at its head sends one frame and goes to its tail if it holds more. An empty FIFO is not
/// in the ring, and one that fills joins at the tail. So between two frames of one ingress
/// no other ingress sends twice, and no step looks at empty FIFOs.
#[derive(Clone, Debug)]
pub struct Egress<B> {
    /// The control plane's, then one per ingress port, made at first use.
    fifos: Vec<Fifo<B>>,
    /// FIFOs that hold something, by number, each once.
    ring: VecDeque<u32>,
    bytes: u64,
    frames: u64,
}

#[derive(Clone, Debug)]
struct Fifo<B> {
    queue: VecDeque<Queued<B>>,
    bytes: u64,
}

impl<B> Egress<B> {
    /// Empty buffers.
    pub const fn new() -> Egress<B> {
        Egress { fifos: Vec::new(), ring: VecDeque::new(), bytes: 0, frames: 0 }
    }

    /// Queues a frame behind those of the same ingress, if that leaves no more than
    /// `bytes_max` bytes there.
    ///
    /// # Errors
    /// Gives the frame back if there is no room for it.
    pub fn push(&mut self, item: Queued<B>, bytes_max: u64) -> Result<(), Queued<B>> {
        // The control plane is port 65,535, so this makes it 0 and port p is p + 1.
        let index = usize::from(item.ingress.0.wrapping_add(1));
        if index >= self.fifos.len() {
            self.fifos.resize_with(index + 1, || Fifo { queue: VecDeque::new(), bytes: 0 });
        }
        let fifo = &mut self.fifos[index];
        let bytes = u64::from(item.bytes);
        if fifo.bytes + bytes > bytes_max {
            return Err(item);
        }
        if fifo.queue.is_empty() {
            self.ring.push_back(index as u32);
        }
        fifo.bytes += bytes;
        fifo.queue.push_back(item);
        self.bytes += bytes;
        self.frames += 1;
        Ok(())
    }

    /// Takes the next frame in turn.
    pub fn pop(&mut self) -> Option<Queued<B>> {
        let index = self.ring.pop_front()?;
        let fifo = &mut self.fifos[index as usize];
        let item = fifo.queue.pop_front()?;
        if !fifo.queue.is_empty() {
            self.ring.push_back(index);
        }
        let bytes = u64::from(item.bytes);
        fifo.bytes -= bytes;
        self.bytes -= bytes;
        self.frames -= 1;
        Some(item)
    }

    /// Bytes that wait.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Frames that wait.
    pub const fn frames(&self) -> u64 {
        self.frames
    }
}

impl<B> Default for Egress<B> {
    fn default() -> Egress<B> {
        Egress::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(ingress: PortNo, name: u32, bytes: u32) -> Queued<u32> {
        Queued { frame: name, bytes, ingress, complete_at: Time::ZERO, kind: None }
    }

    fn drain(egress: &mut Egress<u32>) -> Vec<u32> {
        core::iter::from_fn(|| egress.pop()).map(|item| item.frame).collect()
    }

    #[test]
    fn ingress_ports_take_turns_whatever_they_have_queued() {
        let mut egress = Egress::new();
        for name in 10..15 {
            egress.push(item(PortNo(1), name, 100), 1000).unwrap();
        }
        egress.push(item(PortNo::CONTROL, 90, 100), 1000).unwrap();
        for name in 20..22 {
            egress.push(item(PortNo(2), name, 1000), 2000).unwrap();
        }
        assert_eq!((egress.frames(), egress.bytes()), (8, 2600));
        assert_eq!(drain(&mut egress), [10, 90, 20, 11, 21, 12, 13, 14]);
        assert_eq!((egress.frames(), egress.bytes()), (0, 0));
    }

    #[test]
    fn one_ingress_cannot_use_the_room_of_another() {
        let mut egress = Egress::new();
        egress.push(item(PortNo(1), 1, 600), 1000).unwrap();
        assert_eq!(egress.push(item(PortNo(1), 2, 401), 1000).unwrap_err().frame, 2);
        egress.push(item(PortNo(1), 3, 400), 1000).unwrap();
        egress.push(item(PortNo(2), 4, 1000), 1000).unwrap();
        assert_eq!(drain(&mut egress), [1, 4, 3]);
        egress.push(item(PortNo(1), 5, 1000), 1000).unwrap();
        assert_eq!(drain(&mut egress), [5], "room comes back");
    }
}
