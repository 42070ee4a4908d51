//! Power of stations: their timing, and when nodes start and end.

use crate::engine::Engine;
use crate::engine::station::Body;
use crate::engine::trace::What;
use crate::link::timing::Timing;
use axon_fabric::model::Device;
use axon_wire::{HopWidth, PortNo};

impl Engine {
    /// Gives a switch the timing of a device, before anything is plugged into it. Without, it
    /// stores frames and takes no time.
    pub fn set_device(&mut self, station: usize, device: &Device) {
        self.station_mut(station).harness.timing = Timing::of(device);
    }

    /// Makes the pipelines of switches take what comes from this station for a host's frames.
    /// To be said before anything is plugged in.
    pub fn set_host(&mut self, station: usize) {
        self.station_mut(station).harness.host = true;
    }

    /// Says how many bits a hop has in the headers of frames, for those who look behind them.
    pub fn set_hop_width(&mut self, width: HopWidth) {
        (0..self.places.len()).for_each(|at| self.station_mut(at).harness.hop_width = width);
    }

    /// The incarnation that the station's next life will have: greater than any before.
    pub fn next_life(&self, station: usize) -> u64 {
        self.station(station).map_or(1, |station| station.harness.lives + 1)
    }

    /// Starts a life at a station; the one that runs there, if any, ends first.
    pub fn power_on(&mut self, station: usize, body: Body) {
        self.power_off(station);
        let state = self.station_mut(station);
        let harness = &mut state.harness;
        harness.lives += 1;
        harness.trace.whole = !body.is_transit();
        harness.checks_fcs = body.is_host();
        let what = What::Power(Some(harness.lives));
        state.body = body;
        self.record(station, PortNo::CONTROL, what);
        self.refresh_station(station);
        self.nudge(station);
    }

    /// Ends the life at a station: what it held is gone ([`axon_plane::Drop::PowerLost`]), its
    /// neighbours lose carrier.
    pub fn power_off(&mut self, station: usize) {
        let now = self.now();
        let state = self.station_mut(station);
        if !state.body.is_on() {
            return;
        }
        state.close_accounts();
        state.empty(now);
        state.body = Body::Off;
        let harness = &mut state.harness;
        harness.forget();
        let accounts = std::mem::take(&mut harness.accounts);
        harness.past.add(&accounts);
        self.record(station, PortNo::CONTROL, What::Power(None));
        self.refresh_station(station);
    }

    fn refresh_station(&mut self, station: usize) {
        for index in 0..self.station_mut(station).harness.jacks.len() {
            let plug = self.station_mut(station).harness.jacks[index].plug.as_ref();
            if let Some(link) = plug.map(|plug| plug.rare.link) {
                self.refresh_carrier(link);
            }
        }
    }

    fn record(&mut self, station: usize, port: PortNo, what: What<'_>) {
        let at = self.places[station];
        let (station, common) = self.shards[at.shard as usize].call(at.slot);
        station.harness.record(port, what, common);
    }
}
