//! The controllers of VLANs: what the next incarnation has of each.

use crate::client::*;
use crate::controller;
use crate::kept::{Kept, keep};
use crate::one_switch::{self, SWITCH};
use axon_controller::Effect;
use axon_controller::config::{ControllerConfig, VlanConfig};
use axon_controller::vlans::Controllers;
use axon_link::config::ServerIdentity;
use axon_node::{KeyInVlan, PortVlans, StoreKey, Stored};
use axon_wire::message::{HostFrame, Item, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{PortNo, Span, Time};

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
    all: Controllers,
    store: Kept,
    now: Time,
}

impl World {
    fn new() -> World {
        let all = Controllers::new(&config(), 16);
        let mut world = World { all, store: Kept::new(), now: Time::ZERO };
        world.meet();
        world
    }

    fn meet(&mut self) {
        let (reverse, hello) = (one_switch::reverse(), one_switch::hello());
        self.call(|all, now, out| all.controller_hello(now, SWITCH, &reverse, &hello, out));
    }

    /// Calls the controllers, and keeps what they say.
    fn call(
        &mut self,
        call: impl FnOnce(&mut Controllers, Time, &mut Vec<(VlanId, Effect)>),
    ) -> Vec<(VlanId, Effect)> {
        let mut out = Vec::new();
        call(&mut self.all, self.now, &mut out);
        self.all.keep(&mut out);
        let mut changes = out.iter().map(|(_, effect)| effect.clone()).collect();
        keep(&mut self.store, &mut changes);
        out
    }

    /// The next incarnation, with this configuration, has what is in the store.
    fn restart(&mut self, config: &ControllerConfig) {
        self.all = Controllers::new(config, 16);
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
        let hosts = self.all.get(vlan(id))?.hosts();
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
