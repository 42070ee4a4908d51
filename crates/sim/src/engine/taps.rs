//! Copies of the frames that single ports of a station carry.

use crate::engine::trace::What;
use axon_wire::{PortNo, Time};

/// A frame that a port carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Outbound: when the node transmitted it; inbound: when the node received it.
    pub at: Time,
    /// Whose port.
    pub station: usize,
    /// Which port.
    pub port: PortNo,
    /// Whether it went out.
    pub outbound: bool,
    /// Its bytes, without FCS.
    pub frame: Vec<u8>,
}

/// The ports of one station that are looked at, and what they carried since the last look.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    ports: Vec<PortNo>,
    frames: Vec<Captured>,
}

impl Taps {
    /// Looks at this port too from now on.
    pub(crate) fn add(&mut self, port: PortNo) {
        if !self.ports.contains(&port) {
            self.ports.push(port);
        }
    }

    /// What the ports have carried since the last time.
    pub(crate) fn take(&mut self) -> Vec<Captured> {
        std::mem::take(&mut self.frames)
    }

    /// Keeps a copy of a frame that came in or went out by one of the ports.
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
