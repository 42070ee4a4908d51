//! What the tables hold from the process before: traffic flows on by it while the next one learns
//! what it needs.
//!
//! In plain English: the controller does not know of these routes, and it forgets those of a switch
//! that has started anew. So no decision will ever correct them, and a host that has moved would
//! miss its frames for as long as they stand. While the switch has no path to its controller they
//! stay, as all routes of a switch do that is cut off. Once it has one they go one after another,
//! spread evenly over [`Inherited::MAX`]: the next frame of each flow misses, and gets a route that
//! the controller knows. All at once they would miss at once.
//!
//! A port that carried frames goes on with its kind until the node knows what is there: until it
//! sets the kind, its carrier is lost, or it turns out to be another device. Then its own routes
//! stay only if it is what it was.

use super::KernelError;
use super::tables::Tables;
use axon_node::PortKind;
use axon_wire::{MacAddr, PortNo, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A host port, and where its frames go.
pub(super) type Key = (PortNo, MacAddr);

/// Ports and routes that no node of this process has set.
#[derive(Clone, Debug, Default)]
pub(super) struct Inherited {
    routes: BTreeSet<Key>,
    /// Ifindex and kind.
    ports: BTreeMap<PortNo, (u32, PortKind)>,
    /// Their end, while there is a controller.
    end: Option<End>,
}

/// How inherited routes come to their end.
#[derive(Clone, Copy, Debug)]
struct End {
    /// When the last of them are to be gone.
    last: Time,
    /// When the next few go.
    next: Time,
    /// How many there were at first.
    total: u64,
}

impl Inherited {
    /// From when the controller can be reached until none is left. For as long the control plane
    /// goes on along a path that no longer works: 30 heartbeats and 10 retries of 100 and 50 ms.
    pub const MAX: Span = Span::from_millis(3_500);
    /// Between the removal of some and of others.
    const STEP: Span = Span::from_millis(35);

    /// All that `tables` hold.
    pub fn of(tables: &impl Tables) -> Result<Inherited, KernelError> {
        let routes = tables.routes()?.into_iter().map(|(port, mac, _)| (port, mac)).collect();
        let mut ports = BTreeMap::new();
        for port in (0..tables.settings().ports).map(PortNo) {
            let (ifindex, kind) = tables.port(port)?;
            if ifindex != 0 && kind != PortKind::Unknown {
                ports.insert(port, (ifindex, kind));
            }
        }
        Ok(Inherited { routes, ports, end: None })
    }

    /// How many routes are left.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether a route is one of them.
    pub fn has(&self, key: Key) -> bool {
        self.routes.contains(&key)
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
                self.routes.range(all).copied().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The switch has a path to its controller, or none any more.
    pub fn reached(&mut self, now: Time, controller: bool) {
        let waits = !self.routes.is_empty() || !self.ports.is_empty();
        let total = self.routes.len() as u64;
        self.end = match (controller, self.end) {
            (true, None) if waits => {
                Some(End { last: now + Self::MAX, next: now + Self::STEP, total })
            }
            (true, end) => end,
            (false, _) => None,
        };
    }

    /// When some are to go.
    pub fn deadline(&self) -> Option<Time> {
        self.end.map(|end| end.next)
    }

    /// The routes that are to go now; `None` if it is not time. Each is one of them until
    /// [`Inherited::decided`].
    pub fn due(&mut self, now: Time) -> Option<Vec<Key>> {
        let end = self.end.as_mut().filter(|end| end.next <= now)?;
        end.next = now + Self::STEP;
        let stay = end.total * end.last.since(now).ticks() / Self::MAX.ticks();
        let count = self.routes.len().saturating_sub(stay as usize);
        Some(self.routes.iter().take(count).copied().collect())
    }

    /// Whether the time of all is over at `now`. If so the ports are no longer any of them.
    pub fn is_over(&mut self, now: Time) -> bool {
        let is_over = self.end.is_some_and(|end| end.last <= now) && self.routes.is_empty();
        if is_over {
            *self = Inherited::default();
        }
        is_over
    }
}
