//! A server with its ports and neighbours.

use super::cube::{Cube, Nha};
use super::entries;
use super::header::{BcubePacket, Purpose};
use crate::server::{Event, Hello, HostPorts, Neighbours};
use crate::site::Site;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_pipeline::{Change, Control};
use axon_wire::{MacAddr, PortNo, Time};

/// Server of a BCube.
pub(super) struct Local {
    cube: Cube,
    own: u32,
    mac: MacAddr,
    /// Port of each level.
    ports: BTreeMap<u32, PortNo>,
    neighbours: Neighbours,
    /// Next hops, and the addresses of their servers according to the plan.
    planned: Vec<(Nha, MacAddr)>,
}

impl Local {
    pub(super) fn new(site: &Site, cube: Cube) -> Local {
        let level = |(port, node)| Some((cube.level_of_switch(node)?, port));
        let mac = |server: u32| site.plan.nodes[server as usize].mac;
        Local {
            cube,
            own: site.node,
            mac: site.own().mac,
            ports: HostPorts::links(site).filter_map(level).collect(),
            neighbours: Neighbours::new(site.node),
            planned: cube.neighbours(site.node).map(|(nha, to)| (nha, mac(to))).collect(),
        }
    }

    /// Returns the cube that the server is part of.
    pub(super) fn cube(&self) -> Cube {
        self.cube
    }

    /// Returns the number of the server.
    pub(super) fn own(&self) -> u32 {
        self.own
    }

    /// Returns the filters and the current entries for all neighbours. Initially, no neighbour is
    /// up.
    pub(super) fn entries(&self, hosts: &HostPorts) -> Vec<Change> {
        let mut changes = entries::keys().to_vec();
        for (place, &(nha, mac)) in self.planned.iter().enumerate() {
            let Some(port) = self.port(nha) else { continue };
            let to = self.mac_of(nha).unwrap_or(mac);
            changes.push(entries::interface(nha, port, to, self.mac));
            changes.extend(entries::routing(place, nha, self.is_up(nha)));
        }
        let links: Vec<PortNo> = self.ports.values().copied().collect();
        changes.extend(entries::filters(self.own, &links, hosts));
        changes
    }

    /// Returns the port of a next hop.
    pub(super) fn port(&self, nha: Nha) -> Option<PortNo> {
        self.ports.get(&self.cube.level_of(nha)).copied()
    }

    /// Returns whether a next hop is up.
    pub(super) fn is_up(&self, nha: Nha) -> bool {
        self.mac_of(nha).is_some()
    }

    /// Returns the address of the neighbour at a next hop, if it is up.
    fn mac_of(&self, nha: Nha) -> Option<MacAddr> {
        self.neighbours.mac(self.port(nha)?, self.cube.step(self.own, nha)?)
    }

    /// Sends a packet to the neighbour at a next hop, if it is up.
    pub(super) fn send(&self, nha: Nha, packet: &BcubePacket<'_>, control: &mut dyn Control) {
        if let (Some(port), Some(to)) = (self.port(nha), self.mac_of(nha)) {
            control.send_packet(port, &packet.emit(to, self.mac));
        }
    }

    /// Announces this server on all ports with carrier.
    pub(super) fn announce(&self, control: &mut dyn Control) {
        self.ports.values().for_each(|&port| self.announce_at(port, control));
    }

    pub(super) fn announce_at(&self, port: PortNo, control: &mut dyn Control) {
        let body = self.neighbours.hello(port).emit();
        let hello = BcubePacket {
            source: self.own,
            destination: (self.own, 0),
            purpose: Purpose::Discovery,
            ttl: 1,
            path: Vec::new(),
            body: &body,
        };
        if control.is_up(port) && self.ports.values().any(|&link| link == port) {
            control.send_packet(port, &hello.emit(MacAddr::BROADCAST, self.mac));
        }
    }

    /// Processes a neighbour's announcement. Returns whether a neighbour has been lost.
    pub(super) fn discover(
        &mut self,
        now: Time,
        port: PortNo,
        from: MacAddr,
        hello: &Hello,
        control: &mut dyn Control,
    ) -> bool {
        let level = (hello.server < self.cube.servers())
            .then(|| self.cube.level_between(self.own, hello.server))
            .flatten();
        let Some(level) = level.filter(|level| self.ports.get(level) == Some(&port)) else {
            return false;
        };
        let nha = self.cube.toward(hello.server, level);
        match self.neighbours.receive(now, port, from, hello) {
            Some(Event::Up(mac)) => {
                let mut changes = alloc::vec![entries::interface(nha, port, mac, self.mac)];
                changes.extend(self.routing(nha));
                commit(control, &changes);
                false
            }
            Some(Event::Down) => {
                commit(control, &self.routing(nha));
                true
            }
            Some(Event::New) => {
                self.announce_at(port, control);
                false
            }
            None => false,
        }
    }

    /// Removes silent neighbours. Returns whether one has been lost.
    pub(super) fn expire(&mut self, now: Time, control: &mut dyn Control) -> bool {
        let lost = self.neighbours.expire(now);
        self.lose(lost, control)
    }

    /// Removes the neighbours of a port without carrier. Returns whether one has been lost.
    pub(super) fn port_down(&mut self, port: PortNo, control: &mut dyn Control) -> bool {
        let lost = self.neighbours.clear(port);
        self.lose(lost, control)
    }

    /// Redirects the routing entries for lost neighbours to the program, in one transaction.
    fn lose(&self, lost: Vec<(PortNo, u32)>, control: &mut dyn Control) -> bool {
        let nha = |server| {
            let level = self.cube.level_between(self.own, server)?;
            Some(self.cube.toward(server, level))
        };
        let nhas = lost.iter().filter_map(|&(_, server)| nha(server));
        let changes: Vec<Change> = nhas.flat_map(|nha| self.routing(nha)).collect();
        commit(control, &changes);
        !lost.is_empty()
    }

    /// Returns the routing entries for a next hop in its current state.
    fn routing(&self, nha: Nha) -> Vec<Change> {
        let place = self.planned.iter().position(|&(planned, _)| planned == nha);
        let is_up = self.is_up(nha);
        place.into_iter().flat_map(|place| entries::routing(place, nha, is_up)).collect()
    }
}

/// Changes entries that have existed since the start, so that there is room for them.
fn commit(control: &mut dyn Control, changes: &[Change]) {
    let changed = control.commit(changes);
    debug_assert!(changed.is_ok(), "{changed:?}");
}
