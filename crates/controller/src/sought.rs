//! Addresses being searched for, the requests that wait for them, and rate limits. See `seek.rs`.

use super::hosts::Place;
use super::topology::SwitchIndex;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_link::bucket::{Bucket, Rate};
use axon_wire::message::ArpRequest;
use axon_wire::{Incarnation, Span, Time};
use core::net::IpAddr;

/// Interval between rounds.
const ROUND: Span = Span::from_secs(1);
/// Number of rounds without an answer before an address counts as unused.
const ROUNDS: u32 = 3;
/// Time for which an address counts as unused.
const UNUSED: Span = Span::from_secs(4);
/// Time after the last request until an address is dropped from the table.
const FORGOTTEN: Span = Span::from_secs(5);
/// Maximum number of addresses in the table.
const SOUGHT_MAX: usize = 4_096;
/// Maximum number of requests that wait for one address. Others are repeated by their switch.
const WAITING_MAX: usize = 8;
/// Time for which a request waits; switches repeat theirs within this time.
const WAIT: Span = Span::from_secs(1);
/// Rate of rounds for the hosts of one port.
const OF_PORT: Rate = Rate { every: Span::from_millis(100), burst: 64 };
/// Rate of rounds for the hosts of one switch.
const OF_SWITCH: Rate = Rate { every: Span::from_millis(20), burst: 256 };
/// Rate of rounds for the whole fabric.
const OF_ALL: Rate = Rate { every: Span::from_millis(10), burst: 512 };

/// An address being searched for, or found to be unused.
#[derive(Clone, Debug, Default)]
struct Sought {
    /// Number of consecutive rounds.
    rounds: u32,
    /// Earliest time of the next round.
    again_at: Time,
    /// Waiting requests, with their arrival times.
    waiting: Vec<(Time, Incarnation, ArpRequest)>,
}

/// All addresses being searched for.
#[derive(Clone, Debug, Default)]
pub(super) struct Seeking {
    sought: BTreeMap<IpAddr, Sought>,
    /// Expiry of each address.
    ends: BTreeSet<(Time, IpAddr)>,
    ports: BTreeMap<Place, Bucket>,
    switches: BTreeMap<SwitchIndex, Bucket>,
    all: Bucket,
    /// Requests for addresses that were found.
    found: Vec<(Time, Incarnation, ArpRequest)>,
}

/// Result of a request for an unknown address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A round begins.
    Round,
    /// The address was queried for a short while ago.
    Before,
    /// The switch or the fabric exceeds its rate, or the table is full.
    Over,
}

impl Seeking {
    /// Handles a request of a host at `by` for an unknown address.
    pub(super) fn ask(&mut self, now: Time, by: Place, ip: IpAddr) -> Asked {
        self.age(now);
        if self.sought.get(&ip).is_some_and(|sought| now < sought.again_at) {
            return Asked::Before;
        }
        let of_port = self.ports.entry(by).or_default();
        if !of_port.has(now, OF_PORT) {
            return Asked::Over;
        }
        let of_switch = self.switches.entry(by.switch).or_default();
        let is_room = self.sought.len() < SOUGHT_MAX || self.sought.contains_key(&ip);
        if !of_switch.has(now, OF_SWITCH) || !self.all.has(now, OF_ALL) || !is_room {
            return Asked::Over;
        }
        of_port.take(now, OF_PORT);
        of_switch.take(now, OF_SWITCH);
        self.all.take(now, OF_ALL);
        let sought = self.sought.entry(ip).or_default();
        self.ends.remove(&(sought.again_at + FORGOTTEN, ip));
        sought.rounds = sought.rounds % ROUNDS + 1;
        let pause = if sought.rounds < ROUNDS { ROUND } else { ROUND + UNUSED };
        sought.again_at = now + pause;
        self.ends.insert((sought.again_at + FORGOTTEN, ip));
        Asked::Round
    }

    /// Stores a request until the address is found. A repeated request replaces the older one.
    pub(super) fn wait(&mut self, now: Time, ip: IpAddr, from: Incarnation, m: ArpRequest) {
        let Some(sought) = self.sought.get_mut(&ip) else { return };
        sought.waiting.retain(|(at, by, other)| {
            now.since(*at) < WAIT && (*by, other.port, other.id) != (from, m.port, m.id)
        });
        if sought.waiting.len() < WAITING_MAX {
            sought.waiting.push((now, from, m));
        }
    }

    /// Returns the addresses that requests wait for, as many as the fabric's rate allows now.
    pub(super) fn wanted(&mut self, now: Time) -> Vec<IpAddr> {
        let Seeking { sought, all, .. } = self;
        let waits = |sought: &Sought| sought.waiting.iter().any(|(at, ..)| now.since(*at) < WAIT);
        let wanted = sought.iter().filter(|(_, sought)| waits(sought)).map(|(&ip, _)| ip);
        let mut may_ask = |_: &IpAddr| {
            let has = all.has(now, OF_ALL);
            if has {
                all.take(now, OF_ALL);
            }
            has
        };
        wanted.take_while(|ip| may_ask(ip)).collect()
    }

    /// Records that an address has an owner.
    pub(super) fn has_owner(&mut self, ip: IpAddr) -> bool {
        let Some(sought) = self.sought.remove(&ip) else { return false };
        self.ends.remove(&(sought.again_at + FORGOTTEN, ip));
        self.found.extend(sought.waiting);
        true
    }

    /// Returns the next request whose address was found, without those that their switch has given
    /// up.
    pub(super) fn take_found(&mut self, now: Time) -> Option<(Incarnation, ArpRequest)> {
        while let Some((at, from, m)) = self.found.pop() {
            if now.since(at) < WAIT {
                return Some((from, m));
            }
        }
        None
    }

    /// Drops addresses without recent requests.
    fn age(&mut self, now: Time) {
        while let Some(&(end, ip)) = self.ends.first()
            && end <= now
        {
            self.ends.pop_first();
            self.sought.remove(&ip);
        }
        // Buckets that are not full are few, because the fabric's rate limits them.
        if self.ports.len() > SOUGHT_MAX {
            self.ports.retain(|_, bucket| !bucket.is_full(now));
        }
    }
}
