//! Congestion messages at the edge that they speak of (thesis 000 §3.2.1).
//!
//! In plain English: such a message is no more sealed than the frame that it is about, so whoever
//! can send packets between switches can forge one. The pause that it asks for lasts as long as one
//! frame of maximum length. It is granted to a port only if its hosts have sent as many bytes since
//! the last one: a message about a frame that was not sent is a forged one, and however many come,
//! hosts have half of their link.

use super::chassis::Chassis;
use alloc::vec::Vec;
use axon_node::{Action, Dataplane, Note, PortKind, Refusal};
use axon_wire::Time;
use axon_wire::congestion::Congestion;

impl<D: Dataplane> Chassis<D> {
    /// A full output somewhere has refused a frame of one of our hosts: those at its port
    /// pause for a maximum frame, and it may be reported to an operator. Says whether that is so.
    pub(super) fn congested(&mut self, now: Time, payload: &[u8], out: &mut Vec<Action>) -> bool {
        let Ok(Congestion { host_port: port, switch, egress, .. }) = Congestion::parse(payload)
        else {
            return false;
        };
        if self.plane.kind(port) != Some(PortKind::Host) {
            return false;
        }
        let sent = self.plane.counters().port(port).rx_bytes;
        if !self.pauses.admit(port, sent, self.has.frame_bytes_max as u64) {
            self.refusals.count(Refusal::CongestionLimit);
            return false;
        }
        self.plane.pause_hosts(now, port, &mut self.actions);
        out.push(Action::Note(Note::Congested { port, switch, egress }));
        true
    }
}
