//! Resynchronisation of a switch whose data plane has lost its tables.

use super::SwitchNode;
use crate::chassis::Chassis;
use crate::effect::SwitchEffect;
use axon_edge::Effect;
use axon_node::{Dataplane, Masqueraded, PortKind, PortSnapshot, Snapshot};
use axon_wire::{PortNo, Time};

impl<D: Dataplane> SwitchNode<D> {
    /// Resynchronises a data plane that has lost its tables: reinstalls all state, and keeps in
    /// software what the data plane refuses.
    pub(super) fn resynchronise(&mut self, now: Time) {
        let Chassis { plane, discovery, dcbx, actions, effects, .. } = &mut self.chassis;
        let limits = &self.limits;
        let port = |port: PortNo| {
            let mut wanted = PortSnapshot { kind: discovery.kind(port), ..PortSnapshot::default() };
            if let Some(dcbx) = dcbx {
                let in_force = dcbx.in_force(port);
                (wanted.classes, wanted.pfc, wanted.defence) = in_force;
            }
            let table = limits.regeneration(port).filter(|_| wanted.kind == PortKind::Host);
            wanted.regeneration = table.copied();
            wanted.vlans = limits.vlans(port).cloned();
            wanted
        };
        let mut wanted = Snapshot { ports: (0..plane.count()).map(PortNo).map(port).collect() };
        for ((port, key), destination, route) in self.edge.wanted_routes() {
            let Some(port) = wanted.ports.get_mut(port.index()) else { continue };
            let route = route.clone();
            match key.destination == destination {
                true => port.routes.push((key, route)),
                false => port.masqueraded.push(Masqueraded { key, destination, route }),
            }
        }
        // Route changes not passed on yet are included in the wanted state, and their answers would
        // have no receiver.
        effects.retain(|effect| !matches!(effect, SwitchEffect::Edge(_, Effect::Route { .. })));
        // Refused state shows in the snapshot that follows.
        let _ = plane.resynchronise(now, &wanted, actions);
        let has = plane.snapshot();
        self.edge.resynchronised(now, &has, plane, effects);
        self.chassis.settings_resynchronised(now, &wanted);
    }
}
