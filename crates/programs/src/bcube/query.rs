//! Messages of the available-bandwidth query (ABQ).

use super::cube::Nha;
use alloc::vec::Vec;

/// Message of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    /// Request for the bandwidth of a path. Each server on the path lowers the value to its own
    /// available bandwidth.
    Request {
        /// Number chosen by the source.
        id: u32,
        /// Minimum bandwidth so far, in bits per second.
        available: u64,
    },
    /// Answer on its way back to the source.
    Answer {
        /// Number of the request.
        id: u32,
        /// Minimum bandwidth along the path, in bits per second.
        available: u64,
    },
    /// Report that a server on a path has lost its next neighbour.
    Failure {
        /// Number of the reporting server.
        server: u32,
        /// Hop that the server cannot use.
        nha: Nha,
    },
}

/// First byte of a request.
const REQUEST: u8 = 1;
const ANSWER: u8 = 2;
const FAILURE: u8 = 3;

impl Query {
    /// Encodes the message: kind, three bytes of zeros or of the hop, number, bandwidth.
    pub(super) fn emit(self) -> Vec<u8> {
        let (kind, hop, number, available) = match self {
            Query::Request { id, available } => (REQUEST, 0, id, available),
            Query::Answer { id, available } => (ANSWER, 0, id, available),
            Query::Failure { server, nha } => (FAILURE, nha.0, server, 0),
        };
        let head = [kind, hop, 0, 0];
        [&head[..], &number.to_be_bytes(), &available.to_be_bytes()].concat()
    }

    /// Parses the message at the start of `bytes`.
    pub(super) fn parse(bytes: &[u8]) -> Option<Query> {
        let (&[kind, hop, ..], rest) = bytes.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (number, available) = (u32::from_be_bytes(*number), rest.first_chunk()?);
        let available = u64::from_be_bytes(*available);
        Some(match kind {
            REQUEST => Query::Request { id: number, available },
            ANSWER => Query::Answer { id: number, available },
            FAILURE => Query::Failure { server: number, nha: Nha(hop) },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_parsed_as_it_was_made() {
        for query in [
            Query::Request { id: 0x0102_0304, available: 1_000_000_000 },
            Query::Answer { id: 5, available: u64::MAX },
            Query::Failure { server: 70_000, nha: Nha(9) },
        ] {
            let bytes = query.emit();
            assert_eq!(Query::parse(&bytes), Some(query));
            for length in 0..bytes.len() {
                assert_eq!(Query::parse(&bytes[..length]), None, "{length}");
            }
        }
        assert_eq!(Query::parse(&[4; 16]), None, "an unknown kind");
    }
}
