//! Partition of the stations into shards.
//!
//! Stations with a single link (hosts, the controller) join their neighbour. The others are
//! assigned shard by shard: starting at the edge of the remaining stations, the station with most
//! links to the shard is added until the shard has its share of all links. This keeps neighbours
//! together, so that most frames stay within a shard, and balances the load. The load is measured
//! from time to time; if it is uneven, stations are assigned anew by measured load.

use crate::engine::Engine;
use crate::engine::load::{self, Load};
use crate::engine::lookahead::Lookahead;
use crate::engine::place::Place;
use crate::engine::shard::Shard;
use crate::engine::station::Station;
use crate::engine::threads;
use crate::link::links::LinkId;
use axon_wire::Span;
use std::collections::BinaryHeap;

impl Engine {
    /// Spreads the stations over `threads` threads, clamped to between one and the number of
    /// stations. The results are the same, bit for bit. Returns the number of threads used. It is
    /// one if some link between two shards has no delay, which leaves no lookahead.
    pub fn set_threads(&mut self, threads: usize) -> usize {
        let shards = threads.clamp(1, self.places.len().max(1));
        if let ([shard], 1) = (&mut self.shards[..], shards) {
            shard.common.written = self.trace.is_written();
        } else {
            let plan = self.plan_shards(shards, None);
            self.spread(shards, &plan);
        }
        if shards > 1 {
            let lookahead = self.take_lookahead();
            match lookahead.least() {
                Span::ZERO => self.spread(1, &vec![0; self.places.len()]),
                _ => self.lookahead = Some(lookahead),
            }
        }
        self.load = Load::begin(self.station_events(), self.events());
        self.shards.len()
    }

    /// Measures the load from time to time and spreads the stations anew over as many threads if it
    /// is uneven.
    pub(crate) fn balance(&mut self) {
        if !self.load.is_due(self.events()) {
            return;
        }
        let total = self.events();
        let done = self.load.look(self.station_events(), total);
        let mut shards = vec![0; self.shards.len()];
        for (place, done) in self.places.iter().zip(&done) {
            shards[place.shard as usize] += done;
        }
        if load::is_uneven(&shards) {
            let before: Vec<u32> = self.places.iter().map(|place| place.shard).collect();
            let plan = self.plan_shards(shards.len(), Some(&done));
            self.spread(shards.len(), &plan);
            let lookahead = self.take_lookahead();
            match lookahead.least() {
                Span::ZERO => self.spread(shards.len(), &before),
                _ => self.lookahead = Some(lookahead),
            }
        }
    }

    fn station_events(&self) -> Vec<u64> {
        self.stations().map(|station| station.adapter.trace.events()).collect()
    }

    /// Takes the lookahead between shards; the caller puts it back.
    pub(crate) fn take_lookahead(&mut self) -> Lookahead {
        if let Some(known) = self.lookahead.take() {
            return known;
        }
        let mut lookahead = Lookahead::new(self.shards.len());
        for link in (0..self.links.len()).map(LinkId) {
            for side in 0..2 {
                let ends = &self.links[link.0].ends;
                let [near, far] =
                    [side, 1 - side].map(|side| self.places[ends[side].station].shard);
                if let (true, Some(cable)) = (near != far, self.cable_end_at(link, side)) {
                    lookahead.add(near, far, cable.way.lookahead());
                }
            }
        }
        lookahead
    }

    /// Returns the shard of each station. Shards are balanced by the load `done` of each station,
    /// or by links without it.
    fn plan_shards(&self, shards: usize, done: Option<&[u64]>) -> Vec<u32> {
        let peers: Vec<Vec<usize>> = self.stations().map(|station| self.peers(station)).collect();
        let leaf = |station: usize| peers[station].len() <= 1;
        let inner: Vec<usize> = (0..peers.len()).filter(|&station| !leaf(station)).collect();
        let weight = |station: usize| match done {
            None => peers[station].len() as u64,
            Some(done) => {
                let leaves = peers[station].iter().filter(|&&peer| leaf(peer));
                1 + done[station] + leaves.map(|&peer| done[peer]).sum::<u64>()
            }
        };
        let whole: u64 = inner.iter().map(|&station| weight(station)).sum();
        let mut plan: Vec<Option<u32>> = vec![None; peers.len()];
        let mut placed = 0;
        for shard in 0..shards as u64 {
            let share = whole * (shard + 1) / shards as u64;
            let mut near: BinaryHeap<(usize, std::cmp::Reverse<usize>)> = BinaryHeap::new();
            while placed < share {
                let found = std::iter::from_fn(|| near.pop()).map(|(_, station)| station.0);
                let next = found.into_iter().find(|&station| plan[station].is_none());
                let next = next.or_else(|| inner.iter().copied().find(|&s| plan[s].is_none()));
                let Some(station) = next else { break };
                plan[station] = Some(shard as u32);
                placed += weight(station);
                for &peer in peers[station].iter().filter(|&&peer| !leaf(peer)) {
                    let ties = peers[peer].iter().filter(|&&p| plan[p] == Some(shard as u32));
                    near.push((ties.count(), std::cmp::Reverse(peer)));
                }
            }
        }
        for station in 0..peers.len() {
            if plan[station].is_none() {
                plan[station] = peers[station].first().and_then(|&peer| plan[peer]);
            }
        }
        plan.into_iter().map(|shard| shard.unwrap_or(0)).collect()
    }

    fn peers(&self, station: &Station) -> Vec<usize> {
        let cables =
            station.adapter.ports.iter().filter_map(|port_state| port_state.cable.as_ref());
        cables
            .map(|cable| self.links[cable.rare.link.0].ends[1 - cable.rare.side].station)
            .collect()
    }

    /// Moves every station and its events to its shard.
    fn spread(&mut self, shards: usize, plan: &[u32]) {
        let fresh = |number| {
            let mut shard = Shard::new(number as u32, self.trace.is_written());
            shard.common.now = self.now;
            shard.common.outbox = (0..shards).map(|_| Vec::new()).collect();
            shard
        };
        threads::deliver(&mut self.shards);
        let old = std::mem::replace(&mut self.shards, (0..shards).map(fresh).collect());
        let (mut stations, mut events) = (Vec::new(), Vec::new());
        for mut shard in old {
            self.shards[0].events += shard.events;
            self.shards[0].common.packet_hops += shard.common.packet_hops;
            self.shards[0].common.lines.append(&mut shard.common.lines);
            self.shards[0].common.notes.append(&mut shard.common.notes);
            for next in &mut self.shards {
                next.common.watched |= shard.common.watched;
                next.common.without = shard.common.without;
            }
            while let Some((key, event)) = shard.common.queue.pop() {
                events.push((shard.stations[event.station as usize].adapter.number, key, event));
            }
            stations.append(&mut shard.stations);
        }
        stations.sort_by_key(|station| station.adapter.number);
        for shard in &mut self.shards {
            let number = shard.common.number;
            let count = plan.iter().filter(|&&of| of == number).count();
            shard.stations.reserve_exact(count);
        }
        for (number, station) in stations.into_iter().enumerate() {
            let shard = &mut self.shards[plan[number] as usize];
            self.places[number] =
                Place { shard: shard.common.number, slot: shard.stations.len() as u32 };
            shard.add(station);
        }
        for (number, key, mut event) in events {
            let place = self.places[number as usize];
            event.station = place.slot;
            self.shards[place.shard as usize].common.queue.push(key, event);
        }
        self.lookahead = None;
        self.introduce_peers();
    }

    /// Updates the place of the peer in every cable end.
    fn introduce_peers(&mut self) {
        for link in (0..self.links.len()).map(LinkId) {
            for side in 0..2 {
                let peer = self.places[self.links[link.0].ends[1 - side].station];
                self.with_cable_end(link, side, |cable| cable.peer = peer);
            }
        }
    }
}
