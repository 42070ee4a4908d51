//! Cabling: which ports are connected, and which therefore have carrier.

use crate::engine::Engine;
use crate::engine::trace::What;
use crate::link::classes::ClassBytes;
use crate::link::links::{Link, LinkId, Loss, WireEnd};
use crate::link::noise::Noise;
use crate::link::port::{Plug, Rare};
use crate::link::timing::{Speed, Way};
use axon_fabric::model::Wire;
use axon_plane::Input;

impl Engine {
    /// Plugs a link between two free ports.
    ///
    /// # Panics
    /// If a port is taken.
    pub fn plug(&mut self, a: WireEnd, b: WireEnd, wire: Wire) -> LinkId {
        let id = LinkId(self.links.len());
        self.links.push(Link::new([a, b], wire));
        self.seat(id, [None, None]);
        self.refresh_carrier(id);
        id
    }

    /// Pulls both plugs of a link; what is under way on it is lost.
    pub fn unplug(&mut self, link: LinkId) {
        self.pull(link);
    }

    /// Pulls both plugs and keeps their noise.
    fn pull(&mut self, link: LinkId) -> [Option<Box<Noise>>; 2] {
        self.links[link.0].plugged = false;
        self.refresh_carrier(link);
        let ends = self.links[link.0].ends;
        let mut noise = [None, None];
        for (side, end) in ends.into_iter().enumerate() {
            let jack = self.station_mut(end.station).harness.jack(end.port);
            let Some(plug) = jack.plug.take_if(|plug| plug.rare.link == link) else {
                continue;
            };
            jack.replugged = true;
            let past = &mut self.links[link.0].past;
            past[side].sent += plug.sent;
            past[side].corrupted += plug.rare.corrupted;
            past[side].lost.iter_mut().zip(plug.rare.lost).for_each(|(sum, count)| *sum += count);
            past[1 - side].delivered += plug.delivered;
            noise[side] = Some(plug.rare.noise);
            self.restore_ways(end.station);
        }
        noise
    }

    /// Plugs an unplugged link in again, perhaps elsewhere.
    ///
    /// # Panics
    /// If a port is taken.
    pub fn replug(&mut self, link: LinkId, a: WireEnd, b: WireEnd) {
        let noise = self.pull(link);
        let state = &mut self.links[link.0];
        state.ends = [a, b];
        state.plugged = true;
        self.seat(link, noise);
        self.refresh_carrier(link);
    }

    fn seat(&mut self, link: LinkId, noise: [Option<Box<Noise>>; 2]) {
        let (ends, wire) = (self.links[link.0].ends, self.links[link.0].wire);
        for ((side, end), noise) in ends.into_iter().enumerate().zip(noise) {
            let stream = (link.0 as u64) << 1 | side as u64;
            let fresh = || Box::new(Noise::new(self.seed, stream, &wire));
            let noise = noise.unwrap_or_else(fresh);
            let peer = ends[1 - side];
            let plug = Plug {
                way: self.way(link, side),
                peer: self.places[peer.station],
                peer_port: peer.port,
                carrier: 0,
                silent: self.links[link.0].silent,
                noisy: noise.is_on(),
                sent: 0,
                delivered: 0,
                classes: None,
                rare: Box::new(Rare {
                    link,
                    side,
                    lost: [0; Loss::ALL.len()],
                    corrupted: 0,
                    noise,
                }),
            };
            let station = self.station_mut(end.station);
            let taken =
                station.harness.jacks.get(end.port.index()).is_some_and(|jack| jack.plug.is_some());
            assert!(!taken, "{}-{} is taken", station.name(), end.port);
            station.harness.jack(end.port).plug = Some(plug);
        }
        ends.iter().for_each(|end| self.restore_ways(end.station));
    }

    /// How frames go from end `side` of a link.
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
            &near.harness.timing,
            &far.harness.timing,
            near.harness.host,
            stored,
        )
    }

    /// Bits per second of the fastest link of a station.
    fn fastest(&self, station: usize) -> Option<u64> {
        let plugs =
            self.station(station)?.harness.jacks.iter().filter_map(|jack| jack.plug.as_ref());
        plugs.map(|plug| self.links[plug.rare.link.0].wire.rate.bits_per_second()).max()
    }

    /// Works out anew how frames come to a station: whether they are stored depends on the
    /// fastest link that is plugged in.
    pub(super) fn restore_ways(&mut self, station: usize) {
        self.lookahead = None;
        if !self.station_mut(station).harness.timing.is_cut_through() {
            return;
        }
        let jacks = &self.station_mut(station).harness.jacks;
        let plugs: Vec<(LinkId, usize)> = jacks
            .iter()
            .filter_map(|jack| jack.plug.as_ref())
            .map(|p| (p.rare.link, p.rare.side))
            .collect();
        for (link, side) in plugs {
            if self.plug_at(link, 1 - side).is_some() {
                let way = self.way(link, 1 - side);
                self.with_plug(link, 1 - side, |plug| plug.way = way);
            }
        }
    }

    pub(crate) fn with_plug(&mut self, link: LinkId, side: usize, change: impl FnOnce(&mut Plug)) {
        let end = self.links[link.0].ends[side];
        let jack = self.station_mut(end.station).harness.jack(end.port);
        if let Some(plug) = jack.plug.as_mut().filter(|plug| plug.rare.link == link) {
            change(plug);
        }
    }

    /// Starts to count the bytes of a link by class, from nothing; `axon` says that the link
    /// joins Axons.
    pub fn count_classes(&mut self, link: LinkId, axon: bool) {
        for side in 0..2 {
            self.with_plug(link, side, |plug| plug.classes = Some(Box::new(ClassBytes::new(axon))));
        }
    }

    /// Carrier is there when the link is plugged and whole and both ends have power. When
    /// that changes, frames under way are lost, no `TxDone` is owed, and the ends are told.
    pub(crate) fn refresh_carrier(&mut self, link: LinkId) {
        let state = &self.links[link.0];
        let ends = state.ends;
        let powered = |end: &WireEnd| self.station(end.station).is_some_and(|s| s.body.is_on());
        let carrier = state.plugged && !state.cut && ends.iter().all(powered);
        if carrier == state.carrier {
            return;
        }
        let in_flight = [0, 1].map(|side| self.fates(link, side).in_flight);
        self.links[link.0].carrier = carrier;
        self.carriers += 1;
        let name = if carrier { self.carriers } else { 0 };
        for (side, lost) in in_flight.into_iter().enumerate() {
            self.with_plug(link, side, |plug| {
                plug.carrier = name;
                plug.rare.lost[Loss::Cut as usize] += lost;
            });
        }
        for end in ends {
            self.tell_carrier(end, carrier);
        }
    }

    fn tell_carrier(&mut self, end: WireEnd, carrier: bool) {
        let at = self.places[end.station];
        let (station, common) = self.shards[at.shard as usize].call(at.slot);
        station.free_wires(common);
        station.harness.forgive(end.port);
        let jack = station.harness.jack(end.port);
        jack.busy = false;
        (jack.wire_free, jack.handed_last) = (self.now, self.now);
        if station.body.is_on() {
            station.harness.record(end.port, What::Carrier(carrier), common);
            station.hand(Input::Link { port: end.port, up: carrier }, common);
        }
    }
}
