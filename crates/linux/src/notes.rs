//! What nodes note, as lines of the log.
//!
//! What a port's peer brings about by LLDP it can bring about with every LLDPDU: of such notes a
//! port has a few lines a second, and one that counts the rest.

use axon_plane::Note;
use axon_wire::{PortNo, Span, Time};
use std::collections::BTreeMap;

/// Lines that a port may have in one [`SECOND`]: one of each kind.
const LINES: u32 = 4;
const SECOND: Span = Span::from_secs(1);

/// The second that began with a port's first note.
struct Window {
    until: Time,
    said: u32,
    left_out: u64,
}

/// Logs notes, and counts those that are too many.
#[derive(Default)]
pub(crate) struct NoteLog {
    windows: BTreeMap<PortNo, Window>,
}

impl NoteLog {
    pub(crate) fn note(&mut self, now: Time, node: &str, note: Note) {
        if self.admit(now, &note) {
            tracing::info!(node, ?note);
        }
    }

    /// To be called every round: says how many notes were left out in seconds that are over.
    pub(crate) fn round(&mut self, now: Time, node: &str) {
        for (port, count) in self.left_out(now) {
            tracing::info!(node, %port, count, "more notes about LLDP and DCBX are left out");
        }
    }

    fn admit(&mut self, now: Time, note: &Note) -> bool {
        let Some(port) = brought_about_by_peer(note) else {
            return true;
        };
        let fresh = || Window { until: now + SECOND, said: 0, left_out: 0 };
        let window = self.windows.entry(port).or_insert_with(fresh);
        let admitted = window.said < LINES;
        if admitted {
            window.said += 1;
        } else {
            window.left_out += 1;
        }
        admitted
    }

    fn left_out(&mut self, now: Time) -> Vec<(PortNo, u64)> {
        let mut left_out = Vec::new();
        self.windows.retain(|port, window| {
            let goes_on = now < window.until;
            if !goes_on && window.left_out > 0 {
                left_out.push((*port, window.left_out));
            }
            goes_on
        });
        left_out
    }
}

/// The port of a note that its peer's LLDPDUs bring about.
fn brought_about_by_peer(note: &Note) -> Option<PortNo> {
    match *note {
        Note::ClassesInForce { port, .. }
        | Note::PfcInForce { port, .. }
        | Note::DefenceInForce { port }
        | Note::DcbxTrouble { port } => Some(port),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::priority::PrioritySet;

    #[test]
    fn a_port_has_few_lines_a_second_and_the_rest_is_counted() {
        let mut log = NoteLog::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let pfc = |port| Note::PfcInForce { port: PortNo(port), pfc: PrioritySet::EMPTY };
        let admitted = |log: &mut NoteLog, now, note: Note| {
            (0..1000).filter(|_| log.admit(now, &note)).count()
        };
        assert_eq!(admitted(&mut log, at(0), pfc(1)), 4);
        assert_eq!(admitted(&mut log, at(1), Note::DcbxTrouble { port: PortNo(1) }), 0);
        assert_eq!(admitted(&mut log, at(2), pfc(2)), 4, "another port");
        assert_eq!(log.left_out(at(999)), []);
        assert_eq!(log.left_out(at(1000)), [(PortNo(1), 1996)]);
        assert_eq!(admitted(&mut log, at(1001), pfc(1)), 4, "another second");
        assert_eq!(log.left_out(at(1002)), [(PortNo(2), 996)]);
        let other = Note::ControllerPath { reachable: true };
        assert_eq!(admitted(&mut log, at(1003), other), 1000, "no LLDPDU brings it about");
    }
}
