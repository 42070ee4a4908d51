//! Vendors' DCBX from before the standard (version 1.01, "CEE").
//!
//! In short. *Control*: each end numbers its changes and acknowledges the peer's last number. It
//! advertises no further change before the last one is acknowledged, and acknowledges every new
//! number from the peer at once. *Feature*: each end advertises the configuration that it wants,
//! whether it is willing to follow the peer instead, and whether the two are incompatible. A
//! willing end follows one that is not willing. If both ends are willing, or neither is, they must
//! want compatible configurations. Otherwise the feature is in error and off.
//!
//! Both ends use version 0, so every version is supported.

use super::applications::applications_of;
use super::{DcbxNote, IeeeConfig, Operational, Source};
use alloc::vec::Vec;
use axon_wire::dcbx::cee::{
    self as wire, CeeApplication, CeePfc, Control, Feature, FeatureHead, GROUP_STRICT, Groups,
};
use axon_wire::dcbx::ieee::{Ets, Tsa};
use axon_wire::{PrioritySet, TrafficClass};

/// Maximum number of application priorities that fit into the TLV together with the other parts.
/// Further ones are not sent.
pub const APPLICATIONS_MAX: usize = 77;

/// Configuration of one CEE feature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CeeFeature<T> {
    /// True if the feature is sent at all.
    pub advertised: bool,
    /// True if the feature is enabled.
    pub enabled: bool,
    /// True if the port follows the peer's configuration instead.
    pub willing: bool,
    /// The configuration that the port wants.
    pub desired: T,
}

/// CEE configuration of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CeeConfig {
    /// Priority groups and their shares of the link.
    pub groups: CeeFeature<Groups>,
    /// Priorities with PFC.
    pub pfc: CeeFeature<CeePfc>,
    /// Application priorities.
    pub applications: CeeFeature<Vec<CeeApplication>>,
    /// True if two ends that are both willing, or both not willing, must want the same groups. If
    /// false (the default), any two configurations are compatible. Sources differ on this.
    pub groups_must_match: bool,
}

/// The state of one feature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureState<T> {
    /// The configuration in force.
    pub config: T,
    /// The end that the configuration comes from.
    pub from: Source,
    /// True if the feature is on (the standard's OperMode).
    pub mode: bool,
    /// True if the two ends are incompatible, or the peer does not send the feature.
    pub error: bool,
}

/// The state machine of one feature.
#[derive(Clone, Debug, Default)]
struct Machine<T> {
    state: FeatureState<T>,
    /// Last sent values; `None` if none have been sent.
    sent: Option<Sent<T>>,
    /// Sequence number of the last sent values.
    sequence: u32,
    /// True if the state is derived from the current peer.
    decided: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent<T> {
    head: FeatureHead,
    desired: T,
}

/// Input to a feature's state machine in addition to its own configuration.
#[derive(Clone, Copy)]
struct Situation {
    /// True if there is exactly one peer.
    peer: bool,
    /// True if there was a peer before.
    had_peer: bool,
    /// Sequence number of our last change.
    sequence: u32,
    /// Last of our sequence numbers that the peer has acknowledged.
    acknowledged: u32,
}

impl<T: Clone + Default + PartialEq> Machine<T> {
    /// Returns the values that the port would send now, or `None` if the feature is not advertised.
    fn to_send(&self, own: &CeeFeature<T>) -> Option<Sent<T>> {
        let CeeFeature { advertised, enabled, willing, ref desired } = *own;
        let head = FeatureHead { enabled, willing, error: self.state.error, ..Default::default() };
        advertised.then(|| Sent { head, desired: desired.clone() })
    }

    /// Returns whether the peer has acknowledged the values that the port would send now. It has if
    /// its last acknowledged number lies between the number of that change and our last number.
    /// Numbers may wrap.
    fn is_synced(&self, own: &CeeFeature<T>, at: Situation) -> bool {
        let behind = |number: u32| at.sequence.wrapping_sub(number);
        !self.is_news(own) && behind(at.acknowledged) <= behind(self.sequence)
    }

    /// Runs the machine once, with the tests in the order given by the specification.
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
            // The peer may not yet have answered our last change.
            return;
        }
        self.decided = at.peer;
        self.state = match peer {
            _ if !own.advertised => local(own.enabled, false),
            _ if !at.peer => local(false, at.had_peer),
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

    /// Records the values sent under number `sequence`, if they are new.
    fn advertise(&mut self, own: &CeeFeature<T>, sequence: u32) {
        if self.is_news(own) {
            (self.sent, self.sequence) = (self.to_send(own), sequence);
        }
    }

    fn is_news(&self, own: &CeeFeature<T>) -> bool {
        self.sent != self.to_send(own)
    }
}

/// CEE's DCBX on one port.
#[derive(Clone, Debug, Default)]
pub struct Cee {
    /// Sequence number of our last change.
    sequence: u32,
    /// Last of our sequence numbers that the peer has acknowledged.
    acknowledged: u32,
    /// Last sequence number received from the peer.
    heard: u32,
    had_peer: bool,
    groups: Machine<Groups>,
    pfc: Machine<CeePfc>,
    applications: Machine<Vec<CeeApplication>>,
}

/// Returns whether the entries for the same application name the same priorities.
fn applications_fit(own: &[CeeApplication], theirs: &[CeeApplication]) -> bool {
    let same = |a: &&CeeApplication, b: &&CeeApplication| {
        (a.protocol, a.selector) == (b.protocol, b.selector) && a.priorities != b.priorities
    };
    !own.iter().any(|a| theirs.iter().any(|b| same(&a, &b)))
}

impl Cee {
    /// Processes the last TLV from the only peer. `peer` is `None` without a peer, or with several.
    pub(crate) fn update(&mut self, config: &CeeConfig, peer: Option<&wire::Cee>) {
        match peer {
            Some(peer) => {
                self.had_peer = true;
                self.acknowledged = peer.control.acknowledged;
                self.heard = peer.control.sequence;
            }
            // A later peer has not seen our numbers.
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
            had_peer: self.had_peer,
            sequence: self.sequence,
            acknowledged: self.acknowledged,
        };
        // PFC is processed before the groups.
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

    /// Returns the TLV to send. It contains the parts as last advertised, and acknowledges the
    /// peer's last number.
    pub(crate) fn to_send(&self) -> wire::Cee {
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

    /// Returns whether the PFC state is derived from the current peer, which requires its
    /// acknowledgement.
    pub(crate) const fn has_decided_pfc(&self) -> bool {
        self.pfc.decided
    }

    /// Returns the state of the priority groups.
    #[cfg(test)]
    pub(crate) const fn groups(&self) -> &FeatureState<Groups> {
        &self.groups.state
    }

    /// Returns the state of PFC.
    #[cfg(test)]
    pub(crate) const fn pfc(&self) -> &FeatureState<CeePfc> {
        &self.pfc.state
    }

    /// Returns the state of the application priorities.
    #[cfg(test)]
    pub(crate) const fn applications(&self) -> &FeatureState<Vec<CeeApplication>> {
        &self.applications.state
    }

    /// Returns the operational state in the standard's terms. `own` is the port's configuration. If
    /// PFC is in error, it is off. The port keeps its own ETS table if its own groups apply, or if
    /// the peer's groups cannot be expressed as traffic classes.
    pub(crate) fn operational(&self, own: &IeeeConfig, notes: &mut Vec<DcbxNote>) -> Operational {
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
            Some(&self.applications.state).filter(|state| state.mode && state.from == Source::Peer);
        // The port's own table may express more than groups can.
        let theirs = Some(&groups.config).filter(|_| groups.from == Source::Peer).and_then(ets_of);
        Operational {
            ets: theirs.unwrap_or(own.ets),
            ets_from: if theirs.is_some() { Source::Peer } else { Source::Local },
            pfc: if pfc.mode { pfc.config.enabled } else { PrioritySet::EMPTY },
            pfc_from: pfc.from,
            applications: own.applications.clone(),
            peer_applications: applications
                .map_or(Vec::new(), |state| applications_of(&state.config)),
        }
    }
}

/// Converts priority groups to an ETS table. Each group that has priorities becomes a traffic class
/// with the group's share, in ascending order, and the strict group becomes the class above them.
/// Returns `None` if a reserved group is used or the shares do not sum to 100.
pub(crate) fn ets_of(groups: &Groups) -> Option<Ets> {
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
