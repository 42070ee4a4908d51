//! Crash and restart of a switch's node while its data plane keeps forwarding.

use crate::engine::Engine;
use crate::engine::dataplane::SwitchPlane;
use crate::engine::headless::Headless;
use crate::engine::station::StationNode;
use crate::engine::trace::What;
use axon_node::{Dataplane, Drop, Input};
use axon_switch::SwitchNode;
use axon_wire::PortNo;

impl Engine {
    /// Ends the node of a switch. The data plane keeps forwarding, and the ports keep carrier.
    /// Frames that wait for routes are lost. Has no effect if no switch runs at the station.
    pub fn crash_node(&mut self, station: usize) {
        let state = self.station_mut(station);
        if !matches!(state.node, StationNode::Switch(_)) {
            return;
        }
        let StationNode::Switch(node) = std::mem::replace(&mut state.node, StationNode::Off) else {
            return;
        };
        let waiting = node.waiting_frames();
        let mut plane = node.into_plane();
        (0..waiting).for_each(|_| plane.count_drop(PortNo::CONTROL, Drop::PowerLost));
        state.adapter.accounts.dropped[Drop::PowerLost as usize] += waiting;
        state.node = StationNode::Headless(Box::new(Headless { plane }));
        self.record(station, PortNo::CONTROL, What::Power(None));
    }

    /// Starts a node on the data plane left by a crashed one. Has no effect if there is none.
    pub fn restart_node(
        &mut self,
        station: usize,
        start: impl FnOnce(SwitchPlane) -> SwitchNode<SwitchPlane>,
    ) {
        let state = self.station_mut(station);
        if !matches!(state.node, StationNode::Headless(_)) {
            return;
        }
        let StationNode::Headless(left) = std::mem::replace(&mut state.node, StationNode::Off)
        else {
            return;
        };
        state.node = StationNode::Switch(Box::new(start(left.plane)));
        state.adapter.incarnations += 1;
        let what = What::Power(Some(state.adapter.incarnations));
        self.record(station, PortNo::CONTROL, what);
        let at = self.places[station];
        let (station, common) = self.shards[at.shard as usize].call(at.slot);
        let ports = (0u16..).zip(&station.adapter.ports);
        let up =
            ports.filter(|(_, port)| port.cable.as_ref().is_some_and(|cable| cable.carrier != 0));
        let up: Vec<PortNo> = up.map(|(number, _)| PortNo(number)).collect();
        for port in up {
            station.deliver(Input::Link { port, up: true }, common);
        }
        station.nudge(common);
    }
}
