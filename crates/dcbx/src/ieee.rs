//! The standard's DCBX: what is in force and what is sent, from what is configured and heard.

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

/// Which of two ports that are both willing keeps its own PFC. Both must hold the same rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TieRule {
    /// The one with the numerically lower MAC address: the standard's, as we know it.
    #[default]
    LowerKeeps,
    /// The one with the higher: what lldpad does.
    HigherKeeps,
}

/// What becomes of a kind of TLV that comes more than once in one LLDPDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// None of that kind is read.
    #[default]
    IgnoreKind,
    /// Nothing of that peer's DCBX is read.
    IgnorePeer,
}

/// For how many traffic classes a port has PFC that says "0" (the PFC cap); sources are not sure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ZeroClasses {
    /// For none.
    #[default]
    None,
    /// For all eight, as a zero means for the number of classes in the ETS TLV.
    All,
}

/// What a port is set to do and to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IeeeConfig {
    /// Whether it does what the peer recommends.
    pub ets_willing: bool,
    /// Whether it has the credit-based shaper.
    pub credit_based: bool,
    /// How many traffic classes it has: 1 to 8.
    pub classes_max: u8,
    /// How it schedules if nobody recommends anything.
    pub ets: Ets,
    /// What it recommends to the peer, if anything.
    pub recommendation: Option<Ets>,
    /// Whether it follows the peer's PFC.
    pub pfc_willing: bool,
    /// MBC, see [`PfcConfiguration::macsec_bypass`].
    pub macsec_bypass: bool,
    /// How many traffic classes may have PFC at a time: 0 to 15.
    pub pfc_classes_max: u8,
    /// What zero of them means.
    pub pfc_classes_zero: ZeroClasses,
    /// Which priorities have PFC if the peer is not followed.
    pub pfc: PrioritySet,
    /// Its application priorities.
    pub applications: Vec<Application>,
    /// Who gives way of two that are willing.
    pub tie: TieRule,
    /// What becomes of repeated TLVs.
    pub duplicates: Duplicates,
}

impl Default for IeeeConfig {
    /// Willing, and until somebody says otherwise all strict in one class, without PFC.
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

/// What the only peer says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// The source of its frames.
    pub mac: MacAddr,
    /// How it schedules.
    pub configuration: Option<EtsConfiguration>,
    /// What it recommends.
    pub recommendation: Option<Ets>,
    /// Its PFC.
    pub pfc: Option<PfcConfiguration>,
    /// Its application priorities.
    pub applications: Vec<Application>,
}

/// The only neighbour that speaks `dialect`; what is wrong if there are several.
pub fn only_peer<'a>(
    neighbours: &'a [Neighbour],
    dialect: Dialect,
    notes: &mut Vec<DcbxNote>,
) -> Option<&'a Neighbour> {
    let speaks =
        |one: &&Neighbour| one.optional.iter().any(|tlv| Dialect::of(tlv) == Some(dialect));
    let mut peers = neighbours.iter().filter(speaks);
    match (peers.next(), peers.count()) {
        (peer, 0) => peer,
        (_, others) => {
            notes.push(DcbxNote::SeveralPeers(1 + others));
            None
        }
    }
}

impl Remote {
    /// Reads what `peer` says. A TLV that cannot be read, or that comes twice, counts as absent.
    pub fn read(peer: &Neighbour, duplicates: Duplicates, notes: &mut Vec<DcbxNote>) -> Remote {
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
    /// What is in force at the port of address `own`, next to `remote` if there is one peer.
    pub fn operational(
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

    /// ETS: a willing port does what the peer *recommends*, if it can.
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

    /// PFC: a willing port follows one that is not; of two willing ones the tie rule says who.
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

    /// The TLVs to send while `operational` is in force: they say what *is*, not what was set.
    pub fn tlvs(&self, operational: &Operational) -> Vec<Tlv> {
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
