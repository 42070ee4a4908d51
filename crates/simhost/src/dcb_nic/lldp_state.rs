//! LLDP agent of a host with reaction points. It advertises them, so that the switch includes the
//! host in the congestion notification domain (IEEE 802.1Q clause 33.4). It does not advertise
//! DCBX.
//!
//! When carrier comes up, the agent advertises the host's priorities. Once the switch has
//! advertised the same, the agent advertises that the host is ready, and the switch then leaves
//! CN-TAGs on frames to the host.

use axon_dcbx::congestion;
use axon_dcbx::lldp::{LldpAgent, LldpConfig, LldpIdentity, LldpRequest};
use axon_plane::qcn::{DefenceConfig, Defences};
use axon_wire::lldp::Id;
use axon_wire::priority::PrioritySet;
use axon_wire::{FrameBuf, MacAddr, Time};
use std::collections::VecDeque;

/// State of the LLDP agent and the domain defence, and the frames to send.
#[derive(Debug)]
pub(super) struct LldpState {
    agent: LldpAgent,
    defences: Defences,
    /// Frames to send, oldest first.
    tx: VecDeque<FrameBuf>,
}

impl LldpState {
    /// Returns the agent of a host with the MAC `mac` and reaction points for the priorities
    /// `cnpvs`.
    ///
    /// # Panics
    /// If all priorities are in the domain.
    pub(super) fn new(lldp: LldpConfig, mac: MacAddr, cnpvs: PrioritySet) -> LldpState {
        let (chassis, port) = (Id::chassis_of_mac(mac), Id::port_of_name("p0"));
        let agent = LldpAgent::new(lldp, LldpIdentity { mac, chassis, port });
        let config = DefenceConfig { cnpvs, ..DefenceConfig::default() };
        let defences = Defences::new(config).expect("a domain with an outside");
        let mut state = LldpState { agent, defences, tx: VecDeque::new() };
        state.agent.set_local(
            Time::ZERO,
            vec![state.defences.advertises().emit()],
            &mut Vec::new(),
        );
        state
    }

    /// Handles a change of carrier.
    pub(super) fn link(&mut self, now: Time, up: bool) {
        self.tx.clear();
        self.with(now, |agent, requests| agent.link(now, up, requests));
    }

    /// Handles a received frame with LLDP's EtherType.
    pub(super) fn receive(&mut self, now: Time, frame: &[u8]) {
        self.with(now, |agent, requests| agent.receive(now, frame, requests));
    }

    /// Queues what is due. Early and repeated calls are harmless.
    pub(super) fn timeout(&mut self, now: Time) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.with(now, |agent, requests| agent.timeout(now, requests));
        }
    }

    /// Returns when to call [`LldpState::timeout`] next.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.agent.deadline()
    }

    /// Returns whether a frame is queued.
    pub(super) fn has_frames(&self) -> bool {
        !self.tx.is_empty()
    }

    /// Takes the next frame to send, if there is one.
    pub(super) fn next_frame(&mut self) -> Option<FrameBuf> {
        self.tx.pop_front()
    }

    fn with(&mut self, now: Time, work: impl FnOnce(&mut LldpAgent, &mut Vec<LldpRequest>)) {
        let mut requests = Vec::new();
        work(&mut self.agent, &mut requests);
        if requests.contains(&LldpRequest::Neighbours) {
            let received = congestion::advertised(self.agent.neighbours(), &mut Vec::new());
            self.defences.neighbours(&received);
            self.defences.in_force();
            self.agent.set_local(now, vec![self.defences.advertises().emit()], &mut requests);
        }
        for request in requests {
            if let LldpRequest::Send(frame) = request {
                self.tx.push_back(FrameBuf::new(&frame));
            }
        }
    }
}
