//! A switch's path to the controller (paper 001 §4.2.1: Controller Hello).
//!
//! Neighbours advertise their shortest verified path in heartbeats. That path with one hop in front
//! is a candidate. The switch sends its full port state along the shortest candidate, repeatedly,
//! until the controller answers along the reverse path. The path is then verified and is advertised
//! to neighbours. A path with a loop never reaches the controller and is never verified, so no
//! other loop protection is needed.
//!
//! The port state is sent again when a port changes, when a shorter path appears, and periodically,
//! to detect a failure beyond the neighbour.

use crate::config::Timers;
use crate::discovery::Discovery;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::Note;
use axon_wire::message::{ControllerHello, ControllerHelloAck, ControllerPath, Message};
use axon_wire::{Incarnation, PortNo, Time};

/// Number of attempts along one candidate before the next one is tried.
const TRIES_PER_CANDIDATE: u32 = 4;
/// Interval in heartbeats at which an acknowledged port state is sent again.
const REFRESH_HEARTBEATS: u64 = 30;

/// Finds, verifies and maintains the path to the controller.
#[derive(Clone, Debug)]
pub struct Uplink {
    timers: Timers,
    /// Verified path, while the neighbour still advertises it.
    current: Option<ControllerPath>,
    /// Controller that acknowledged a port state last.
    controller: Option<Incarnation>,
    /// Candidate being tried, if an answer is awaited.
    trial: Option<Trial>,
    nonce: u64,
    /// Version of the port state that the controller has acknowledged.
    acknowledged: Option<u64>,
    send_at: Option<Time>,
    /// Number of failed candidates since the last answer.
    turn: usize,
    /// Versions of discovery that [`Uplink::update`] saw last, until something else changes.
    seen: Option<(u64, u64)>,
}

#[derive(Clone, Debug)]
struct Trial {
    path: ControllerPath,
    nonce: u64,
    version: u64,
    tries: u32,
}

impl Uplink {
    /// Creates an uplink without a path.
    pub fn new(timers: Timers) -> Uplink {
        Uplink {
            timers,
            current: None,
            controller: None,
            trial: None,
            nonce: 0,
            acknowledged: None,
            send_at: None,
            turn: 0,
            seen: None,
        }
    }

    /// Returns the verified path, if there is one.
    pub fn path(&self) -> Option<&ControllerPath> {
        self.current.as_ref()
    }

    /// Returns the controller that last acknowledged this switch's state, even if it is unreachable
    /// now.
    pub fn controller(&self) -> Option<Incarnation> {
        self.controller
    }

    /// Reads the paths that neighbours advertise, drops paths that are no longer valid, and tries
    /// shorter or new ones. Call it after every input that may have changed discovery.
    pub fn update(&mut self, now: Time, discovery: &Discovery, out: &mut Vec<impl From<Effect>>) {
        let versions = Some((discovery.version(), discovery.paths_version()));
        if self.seen == versions {
            return;
        }
        self.seen = versions;
        let candidates = candidates(discovery);
        if self.current.as_ref().is_some_and(|path| !candidates.contains(path)) {
            self.current = None;
            out.push(Effect::Note(Note::ControllerPath { reachable: false }).into());
        }
        if self.trial.as_ref().is_some_and(|trial| !candidates.contains(&trial.path)) {
            // A neighbour that advertises another path before an answer loses its attempt.
            // Otherwise it could block all other candidates.
            self.trial = None;
            self.turn += 1;
            self.send_at = None;
        }
        let Some(best) = self.choose(&candidates) else {
            self.send_at = None;
            return;
        };
        let version = discovery.version();
        let better = self.current.as_ref().is_none_or(|path| rank(best) < rank(path));
        let stale = self.acknowledged != Some(version);
        let awaited = self.trial.as_ref();
        let changed = awaited.is_none_or(|trial| {
            trial.version != version || (better && rank(best) < rank(&trial.path))
        });
        if (better || stale) && changed {
            let path = if better { best } else { self.current.as_ref().unwrap_or(best) };
            self.begin(now, path.clone(), discovery, out);
        } else if awaited.is_none() && self.send_at.is_none() {
            self.send_at = Some(now + self.timers.heartbeat * REFRESH_HEARTBEATS);
        }
    }

    /// Handles the controller's answer. Returns whether the verified path or the controller's
    /// incarnation has changed.
    pub fn acknowledged(
        &mut self,
        now: Time,
        from: Incarnation,
        ack: ControllerHelloAck,
        out: &mut Vec<impl From<Effect>>,
    ) -> bool {
        let answers = |trial: &Trial| {
            trial.path.controller == from
                && trial.nonce == ack.nonce
                && trial.version == ack.version
        };
        if !self.trial.as_ref().is_some_and(answers) {
            return false;
        }
        let Some(trial) = self.trial.take() else {
            return false;
        };
        self.seen = None;
        let changed = self.current.as_ref() != Some(&trial.path) || self.controller != Some(from);
        self.acknowledged = Some(trial.version);
        self.controller = Some(from);
        self.current = Some(trial.path);
        self.turn = 0;
        self.send_at = Some(now + self.timers.heartbeat * REFRESH_HEARTBEATS);
        if changed {
            out.push(Effect::Note(Note::ControllerPath { reachable: true }).into());
        }
        changed
    }

    /// Repeats an unanswered port state, or sends one that is due for a refresh.
    pub fn timeout(&mut self, now: Time, discovery: &Discovery, out: &mut Vec<impl From<Effect>>) {
        if self.send_at.is_none_or(|at| at > now) {
            return;
        }
        self.seen = None;
        let Some(mut trial) = self.trial.take() else {
            self.send_at = None;
            if let Some(path) = self.current.clone() {
                self.begin(now, path, discovery, out);
            }
            return;
        };
        if trial.tries < TRIES_PER_CANDIDATE {
            trial.tries += 1;
            self.send(now, trial, discovery, out);
            return;
        }
        // No answer: this path does not work, although the neighbour advertises it.
        self.turn += 1;
        self.send_at = None;
        if self.current.as_ref() == Some(&trial.path) {
            self.current = None;
            out.push(Effect::Note(Note::ControllerPath { reachable: false }).into());
        }
        let candidates = candidates(discovery);
        if let Some(path) = self.choose(&candidates).cloned() {
            self.begin(now, path, discovery, out);
        }
    }

    /// Returns when [`Uplink::timeout`] is due next.
    pub fn deadline(&self) -> Option<Time> {
        self.send_at
    }

    /// Returns the best candidate, or after failures the next one, cyclically.
    fn choose<'a>(&self, candidates: &'a [ControllerPath]) -> Option<&'a ControllerPath> {
        candidates.get(self.turn % candidates.len().max(1))
    }

    fn begin(
        &mut self,
        now: Time,
        path: ControllerPath,
        discovery: &Discovery,
        out: &mut Vec<impl From<Effect>>,
    ) {
        self.nonce += 1;
        let trial = Trial { path, nonce: self.nonce, version: discovery.version(), tries: 1 };
        self.send(now, trial, discovery, out);
    }

    fn send(
        &mut self,
        now: Time,
        trial: Trial,
        discovery: &Discovery,
        out: &mut Vec<impl From<Effect>>,
    ) {
        let hello = ControllerHello {
            version: trial.version,
            nonce: trial.nonce,
            ports: discovery.port_states(),
        };
        out.push(
            Effect::Routed {
                hops: trial.path.hops.clone(),
                to: trial.path.controller,
                message: Message::ControllerHello(hello),
            }
            .into(),
        );
        self.send_at = Some(now + self.timers.retry * u64::from(trial.tries));
        self.trial = Some(trial);
    }
}

/// Sort key of a path: the latest incarnation of the controller, then the fewest hops, then the
/// lowest port.
fn rank(path: &ControllerPath) -> (core::cmp::Reverse<(u64, u64)>, usize, PortNo) {
    let incarnation = (path.controller.number, path.controller.node.0);
    (
        core::cmp::Reverse(incarnation),
        path.hops.len(),
        path.hops.first().copied().unwrap_or_default(),
    )
}

/// Returns the paths that neighbours advertise, with the hop to the neighbour in front, best first.
fn candidates(discovery: &Discovery) -> Vec<ControllerPath> {
    let mut candidates: Vec<ControllerPath> = discovery
        .neighbours()
        .filter_map(|(port, neighbour)| {
            let path = neighbour.path.as_ref()?;
            Some(ControllerPath { controller: path.controller, hops: path.hops.after(port) })
        })
        .collect();
    candidates.sort_by_key(rank);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{NodeConfig, ServerIdentity};
    use crate::seal::Opened;
    use alloc::vec;
    use axon_wire::message::{Heartbeat, Hello, HelloConfirm, Role};
    use axon_wire::vlan::VlanId;
    use axon_wire::{HopWidth, Hops, MacAddr, NodeId, Span};

    const CONTROL: u16 = PortNo::CONTROL.0;

    fn incarnation(node: u64, incarnation: u64) -> Incarnation {
        Incarnation { node: NodeId(node), number: incarnation }
    }

    /// A switch whose neighbours are simulated by the test: neighbour `n` is on port `n`.
    struct Scene {
        now: Time,
        discovery: Discovery,
        uplink: Uplink,
        /// Challenge that each neighbour has to echo.
        challenges: Vec<u64>,
    }

    impl Scene {
        fn new(neighbours: u16) -> Scene {
            let mac = MacAddr([2, 0, 0, 0, 0, 1]);
            let config = NodeConfig {
                incarnation: incarnation(1, 1),
                mac,
                keys: [0; 32].into(),
                seed: 1,
                timers: Timers::default(),
                server: ServerIdentity { mac, ip: [10, 0, 0, 1].into() },
            };
            let discovery = Discovery::new(&config, (neighbours, HopWidth::Eight), Role::Switch);
            let uplink = Uplink::new(config.timers);
            let mut scene = Scene { now: Time::ZERO, discovery, uplink, challenges: vec![] };
            for port in (0..neighbours).map(PortNo) {
                scene.meet(port);
            }
            scene
        }

        fn receive(&mut self, port: PortNo, message: Message, addressed: bool) -> Vec<Effect> {
            let from = incarnation(100 + u64::from(port.0), 1);
            let mut effects = vec![];
            let opened = Opened { from, vlan: VlanId::NONE, message, addressed };
            self.discovery.message(self.now, port, &opened, &mut effects);
            effects
        }

        fn meet(&mut self, port: PortNo) {
            self.discovery.link(self.now, port, true, &mut Vec::<Effect>::new());
            let (role, hop_width) = (Role::Switch, HopWidth::Eight);
            let hello = Hello { port: PortNo(9), role, hop_width, challenge: 7 };
            let effects = self.receive(port, Message::Hello(hello), false);
            let challenge = effects.iter().find_map(|effect| match effect {
                Effect::Link { message: Message::HelloReply(reply), .. } => Some(reply.challenge),
                _ => None,
            });
            self.challenges.push(challenge.unwrap());
            let echo = challenge.unwrap();
            self.receive(port, Message::HelloConfirm(HelloConfirm { echo }), true);
        }

        /// Advertises a neighbour's path; returns the resulting Controller Hello, if any.
        fn advertised(&mut self, port: u16, path: Option<ControllerPath>) -> Option<Sent> {
            let echo = self.challenges[usize::from(port)];
            self.receive(PortNo(port), Message::Heartbeat(Heartbeat { echo, path }), true);
            let mut effects = vec![];
            self.uplink.update(self.now, &self.discovery, &mut effects);
            sent(effects)
        }

        fn answer(&mut self, sent: &Sent) -> bool {
            let ack = ControllerHelloAck { version: sent.1.version, nonce: sent.1.nonce };
            self.uplink.acknowledged(self.now, sent.2, ack, &mut Vec::<Effect>::new())
        }

        fn later(&mut self) -> Option<Sent> {
            self.now = self.uplink.deadline().unwrap();
            let mut effects = vec![];
            self.uplink.timeout(self.now, &self.discovery, &mut effects);
            sent(effects)
        }
    }

    type Sent = (Hops, ControllerHello, Incarnation);

    fn sent(effects: Vec<Effect>) -> Option<Sent> {
        effects.into_iter().find_map(|effect| match effect {
            Effect::Routed { hops, to, message: Message::ControllerHello(hello) } => {
                Some((hops, hello, to))
            }
            _ => None,
        })
    }

    fn path<const N: usize>(number: u64, hops: [u16; N]) -> Option<ControllerPath> {
        Some(ControllerPath { controller: incarnation(50, number), hops: Hops::from(hops) })
    }

    #[test]
    fn a_path_counts_once_the_controller_has_answered_along_it() {
        let mut scene = Scene::new(2);
        let sent = scene.advertised(0, path(1, [4, CONTROL])).unwrap();
        assert_eq!(sent.0, Hops::from([0, 4, CONTROL]));
        assert_eq!(sent.1.ports.len(), 2);
        assert_eq!(scene.uplink.path(), None);
        assert!(scene.answer(&sent));
        assert_eq!(scene.uplink.path().unwrap().hops, sent.0);
        assert!(!scene.answer(&sent), "an answer counts once");
    }

    #[test]
    fn a_shorter_path_is_tried_and_a_longer_one_is_not() {
        let mut scene = Scene::new(2);
        let first = scene.advertised(0, path(1, [4, 5, CONTROL])).unwrap();
        scene.answer(&first);
        assert_eq!(scene.advertised(1, path(1, [4, 5, 6, CONTROL])), None);
        let better = scene.advertised(1, path(1, [4, CONTROL])).unwrap();
        assert_eq!(scene.uplink.path().unwrap().hops, first.0, "kept until the new one is sure");
        scene.answer(&better);
        assert_eq!(scene.uplink.path().unwrap().hops, Hops::from([1, 4, CONTROL]));
    }

    #[test]
    fn a_path_that_its_neighbour_no_longer_advertises_is_dropped_at_once() {
        let mut scene = Scene::new(2);
        let first = scene.advertised(0, path(1, [4, CONTROL])).unwrap();
        scene.answer(&first);
        assert_eq!(scene.advertised(0, None), None);
        assert_eq!(scene.uplink.path(), None);
        assert!(scene.uplink.controller().is_some(), "who it was is still known");
    }

    #[test]
    fn silence_passes_the_turn_to_the_next_candidate_and_comes_back() {
        let mut scene = Scene::new(2);
        scene.advertised(1, path(1, [4, 5, CONTROL]));
        let mut tried = vec![scene.advertised(0, path(1, [4, CONTROL])).unwrap().0];
        while tried.len() < 13 {
            tried.extend(scene.later().map(|sent| sent.0));
        }
        let short = tried.iter().filter(|hops| hops.len() == 3).count();
        assert!(short > 4 && short < 13, "{tried:?}");
    }

    #[test]
    fn a_neighbour_that_advertises_another_path_each_time_keeps_nobody_from_the_true_one() {
        let mut scene = Scene::new(2);
        scene.advertised(0, path(1, [4, CONTROL]));
        let fakes = (0..4).filter_map(|fake| scene.advertised(1, path(99, [fake, CONTROL])));
        let fakes: Vec<Sent> = fakes.collect();
        let true_one = fakes.iter().find(|sent| sent.0 == Hops::from([0, 4, CONTROL]));
        assert!(scene.answer(true_one.expect("it has its turn")));
    }

    #[test]
    fn a_new_incarnation_of_the_controller_wins_over_a_shorter_path_to_the_old_one() {
        let mut scene = Scene::new(2);
        let old = scene.advertised(0, path(1, [4, CONTROL])).unwrap();
        scene.answer(&old);
        let new = scene.advertised(1, path(2, [4, 5, 6, CONTROL])).unwrap();
        assert_eq!(new.2, incarnation(50, 2));
        assert!(scene.answer(&new));
        assert_eq!(scene.uplink.controller(), Some(incarnation(50, 2)));
    }

    #[test]
    fn a_verified_path_is_verified_again_and_given_up_without_an_answer() {
        let mut scene = Scene::new(1);
        let first = scene.advertised(0, path(1, [4, CONTROL])).unwrap();
        scene.answer(&first);
        let started = scene.now;
        let mut tries = 0;
        while scene.uplink.path().is_some() {
            tries += u32::from(scene.later().is_some());
        }
        assert!(tries > TRIES_PER_CANDIDATE);
        let patience = Timers::default().heartbeat * (REFRESH_HEARTBEATS + 1);
        assert!(scene.now.since(started) >= patience.min(Span::from_secs(3)));
    }
}
