//! Groups in the campaign: with any failures, a stream arrives at no host that has not joined, at
//! none twice, and in the end at every connected member.

use super::bonds;
use super::plan::Dice;
use super::vlans;
use crate::common::{describe, mac};
use axon_sim::World;
use axon_sim::apps::{Plan, RawPlan};
use axon_sim::links::WireEnd;
use axon_wire::Span;
use axon_wire::membership::{self, reports};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// One in this many seeds has groups.
const ONE_IN: usize = 4;
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 7, 7, 7);
/// A word that other frames do not contain.
const WORD: &[u8; 8] = b"campaign";
/// Number of the first datagram sent after the last failure.
const LAST: u32 = 1 << 20;
/// Time that a member waits for the stream in the end, on links that lose frames.
const PATIENCE: Span = Span::from_secs(10);

/// Senders and members of a seed with groups.
pub struct Streams {
    senders: BTreeSet<usize>,
    members: BTreeSet<usize>,
    /// True if links duplicate frames, so that a member may get a datagram twice.
    doubled: bool,
    /// Number of arrivals by host, sender, number.
    had: BTreeMap<(usize, u8, u32), u32>,
}

/// Builds the IPv4 datagram of a sender with this number.
fn datagram(from: usize, number: u32) -> Vec<u8> {
    let mut frame = [&membership::mac_of(IpAddr::V4(GROUP)).0[..], &mac(from).0].concat();
    frame.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 9, 253, 0, 0, 10, 0, 0, 10]);
    frame.extend(GROUP.octets());
    frame.extend(WORD);
    frame.push(from as u8);
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// Lets a host send frames at an interval, in rotation, until it is off.
fn send(world: &mut World, host: usize, frames: Vec<Vec<u8>>, interval: Span) {
    let count = Some(frames.len() as u64);
    world.with_host(host, |host, now| {
        host.start(Plan::Raw(RawPlan { frames, interval, count }), now)
    });
}

/// Lets some hosts of some seeds join a group, and some send to it, during all failures. Tenants
/// capture the frames sent to hosts, too, so there are none in these seeds.
pub fn start(world: &mut World, seed: u64, doubled: bool, span: Span) -> Option<Streams> {
    // With random numbers of its own, so that the rest of a seed is unchanged.
    let mut dice = Dice::new(u128::from(seed) << 32 | 11);
    if dice.below(ONE_IN) > 0 || !world.fabric().policy.is_open() {
        return None;
    }
    let hosts = world.fabric().hosts.len();
    let members: BTreeSet<usize> = (0..hosts / 2).map(|_| dice.below(hosts)).collect();
    let senders: BTreeSet<usize> = (0..2).map(|_| dice.below(hosts)).collect();
    let streams = Streams { senders, members, doubled, had: BTreeMap::new() };
    streams.join(world, span.as_millis() as usize / 500);
    for &sender in &streams.senders {
        let frames = (0..span.as_millis() as u32 / 40).map(|number| datagram(sender, number));
        send(world, sender, frames.collect(), Span::from_millis(40));
    }
    for host in 0..hosts {
        let station = world.layout().host_station(host);
        for port in bonds::ports_of(world, host) {
            world.engine_mut().capture(WireEnd { station, port });
        }
    }
    Some(streams)
}

impl Streams {
    /// Lets members report `times` times, twice a second.
    fn join(&self, world: &mut World, times: usize) {
        for &host in &self.members {
            let ip = world.address(host).unwrap_or(Ipv4Addr::new(10, 0, 0, host as u8 + 10));
            let report = reports::igmp_v2((mac(host), ip), GROUP, true);
            send(world, host, vec![report; times], Span::from_millis(500));
        }
    }

    /// Checks that no host was sent data of groups that it has not joined, or any datagram twice,
    /// since the last call.
    pub fn check(&mut self, world: &mut World) -> Result<(), String> {
        let first = world.layout().host_station(0);
        for one in world.engine_mut().take_captured().into_iter().filter(|one| !one.outbound) {
            let Some(at) = one.frame.windows(WORD.len()).position(|bytes| bytes == WORD) else {
                continue;
            };
            let (to, bytes) = (one.station - first, &one.frame[at + WORD.len()..]);
            let number = bytes[1..5].iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
            let times = self.had.entry((to, bytes[0], number)).or_default();
            *times += 1;
            let twice = *times > 1 && !self.doubled;
            if twice || !self.members.contains(&to) {
                let times = *times;
                let (to, from) = (to + 1, bytes[0] + 1);
                return Err(format!("at {}: h{to} had {number} of h{from}, {times} times", one.at));
            }
        }
        Ok(())
    }

    /// Checks that every connected member receives data of every connected sender of its VLAN now.
    pub fn end(&mut self, world: &mut World) -> Result<(), String> {
        let hosts: BTreeSet<usize> = world.truth().connected_hosts().into_iter().collect();
        self.join(world, PATIENCE.as_millis() as usize / 500);
        let senders: Vec<usize> = self.senders.intersection(&hosts).copied().collect();
        let members = || self.members.intersection(&hosts).copied();
        let pairs = senders.iter().flat_map(|&from| members().map(move |to| (from, to)));
        let wanted =
            |&(from, to): &(usize, usize)| from != to && vlans::together(world, (from, to));
        let pairs: Vec<(usize, usize)> = pairs.filter(wanted).collect();
        for &sender in &senders {
            let frames = (0..200).map(|number| datagram(sender, LAST + number));
            send(world, sender, frames.collect(), Span::from_millis(50));
        }
        let limit = world.now() + PATIENCE;
        loop {
            world.run_for(Span::from_millis(500));
            self.check(world)?;
            let Some((from, to)) = self.missing(&pairs) else { return Ok(()) };
            if world.now() >= limit {
                let (from, to) = (from + 1, to + 1);
                let how = describe(world, from - 1, to - 1);
                return Err(format!("h{to} is a member and has nothing of h{from}\n{how}"));
            }
        }
    }

    /// Returns a sender and a member that has received none of its last datagrams.
    fn missing(&self, pairs: &[(usize, usize)]) -> Option<(usize, usize)> {
        pairs.iter().copied().find(|&(from, to)| {
            let range = (to, from as u8, LAST)..=(to, from as u8, u32::MAX);
            self.had.range(range).next().is_none()
        })
    }
}
