//! Values that bridges compare: identifiers, priority vectors and timer values (IEEE 802.1D-2004
//! clauses 9.2.5 to 9.2.8 and 17.5 to 17.6).

use axon_wire::{MacAddr, Rate, Span};
use core::cmp::Ordering;

/// Bridge identifier: priority, then address. The lower one is better (clause 9.2.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BridgeId {
    /// Priority, 0 to 61,440 in steps of 4,096; 32,768 by default (table 17-2).
    pub priority: u16,
    /// Address of the bridge.
    pub mac: MacAddr,
}

/// Port identifier: a priority in the upper four bits, and the port number, from 1, in the lower
/// twelve (clause 9.2.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

impl PortId {
    /// Returns the identifier of the port with this index, with the default priority of 128 (table
    /// 17-2).
    pub const fn from_index(index: u16) -> PortId {
        PortId(0x8000 | (index + 1) & NUMBER)
    }

    /// Returns the port number, from 1.
    pub(crate) const fn number(self) -> u16 {
        self.0 & NUMBER
    }
}

/// Mask of the port number in a port identifier.
const NUMBER: u16 = 0x0fff;

/// Priority vector: root, distance and sender. Vectors are compared by their components in order,
/// and the lower one is better (clause 17.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vector {
    /// Root bridge.
    pub root: BridgeId,
    /// Cost of the path to the root.
    pub cost: u32,
    /// Sending bridge.
    pub bridge: BridgeId,
    /// Sending port.
    pub port: PortId,
}

impl Vector {
    /// Returns whether a message with this vector replaces `held`, because it is better or comes
    /// from the same port as `held` (clause 17.6).
    pub(crate) fn supersedes(&self, held: &Vector) -> bool {
        let same_port =
            self.bridge.mac == held.bridge.mac && self.port.number() == held.port.number();
        match self.cmp(held) {
            Ordering::Less => true,
            Ordering::Equal => false,
            Ordering::Greater => same_port,
        }
    }
}

/// Time in a BPDU, in units of 1/256 s (clause 9.2.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u16);

impl Ticks {
    /// Returns a time of `seconds` whole seconds, at most 255.
    pub(crate) const fn secs(seconds: u8) -> Ticks {
        Ticks((seconds as u16) << 8)
    }

    /// Returns the time as a span.
    pub(crate) const fn span(self) -> Span {
        Span::from_nanos(self.0 as u64 * (1_000_000_000 / 256))
    }

    /// Returns the time plus one second. Saturates.
    pub(crate) const fn plus_one_second(self) -> Ticks {
        Ticks(self.0.saturating_add(256))
    }
}

/// Timer values that are sent together with a vector (clause 17.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Age of the information, counted in hops of one second.
    pub message_age: Ticks,
    /// Maximum age: 20 s by default.
    pub max_age: Ticks,
    /// Interval between a designated port's BPDUs: 2 s.
    pub hello: Ticks,
    /// Time for which a port stays in a state without agreement: 15 s by default.
    pub forward_delay: Ticks,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            message_age: Ticks(0),
            max_age: Ticks::secs(20),
            hello: Ticks::secs(2),
            forward_delay: Ticks::secs(15),
        }
    }
}

/// Returns the recommended path cost of a link (table 17-3): 20,000,000,000 divided by its rate in
/// kb/s, 1 to 200,000,000.
pub fn path_cost(rate: Rate) -> u32 {
    let kilobits = (rate.bits_per_second() / 1000).max(1);
    (20_000_000_000 / kilobits).clamp(1, 200_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_costs_are_those_of_the_table() {
        for (megabits, cost) in [(10, 2_000_000), (100, 200_000), (1000, 20_000), (10_000, 2000)] {
            assert_eq!(path_cost(Rate::mbps(megabits)), cost);
        }
        assert_eq!(path_cost(Rate::gbps(100_000_000)), 1);
        assert_eq!(path_cost(Rate::from_bits_per_second(1).unwrap()), 200_000_000);
    }

    #[test]
    fn a_worse_word_of_the_same_port_replaces_a_better_one() {
        let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
        let bridge = |last| BridgeId { priority: 0x8000, mac: mac(last) };
        let held = Vector { root: bridge(1), cost: 5, bridge: bridge(3), port: PortId(0x8001) };
        let worse = Vector { root: bridge(2), ..held };
        assert!(worse.supersedes(&held) && held.supersedes(&worse));
        assert!(!held.supersedes(&held));
        assert!(!Vector { bridge: bridge(4), ..worse }.supersedes(&held));
        assert!(Vector { bridge: bridge(2), ..held }.supersedes(&held));
    }

    #[test]
    fn a_tick_is_a_256th_of_a_second() {
        assert_eq!(Ticks::secs(2).span(), Span::from_secs(2));
        assert_eq!(Ticks(1).span().as_nanos(), 3_906_250);
        assert_eq!(Ticks::secs(255).plus_one_second().plus_one_second(), Ticks(u16::MAX));
    }
}
