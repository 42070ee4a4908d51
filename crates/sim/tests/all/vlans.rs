//! VLANs: access and trunk hosts reach those of their own VLAN and no others, with any tags they
//! send.

use crate::common::{await_addresses, fabric, states, take_all};
use axon_controller::dhcp::LeaseState;
use axon_node::Drop;
use axon_sim::apps::{Plan, RawPlan};
use axon_sim::links::WireEnd;
use axon_sim::{DataplaneKind, PingPlan, Setup, World};
use axon_wire::host_frame;
use axon_wire::vlan::{TagKind, VlanId, VlanTag};
use axon_wire::{MacAddr, PortNo, Span};
use std::net::Ipv4Addr;

/// VLAN 10: h1, and h2 tagged. VLAN 20: h3, h4 with the same addresses, and h2 tagged too. VLAN 30
/// leases addresses: h5, and h6 tagged. h7 and h8 are in none.
const FILE: &str = "name: vlans
topology:
  listed:
    switches: [s1, s2, s3]
    hosts:
      h1: {at: s1, ip: 10.0.0.5}
      h2: {at: s2, ip: 10.0.0.6}
      h3: {at: s2, ip: 10.0.0.5}
      h4: {at: s3, ip: 10.0.0.6}
      h5: s1
      h6: s3
      h7: s1
      h8: s3
    links: [[s1, s2], [s2, s3]]
timers: {hello: 20ms, heartbeat: 20ms, retry: 10ms}
multicast: {broadcast: true}
vlans:
- {id: 10, name: red, access: [h1], trunk: [h2]}
- {id: 20, access: [h3, h4], trunk: [h2]}
- {id: 30, access: [h5], trunk: [h6], dhcp: {subnet: 192.168.30.0/24}}
";

/// The VLAN that leases addresses.
const VLAN: VlanId = VlanId::new(30).expect("30 is a VLAN");

const PLANES: [DataplaneKind; 4] = [
    DataplaneKind::Software,
    DataplaneKind::Reference,
    DataplaneKind::Pipeline,
    DataplaneKind::Refusing,
];

fn world(dataplane: DataplaneKind) -> World {
    let fabric = fabric(FILE);
    let mut world = World::begin(&fabric, Setup { seed: 7, dataplane, ..Setup::default() });
    world.set_host_retry(Span::from_millis(100));
    await_addresses(&mut world);
    world
}

fn mac(world: &World, host: usize) -> MacAddr {
    world.fabric().hosts[host].mac
}

/// Number of these pings (host and address) that are answered.
fn answered(world: &mut World, pings: &[(usize, Ipv4Addr)], tries: u16) -> Vec<bool> {
    let interval = Span::from_millis(100);
    let ids: Vec<_> = pings
        .iter()
        .map(|&(from, to)| world.ping(from, PingPlan::until_reply(to, interval, tries)).unwrap())
        .collect();
    world.run_for(interval * u64::from(tries + 2));
    ids.iter().map(|&id| world.ping_stats(id).unwrap().received > 0).collect()
}

/// Asserts that no host has received a frame of a host in another VLAN.
fn assert_apart(world: &World) {
    let vlans = [&[0, 1][..], &[1, 2, 3], &[4, 5], &[6, 7]];
    for (host, of) in world.fabric().hosts.iter().enumerate() {
        let Some(node) = world.host(host) else { continue };
        assert_eq!(node.misdelivered(), 0, "{}", of.name);
        for (other, from) in world.fabric().hosts.iter().enumerate() {
            let together = vlans.iter().any(|vlan| vlan.contains(&host) && vlan.contains(&other));
            let came = node.senders().contains(&from.mac);
            assert!(!came || together, "a frame of {} came to {}", from.name, of.name);
        }
    }
}

#[test]
fn hosts_reach_their_own_vlan_with_and_without_tags_on_every_plane() {
    for dataplane in PLANES {
        let mut world = world(dataplane);
        let [five, six] = [5, 6].map(|last| Ipv4Addr::new(10, 0, 0, last));
        let leased = [4, 5].map(|host| world.address(host).expect("it was leased one"));
        assert!(leased.iter().all(|ip| ip.octets()[..3] == [192, 168, 30]), "{leased:?}");
        let [h7, h8] = [6, 7].map(|host| world.address(host).unwrap());
        let server = Ipv4Addr::new(10, 0, 0, 1);
        let own = [
            (0, six),
            (1, five),
            (2, six),
            (3, five),
            (4, leased[1]),
            (5, leased[0]),
            (6, h8),
            (7, h7),
            // The fabric's own address answers in each VLAN.
            (0, server),
            (1, server),
            (5, Ipv4Addr::new(192, 168, 30, 1)),
        ];
        let tries = if dataplane == DataplaneKind::Refusing { 30 } else { 5 };
        let reached = answered(&mut world, &own, tries);
        assert_eq!(reached, [true; 11], "{dataplane:?}: {}", states(&world));
        let others = [(0, leased[0]), (4, five), (6, six), (0, h7), (5, h8), (7, leased[1])];
        assert_eq!(answered(&mut world, &others, 5), [false; 6], "{dataplane:?}");
        // One MAC per address in each VLAN: each was answered by the host of its own VLAN.
        for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (6, 7)] {
            let senders = world.host(from).unwrap().senders();
            assert!(senders.contains(&mac(&world, to)), "{dataplane:?}: {from} {to}");
        }
        assert_apart(&world);
        take_all(&mut world);
    }
}

#[test]
fn a_controller_that_starts_anew_has_the_hosts_and_leases_of_vlans() {
    for dataplane in [DataplaneKind::Software, DataplaneKind::Reference, DataplaneKind::Pipeline] {
        let mut world = world(dataplane);
        let leased = [4, 5].map(|host| world.address(host).expect("it was leased one"));
        let macs = [4, 5].map(|host| mac(&world, host));
        world.run_for(Span::from_secs(1));
        let held = |world: &World| -> Vec<(Ipv4Addr, MacAddr)> {
            let of_30 = world.controller().unwrap().controller().vlans().get(VLAN).unwrap();
            let leases = of_30.dhcp().leases();
            let bound = leases.filter(|(_, lease)| lease.state == LeaseState::Bound);
            bound.map(|(ip, lease)| (ip, lease.holder.mac)).collect()
        };
        let mut all: Vec<(Ipv4Addr, MacAddr)> = leased.into_iter().zip(macs).collect();
        all.sort_unstable();
        assert_eq!(held(&world), all, "{dataplane:?}");
        // One of the hosts is silent: no switch could report it.
        let silent = world.layout().host_station(4);
        world.engine_mut().power_off(silent);
        world.start_controller();
        let restored = world.controller().unwrap().controller().restored();
        // h2 is known once in each of its VLANs.
        assert_eq!((restored.hosts >= 8, restored.refused), (true, 0), "{restored:?}");
        assert_eq!(held(&world), all, "{dataplane:?}: before any switch was heard");
        world.run_for(Span::from_secs(4));
        assert_eq!(held(&world), all, "{dataplane:?}");
        // The other one clears its cache, requests the address, and gets the answer of its own VLAN
        // and not that of the silent host.
        world.start_host(5);
        let limit = world.now() + Span::from_secs(10);
        assert!(world.run_until_true(limit, |world| world.address(5).is_some()));
        assert_eq!((world.address(5), held(&world)), (Some(leased[1]), all), "{dataplane:?}");
    }
}

fn tagged(frame: &[u8], tags: &[(TagKind, u16)]) -> Vec<u8> {
    let tags = tags.iter().map(|&(kind, vid)| VlanTag { kind, vid, ..VlanTag::default() }.emit());
    let mut frame = [&frame[..12], &tags.collect::<Vec<_>>().concat(), &frame[12..]].concat();
    frame.resize(frame.len().max(64), 0);
    frame
}

/// An IPv4 packet of an unknown protocol.
fn packet(to: MacAddr, from: MacAddr, word: &[u8]) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x88, 0xb5], word].concat();
    frame.resize(60, 0);
    frame
}

fn send(world: &mut World, host: usize, frames: Vec<Vec<u8>>) {
    let count = Some(3 * frames.len() as u64);
    let plan = RawPlan { frames, interval: Span::from_millis(5), count };
    world.with_host(host, |node, now| node.start(Plan::Raw(plan), now)).unwrap();
}

#[test]
fn double_tags_reserved_and_foreign_vlans_are_dropped_and_counted() {
    use TagKind::{Customer, Service};
    for dataplane in [DataplaneKind::Software, DataplaneKind::Reference, DataplaneKind::Pipeline] {
        let mut world = world(dataplane);
        let five = Ipv4Addr::new(10, 0, 0, 5);
        assert_eq!(answered(&mut world, &[(2, Ipv4Addr::new(10, 0, 0, 6))], 30), [true]);
        let reached = answered(&mut world, &[(1, five)], 30);
        assert_eq!(reached, [true], "{dataplane:?}: {}", states(&world));
        // h3 is in VLAN 20 without a tag; its victims are h1 of VLAN 10 and h8 of none.
        let from = mac(&world, 2);
        let hostile: Vec<Vec<u8>> = [0, 1, 7]
            .into_iter()
            .flat_map(|victim| {
                let plain = packet(mac(&world, victim), from, b"vlan");
                [
                    tagged(&plain, &[(Customer, 10)]),
                    tagged(&plain, &[(Customer, 20)]),
                    tagged(&plain, &[(Customer, 4095)]),
                    tagged(&plain, &[(Service, 10)]),
                    tagged(&plain, &[(Customer, 0), (Customer, 10)]),
                    tagged(&plain, &[(Customer, 20), (Customer, 10)]),
                    tagged(&plain, &[(Service, 20), (Customer, 10)]),
                ]
            })
            .collect();
        let sent = 3 * hostile.len() as u64;
        send(&mut world, 2, hostile);
        // h2 is in VLANs 10 and 20 by their tags, and h7 in none.
        let plain = packet(mac(&world, 0), mac(&world, 1), b"vlan");
        send(
            &mut world,
            1,
            vec![tagged(&plain, &[(Customer, 30)]), tagged(&plain, &[(Customer, 11)])],
        );
        let plain = packet(mac(&world, 0), mac(&world, 6), b"vlan");
        send(&mut world, 6, vec![tagged(&plain, &[(Customer, 10)]), plain]);
        world.run_for(Span::from_secs(1));
        let drops: u64 = (0..3)
            .map(|switch| {
                let counters = world.switch(switch).unwrap().telemetry(world.now()).plane.total;
                counters.dropped(Drop::ForeignVlan)
            })
            .sum();
        assert_eq!(drops, sent + 6 + 3, "{dataplane:?}");
        assert_apart(&world);
        take_all(&mut world);
    }
}

/// A router on a stick: one host with one MAC in two VLANs that have the same addresses.
#[test]
fn one_mac_in_two_vlans_over_a_trunk_has_the_neighbours_of_each() {
    for dataplane in [DataplaneKind::Software, DataplaneKind::Reference, DataplaneKind::Pipeline] {
        let mut world = world(dataplane);
        let station = world.layout().host_station(1);
        world.engine_mut().capture(WireEnd { station, port: PortNo(0) });
        let station = world.layout().host_station(3);
        world.engine_mut().capture(WireEnd { station, port: PortNo(0) });
        let stick = mac(&world, 1);
        let [five, nine] = [5, 9].map(|last| Ipv4Addr::new(10, 0, 0, last));
        // Its stack is in VLAN 10; in VLAN 20 the test requests the same address itself.
        let reached = answered(&mut world, &[(1, five)], 30);
        assert_eq!(reached, [true], "{dataplane:?}: {}", states(&world));
        let request = host_frame::request(stick, nine, MacAddr::BROADCAST, five);
        let frame = packet(mac(&world, 3), stick, b"to h4");
        let in_20 = |frame: &[u8]| tagged(frame, &[(TagKind::Customer, 20)]);
        send(&mut world, 1, vec![in_20(&request), in_20(&frame)]);
        world.run_for(Span::from_secs(1));
        assert_eq!(
            answered(&mut world, &[(1, five), (0, Ipv4Addr::new(10, 0, 0, 6))], 5),
            [true; 2]
        );
        let first = world.layout().host_station(0);
        let captured: Vec<_> = world.engine_mut().take_captured();
        let inbound = captured.iter().filter(|one| !one.outbound);
        let mut replies = Vec::new();
        let mut at_h4 = 0;
        for one in inbound {
            let tag = VlanTag::of_frame(&one.frame).map(|tag| tag.vid);
            let host = one.station - first;
            let from = MacAddr::source_of(&one.frame).unwrap();
            if host == 1 && tag == Some(20) {
                replies.push(from);
            }
            let is_marked = one.frame.windows(5).any(|bytes| bytes == b"to h4");
            if host == 3 && is_marked {
                assert_eq!((tag, from), (None, stick), "an access port has no tags");
                at_h4 += 1;
            }
        }
        assert!(replies.contains(&mac(&world, 2)), "{dataplane:?}: h3 has 10.0.0.5 in VLAN 20");
        assert!(!replies.contains(&mac(&world, 0)), "{dataplane:?}: h1 has it in VLAN 10");
        assert_eq!(at_h4, 3, "{dataplane:?}");
        assert_apart(&world);
        let controller = world.controller().unwrap().controller();
        let known =
            controller.vlans().iter().filter(|(_, one)| one.hosts().by_mac(stick).is_some());
        assert_eq!(known.count(), 2, "one MAC in two VLANs is two hosts");
    }
}

#[test]
fn hosts_of_a_vlan_make_their_addresses_of_its_own_prefix() {
    let text = FILE
        .replace("\nvlans:", "\nipv6: {prefix: 'fd00::/64'}\nvlans:")
        .replace("30, access", "30, ipv6: {prefix: 'fd30::/64'}, access");
    let mut world = World::begin(&fabric(&text), Setup { seed: 7, ..Setup::default() });
    world.set_host_retry(Span::from_millis(100));
    await_addresses(&mut world);
    let has = |world: &World, host: usize| world.nodes().address6(host).map(|ip| ip.segments()[0]);
    let limit = world.now() + Span::from_secs(10);
    world.run_until_true(limit, World::all_have_addresses);
    let prefixes: Vec<_> = (0..8).map(|host| has(&world, host)).collect();
    let (none, of_30) = (Some(0xfd00), Some(0xfd30));
    // VLANs 10 and 20 get no advertisements; h6 gets them with tags.
    assert_eq!(prefixes, [None, None, None, None, of_30, of_30, none, none]);
    let pings = [(4, 5), (5, 4), (6, 7), (4, 7), (7, 5)].map(|(from, to)| {
        let target = world.nodes().address6(to).expect("it has one");
        world.ping(from, PingPlan::until_reply(target, Span::from_millis(100), 20))
    });
    world.run_for(Span::from_secs(4));
    let answered = pings
        .map(|id| id.and_then(|id| world.ping_stats(id)).is_some_and(|stats| stats.received > 0));
    assert_eq!(answered, [true, true, true, false, false]);
    assert_apart(&world);
}
