//! Wires of the ports of a switch: carrier, which are busy, and which are awaited.

use alloc::vec::Vec;
use axon_node::{Awaited, PortKind};
use axon_wire::PortNo;

/// The wires of the ports of a switch, and the kind of what is at their other end.
#[derive(Clone, Debug)]
pub struct Wires {
    wires: Vec<Wire>,
    /// Ports whose wire a frame has begun to wait for since the last query, each once.
    awaited: Vec<PortNo>,
}

/// State of one wire, which every frame to its port reads; small, so that the state of all ports of
/// a switch fits a few cache lines.
#[derive(Clone, Copy, Debug, Default)]
struct Wire {
    kind: PortKind,
    /// True if the port has carrier.
    up: bool,
    /// True if a frame is on the wire.
    busy: bool,
    /// True if a frame waits for the wire.
    waiting: bool,
    /// True if the peer has paused some of the traffic.
    held: bool,
    /// True if some queues have a congestion point or a marker.
    watched: bool,
    /// True if the port is in the list of awaited ports.
    awaited: bool,
}

impl Wires {
    /// Returns the wires of ports of unknown kind and without carrier.
    pub(super) fn new(ports: u16) -> Wires {
        Wires { wires: alloc::vec![Wire::default(); usize::from(ports)], awaited: Vec::new() }
    }

    #[inline(always)]
    fn get(&self, port: PortNo) -> Option<&Wire> {
        self.wires.get(port.index())
    }

    /// Returns the number of ports.
    #[inline]
    pub fn count(&self) -> u16 {
        self.wires.len() as u16
    }

    /// Returns the kind of `port`; `None` if there is no such port.
    #[inline]
    pub fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.get(port).map(|wire| wire.kind)
    }

    /// Returns whether `port` exists and has carrier.
    #[inline]
    pub fn is_up(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(|wire| wire.up)
    }

    /// Returns whether a frame waits for the wire of `port`.
    pub fn is_waiting(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(|wire| wire.waiting)
    }

    /// Returns whether a frame is on the wire of `port`.
    #[inline]
    pub(crate) fn is_busy(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(|wire| wire.busy)
    }

    /// Returns whether the wire of `port` has carrier and no frame on it.
    #[inline]
    pub(super) fn is_free(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(|wire| wire.up && !wire.busy)
    }

    /// Returns whether some of the traffic to `port` is paused.
    #[inline]
    pub(super) fn is_held(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(|wire| wire.held)
    }

    /// Returns whether any frame to `port` may start at once.
    #[inline(always)]
    pub(super) fn is_idle(&self, port: PortNo) -> bool {
        self.get(port).is_some_and(|wire| wire.up && !wire.busy && !wire.held)
    }

    /// Returns whether a frame to `port` will be queued, and some queue there is watched.
    #[inline]
    pub(crate) fn is_watched(&self, port: PortNo) -> bool {
        let watched = |wire: &Wire| wire.watched && (wire.busy || wire.held) && wire.up;
        self.get(port).is_some_and(watched)
    }

    /// Returns the kind of `port`, if a frame may start there now and its queues are not watched.
    /// `is_free` is called for a busy wire only if nothing waits for it.
    #[inline(always)]
    pub(crate) fn open(&self, port: PortNo, is_free: impl Fn(PortNo) -> bool) -> Option<PortKind> {
        let wire = self.get(port)?;
        let free = !wire.busy || !wire.waiting && is_free(port);
        (free && wire.up && !wire.held && !wire.watched).then_some(wire.kind)
    }

    /// Sets the kind of `port`; returns false if there is no such port.
    pub(super) fn set_kind(&mut self, port: PortNo, kind: PortKind) -> bool {
        let wire = self.wires.get_mut(port.index());
        wire.map(|wire| wire.kind = kind).is_some()
    }

    /// Sets the carrier of `port`. Without it the wire is free, and nothing waits for it. Returns
    /// false if there is no such port.
    pub(super) fn set_up(&mut self, port: PortNo, up: bool) -> bool {
        let Some(wire) = self.wires.get_mut(port.index()) else { return false };
        wire.up = up;
        if !up {
            (wire.busy, wire.waiting) = (false, false);
        }
        true
    }

    /// Sets whether some of the traffic to `port` is paused; returns whether it was.
    pub(super) fn hold(&mut self, port: PortNo, held: bool) -> bool {
        core::mem::replace(&mut self.wires[port.index()].held, held)
    }

    /// Sets whether some queues of `port` have a congestion point or a marker.
    pub(super) fn watch(&mut self, port: PortNo, watched: bool) {
        self.wires[port.index()].watched = watched;
    }

    /// Records that a frame is on the wire of `port`.
    #[inline(always)]
    pub(super) fn occupy(&mut self, port: PortNo) {
        self.wires[port.index()].busy = true;
    }

    /// Records that no frame is on the wire of `port`; returns whether one that waits may start.
    #[inline]
    pub(super) fn release(&mut self, port: PortNo) -> bool {
        let Some(wire) = self.wires.get_mut(port.index()) else { return false };
        wire.busy = false;
        wire.waiting && wire.up
    }

    /// Sets whether anything waits for the wire of `port`, which is awaited then if it is busy.
    pub(super) fn set_waiting(&mut self, port: PortNo, waiting: bool) {
        self.wires[port.index()].waiting = waiting;
        if waiting && self.wires[port.index()].busy {
            self.wait_for(port);
        }
    }

    /// Records that a frame waits for the wire of `port`.
    pub(super) fn wait_for(&mut self, port: PortNo) {
        let wire = &mut self.wires[port.index()];
        wire.waiting = true;
        if !core::mem::replace(&mut wire.awaited, true) {
            self.awaited.push(port);
        }
    }

    /// Takes one of the ports whose wire a frame has begun to wait for; see
    /// [`Shortcuts::awaited`](axon_node::Shortcuts::awaited).
    #[inline]
    pub(super) fn awaited(&mut self) -> Awaited {
        let Some(port) = self.awaited.pop() else {
            return Awaited::None;
        };
        self.wires[port.index()].awaited = false;
        Awaited::Port(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_is_awaited_once_until_it_is_queried_and_only_while_it_is_busy() {
        let (mut wires, port) = (Wires::new(2), PortNo(1));
        assert!(wires.set_up(port, true) && !wires.set_up(PortNo(2), true));
        wires.set_waiting(port, true);
        assert_eq!(wires.awaited(), Awaited::None, "the wire is free");
        wires.occupy(port);
        wires.wait_for(port);
        wires.set_waiting(port, true);
        assert_eq!([wires.awaited(), wires.awaited()], [Awaited::Port(port), Awaited::None]);
        assert!(wires.is_busy(port));
        assert!(wires.release(port) && wires.is_free(port));
        wires.set_waiting(port, false);
        wires.occupy(port);
        assert!(!wires.release(port) && !wires.is_busy(port));
        assert!(!wires.release(PortNo(2)), "there is no such port");
    }

    #[test]
    fn a_wire_is_open_if_a_frame_may_start_there_unseen() {
        let (mut wires, port) = (Wires::new(1), PortNo(0));
        let open = |wires: &Wires, is_free| wires.open(port, |_| is_free);
        assert_eq!(open(&wires, true), None, "no carrier");
        wires.set_up(port, true);
        wires.set_kind(port, PortKind::Axon);
        assert_eq!(open(&wires, false), Some(PortKind::Axon));
        wires.occupy(port);
        assert_eq!([true, false].map(|free| open(&wires, free)), [Some(PortKind::Axon), None]);
        wires.watch(port, true);
        assert_eq!((open(&wires, true), wires.is_watched(port)), (None, true));
        wires.watch(port, false);
        assert!(!wires.hold(port, true) && wires.hold(port, true));
        assert_eq!((open(&wires, true), wires.is_idle(port)), (None, false));
        wires.set_up(port, false);
        assert!(!wires.is_busy(port) && !wires.is_watched(port));
    }
}
