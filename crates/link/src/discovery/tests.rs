//! Tests of two ends of one link, under any loss of messages.

use super::*;
use alloc::vec;
use axon_wire::vlan::VlanId;
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
    /// Stopped nodes.
    down: [bool; 2],
    /// Data planes that forward, and the kind of their ports, which outlive their nodes.
    forwards: [bool; 2],
    planes: [PortKind; 2],
    /// True if messages are lost, and echoes are not.
    deaf: bool,
    /// Echoes sent: time, sender, and number.
    echoes: Vec<(Time, usize, u64)>,
}

fn end(node: u64, number: u64, hop_width: HopWidth) -> (Discovery, Incarnation) {
    let incarnation = Incarnation { node: NodeId(node), number };
    let mac = MacAddr([2, 0, 0, 0, 0, node as u8]);
    let server = crate::config::ServerIdentity { mac, ip: [10, 0, 0, 1].into() };
    let timers = Timers::default();
    let config = NodeConfig {
        incarnation,
        mac,
        keys: [0; 32].into(),
        seed: node + 100 * number,
        timers,
        server,
    };
    (Discovery::new(&config, (1, hop_width), Role::Switch), incarnation)
}

impl Pair {
    fn new(widths: [HopWidth; 2]) -> Pair {
        let [(a, alice), (b, bob)] = [end(1, 1, widths[0]), end(2, 1, widths[1])];
        Pair {
            now: Time::ZERO,
            ends: [a, b],
            incarnations: [alice, bob],
            notes: Vec::new(),
            refusals: Vec::new(),
            down: [false; 2],
            forwards: [true; 2],
            planes: [PortKind::Unknown; 2],
            deaf: false,
            echoes: Vec::new(),
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

    /// Delivers all messages that follow from `effects` of one side, except those lost.
    fn carry(&mut self, side: usize, effects: Vec<Effect>, lost: &mut impl FnMut(usize) -> bool) {
        for effect in effects {
            match effect {
                Effect::Link { to, message, .. }
                    if !lost(side) && !self.down[1 - side] && !self.deaf =>
                {
                    let other = 1 - side;
                    let known =
                        to.is_none_or(|incarnation| incarnation == self.incarnations[other]);
                    if !known {
                        self.refusals.push(Refusal::BadSeal);
                        continue;
                    }
                    let (from, vlan, addressed) =
                        (self.incarnations[side], VlanId::NONE, to.is_some());
                    let opened = Opened { from, vlan, message, addressed };
                    let mut answers = Vec::new();
                    self.ends[other].message(self.now, PORT, &opened, &mut answers);
                    self.check();
                    self.carry(other, answers, lost);
                }
                Effect::Note(note) => self.notes.push((side, note)),
                Effect::Echo { port, hops, number } => {
                    assert_eq!(hops, axon_wire::Hops::from([0, 0, PortNo::CONTROL.0]));
                    self.echoes.push((self.now, side, number));
                    let there = self.forwards[1 - side] && self.planes[1 - side] == PortKind::Axon;
                    if there && !lost(side) && !lost(1 - side) {
                        self.ends[side].echoed(self.now, port, number);
                    }
                }
                Effect::PortKind { kind, .. } => {
                    self.planes[side] = kind;
                    self.check();
                }
                Effect::Refuse { refusal, .. } => self.refusals.push(refusal),
                _ => {}
            }
        }
    }

    /// Checks that no end treats the link as an Axon link while the other treats it as a host port.
    fn check(&self) {
        let kinds = self.planes;
        let confused = [PortKind::Axon, PortKind::Host].iter().all(|kind| kinds.contains(kind));
        assert!(!confused, "{kinds:?} at {}", self.now);
    }

    fn run(&mut self, span: Span, mut lost: impl FnMut(usize) -> bool) {
        let end = self.now + span;
        loop {
            let running = (0..2).filter(|&side| !self.down[side]);
            let next = running.filter_map(|side| self.ends[side].deadline()).min();
            self.now = next.unwrap_or(end).max(self.now).min(end);
            for side in (0..2).filter(|&side| !self.down[side]).collect::<Vec<_>>() {
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
fn a_port_that_is_pinned_to_hosts_waits_for_no_answer() {
    let mut pair = Pair::new([HopWidth::Eight; 2]);
    pair.ends[0].pin(PORT);
    // All ports of a node that starts wait the same time.
    pair.carrier(true, &mut |_| true);
    assert_eq!(pair.kinds(), [PortKind::Unknown; 2]);
    pair.carrier(false, &mut |_| true);
    pair.run(Span::from_millis(300), |_| true);
    for _ in 0..2 {
        pair.carrier(true, &mut |_| true);
        assert_eq!(pair.kinds(), [PortKind::Host, PortKind::Unknown]);
        pair.carrier(false, &mut |_| true);
        assert_eq!(pair.kinds(), [PortKind::Unknown; 2]);
        pair.run(Span::from_millis(300), |_| true);
    }
    // A port with a flapping carrier changes its kind no more often than any other.
    pair.carrier(true, &mut |_| true);
    pair.carrier(false, &mut |_| true);
    pair.carrier(true, &mut |_| true);
    pair.run(Span::from_millis(299), |_| true);
    assert_eq!(pair.kinds(), [PortKind::Unknown; 2]);
    pair.run(Span::from_millis(1), |_| true);
    assert_eq!(pair.kinds()[0], PortKind::Host);
    pair.carrier(false, &mut |_| true);
    pair.run(Span::from_millis(300), |_| true);
    // A switch at the other end finds no neighbour, so it never treats the link as an Axon link.
    pair.carrier(true, &mut |_| false);
    pair.run(Span::from_secs(10), |_| false);
    assert_ne!(pair.kinds()[1], PortKind::Axon);
    assert_eq!(pair.kinds()[0], PortKind::Host);
    assert!(pair.refusals.contains(&Refusal::PinnedPort), "{:?}", pair.refusals);
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
    // Neither runs for four intervals; the first one to run has no heartbeat of the other.
    pair.now += Span::from_millis(400);
    pair.run(Span::from_secs(1), |_| false);
    assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
    assert_eq!(pair.notes.len(), 2, "each end once up");
    // The excused time is bounded, however long they have not run.
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
    pair.ends[0].advertise(pair.now, Some(path), &mut Vec::<Effect>::new());
    pair.ends[0].timeout(pair.now, &mut Vec::<Effect>::new());
    assert_eq!(pair.ends[0].kind(PORT), PortKind::Axon);
}

impl Pair {
    /// Two ends that have been neighbours for a second; then the second node dies.
    fn bereft(forwards: bool) -> Pair {
        let mut pair = Pair::new([HopWidth::Eight; 2]);
        pair.carrier(true, &mut |_| false);
        pair.run(Span::from_secs(1), |_| false);
        assert_eq!(pair.echoes, [], "nobody is late");
        (pair.down[1], pair.forwards[1]) = (true, forwards);
        if !forwards {
            pair.planes[1] = PortKind::Unknown;
        }
        pair.notes.clear();
        pair
    }

    /// Restarts the second node, in its next incarnation.
    fn restart(&mut self) {
        let (mut fresh, incarnation) = end(2, self.incarnations[1].number + 1, HopWidth::Eight);
        if self.planes[1] == PortKind::Axon {
            fresh.inherit(PORT);
        }
        (self.ends[1], self.incarnations[1], self.down[1]) = (fresh, incarnation, false);
        let mut effects = Vec::new();
        self.ends[1].link(self.now, PORT, true, &mut effects);
        self.carry(1, effects, &mut |_| false);
    }

    /// Returns the notes of the first end.
    fn noted(&self) -> Vec<Note> {
        self.notes.iter().filter(|(side, _)| *side == 0).map(|&(_, note)| note).collect()
    }
}

const NODE: NodeId = NodeId(2);
const UP: Note = Note::NeighbourUp { port: PORT, node: NODE };
const DOWN: Note = Note::NeighbourDown { port: PORT, node: NODE };
const RESTARTING: Note = Note::NeighbourRestarting { port: PORT, node: NODE };

#[test]
fn a_neighbour_whose_data_plane_forwards_stays_while_its_node_restarts() {
    let mut pair = Pair::bereft(true);
    let (version, states) = (pair.ends[0].version(), pair.ends[0].port_states());
    pair.run(Span::from_secs(5), |_| false);
    assert_eq!((pair.ends[0].kind(PORT), pair.noted()), (PortKind::Axon, vec![RESTARTING]));
    assert!(pair.ends[0].neighbour(PORT).unwrap().is_restarting());
    pair.restart();
    assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
    pair.run(Span::from_secs(5), |_| false);
    assert_eq!((pair.kinds(), pair.noted()), ([PortKind::Axon; 2], vec![RESTARTING, UP]));
    let neighbour = pair.ends[0].neighbour(PORT).unwrap();
    assert!(neighbour.incarnation.number == 2 && !neighbour.is_restarting());
    assert_eq!((pair.ends[0].version(), pair.ends[0].port_states()), (version, states));
}

#[test]
fn a_node_that_was_silent_for_a_while_is_a_neighbour_as_before() {
    let mut pair = Pair::bereft(true);
    pair.run(Span::from_secs(2), |_| false);
    pair.down[1] = false;
    pair.run(Span::from_secs(2), |_| false);
    let sent = pair.echoes.len();
    assert_eq!((pair.ends[0].kind(PORT), pair.noted()), (PortKind::Axon, vec![RESTARTING, UP]));
    pair.run(Span::from_secs(2), |_| false);
    assert_eq!(pair.echoes.len(), sent, "echoes end with the silence");
}

#[test]
fn a_neighbour_whose_data_plane_is_dead_is_removed_when_it_always_was() {
    let mut pair = Pair::bereft(false);
    let silent_since = pair.ends[0].neighbour(PORT).unwrap().received_at;
    let end = silent_since + Span::from_millis(250);
    pair.run(Span::from_ticks(end.since(pair.now).ticks() - 1), |_| false);
    assert_eq!(pair.ends[0].kind(PORT), PortKind::Axon);
    pair.run(Span::from_ticks(1), |_| false);
    assert_eq!((pair.ends[0].kind(PORT), pair.noted()), (PortKind::Unknown, vec![DOWN]));
    let at = |millis| silent_since + Span::from_millis(millis);
    let times: Vec<Time> = pair.echoes.iter().map(|&(time, ..)| time).collect();
    assert_eq!(times, [at(150), at(200)]);
}

#[test]
fn a_data_plane_that_stops_during_the_restart_is_missed_as_soon_as_any() {
    let mut pair = Pair::bereft(true);
    pair.run(Span::from_secs(3), |_| false);
    pair.forwards[1] = false;
    pair.run(Span::from_millis(190), |_| false);
    assert_eq!(pair.ends[0].kind(PORT), PortKind::Axon);
    pair.run(Span::from_millis(60), |_| false);
    assert_eq!(
        (pair.ends[0].kind(PORT), pair.noted()),
        (PortKind::Unknown, vec![RESTARTING, DOWN])
    );
}

#[test]
fn a_node_that_hangs_is_removed_in_time_whatever_its_data_plane_does() {
    let mut pair = Pair::bereft(true);
    let silent_since = pair.ends[0].neighbour(PORT).unwrap().received_at;
    let end = silent_since + Timers::default().restart_max();
    pair.run(Span::from_ticks(end.since(pair.now).ticks() - 1), |_| false);
    assert_eq!(pair.ends[0].kind(PORT), PortKind::Axon);
    pair.run(Span::from_ticks(1), |_| false);
    assert_eq!(pair.ends[0].kind(PORT), PortKind::Unknown);
    // Frames from its data plane are never a host's, however long it forwards.
    pair.run(Span::from_secs(600), |_| false);
    assert_eq!(pair.ends[0].kind(PORT), PortKind::Unknown);
    pair.restart();
    assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
}

#[test]
fn a_port_that_its_data_plane_has_as_an_axon_port_is_no_host_port_before_its_echoes_are_missed() {
    let mut pair = Pair::bereft(true);
    pair.deaf = true;
    pair.restart();
    // Without answers, and with its echoes returned, the other end continues to send Axon packets.
    pair.run(Span::from_millis(299), |_| false);
    assert_eq!(pair.planes, [PortKind::Axon; 2]);
    pair.run(Span::from_millis(300), |_| false);
    assert_eq!(pair.planes, [PortKind::Unknown; 2]);
    pair.run(Span::from_secs(1), |_| false);
    assert_eq!(pair.kinds()[1], PortKind::Host);
    pair.deaf = false;
    pair.run(Span::from_secs(2), |_| false);
    assert_eq!(pair.kinds(), [PortKind::Axon; 2]);
}

#[test]
fn an_echo_counts_once_and_one_that_was_not_sent_does_not_count() {
    let mut pair = Pair::bereft(false);
    pair.run(Span::from_millis(160), |_| false);
    let [(_, 0, number)] = pair.echoes[..] else { panic!("{:?}", pair.echoes) };
    let dead_at = |pair: &Pair| pair.ends[0].dead_at(pair.ends[0].neighbour(PORT).unwrap());
    let before = dead_at(&pair);
    for forged in [0, 1, number - 1, number + 1, !number] {
        pair.ends[0].echoed(pair.now, PORT, forged);
        assert_eq!(dead_at(&pair), before, "{forged} for {number}");
    }
    pair.ends[0].echoed(pair.now, PORT, number);
    let after = dead_at(&pair);
    assert_eq!(after, pair.now + Span::from_millis(250));
    for replay in 1..1_000 {
        let at = pair.now + Span::from_millis(replay % 90);
        pair.ends[0].echoed(at, PORT, number);
        assert_eq!(dead_at(&pair), after, "played back");
    }
    pair.run(Span::from_millis(400), |_| false);
    assert_eq!(pair.ends[0].kind(PORT), PortKind::Unknown);
    // An echo of an earlier silence does not count in a later one.
    let old: Vec<u64> = pair.echoes.iter().map(|&(.., number)| number).collect();
    pair.restart();
    pair.run(Span::from_secs(1), |_| false);
    pair.down[1] = true;
    pair.run(Span::from_millis(200), |_| false);
    let before = dead_at(&pair);
    old.into_iter().for_each(|number| pair.ends[0].echoed(pair.now, PORT, number));
    assert_eq!(dead_at(&pair), before);
}

#[test]
fn another_node_in_its_place_is_another_neighbour_although_echoes_return() {
    let mut pair = Pair::bereft(true);
    pair.run(Span::from_secs(1), |_| false);
    let (other, incarnation) = end(3, 1, HopWidth::Eight);
    (pair.ends[1], pair.incarnations[1], pair.down[1]) = (other, incarnation, false);
    let mut effects = Vec::new();
    pair.ends[1].link(pair.now, PORT, true, &mut effects);
    pair.carry(1, effects, &mut |_| false);
    let up = Note::NeighbourUp { port: PORT, node: NodeId(3) };
    assert_eq!(pair.noted(), [RESTARTING, DOWN, up]);
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
    /// Under any pattern of loss the ends agree enough for safety (see `check`), and once the loss
    /// ends they become neighbours.
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
