//! Cabling: connected ports, and the carrier that follows.

use crate::engine::Engine;
use crate::engine::trace::What;
use crate::link::classes::ClassBytes;
use crate::link::links::{Link, LinkId, Loss, WireEnd};
use crate::link::noise::Noise;
use crate::link::port::{CableEnd, Rare};
use crate::link::timing::{Speed, Way};
use axon_fabric::model::Wire;
use axon_node::Input;
use axon_wire::Time;

impl Engine {
    /// Connects two free ports by a new link.
    ///
    /// # Panics
    /// If a port is in use.
    pub fn connect(&mut self, a: WireEnd, b: WireEnd, wire: Wire) -> LinkId {
        let id = LinkId(self.links.len());
        self.links.push(Link::new([a, b], wire));
        self.seat(id, [None, None]);
        self.refresh_carrier(id);
        id
    }

    /// Disconnects both ends of a link. Frames in flight on it are lost.
    pub fn disconnect(&mut self, link: LinkId) {
        self.pull(link);
    }

    /// Disconnects both ends and keeps their noise.
    fn pull(&mut self, link: LinkId) -> [Option<Box<Noise>>; 2] {
        self.links[link.0].connected = false;
        self.refresh_carrier(link);
        let ends = self.links[link.0].ends;
        let mut noise = [None, None];
        for (side, end) in ends.into_iter().enumerate() {
            let port_state = self.station_mut(end.station).adapter.port_mut(end.port);
            let Some(cable) = port_state.cable.take_if(|cable| cable.rare.link == link) else {
                continue;
            };
            port_state.reconnected = true;
            let past = self.links[link.0].past.get_or_insert_default();
            past[side].sent += cable.sent;
            past[side].corrupted += cable.rare.corrupted;
            past[side].duplicated += cable.rare.duplicated;
            past[side].lost.iter_mut().zip(cable.rare.lost).for_each(|(sum, count)| *sum += count);
            past[1 - side].delivered += cable.delivered;
            noise[side] = cable.rare.noise;
            self.restore_ways(end.station);
        }
        noise
    }

    /// Connects a link again, possibly to other ports.
    ///
    /// # Panics
    /// If a port is in use.
    pub fn reconnect(&mut self, link: LinkId, a: WireEnd, b: WireEnd) {
        let noise = self.pull(link);
        let state = &mut self.links[link.0];
        state.ends = [a, b];
        state.connected = true;
        self.seat(link, noise);
        self.refresh_carrier(link);
    }

    fn seat(&mut self, link: LinkId, noise: [Option<Box<Noise>>; 2]) {
        let ends = self.links[link.0].ends;
        for ((side, end), noise) in ends.into_iter().enumerate().zip(noise) {
            let noise = noise.or_else(|| {
                let fresh = self.fresh_noise(link, side);
                fresh.is_on().then(|| Box::new(fresh))
            });
            let peer = ends[1 - side];
            let cable = CableEnd {
                way: self.way(link, side),
                peer: self.places[peer.station],
                peer_port: peer.port,
                carrier: 0,
                silent: self.links[link.0].silent[side],
                noisy: noise.as_deref().is_some_and(Noise::is_on),
                sent: 0,
                delivered: 0,
                classes: None,
                rare: Box::new(Rare {
                    link,
                    side,
                    lost: [0; Loss::ALL.len()],
                    corrupted: 0,
                    duplicated: 0,
                    noise,
                }),
            };
            let station = self.station_mut(end.station);
            let taken = station
                .adapter
                .ports
                .get(end.port.index())
                .is_some_and(|port_state| port_state.cable.is_some());
            assert!(!taken, "{}-{} is taken", station.name(), end.port);
            station.adapter.port_mut(end.port).cable = Some(cable);
        }
        ends.iter().for_each(|end| self.restore_ways(end.station));
    }

    /// Returns the noise from end `side` of a link in its initial state.
    pub(super) fn fresh_noise(&self, link: LinkId, side: usize) -> Noise {
        let stream = (link.0 as u64) << 1 | side as u64;
        Noise::new(self.seed, stream, &self.links[link.0].wire)
    }

    /// Returns the timing of frames from end `side` of a link.
    pub(super) fn way(&self, link: LinkId, side: usize) -> Way {
        let Link { ends, wire, .. } = &self.links[link.0];
        let (near, far) = (ends[side].station, ends[1 - side].station);
        let stored = self.fastest(far).is_some_and(|rate| rate > wire.rate.bits_per_second());
        let stations = [near, far].map(|number| self.station(number).expect("a station"));
        let [near, far] = stations;
        let speed = Speed::new(wire.rate);
        Way::new(
            speed,
            wire.latency,
            &near.adapter.timing,
            &far.adapter.timing,
            near.adapter.host,
            stored,
        )
    }

    /// Returns the rate of a station's fastest link, in bits per second.
    fn fastest(&self, station: usize) -> Option<u64> {
        let cables = self
            .station(station)?
            .adapter
            .ports
            .iter()
            .filter_map(|port_state| port_state.cable.as_ref());
        cables.map(|cable| self.links[cable.rare.link.0].wire.rate.bits_per_second()).max()
    }

    /// Recomputes the timing of frames to a station. Store-and-forward depends on its fastest
    /// connected link.
    pub(super) fn restore_ways(&mut self, station: usize) {
        self.lookahead = None;
        if !self.station_mut(station).adapter.timing.is_cut_through() {
            return;
        }
        let ports = &self.station_mut(station).adapter.ports;
        let cables: Vec<(LinkId, usize)> = ports
            .iter()
            .filter_map(|port_state| port_state.cable.as_ref())
            .map(|p| (p.rare.link, p.rare.side))
            .collect();
        for (link, side) in cables {
            if self.cable_end_at(link, 1 - side).is_some() {
                let way = self.way(link, 1 - side);
                self.with_cable_end(link, 1 - side, |cable| cable.way = way);
            }
        }
    }

    pub(crate) fn with_cable_end(
        &mut self,
        link: LinkId,
        side: usize,
        change: impl FnOnce(&mut CableEnd),
    ) {
        let end = self.links[link.0].ends[side];
        let port_state = self.station_mut(end.station).adapter.port_mut(end.port);
        if let Some(cable) = port_state.cable.as_mut().filter(|cable| cable.rare.link == link) {
            change(cable);
        }
    }

    /// Starts to count the bytes of a link by class, from zero. `axon` is whether the link joins
    /// Axons.
    pub fn count_classes(&mut self, link: LinkId, axon: bool) {
        for side in 0..2 {
            self.with_cable_end(link, side, |cable| {
                cable.classes = Some(Box::new(ClassBytes::new(axon)))
            });
        }
    }

    /// Recomputes the carrier of a link. It is up when the link is connected and intact and both
    /// ends have power. On a change, frames in flight are lost, pending `TxDone`s are cancelled,
    /// and the nodes get [`Input::Link`].
    pub(crate) fn refresh_carrier(&mut self, link: LinkId) {
        let state = &self.links[link.0];
        let ends = state.ends;
        let powered = |end: &WireEnd| self.station(end.station).is_some_and(|s| s.node.is_on());
        let carrier = state.connected && !state.cut && ends.iter().all(powered);
        if carrier == state.carrier {
            return;
        }
        let in_flight = [0, 1].map(|side| self.fates(link, side).in_flight);
        self.links[link.0].carrier = carrier;
        self.carriers += 1;
        let name = if carrier { self.carriers } else { 0 };
        for (side, lost) in in_flight.into_iter().enumerate() {
            self.with_cable_end(link, side, |cable| {
                cable.carrier = name;
                cable.rare.lost[Loss::Cut as usize] += lost;
            });
        }
        for end in ends {
            self.notify_carrier(end, carrier);
        }
    }

    fn notify_carrier(&mut self, end: WireEnd, carrier: bool) {
        let at = self.places[end.station];
        let (station, common) = self.shards[at.shard as usize].call(at.slot);
        station.free_wires(common);
        station.adapter.cancel_tx_done(end.port);
        let port_state = station.adapter.port_mut(end.port);
        port_state.is_free_at(Time::ZERO);
        (port_state.wire_free, port_state.handed_last) = (self.now, self.now);
        if station.node.is_on() {
            station.adapter.record(end.port, What::Carrier(carrier), common);
            station.deliver(Input::Link { port: end.port, up: carrier }, common);
        }
    }
}
