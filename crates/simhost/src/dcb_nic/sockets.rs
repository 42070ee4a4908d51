//! Datagram sockets, each with a limited number of frames in the NIC.

use std::collections::BTreeMap;

/// Default limit of queued frames per datagram socket, about that of a Linux socket
/// (`net.core.wmem_default`, 212,992 bytes including the kernel's overhead for each).
pub(super) const SOCKET_FRAMES_MAX: u32 = 128;

/// Queued frames of datagram sockets.
#[derive(Debug)]
pub(super) struct Sockets {
    /// Number of queued datagrams by source port.
    queued: BTreeMap<u16, u32>,
    /// Limit of queued frames per socket.
    frames_max: u32,
    /// True if a socket was refused since sockets were last polled.
    refused: bool,
}

impl Default for Sockets {
    fn default() -> Sockets {
        Sockets { queued: BTreeMap::new(), frames_max: SOCKET_FRAMES_MAX, refused: false }
    }
}

impl Sockets {
    /// Sets the limit of queued frames per socket, at least 1.
    pub(super) fn set_limit(&mut self, frames: u32) {
        self.frames_max = frames.max(1);
    }

    /// Returns whether a socket may send. A refused one tries again after [`Sockets::has_news`].
    pub(super) fn has_room(&mut self, socket: u16) -> bool {
        let queued = self.queued.get(&socket).copied().unwrap_or(0);
        let room = queued < self.frames_max;
        self.refused |= !room;
        room
    }

    /// Returns once whether refused sockets should try again.
    pub(super) fn has_news(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// Returns whether a refused socket waits to try again.
    pub(super) fn has_refused(&self) -> bool {
        self.refused
    }

    /// Charges a queued frame to its socket.
    pub(super) fn queued(&mut self, socket: u16) {
        *self.queued.entry(socket).or_default() += 1;
    }

    /// Credits a frame that has left to its socket.
    pub(super) fn left(&mut self, socket: u16) {
        if let Some(frames) = self.queued.get_mut(&socket) {
            *frames -= 1;
            if *frames == 0 {
                self.queued.remove(&socket);
            }
        }
    }

    /// Credits all frames, which were dropped.
    pub(super) fn clear(&mut self) {
        self.queued.clear();
    }
}
