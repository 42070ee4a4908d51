//! Nodes of other networks, on the same ports, buffers and wires as Axon's.

use crate::engine::Accounts;
use axon_baselines::bridge::BridgeNode;
use axon_baselines::multipath::MultipathNode;
use axon_baselines::portland::{ManagerNode, PortLandNode};
use axon_node::{Action, Awaited, Drop, Input, Node, Shortcuts};
use axon_pipeline::ProgramNode;
use axon_plane::Ports;
use axon_wire::{PortNo, Time};

/// Node of another network.
#[allow(clippy::large_enum_variant, reason = "a node boxes it as a whole")]
pub enum Baseline {
    /// Learning bridge.
    Bridge(BridgeNode),
    /// Switch with static tables.
    Multipath(MultipathNode),
    /// PortLand switch.
    PortLand(PortLandNode),
    /// PortLand's fabric manager.
    Manager(ManagerNode),
    /// Programmable switch with its control program.
    Program(Box<ProgramNode>),
}

impl Baseline {
    /// Returns the node's ports.
    pub fn ports(&self) -> &Ports {
        match self {
            Baseline::Bridge(node) => node.ports(),
            Baseline::Multipath(node) => node.ports(),
            Baseline::PortLand(node) => node.ports(),
            Baseline::Manager(node) => node.ports(),
            Baseline::Program(node) => node.pipeline().ports(),
        }
    }

    /// Returns the numbers of punted frames held in the control plane, and of those it has sent on.
    fn kept(&self) -> (u64, u64) {
        match self {
            Baseline::PortLand(node) => (node.waiting_frames(), node.resumed_frames()),
            _ => (0, 0),
        }
    }

    /// Returns the number of held frames: queued, waiting for their tails, or in the control plane.
    pub(crate) fn held(&self) -> u64 {
        let ports = self.ports();
        let queued: u64 =
            (0..ports.wires().count()).map(|port| ports.queues().frames(PortNo(port))).sum();
        queued + ports.held_frames() + self.kept().0
    }

    /// Checks that every frame has exactly one fate.
    pub(crate) fn check(&self, accounts: &Accounts) -> Result<(), String> {
        let ports = self.ports();
        let total = ports.counters().total();
        let own = ports.counters().port(PortNo::CONTROL).rx_frames;
        if total.rx_frames != accounts.received + own || total.tx_frames != accounts.sent {
            let (rx, tx) = (total.rx_frames, total.tx_frames);
            return Err(format!("{rx} in (of them {own} of its own) and {tx} out: {accounts:?}"));
        }
        for (&reason, seen) in Drop::ALL.iter().zip(accounts.dropped) {
            let counted = total.dropped(reason);
            if counted != seen {
                return Err(format!("{}: {counted} counted, {seen} seen", reason.name()));
            }
        }
        let queued: u64 =
            (0..ports.wires().count()).map(|port| ports.queues().frames(PortNo(port))).sum();
        let held = ports.held_frames();
        let dropped: u64 = accounts.dropped.iter().sum();
        let (waiting, resumed) = self.kept();
        let come = total.rx_frames + total.copies;
        let gone = total.tx_frames + queued + held + dropped + waiting + resumed;
        if come == gone {
            return Ok(());
        }
        Err(format!(
            "{come} in and copied; {} out, {queued} queued, {held} held, {dropped} dropped, \
             {waiting} waiting, {resumed} resumed",
            total.tx_frames
        ))
    }
}

impl Node for Baseline {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match self {
            Baseline::Bridge(node) => node.handle(now, input, out),
            Baseline::Multipath(node) => node.handle(now, input, out),
            Baseline::PortLand(node) => node.handle(now, input, out),
            Baseline::Manager(node) => node.handle(now, input, out),
            Baseline::Program(node) => node.handle(now, input, out),
        }
    }

    fn deadline(&self) -> Option<Time> {
        match self {
            Baseline::Bridge(node) => node.deadline(),
            Baseline::Multipath(node) => node.deadline(),
            Baseline::PortLand(node) => node.deadline(),
            Baseline::Manager(node) => node.deadline(),
            Baseline::Program(node) => node.deadline(),
        }
    }

    fn queue_bytes(&self, port: PortNo) -> Option<u64> {
        match self {
            Baseline::Program(node) => node.queue_bytes(port),
            _ => None,
        }
    }
}

impl Shortcuts for Baseline {
    fn awaited(&mut self) -> Awaited {
        match self {
            Baseline::Bridge(node) => node.awaited(),
            Baseline::Multipath(node) => node.awaited(),
            Baseline::PortLand(node) => node.awaited(),
            Baseline::Manager(node) => node.awaited(),
            Baseline::Program(node) => node.awaited(),
        }
    }
}
