//! DCBX as vendors had it before the standard (version 1.01, "CEE").
//!
//! In plain English. *Control*: each end numbers its changes and says which of the other's it has
//! heard of. It makes no further change known before the last one was heard of, and answers every
//! new number of the peer at once. *Feature*: each end says what it wants, whether it is willing
//! to do what the other wants instead, and whether the two do not fit. The willing one follows
//! the other; two of a kind must want compatible things, or else the feature is in error and off.
//!
//! The versions are 0 at both ends, so there is none that we cannot speak.

use super::applications::applications_of;
use super::{DcbxNote, IeeeConfig, Operational, Source};
use alloc::vec::Vec;
use axon_wire::dcbx::cee::{
    self as wire, CeeApplication, CeePfc, Control, Feature, FeatureHead, GROUP_STRICT, Groups,
};
use axon_wire::dcbx::ieee::{Ets, Tsa};
use axon_wire::{PrioritySet, TrafficClass};

/// How many application priorities fit into the TLV beside the other parts; further ones are not
/// sent.
pub const APPLICATIONS_MAX: usize = 77;

/// What a port wants of one feature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CeeFeature<T> {
    /// Whether it speaks of it at all.
    pub advertised: bool,
    /// Whether it wants it.
    pub enabled: bool,
    /// Whether it does what the peer wants instead.
    pub willing: bool,
    /// What it wants.
    pub desired: T,
}

/// What a port wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CeeConfig {
    /// Shares of the link.
    pub groups: CeeFeature<Groups>,
    /// Pausing.
    pub pfc: CeeFeature<CeePfc>,
    /// Application priorities.
    pub applications: CeeFeature<Vec<CeeApplication>>,
    /// Whether two ends that are both willing, or both not, must want the same groups. By default
    /// any two fit; sources differ.
    pub groups_must_match: bool,
}

/// Where the machine of one feature stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureState<T> {
    /// What is in force.
    pub config: T,
    /// Who says so.
    pub from: Source,
    /// Whether the two ends agree that it works.
    pub mode: bool,
    /// Whether they have found that they do not fit, or that one is missing.
    pub error: bool,
}

/// The machine of one feature: its state, and what of it was made known under which number.
#[derive(Clone, Debug, Default)]
struct Machine<T> {
    state: FeatureState<T>,
    /// What was last made known; `None` before the first time.
    sent: Option<Sent<T>>,
    /// Under which number.
    sequence: u32,
    /// The state is by what this peer says, or does not.
    decided: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent<T> {
    head: FeatureHead,
    desired: T,
}

/// All that a feature's machine looks at besides its own configuration.
#[derive(Clone, Copy)]
struct Situation {
    /// There is a peer, and only one.
    peer: bool,
    /// There was one before.
    heard: bool,
    /// The number of our last change.
    sequence: u32,
    /// The last of those that the peer has heard of.
    acknowledged: u32,
}

impl<T: Clone + Default + PartialEq> Machine<T> {
    /// What we would say now; `None` is nothing.
    fn saying(&self, own: &CeeFeature<T>) -> Option<Sent<T>> {
        let CeeFeature { advertised, enabled, willing, ref desired } = *own;
        let head = FeatureHead { enabled, willing, error: self.state.error, ..Default::default() };
        advertised.then(|| Sent { head, desired: desired.clone() })
    }

    /// Whether the peer has heard what we would say now: of our numbers it has heard of one that
    /// lies between the one we said it under and the last. Numbers may wrap.
    fn is_synced(&self, own: &CeeFeature<T>, at: Situation) -> bool {
        let behind = |number: u32| at.sequence.wrapping_sub(number);
        !self.is_news(own) && behind(at.acknowledged) <= behind(self.sequence)
    }

    /// One run, with the tests in their order.
    fn run(
        &mut self,
        own: &CeeFeature<T>,
        peer: Option<(&FeatureHead, &T)>,
        at: Situation,
        fits: impl Fn(&T, &T) -> bool,
    ) {
        let local = |mode, error| FeatureState {
            config: own.desired.clone(),
            from: Source::Local,
            mode,
            error,
        };
        let waits = own.advertised && at.peer && self.sent.is_some() && !self.is_synced(own, at);
        if waits && peer.is_some() {
            // What the peer says may not be its answer to what we say yet.
            return;
        }
        self.decided = at.peer;
        self.state = match peer {
            _ if !own.advertised => local(own.enabled, false),
            _ if !at.peer => local(false, at.heard),
            None => local(false, true),
            Some((head, _)) if !own.enabled || !head.enabled => local(false, false),
            Some((head, theirs)) if own.willing && !head.willing => FeatureState {
                config: theirs.clone(),
                from: Source::Peer,
                mode: !head.error,
                error: false,
            },
            Some((head, _)) if !own.willing && head.willing => local(true, false),
            Some((_, theirs)) => {
                let fits = fits(&own.desired, theirs);
                local(fits, !fits)
            }
        };
    }

    /// Puts what we say now under number `sequence`, if it is news.
    fn advertise(&mut self, own: &CeeFeature<T>, sequence: u32) {
        if self.is_news(own) {
            (self.sent, self.sequence) = (self.saying(own), sequence);
        }
    }

    fn is_news(&self, own: &CeeFeature<T>) -> bool {
        self.sent != self.saying(own)
    }
}

/// CEE's DCBX on one port.
#[derive(Clone, Debug, Default)]
pub struct Cee {
    /// The number of our last change.
    sequence: u32,
    /// The last of ours that the peer has heard of.
    acknowledged: u32,
    /// The peer's last that we have heard of.
    heard: u32,
    had_peer: bool,
    groups: Machine<Groups>,
    pfc: Machine<CeePfc>,
    applications: Machine<Vec<CeeApplication>>,
}

/// Whether the entries for the same application name the same priorities.
fn applications_fit(own: &[CeeApplication], theirs: &[CeeApplication]) -> bool {
    let same = |a: &&CeeApplication, b: &&CeeApplication| {
        (a.protocol, a.selector) == (b.protocol, b.selector) && a.priorities != b.priorities
    };
    !own.iter().any(|a| theirs.iter().any(|b| same(&a, &b)))
}

impl Cee {
    /// Takes in what the only peer said last; `None` without a peer, or with several.
    pub fn update(&mut self, config: &CeeConfig, peer: Option<&wire::Cee>) {
        match peer {
            Some(peer) => {
                self.had_peer = true;
                self.acknowledged = peer.control.acknowledged;
                self.heard = peer.control.sequence;
            }
            // The next peer knows nothing of our numbers.
            None => {
                let had_peer = self.had_peer;
                *self = Cee { had_peer, ..Cee::default() };
            }
        }
        self.run(config, peer);
        if self.sequence == self.acknowledged && self.has_news(config) {
            self.sequence = self.sequence.wrapping_add(1);
            self.pfc.advertise(&config.pfc, self.sequence);
            self.groups.advertise(&config.groups, self.sequence);
            self.applications.advertise(&config.applications, self.sequence);
        }
    }

    fn has_news(&self, config: &CeeConfig) -> bool {
        self.pfc.is_news(&config.pfc)
            || self.groups.is_news(&config.groups)
            || self.applications.is_news(&config.applications)
    }

    fn run(&mut self, config: &CeeConfig, peer: Option<&wire::Cee>) {
        let at = Situation {
            peer: peer.is_some(),
            heard: self.had_peer,
            sequence: self.sequence,
            acknowledged: self.acknowledged,
        };
        // PFC goes before the groups.
        let features = || peer.iter().flat_map(|peer| &peer.features);
        let pfc = features().find_map(|feature| match feature {
            Feature::Pfc(head, pfc) => Some((head, pfc)),
            _ => None,
        });
        self.pfc.run(&config.pfc, pfc, at, |own, theirs| own.enabled == theirs.enabled);
        let groups = features().find_map(|feature| match feature {
            Feature::Groups(head, groups) => Some((head, groups)),
            _ => None,
        });
        self.groups.run(&config.groups, groups, at, |own, theirs| {
            !config.groups_must_match
                || (own.group_of, own.percent) == (theirs.group_of, theirs.percent)
        });
        let applications = features().find_map(|feature| match feature {
            Feature::Application(head, list) => Some((head, list)),
            _ => None,
        });
        self.applications.run(&config.applications, applications, at, |own, theirs| {
            applications_fit(own, theirs)
        });
    }

    /// What to send: the parts as they were last made known, and which of the peer's changes we
    /// have heard of.
    pub fn to_send(&self) -> wire::Cee {
        let mut features = Vec::new();
        if let Some(Sent { head, desired }) = self.groups.sent.clone() {
            features.push(Feature::Groups(head, desired));
        }
        if let Some(Sent { head, desired }) = self.pfc.sent.clone() {
            features.push(Feature::Pfc(head, desired));
        }
        if let Some(Sent { head, mut desired }) = self.applications.sent.clone() {
            desired.truncate(APPLICATIONS_MAX);
            features.push(Feature::Application(head, desired));
        }
        let (sequence, acknowledged) = (self.sequence, self.heard);
        let control = Control { sequence, acknowledged, ..Control::default() };
        wire::Cee { control, features }
    }

    /// Whether the state of PFC is by what the present peer says: not before it has heard of us.
    pub const fn has_decided_pfc(&self) -> bool {
        self.pfc.decided
    }

    /// The state of the priority groups.
    pub const fn groups(&self) -> &FeatureState<Groups> {
        &self.groups.state
    }

    /// The state of PFC.
    pub const fn pfc(&self) -> &FeatureState<CeePfc> {
        &self.pfc.state
    }

    /// The state of the application priorities.
    pub const fn applications(&self) -> &FeatureState<Vec<CeeApplication>> {
        &self.applications.state
    }

    /// What is in force, in the standard's terms, in which `own` is what the port is set to. PFC
    /// that does not work is off; the port's own groups, and those of the peer that cannot be told
    /// as traffic classes, leave its own table.
    pub fn operational(&self, own: &IeeeConfig, notes: &mut Vec<DcbxNote>) -> Operational {
        let errors = [
            (self.groups.state.error, wire::PART_GROUPS),
            (self.pfc.state.error, wire::PART_PFC),
            (self.applications.state.error, wire::PART_APPLICATION),
        ];
        notes.extend(
            errors
                .iter()
                .filter(|(error, _)| *error)
                .map(|&(_, part)| DcbxNote::FeatureError(part)),
        );
        let (groups, pfc) = (&self.groups.state, &self.pfc.state);
        let applications =
            Some(&self.applications.state).filter(|told| told.mode && told.from == Source::Peer);
        // What groups can tell of the port's own table may be less than what it says.
        let theirs = Some(&groups.config).filter(|_| groups.from == Source::Peer).and_then(ets_of);
        Operational {
            ets: theirs.unwrap_or(own.ets),
            ets_from: if theirs.is_some() { Source::Peer } else { Source::Local },
            pfc: if pfc.mode { pfc.config.enabled } else { PrioritySet::EMPTY },
            pfc_from: pfc.from,
            applications: own.applications.clone(),
            peer_applications: applications
                .map_or(Vec::new(), |told| applications_of(&told.config)),
        }
    }
}

/// Priority groups as a scheduling table: each group that has priorities becomes a traffic class
/// with its share, in ascending order, and the strict group the class above them. `None` if a
/// reserved group is used or the shares do not sum to 100.
pub fn ets_of(groups: &Groups) -> Option<Ets> {
    let mut used: Vec<u8> = groups.group_of.to_vec();
    used.sort_unstable();
    used.dedup();
    let mut ets = Ets::default();
    for (&group, class) in used.iter().zip(TrafficClass::ALL) {
        if group != GROUP_STRICT {
            ets.percent[class.index()] = *groups.percent.get(usize::from(group))?;
            ets.tsa[class.index()] = Tsa::ETS;
        }
        for (priority, own) in groups.group_of.iter().enumerate() {
            if *own == group {
                ets.class_of[priority] = class;
            }
        }
    }
    ets.check(8, false).is_ok().then_some(ets)
}
