//! Frames of the control plane on their way into the gates.

use crate::pins::Pins;
use axon_wire::{FrameBuf, PortNo};
use std::collections::VecDeque;

/// Frames of the control plane on their way to the pins, by output port.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    ports: Vec<Port>,
}

/// Frames for one port.
#[derive(Clone, Debug, Default)]
struct Port {
    waiting: VecDeque<FrameBuf>,
    /// The one in the gates.
    inside: Option<FrameBuf>,
}

impl Outgoing {
    /// Returns empty queues.
    pub(super) fn new(ports: u16) -> Outgoing {
        Outgoing { ports: vec![Port::default(); usize::from(ports)] }
    }

    /// Returns whether a frame waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.ports.iter().any(|port| !port.waiting.is_empty())
    }

    /// Returns the number of frames that wait for a port, and their bytes.
    pub(super) fn queued(&self, port: PortNo) -> (u64, u64) {
        let frames = &self.ports[port.index()].waiting;
        (frames.len() as u64, frames.iter().map(|frame| frame.length() as u64).sum())
    }

    /// Appends a frame for a port.
    pub(super) fn push(&mut self, port: PortNo, frame: FrameBuf) {
        self.ports[port.index()].waiting.push_back(frame);
    }

    /// Removes the frames that wait for a port.
    pub(super) fn clear(&mut self, port: PortNo) -> VecDeque<FrameBuf> {
        std::mem::take(&mut self.ports[port.index()].waiting)
    }

    /// Injects the first frame of a port that has none in the gates. Returns the number of frames.
    pub(super) fn give(&mut self, pins: &mut Pins) -> u64 {
        let free = |port: &&mut Port| port.inside.is_none() && !port.waiting.is_empty();
        let mut ports = (0..).map(PortNo).zip(&mut self.ports);
        let Some((number, port)) = ports.find(|(_, port)| free(port)) else { return 0 };
        if pins.is_injecting() {
            return 0;
        }
        port.inside = port.waiting.pop_front();
        port.inside.iter().for_each(|frame| pins.inject(number, frame.bytes()));
        port.inside.iter().len() as u64
    }

    /// Takes note of a frame that has left by a port.
    pub(super) fn left(&mut self, port: PortNo, frame: &[u8]) {
        let inside = &mut self.ports[port.index()].inside;
        if inside.as_ref().is_some_and(|inside| frame.starts_with(inside.bytes())) {
            *inside = None;
        }
    }

    /// Takes note that no frame is in the gates.
    pub(super) fn all_left(&mut self) {
        self.ports.iter_mut().for_each(|port| port.inside = None);
    }
}
