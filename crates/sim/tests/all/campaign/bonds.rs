//! Bonds in the campaign: hosts of some seeds have a second port, mostly at another switch. Each
//! port loses its carrier or becomes silent and recovers, in addition to the other failures.
//! Numbered datagrams to and from these hosts arrive at their receivers only, and once.

use super::plan::{Act, Dice, FAILURES};
use crate::common::{Builder, mac};
use axon_fabric::model::{Bond, End};
use axon_sim::World;
use axon_sim::apps::{Plan, RawPlan};
use axon_sim::links::{LinkChange, WireEnd};
use axon_wire::{HopWidth, PortNo, Span, Time};
use std::collections::BTreeMap;

/// One in this many seeds that can have bonds has some.
const ONE_IN: usize = 2;
/// Ports of such a host.
const PORTS: u16 = 2;
/// Word that marks a datagram of this file.
const WORD: [u8; 6] = *b"bonded";
/// Interval between two datagrams of one sender.
const INTERVAL: Span = Span::from_millis(40);

/// Event at a port of a bond.
#[derive(Clone, Copy, Debug)]
pub enum Loss {
    /// The port loses carrier.
    Cut,
    /// The port has carrier, and no frame passes.
    Silent,
    /// The port works again.
    Mended,
}

/// Gives one or two hosts of some seeds a second port, and makes their ports fail. A fabric with
/// VLANs or classes has no bonds, and hops of four bits cannot name further ports. Small tables
/// masquerade addresses, which a bond does not do either. These hosts do not move.
pub fn draw(seed: u64, builder: &mut Builder, acts: &mut Vec<(Time, Act)>, few_routes: bool) {
    // With random numbers of its own, so that the rest of a seed is unchanged.
    let mut dice = Dice::new(u128::from(seed) << 32 | 17);
    let fabric = &builder.fabric;
    let plain = fabric.vlans.is_empty() && fabric.dcb.is_none() && !few_routes;
    if dice.below(ONE_IN) > 0 || !plain || fabric.hop_width == HopWidth::Four {
        return;
    }
    let mut bonded = vec![dice.below(fabric.hosts.len()), dice.below(fabric.hosts.len())];
    bonded.dedup();
    for &host in &bonded {
        let (name, at) = {
            let host = &builder.fabric.hosts[host];
            (host.name.clone(), End { switch: host.switch, port: host.port })
        };
        let second = builder.free_port(dice.below(builder.fabric.switches.len()));
        let (members, active) = (vec![at, second], dice.below(4) > 0);
        builder.fabric.bonds.push(Bond { name, host: Some(host), members, active });
        for _ in 0..1 + dice.below(3) {
            let member = dice.below(usize::from(PORTS));
            let loss = if dice.below(3) == 0 { Loss::Silent } else { Loss::Cut };
            let from = FAILURES.0 + dice.below((FAILURES.1 - FAILURES.0) as usize) as u64;
            let until = from + dice.below((FAILURES.1 - from) as usize + 1) as u64;
            let mut act = |at: u64, loss| {
                acts.push((Time::from_nanos(at * 1_000_000), Act::Bond(host, member, loss)));
            };
            act(from, loss);
            if dice.below(4) > 0 {
                act(until, Loss::Mended);
            }
        }
    }
    acts.retain(|(_, act)| !matches!(act, Act::Move(host, _) if bonded.contains(host)));
    acts.sort_by_key(|&(at, _)| at);
}

/// Breaks or restores a port of a bond.
pub fn lose(world: &mut World, host: usize, member: usize, loss: Loss) {
    let link = world.layout().bond_link(host, member);
    let (cut, silent) = match loss {
        Loss::Cut => (true, false),
        Loss::Silent => (false, true),
        Loss::Mended => (false, false),
    };
    world.engine_mut().change_link(link, LinkChange::Silent([silent; 2]));
    world.engine_mut().change_link(link, LinkChange::Cut(cut));
}

/// The datagrams of a run.
pub struct Datagrams {
    /// True if links duplicate frames, so that a datagram may arrive twice.
    doubled: bool,
    /// Number of arrivals by sender, receiver, number.
    had: BTreeMap<(u8, u8, u32), u32>,
}

/// Lets each host with a bond exchange datagrams with another one for this long. Captures the
/// frames sent to hosts, so no other check may capture them.
pub fn start(world: &mut World, seed: u64, doubled: bool, span: Span) -> Option<Datagrams> {
    let hosts = world.fabric().hosts.len();
    let bonded: Vec<usize> = world.fabric().bonds.iter().filter_map(|bond| bond.host).collect();
    if bonded.is_empty() {
        return None;
    }
    let mut dice = Dice::new(u128::from(seed) << 32 | 19);
    for &host in &bonded {
        let other = (host + 1 + dice.below(hosts - 1)) % hosts;
        for (from, to) in [(host, other), (other, host)] {
            let count = (span.ticks() / INTERVAL.ticks()) as u32;
            let frames = (0..count).map(|number| datagram(from, to, number)).collect();
            let plan = RawPlan { frames, interval: INTERVAL, count: Some(u64::from(count)) };
            world.with_host(from, |node, now| node.start(Plan::Raw(plan), now));
        }
    }
    for host in 0..hosts {
        let station = world.layout().host_station(host);
        for port in ports_of(world, host) {
            world.engine_mut().capture(WireEnd { station, port });
        }
    }
    Some(Datagrams { doubled, had: BTreeMap::new() })
}

/// Builds the IPv4 datagram of a sender with this number.
fn datagram(from: usize, to: usize, number: u32) -> Vec<u8> {
    let mut frame = [&mac(to).0[..], &mac(from).0].concat();
    frame.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 9, 253, 0, 0, 10, 0, 0, 10, 10, 0, 0, 11]);
    frame.extend(WORD);
    frame.extend([from as u8, to as u8]);
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

impl Datagrams {
    /// Checks that no datagram has arrived twice or at another host since the last call.
    ///
    /// # Errors
    /// The datagram that has.
    pub fn check(&mut self, world: &mut World) -> Result<(), String> {
        let first = world.layout().host_station(0);
        for one in world.engine_mut().take_captured().into_iter().filter(|one| !one.outbound) {
            let Some(at) = one.frame.windows(WORD.len()).position(|bytes| bytes == WORD) else {
                continue;
            };
            let (host, bytes) = (one.station - first, &one.frame[at + WORD.len()..]);
            let number = bytes[2..6].iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
            let times = self.had.entry((bytes[0], bytes[1], number)).or_default();
            *times += 1;
            let twice = *times > 1 && !self.doubled;
            if twice || host != usize::from(bytes[1]) {
                let (host, from, to) = (host + 1, bytes[0] + 1, bytes[1] + 1);
                let times = *times;
                return Err(format!(
                    "at {}: h{host} had {number} of h{from} to h{to}, which came {times} times",
                    one.at
                ));
            }
        }
        Ok(())
    }
}

/// Describes the ports of all bonds, for messages: whether the controller reaches their switches,
/// and the state of both ends of each.
pub fn describe(world: &World) -> String {
    let controlled = world.truth().controlled_switches();
    let known = world.controller().map(|node| node.controller().bonds_telemetry());
    let mut lines = Vec::new();
    for (number, bond) in world.fabric().bonds.iter().enumerate() {
        let states = known.as_ref().map(|bonds| &bonds[number].members);
        for (member, end) in bond.members.iter().enumerate() {
            let port = PortNo(member as u16);
            let host =
                bond.host.and_then(|host| world.host(host)).map(|host| host.bond_state(port));
            let state = states.map(|members| (members[member].state, members[member].mismatch));
            let reached = controlled.get(end.switch);
            lines.push(format!(
                "bond of {} at s{}-{}: host {host:?}, controller {state:?}, reached {reached:?}",
                bond.name,
                end.switch + 1,
                end.port
            ));
        }
    }
    lines.join("\n")
}

/// True if a host has a port at switches that are cut off from the controller, but not from each
/// other. They cannot detect that, so the host keeps using the port.
pub fn leads_astray(world: &World, host: usize) -> bool {
    let controlled = world.truth().controlled_switches();
    let bonds = world.fabric().bonds.iter().filter(|bond| bond.host == Some(host));
    let mut ends = bonds.flat_map(|bond| bond.members.iter().enumerate());
    ends.any(|(member, end)| {
        let link = &world.engine().links()[world.layout().bond_link(host, member).0];
        let has_neighbours = world
            .switch(end.switch)
            .is_some_and(|switch| switch.discovery().neighbours().next().is_some());
        link.carrier && has_neighbours && controlled.get(end.switch) == Some(&false)
    })
}

/// The ports of a host.
pub fn ports_of(world: &World, host: usize) -> impl Iterator<Item = PortNo> + use<> {
    (0..if has(world, host) { PORTS } else { 1 }).map(PortNo)
}

/// True if a host has a bond.
fn has(world: &World, host: usize) -> bool {
    world.fabric().bonds.iter().any(|bond| bond.host == Some(host))
}
