//! Our own end station as a device. It sends one flow as fast as its reaction point allows, and
//! receives CNMs.

use crate::frames;
use crate::rig::Stream;
use axon_node::{Action, Input, Node, Shortcuts};
use axon_plane::qcn::{RateLimiter, RpConfig};
use axon_wire::cn::{CnmFormat, CnmFrame};
use axon_wire::priority::Priority;
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Rate, Span, Time};

/// Flow in the CN-TAGs of the station.
const FLOW: u16 = 1;
/// Frame length in bytes.
const FRAME_BYTES: usize = 1_000;
/// Overhead of a frame on the wire, in bytes.
const OVERHEAD: u64 = crate::station::AROUND_FRAME_BYTES;

/// End station.
pub(super) struct EndStation {
    limiter: RateLimiter,
    mac: MacAddr,
    stream: Stream,
    format: CnmFormat,
    number: u32,
    busy: bool,
    up: bool,
    ready: Time,
}

impl EndStation {
    /// Creates a station with this address. It sends frames with this priority to port 0 of the
    /// tester on a link of `rate`, and reads CNMs in this format.
    ///
    /// # Panics
    /// If the default values of the MIB are refused.
    pub(super) fn new(
        (mac, priority): (MacAddr, Priority),
        rate: Rate,
        format: CnmFormat,
        seed: u64,
    ) -> EndStation {
        let config = RpConfig::for_port(rate);
        let burst = Bytes(FRAME_BYTES as u64 + OVERHEAD);
        let stream = Stream {
            from: 1,
            to: 0,
            priority,
            bytes: FRAME_BYTES,
            interval: Span::ZERO,
            begin: Time::ZERO,
            end: Time::ZERO,
            honours: true,
            flow: Some(FLOW),
        };
        EndStation {
            limiter: RateLimiter::new(config, burst, seed).expect("the MIB's defaults"),
            mac,
            stream,
            format,
            number: 0,
            busy: false,
            up: false,
            ready: Time::ZERO,
        }
    }

    fn receive(&mut self, now: Time, frame: &[u8]) {
        let Ok(cnm) = CnmFrame::parse(frame, &self.format) else { return };
        let own = cnm.destination == self.mac && cnm.cn.is_none_or(|tag| tag.flow == FLOW);
        if own && cnm.cnm.feedback > 0 {
            self.limiter.notified(now, cnm.cnm.feedback);
        }
    }
}

impl Node for EndStation {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { frame, .. } => self.receive(now, frame.bytes()),
            Input::TxDone { .. } => self.busy = false,
            Input::Link { up, .. } => (self.up, self.busy) = (up, false),
            Input::Timeout | Input::Command(_) => {}
        }
        self.ready = self.limiter.ready_at(now);
        if self.busy || !self.up || self.ready > now {
            return;
        }
        let mut frame = frames::traffic(&self.stream, 0, self.number);
        frame[6..12].copy_from_slice(&self.mac.0);
        self.number = self.number.wrapping_add(1);
        self.busy = true;
        self.limiter.sent(now, Bytes(frame.len() as u64 + OVERHEAD));
        self.ready = self.limiter.ready_at(now);
        let (port, frame) = (PortNo(0), FrameBuf::new(&frame));
        out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
    }

    fn deadline(&self) -> Option<Time> {
        let send = (self.up && !self.busy).then_some(self.ready);
        [send, self.limiter.deadline()].into_iter().flatten().min()
    }
}

impl Shortcuts for EndStation {}
