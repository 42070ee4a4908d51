//! Cabling: connected ports, the carrier that follows, and the faults of links.

use crate::engine::lookahead::Lookahead;
use crate::engine::station::Station;
use crate::engine::stations::Stations;
use crate::engine::trace::What;
use crate::link::classes::ClassBytes;
use crate::link::links::{Fates, Link, LinkChange, LinkId, Loss, WireEnd};
use crate::link::noise::Noise;
use crate::link::port::{CableEnd, Rare};
use crate::link::timing::{Speed, Way};
use axon_fabric::model::Wire;
use axon_node::Input;
use axon_wire::Time;

/// Links of a world.
pub(crate) struct Cabling {
    links: Vec<Link>,
    /// Last carrier number assigned; see [`CableEnd`].
    carriers: u32,
    seed: u64,
    /// Lookahead between shards, valid until a cable is connected or disconnected.
    lookahead: Option<Lookahead>,
}

impl Cabling {
    /// Returns no links. `seed` is that of their noise.
    pub(crate) fn new(seed: u64) -> Cabling {
        Cabling { links: Vec::new(), carriers: 0, seed, lookahead: None }
    }

    /// Returns the links, in the order of their ids.
    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    /// Connects two free ports by a new link.
    ///
    /// # Panics
    /// If a port is in use.
    pub(crate) fn connect(
        &mut self,
        ends: [WireEnd; 2],
        wire: Wire,
        stations: &mut Stations,
    ) -> LinkId {
        let id = LinkId(self.links.len());
        self.links.push(Link::new(ends, wire));
        self.seat(id, [None, None], stations);
        self.refresh_carrier(id, stations);
        id
    }

    /// Disconnects both ends of a link and returns their noise. Frames in flight on it are lost.
    pub(crate) fn disconnect(
        &mut self,
        link: LinkId,
        stations: &mut Stations,
    ) -> [Option<Box<Noise>>; 2] {
        self.links[link.0].connected = false;
        self.refresh_carrier(link, stations);
        let ends = self.links[link.0].ends;
        let mut noise = [None, None];
        for (side, end) in ends.into_iter().enumerate() {
            let port_state = stations.call(end.station).0.adapter_mut().port_mut(end.port);
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
            self.restore_ways(end.station, stations);
        }
        noise
    }

    /// Connects a link again, possibly to other ports.
    ///
    /// # Panics
    /// If a port is in use.
    pub(crate) fn reconnect(&mut self, link: LinkId, ends: [WireEnd; 2], stations: &mut Stations) {
        let noise = self.disconnect(link, stations);
        let state = &mut self.links[link.0];
        state.ends = ends;
        state.connected = true;
        self.seat(link, noise, stations);
        self.refresh_carrier(link, stations);
    }

    fn seat(&mut self, link: LinkId, noise: [Option<Box<Noise>>; 2], stations: &mut Stations) {
        let ends = self.links[link.0].ends;
        for ((side, end), noise) in ends.into_iter().enumerate().zip(noise) {
            let noise = noise.or_else(|| {
                let fresh = self.fresh_noise(link, side);
                fresh.is_on().then(|| Box::new(fresh))
            });
            let peer = ends[1 - side];
            let cable = CableEnd {
                way: self.way(link, side, stations),
                peer: stations.place(peer.station),
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
            let (station, _) = stations.call(end.station);
            let port_state = station.adapter_mut().port_mut(end.port);
            let is_taken = port_state.cable.replace(cable).is_some();
            assert!(!is_taken, "{}-{} is taken", station.name(), end.port);
        }
        ends.iter().for_each(|end| self.restore_ways(end.station, stations));
    }

    /// Returns the noise from end `side` of a link in its initial state.
    fn fresh_noise(&self, link: LinkId, side: usize) -> Noise {
        let stream = (link.0 as u64) << 1 | side as u64;
        Noise::new(self.seed, stream, &self.links[link.0].wire)
    }

    /// Returns the timing of frames from end `side` of a link.
    fn way(&self, link: LinkId, side: usize, stations: &Stations) -> Way {
        let Link { ends, wire, .. } = &self.links[link.0];
        let [near, far] = [side, 1 - side]
            .map(|side| stations.get(ends[side].station).expect("a station of the link"));
        let fastest = cables(far).map(|cable| self.links[cable.rare.link.0].wire.rate).max();
        let stored = fastest.is_some_and(|rate| rate > wire.rate);
        let timings = (&near.adapter().profile().timing, &far.adapter().profile().timing);
        Way::new(
            Speed::new(wire.rate),
            wire.latency,
            timings.0,
            timings.1,
            near.adapter().profile().host,
            stored,
        )
    }

    /// Returns the stations at the far ends of a station's cables.
    pub(crate) fn peers(&self, station: &Station) -> Vec<usize> {
        let far = |cable: &CableEnd| self.links[cable.rare.link.0].ends[1 - cable.rare.side];
        cables(station).map(|cable| far(cable).station).collect()
    }

    /// Recomputes the timing of frames to a station. Store-and-forward depends on its fastest
    /// connected link.
    fn restore_ways(&mut self, station: usize, stations: &mut Stations) {
        self.lookahead = None;
        let (state, _) = stations.call(station);
        if !state.adapter().profile().timing.is_cut_through() {
            return;
        }
        let ends: Vec<(LinkId, usize)> =
            cables(state).map(|cable| (cable.rare.link, cable.rare.side)).collect();
        for (link, side) in ends {
            self.set_way(link, 1 - side, stations);
        }
    }

    /// Recomputes the timing of frames from end `side` of a link.
    fn set_way(&mut self, link: LinkId, side: usize, stations: &mut Stations) {
        let way = self.way(link, side, stations);
        self.with_end(link, side, stations, |cable| cable.way = way);
    }

    /// Returns end `side` of a link, unless it is pulled.
    pub(crate) fn end<'a>(
        &self,
        link: LinkId,
        side: usize,
        stations: &'a Stations,
    ) -> Option<&'a CableEnd> {
        let cable = stations.cable(self.links[link.0].ends[side]);
        cable.filter(|cable| cable.rare.link == link)
    }

    /// Changes end `side` of a link, unless it is pulled.
    fn with_end(
        &mut self,
        link: LinkId,
        side: usize,
        stations: &mut Stations,
        change: impl FnOnce(&mut CableEnd),
    ) {
        let end = self.links[link.0].ends[side];
        let port_state = stations.call(end.station).0.adapter_mut().port_mut(end.port);
        if let Some(cable) = port_state.cable.as_mut().filter(|cable| cable.rare.link == link) {
            change(cable);
        }
    }

    /// Returns the fates of the frames that end `side` of a link sent.
    pub(crate) fn fates(&self, link: LinkId, side: usize, stations: &Stations) -> Fates {
        let past = self.links[link.0].past.as_ref();
        let mut fates = past.map_or_else(Fates::default, |past| past[side]);
        if let Some(cable) = self.end(link, side, stations) {
            fates.add(&cable.fates_from_here());
        }
        if let Some(cable) = self.end(link, 1 - side, stations) {
            fates.add(&cable.fates_to_here());
        }
        fates
    }

    /// Recomputes the carrier of all links of a station.
    pub(crate) fn refresh_station(&mut self, station: usize, stations: &mut Stations) {
        let (state, _) = stations.call(station);
        let links: Vec<LinkId> = cables(state).map(|cable| cable.rare.link).collect();
        links.into_iter().for_each(|link| self.refresh_carrier(link, stations));
    }

    /// Recomputes the carrier of a link. It is up when the link is connected and intact and both
    /// ends have power. On a change, frames in flight are lost, pending `TxDone`s are cancelled,
    /// and the nodes get [`Input::Link`].
    fn refresh_carrier(&mut self, link: LinkId, stations: &mut Stations) {
        let state = &self.links[link.0];
        let ends = state.ends;
        let powered = |end: &WireEnd| stations.get(end.station).is_some_and(|s| s.node.is_on());
        let carrier = state.connected && !state.cut && ends.iter().all(powered);
        if carrier == state.carrier {
            return;
        }
        let in_flight = [0, 1].map(|side| self.fates(link, side, stations).in_flight);
        self.links[link.0].carrier = carrier;
        self.carriers += 1;
        let name = if carrier { self.carriers } else { 0 };
        for (side, lost) in in_flight.into_iter().enumerate() {
            self.with_end(link, side, stations, |cable| {
                cable.carrier = name;
                cable.rare.lost[Loss::Cut as usize] += lost;
            });
        }
        for end in ends {
            notify_carrier(end, carrier, stations);
        }
    }

    /// Changes the state of a link, in both directions unless the change says otherwise.
    pub(crate) fn change(&mut self, link: LinkId, change: LinkChange, stations: &mut Stations) {
        let state = &mut self.links[link.0];
        match change {
            LinkChange::Cut(cut) => {
                state.cut = cut;
                self.refresh_carrier(link, stations);
            }
            LinkChange::Silent(silent) => {
                state.silent = silent;
                for (side, silent) in silent.into_iter().enumerate() {
                    self.with_end(link, side, stations, |cable| cable.silent = silent);
                }
            }
            LinkChange::Disorder(disorder) => {
                self.with_noise(link, stations, |noise| noise.set_disorder(disorder));
            }
            LinkChange::Rate(rate) => {
                state.wire.rate = rate;
                let ends = state.ends;
                (0..2).for_each(|side| self.set_way(link, side, stations));
                ends.iter().for_each(|end| self.restore_ways(end.station, stations));
            }
            LinkChange::LossPpm(loss_ppm) => {
                state.wire.loss_ppm = loss_ppm;
                self.refresh_noise(link, stations);
            }
            LinkChange::BitErrorsPer1e15(errors) => {
                state.wire.bit_errors_per_1e15 = errors;
                self.refresh_noise(link, stations);
            }
            LinkChange::CountClasses { axon } => {
                for side in 0..2 {
                    let classes = Box::new(ClassBytes::new(axon));
                    self.with_end(link, side, stations, |cable| cable.classes = Some(classes));
                }
            }
        }
    }

    fn refresh_noise(&mut self, link: LinkId, stations: &mut Stations) {
        let wire = self.links[link.0].wire;
        self.with_noise(link, stations, |noise| noise.set(&wire));
    }

    /// Changes the noise of both directions of a link.
    fn with_noise(&mut self, link: LinkId, stations: &mut Stations, change: impl Fn(&mut Noise)) {
        for side in 0..2 {
            let fresh = self.fresh_noise(link, side);
            self.with_end(link, side, stations, |cable| {
                let noise = cable.rare.noise.get_or_insert_with(|| Box::new(fresh));
                change(noise);
                cable.noisy = noise.is_on();
            });
        }
    }

    /// Updates the place of the peer in every cable end, after stations have moved.
    pub(crate) fn introduce_peers(&mut self, stations: &mut Stations) {
        self.lookahead = None;
        for link in (0..self.links.len()).map(LinkId) {
            for side in 0..2 {
                let peer = stations.place(self.links[link.0].ends[1 - side].station);
                self.with_end(link, side, stations, |cable| cable.peer = peer);
            }
        }
    }

    /// Returns the lookahead between shards.
    pub(crate) fn lookahead(&mut self, stations: &Stations) -> &Lookahead {
        let known = self.lookahead.take().unwrap_or_else(|| self.find_lookahead(stations));
        self.lookahead.insert(known)
    }

    fn find_lookahead(&self, stations: &Stations) -> Lookahead {
        let mut lookahead = Lookahead::new(stations.shards().len());
        for (index, link) in self.links.iter().enumerate() {
            let shards = link.ends.map(|end| stations.place(end.station).shard);
            for side in 0..2 {
                let (near, far) = (shards[side], shards[1 - side]);
                if near != far
                    && let Some(cable) = self.end(LinkId(index), side, stations)
                {
                    lookahead.add(near, far, cable.way.lookahead());
                }
            }
        }
        lookahead
    }
}

/// Returns the cable ends at a station.
fn cables(station: &Station) -> impl Iterator<Item = &CableEnd> {
    station.adapter().ports().iter().filter_map(|port_state| port_state.cable.as_ref())
}

fn notify_carrier(end: WireEnd, carrier: bool, stations: &mut Stations) {
    let (station, common) = stations.call(end.station);
    station.free_wires(common);
    station.adapter_mut().cancel_tx_done(end.port);
    let port_state = station.adapter_mut().port_mut(end.port);
    port_state.is_free_at(Time::ZERO);
    (port_state.wire_free, port_state.handed_last) = (common.now, common.now);
    if station.node.is_on() {
        station.adapter_mut().record(end.port, What::Carrier(carrier), common);
        station.deliver(Input::Link { port: end.port, up: carrier }, common);
    }
}

#[cfg(test)]
mod tests {
    use crate::World;
    use crate::link::links::{LinkChange, LinkId, Loss};
    use axon_wire::Span;

    #[test]
    fn losses_of_a_link_that_is_not_connected_are_there_when_it_is() {
        let fabric = axon_fabric::samples::fat_tree(4);
        let mut world = World::new(&fabric, 1);
        world.run_for(Span::from_secs(1));
        let link = LinkId(0);
        let engine = world.engine_mut();
        let [a, b] = engine.links()[link.0].ends;
        engine.disconnect(link);
        engine.change_link(link, LinkChange::LossPpm(1_000_000));
        engine.reconnect(link, a, b);
        let delivered = engine.fates(link, 0).delivered;
        world.run_for(Span::from_secs(1));
        let fates = world.engine_mut().fates(link, 0);
        assert!(fates.lost[Loss::Noise as usize] > 0, "{fates:?}");
        assert_eq!(fates.delivered, delivered);
    }
}
