//! A host that says by LLDP that it has reaction points, so that its switch knows that it belongs
//! to the congestion notification domain (IEEE 802.1Q clause 33.4). It says nothing of DCBX.
//!
//! In plain English: it names its priorities when the carrier comes. Once its switch has named
//! them too, it says that it is ready, and from then on gets CN-TAGs.

use axon_control::dcbx::congestion;
use axon_control::lldp::{LldpAgent, LldpConfig, LldpIdentity, LldpWish};
use axon_plane::qcn::{DefenceConfig, Defences};
use axon_wire::lldp::Id;
use axon_wire::priority::PrioritySet;
use axon_wire::{FrameBuf, MacAddr, Time};
use std::collections::VecDeque;

/// What speaks.
#[derive(Debug)]
pub(super) struct Voice {
    agent: LldpAgent,
    defences: Defences,
    /// What is to be sent, oldest first.
    said: VecDeque<FrameBuf>,
}

impl Voice {
    /// Of a host of this address with reaction points for `cnpvs`.
    ///
    /// # Panics
    /// If all priorities are in the domain.
    pub(super) fn new(lldp: LldpConfig, mac: MacAddr, cnpvs: PrioritySet) -> Voice {
        let (chassis, port) = (Id::chassis_of_mac(mac), Id::port_of_name("p0"));
        let agent = LldpAgent::new(lldp, LldpIdentity { mac, chassis, port });
        let config = DefenceConfig { cnpvs, ..DefenceConfig::default() };
        let defences = Defences::new(config).expect("a domain with an outside");
        let mut voice = Voice { agent, defences, said: VecDeque::new() };
        voice.agent.set_local(Time::ZERO, vec![voice.defences.says().emit()], &mut Vec::new());
        voice
    }

    /// The carrier has come or gone.
    pub(super) fn link(&mut self, now: Time, up: bool) {
        self.said.clear();
        self.with(now, |agent, wishes| agent.link(now, up, wishes));
    }

    /// A frame with LLDP's EtherType has come.
    pub(super) fn hear(&mut self, now: Time, frame: &[u8]) {
        self.with(now, |agent, wishes| agent.receive(now, frame, wishes));
    }

    /// Says what is due. Early and repeated calls are harmless.
    pub(super) fn speak(&mut self, now: Time) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.with(now, |agent, wishes| agent.timeout(now, wishes));
        }
    }

    /// When to call [`Voice::speak`] next.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.agent.deadline()
    }

    /// Whether something is to be sent.
    pub(super) fn has_said(&self) -> bool {
        !self.said.is_empty()
    }

    /// What is to be sent next, if anything.
    pub(super) fn next(&mut self) -> Option<FrameBuf> {
        self.said.pop_front()
    }

    fn with(&mut self, now: Time, work: impl FnOnce(&mut LldpAgent, &mut Vec<LldpWish>)) {
        let mut wishes = Vec::new();
        work(&mut self.agent, &mut wishes);
        if wishes.contains(&LldpWish::Neighbours) {
            let told = congestion::said(self.agent.neighbours(), &mut Vec::new());
            self.defences.neighbours(&told);
            self.defences.in_force();
            self.agent.set_local(now, vec![self.defences.says().emit()], &mut wishes);
        }
        for wish in wishes {
            if let LldpWish::Send(frame) = wish {
                self.said.push_back(FrameBuf::new(&frame));
            }
        }
    }
}
