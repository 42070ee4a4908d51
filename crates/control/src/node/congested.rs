//! Congestion messages at the edge that they speak of (thesis 000 §3.2.1).
//!
//! In plain English: such a message is no more sealed than the frame that it is about, so whoever
//! can send packets between switches can forge one. The pause that it asks for lasts as long as one
//! frame of maximum length. It is granted to a port only if its hosts have sent as many bytes since
//! the last one: a message about a frame that was not sent is a forged one, and however many come,
//! hosts have half of their link.

use super::chassis::Chassis;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::{Action, Dataplane, Note, PortKind, Refusal};
use axon_wire::congestion::Congestion;
use axon_wire::{Frame, PortNo, Time};

/// By host port, how many bytes its hosts had sent when they were last paused.
#[derive(Debug, Default)]
pub(super) struct PauseMeter(BTreeMap<PortNo, u64>);

impl PauseMeter {
    /// Whether hosts that have sent `sent` bytes so far may be paused for a frame of `bytes_max`
    /// bytes now; it counts only if they may.
    fn admit(&mut self, port: PortNo, sent: u64, bytes_max: u64) -> bool {
        let paused_at = self.0.get(&port);
        let admitted = paused_at.is_none_or(|&at| sent >= at.saturating_add(bytes_max));
        if admitted {
            self.0.insert(port, sent);
        }
        admitted
    }
}

impl<B: Frame, D: Dataplane<B>> Chassis<B, D> {
    /// A full output somewhere has refused a frame of one of our hosts: those at its port
    /// pause for a maximum frame, and an operator may hear of it. Says whether that is so.
    pub(super) fn congested(
        &mut self,
        now: Time,
        payload: &[u8],
        out: &mut Vec<Action<B>>,
    ) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_paused_for_no_longer_than_they_send() {
        let mut meter = PauseMeter::default();
        let port = PortNo(1);
        assert!(meter.admit(port, 60, 1514), "the first is granted");
        assert!(!meter.admit(port, 60, 1514) && !meter.admit(port, 1573, 1514));
        assert!(meter.admit(PortNo(2), 60, 1514), "another port");
        assert!(meter.admit(port, 1574, 1514));
        assert!(!meter.admit(port, 3087, 1514));
    }
}
