//! Scan detection: finds ports that request many hosts which do not exist or may not be reached.

use super::fabric::Fabric;
use super::hosts::Place;
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::Note;
use axon_wire::message::Target;
use axon_wire::{MacAddr, Span, Time};

/// Time window over which failed requests are counted.
const WINDOW: Span = Span::from_secs(60);
/// Number of different targets in a window at which a port is first noted. It is noted again at 4
/// and 16 times that number.
pub(super) const SCAN_TARGETS: usize = 64;
/// Maximum number of targets stored for one port. They take about 50 KB.
const TARGETS_MAX: usize = 1024;
/// Maximum number of ports stored.
const PORTS_MAX: usize = 256;

/// Failed requests from each port.
#[derive(Clone, Debug, Default)]
pub(super) struct Scans {
    ports: BTreeMap<Place, Window>,
    /// Number of notes logged about scans.
    noted: u64,
}

#[derive(Clone, Debug)]
struct Window {
    began: Time,
    targets: BTreeSet<Target>,
}

impl Scans {
    /// Returns the number of notes logged about scans.
    pub(super) const fn noted(&self) -> u64 {
        self.noted
    }

    /// Records a request for a host that does not exist or may not be reached.
    pub(super) fn record_failed(
        &mut self,
        now: Time,
        fabric: &Fabric,
        at: Place,
        (mac, target): (MacAddr, Target),
        out: &mut Vec<Effect>,
    ) {
        if let Some(targets) = self.enter(now, at, target) {
            self.noted += 1;
            let node = fabric.node(at.switch);
            out.push(Effect::Note(Note::Scan { node, port: at.port, mac, targets }));
        }
    }

    /// Records a failed request from a port. Returns the number of different targets in this window
    /// if it is to be noted, which is at most three times per window.
    fn enter(&mut self, now: Time, port: Place, target: Target) -> Option<u32> {
        if !self.ports.contains_key(&port) && self.ports.len() >= PORTS_MAX {
            self.ports.retain(|_, window| now.since(window.began) < WINDOW);
            if self.ports.len() >= PORTS_MAX {
                return None;
            }
        }
        let new = || Window { began: now, targets: BTreeSet::new() };
        let window = self.ports.entry(port).or_insert_with(new);
        if now.since(window.began) >= WINDOW {
            *window = new();
        }
        let is_new = window.targets.len() < TARGETS_MAX && window.targets.insert(target);
        let count = window.targets.len();
        let noted = [1, 4, 16].map(|times| times * SCAN_TARGETS);
        (is_new && noted.contains(&count)).then_some(count as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::SwitchIndex;
    use axon_wire::PortNo;

    fn target(number: u16) -> Target {
        let [a, b] = number.to_be_bytes();
        Target::Mac(MacAddr([2, 0, 0, 0, a, b]))
    }

    fn place(port: u16) -> Place {
        Place { switch: SwitchIndex(0), port: PortNo(port) }
    }

    #[test]
    fn a_scan_is_noted_by_its_different_targets_three_times_in_a_minute() {
        let mut scans = Scans::default();
        let mut enter = |now, number| scans.enter(now, place(0), target(number));
        for number in 0..10_000 {
            assert_eq!(enter(Time::ZERO, number % 60), None, "the same few, over and over");
        }
        let noted = |now, enter: &mut dyn FnMut(Time, u16) -> Option<u32>| {
            (0..3_000).filter_map(|number| enter(now, number)).collect::<Vec<_>>()
        };
        assert_eq!(noted(Time::ZERO, &mut enter), [64, 256, 1024]);
        assert_eq!(noted(Time::ZERO + WINDOW, &mut enter), [64, 256, 1024]);
    }

    #[test]
    fn so_many_ports_are_remembered_until_their_time_is_over() {
        let mut scans = Scans::default();
        for port in 0..1_000 {
            for number in 0..63 {
                scans.enter(Time::ZERO, place(port), target(number));
            }
        }
        assert_eq!(scans.ports.len(), PORTS_MAX);
        assert_eq!(scans.enter(Time::ZERO, place(999), target(63)), None);
        scans.enter(Time::ZERO + WINDOW, place(999), target(0));
        assert_eq!(scans.ports.len(), 1);
    }
}
