//! A connection with the content of its streams: what an application writes and reads.
//!
//! The connection counts bytes. The content of those in flight, and of those that the application
//! has not read, is kept beside it, sparsely. So a message of some bytes that matter and many that
//! do not costs the former.

use crate::connection::{Connection, State};
use crate::content::{Content, FILL};
use crate::segment::Segment;
use alloc::vec::Vec;
use axon_wire::{Contents, Time};
use core::ops::Range;

/// One end of a connection, with the content of both streams.
#[derive(Clone, Debug)]
pub struct Socket {
    /// The connection. Its bytes are written and read by the methods of the socket.
    pub connection: Connection,
    sent: Content,
    received: Content,
    /// Number of bytes that the application has read.
    read: u64,
}

impl Socket {
    /// Returns a socket of a new connection.
    pub fn new(connection: Connection) -> Socket {
        Socket { connection, sent: Content::default(), received: Content::default(), read: 0 }
    }

    /// Returns whether the application can write, the send buffer aside.
    pub fn may_send(&self) -> bool {
        matches!(self.connection.state(), State::Established | State::CloseWait)
    }

    /// Queues `count` bytes for transmission, or as many as the send buffer has room for: first
    /// those of `bytes`, then [`FILL`]. Returns their number.
    pub fn write(&mut self, bytes: &[u8], count: u64) -> u64 {
        if !self.may_send() {
            return 0;
        }
        let place = self.connection.acknowledged() + self.connection.queued();
        let count = self.connection.write(self.connection.room().min(count));
        self.sent.put(place, &bytes[..bytes.len().min(count as usize)]);
        count
    }

    /// Takes at most `count` bytes that were received in order. Returns their places.
    fn take(&mut self, count: u64) -> Range<u64> {
        let from = self.read;
        self.read += self.connection.read(count);
        from..self.read
    }

    /// Reads at most `count` bytes and appends them to `into`. Returns their number.
    pub fn read(&mut self, count: u64, into: &mut Vec<u8>) -> u64 {
        let Range { start, end } = self.take(count);
        let length = into.len() + (end - start) as usize;
        into.extend(self.received.copy(start, end));
        into.resize(length, FILL);
        self.received.forget(end);
        end - start
    }

    /// Reads and discards at most `count` bytes. Returns their number, and the number of those that
    /// differ from [`FILL`].
    pub fn skip(&mut self, count: u64) -> (u64, u64) {
        let Range { start, end } = self.take(count);
        let other = self.received.count(start, end);
        self.received.forget(end);
        (end - start, other)
    }

    /// Returns the number of received bytes that can be read.
    pub fn unread(&self) -> u64 {
        self.connection.received() - self.read
    }

    /// Processes a segment with its payload, of which the first bytes may be stored and the others
    /// described.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, payload: Contents<'_>) {
        let (received, next) = self.connection.next_received();
        let Range { start, end } = self.connection.on_segment(now, segment);
        self.sent.forget(self.connection.acknowledged());
        if start == end {
            return;
        }
        let place = received + u64::from((segment.seq + start).since(next));
        let payload = match payload.filling.byte {
            FILL => payload.stored.into(),
            _ => payload.whole(),
        };
        if let Some(kept) = payload.get(start as usize..payload.len().min(end as usize)) {
            self.received.put(place, kept);
        }
    }

    /// Returns the payload of the segment that was just sent, without the [`FILL`] after its
    /// content.
    pub fn payload(&self, segment: &Segment) -> Vec<u8> {
        if segment.bytes == 0 {
            return Vec::new();
        }
        let from = self.connection.place_of(segment.seq);
        self.sent.copy(from, from + u64::from(segment.bytes))
    }

    /// Returns the socket's memory in bytes, including heap allocations.
    pub fn memory(&self) -> usize {
        let content = self.sent.memory() + self.received.memory();
        size_of::<Socket>() - size_of::<Connection>() + self.connection.memory() + content
    }
}
