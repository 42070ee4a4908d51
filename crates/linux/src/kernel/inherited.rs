//! Table contents inherited from the previous process. Traffic continues to use them while the next
//! process learns its state.
//!
//! The node finds the inherited routes and port kinds in the first snapshot of its data plane, and
//! replaces them with its own when it has them. A port that carried frames keeps its kind until the
//! node sets one, carrier is lost, or the port gets a different device. Its routes then stay only
//! if its kind is unchanged. The node installs the routes of a host port again over the inherited
//! ones, without loss of frames.
//!
//! Entries that the node never replaces are stale, such as the kind of a port without a peer. They
//! are removed when the switch has had a path to its controller for [`Inherited::MAX`]. Without
//! such a path they stay, like all routes of an isolated switch.

use super::KernelError;
use super::tables::Tables;
use axon_node::{PortKind, Snapshot};
use axon_wire::{MacAddr, PortNo, Route, Span, Time};
use std::collections::BTreeMap;

/// Host port, and the destination of frames from it.
pub(super) type Key = (PortNo, MacAddr);

/// Ports and routes that the node in this process has not set yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Inherited {
    routes: BTreeMap<Key, Route>,
    /// Ifindex and kind of each port.
    ports: BTreeMap<PortNo, (u32, PortKind)>,
    /// Time at which the remaining entries are removed; `None` without a path to a controller.
    until: Option<Time>,
}

impl Inherited {
    /// Time from reaching the controller until all remaining entries are removed. It is longer than
    /// a node takes to identify the peers of its ports, with Hellos up to three seconds apart.
    pub(crate) const MAX: Span = Span::from_secs(10);

    /// Reads the contents of `tables`.
    pub(crate) fn of(tables: &impl Tables) -> Result<Inherited, KernelError> {
        let routes = tables.routes()?;
        let routes = routes.into_iter().map(|(port, mac, route)| ((port, mac), route)).collect();
        let mut ports = BTreeMap::new();
        for port in (0..tables.settings().ports).map(PortNo) {
            let (ifindex, kind) = tables.port(port)?;
            if ifindex != 0 && kind != PortKind::Unknown {
                ports.insert(port, (ifindex, kind));
            }
        }
        Ok(Inherited { routes, ports, until: None })
    }

    /// Returns the number of remaining routes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.routes.len()
    }

    /// Returns whether a route is inherited.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.routes.contains_key(&key)
    }

    /// Adds the inherited entries to a snapshot.
    pub(crate) fn add_to(&self, snapshot: &mut Snapshot) {
        for (&port, &(_, kind)) in &self.ports {
            if let Some(is) = snapshot.ports.get_mut(port.index()) {
                is.kind = kind;
            }
        }
        for (&(port, mac), route) in &self.routes {
            if let Some(is) = snapshot.ports.get_mut(port.index()) {
                is.routes.push((mac.into(), route.clone()));
            }
        }
    }

    /// Removes the inherited route of a flow about which the node has decided.
    pub(crate) fn decided(&mut self, key: Key) {
        self.routes.remove(&key);
    }

    /// Returns whether a port with this device keeps its inherited kind.
    pub(crate) fn keeps(&self, port: PortNo, ifindex: u32) -> bool {
        self.ports.get(&port).is_some_and(|(was, _)| *was == ifindex)
    }

    /// Records the kind that the node has set for a port. Returns the routes that become invalid.
    pub(crate) fn settled(&mut self, port: PortNo, now_is: (u32, PortKind)) -> Vec<Key> {
        match self.ports.remove(&port) {
            Some(was) if was != now_is => {
                let all = (port, MacAddr([0; 6]))..=(port, MacAddr([0xff; 6]));
                self.routes.range(all).map(|(&key, _)| key).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Records whether the switch has a path to its controller.
    pub(crate) fn reached(&mut self, now: Time, controller: bool) {
        let waits = !self.routes.is_empty() || !self.ports.is_empty();
        self.until = match (controller, self.until) {
            (true, None) if waits => Some(now + Self::MAX),
            (true, until) => until,
            (false, _) => None,
        };
    }

    /// Returns the time at which the remaining entries are removed.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.until
    }

    /// Returns whether the deadline has passed at `now`. If so, clears all entries.
    pub(crate) fn is_over(&mut self, now: Time) -> bool {
        let is_over = self.until.is_some_and(|until| until <= now);
        if is_over {
            *self = Inherited::default();
        }
        is_over
    }
}
