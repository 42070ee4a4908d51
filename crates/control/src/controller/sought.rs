//! The addresses that are being looked for, the requests that wait for them, and the rates of those
//! who ask; `seek.rs` says what for.

use super::hosts::Place;
use super::topology::SwitchIndex;
use crate::bucket::{Bucket, Rate};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::message::ArpRequest;
use axon_wire::{Incarnation, Span, Time};
use core::net::IpAddr;

/// From one round to the next.
const ROUND: Span = Span::from_secs(1);
/// Rounds without an answer before an address counts as unused.
const ROUNDS: u32 = 3;
/// For how long it does.
const UNUSED: Span = Span::from_secs(4);
/// For how long an address that nobody asks for any more is remembered.
const FORGOTTEN: Span = Span::from_secs(5);
/// Addresses that are remembered.
const SOUGHT_MAX: usize = 4_096;
/// Requests that wait for one address. All others are repeated.
const WAITING_MAX: usize = 8;
/// For how long a request waits: switches repeat theirs within this time.
const WAIT: Span = Span::from_secs(1);
/// Rounds for the hosts of one port.
const OF_PORT: Rate = Rate { every: Span::from_millis(100), burst: 64 };
/// Rounds for the hosts of one switch.
const OF_SWITCH: Rate = Rate { every: Span::from_millis(20), burst: 256 };
/// Rounds for the whole fabric.
const OF_ALL: Rate = Rate { every: Span::from_millis(10), burst: 512 };

/// An address that is being looked for, or was in vain.
#[derive(Clone, Debug, Default)]
struct Sought {
    /// Rounds in a row.
    rounds: u32,
    /// No round before.
    again_at: Time,
    /// Requests that wait for it, and when they came.
    waiting: Vec<(Time, Incarnation, ArpRequest)>,
}

/// All addresses that are being looked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Seeking {
    sought: BTreeMap<IpAddr, Sought>,
    /// When each of them is forgotten.
    ends: BTreeSet<(Time, IpAddr)>,
    ports: BTreeMap<Place, Bucket>,
    switches: BTreeMap<SwitchIndex, Bucket>,
    all: Bucket,
    /// Requests for addresses that were found.
    found: Vec<(Time, Incarnation, ArpRequest)>,
}

/// What a request for an unknown address comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A round begins.
    Round,
    /// The address was asked for a short while ago.
    Before,
    /// The switch or the fabric is over its rate, or too many addresses are remembered.
    Over,
}

impl Seeking {
    /// A request of a host at `by` for an address that nobody has.
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

    /// Keeps a request until the address is found. One that is repeated replaces the older one.
    pub(super) fn wait(&mut self, now: Time, ip: IpAddr, from: Incarnation, m: ArpRequest) {
        let Some(sought) = self.sought.get_mut(&ip) else { return };
        sought.waiting.retain(|(at, by, other)| {
            now.since(*at) < WAIT && (*by, other.port, other.id) != (from, m.port, m.id)
        });
        if sought.waiting.len() < WAITING_MAX {
            sought.waiting.push((now, from, m));
        }
    }

    /// The addresses that requests wait for, as many of them as the fabric may be asked for now.
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

    /// An address has an owner now.
    pub(super) fn has_owner(&mut self, ip: IpAddr) -> bool {
        let Some(sought) = self.sought.remove(&ip) else { return false };
        self.ends.remove(&(sought.again_at + FORGOTTEN, ip));
        self.found.extend(sought.waiting);
        true
    }

    /// The next request that has waited for an address that was found. Those whose switch has given
    /// up are left out.
    pub(super) fn take_found(&mut self, now: Time) -> Option<(Incarnation, ArpRequest)> {
        while let Some((at, from, m)) = self.found.pop() {
            if now.since(at) < WAIT {
                return Some((from, m));
            }
        }
        None
    }

    /// Forgets what nobody has asked for of late.
    fn age(&mut self, now: Time) {
        while let Some(&(end, ip)) = self.ends.first()
            && end <= now
        {
            self.ends.pop_first();
            self.sought.remove(&ip);
        }
        // Each that is not full has taken a token of the fabric's a while ago: there are few.
        if self.ports.len() > SOUGHT_MAX {
            self.ports.retain(|_, bucket| !bucket.is_full(now));
        }
    }
}
