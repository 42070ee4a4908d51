//! Congestion messages at the edge of the source host (thesis 000 §3.2.1).
//!
//! A congestion message is not sealed, like the frame that it is about, so any sender of packets
//! between switches can forge one. It requests a pause of the length of one maximum frame. The
//! pause is granted only if the hosts of the port have sent as many bytes since the last one. A
//! message about a frame that was not sent is forged; however many arrive, hosts keep half of their
//! link.

use super::Chassis;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_node::{Action, Dataplane, Note, PortKind, Refusal};
use axon_wire::Time;
use axon_wire::congestion::Congestion;

impl<D: Dataplane, E: From<Effect>> Chassis<D, E> {
    /// Handles a congestion message: a full output has refused a frame of a local host. Pauses the
    /// hosts of its port for one maximum frame and reports it to the operator. Returns whether it
    /// did.
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
