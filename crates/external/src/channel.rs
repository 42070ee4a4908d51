//! One end of the socket pair. It sends and receives complete messages, blocking or not.

use crate::message::MESSAGE_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Size of the little-endian length before each message, in bytes.
const LENGTH: usize = 4;
/// Maximum number of bytes in one read.
const READ: usize = 1 << 16;
/// Maximum number of reads in one poll. A longer message is continued in the next poll.
const READS_MAX: usize = 16;
/// Number of buffered bytes at which they are sent without a request.
const KEEP: usize = 1 << 16;

/// Error of a channel.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The other end is closed.
    #[error("the other end is closed")]
    Closed,
    /// The time limit was exceeded.
    #[error("no answer in time")]
    Late,
    /// The message is invalid or too long.
    #[error("not a message")]
    Malformed,
    /// The system reported an error.
    #[error(transparent)]
    Io(std::io::Error),
}

/// One end of the socket pair.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: UnixStream,
    /// Received bytes. Those before `taken` have been processed.
    inbox: Vec<u8>,
    taken: usize,
    /// Bytes that have not been sent yet.
    outbox: Vec<u8>,
}

impl Channel {
    pub(crate) fn new(stream: UnixStream) -> Channel {
        Channel { stream, inbox: Vec::new(), taken: 0, outbox: Vec::new() }
    }

    /// Makes the socket non-blocking.
    pub(crate) fn set_nonblocking(&mut self) -> Result<(), ChannelError> {
        self.stream.set_nonblocking(true).map_err(ChannelError::Io)
    }

    /// Queues a message.
    pub(crate) fn put(&mut self, message: &impl Serialize) -> Result<(), ChannelError> {
        let start = self.outbox.len();
        let mut bytes = std::mem::take(&mut self.outbox);
        bytes.extend([0; LENGTH]);
        let bytes = postcard::to_extend(message, bytes).map_err(|_| ChannelError::Malformed)?;
        self.outbox = bytes;
        let length = self.outbox.len() - start - LENGTH;
        if length > MESSAGE_BYTES_MAX {
            self.outbox.truncate(start);
            return Err(ChannelError::Malformed);
        }
        let place = &mut self.outbox[start..start + LENGTH];
        place.copy_from_slice(&(length as u32).to_le_bytes());
        Ok(())
    }

    /// Returns whether so many bytes are queued that they should be sent.
    pub(crate) fn is_heavy(&self) -> bool {
        self.outbox.len() >= KEEP
    }

    /// Sends all queued messages, and waits until `end` at the latest.
    pub(crate) fn send(&mut self, end: Option<Instant>) -> Result<(), ChannelError> {
        let mut sent = 0;
        while sent < self.outbox.len() {
            self.stream.set_write_timeout(left(end)?).map_err(ChannelError::Io)?;
            match self.stream.write(&self.outbox[sent..]) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(length) => sent += length,
                Err(error) => retry(error)?,
            }
        }
        self.outbox.clear();
        Ok(())
    }

    /// Sends as many bytes as the socket accepts without blocking.
    pub(crate) fn send_some(&mut self) -> Result<(), ChannelError> {
        let mut sent = 0;
        while sent < self.outbox.len() {
            match self.stream.write(&self.outbox[sent..]) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(length) => sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => retry(error)?,
            }
        }
        self.outbox.drain(..sent);
        Ok(())
    }

    /// Returns the next message, and waits for it until `end` at the latest.
    pub(crate) fn receive<T: DeserializeOwned>(
        &mut self,
        end: Option<Instant>,
    ) -> Result<T, ChannelError> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(message);
            }
            self.stream.set_read_timeout(left(end)?).map_err(ChannelError::Io)?;
            self.read()?;
        }
    }

    /// Returns the next message if it has arrived. Reads at most 1 MiB for it.
    pub(crate) fn receive_some<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ChannelError> {
        for _ in 0..READS_MAX {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
        self.take()
    }

    /// Reads available bytes. Returns whether there were any.
    fn read(&mut self) -> Result<bool, ChannelError> {
        self.inbox.drain(..self.taken);
        self.taken = 0;
        let length = self.inbox.len();
        self.inbox.resize(length + READ, 0);
        let result = self.stream.read(&mut self.inbox[length..]);
        self.inbox.truncate(length + *result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => Err(ChannelError::Closed),
            Ok(_) => Ok(true),
            Err(error) => retry(error).map(|()| false),
        }
    }

    /// Returns the next message from the received bytes, if it is complete.
    fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ChannelError> {
        let rest = &self.inbox[self.taken..];
        let Some(length) = rest.first_chunk().copied().map(u32::from_le_bytes) else {
            return Ok(None);
        };
        let length = length as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(ChannelError::Malformed);
        }
        let Some(bytes) = rest.get(LENGTH..LENGTH + length) else { return Ok(None) };
        let message = postcard::from_bytes(bytes).map_err(|_| ChannelError::Malformed)?;
        self.taken += LENGTH + length;
        Ok(Some(message))
    }
}

/// Returns the remaining time. It is at least a millisecond, because zero would mean no limit.
fn left(end: Option<Instant>) -> Result<Option<Duration>, ChannelError> {
    let Some(end) = end else { return Ok(None) };
    match end.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(ChannelError::Late),
        left => Ok(Some(left.max(Duration::from_millis(1)))),
    }
}

/// Treats errors that only mean "not yet" as success.
fn retry(error: std::io::Error) -> Result<(), ChannelError> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(()),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Err(ChannelError::Closed),
        _ => Err(ChannelError::Io(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Channel, Channel) {
        let (one, other) = UnixStream::pair().unwrap();
        (Channel::new(one), Channel::new(other))
    }

    #[test]
    fn messages_come_whole_and_in_order_however_they_are_cut() {
        let (mut one, mut other) = pair();
        one.put(&vec![7_u32; 100_000]).unwrap();
        one.put(&vec![8_u32]).unwrap();
        other.set_nonblocking().unwrap();
        one.set_nonblocking().unwrap();
        let mut received: Vec<Vec<u32>> = Vec::new();
        while received.len() < 2 {
            one.send_some().unwrap();
            received.extend(other.receive_some().unwrap());
        }
        assert_eq!(received, [vec![7; 100_000], vec![8]]);
        assert_eq!(other.receive_some::<Vec<u32>>().unwrap(), None);
    }

    #[test]
    fn what_never_comes_is_late_and_what_is_closed_is_closed() {
        let (one, mut other) = pair();
        let soon = Some(Instant::now() + Duration::from_millis(20));
        assert!(matches!(other.receive::<u8>(soon), Err(ChannelError::Late)));
        drop(one);
        assert!(matches!(other.receive::<u8>(None), Err(ChannelError::Closed)));
    }

    #[test]
    fn a_length_that_no_message_has_is_refused_before_it_is_kept() {
        let (one, mut other) = pair();
        (&one.stream).write_all(&[0xff; 8]).unwrap();
        assert!(matches!(other.receive::<u8>(None), Err(ChannelError::Malformed)));
    }
}
