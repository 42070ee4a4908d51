//! DCBX as in IEEE 802.1Q clause 38: determines the operational state and the TLVs to send from the
//! configuration and the received TLVs.

use super::{DcbxNote, Operational, Source};
use crate::lldp::Neighbour;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_wire::dcbx::ieee::{
    self as wire, Application, Ets, EtsConfiguration, EtsRecommendation, PfcConfiguration,
};
use axon_wire::dcbx::{DcbxError, Dialect, OUI_IEEE};
use axon_wire::lldp::Tlv;
use axon_wire::{MacAddr, PrioritySet};

/// Selects which of two willing ports keeps its own PFC. Both ends must use the same rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TieRule {
    /// The port with the numerically lower MAC address (the standard).
    #[default]
    LowerKeeps,
    /// The port with the higher MAC address, as lldpad does.
    HigherKeeps,
}

/// Handling of TLVs of the same kind that occur more than once in one LLDPDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// No TLV of that kind is parsed.
    #[default]
    IgnoreKind,
    /// The peer's DCBX is ignored.
    IgnorePeer,
}

/// Meaning of a PFC capability of 0 traffic classes, which sources interpret differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ZeroClasses {
    /// PFC for no traffic class.
    #[default]
    None,
    /// PFC for all eight classes, just as 0 means eight classes in the ETS TLV.
    All,
}

/// Configuration of a port for the standard's DCBX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IeeeConfig {
    /// True if the port applies the ETS table that the peer recommends.
    pub ets_willing: bool,
    /// True if the port has the credit-based shaper.
    pub credit_based: bool,
    /// Number of traffic classes of the port: 1 to 8.
    pub classes_max: u8,
    /// The ETS table that is in force without a recommendation.
    pub ets: Ets,
    /// The ETS table to recommend to the peer, if any.
    pub recommendation: Option<Ets>,
    /// True if the port follows the peer's PFC.
    pub pfc_willing: bool,
    /// MBC, see [`PfcConfiguration::macsec_bypass`].
    pub macsec_bypass: bool,
    /// Maximum number of traffic classes that may have PFC at the same time: 0 to 15.
    pub pfc_classes_max: u8,
    /// Meaning of 0 in `pfc_classes_max`.
    pub pfc_classes_zero: ZeroClasses,
    /// Priorities with PFC unless the port follows the peer.
    pub pfc: PrioritySet,
    /// The application priorities to advertise.
    pub applications: Vec<Application>,
    /// Rule for two willing ends, which selects the one that keeps its own PFC.
    pub tie: TieRule,
    /// Handling of repeated TLVs.
    pub duplicates: Duplicates,
}

impl Default for IeeeConfig {
    /// Returns a configuration that is willing for ETS and PFC. Without a peer, all priorities are
    /// in one strict class and have no PFC.
    fn default() -> IeeeConfig {
        IeeeConfig {
            ets_willing: true,
            credit_based: false,
            classes_max: 8,
            ets: Ets::default(),
            recommendation: None,
            pfc_willing: true,
            macsec_bypass: false,
            pfc_classes_max: 8,
            pfc_classes_zero: ZeroClasses::default(),
            pfc: PrioritySet::EMPTY,
            applications: Vec::new(),
            tie: TieRule::default(),
            duplicates: Duplicates::default(),
        }
    }
}

/// Values advertised by the only peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// The source address of its frames.
    pub mac: MacAddr,
    /// Its ETS table in force.
    pub configuration: Option<EtsConfiguration>,
    /// The ETS table that it recommends.
    pub recommendation: Option<Ets>,
    /// Its PFC configuration.
    pub pfc: Option<PfcConfiguration>,
    /// Its application priorities.
    pub applications: Vec<Application>,
}

/// Returns the only neighbour that sends TLVs of `dialect`. If there are several, returns `None`
/// and adds a note.
pub(crate) fn only_peer<'a>(
    neighbours: &'a [Neighbour],
    dialect: Dialect,
    notes: &mut Vec<DcbxNote>,
) -> Option<&'a Neighbour> {
    let sends = |one: &&Neighbour| one.optional.iter().any(|tlv| Dialect::of(tlv) == Some(dialect));
    let mut peers = neighbours.iter().filter(sends);
    match (peers.next(), peers.count()) {
        (peer, 0) => peer,
        (_, others) => {
            notes.push(DcbxNote::SeveralPeers(1 + others));
            None
        }
    }
}

impl Remote {
    /// Parses the TLVs from `peer`. A TLV that cannot be parsed or is repeated counts as absent.
    pub(crate) fn read(
        peer: &Neighbour,
        duplicates: Duplicates,
        notes: &mut Vec<DcbxNote>,
    ) -> Remote {
        let empty = Remote { mac: peer.mac, ..Remote::default() };
        let ours = |tlv: &'_ Tlv| match tlv.organisation() {
            Some((OUI_IEEE, subtype, _))
                if (wire::SUBTYPE_ETS_CONFIGURATION..=wire::SUBTYPE_APPLICATION)
                    .contains(&subtype) =>
            {
                Some(subtype)
            }
            _ => None,
        };
        let subtypes: Vec<u8> = peer.optional.iter().filter_map(ours).collect();
        let mut seen = BTreeSet::new();
        let repeated: BTreeSet<u8> =
            subtypes.iter().copied().filter(|&subtype| !seen.insert(subtype)).collect();
        notes.extend(repeated.iter().map(|&subtype| DcbxNote::Repeated { subtype }));
        if !repeated.is_empty() && duplicates == Duplicates::IgnorePeer {
            return empty;
        }
        let mut remote = empty;
        for tlv in &peer.optional {
            let Some((OUI_IEEE, subtype, info)) = tlv.organisation() else { continue };
            if repeated.contains(&subtype) {
                continue;
            }
            if let Err(error) = remote.take(subtype, info) {
                notes.push(DcbxNote::Unreadable { subtype, error });
            }
        }
        remote
    }

    fn take(&mut self, subtype: u8, info: &[u8]) -> Result<(), DcbxError> {
        match subtype {
            wire::SUBTYPE_ETS_CONFIGURATION => {
                self.configuration = Some(EtsConfiguration::parse(info)?);
            }
            wire::SUBTYPE_ETS_RECOMMENDATION => {
                self.recommendation = Some(EtsRecommendation::parse(info)?.0);
            }
            wire::SUBTYPE_PFC => self.pfc = Some(PfcConfiguration::parse(info)?),
            wire::SUBTYPE_APPLICATION => self.applications = wire::parse_applications(info)?,
            _ => {}
        }
        Ok(())
    }
}

impl IeeeConfig {
    /// Returns the operational state of the port with MAC address `own`. `remote` is the only peer,
    /// if there is one.
    pub(crate) fn operational(
        &self,
        own: MacAddr,
        remote: Option<&Remote>,
        notes: &mut Vec<DcbxNote>,
    ) -> Operational {
        let (ets, ets_from) = self.asymmetric(remote, notes);
        let (pfc, pfc_from) = self.symmetric(own, &ets, remote, notes);
        Operational {
            ets,
            ets_from,
            pfc,
            pfc_from,
            applications: self.applications.clone(),
            peer_applications: remote.map_or(Vec::new(), |remote| remote.applications.clone()),
        }
    }

    /// Resolves ETS. A willing port applies the table that the peer *recommends*, if it can.
    fn asymmetric(&self, remote: Option<&Remote>, notes: &mut Vec<DcbxNote>) -> (Ets, Source) {
        let recommended = remote.and_then(|remote| remote.recommendation);
        match recommended {
            Some(ets) if self.ets_willing => match ets.check(self.classes_max, self.credit_based) {
                Ok(()) => (ets, Source::Peer),
                Err(problem) => {
                    notes.push(DcbxNote::Recommendation(problem));
                    (self.ets, Source::Local)
                }
            },
            _ => (self.ets, Source::Local),
        }
    }

    /// Resolves PFC. A willing port follows one that is not. Between two willing ports, the tie
    /// rule decides.
    fn symmetric(
        &self,
        own: MacAddr,
        ets: &Ets,
        remote: Option<&Remote>,
        notes: &mut Vec<DcbxNote>,
    ) -> (PrioritySet, Source) {
        let local = (self.pfc, Source::Local);
        let Some((mac, peer)) = remote.and_then(|remote| Some((remote.mac, remote.pfc?))) else {
            return local;
        };
        let gives_way = match self.tie {
            TieRule::LowerKeeps => own > mac,
            TieRule::HigherKeeps => own < mac,
        };
        if self.pfc_willing && (!peer.willing || gives_way) {
            let classes: BTreeSet<_> =
                peer.enabled.iter().map(|priority| ets.class_of[priority.index()]).collect();
            let all = self.pfc_classes_max == 0 && self.pfc_classes_zero == ZeroClasses::All;
            if all || classes.len() <= usize::from(self.pfc_classes_max) {
                return (peer.enabled, Source::Peer);
            }
            notes.push(DcbxNote::PfcClasses(self.pfc_classes_max));
        } else if !self.pfc_willing && !peer.willing && peer.enabled != self.pfc {
            notes.push(DcbxNote::PfcDiffers(peer.enabled));
        }
        local
    }

    /// Returns the TLVs to send while `operational` is in force. They contain this state, not the
    /// configuration.
    pub(crate) fn tlvs(&self, operational: &Operational) -> Vec<Tlv> {
        let configuration = EtsConfiguration {
            willing: self.ets_willing,
            credit_based: self.credit_based,
            classes_max: self.classes_max,
            ets: operational.ets,
        };
        let pfc = PfcConfiguration {
            willing: self.pfc_willing,
            macsec_bypass: self.macsec_bypass,
            classes_max: self.pfc_classes_max,
            enabled: operational.pfc,
        };
        let mut tlvs = Vec::from([configuration.emit()]);
        tlvs.extend(self.recommendation.map(|ets| EtsRecommendation(ets).emit()));
        tlvs.push(pfc.emit());
        if !self.applications.is_empty() {
            tlvs.push(wire::emit_applications(&self.applications));
        }
        tlvs
    }
}
