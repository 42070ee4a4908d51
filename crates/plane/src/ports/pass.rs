//! Port operations of the fast path.

use super::core::Ports;
use axon_node::PortKind;
use axon_wire::PortNo;

impl Ports {
    /// Returns the kind of `port`, if a frame may start there now and its queues are not watched.
    /// `is_free` is called for a busy wire only if nothing waits for it.
    #[inline(always)]
    pub(crate) fn open(&self, port: PortNo, is_free: impl Fn(PortNo) -> bool) -> Option<PortKind> {
        let tx = self.tx.get(port.index())?;
        let free = !tx.busy || !tx.waiting && is_free(port);
        (free && tx.up && !tx.held && !tx.watched).then_some(tx.kind)
    }

    /// Counts a frame that was received on one port and is sent on another, open one: ports and
    /// bytes.
    #[inline]
    pub(crate) fn passed(&mut self, came: (PortNo, usize), leaves: (PortNo, usize)) {
        self.counters.received(came.0, came.1);
        self.counters.sent(leaves.0, leaves.1);
        self.tx[leaves.0.index()].busy = true;
    }

    /// Reports that the wire of `port` is free. Returns true if nothing waits for it; false if
    /// [`Ports::tx_done`] must be called instead, with nothing changed.
    #[inline]
    pub(crate) fn freed(&mut self, port: PortNo) -> bool {
        let Some(tx) = self.tx.get_mut(port.index()) else { return true };
        if tx.waiting && tx.up {
            return false;
        }
        tx.busy = false;
        true
    }
}
