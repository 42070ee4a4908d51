//! The ledger of a station: its frames in all incarnations.

use crate::engine::accounts::Accounts;
use axon_node::Drop;
use axon_simhost::lost::LostDatagrams;

/// Frames of a station. The counters of passing frames come first.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Ledger {
    /// Frame counters of the current incarnation.
    pub(crate) accounts: Accounts,
    /// Frame counters of all earlier incarnations, if any.
    past: Option<Box<Accounts>>,
    /// First imbalance found at the end of an incarnation.
    pub(crate) fault: Option<String>,
    /// Number of incarnations so far; the current one has this number, from 1.
    pub(crate) incarnations: u64,
    /// Datagrams lost at this station, in all incarnations.
    pub(crate) lost: LostDatagrams,
}

impl Ledger {
    /// Returns the counters over all incarnations.
    pub(crate) fn total(&self) -> Accounts {
        let mut sum = self.accounts.clone();
        if let Some(past) = &self.past {
            sum.add(past);
        }
        sum
    }

    /// Counts `held` frames as lost with their incarnation. Keeps `fault` if it is the first.
    pub(crate) fn close(&mut self, held: u64, fault: Option<String>) {
        self.fault = self.fault.take().or(fault);
        self.accounts.dropped[Drop::PowerLost as usize] += held;
    }

    /// Ends an incarnation.
    pub(crate) fn end(&mut self) {
        let accounts = std::mem::take(&mut self.accounts);
        self.past.get_or_insert_default().add(&accounts);
    }
}
