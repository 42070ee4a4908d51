//! What a frame that meets no obstacle asks of the ports.

use super::core::Ports;
use axon_node::PortKind;
use axon_wire::PortNo;

impl Ports {
    /// The kind of `port`, if a frame may start there now and nobody watches its queues. A wire
    /// that was busy may be free by now, which matters only where nothing waits for it.
    #[inline(always)]
    pub(crate) fn open(&self, port: PortNo, is_free: impl Fn(PortNo) -> bool) -> Option<PortKind> {
        let tx = self.tx.get(port.index())?;
        let free = !tx.busy || !tx.waiting && is_free(port);
        (free && tx.up && !tx.held && !tx.watched).then_some(tx.kind)
    }

    /// A frame came in by one port with so many bytes, and leaves by another, which is open, with
    /// so many.
    #[inline]
    pub(crate) fn passed(&mut self, came: (PortNo, usize), leaves: (PortNo, usize)) {
        self.counters.received(came.0, came.1);
        self.counters.sent(leaves.0, leaves.1);
        self.tx[leaves.0.index()].busy = true;
    }

    /// The wire of `port` is free. `true`: that is all, since nothing waits for it. `false`:
    /// nothing has changed, and it is [`Ports::tx_done`] that is to be called.
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
