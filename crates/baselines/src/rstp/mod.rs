//! Rapid spanning tree protocol (IEEE 802.1D-2004 clause 17), as state machines without a clock.
//!
//! The bridge with the lowest identifier is the root. Every bridge has one port towards it, on the
//! cheapest path. On every link, one end is designated. All other ports discard frames. The result
//! is a tree. A link in the tree begins to forward as soon as both its ends agree, without a delay.
//!
//! The machines are those of the standard, with one file for each group: port information (`info`),
//! roles (`roles`), port states (`transitions`) and topology changes (`changes`). They run until no
//! machine can make a transition. Then the BPDUs that are due are sent. There are two deviations
//! from the letter of the standard. Timers are points in time, not counters of whole seconds (see
//! `port`). The one-second period of `txCount` begins with its first BPDU.
//!
//! The following is omitted: migration to the old protocol (clause 17.24; its BPDUs are refused),
//! shared media (every link is point-to-point) and management. On every port, `AutoEdge` is on and
//! `AdminEdge` is off.

pub mod bpdu;
mod changes;
mod info;
mod port;
mod roles;
#[cfg(test)]
mod tests;
mod transitions;
pub mod vector;

pub use bpdu::{Bpdu, BpduError};
pub use port::Role;
pub use vector::{BridgeId, PortId, Times, Vector, path_cost};

use crate::bridge::plane::PortState;
use alloc::vec::Vec;
use axon_wire::{PortNo, Span, Time};
use port::Port;

/// Migrate Time (table 17-1), which is also the time after which a port without answers becomes an
/// edge port.
const MIGRATE_TIME: Span = Span::from_secs(3);
/// Maximum number of rounds of all machines, beyond which they are considered broken.
const ROUNDS_MAX: u32 = 1000;

/// Configuration of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RstpConfig {
    /// Identifier of the bridge.
    pub id: BridgeId,
    /// Path cost of each port; see [`path_cost`].
    pub path_costs: Vec<u32>,
    /// Timer values that are used if the bridge is the root; `message_age` is zero.
    pub times: Times,
    /// Number of BPDUs that a port may send at once (Transmit Hold Count, table 17-1): 6 by
    /// default.
    pub tx_hold_count: u32,
}

/// A request from the protocol to its bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Send this frame out of a port, regardless of the port's state.
    Send {
        /// The egress port.
        port: PortNo,
        /// An RST BPDU in its Ethernet frame.
        frame: Vec<u8>,
    },
    /// Set the state of a port.
    State {
        /// The port whose state changes.
        port: PortNo,
        /// The new state of the port.
        state: PortState,
    },
    /// Forget the addresses learned on a port.
    Flush {
        /// The port on which they were learned.
        port: PortNo,
    },
}

/// Protocol state of one bridge.
#[derive(Clone, Debug)]
pub struct Rstp {
    config: RstpConfig,
    id: BridgeId,
    ports: Vec<Port>,
    /// Path from the bridge to the root, and its port.
    root: Vector,
    root_port: Option<usize>,
    sent: u64,
    deadline: Option<Time>,
}

impl Rstp {
    /// Creates a bridge that considers itself the root. None of its ports has carrier.
    pub fn new(config: RstpConfig) -> Rstp {
        let id = config.id;
        let port = |(index, &cost): (usize, &u32)| {
            Port::new(PortId::from_index(index as u16), cost, config.times)
        };
        let ports = config.path_costs.iter().enumerate().map(port).collect();
        let root = Vector { root: id, cost: 0, bridge: id, port: PortId(0) };
        Rstp { config, id, ports, root, root_port: None, sent: 0, deadline: None }
    }

    /// Processes a carrier change on a port.
    pub fn link(&mut self, now: Time, port: PortNo, up: bool, requests: &mut Vec<Request>) {
        let Some(state) = self.ports.get_mut(port.index()) else {
            return;
        };
        state.enabled = up;
        state.oper_edge = false;
        state.message = None;
        if up {
            state.edge_delay.start(now, MIGRATE_TIME);
            state.new_info = true;
            state.tx_count = 0;
        }
        self.run(now, requests);
    }

    /// Processes a frame to the bridges' address.
    ///
    /// # Errors
    /// The frame is not an RST BPDU. Nothing has changed then.
    pub fn receive(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &[u8],
        requests: &mut Vec<Request>,
    ) -> Result<(), BpduError> {
        let message = Bpdu::parse(frame)?;
        if let Some(state) = self.ports.get_mut(port.index()).filter(|state| state.enabled) {
            state.oper_edge = false;
            state.edge_delay.start(now, MIGRATE_TIME);
            state.message = Some(message);
            self.run(now, requests);
        }
        Ok(())
    }

    /// Processes timers at or after the deadline.
    pub fn timeout(&mut self, now: Time, requests: &mut Vec<Request>) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.run(now, requests);
        }
    }

    /// Returns the time of the next [`Rstp::timeout`].
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Returns the bridge's identifier.
    #[cfg(test)]
    pub(crate) fn id(&self) -> BridgeId {
        self.id
    }

    /// Returns the bridge that is currently considered the root, and the cost of the path to it.
    pub fn root(&self) -> (BridgeId, u32) {
        (self.root.root, self.root.cost)
    }

    /// Returns the port towards the root, or `None` if this bridge is the root.
    pub fn root_port(&self) -> Option<PortNo> {
        self.root_port.map(|index| PortNo(index as u16))
    }

    /// Returns the role of a port.
    pub fn role(&self, port: PortNo) -> Role {
        self.ports.get(port.index()).map_or(Role::Disabled, |port| port.role)
    }

    /// Returns the state of a port.
    pub fn state(&self, port: PortNo) -> PortState {
        self.ports.get(port.index()).map_or(PortState::Discarding, Port::state)
    }

    /// Returns whether a port has detected that only hosts are behind it (`operEdge`).
    #[cfg(test)]
    pub(crate) fn is_edge(&self, port: PortNo) -> bool {
        self.ports.get(port.index()).is_some_and(|port| port.oper_edge)
    }

    /// Returns the number of BPDUs sent.
    #[cfg(test)]
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Runs all machines until none can make a transition, then sends the BPDUs that are due.
    fn run(&mut self, now: Time, requests: &mut Vec<Request>) {
        let mut rounds = 0;
        while self.round(now, requests) {
            rounds += 1;
            debug_assert!(rounds < ROUNDS_MAX, "the state machines do not settle: {self:?}");
            if rounds >= ROUNDS_MAX {
                break;
            }
        }
        for index in 0..self.ports.len() {
            self.transmit(now, index, requests);
        }
        self.deadline = self.ports.iter().filter_map(|port| port.deadline(now)).min();
    }

    fn round(&mut self, now: Time, requests: &mut Vec<Request>) -> bool {
        let mut changed = false;
        for port in &mut self.ports {
            changed |= info::detect_edge(port, now);
            changed |= info::information(port, now);
        }
        changed |= self.select_roles();
        for index in 0..self.ports.len() {
            changed |= self.transition(now, index);
            if self.ports[index].follow() {
                let state = self.ports[index].state();
                requests.push(Request::State { port: PortNo(index as u16), state });
                changed = true;
            }
            changed |= self.topology_step(now, index, requests);
        }
        changed
    }
}
