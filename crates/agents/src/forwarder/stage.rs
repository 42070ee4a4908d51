//! How far a connection has come, by what its packets say.
//!
//! The client of a TCP connection is there when it knows the sequence number in the backend's SYN:
//! who sends under another's address does not. UDP has nothing of the kind.
//!
//! **Forged ends.** Of an established connection each side's last sequence number and
//! acknowledgement are kept. A reset ends it only where the other side would believe it, too (RFC
//! 5961 section 3.2): its sequence number is the next one that the other side expects. Or it
//! acknowledges the last byte of the other side, and is [`NEAR`]: so ends one that has data in
//! flight. Either takes 2^32 guesses. A FIN, and a reset with data in flight both ways, is to be
//! near in both numbers, which takes 2^16; all that it does alone is that the connection may be
//! idle for a shorter time.

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
    if flags.rst && other.is_reset_by(flags) {
        return Stage::Closed;
    }
    let fits = other.fits(flags);
    closed[side as usize] |= (flags.fin || flags.rst) && fits;
    // What the backend sends stands for itself, and what the client sends is held against that: so
    // the two find each other again, however far a segment is ahead.
    if let Some(acknowledged) = flags.acknowledged.filter(|_| fits || side == Side::Backend)
        && (fits || !flags.fin)
        && !flags.rst
    {
        seen[side as usize] = Seen { next: flags.next, acknowledged };
    }
    if closed == [true; 2] { Stage::Closed } else { Stage::Established { closed, seen } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of the client, which the backend has acknowledged up to 0, having sent up to 5.
    fn segment(sequence: u32, acknowledged: u32) -> Flags {
        Flags { sequence, next: sequence, acknowledged: Some(acknowledged), ..Flags::default() }
    }

    const BACKEND: Seen = Seen { next: 5, acknowledged: 0 };

    #[test]
    fn a_segment_fits_within_eight_mebibytes_of_both_numbers_either_way() {
        for (apart, fits) in [(0, true), (NEAR, true), (NEAR + 1, false), (1 << 31, false)] {
            for apart in [apart, apart.wrapping_neg()] {
                let acknowledged = apart.wrapping_add(5);
                for (sequence, acknowledged) in
                    [(apart, 5), (0, acknowledged), (apart, acknowledged)]
                {
                    let segment = segment(sequence, acknowledged);
                    assert_eq!(BACKEND.fits(segment), fits, "{segment:?}");
                }
            }
        }
        assert!(!BACKEND.fits(Flags { acknowledged: None, ..segment(0, 5) }));
    }

    #[test]
    fn a_reset_is_exact_in_one_number() {
        let is_reset =
            |sequence, acknowledged| BACKEND.is_reset_by(segment(sequence, acknowledged));
        assert!(is_reset(0, 77) && is_reset(1, 5) && is_reset(NEAR, 5));
        assert!(!is_reset(1, 6) && !is_reset(1, 4) && !is_reset(NEAR + 1, 5));
    }

    #[test]
    fn a_window_longer_than_what_is_near_does_not_keep_a_connection_from_its_end() {
        let mut stage = Stage::Established { closed: [false; 2], seen: [Seen::default(); 2] };
        let ahead = 3 * NEAR;
        let fin = |segment: Flags| Flags { fin: true, next: segment.next + 1, ..segment };
        for (side, segment) in [
            (Side::Client, segment(ahead, 0)),
            (Side::Backend, segment(0, ahead)),
            (Side::Client, fin(segment(ahead, 0))),
            (Side::Backend, fin(segment(0, ahead + 1))),
        ] {
            assert!(matches!(stage, Stage::Established { .. }));
            stage = stage.after(side, segment);
        }
        assert_eq!(stage, Stage::Closed);
    }
}
