//! An LLDP agent for one port (IEEE 802.1AB clause 9), without a clock.
//!
//! In plain English: a port tells the other end of its link who it is and what it does, and for
//! how long that holds. It says so at once when something changes, a few times in a row when a
//! new neighbour appears, and else every half minute; never more often than a credit allows,
//! which grows by one each second. What it hears it keeps until that time is over, until it
//! hears otherwise, or until the neighbour or the link goes.
//!
//! Three things differ from the letter: an agent always speaks and listens (adminStatus is
//! enabledRxTx), so that nothing but its carrier or its silence takes back what it said; timers are
//! moments and not counters of whole seconds, and the second after which the credit grows begins
//! when some of it was spent.

mod agent;
mod neighbours;

pub use agent::{LldpAgent, LldpCounters, LldpIdentity, LldpRequest};
pub use neighbours::Neighbour;

use axon_wire::Span;

/// The timers and bounds of an agent; the defaults are those of LLDP-V2-MIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LldpConfig {
    /// Seconds between two LLDPDUs when nothing happens (msgTxInterval): 1 to 3600, 30 by
    /// default.
    pub tx_interval_secs: u16,
    /// After how many of those what it said no longer holds (msgTxHold): 2 to 10, 4 by default.
    pub tx_hold: u16,
    /// LLDPDUs that it may send in a row (txCreditMax): 1 to 100, 5 by default.
    pub credit_max: u32,
    /// Between two LLDPDUs for a new neighbour (msgFastTx): 1 to 3600 s, 1 s by default.
    pub fast_interval: Span,
    /// How many of those (txFastInit): 1 to 8, 4 by default.
    pub fast_count: u32,
    /// How many neighbours it keeps: 32 by default. Further ones are counted and not kept.
    pub neighbours_max: usize,
}

impl Default for LldpConfig {
    fn default() -> LldpConfig {
        LldpConfig {
            tx_interval_secs: 30,
            tx_hold: 4,
            credit_max: 5,
            fast_interval: Span::from_secs(1),
            fast_count: 4,
            neighbours_max: 32,
        }
    }
}

impl LldpConfig {
    /// For how many seconds what it says holds (clause 9.2.5.22): one more than the intervals,
    /// 65,535 at most.
    pub fn ttl_secs(&self) -> u16 {
        let secs = u32::from(self.tx_interval_secs) * u32::from(self.tx_hold) + 1;
        u16::try_from(secs).unwrap_or(u16::MAX)
    }

    /// Between two LLDPDUs when nothing happens.
    fn tx_interval(&self) -> Span {
        Span::from_secs(self.tx_interval_secs.max(1).into())
    }
}
