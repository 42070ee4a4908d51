//! A host with a bond: its stack has one port, which stands for all ports of the bond.

use super::{Host, PORT};
use axon_node::{Action, Drop, Input};
use axon_wire::{PortNo, Time};

impl Host {
    /// Returns the LACP state of a port of the bond; `None` without a bond.
    pub fn bond_state(&self, port: PortNo) -> Option<axon_link::lacp::Mux> {
        self.bond.as_ref()?.state(port)
    }

    /// Queues frames at the ports of the bond, and sends them.
    pub(super) fn transmit_bonded(&mut self, now: Time, out: &mut Vec<Action>) {
        let Some(mut bond) = self.bond.take() else { return };
        while self.stack.nic.carrier && bond.has_room() {
            let Some(frame) = self.stack.nic.next(now) else { break };
            if let Some(frame) = bond.put(frame) {
                self.stack.nic.end(&frame);
            }
        }
        while let Some((port, frame, made)) = bond.next(now) {
            self.stack.nic.made += u64::from(made);
            out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
        }
        self.bond = Some(bond);
    }

    /// Handles the part of an input that concerns the bond alone. Returns the input for the stack.
    pub(super) fn bonded(&mut self, now: Time, input: Input, out: &mut Vec<Action>) -> Input {
        let Some(bond) = &mut self.bond else { return input };
        let was_up = bond.is_up();
        bond.timeout(now);
        let input = match input {
            Input::Link { port, up } => {
                for frame in bond.link(now, port, up) {
                    self.stack.nic.end(&frame);
                }
                Input::Timeout
            }
            Input::TxDone { port } => {
                bond.wire_is_free(port);
                Input::TxDone { port: PORT }
            }
            Input::Frame { port, frame, complete_at, intact } => {
                if intact && bond.takes(now, port, frame.bytes()) {
                    self.received += 1;
                    self.stack.nic.recycle(frame);
                    Input::Timeout
                } else if intact && !bond.collects(port) {
                    self.received += 1;
                    out.push(Action::Dropped { ingress: port, reason: Drop::Refused, frame });
                    Input::Timeout
                } else {
                    Input::Frame { port, frame, complete_at, intact }
                }
            }
            input => input,
        };
        let up = bond.is_up();
        if up != was_up {
            self.carrier(up, now);
            self.due = Some(now);
        }
        input
    }
}
