//! The host of the forwarder, which serves packets in order of delivery.

use super::bus::Packet;
use std::collections::VecDeque;

/// Packets in the host.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// Packets that wait for service.
    delivered: VecDeque<Packet>,
    serving: Option<Packet>,
    /// Packet that was served and that waits for a send ring entry.
    blocked: Option<Packet>,
}

impl Host {
    /// Queues a packet for service.
    pub(super) fn push(&mut self, packet: Packet) {
        self.delivered.push_back(packet);
    }

    /// Begins to serve the next packet. Returns `false` if there is none, or one is still here.
    pub(super) fn serve(&mut self) -> bool {
        if self.serving.is_some() || self.blocked.is_some() {
            return false;
        }
        self.serving = self.delivered.pop_front();
        self.serving.is_some()
    }

    /// Ends the service of a packet.
    pub(super) fn served(&mut self) {
        self.blocked = self.serving.take();
    }

    /// Returns the packet that was served, to be posted.
    pub(super) fn blocked(&mut self) -> &mut Option<Packet> {
        &mut self.blocked
    }
}
