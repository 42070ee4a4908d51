//! The controller: topology graph, host table, flow registry, address service.

use crate::config::ControllerConfig;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_wire::message::{ArpRequest, ControllerHello, HostFrame, Item};
use axon_wire::{Hops, Life, NodeId, PortNo, Time};

/// The controller's state.
#[derive(Debug)]
pub struct Controller {
    config: ControllerConfig,
}

impl Controller {
    /// A controller that knows nothing yet.
    pub fn new(config: &ControllerConfig) -> Controller {
        Controller { config: config.clone() }
    }

    /// Own port `port` now leads to this switch and its port, or to nobody.
    pub fn attached(
        &mut self,
        now: Time,
        port: PortNo,
        peer: Option<(NodeId, PortNo)>,
        out: &mut Vec<Effect>,
    ) {
        let _ = (now, port, peer, out);
    }

    /// A switch's port state; `reverse` leads back to it and ends in [`PortNo::CONTROL`].
    pub fn controller_hello(
        &mut self,
        now: Time,
        from: Life,
        reverse: Hops,
        m: ControllerHello,
        out: &mut Vec<Effect>,
    ) {
        let _ = (now, from, reverse, m, out);
    }

    /// Phase II of Axon-ARP.
    pub fn arp_request(&mut self, now: Time, from: Life, m: ArpRequest, out: &mut Vec<Effect>) {
        let _ = (now, from, m, out);
    }

    /// A host's DHCP frame.
    pub fn dhcp_relay(&mut self, now: Time, from: Life, m: HostFrame, out: &mut Vec<Effect>) {
        let _ = (now, from, m, out);
    }

    /// An item of a switch's reliable stream.
    pub fn item(&mut self, now: Time, from: Life, item: Item, out: &mut Vec<Effect>) {
        let _ = (now, from, item, out);
    }

    /// The way to a switch's control plane.
    pub fn path_to(&mut self, switch: NodeId) -> Option<Hops> {
        let _ = switch;
        None
    }

    /// The latest life of a switch.
    pub fn life_of(&self, switch: NodeId) -> Option<Life> {
        let _ = switch;
        None
    }

    /// To be called at [`Controller::deadline`]; early or repeated calls are harmless.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<Effect>) {
        let _ = (now, out);
    }

    /// When to call [`Controller::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        let _ = &self.config;
        None
    }
}
