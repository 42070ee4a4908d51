//! How far a connection has come, by what its packets say.
//!
//! The client of a TCP connection is there when it knows the sequence number in the backend's SYN:
//! who sends under another's address does not. UDP has nothing of the kind.

/// By how much a first acknowledgement may be beyond the backend's SYN: data may come with that
/// (RFC 7413).
pub(super) const ACKED_MAX: u32 = 0xffff;

/// Which side a packet is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Backend,
}

/// What the header of TCP says of the beginning and the end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub fin: bool,
    pub rst: bool,
    pub syn: bool,
    /// The sequence number.
    pub sequence: u32,
    /// The next sequence number that is expected from the other side.
    pub acknowledged: Option<u32>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nobody knows whether its client is there.
    HalfOpen {
        /// What the client has to acknowledge, once the backend has answered.
        expected: Option<u32>,
    },
    /// Both sides are there.
    Established {
        /// The client, and the backend, have sent a FIN.
        closed: [bool; 2],
    },
    /// Both sides have closed it, or one has reset it.
    Closed,
}

impl Stage {
    /// That of a connection which begins.
    pub const NEW: Stage = Stage::HalfOpen { expected: None };

    pub const fn is_half_open(self) -> bool {
        matches!(self, Stage::HalfOpen { .. })
    }

    /// The stage after a packet of TCP.
    pub fn after(self, side: Side, flags: Flags) -> Stage {
        if flags.rst {
            return Stage::Closed;
        }
        let established = |mut closed: [bool; 2]| {
            closed[side as usize] |= flags.fin;
            if closed == [true; 2] { Stage::Closed } else { Stage::Established { closed } }
        };
        match (self, side) {
            // The client uses its port anew.
            (Stage::Closed, Side::Client) if flags.syn => Stage::NEW,
            (Stage::Closed, _) => Stage::Closed,
            (Stage::HalfOpen { .. }, Side::Backend) if flags.syn => {
                Stage::HalfOpen { expected: Some(flags.sequence.wrapping_add(1)) }
            }
            (Stage::HalfOpen { expected: Some(expected) }, Side::Client) => {
                let beyond = flags.acknowledged.map(|number| number.wrapping_sub(expected));
                let is_there = beyond.is_some_and(|beyond| beyond <= ACKED_MAX);
                if is_there { established([false; 2]) } else { self }
            }
            (Stage::HalfOpen { .. }, _) => self,
            (Stage::Established { closed }, _) => established(closed),
        }
    }

    /// The stage after a datagram.
    pub fn after_datagram(self, side: Side) -> Stage {
        match (self, side) {
            (Stage::HalfOpen { .. }, Side::Backend) => Stage::HalfOpen { expected: Some(0) },
            (Stage::HalfOpen { expected: Some(_) }, Side::Client) => {
                Stage::Established { closed: [false; 2] }
            }
            _ => self,
        }
    }
}
