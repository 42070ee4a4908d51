//! Addresses that the controller searches for, stored for a while; see `newcomers.rs`.

use alloc::collections::BTreeMap;
use axon_wire::{PortNo, Span, Time};
use core::net::IpAddr;

/// Time for which an address is stored, longer than the controller's pause between rounds.
const REMEMBERED: Span = Span::from_secs(6);
/// Maximum number of stored addresses; another one replaces the oldest.
pub(super) const SOUGHT_MAX: usize = 64;

/// Addresses searched for recently, and the ports queried for them.
#[derive(Clone, Debug, Default)]
pub(super) struct SoughtHere {
    /// Expiry of each address.
    pub(super) until: BTreeMap<IpAddr, Time>,
    /// New host ports, with their number of queries.
    pub(super) asked: BTreeMap<PortNo, u32>,
    /// Host ports, and since when they are.
    pub(super) since: BTreeMap<PortNo, Time>,
}

impl SoughtHere {
    /// Stores an address that the controller searches for.
    pub(super) fn remember(&mut self, now: Time, ip: IpAddr) {
        self.until.retain(|_, until| *until > now);
        if self.until.len() >= SOUGHT_MAX && !self.until.contains_key(&ip) {
            let oldest = self.until.iter().min_by_key(|&(ip, until)| (*until, *ip));
            let oldest = oldest.map(|(ip, _)| *ip);
            oldest.and_then(|ip| self.until.remove(&ip));
        }
        self.until.insert(ip, now + REMEMBERED);
    }

    /// Removes an address that a host of this switch has.
    pub(super) fn found(&mut self, ip: IpAddr) {
        self.until.remove(&ip);
    }
}
