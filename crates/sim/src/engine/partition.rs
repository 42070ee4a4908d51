//! Partition of the stations into shards.
//!
//! Stations with a single link (hosts, the controller) join their neighbour. The others are
//! assigned shard by shard: starting at the edge of the remaining stations, the station with most
//! links to the shard is added until the shard has its share of all links. This keeps neighbours
//! together, so that most frames stay within a shard, and balances the load. The load is measured
//! from time to time; if it is uneven, stations are assigned anew by measured load.

use crate::engine::load::{self, Load};
use crate::engine::stations::Stations;
use crate::engine::threads;
use crate::link::cabling::Cabling;
use axon_wire::{Span, Time};
use std::collections::BinaryHeap;

/// Partition of the stations, and the use of threads.
#[derive(Debug)]
pub(crate) struct Partition {
    /// Load of each station, and the time of the next check.
    load: Load,
    /// Number of threads that can run at the same time.
    cores: usize,
    /// True if the last run ended with each shard on its own thread.
    beside: bool,
    /// Events per window from which threads are worthwhile.
    worth: u64,
}

impl Partition {
    /// Returns the partition into one shard.
    pub(crate) fn new() -> Partition {
        Partition { load: Load::default(), cores: 1, beside: false, worth: threads::WORTH }
    }

    /// Sets the events per window from which threads are worthwhile.
    #[cfg(test)]
    pub(crate) fn set_worth(&mut self, worth: u64) {
        self.worth = worth;
    }

    /// Spreads the stations over as many threads, at most one per station; over one if the
    /// lookahead is zero. Returns the number of threads.
    pub(crate) fn set_threads(
        &mut self,
        threads: usize,
        stations: &mut Stations,
        cabling: &mut Cabling,
    ) -> usize {
        let count = stations.iter().len();
        let shards = threads.clamp(1, count.max(1));
        if (stations.shards().len(), shards) != (1, 1) {
            let plan = plan(stations, cabling, shards, None);
            spread(stations, cabling, (shards, &plan));
        }
        if shards > 1 && cabling.lookahead(stations).least() == Span::ZERO {
            spread(stations, cabling, (1, &vec![0; count]));
        }
        self.load = Load::begin(stations.events_by_station(), stations.events());
        self.cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.beside = false;
        stations.shards().len()
    }

    /// Handles the events of several shards up to and at `end`.
    pub(crate) fn run(&mut self, end: Time, stations: &mut Stations, cabling: &mut Cabling) {
        // Events from cable and power changes since the last run.
        threads::deliver(stations.shards_mut());
        self.balance(stations, cabling);
        let lookahead = cabling.lookahead(stations);
        let settings = (self.worth, self.cores);
        threads::run(stations.shards_mut(), end, lookahead, settings, &mut self.beside);
    }

    /// Measures the load from time to time and spreads the stations anew over as many threads if it
    /// is uneven.
    fn balance(&mut self, stations: &mut Stations, cabling: &mut Cabling) {
        let total = stations.events();
        if !self.load.is_due(total) {
            return;
        }
        let done = self.load.look(stations.events_by_station(), total);
        let before: Vec<u32> = (0..done.len()).map(|number| stations.place(number).shard).collect();
        let mut shards = vec![0; stations.shards().len()];
        for (shard, done) in before.iter().zip(&done) {
            shards[*shard as usize] += done;
        }
        if load::is_uneven(&shards) {
            let plan = plan(stations, cabling, shards.len(), Some(&done));
            spread(stations, cabling, (shards.len(), &plan));
            if cabling.lookahead(stations).least() == Span::ZERO {
                spread(stations, cabling, (shards.len(), &before));
            }
        }
    }
}

/// Moves every station to its shard of `shards` by `plan`.
fn spread(stations: &mut Stations, cabling: &mut Cabling, (shards, plan): (usize, &[u32])) {
    stations.spread(shards, plan);
    cabling.introduce_peers(stations);
}

/// Returns the shard of each station. Shards are balanced by the load `done` of each station, or by
/// links without it.
fn plan(stations: &Stations, cabling: &Cabling, shards: usize, done: Option<&[u64]>) -> Vec<u32> {
    let peers: Vec<Vec<usize>> = stations.iter().map(|one| cabling.peers(one)).collect();
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
