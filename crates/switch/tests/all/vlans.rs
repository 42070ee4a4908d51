//! VLANs at the controller: what the next incarnation has of each, and what they share.

use crate::client::*;
use crate::controller;
use crate::kept::{Kept, keep};
use crate::one_switch::{self, SWITCH};
use axon_controller::config::{ControllerConfig, VlanConfig};
use axon_controller::router::{Flow, Router, ShortestPaths, Step};
use axon_controller::topology::Graph;
use axon_controller::{Controller, Effect, Effects};
use axon_link::config::ServerIdentity;
use axon_node::{HostPair, KeyInVlan, PolicyChange, PortVlans, StoreKey, Stored, Subject};
use axon_wire::message::{
    ArpRequest, ControllerHello, HostFrame, Item, Message, Peer, PortState, Role, Target,
};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, NodeId, PortNo, Span, Time};
use std::sync::{Arc, Mutex};

fn vlan(id: u16) -> VlanId {
    VlanId::new(id).unwrap()
}

/// Ports 1 to 3 are in VLAN 10, 4 to 6 in VLAN 20; both lease the same address, and only that. Port
/// 7 is in none.
fn config() -> ControllerConfig {
    let mut config = controller::config();
    let only = ip(100);
    let dhcp = axon_controller::config::DhcpConfig {
        pool_first: only,
        pool_last: only,
        ..config.dhcp.clone()
    };
    let server = ServerIdentity { mac: SERVER_MAC, ip: SERVER };
    let one = |id| VlanConfig { vlan: vlan(id), server, dhcp: Some(dhcp.clone()) };
    config.vlans.vlans = vec![one(10), one(20)];
    let port = |port: u16| {
        let untagged = if port < 4 { vlan(10) } else { vlan(20) };
        ((SWITCH.node, PortNo(port)), PortVlans { untagged, tagged: Vec::new() })
    };
    config.vlans.ports = (1..7).map(port).collect();
    config
}

struct World {
    all: Controller,
    store: Kept,
    now: Time,
}

impl World {
    fn new() -> World {
        let all = Controller::new(&config(), 16);
        let mut world = World { all, store: Kept::new(), now: Time::ZERO };
        world.meet();
        world
    }

    fn meet(&mut self) {
        let (reverse, hello) = (one_switch::reverse(), one_switch::hello());
        self.call(|all, now, out| all.controller_hello(now, SWITCH, reverse, hello, out));
    }

    /// Calls the controllers, and keeps what they say.
    fn call(&mut self, call: impl FnOnce(&mut Controller, Time, &mut Effects)) -> Effects {
        let mut out = Vec::new();
        call(&mut self.all, self.now, &mut out);
        self.all.keep(&mut out);
        let mut changes = out.iter().map(|(_, effect)| effect.clone()).collect();
        keep(&mut self.store, &mut changes);
        out
    }

    /// The next incarnation, with this configuration, has what is in the store.
    fn restart(&mut self, config: &ControllerConfig) {
        self.all = Controller::new(config, 16);
        let stored: Vec<Stored> = self.store.values().cloned().collect();
        self.call(|all, now, out| all.restore(now, &stored, out));
    }

    /// A client whose number is that of its port says something; what it is answered.
    fn say(&mut self, id: u16, client: &Client) -> Option<Reply> {
        let port = PortNo(client.mac.0[5].into());
        let message = Message::DhcpRelay(HostFrame { port, frame: client.frame() });
        let out = self.call(|all, now, out| {
            assert!(all.request(now, SWITCH, (vlan(id), message), out));
        });
        out.into_iter().find_map(|effect| match effect {
            (of, Effect::Routed { message: Message::HostFrame(m), .. }) if of == vlan(id) => {
                Some(Reply::parse(&m.frame))
            }
            (_, Effect::Routed { message, .. }) => panic!("{message:?}"),
            _ => None,
        })
    }

    fn lease(&mut self, id: u16, host: u8) -> Option<std::net::Ipv4Addr> {
        let address = self.say(id, &client(host, smoltcp::wire::DhcpMessageType::Discover))?.yiaddr;
        let reply = self.say(id, &selecting(host, address))?;
        (reply.kind == smoltcp::wire::DhcpMessageType::Ack).then_some(address)
    }

    fn seen(&mut self, id: u16, host: u8) {
        let (port, ips) = (PortNo(host.into()), vec![ip(100).into()]);
        let seen = (vlan(id), Item::HostSeen { port, mac: mac(host), ips });
        self.call(|all, now, out| all.item(now, SWITCH, seen, out));
    }

    /// Whose the address is in a VLAN.
    fn owner(&self, id: u16) -> Option<axon_wire::MacAddr> {
        let hosts = self.all.vlans().get(vlan(id))?.hosts();
        Some(hosts.get(hosts.by_ip(ip(100).into())?)?.mac)
    }
}

#[test]
fn the_next_incarnation_knows_hosts_and_leases_of_each_vlan() {
    let mut world = World::new();
    assert_eq!((world.lease(10, 1), world.lease(20, 4)), (Some(ip(100)), Some(ip(100))));
    world.seen(10, 1);
    world.seen(20, 4);
    let kept: Vec<StoreKey> = world.store.keys().copied().collect();
    let of = |id, host| {
        [KeyInVlan::Host(mac(host)), KeyInVlan::Lease(ip(100))]
            .map(|key| StoreKey::InVlan(vlan(id), key))
    };
    assert_eq!(kept, [of(10, 1), of(20, 4)].concat());
    world.now += Span::from_secs(100);
    world.restart(&config());
    let restored = world.all.restored();
    assert_eq!((restored.hosts, restored.hosts_provisional, restored.leases), (2, 2, 2));
    assert_eq!(restored.refused, 0);
    // Before any switch was heard, and then.
    for _ in 0..2 {
        assert_eq!((world.owner(10), world.owner(20)), (Some(mac(1)), Some(mac(4))));
        world.meet();
    }
    // Nobody else is given it, and whoever has it renews it.
    assert_eq!((world.lease(10, 2), world.lease(20, 5)), (None, None));
    world.seen(10, 2);
    assert_eq!(world.owner(10), Some(mac(1)));
    let renewed = world.say(10, &renewing(1, ip(100))).unwrap();
    assert_eq!(renewed.kind, smoltcp::wire::DhcpMessageType::Ack);
}

#[test]
fn what_is_of_a_vlan_that_its_port_is_not_in_any_more_is_given_up() {
    let mut world = World::new();
    world.lease(10, 1);
    world.lease(20, 4);
    let mut changed = config();
    changed.vlans.vlans.remove(1);
    changed
        .vlans
        .ports
        .insert((SWITCH.node, PortNo(1)), PortVlans { untagged: VlanId::NONE, tagged: Vec::new() });
    let before = world.store.len() as u64;
    world.restart(&changed);
    let restored = world.all.restored();
    assert_eq!((restored.hosts, restored.leases, restored.refused), (0, 0, before));
    assert_eq!(world.store.len(), 0);
}

#[test]
fn an_allowed_pair_reaches_each_other_only_if_it_does_in_each_vlan_of_both() {
    let mut world = World::new();
    let seen = |world: &mut World, id, host, port| {
        let seen = Item::HostSeen { port: PortNo(port), mac: mac(host), ips: Vec::new() };
        world.call(|all, now, out| all.item(now, SWITCH, (vlan(id), seen), out));
    };
    let change = |world: &mut World, change| {
        let mut done = None;
        world.call(|all, now, out| done = all.change_policy(now, change, out).ok());
        done.unwrap().reach
    };
    let allow = PolicyChange::Pair(HostPair::of(mac(1), mac(2)), true);
    seen(&mut world, 10, 1, 1);
    seen(&mut world, 20, 2, 5);
    assert!(!change(&mut world, allow), "without a common VLAN");
    seen(&mut world, 10, 2, 2);
    seen(&mut world, 20, 1, 4);
    assert!(change(&mut world, allow));
    for port in [2, 5] {
        let quarantine =
            |on| PolicyChange::Quarantine(Subject::Port(SWITCH.node, PortNo(port)), on);
        change(&mut world, quarantine(true));
        assert!(!change(&mut world, allow), "at port {port}, in one VLAN");
        change(&mut world, quarantine(false));
        assert!(change(&mut world, allow));
    }
}

/// A router that counts the changes of the graph, and the routes placed on its links.
#[derive(Clone, Debug, Default)]
struct Counting {
    inner: ShortestPaths,
    counts: Arc<Mutex<[usize; 2]>>,
}

impl Router for Counting {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        self.inner.path(graph, flow, path)
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        &mut self.inner
    }

    fn changed(&mut self, _: &Graph) -> bool {
        self.counts.lock().unwrap()[0] += 1;
        false
    }

    fn placed(&mut self, _: &[Step]) {
        self.counts.lock().unwrap()[1] += 1;
    }
}

/// Switches 1 and 2, with a host of each of these VLANs at port 1, meet the controller, and their
/// link fails. Between the two, one host of each VLAN requests the other. Returns how many changes
/// the router saw, how many routes were placed on it, and how many effects the events had.
fn link_events(vlans: u16) -> ([usize; 2], usize) {
    let mut config = ControllerConfig { backups: false, ..controller::config() };
    let server = ServerIdentity { mac: SERVER_MAC, ip: SERVER };
    let one = |id| VlanConfig { vlan: vlan(id), server, dhcp: None };
    config.vlans.vlans = (1..=vlans).map(one).collect();
    let tagged: Vec<VlanId> = (1..=vlans).map(vlan).collect();
    let port = |node| {
        let vlans = PortVlans { untagged: VlanId::NONE, tagged: tagged.clone() };
        ((NodeId(node), PortNo(1)), vlans)
    };
    config.vlans.ports = [1, 2].map(port).into();
    let (router, now) = (Counting::default(), Time::ZERO);
    let counts = router.counts.clone();
    let mut all = Controller::with_router(&config, 16, Box::new(router));
    let from = |node| Incarnation { node: NodeId(node), number: 1 };
    let hello = |all: &mut Controller, node, version, is_up: bool, out: &mut Effects| {
        let there = NodeId(3 - node);
        let link = Peer::Axon { node: there, port: PortNo(0), role: Role::Switch };
        let mut ports = vec![PortState { port: PortNo(1), peer: Peer::Host }];
        ports.extend(is_up.then_some(PortState { port: PortNo(0), peer: link }));
        let hello = ControllerHello { version, nonce: 1, ports };
        all.controller_hello(now, from(node), Hops::from([0, PortNo::CONTROL.0]), hello, out);
    };
    let (mut out, mut other) = (Vec::new(), Vec::new());
    [1, 2].into_iter().for_each(|node| hello(&mut all, node, 1, true, &mut out));
    for id in 1..=vlans {
        for node in [1, 2] {
            let (port, ips) = (PortNo(1), Vec::new());
            let seen = Item::HostSeen { port, mac: mac(node as u8), ips };
            all.item(now, from(node), (vlan(id), seen), &mut other);
        }
        let (port, target, source_ip) = (PortNo(1), Target::Mac(mac(2)), None);
        let request = ArpRequest { id: 1, port, source_mac: mac(1), source_ip, target, hint: None };
        all.request(now, from(1), (vlan(id), Message::ArpRequest(request)), &mut other);
    }
    assert_eq!(all.counters().arp_answered, u64::from(vlans));
    hello(&mut all, 1, 2, false, &mut out);
    // Each VLAN has both of its routes removed.
    let is_removal =
        |effect: &Effect| matches!(effect, Effect::Command { item: Item::RemoveRoute { .. }, .. });
    let removals = out.extract_if(.., |(_, effect)| is_removal(effect)).count();
    assert_eq!(removals, 2 * usize::from(vlans));
    let counts = *counts.lock().unwrap();
    (counts, out.len())
}

#[test]
fn a_link_event_is_handled_once_however_many_vlans_there_are_and_one_router_has_all_routes() {
    let ([changes, _], effects) = link_events(0);
    for vlans in [1, 100] {
        let ([changed, placed], sent) = link_events(vlans);
        assert_eq!((changed, sent), (changes, effects), "{vlans}");
        // Each route is placed for its path, and again before it is removed for want of one.
        assert_eq!(placed, 4 * usize::from(vlans));
    }
}
