//! What nodes note, as lines of the log.
//!
//! What a port's peer brings about by LLDP it can bring about with every LLDPDU: of each kind of
//! such notes a port has one line a second, and one that counts the rest, so that many of one kind
//! hide none of another.

use axon_node::Note;
use axon_wire::{PortNo, Span, Time};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

const SECOND: Span = Span::from_secs(1);

/// What a port's peer can bring about by LLDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Classes,
    Pfc,
    Defence,
    Trouble,
}

/// The second that began with a note that was logged.
struct Window {
    until: Time,
    left_out: u64,
}

/// Logs notes, and counts those that are too many.
#[derive(Default)]
pub(crate) struct NoteLog {
    windows: BTreeMap<(PortNo, Kind), Window>,
}

impl NoteLog {
    pub(crate) fn note(&mut self, now: Time, node: &str, note: Note) {
        if self.admit(now, &note) {
            tracing::info!(node, ?note);
        }
    }

    /// To be called every round: says how many notes were left out in seconds that are over.
    pub(crate) fn round(&mut self, now: Time, node: &str) {
        for ((port, kind), count) in self.left_out(now) {
            tracing::info!(node, %port, ?kind, count, "more notes by LLDP and DCBX are left out");
        }
    }

    fn admit(&mut self, now: Time, note: &Note) -> bool {
        let Some(about) = brought_about_by_peer(note) else {
            return true;
        };
        match self.windows.entry(about) {
            Entry::Occupied(mut window) if now < window.get().until => {
                window.get_mut().left_out += 1;
                false
            }
            // Its round has not been yet; what it left out is logged with the next one's.
            Entry::Occupied(mut window) => {
                window.get_mut().until = now + SECOND;
                true
            }
            Entry::Vacant(place) => {
                place.insert(Window { until: now + SECOND, left_out: 0 });
                true
            }
        }
    }

    fn left_out(&mut self, now: Time) -> Vec<((PortNo, Kind), u64)> {
        let mut left_out = Vec::new();
        self.windows.retain(|about, window| {
            let goes_on = now < window.until;
            if !goes_on && window.left_out > 0 {
                left_out.push((*about, window.left_out));
            }
            goes_on
        });
        left_out
    }
}

/// Port and kind of a note that the peer's LLDPDUs bring about.
fn brought_about_by_peer(note: &Note) -> Option<(PortNo, Kind)> {
    match *note {
        Note::ClassesInForce { port, .. } => Some((port, Kind::Classes)),
        Note::PfcInForce { port, .. } => Some((port, Kind::Pfc)),
        Note::DefenceInForce { port } => Some((port, Kind::Defence)),
        Note::DcbxTrouble { port } => Some((port, Kind::Trouble)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::priority::PrioritySet;

    #[test]
    fn a_port_has_a_line_of_each_kind_a_second_and_the_rest_is_counted() {
        let mut log = NoteLog::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let pfc = |port| Note::PfcInForce { port: PortNo(port), pfc: PrioritySet::EMPTY };
        let admitted = |log: &mut NoteLog, now, note: Note| {
            (0..1000).filter(|_| log.admit(now, &note)).count()
        };
        assert_eq!(admitted(&mut log, at(0), pfc(1)), 1);
        let trouble = Note::DcbxTrouble { port: PortNo(1) };
        assert_eq!(admitted(&mut log, at(1), trouble), 1, "another kind");
        assert_eq!(admitted(&mut log, at(2), pfc(2)), 1, "another port");
        assert_eq!(log.left_out(at(999)), []);
        assert_eq!(log.left_out(at(1000)), [((PortNo(1), Kind::Pfc), 999)]);
        assert_eq!(admitted(&mut log, at(1001), pfc(1)), 1, "another second");
        let left_out = [((PortNo(1), Kind::Trouble), 999), ((PortNo(2), Kind::Pfc), 999)];
        assert_eq!(log.left_out(at(1002)), left_out);
        let other = Note::ControllerPath { reachable: true };
        assert_eq!(admitted(&mut log, at(1003), other), 1000, "no LLDPDU brings it about");
    }
}
