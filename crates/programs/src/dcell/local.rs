//! A server with its ports and neighbours.

use super::cells::Cells;
use super::header;
use crate::server::{Event, Hello, HostPorts, Neighbours};
use crate::site::Site;
use alloc::collections::BTreeMap;
use axon_pipeline::{Control, Interface};
use axon_wire::{MacAddr, PortNo, Time};

/// Server of a DCell.
pub(super) struct Local {
    cells: Cells,
    own: u32,
    mac: MacAddr,
    /// Port of each level.
    ports: BTreeMap<usize, PortNo>,
    neighbours: Neighbours,
}

impl Local {
    pub(super) fn new(site: &Site, cells: Cells) -> Local {
        let own = site.node;
        let level = |node| if node < cells.servers() { cells.level(own, node) } else { 0 };
        let ports = HostPorts::links(site).map(|(port, node)| (level(node), port)).collect();
        Local { own, mac: site.own().mac, ports, neighbours: Neighbours::new(own), cells }
    }

    /// Returns the cells that the server is part of.
    pub(super) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Returns the number of the server.
    pub(super) fn own(&self) -> u32 {
        self.own
    }

    /// Returns the port of a neighbour.
    fn port(&self, neighbour: u32) -> Option<PortNo> {
        self.ports.get(&self.cells.level(self.own, neighbour)).copied()
    }

    /// Returns whether a neighbour is up.
    pub(super) fn is_up(&self, neighbour: u32) -> bool {
        self.interface(neighbour).is_some()
    }

    /// Returns the interface to a neighbour, if it is up.
    pub(super) fn interface(&self, neighbour: u32) -> Option<Interface> {
        let port = self.port(neighbour)?;
        let destination = Some(self.neighbours.mac(port, neighbour)?);
        Some(Interface { port, destination, source: Some(self.mac) })
    }

    /// Announces this server on all ports with carrier.
    pub(super) fn announce(&self, control: &mut dyn Control) {
        self.ports.values().for_each(|&port| self.announce_at(port, control));
    }

    pub(super) fn announce_at(&self, port: PortNo, control: &mut dyn Control) {
        if control.is_up(port) && self.ports.values().any(|&link| link == port) {
            let body = self.neighbours.hello(port).emit();
            control.send_packet(port, &header::hello(self.own, &body, self.mac));
        }
    }

    /// Processes a neighbour's announcement. Returns whether the set of usable neighbours has
    /// changed.
    pub(super) fn discover(
        &mut self,
        now: Time,
        port: PortNo,
        from: MacAddr,
        hello: &Hello,
        control: &mut dyn Control,
    ) -> bool {
        let mut neighbours = self.cells.neighbours(self.own);
        let is_known = neighbours.any(|(_, server)| server == hello.server);
        if !is_known || self.port(hello.server) != Some(port) {
            return false;
        }
        match self.neighbours.receive(now, port, from, hello) {
            Some(Event::Up(_) | Event::Down) => true,
            Some(Event::New) => {
                self.announce_at(port, control);
                false
            }
            None => false,
        }
    }

    /// Removes silent neighbours. Returns whether one was up.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        !self.neighbours.expire(now).is_empty()
    }

    /// Removes the neighbours of a port without carrier. Returns whether one was up.
    pub(super) fn port_down(&mut self, port: PortNo) -> bool {
        !self.neighbours.clear(port).is_empty()
    }
}
