//! Bytes written by the application, up to their acknowledgement, and the end of the stream.

use crate::segment::Seq;

/// State of the end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    Open,
    Wanted,
    /// The FIN was sent; holds the number after it.
    Sent(Seq),
}

/// Outgoing byte stream.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// Bytes written and not yet sent.
    unsent: u64,
    /// Acknowledged bytes.
    acked: u64,
    fin: Fin,
}

impl Stream {
    /// Returns an empty stream.
    pub(crate) fn new() -> Stream {
        Stream { unsent: 0, acked: 0, fin: Fin::Open }
    }

    /// Queues bytes for transmission. Returns their number, or 0 after a close.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        if self.fin != Fin::Open {
            return 0;
        }
        self.unsent = self.unsent.saturating_add(bytes);
        bytes
    }

    /// Closes the stream. Returns whether it was open.
    pub(crate) fn close(&mut self) -> bool {
        let is_open = self.fin == Fin::Open;
        if is_open {
            self.fin = Fin::Wanted;
        }
        is_open
    }

    /// Returns the bytes that were not sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Returns the acknowledged bytes.
    pub(crate) fn acked(&self) -> u64 {
        self.acked
    }

    /// Returns whether a FIN is to be sent after the last byte.
    pub(crate) fn wants_fin(&self) -> bool {
        self.fin == Fin::Wanted
    }

    /// Returns whether the FIN was sent.
    pub(crate) fn fin_sent(&self) -> bool {
        matches!(self.fin, Fin::Sent(_))
    }

    /// Returns whether the FIN was sent and `next` is the number after it.
    pub(crate) fn ends_at(&self, next: Seq) -> bool {
        self.fin == Fin::Sent(next)
    }

    /// Records the transmission of new bytes, and of the FIN if `next` is the number after it.
    pub(crate) fn sent(&mut self, bytes: u32, next: Option<Seq>) {
        self.unsent -= u64::from(bytes);
        if let Some(next) = next {
            self.fin = Fin::Sent(next);
        }
    }

    /// Records acknowledged bytes.
    pub(crate) fn acknowledged(&mut self, bytes: u32) {
        self.acked += u64::from(bytes);
    }
}
