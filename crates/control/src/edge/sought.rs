//! Addresses that the controller looks for, remembered for a while; `newcomers.rs` says what for.

use alloc::collections::BTreeMap;
use axon_wire::{PortNo, Span, Time};
use core::net::IpAddr;

/// For how long an address is remembered: longer than the controller pauses between its rounds.
const REMEMBERED: Span = Span::from_secs(6);
/// Addresses that are remembered; one more takes the place of that which was sought first.
pub(super) const SOUGHT_MAX: usize = 64;

/// The addresses that were sought of late, and the ports that are asked for them.
#[derive(Clone, Debug, Default)]
pub(super) struct SoughtHere {
    /// Until when each is remembered.
    pub(super) until: BTreeMap<IpAddr, Time>,
    /// The ports that have become host ports of late, and how often each was asked.
    pub(super) asked: BTreeMap<PortNo, u32>,
    /// The ports that are host ports, and since when.
    pub(super) since: BTreeMap<PortNo, Time>,
}

impl SoughtHere {
    /// The controller looks for the host of an address.
    pub(super) fn remember(&mut self, now: Time, ip: IpAddr) {
        self.until.retain(|_, until| *until > now);
        if self.until.len() >= SOUGHT_MAX && !self.until.contains_key(&ip) {
            let oldest = self.until.iter().min_by_key(|&(ip, until)| (*until, *ip));
            let oldest = oldest.map(|(ip, _)| *ip);
            oldest.and_then(|ip| self.until.remove(&ip));
        }
        self.until.insert(ip, now + REMEMBERED);
    }

    /// A host of this switch has the address.
    pub(super) fn found(&mut self, ip: IpAddr) {
        self.until.remove(&ip);
    }
}
