//! Plugs and power: who is connected to whom, who lives, and who therefore has carrier.

use crate::engine::Engine;
use crate::engine::station::Body;
use crate::engine::trace::What;
use crate::link::classes::ClassBytes;
use crate::link::links::{Link, LinkId, Loss, WireEnd};
use crate::link::noise::Noise;
use crate::link::port::{Plug, Rare};
use crate::link::timing::{Speed, Timing, Way};
use axon_fabric::model::{Device, Wire};
use axon_plane::Input;
use axon_wire::{HopWidth, PortNo, Rate};

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
    fn way(&self, link: LinkId, side: usize) -> Way {
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
    fn restore_ways(&mut self, station: usize) {
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

    /// Breaks a link (both ends lose carrier) or mends it.
    pub fn set_cut(&mut self, link: LinkId, cut: bool) {
        self.links[link.0].cut = cut;
        self.refresh_carrier(link);
    }

    /// Makes a link swallow every frame while its ends keep carrier, or mends it.
    pub fn set_silent(&mut self, link: LinkId, silent: bool) {
        self.links[link.0].silent = silent;
        (0..2).for_each(|side| self.with_plug(link, side, |plug| plug.silent = silent));
    }

    /// Changes the rate of a link, in both directions, for all that is sent from now on. What is
    /// on the wire goes on as it was.
    pub fn set_rate(&mut self, link: LinkId, rate: Rate) {
        self.links[link.0].wire.rate = rate;
        let ends = self.links[link.0].ends;
        for side in 0..2 {
            if self.plug_at(link, 1 - side).is_some() {
                let way = self.way(link, side);
                self.with_plug(link, side, |plug| plug.way = way);
            }
        }
        ends.iter().for_each(|end| self.restore_ways(end.station));
    }

    /// Changes how many frames a link loses, per million.
    pub fn set_loss(&mut self, link: LinkId, loss_ppm: u32) {
        self.links[link.0].wire.loss_ppm = loss_ppm;
        self.refresh_noise(link);
    }

    /// Changes how many bits a link flips, per 10^15.
    pub fn set_bit_errors(&mut self, link: LinkId, per_1e15: u64) {
        self.links[link.0].wire.bit_errors_per_1e15 = per_1e15;
        self.refresh_noise(link);
    }

    fn refresh_noise(&mut self, link: LinkId) {
        let wire = self.links[link.0].wire;
        for side in 0..2 {
            self.with_plug(link, side, |plug| {
                plug.rare.noise.set(&wire);
                plug.noisy = plug.rare.noise.is_on();
            });
        }
    }

    /// Starts to count the bytes of a link by class, from nothing; `axon` says that the link
    /// joins Axons.
    pub fn count_classes(&mut self, link: LinkId, axon: bool) {
        for side in 0..2 {
            self.with_plug(link, side, |plug| plug.classes = Some(Box::new(ClassBytes::new(axon))));
        }
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

    /// Carrier is there when the link is plugged and whole and both ends have power. When
    /// that changes, frames under way are lost, no `TxDone` is owed, and the ends are told.
    fn refresh_carrier(&mut self, link: LinkId) {
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

    fn record(&mut self, station: usize, port: PortNo, what: What<'_>) {
        let at = self.places[station];
        let (station, common) = self.shards[at.shard as usize].call(at.slot);
        station.harness.record(port, what, common);
    }
}
