//! Changes of the kind of a switch port.

use super::SwitchNode;
use crate::chassis::Chassis;
use axon_node::{Dataplane, PortKind, PortSetting};
use axon_wire::{PortNo, Time};

impl<D: Dataplane> SwitchNode<D> {
    /// Sets the kind of a port and notifies the edge. For hosts, priorities and VLANs are set
    /// first. LACP runs at host ports only: on any other port its frames would be dropped here.
    pub(super) fn port_kind(&mut self, now: Time, port: PortNo, kind: PortKind) {
        let table = self.limits.regeneration(port).filter(|_| kind == PortKind::Host);
        if let Some(&table) = table {
            self.chassis.set_port(now, port, PortSetting::Regeneration(table.into()));
        }
        if let Some(vlans) = self.limits.vlans(port).filter(|_| kind == PortKind::Host) {
            let vlans = Some(vlans.clone().into());
            self.chassis.set_port(now, port, PortSetting::Vlans(vlans));
        }
        self.chassis.set_port(now, port, PortSetting::Kind(kind));
        let is_host = kind == PortKind::Host && self.chassis.plane.is_up(port);
        if !is_host {
            self.chassis.lacp_link(now, port, false);
        }
        let Chassis { plane, effects, .. } = &mut self.chassis;
        self.edge.with_all(now, plane, effects, |mut call| call.port_changed(port));
        if is_host {
            self.chassis.lacp_link(now, port, true);
        }
    }
}
