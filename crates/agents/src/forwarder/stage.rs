//! Stage of a connection, derived from its packets.
//!
//! The client of a TCP connection is reachable if it knows the sequence number of the backend's
//! SYN. A sender with a forged address does not know it. UDP has no such proof.
//!
//! **Forged ends.** The last sequence number and acknowledgement from each side of an established
//! connection are stored. A reset ends the connection only if the other side would also accept it
//! (RFC 5961 section 3.2), that is, if its sequence number is the next one that the other side
//! expects. It also ends the connection if it acknowledges the last byte from the other side and is
//! [`NEAR`], which covers a sender with data in flight. Either takes 2^32 guesses. A FIN, and a
//! reset with data in flight in both directions, must be near in both numbers. This takes 2^16
//! guesses, but its only effect is a shorter idle time.

/// Maximum distance of a first acknowledgement beyond the backend's SYN, because data may come with
/// the SYN (RFC 7413).
pub(super) const ACKED_MAX: u32 = 0xffff;

/// Maximum distance of a segment's numbers from those seen. The longest window that Linux announces
/// by default is 6 MiB.
const NEAR: u32 = 8 << 20;

/// Side that sent a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Backend,
}

/// TCP header fields that are relevant for the beginning and the end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub fin: bool,
    pub rst: bool,
    pub syn: bool,
    /// Sequence number.
    pub sequence: u32,
    /// Sequence number after this segment.
    pub next: u32,
    /// Next sequence number expected from the other side.
    pub acknowledged: Option<u32>,
}

/// Numbers in the last segment from a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Sequence number after the segment.
    next: u32,
    /// Acknowledgement.
    acknowledged: u32,
}

impl Seen {
    /// Returns whether a segment from the other side belongs to the connection, according to both
    /// of its numbers.
    fn fits(self, flags: Flags) -> bool {
        let is_near = |one: u32, other: u32| {
            let apart = one.wrapping_sub(other);
            apart.min(apart.wrapping_neg()) <= NEAR
        };
        let acknowledged = flags.acknowledged.is_some_and(|number| is_near(number, self.next));
        acknowledged && is_near(flags.sequence, self.acknowledged)
    }

    /// Returns whether a reset from the other side is genuine.
    fn is_reset_by(self, flags: Flags) -> bool {
        let is_last = flags.acknowledged == Some(self.next);
        flags.sequence == self.acknowledged || is_last && self.fits(flags)
    }
}

/// Stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The client has not yet proved to be reachable.
    HalfOpen {
        /// Acknowledgement expected from the client, once the backend has answered.
        expected: Option<u32>,
    },
    /// Both sides are reachable.
    Established {
        /// True for each side, client and backend, that has sent a FIN.
        closed: [bool; 2],
        /// Last segments from the client and from the backend.
        seen: [Seen; 2],
    },
    /// Both sides have closed the connection, or one has reset it.
    Closed,
}

impl Stage {
    /// Stage of a new connection.
    pub(crate) const NEW: Stage = Stage::HalfOpen { expected: None };

    pub(crate) const fn is_half_open(self) -> bool {
        matches!(self, Stage::HalfOpen { .. })
    }

    /// Returns whether a packet from the client proves that its sender sees the backend's packets.
    pub(crate) fn is_of_client(self, flags: Flags) -> bool {
        match self {
            Stage::Established { seen, .. } => seen[Side::Backend as usize].fits(flags),
            Stage::HalfOpen { .. } | Stage::Closed => false,
        }
    }

    /// Returns the stage after a TCP packet.
    pub(crate) fn after(self, side: Side, flags: Flags) -> Stage {
        match (self, side) {
            // The client reuses its port.
            (Stage::Closed, Side::Client) if flags.syn && !flags.rst => Stage::NEW,
            (Stage::Closed, _) => Stage::Closed,
            (Stage::HalfOpen { .. }, Side::Backend) if flags.rst => Stage::Closed,
            // Without the reset, the connection ends equally soon.
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

    /// Returns the stage after a datagram.
    pub(crate) fn after_datagram(self, side: Side) -> Stage {
        match (self, side) {
            (Stage::HalfOpen { .. }, Side::Backend) => Stage::HalfOpen { expected: Some(0) },
            (Stage::HalfOpen { expected: Some(_) }, Side::Client) => {
                Stage::Established { closed: [false; 2], seen: [Seen::default(); 2] }
            }
            _ => self,
        }
    }
}

/// Returns the stage of an established connection after a packet.
fn established(mut closed: [bool; 2], mut seen: [Seen; 2], side: Side, flags: Flags) -> Stage {
    let other = seen[1 - side as usize];
    if flags.rst && other.is_reset_by(flags) {
        return Stage::Closed;
    }
    let fits = other.fits(flags);
    closed[side as usize] |= (flags.fin || flags.rst) && fits;
    // The backend's numbers are taken as they are, and the client's numbers are checked against
    // them. So the two resynchronise, however far a segment is ahead.
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

    /// Returns a segment from the client. The client has acknowledged `acknowledged`; the backend
    /// has acknowledged up to 0 and sent up to 5.
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
