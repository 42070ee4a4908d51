//! A switch's way to the controller (paper 001 §4.2.1: Controller Hello).
//!
//! Neighbours tell their shortest verified path in heartbeats; one hop in front makes it a
//! candidate of ours. The switch sends its full port state along the shortest candidate,
//! again and again until the controller answers along the same way back: then the path is
//! verified, and only then told to neighbours. A path that would run in a circle never
//! reaches the controller, so it is never verified: that is all the loop protection needed.
//!
//! The state is sent again when a port changes, when a shorter path appears, and from time
//! to time, so that a path which dies somewhere beyond the neighbour is noticed too.

use crate::config::Timers;
use crate::discovery::Discovery;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_plane::Note;
use axon_wire::message::{ControllerHello, ControllerHelloAck, ControllerPath, Message};
use axon_wire::{Life, PortNo, Time};

/// Tries along one candidate before the next one gets its turn.
const TRIES_PER_CANDIDATE: u32 = 4;
/// An acknowledged state is sent again after this many heartbeats.
const REFRESH_HEARTBEATS: u64 = 30;

/// Finds, verifies and keeps the way to the controller.
#[derive(Clone, Debug)]
pub struct Uplink {
    timers: Timers,
    /// Verified, and still what the neighbour tells.
    current: Option<ControllerPath>,
    /// The last controller that acknowledged anything.
    controller: Option<Life>,
    /// What is being tried, if an answer is awaited.
    trial: Option<Trial>,
    nonce: u64,
    /// The version that the controller has acknowledged.
    acknowledged: Option<u64>,
    send_at: Option<Time>,
    /// How often the turn has passed to another candidate.
    turn: usize,
}

#[derive(Clone, Debug)]
struct Trial {
    path: ControllerPath,
    nonce: u64,
    version: u64,
    tries: u32,
}

impl Uplink {
    /// No path yet.
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
        }
    }

    /// The verified path, if there is one.
    pub fn path(&self) -> Option<&ControllerPath> {
        self.current.as_ref()
    }

    /// The controller that last acknowledged our state, even when it is out of reach now.
    pub fn controller(&self) -> Option<Life> {
        self.controller
    }

    /// Looks at what neighbours tell now, drops what no longer holds, tries what is better
    /// or new. To be called after anything that may have changed discovery.
    pub fn update(&mut self, now: Time, discovery: &Discovery, out: &mut Vec<Effect>) {
        let candidates = candidates(discovery);
        if self
            .current
            .as_ref()
            .is_some_and(|path| !candidates.contains(path))
        {
            self.current = None;
            out.push(Effect::Note(Note::ControllerPath { reachable: false }));
        }
        if self
            .trial
            .as_ref()
            .is_some_and(|trial| !candidates.contains(&trial.path))
        {
            self.trial = None;
            self.send_at = None;
        }
        let Some(best) = self.choose(&candidates) else {
            self.send_at = None;
            return;
        };
        let version = discovery.version();
        let better = self
            .current
            .as_ref()
            .is_none_or(|path| rank(best) < rank(path));
        let stale = self.acknowledged != Some(version);
        let awaited = self.trial.as_ref();
        let changed = awaited.is_none_or(|trial| {
            trial.version != version || (better && rank(best) < rank(&trial.path))
        });
        if (better || stale) && changed {
            let path = if better {
                best
            } else {
                self.current.as_ref().unwrap_or(best)
            };
            self.begin(now, path.clone(), discovery, out);
        } else if awaited.is_none() && self.send_at.is_none() {
            self.send_at = Some(now + self.timers.heartbeat * REFRESH_HEARTBEATS);
        }
    }

    /// The controller has answered; true if the verified path or the controller's life is
    /// another one now.
    pub fn acknowledged(
        &mut self,
        now: Time,
        from: Life,
        ack: ControllerHelloAck,
        out: &mut Vec<Effect>,
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
        let changed = self.current.as_ref() != Some(&trial.path) || self.controller != Some(from);
        self.acknowledged = Some(trial.version);
        self.controller = Some(from);
        self.current = Some(trial.path);
        self.turn = 0;
        self.send_at = Some(now + self.timers.heartbeat * REFRESH_HEARTBEATS);
        if changed {
            out.push(Effect::Note(Note::ControllerPath { reachable: true }));
        }
        changed
    }

    /// Sends again what has not been answered, or what is due for a refresh.
    pub fn timeout(&mut self, now: Time, discovery: &Discovery, out: &mut Vec<Effect>) {
        if !self.send_at.is_some_and(|at| at <= now) {
            return;
        }
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
        // No answer: whatever the neighbour believes, this path does not work.
        self.turn += 1;
        self.send_at = None;
        if self.current.as_ref() == Some(&trial.path) {
            self.current = None;
            out.push(Effect::Note(Note::ControllerPath { reachable: false }));
        }
        let candidates = candidates(discovery);
        if let Some(path) = self.choose(&candidates).cloned() {
            self.begin(now, path, discovery, out);
        }
    }

    /// When [`Uplink::timeout`] has something to do next.
    pub fn deadline(&self) -> Option<Time> {
        self.send_at
    }

    /// The best candidate, or after failures the next best, round and round.
    fn choose<'a>(&self, candidates: &'a [ControllerPath]) -> Option<&'a ControllerPath> {
        candidates.get(self.turn % candidates.len().max(1))
    }

    fn begin(
        &mut self,
        now: Time,
        path: ControllerPath,
        discovery: &Discovery,
        out: &mut Vec<Effect>,
    ) {
        self.nonce += 1;
        let trial = Trial {
            path,
            nonce: self.nonce,
            version: discovery.version(),
            tries: 1,
        };
        self.send(now, trial, discovery, out);
    }

    fn send(&mut self, now: Time, trial: Trial, discovery: &Discovery, out: &mut Vec<Effect>) {
        let hello = ControllerHello {
            version: trial.version,
            nonce: trial.nonce,
            ports: discovery.port_states(),
        };
        out.push(Effect::Routed {
            hops: trial.path.hops.clone(),
            to: trial.path.controller,
            message: Message::ControllerHello(hello),
        });
        self.send_at = Some(now + self.timers.retry * u64::from(trial.tries));
        self.trial = Some(trial);
    }
}

/// Best first: the latest life of the controller, then the fewest hops, then the lowest port.
fn rank(path: &ControllerPath) -> (core::cmp::Reverse<(u64, u64)>, usize, PortNo) {
    let life = (path.controller.incarnation, path.controller.node.0);
    (
        core::cmp::Reverse(life),
        path.hops.len(),
        path.hops.first().copied().unwrap_or_default(),
    )
}

/// What neighbours tell, as seen from here, best first.
fn candidates(discovery: &Discovery) -> Vec<ControllerPath> {
    let mut candidates: Vec<ControllerPath> = discovery
        .neighbours()
        .filter_map(|(port, neighbour)| {
            let path = neighbour.path.as_ref()?;
            Some(ControllerPath {
                controller: path.controller,
                hops: path.hops.after(port),
            })
        })
        .collect();
    candidates.sort_by_key(rank);
    candidates
}
