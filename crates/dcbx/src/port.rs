//! DCBX on top of the LLDP agent of one port. Its inputs are frames and time. Its outputs are
//! frames, the operational state and notes.

use super::ieee::only_peer;
use super::{Cee, CeeConfig, DcbxNote, IeeeConfig, Operational, Remote, congestion};
use crate::lldp::{LldpAgent, LldpRequest};
use alloc::vec::Vec;
use axon_plane::qcn::{DefenceConfig, Defences, Treatment};
use axon_wire::Time;
use axon_wire::dcbx::{self as wire, Dialect};
use axon_wire::lldp::Tlv;
use axon_wire::priority::{PRIORITIES, Priority};

/// Form of DCBX that a port uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The standard (IEEE 802.1Q clause 38).
    #[default]
    Ieee,
    /// CEE, the earlier form of vendors.
    Cee,
    /// The standard, or, if there are peers and none of them sends the standard's form, CEE until
    /// the link goes down.
    Auto,
}

/// The DCBX configuration of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DcbxConfig {
    /// The form of DCBX to use.
    pub mode: Mode,
    /// Configuration for the standard's form. It is in force when there is no peer.
    pub ieee: IeeeConfig,
    /// The configuration for CEE.
    pub cee: CeeConfig,
    /// Defence of the congestion notification domain, if there is one.
    pub congestion: Option<DefenceConfig>,
}

/// An event from a port to its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DcbEvent {
    /// Send this frame, untagged, ahead of data.
    Send(Vec<u8>),
    /// The operational state has changed. Apply [`DcbPort::operational`] and
    /// `DcbPort::treatments` before the next frame is handled.
    Operational,
    /// This note has just begun to apply.
    Note(DcbxNote),
}

/// DCBX and LLDP at one port.
#[derive(Clone, Debug)]
pub struct DcbPort {
    agent: LldpAgent,
    config: DcbxConfig,
    /// TLVs sent before the DCBX TLVs.
    others: Vec<Tlv>,
    speaking: Dialect,
    cee: Cee,
    operational: Operational,
    remote: Option<Remote>,
    defences: Option<Defences>,
    /// Last treatment of frames, by priority.
    treated: Option<[Treatment; PRIORITIES]>,
    /// The notes that apply now.
    notes: Vec<DcbxNote>,
}

impl DcbPort {
    /// Creates a port whose link is down. `others` are sent before the DCBX TLVs.
    pub fn new(agent: LldpAgent, config: DcbxConfig, others: Vec<Tlv>) -> DcbPort {
        let speaking = dialect(config.mode);
        let defences = defences(&config);
        let mut port = DcbPort {
            agent,
            config,
            others,
            speaking,
            cee: Cee::default(),
            operational: Operational::default(),
            remote: None,
            defences,
            treated: None,
            notes: Vec::new(),
        };
        port.evaluate(Time::ZERO, &mut Vec::new(), &mut Vec::new());
        port
    }

    /// Returns the operational state.
    pub const fn operational(&self) -> &Operational {
        &self.operational
    }

    /// Returns the values that the only peer advertises in the standard's form.
    pub(crate) const fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    /// Returns the defence of the congestion notification domain, or `None` if there is no domain,
    /// or its configuration fails [the check](DefenceConfig::check).
    pub const fn defences(&self) -> Option<&Defences> {
        self.defences.as_ref()
    }

    /// Returns the treatment of frames by priority, if there is a domain to defend.
    pub(crate) fn treatments(&self) -> Option<[Treatment; PRIORITIES]> {
        let defences = self.defences.as_ref()?;
        Some(Priority::ALL.map(|priority| defences.treatment(priority)))
    }

    /// Returns the CEE state machines.
    #[cfg(test)]
    pub(crate) const fn cee(&self) -> &Cee {
        &self.cee
    }

    /// Returns the form of DCBX in use.
    pub(crate) const fn speaking(&self) -> Dialect {
        self.speaking
    }

    /// Returns the notes that apply now.
    pub fn notes(&self) -> &[DcbxNote] {
        &self.notes
    }

    /// Returns the LLDP agent.
    pub const fn agent(&self) -> &LldpAgent {
        &self.agent
    }

    /// Processes a carrier change.
    pub fn link(&mut self, now: Time, up: bool, out: &mut Vec<DcbEvent>) {
        if !up {
            (self.cee, self.speaking) = (Cee::default(), dialect(self.config.mode));
        }
        let mut requests = Vec::new();
        self.agent.link(now, up, &mut requests);
        self.evaluate(now, &mut requests, out);
        self.absorb(now, requests, out);
    }

    /// Handles a frame with LLDP's EtherType.
    pub fn receive(&mut self, now: Time, frame: &[u8], out: &mut Vec<DcbEvent>) {
        let mut requests = Vec::new();
        self.agent.receive(now, frame, &mut requests);
        self.absorb(now, requests, out);
    }

    /// Processes due timers. Early and repeated calls are harmless.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<DcbEvent>) {
        let mut requests = Vec::new();
        self.agent.timeout(now, &mut requests);
        self.absorb(now, requests, out);
    }

    /// Changes the configuration. A change of mode resets the state.
    #[cfg(test)]
    pub(crate) fn configure(&mut self, now: Time, config: DcbxConfig, out: &mut Vec<DcbEvent>) {
        if config.mode != self.config.mode {
            (self.cee, self.speaking) = (Cee::default(), dialect(config.mode));
        }
        if config.congestion != self.config.congestion {
            self.defences = defences(&config);
        }
        self.config = config;
        let mut requests = Vec::new();
        self.evaluate(now, &mut requests, out);
        self.absorb(now, requests, out);
    }

    /// Returns the time of the next [`DcbPort::timeout`].
    pub fn deadline(&self) -> Option<Time> {
        self.agent.deadline()
    }

    /// Forwards frames and re-evaluates the state when neighbours have changed. This may lead to
    /// more frames, but the loop ends, because neighbours can only age.
    fn absorb(&mut self, now: Time, requests: Vec<LldpRequest>, out: &mut Vec<DcbEvent>) {
        let mut requests = requests;
        while !requests.is_empty() {
            let changed = requests.contains(&LldpRequest::Neighbours);
            for request in core::mem::take(&mut requests) {
                if let LldpRequest::Send(frame) = request {
                    out.push(DcbEvent::Send(frame));
                }
            }
            if changed {
                self.evaluate(now, &mut requests, out);
            }
        }
    }

    fn evaluate(&mut self, now: Time, requests: &mut Vec<LldpRequest>, out: &mut Vec<DcbEvent>) {
        let mut notes = Vec::new();
        self.choose(&mut notes);
        let mut tlvs = self.others.clone();
        let operational = match self.speaking {
            Dialect::Ieee => self.ieee(&mut tlvs, &mut notes),
            Dialect::Cee | Dialect::Cin => self.older(&mut tlvs, &mut notes),
        };
        self.defend(&mut tlvs, &mut notes);
        let treatments = self.treatments();
        let begun = notes.iter().filter(|note| !self.notes.contains(note)).cloned();
        out.extend(begun.map(DcbEvent::Note));
        self.notes = notes;
        if (&self.operational, self.treated) != (&operational, treatments) {
            (self.operational, self.treated) = (operational, treatments);
            out.push(DcbEvent::Operational);
        }
        self.agent.set_local(now, tlvs, requests);
    }

    /// Re-evaluates the defence and adds its TLV to `tlvs`.
    fn defend(&mut self, tlvs: &mut Vec<Tlv>, notes: &mut Vec<DcbxNote>) {
        let Some(defences) = &mut self.defences else { return };
        defences.neighbours(&congestion::advertised(self.agent.neighbours(), notes));
        // The node applies this before it handles another frame.
        defences.in_force();
        tlvs.push(defences.advertises().emit());
    }

    /// Chooses the form of DCBX from those that the neighbours send.
    fn choose(&mut self, notes: &mut Vec<DcbxNote>) {
        let received =
            self.agent.neighbours().iter().flat_map(|one| &one.optional).filter_map(Dialect::of);
        match received.max() {
            Some(Dialect::Cee) if self.config.mode == Mode::Auto => self.speaking = Dialect::Cee,
            Some(newest) if newest < self.speaking => notes.push(DcbxNote::Dialect(newest)),
            _ => {}
        }
    }

    fn ieee(&mut self, tlvs: &mut Vec<Tlv>, notes: &mut Vec<DcbxNote>) -> Operational {
        let config = &self.config.ieee;
        let peer = only_peer(self.agent.neighbours(), Dialect::Ieee, notes);
        self.remote = peer.map(|peer| Remote::read(peer, config.duplicates, notes));
        let own = self.agent.identity().mac;
        let operational = config.operational(own, self.remote.as_ref(), notes);
        tlvs.extend(config.tlvs(&operational));
        operational
    }

    fn older(&mut self, tlvs: &mut Vec<Tlv>, notes: &mut Vec<DcbxNote>) -> Operational {
        self.remote = None;
        let peer = only_peer(self.agent.neighbours(), Dialect::Cee, notes);
        let tlv = peer.and_then(|peer| {
            let mut tlvs = peer.optional.iter().filter_map(|tlv| match tlv.organisation() {
                Some((wire::OUI_BEFORE, wire::SUBTYPE_CEE, info)) => Some(info),
                _ => None,
            });
            let subtype = wire::SUBTYPE_CEE;
            let (first, again) = (tlvs.next()?, tlvs.next());
            if again.is_some() {
                notes.push(DcbxNote::Repeated { subtype });
                return None;
            }
            let read = wire::cee::Cee::parse(first);
            read.map_err(|error| notes.push(DcbxNote::Unreadable { subtype, error })).ok()
        });
        self.cee.update(&self.config.cee, tlv.as_ref());
        tlvs.extend(self.cee.to_send().emit());
        let mut operational = self.cee.operational(&self.config.ieee, notes);
        if !self.cee.has_decided_pfc() {
            // A peer can switch PFC off only after it has acknowledged us.
            operational.pfc = self.config.ieee.pfc;
        }
        operational
    }
}

/// Returns the defence of a port without a neighbour.
fn defences(config: &DcbxConfig) -> Option<Defences> {
    Defences::new(config.congestion?).ok()
}

const fn dialect(mode: Mode) -> Dialect {
    match mode {
        Mode::Ieee | Mode::Auto => Dialect::Ieee,
        Mode::Cee => Dialect::Cee,
    }
}
