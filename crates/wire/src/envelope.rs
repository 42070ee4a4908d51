//! Envelope of sealed control messages.
//!
//! ```text
//!  bytes  1         2        8      8             8          length
//!       +---------+--------+------+-------------+----------+---------------------------+
//!       | version | length | node | incarnation | sequence | sealed message, 16 B tag  |
//!       +---------+--------+------+-------------+----------+---------------------------+
//! ```
//!
//! All fields are big-endian. Node, incarnation and sequence together are the 24-byte nonce for
//! XChaCha20-Poly1305. An incarnation never seals two messages with the same sequence, so no nonce
//! repeats under one key. The receiver's incarnation is authenticated but not sent, because the
//! receiver supplies its own.

use crate::addr::{Incarnation, NodeId};
pub use crate::constants::length::ENVELOPE as ENVELOPE_BYTES;
use crate::constants::length::NONCE;
pub use crate::constants::version::ENVELOPE as VERSION;
use alloc::vec::Vec;

/// An envelope whose message is still sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The incarnation that sealed the message.
    pub from: Incarnation,
    /// Sequence number among all messages that this incarnation has sealed, from 1.
    pub sequence: u64,
    /// Ciphertext and tag.
    pub sealed: &'a [u8],
}

/// Errors in parsing an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Fewer bytes than the envelope's length field states.
    #[error("truncated")]
    Truncated,
    /// Another version of the protocol.
    #[error("version {0}, where {VERSION} was expected")]
    Version(u8),
}

impl<'a> Envelope<'a> {
    /// Parses the envelope at the start of `bytes`. The bytes after it are padding.
    ///
    /// # Errors
    /// Truncation, or a version other than [`VERSION`].
    pub fn parse(bytes: &'a [u8]) -> Result<Envelope<'a>, EnvelopeError> {
        let (head, rest) =
            bytes.split_first_chunk::<ENVELOPE_BYTES>().ok_or(EnvelopeError::Truncated)?;
        if head[0] != VERSION {
            return Err(EnvelopeError::Version(head[0]));
        }
        let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[at..at + 8]);
            u64::from_be_bytes(bytes)
        };
        Ok(Envelope {
            from: Incarnation { node: NodeId(word(3)), number: word(11) },
            sequence: word(19),
            sealed: rest.get(..length).ok_or(EnvelopeError::Truncated)?,
        })
    }

    /// Returns the bytes of this envelope.
    ///
    /// # Panics
    /// If the sealed message is longer than 65,535 bytes; senders keep it far shorter.
    pub fn emit(&self) -> Vec<u8> {
        let length = u16::try_from(self.sealed.len()).expect("a control message fits a frame");
        let mut bytes = Vec::with_capacity(ENVELOPE_BYTES + self.sealed.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&nonce(self.from, self.sequence));
        bytes.extend_from_slice(self.sealed);
        bytes
    }
}

/// Returns the 24-byte nonce for message `sequence` of the incarnation `from`.
pub fn nonce(from: Incarnation, sequence: u64) -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    nonce[..8].copy_from_slice(&from.node.0.to_be_bytes());
    nonce[8..16].copy_from_slice(&from.number.to_be_bytes());
    nonce[16..].copy_from_slice(&sequence.to_be_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_behind_an_envelope_is_not_part_of_it() {
        let from = Incarnation { node: NodeId(7), number: 9 };
        let envelope = Envelope { from, sequence: 3, sealed: b"sealed" };
        let mut bytes = envelope.emit();
        bytes.extend_from_slice(&[0; 20]);
        assert_eq!(Envelope::parse(&bytes), Ok(envelope));
    }

    #[test]
    fn short_and_foreign_envelopes_are_refused() {
        let from = Incarnation { node: NodeId(7), number: 9 };
        let mut bytes = Envelope { from, sequence: 3, sealed: b"sealed" }.emit();
        for length in 0..bytes.len() {
            assert_eq!(Envelope::parse(&bytes[..length]), Err(EnvelopeError::Truncated));
        }
        bytes[0] = VERSION + 1;
        assert_eq!(Envelope::parse(&bytes), Err(EnvelopeError::Version(VERSION + 1)));
    }
}
