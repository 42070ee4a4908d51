//! LLDP agent for one port (IEEE 802.1AB clause 9). It reads no clock.
//!
//! A port advertises its identity and its TLVs to the other end of its link, with a time to live.
//! It sends at once when something changes, a few times in succession when a new neighbour appears,
//! and otherwise every 30 seconds. A credit that grows by one each second limits the rate. A
//! received LLDPDU is kept until its time to live expires, a newer one replaces it, the neighbour
//! withdraws it, or the link goes down.
//!
//! There are three deviations from the letter of the standard. An agent always sends and receives
//! (adminStatus is enabledRxTx), so only loss of carrier or silence withdraws its advertisements.
//! Timers are points in time, not counters of whole seconds. The second after which the credit
//! grows begins when some credit is spent.

mod agent;
mod neighbours;

pub use agent::{LldpAgent, LldpCounters, LldpIdentity, LldpRequest};
pub use neighbours::Neighbour;

use axon_wire::Span;

/// Timers and limits of an agent. The defaults are those of LLDP-V2-MIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LldpConfig {
    /// Seconds between two LLDPDUs when nothing changes (msgTxInterval): 1 to 3600, 30 by
    /// default.
    pub tx_interval_secs: u16,
    /// Time to live, in multiples of `tx_interval_secs` (msgTxHold): 2 to 10, 4 by default.
    pub tx_hold: u16,
    /// Maximum number of LLDPDUs sent in succession (txCreditMax): 1 to 100, 5 by default.
    pub credit_max: u32,
    /// Interval between LLDPDUs sent for a new neighbour (msgFastTx): 1 to 3600 s, 1 s by default.
    pub fast_interval: Span,
    /// Number of LLDPDUs sent for a new neighbour (txFastInit): 1 to 8, 4 by default.
    pub fast_count: u32,
    /// Maximum number of neighbours kept: 32 by default. Further ones are only counted.
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
    /// Returns the time to live of an LLDPDU in seconds (clause 9.2.5.22), which is `tx_hold`
    /// intervals plus one second, at most 65,535.
    pub(crate) fn ttl_secs(&self) -> u16 {
        let secs = u32::from(self.tx_interval_secs) * u32::from(self.tx_hold) + 1;
        u16::try_from(secs).unwrap_or(u16::MAX)
    }

    /// Returns the time between two LLDPDUs when nothing changes.
    fn tx_interval(&self) -> Span {
        Span::from_secs(self.tx_interval_secs.max(1).into())
    }
}
