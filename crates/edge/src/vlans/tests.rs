//! Tests of two VLANs at one port.

use super::*;
use crate::config::{EdgeVlan, PortPolicy};
use crate::flows::Placement;
use crate::testing::*;
use axon_node::{PortKind, RouteTicket};
use axon_wire::FrameBuf;
use axon_wire::message::Item;
use axon_wire::vlan::{self, VlanTag};

const PORT: PortNo = PortNo(0);

/// A switch whose first port is in VLANs 10 and 20, with a host of the same MAC in each.
struct Trunk {
    edges: Edges,
    device: TestDevice,
    tickets: Vec<RouteTicket>,
}

fn vlans() -> [VlanId; 2] {
    [10, 20].map(|id| VlanId::new(id).unwrap())
}

impl Trunk {
    fn new(routes: usize) -> Trunk {
        let mut config = Bench::config(1000, 4);
        let tagged = PortVlans { untagged: VlanId::NONE, tagged: vlans().into() };
        config.ports = [PortPolicy { vlans: Some(tagged.into()), ..PortPolicy::default() }].into();
        config.vlans = vlans().map(|id| EdgeVlan { id, server: SERVER, ipv6: None }).into();
        let mut device = TestDevice::new(routes);
        device.kinds[0] = PortKind::Host;
        let edges = Edges::new(&config, &device.capabilities());
        let mut trunk = Trunk { edges, device, tickets: Vec::new() };
        trunk.call(|edges, now, ports, out| {
            edges.with_all(now, ports, out, |mut call| call.port_changed(PORT))
        });
        trunk.call(|edges, now, ports, out| {
            edges.controller_changed(now, Some(CONTROLLER), ports, out);
        });
        for id in vlans() {
            let mut frame = FrameBuf::new(&arp_request(1, 1));
            let tag = VlanTag { vid: id.value(), ..VlanTag::default() };
            vlan::insert(&mut frame, tag).unwrap();
            trunk.call(|edges, now, ports, out| {
                let (of, fate) = edges.host_frame(now, PORT, frame.bytes(), ports, out);
                assert!(of == id && fate.is_ok());
            });
        }
        trunk
    }

    /// Calls the edges and carries out their changes; returns the other requests.
    fn call(
        &mut self,
        call: impl FnOnce(&mut Edges, Time, &TestDevice, &mut Vec<(VlanId, Effect)>),
    ) -> Vec<(VlanId, Effect)> {
        let (mut out, now) = (Vec::new(), Time::ZERO);
        call(&mut self.edges, now, &self.device, &mut out);
        let mut left = Vec::new();
        while !out.is_empty() {
            for (vlan, effect) in core::mem::take(&mut out) {
                let Effect::Route { ticket, change } = effect else {
                    left.push((vlan, effect));
                    continue;
                };
                self.tickets.push(ticket);
                let answer = self.device.change(ticket, &change);
                self.edges.route_changed(now, answer, &self.device, &mut out);
            }
        }
        left
    }

    fn item(&mut self, vlan: VlanId, item: Item) {
        self.call(|edges, now, ports, out| {
            edges.with((now, vlan), ports, out, |mut call| call.item(item));
        });
    }

    fn set(&mut self, vlan: VlanId, number: u64) {
        let (destination, route) = (mac(9), Route::from([number as u16]));
        let stamp = stamp(number);
        let item = Item::SetRoute { port: PORT, destination, source: None, stamp, route };
        self.item(vlan, item);
    }

    fn remove(&mut self, vlan: VlanId, number: u64) {
        let (destination, stamp) = (mac(9), stamp(number));
        let item = Item::RemoveRoute { port: PORT, destination, source: None, stamp };
        self.item(vlan, item);
    }

    /// Returns where the route to host 9 of each VLAN is, and what the data plane has.
    fn places(&self) -> [(Option<Placement>, Option<Route>); 2] {
        vlans().map(|vlan| {
            let key = RouteKey { vlan, ..RouteKey::to(mac(9)) };
            let mut flows = self.edges.get(vlan).unwrap().keyed_flows();
            let flow = flows.find(|(at, _)| *at == (PORT, key)).map(|(_, flow)| flow.placement);
            (flow, self.device.route((PORT, key)).cloned())
        })
    }
}

#[test]
fn vlans_share_the_entries_of_a_port_and_a_free_one_is_for_whichever_waits() {
    let [first, second] = vlans();
    let mut trunk = Trunk::new(1);
    trunk.set(first, 1);
    trunk.set(second, 2);
    let in_table = |number| (Some(Placement::Installed), Some(Route::from([number])));
    let in_software = || (Some(Placement::Software), None);
    assert_eq!(trunk.places(), [in_table(1), in_software()]);
    assert_eq!(trunk.edges.counters().changes_refused, 0, "it was not asked in vain");
    trunk.remove(first, 3);
    assert_eq!(trunk.places(), [(None, None), in_table(2)]);
    trunk.set(first, 4);
    assert_eq!(trunk.places(), [in_software(), in_table(2)]);
    let mut tickets = trunk.tickets.clone();
    tickets.dedup();
    assert_eq!(tickets, trunk.tickets, "no two changes have one number");
    assert_eq!(trunk.edges.debts(), EdgeDebts::default());
}

#[test]
fn each_vlan_keeps_its_routes_until_their_port_is_lost_to_it() {
    let [first, second] = vlans();
    let mut trunk = Trunk::new(4);
    trunk.set(first, 1);
    trunk.set(second, 2);
    let has = Snapshot {
        ports: [axon_node::PortSnapshot {
            routes: trunk.device.routes.iter().map(|((_, key), r)| (*key, r.clone())).collect(),
            ..Default::default()
        }]
        .into(),
    };
    assert_eq!(has.ports[0].routes.len(), 2);
    trunk.call(|edges, now, ports, out| edges.resynchronised(now, &has, ports, out));
    let places = trunk.places();
    assert!(places.iter().all(|(placement, _)| *placement == Some(Placement::Installed)));
    // It is no host port to the edge of untagged frames.
    trunk.call(|edges, now, ports, out| {
        edges.with_all(now, ports, out, |mut call| call.port_changed(PORT))
    });
    assert_eq!(trunk.edges.tables().taken(PORT), 2);
    trunk.device.kinds[0] = PortKind::Unknown;
    trunk.call(|edges, now, ports, out| {
        edges.with_all(now, ports, out, |mut call| call.port_changed(PORT))
    });
    assert_eq!(trunk.edges.iter().map(|(_, edge)| edge.flows().count()).sum::<usize>(), 0);
    assert_eq!(trunk.edges.tables().taken(PORT), 0);
}
