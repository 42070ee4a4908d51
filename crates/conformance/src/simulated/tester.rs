//! One port of the simulated tester, as a node.

use crate::rig::{Seen, Way};
use crate::station::{AROUND_FRAME_BYTES, Station};
use axon_node::{Action, Input, Node, Shortcuts};
use axon_wire::{Bytes, FrameBuf, PortNo, Rate, Time};
use std::sync::{Arc, Mutex, PoisonError};

/// State that the node shares with the rig.
#[derive(Debug)]
pub(super) struct State {
    pub(super) station: Station,
    pub(super) seen: Vec<Seen>,
    port: usize,
    rate: Rate,
    now: Time,
    up: bool,
    busy: bool,
}

impl State {
    pub(super) fn new(port: usize, rate: Rate) -> Arc<Mutex<State>> {
        Arc::new(Mutex::new(State {
            station: Station::new(port, rate),
            seen: Vec::new(),
            port,
            rate,
            now: Time::ZERO,
            up: false,
            busy: false,
        }))
    }

    /// Records a frame that was sent or received.
    fn see(&mut self, at: Time, way: Way, frame: &[u8]) {
        self.seen.push(Seen { at, port: self.port, way, frame: frame.to_vec() });
    }
}

/// Node of a tester port.
pub(super) struct Tester(Arc<Mutex<State>>);

impl Tester {
    pub(super) fn new(state: Arc<Mutex<State>>) -> Tester {
        Tester(state)
    }
}

impl Node for Tester {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let state = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = now;
        match input {
            Input::Frame { frame, complete_at, .. } => {
                state.see(complete_at, Way::Heard, frame.bytes());
                state.station.receive(complete_at, frame.bytes());
            }
            Input::TxDone { .. } => state.busy = false,
            Input::Link { up, .. } => (state.up, state.busy) = (up, false),
            Input::Timeout | Input::Command(_) => {}
        }
        if state.busy || !state.up {
            return;
        }
        let Some(frame) = state.station.take(now) else { return };
        state.busy = true;
        // The gap counts as wire time, but not as part of the frame.
        let bytes = frame.len().max(crate::frames::SHORTEST) as u64 + AROUND_FRAME_BYTES - 12;
        let gone = now + state.rate.time_for(Bytes(bytes));
        state.see(gone, Way::Sent, &frame);
        let frame = FrameBuf::new(&frame);
        out.push(Action::Transmit { port: PortNo(0), frame, complete_at: now, intact: true });
    }

    fn deadline(&self) -> Option<Time> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.up && !state.busy).then(|| state.station.due(state.now)).flatten()
    }
}

impl Shortcuts for Tester {}
