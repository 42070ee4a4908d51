//! Several hosts behind one port, connected by a plain bridge.

use crate::engine::station::StationNode;
use crate::host::PORT;
use crate::host::bridge::{Bridge, UP};
use crate::link::links::WireEnd;
use crate::world::World;
use axon_fabric::model::End;
use axon_wire::{MacAddr, PortNo};

impl World {
    /// Moves the cables of these hosts to a new bridge, whose own cable goes to a port of a switch,
    /// possibly that of one of them. A private bridge forwards nothing between them.
    ///
    /// # Panics
    /// If the port is used by something else.
    pub fn put_behind(&mut self, hosts: &[usize], at: End, is_private: bool) {
        let wire = self.fabric.hosts[hosts[0]].wire;
        let station = self.engine.add_station(&format!("b{}", self.bridges.len() + 1));
        for (&host, port) in hosts.iter().zip(1..) {
            let near = WireEnd { station: self.host_station(host), port: PORT };
            let far = WireEnd { station, port: PortNo(port) };
            self.engine.reconnect(self.access_link(host), near, far);
        }
        let up = WireEnd { station, port: UP };
        self.engine.connect(up, WireEnd { station: at.switch, port: at.port }, wire);
        let bridge = Bridge::new(hosts.len(), is_private);
        self.engine.power_on(station, StationNode::Other(Box::new(bridge)));
        self.bridges.insert(station);
    }

    /// Returns the end at which a frame from a host leaves its bridge towards the fabric.
    pub(crate) fn beyond_bridge(&self, end: WireEnd) -> Option<WireEnd> {
        match self.bridges.contains(&end.station) && end.port != UP {
            true => self.far_end(WireEnd { station: end.station, port: UP }),
            false => Some(end),
        }
    }

    /// Returns whether a host with this MAC is behind a bridge.
    pub(crate) fn is_behind(&self, bridge: usize, mac: MacAddr) -> bool {
        let host = self.fabric.hosts.iter().position(|host| host.mac == mac);
        let near = host.map(|host| WireEnd { station: self.host_station(host), port: PORT });
        let there = near.and_then(|near| self.engine.link_at(near));
        there.is_some_and(|(id, side)| {
            self.bridges.contains(&bridge)
                && self.engine.links()[id.0].ends[1 - side].station == bridge
        })
    }
}
