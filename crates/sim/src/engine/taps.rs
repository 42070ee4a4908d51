//! Captures of the frames on single ports of a station.

use crate::engine::trace::What;
use axon_wire::{PortNo, Time};

/// Captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Transmission time of an outbound frame, reception time of an inbound one.
    pub at: Time,
    /// Station number.
    pub station: usize,
    /// Port number.
    pub port: PortNo,
    /// True if the frame was outbound.
    pub outbound: bool,
    /// Frame bytes, without FCS.
    pub frame: Vec<u8>,
}

/// Captured ports of one station, and their frames since the last read.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    ports: Vec<PortNo>,
    frames: Vec<Captured>,
}

impl Taps {
    /// Adds a port to capture.
    pub(crate) fn add(&mut self, port: PortNo) {
        if !self.ports.contains(&port) {
            self.ports.push(port);
        }
    }

    /// Takes the frames captured since the last call.
    pub(crate) fn take(&mut self) -> Vec<Captured> {
        std::mem::take(&mut self.frames)
    }

    /// Captures a frame if its port is captured.
    pub(crate) fn see(&mut self, at: Time, station: u32, port: PortNo, what: What<'_>) {
        let (frame, outbound) = match what {
            What::Sent(frame) => (frame, true),
            What::Received(frame) => (frame, false),
            _ => return,
        };
        if self.ports.contains(&port) {
            let (station, frame) = (station as usize, frame.whole().into_owned());
            self.frames.push(Captured { at, station, port, outbound, frame });
        }
    }
}
