//! How far a connection has come, by what its packets say.
//!
//! The client of a TCP connection is there when it knows the sequence number in the backend's SYN:
//! who sends under another's address does not. UDP has nothing of the kind.
//!
//! **Forged ends.** Of an established connection each side's last sequence number and
//! acknowledgement are kept. A reset ends it only where the other side would believe it, too (RFC
//! 5961 section 3.2): its sequence number is the next one that the other side expects. Or it
//! acknowledges the last byte of the other side, and is [`NEAR`]: so ends one that has data in
//! flight. Either takes 2^32 guesses. A FIN is to be near in both numbers, which takes 2^16; all
//! that it does alone is that the connection may be idle for a shorter time.

/// By how much a first acknowledgement may be beyond the backend's SYN: data may come with that
/// (RFC 7413).
pub(super) const ACKED_MAX: u32 = 0xffff;

/// By how much the numbers of a segment may be off those that were seen: the longest window that
/// Linux announces by default is of 6 MiB.
const NEAR: u32 = 8 << 20;

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
    /// The sequence number behind this segment.
    pub next: u32,
    /// The next sequence number that is expected from the other side.
    pub acknowledged: Option<u32>,
}

/// The numbers in a side's last segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// The sequence number behind it.
    next: u32,
    /// What it acknowledges.
    acknowledged: u32,
}

impl Seen {
    /// A segment of the other side is of the same connection, by both of its numbers.
    fn fits(self, flags: Flags) -> bool {
        let is_near = |one: u32, other: u32| {
            let apart = one.wrapping_sub(other);
            apart.min(apart.wrapping_neg()) <= NEAR
        };
        let acknowledged = flags.acknowledged.is_some_and(|number| is_near(number, self.next));
        acknowledged && is_near(flags.sequence, self.acknowledged)
    }

    /// The other side's reset is its own.
    fn is_reset_by(self, flags: Flags) -> bool {
        let is_last = flags.acknowledged == Some(self.next);
        flags.sequence == self.acknowledged || is_last && self.fits(flags)
    }
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
        /// The last segments of the client, and of the backend.
        seen: [Seen; 2],
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

    /// A packet from the client is of one who sees what the backend sends.
    pub fn is_of_client(self, flags: Flags) -> bool {
        match self {
            Stage::Established { seen, .. } => seen[Side::Backend as usize].fits(flags),
            Stage::HalfOpen { .. } | Stage::Closed => false,
        }
    }

    /// The stage after a packet of TCP.
    pub fn after(self, side: Side, flags: Flags) -> Stage {
        match (self, side) {
            // The client uses its port anew.
            (Stage::Closed, Side::Client) if flags.syn && !flags.rst => Stage::NEW,
            (Stage::Closed, _) => Stage::Closed,
            (Stage::HalfOpen { .. }, Side::Backend) if flags.rst => Stage::Closed,
            // It ends by itself as soon.
            (Stage::HalfOpen { .. }, Side::Client) if flags.rst => self,
            (Stage::HalfOpen { .. }, Side::Backend) if flags.syn => {
                Stage::HalfOpen { expected: Some(flags.sequence.wrapping_add(1)) }
            }
            (Stage::HalfOpen { expected: Some(expected) }, Side::Client) => {
                let beyond = flags.acknowledged.map(|number| number.wrapping_sub(expected));
                let is_there = beyond.is_some_and(|beyond| beyond <= ACKED_MAX);
                let backend = Seen { next: expected, acknowledged: flags.sequence };
                let seen = [Seen::default(), backend];
                if is_there { established([false; 2], seen, side, flags) } else { self }
            }
            (Stage::HalfOpen { .. }, _) => self,
            (Stage::Established { closed, seen }, _) => established(closed, seen, side, flags),
        }
    }

    /// The stage after a datagram.
    pub fn after_datagram(self, side: Side) -> Stage {
        match (self, side) {
            (Stage::HalfOpen { .. }, Side::Backend) => Stage::HalfOpen { expected: Some(0) },
            (Stage::HalfOpen { expected: Some(_) }, Side::Client) => {
                Stage::Established { closed: [false; 2], seen: [Seen::default(); 2] }
            }
            _ => self,
        }
    }
}

/// The stage after a packet of an established connection.
fn established(mut closed: [bool; 2], mut seen: [Seen; 2], side: Side, flags: Flags) -> Stage {
    let other = seen[1 - side as usize];
    if flags.rst {
        let is_closed = other.is_reset_by(flags);
        return if is_closed { Stage::Closed } else { Stage::Established { closed, seen } };
    }
    let fits = other.fits(flags);
    closed[side as usize] |= flags.fin && fits;
    // What the backend sends stands for itself, and what the client sends is held against that: so
    // the two find each other again, however far a segment is ahead.
    if let Some(acknowledged) = flags.acknowledged.filter(|_| fits || side == Side::Backend)
        && (fits || !flags.fin)
    {
        seen[side as usize] = Seen { next: flags.next, acknowledged };
    }
    if closed == [true; 2] { Stage::Closed } else { Stage::Established { closed, seen } }
}
