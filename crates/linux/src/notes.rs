//! Rate-limited log of node notes, and the only path by which they reach the log.
//!
//! A host or a peer can cause notes as fast as it sends. Therefore, each kind of note is limited to
//! [`LINES_MAX`] lines per second for each port, and the whole node to [`ALL_LINES_MAX`] lines. One
//! line for each kind states the number of omitted notes. Many notes of one kind do not hide notes
//! of another, and the log of a node grows by a few kilobytes per second at most.

use axon_node::{Note, Refusal};
use axon_wire::{PortNo, Span, Time};
use std::collections::BTreeMap;

/// Window in which lines are counted.
const WINDOW: Span = Span::from_secs(1);
/// Maximum number of lines for one kind and port in a window.
const LINES_MAX: u32 = 4;
/// Maximum number of lines for all kinds and ports in a window, not counting the lines that state
/// the number of omitted notes.
const ALL_LINES_MAX: u32 = 64;

/// Kind of log line. Each kind has its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    NeighbourUp,
    NeighbourDown,
    NeighbourRestarting,
    ControllerPath,
    HostUp,
    HostDown,
    RouteSet,
    RouteRemoved,
    Congested,
    PauseStorm,
    PauseStormOver,
    ClassesInForce,
    PfcInForce,
    DefenceInForce,
    DcbxTrouble,
    Refused,
    Pinned,
    SettingRefused,
    AnswersOwed,
    OverBound,
    Scan,
    Misplaced,
    Miscabled,
    BondMismatch,
    IpConflict,
    Carrier,
    Agent(AgentEvent),
}

/// Event of an agent at a port that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AgentEvent {
    /// The agent was attached.
    Attached,
    /// The agent has gone.
    Detached,
    /// The agent was detached for a protocol violation.
    Broken,
    /// The agent was refused.
    Refused,
}

/// Kind and port of a line. Notes about the whole node have [`PortNo::CONTROL`].
type About = (Kind, PortNo);

/// Logs notes up to the limit, and counts those beyond it.
#[derive(Default)]
pub(crate) struct NoteLog {
    /// End of the window. `None` if there was no note since the last window.
    until: Option<Time>,
    /// Number of lines in this window.
    lines: u32,
    /// Number of notes in this window.
    counts: BTreeMap<About, u64>,
    /// Number of omitted notes since the last lines that stated it.
    left_out: BTreeMap<Kind, u64>,
}

impl NoteLog {
    /// Logs a note of the node.
    pub(crate) fn note(&mut self, now: Time, node: &str, note: Note) {
        if !self.admit(now, about(&note)) {
            return;
        }
        match note {
            Note::Refused { port, refusal: Refusal::PinnedPort } => {
                tracing::error!(node, %port, "ALARM: a switch at a port that is pinned to hosts");
            }
            Note::SettingRefused { port, setting, error } => {
                tracing::error!(node, %port, %setting, %error, "ALARM: a setting is refused");
            }
            Note::AnswersOwed { count } => {
                tracing::error!(
                    node,
                    count,
                    "ALARM: the data plane does not answer; re-synchronised"
                );
            }
            Note::SwitchOverBound { node: switch, port: Some(port) } => {
                tracing::warn!(node, %switch, %port, "ALARM: the hosts at a port of a switch are \
                    more, or request more routes, than those at one port may; the rest is refused");
            }
            Note::SwitchOverBound { node: switch, port: None } => {
                tracing::warn!(node, %switch, "ALARM: a switch reports or requests more hosts or \
                    routes than one may, or acknowledges no commands; the rest is refused");
            }
            Note::Scan { node: switch, port, mac, targets } => {
                tracing::warn!(node, %switch, %port, %mac, targets, "ALARM: a scan: a host \
                    requests so many that it may not reach or that do not exist");
            }
            Note::HostMisplaced { node: switch, port, mac } => {
                tracing::warn!(node, %switch, %port, %mac, "ALARM: a host at a port where the \
                    fabric file does not admit it");
            }
            Note::IpConflict { ip, holder, claimant } => {
                let [(switch, port, mac), (by_switch, by_port, by)] = [holder, claimant];
                tracing::warn!(node, %ip, %switch, %port, %mac, %by_switch, %by_port, %by,
                    "ALARM: an address conflict: two hosts use one address; the first keeps it");
            }
            Note::BondMismatch(ends) => {
                let [(switch, port, partner), (first, first_port, expected)] = ends;
                tracing::error!(node, %switch, %port, %partner, %first, %first_port, %expected,
                    "ALARM: a port of a bond leads to another partner than the bond; not used");
            }
            note => tracing::info!(node, ?note),
        }
    }

    /// Logs a change of a port's carrier.
    pub(crate) fn carrier(&mut self, now: Time, node: &str, port: (PortNo, &str), up: bool) {
        let (number, port) = port;
        if self.admit(now, (Kind::Carrier, number)) {
            tracing::info!(node, port, up, "carrier");
        }
    }

    /// Returns whether a line about an agent may be logged, for the log of a single port.
    pub(crate) fn agent(&mut self, now: Time, event: AgentEvent) -> bool {
        self.admit(now, (Kind::Agent(event), PortNo::CONTROL))
    }

    /// Logs the number of omitted notes when a window has ended. Call this in every round.
    pub(crate) fn round(&mut self, now: Time, node: &str) {
        for (kind, count) in self.left_out(now) {
            tracing::info!(node, ?kind, count, "more notes of this kind are left out");
        }
    }

    fn admit(&mut self, now: Time, about: About) -> bool {
        if self.until.is_none_or(|until| until <= now) {
            self.begin(Some(now + WINDOW));
        }
        let count = self.counts.entry(about).or_default();
        *count += 1;
        let admitted = *count <= u64::from(LINES_MAX) && self.lines < ALL_LINES_MAX;
        if admitted {
            self.lines += 1;
        } else {
            *self.left_out.entry(about.0).or_default() += 1;
        }
        admitted
    }

    fn begin(&mut self, until: Option<Time>) {
        (self.until, self.lines) = (until, 0);
        self.counts.clear();
    }

    fn left_out(&mut self, now: Time) -> BTreeMap<Kind, u64> {
        if self.until.is_none_or(|until| now < until) {
            return BTreeMap::new();
        }
        self.begin(None);
        std::mem::take(&mut self.left_out)
    }
}

fn about(note: &Note) -> About {
    match *note {
        Note::NeighbourUp { port, .. } => (Kind::NeighbourUp, port),
        Note::NeighbourDown { port, .. } => (Kind::NeighbourDown, port),
        Note::NeighbourRestarting { port, .. } => (Kind::NeighbourRestarting, port),
        Note::ControllerPath { .. } => (Kind::ControllerPath, PortNo::CONTROL),
        Note::HostUp { port, .. } => (Kind::HostUp, port),
        Note::HostDown { port, .. } => (Kind::HostDown, port),
        Note::RouteSet { port, .. } => (Kind::RouteSet, port),
        Note::RouteRemoved { port, .. } => (Kind::RouteRemoved, port),
        Note::Congested { port, .. } => (Kind::Congested, port),
        Note::PauseStorm { port, .. } => (Kind::PauseStorm, port),
        Note::PauseStormOver { port, .. } => (Kind::PauseStormOver, port),
        Note::ClassesInForce { port, .. } => (Kind::ClassesInForce, port),
        Note::PfcInForce { port, .. } => (Kind::PfcInForce, port),
        Note::DefenceInForce { port } => (Kind::DefenceInForce, port),
        Note::DcbxTrouble { port } => (Kind::DcbxTrouble, port),
        Note::Refused { port, refusal: Refusal::PinnedPort } => (Kind::Pinned, port),
        Note::Refused { port, .. } => (Kind::Refused, port),
        Note::SettingRefused { port, .. } => (Kind::SettingRefused, port),
        Note::AnswersOwed { .. } => (Kind::AnswersOwed, PortNo::CONTROL),
        Note::SwitchOverBound { .. } => (Kind::OverBound, PortNo::CONTROL),
        Note::Scan { .. } => (Kind::Scan, PortNo::CONTROL),
        Note::HostMisplaced { .. } => (Kind::Misplaced, PortNo::CONTROL),
        Note::Miscabled { port, .. } => (Kind::Miscabled, port),
        Note::BondMismatch(..) => (Kind::BondMismatch, PortNo::CONTROL),
        Note::IpConflict { .. } => (Kind::IpConflict, PortNo::CONTROL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::MacAddr;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn host(port: u16, number: u32) -> Note {
        let [_, a, b, c] = number.to_be_bytes();
        Note::HostUp { port: PortNo(port), mac: MacAddr([2, 0, 0, a, b, c]) }
    }

    fn admitted(log: &mut NoteLog, now: Time, note: impl Fn(u32) -> Note) -> usize {
        (0..1000).filter(|&number| log.admit(now, about(&note(number)))).count()
    }

    #[test]
    fn a_babbling_host_has_a_few_lines_a_second_and_the_rest_is_counted_by_kind() {
        let mut log = NoteLog::default();
        let few = LINES_MAX as usize;
        assert_eq!(admitted(&mut log, at(0), |number| host(1, number)), few);
        let refused =
            |_| Note::Congested { port: PortNo(1), switch: MacAddr::default(), egress: PortNo(2) };
        assert_eq!(admitted(&mut log, at(1), refused), few, "another kind");
        assert_eq!(admitted(&mut log, at(2), |number| host(2, number)), few, "another port");
        assert!(log.left_out(at(999)).is_empty());
        let left_out: Vec<(Kind, u64)> = log.left_out(at(1000)).into_iter().collect();
        assert_eq!(left_out, [(Kind::HostUp, 1992), (Kind::Congested, 996)]);
        assert!(log.left_out(at(5000)).is_empty(), "counted once");
        assert_eq!(admitted(&mut log, at(5001), |number| host(1, number)), few);
    }

    #[test]
    fn an_agent_that_attaches_over_and_over_has_a_few_lines_a_second() {
        let mut log = NoteLog::default();
        for event in [AgentEvent::Attached, AgentEvent::Broken, AgentEvent::Refused] {
            let lines = (0..1000).filter(|_| log.agent(at(0), event)).count();
            assert_eq!(lines, LINES_MAX as usize);
        }
        assert_eq!(log.left_out(at(1000))[&Kind::Agent(AgentEvent::Broken)], 996);
    }

    #[test]
    fn what_was_left_out_is_counted_although_its_round_comes_late() {
        let mut log = NoteLog::default();
        admitted(&mut log, at(0), |number| host(1, number));
        assert!(log.admit(at(3000), about(&host(1, 1))), "another second");
        assert!(log.left_out(at(3001)).is_empty());
        assert_eq!(log.left_out(at(4000))[&Kind::HostUp], 996);
    }

    #[test]
    fn a_node_with_many_ports_has_so_many_lines_and_no_more() {
        let mut log = NoteLog::default();
        let lines: usize =
            (0..256).map(|port| admitted(&mut log, at(0), |number| host(port, number))).sum();
        assert_eq!(lines, ALL_LINES_MAX as usize);
        assert_eq!(log.left_out(at(1000))[&Kind::HostUp], 256_000 - u64::from(ALL_LINES_MAX));
        assert!(log.counts.is_empty(), "and remembers nothing of it");
    }
}
