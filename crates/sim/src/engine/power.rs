//! Power and suspension of stations, and their initial settings: timing, hop width.

use crate::engine::Engine;
use crate::engine::station::{StationNode, Stopped};
use crate::engine::trace::What;
use crate::link::links::WireEnd;
use crate::link::timing::Timing;
use axon_fabric::model::Device;
use axon_node::{Input, Stored};
use axon_wire::{HopWidth, PortNo, Time};

impl Engine {
    /// Sets a switch's timing to that of a device. Call it before anything is connected. Without
    /// it, the switch stores and forwards in zero time.
    pub fn set_device(&mut self, station: usize, device: &Device) {
        self.station_mut(station).adapter.timing = Timing::of(device);
    }

    /// Makes the pipelines of switches treat frames from this station as a host's. Call it before
    /// anything is connected.
    pub fn set_host(&mut self, station: usize) {
        self.station_mut(station).adapter.host = true;
    }

    /// Sends the station's queue lengths to the peer of a port, before each frame.
    pub(crate) fn show_queues(&mut self, at: WireEnd) {
        self.station_mut(at.station).adapter.port_mut(at.port).shows_queues = true;
    }

    /// Sets the width of a hop in frame headers, in bits.
    pub fn set_hop_width(&mut self, width: HopWidth) {
        (0..self.places.len()).for_each(|at| self.station_mut(at).adapter.hop_width = width);
    }

    /// Returns the number of the next incarnation of a station's node, from 1, strictly increasing.
    pub fn next_incarnation(&self, station: usize) -> u64 {
        self.station(station).map_or(1, |station| station.adapter.incarnations + 1)
    }

    /// Returns the data that the nodes of a station have kept for the next incarnation, by key.
    pub fn stored(&self, station: usize) -> Vec<Stored> {
        self.station(station).map_or_else(Vec::new, |station| station.adapter.store.all())
    }

    /// Powers a station on with this node. A running incarnation ends first.
    pub fn power_on(&mut self, station: usize, node: StationNode) {
        self.power_off(station);
        let state = self.station_mut(station);
        let adapter = &mut state.adapter;
        adapter.incarnations += 1;
        adapter.trace.set_whole(!node.is_transit());
        adapter.checks_fcs = node.is_host();
        let what = What::Power(Some(adapter.incarnations));
        state.node = node;
        self.record(station, PortNo::CONTROL, what);
        self.refresh_station(station);
        self.nudge(station);
    }

    /// Powers a station off. The frames that its node holds are lost
    /// ([`axon_node::Drop::PowerLost`]), and its neighbours lose carrier.
    pub fn power_off(&mut self, station: usize) {
        let now = self.now();
        let state = self.station_mut(station);
        if !state.node.is_on() {
            return;
        }
        state.close_accounts();
        state.empty(now);
        state.node = StationNode::Off;
        let adapter = &mut state.adapter;
        adapter.forget();
        let accounts = std::mem::take(&mut adapter.accounts);
        adapter.past.get_or_insert_default().add(&accounts);
        self.record(station, PortNo::CONTROL, What::Power(None));
        self.refresh_station(station);
    }

    /// Suspends the node of a station. Has no effect if it is suspended or off.
    pub fn stop(&mut self, station: usize) {
        let at = self.places[station];
        let (state, common) = self.shards[at.shard as usize].call(at.slot);
        if matches!(state.node, StationNode::Off | StationNode::Stopped(_)) {
            return;
        }
        state.free_wires(common);
        let stopped = std::mem::replace(&mut state.node, StationNode::Off);
        state.node = StationNode::Stopped(Box::new(Stopped { node: stopped, inputs: Vec::new() }));
    }

    /// Resumes the node of a station. Has no effect if it is not suspended.
    pub fn go_on(&mut self, station: usize) {
        let node = &mut self.station_mut(station).node;
        let StationNode::Stopped(stopped) = node else { return };
        let inputs = std::mem::take(&mut stopped.inputs);
        let stopped = std::mem::replace(&mut stopped.node, StationNode::Off);
        *node = stopped;
        let at = self.places[station];
        let (station, common) = self.shards[at.shard as usize].call(at.slot);
        for input in inputs {
            // Frames sent since it resumed are lost if the carrier changed before.
            if let Input::Link { port, .. } = input {
                station.adapter.cancel_tx_done(port);
                station.adapter.port_mut(port).is_free_at(Time::ZERO);
            }
            station.deliver(input, common);
        }
        station.nudge(common);
    }

    fn refresh_station(&mut self, station: usize) {
        for index in 0..self.station_mut(station).adapter.ports.len() {
            let cable = self.station_mut(station).adapter.ports[index].cable.as_ref();
            if let Some(link) = cable.map(|cable| cable.rare.link) {
                self.refresh_carrier(link);
            }
        }
    }

    pub(crate) fn record(&mut self, station: usize, port: PortNo, what: What<'_>) {
        let at = self.places[station];
        let (station, common) = self.shards[at.shard as usize].call(at.slot);
        station.adapter.record(port, what, common);
    }
}
