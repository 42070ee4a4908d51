//! Nodes that are suspended for a while, as a process may be that is stopped or starved:
//! its ports keep carrier, what comes in waits, and no timer runs. When it goes on, it is given all
//! of that at once, in order.

use crate::engine::Engine;
use crate::engine::station::StationNode;
use axon_node::{Action, Awaited, Input, Node};
use axon_wire::{FrameBuf, Time};

/// A node that is suspended.
pub struct Stopped {
    /// The node, as it was when it was stopped.
    pub(crate) node: StationNode,
    /// What it will be given.
    inputs: Vec<Input<FrameBuf>>,
}

impl Stopped {
    /// Frames that wait for it.
    pub(crate) fn frames(&self) -> u64 {
        let frames = self.inputs.iter().filter(|input| matches!(input, Input::Frame { .. }));
        frames.count() as u64
    }
}

impl Node<FrameBuf> for Stopped {
    fn handle(&mut self, _: Time, input: Input<FrameBuf>, _: &mut Vec<Action<FrameBuf>>) {
        self.inputs.push(input);
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn awaited(&mut self) -> Awaited {
        Awaited::None
    }
}

impl Engine {
    /// Stops the node of a station; nothing happens if it is stopped or has no power.
    pub fn stop(&mut self, station: usize) {
        let node = &mut self.station_mut(station).node;
        if matches!(node, StationNode::Off | StationNode::Stopped(_)) {
            return;
        }
        let stopped = std::mem::replace(node, StationNode::Off);
        *node = StationNode::Stopped(Box::new(Stopped { node: stopped, inputs: Vec::new() }));
    }

    /// Lets the node of a station go on; nothing happens if it is not stopped.
    pub fn go_on(&mut self, station: usize) {
        let node = &mut self.station_mut(station).node;
        let StationNode::Stopped(stopped) = node else { return };
        let inputs = std::mem::take(&mut stopped.inputs);
        let stopped = std::mem::replace(&mut stopped.node, StationNode::Off);
        *node = stopped;
        let at = self.places[station];
        let (station, common) = self.shards[at.shard as usize].call(at.slot);
        for input in inputs {
            station.deliver(input, common);
        }
        station.nudge(common);
    }
}
