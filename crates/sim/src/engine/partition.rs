//! Which station goes to which shard.
//!
//! In plain English: stations with one link only (hosts, the controller) go with their
//! neighbour. The others are given out shard by shard: beginning somewhere at the edge of
//! what is left, always take the station with most links to the shard so far, until the
//! shard has its share of all links. That keeps neighbours together, so that most frames stay
//! within a shard, and gives every shard about as much to do.

use crate::engine::Engine;
use crate::engine::place::Place;
use crate::engine::shard::Shard;
use crate::engine::station::Station;
use crate::engine::threads;
use crate::link::links::LinkId;
use axon_wire::Span;
use std::collections::BinaryHeap;

impl Engine {
    /// Spreads the stations over so many threads from now on, at least one and at most one
    /// for each station. What happens is the same, bit for bit. Returns how many threads it
    /// will be: one where some link between two shards takes no time at all, so that there is
    /// nothing that a shard could do without knowing what the others do.
    pub fn set_threads(&mut self, threads: usize) -> usize {
        let shards = threads.clamp(1, self.places.len().max(1));
        let plan = self.plan_shards(shards);
        self.spread(shards, &plan);
        if shards > 1 && self.lookahead() == Span::ZERO {
            self.spread(1, &vec![0; self.places.len()]);
        }
        self.shards.len()
    }

    /// The least time from a station's transmission to an event in another shard.
    pub(crate) fn lookahead(&mut self) -> Span {
        if let Some(known) = self.lookahead {
            return known;
        }
        let ids = (0..self.links.len()).flat_map(|link| [(LinkId(link), 0), (LinkId(link), 1)]);
        let crosses = |(link, side): (LinkId, usize)| {
            let [near, far] = [side, 1 - side].map(|side| self.links[link.0].ends[side].station);
            let apart = self.places[near].shard != self.places[far].shard;
            self.cable_end_at(link, side).filter(|_| apart).map(|cable| cable.way.lookahead())
        };
        // Without any link between shards they need not wait for one another.
        let least = ids.filter_map(crosses).min().unwrap_or(Span::from_secs(1));
        self.lookahead = Some(least);
        least
    }

    /// The shard of each station.
    fn plan_shards(&self, shards: usize) -> Vec<u32> {
        let peers: Vec<Vec<usize>> = self.stations().map(|station| self.peers(station)).collect();
        let leaf = |station: usize| peers[station].len() <= 1;
        let inner: Vec<usize> = (0..peers.len()).filter(|&station| !leaf(station)).collect();
        let links: usize = inner.iter().map(|&station| peers[station].len()).sum();
        let mut plan: Vec<Option<u32>> = vec![None; peers.len()];
        let mut placed = 0;
        for shard in 0..shards {
            let share = links * (shard + 1) / shards;
            let mut near: BinaryHeap<(usize, std::cmp::Reverse<usize>)> = BinaryHeap::new();
            while placed < share {
                let found = std::iter::from_fn(|| near.pop()).map(|(_, station)| station.0);
                let next = found.into_iter().find(|&station| plan[station].is_none());
                let next = next.or_else(|| inner.iter().copied().find(|&s| plan[s].is_none()));
                let Some(station) = next else { break };
                plan[station] = Some(shard as u32);
                placed += peers[station].len();
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

    /// Moves every station, and what is to come for it, to its shard.
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

    /// Writes into every cable end where its peer is kept now.
    fn introduce_peers(&mut self) {
        for link in (0..self.links.len()).map(LinkId) {
            for side in 0..2 {
                let peer = self.places[self.links[link.0].ends[1 - side].station];
                self.with_cable_end(link, side, |cable| cable.peer = peer);
            }
        }
    }
}
