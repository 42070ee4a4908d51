//! What the tables hold from the process before: traffic flows on by it while the next one learns
//! what it needs.
//!
//! In plain English: the node finds the inherited routes and the kinds of ports in the first
//! snapshot of its data plane, and decides about them in its own time. A port that carried frames
//! goes on with its kind until the node sets one, its carrier is lost, or it turns out to have
//! another device. Then its own routes stay only if it is what it was. The node installs those of a
//! host port anew, in their own place, and no frame misses.
//!
//! What the node never decides about is no use to anyone, as the kind of a port at whose other end
//! nobody is. It goes when the switch has had a path to its controller for [`Inherited::MAX`].
//! While there is none it stays, as all routes of a switch do that is cut off.

use super::KernelError;
use super::tables::Tables;
use axon_node::{PortKind, Snapshot};
use axon_wire::{MacAddr, PortNo, Route, Span, Time};
use std::collections::BTreeMap;

/// A host port, and where its frames go.
pub(super) type Key = (PortNo, MacAddr);

/// Ports and routes that no node of this process has set.
#[derive(Clone, Debug, Default)]
pub(super) struct Inherited {
    routes: BTreeMap<Key, Route>,
    /// Ifindex and kind.
    ports: BTreeMap<PortNo, (u32, PortKind)>,
    /// When what is left goes, while there is a controller.
    until: Option<Time>,
}

impl Inherited {
    /// From when the controller can be reached until nothing is left: longer than a node takes to
    /// know what is at its ports, with Hellos up to three seconds apart.
    pub const MAX: Span = Span::from_secs(10);

    /// All that `tables` hold.
    pub fn of(tables: &impl Tables) -> Result<Inherited, KernelError> {
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

    /// How many routes are left.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether a route is one of them.
    pub fn has(&self, key: Key) -> bool {
        self.routes.contains_key(&key)
    }

    /// Adds what is inherited to a snapshot.
    pub fn add_to(&self, snapshot: &mut Snapshot) {
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

    /// The node has decided about a flow.
    pub fn decided(&mut self, key: Key) {
        self.routes.remove(&key);
    }

    /// Whether a port goes on as it was, if its device is still this one.
    pub fn keeps(&self, port: PortNo, ifindex: u32) -> bool {
        self.ports.get(&port).is_some_and(|(was, _)| *was == ifindex)
    }

    /// The node knows what is at a port now. Returns the routes that go because of it.
    pub fn settled(&mut self, port: PortNo, now_is: (u32, PortKind)) -> Vec<Key> {
        match self.ports.remove(&port) {
            Some(was) if was != now_is => {
                let all = (port, MacAddr([0; 6]))..=(port, MacAddr([0xff; 6]));
                self.routes.range(all).map(|(&key, _)| key).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The switch has a path to its controller, or none any more.
    pub fn reached(&mut self, now: Time, controller: bool) {
        let waits = !self.routes.is_empty() || !self.ports.is_empty();
        self.until = match (controller, self.until) {
            (true, None) if waits => Some(now + Self::MAX),
            (true, until) => until,
            (false, _) => None,
        };
    }

    /// When what is left is to go.
    pub fn deadline(&self) -> Option<Time> {
        self.until
    }

    /// Whether the time of all is over at `now`. If so there is nothing inherited any more.
    pub fn is_over(&mut self, now: Time) -> bool {
        let is_over = self.until.is_some_and(|until| until <= now);
        if is_over {
            *self = Inherited::default();
        }
        is_over
    }
}
