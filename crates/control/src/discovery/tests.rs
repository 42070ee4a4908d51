//! Two ends of one link, and everything that can be lost between them.

use super::*;
use axon_wire::{MacAddr, NodeId, Span};
use proptest::prelude::*;

const PORT: PortNo = PortNo(0);

/// Two nodes, one link between their first ports, and a clock.
struct Pair {
    now: Time,
    ends: [Discovery; 2],
    incarnations: [Incarnation; 2],
    notes: Vec<(usize, Note)>,
    refusals: Vec<Refusal>,
}

fn end(node: u64, hop_width: HopWidth) -> (Discovery, Incarnation) {
    let incarnation = Incarnation { node: NodeId(node), number: 1 };
    let mac = MacAddr([2, 0, 0, 0, 0, node as u8]);
    let server = crate::config::ServerIdentity { mac, ip: [10, 0, 0, 1].into() };
    let timers = Timers::default();
    let config = NodeConfig {
        incarnation,
        mac,
        keys: [0; 32].into(),
        seed: node,
        timers,
        dcbx: None,
        server,
    };
    (Discovery::new(&config, (1, hop_width), Role::Switch), incarnation)
}

impl Pair {
    fn new(widths: [HopWidth; 2]) -> Pair {
        let [(a, alice), (b, bob)] = [end(1, widths[0]), end(2, widths[1])];
        Pair {
            now: Time::ZERO,
            ends: [a, b],
            incarnations: [alice, bob],
            notes: Vec::new(),
            refusals: Vec::new(),
        }
    }

    fn carrier(&mut self, up: bool, lost: &mut impl FnMut(usize) -> bool) {
        let mut effects = [Vec::new(), Vec::new()];
        for (end, effects) in self.ends.iter_mut().zip(&mut effects) {
            end.link(self.now, PORT, up, effects);
        }
        for (side, effects) in effects.into_iter().enumerate() {
            self.carry(side, effects, lost);
        }
    }

    /// Delivers everything that follows from `effects` of one side, but for what is lost.
    fn carry(&mut self, side: usize, effects: Vec<Effect>, lost: &mut impl FnMut(usize) -> bool) {
        for effect in effects {
            match effect {
                Effect::Link { to, message, .. } if !lost(side) => {
                    let other = 1 - side;
                    let known =
                        to.is_none_or(|incarnation| incarnation == self.incarnations[other]);
                    assert!(known, "sealed for a incarnation that is not there");
                    let opened =
                        Opened { from: self.incarnations[side], message, addressed: to.is_some() };
                    let mut answers = Vec::new();
                    self.ends[other].message(self.now, PORT, &opened, &mut answers);
                    self.check();
                    self.carry(other, answers, lost);
                }
                Effect::Note(note) => self.notes.push((side, note)),
                Effect::Refuse { refusal, .. } => self.refusals.push(refusal),
                _ => {}
            }
        }
    }

    /// An end that takes the link for an Axon link never faces one that sees a host.
    fn check(&self) {
        let kinds = [self.ends[0].kind(PORT), self.ends[1].kind(PORT)];
        let confused = [PortKind::Axon, PortKind::Host].iter().all(|kind| kinds.contains(kind));
        assert!(!confused, "{kinds:?} at {}", self.now);
    }

    fn run(&mut self, span: Span, mut lost: impl FnMut(usize) -> bool) {
        let end = self.now + span;
        loop {
            let next = self.ends.iter().filter_map(Discovery::deadline).min();
            self.now = next.unwrap_or(end).max(self.now).min(end);
            for side in 0..2 {
                let mut effects = Vec::new();
                self.ends[side].timeout(self.now, &mut effects);
                self.check();
                self.carry(side, effects, &mut lost);
            }
            if self.now == end {
                return;
            }
        }
    }

    fn kinds(&self) -> [PortKind; 2] {
        [self.ends[0].kind(PORT), self.ends[1].kind(PORT)]
    }
}

#[test]
fn two_axons_find_each_other_at_once_and_stay_together() {
    let mut pair = Pair::new([HopWidth::Eight; 2]);
    pair.carrier(true, &mut |_| false);
    assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
    pair.run(Span::from_secs(10), |_| false);
    let up = |side| Note::NeighbourUp { port: PORT, node: NodeId(2 - side as u64) };
    assert_eq!(pair.notes.len(), 2);
    assert!(pair.notes.iter().all(|&(side, note)| note == up(side)));
    assert_eq!(pair.refusals, []);
}

#[test]
fn a_port_without_an_answer_is_a_host_port() {
    let mut pair = Pair::new([HopWidth::Eight; 2]);
    pair.carrier(true, &mut |_| true);
    pair.run(Span::from_millis(299), |_| true);
    assert_eq!(pair.kinds(), [PortKind::Unknown; 2]);
    pair.run(Span::from_millis(1), |_| true);
    assert_eq!(pair.kinds(), [PortKind::Host; 2]);
    pair.run(Span::from_secs(2), |_| false);
    assert_eq!(pair.kinds(), [PortKind::Axon; 2], "a port may change its kind");
}

#[test]
fn silence_ends_a_link_after_two_intervals_and_carrier_loss_at_once() {
    let mut pair = Pair::new([HopWidth::Eight; 2]);
    pair.carrier(true, &mut |_| false);
    pair.run(Span::from_secs(1), |_| false);
    pair.run(Span::from_millis(251), |_| true);
    assert_eq!(pair.kinds(), [PortKind::Unknown; 2]);
    pair.run(Span::from_secs(2), |_| false);
    assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
    pair.carrier(false, &mut |_| false);
    assert_eq!(pair.kinds(), [PortKind::Unknown; 2]);
    assert_eq!(pair.notes.len(), 8, "each end twice up and twice down");
}

#[test]
fn nodes_that_have_not_run_for_a_while_stay_neighbours_and_one_that_is_gone_is_missed_all_the_same()
{
    let mut pair = Pair::new([HopWidth::Eight; 2]);
    pair.carrier(true, &mut |_| false);
    pair.run(Span::from_secs(1), |_| false);
    // Neither runs for four intervals; the first to do so finds no heartbeat of the other's.
    pair.now += Span::from_millis(400);
    pair.run(Span::from_secs(1), |_| false);
    assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
    assert_eq!(pair.notes.len(), 2, "each end once up");
    // However long they have not run, the time that is excused has a bound.
    pair.now += Span::from_secs(10);
    pair.run(Span::from_millis(1), |_| true);
    assert_eq!(pair.kinds(), [PortKind::Unknown; 2]);
    pair.run(Span::from_secs(2), |_| false);
    assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
    pair.now += Span::from_millis(400);
    pair.run(Span::from_millis(251), |_| true);
    assert_eq!(pair.kinds(), [PortKind::Unknown; 2]);
}

#[test]
fn a_node_that_was_late_is_excused_also_if_it_first_advertises_a_new_path_to_the_controller() {
    let mut pair = Pair::new([HopWidth::Eight; 2]);
    pair.carrier(true, &mut |_| false);
    pair.run(Span::from_secs(1), |_| false);
    pair.now += Span::from_millis(300);
    let path =
        ControllerPath { controller: pair.incarnations[0], hops: axon_wire::Hops::to_control() };
    pair.ends[0].advertise(pair.now, Some(path), &mut Vec::new());
    pair.ends[0].timeout(pair.now, &mut Vec::new());
    assert_eq!(pair.ends[0].kind(PORT), PortKind::Axon);
}

#[test]
fn silence_in_one_direction_ends_the_link_for_both() {
    let mut pair = Pair::new([HopWidth::Eight; 2]);
    pair.carrier(true, &mut |_| false);
    pair.run(Span::from_secs(1), |side| side == 0);
    assert!(pair.ends.iter().all(|end| end.neighbour(PORT).is_none()));
}

#[test]
fn a_port_that_receives_a_deaf_node_does_not_take_it_for_a_host() {
    let mut pair = Pair::new([HopWidth::Eight; 2]);
    pair.carrier(true, &mut |side| side == 1);
    for _ in 0..100 {
        pair.run(Span::from_millis(50), |side| side == 1);
        assert_eq!(pair.ends[1].kind(PORT), PortKind::Unknown, "at {}", pair.now);
    }
    assert_eq!(pair.ends[0].kind(PORT), PortKind::Host, "it receives nothing");
    pair.run(Span::from_secs(4), |_| true);
    assert_eq!(pair.kinds(), [PortKind::Host; 2]);
    pair.run(Span::from_secs(2), |_| false);
    assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
}

#[test]
fn ends_whose_hops_differ_in_width_do_not_join() {
    let mut pair = Pair::new([HopWidth::Eight, HopWidth::Four]);
    pair.carrier(true, &mut |_| false);
    pair.run(Span::from_secs(1), |_| false);
    assert!(pair.ends.iter().all(|end| end.neighbour(PORT).is_none()));
    assert!(pair.refusals.iter().all(|&refusal| refusal == Refusal::HopWidth));
}

proptest! {
    /// Under any pattern of loss the ends agree enough for safety (see `check`), and
    /// once the loss ends they find each other.
    #[test]
    fn whatever_is_lost_the_ends_are_never_confused_and_meet_in_the_end(
        pattern in proptest::collection::vec(any::<bool>(), 1..400),
        flaps in 0usize..4,
    ) {
        let mut fates = pattern.into_iter();
        let mut lost = |_| fates.next().unwrap_or(false);
        let mut pair = Pair::new([HopWidth::Eight; 2]);
        for _ in 0..=flaps {
            pair.carrier(true, &mut lost);
            pair.run(Span::from_millis(730), &mut lost);
            pair.carrier(false, &mut lost);
        }
        pair.carrier(true, &mut lost);
        pair.run(Span::from_secs(30), &mut lost);
        pair.run(Span::from_secs(5), |_| false);
        prop_assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
    }
}
