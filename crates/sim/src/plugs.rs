//! Plugs and power: who is connected to whom, who lives, and who therefore has carrier.

use crate::engine::Engine;
use crate::links::{Link, LinkId, WireEnd};
use crate::station::Body;
use crate::trace::What;
use axon_fabric::model::Wire;
use axon_plane::Input;
use axon_wire::PortNo;

impl Engine {
    /// Plugs a link between two free ports.
    ///
    /// # Panics
    /// If a port is taken.
    pub fn plug(&mut self, a: WireEnd, b: WireEnd, wire: Wire) -> LinkId {
        let id = LinkId(self.links.len());
        self.links.push(Link::new([a, b], wire, self.seed, id));
        self.seat(id);
        self.refresh_carrier(id);
        id
    }

    /// Pulls both plugs of a link; what is under way on it is lost.
    pub fn unplug(&mut self, link: LinkId) {
        self.links[link.0].plugged = false;
        self.refresh_carrier(link);
        for end in self.links[link.0].ends {
            let jack = self.stations[end.station].jack(end.port.index());
            if jack.link.is_some_and(|(plugged, _)| plugged == link) {
                jack.link = None;
            }
        }
    }

    /// Plugs an unplugged link in again, perhaps elsewhere.
    ///
    /// # Panics
    /// If a port is taken.
    pub fn replug(&mut self, link: LinkId, a: WireEnd, b: WireEnd) {
        self.unplug(link);
        let state = &mut self.links[link.0];
        state.ends = [a, b];
        state.plugged = true;
        self.seat(link);
        self.refresh_carrier(link);
    }

    fn seat(&mut self, link: LinkId) {
        for (side, end) in self.links[link.0].ends.into_iter().enumerate() {
            let station = &mut self.stations[end.station];
            let name = &station.name;
            assert!(
                station.jacks.get(end.port.index()).is_none_or(|jack| jack.link.is_none()),
                "{name}-{} is taken",
                end.port
            );
            station.jack(end.port.index()).link = Some((link, side));
        }
    }

    /// Breaks a link (both ends lose carrier) or mends it.
    pub fn set_cut(&mut self, link: LinkId, cut: bool) {
        self.links[link.0].cut = cut;
        self.refresh_carrier(link);
    }

    /// Makes a link swallow every frame while its ends keep carrier, or mends it.
    pub fn set_silent(&mut self, link: LinkId, silent: bool) {
        self.links[link.0].silent = silent;
    }

    /// Changes how many frames a link loses, per million.
    pub fn set_loss(&mut self, link: LinkId, loss_ppm: u32) {
        self.links[link.0].wire.loss_ppm = loss_ppm;
    }

    /// Changes how many bits a link flips, per 10^15.
    pub fn set_bit_errors(&mut self, link: LinkId, per_1e15: u64) {
        self.links[link.0].wire.bit_errors_per_1e15 = per_1e15;
    }

    /// The incarnation that the station's next life will have: greater than any before.
    pub fn next_life(&self, station: usize) -> u64 {
        self.stations[station].lives + 1
    }

    /// Starts a life at a station; the one that runs there, if any, ends first.
    pub fn power_on(&mut self, station: usize, body: Body) {
        self.power_off(station);
        let state = &mut self.stations[station];
        state.lives += 1;
        state.body = body;
        let what = What::Power(Some(state.lives));
        self.trace.add(self.now, station, PortNo::CONTROL, what);
        self.refresh_station(station);
        self.arm(station);
    }

    /// Ends the life at a station: what it held is gone, its neighbours lose carrier.
    pub fn power_off(&mut self, station: usize) {
        let state = &mut self.stations[station];
        if !state.body.is_on() {
            return;
        }
        state.body = Body::Off;
        state.armed = None;
        let accounts = std::mem::take(&mut state.accounts);
        state.past.add(&accounts);
        self.trace.add(self.now, station, PortNo::CONTROL, What::Power(None));
        self.refresh_station(station);
    }

    fn refresh_station(&mut self, station: usize) {
        for index in 0..self.stations[station].jacks.len() {
            if let Some((link, _)) = self.stations[station].jacks[index].link {
                self.refresh_carrier(link);
            }
        }
    }

    /// Carrier is there when the link is plugged and whole and both ends have power. When
    /// that changes, frames under way are lost, no `TxDone` is owed, and the ends are told.
    fn refresh_carrier(&mut self, link: LinkId) {
        let state = &mut self.links[link.0];
        let ends = state.ends;
        let powered = ends.iter().all(|end| self.stations[end.station].body.is_on());
        let carrier = state.plugged && !state.cut && powered;
        if carrier == state.carrier {
            return;
        }
        state.carrier = carrier;
        if !carrier {
            state.epoch += 1;
        }
        for end in ends {
            let station = &mut self.stations[end.station];
            let jack = station.jack(end.port.index());
            jack.busy = false;
            jack.turn += 1;
            if station.body.is_on() {
                self.trace.add(self.now, end.station, end.port, What::Carrier(carrier));
                self.hand(end.station, Input::Link { port: end.port, up: carrier });
            }
        }
    }
}
