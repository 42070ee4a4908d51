//! Node of a conventional Ethernet switch: a learning bridge that runs RSTP.

use crate::bridge::{Bridge, BridgeConfig};
use crate::rstp::{BridgeId, Request, Rstp, RstpConfig, Times};
use alloc::vec::Vec;
use axon_node::{Action, Awaited, Drop, Input, Node, NodeKind, PortEvent, Shortcuts};
use axon_plane::{FrameMeta, Ports};
use axon_wire::{MacAddr, Time};

/// Configuration of a bridge.
#[derive(Clone, Debug)]
pub struct BridgeNodeConfig {
    /// Configuration of ports, buffers and filtering database.
    pub bridge: BridgeConfig,
    /// Identifier, path costs, timers.
    pub rstp: RstpConfig,
}

impl BridgeNodeConfig {
    /// Returns the standard's defaults (IEEE 802.1D-2004 tables 17-1, 17-2 and 7-5) for a bridge
    /// with this address, whose ports have these path costs.
    pub fn new(mac: MacAddr, path_costs: Vec<u32>) -> BridgeNodeConfig {
        BridgeNodeConfig {
            bridge: BridgeConfig::with_ports(path_costs.len() as u16),
            rstp: RstpConfig {
                id: BridgeId { priority: 0x8000, mac },
                path_costs,
                times: Times::default(),
                tx_hold_count: 6,
            },
        }
    }
}

/// Node that runs a learning bridge with RSTP.
#[derive(Clone, Debug)]
pub struct BridgeNode {
    bridge: Bridge,
    rstp: Rstp,
    actions: Vec<Action>,
    requests: Vec<Request>,
}

impl BridgeNode {
    /// Creates a bridge that has just been switched on.
    pub fn new(config: BridgeNodeConfig) -> BridgeNode {
        BridgeNode {
            bridge: Bridge::new(config.bridge),
            rstp: Rstp::new(config.rstp),
            actions: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Returns the data plane: addresses, port states, counters.
    pub fn bridge(&self) -> &Bridge {
        &self.bridge
    }

    /// Returns the spanning tree state of this bridge.
    pub fn rstp(&self) -> &Rstp {
        &self.rstp
    }

    /// Returns the ports of the bridge.
    pub fn ports(&self) -> &Ports {
        self.bridge.ports()
    }

    /// Processes the BPDUs among the plane's actions. Other actions go to the runtime.
    fn settle(&mut self, now: Time, out: &mut Vec<Action>) {
        for action in self.actions.drain(..) {
            let Action::Punt { ingress, frame, .. } = action else {
                out.push(action);
                continue;
            };
            let read = self.rstp.receive(now, ingress, frame.bytes(), &mut self.requests);
            let reason = if read.is_ok() { Drop::Consumed } else { Drop::Refused };
            self.bridge.ports_mut().count(ingress, PortEvent::Drop(reason));
            out.push(Action::Dropped { ingress, reason, frame });
        }
        for request in self.requests.drain(..) {
            match request {
                Request::Send { port, frame } => self.bridge.send(now, port, &frame, out),
                Request::State { port, state } => self.bridge.set_state(port, state),
                Request::Flush { port } => self.bridge.flush(port),
            }
        }
    }
}

impl Node for BridgeNode {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let ports = self.bridge.ports_mut();
        match input {
            Input::Frame { port, frame, complete_at, intact } => {
                let meta = FrameMeta::new(frame, port, complete_at, intact);
                self.bridge.receive(now, meta, &mut self.actions);
            }
            Input::TxDone { port } => ports.tx_done(now, port, &mut self.actions),
            Input::Link { port, up } => {
                ports.link(now, port, up, &mut self.actions);
                self.rstp.link(now, port, up, &mut self.requests);
            }
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Baseline)));
            }
        }
        self.bridge.ports_mut().timeout(now, &mut self.actions);
        self.rstp.timeout(now, &mut self.requests);
        self.settle(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        [self.ports().deadline(), self.rstp.deadline()].into_iter().flatten().min()
    }
}

impl Shortcuts for BridgeNode {
    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.bridge.ports_mut().awaited()
    }
}
