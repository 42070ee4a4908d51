//! Claims that are remembered: from the store of the controller, or of the incarnation before of a
//! switch. They hold until their switch makes them again, or their time is over.

use super::{HostIndex, HostTable, Learned, Place, SwitchIndex, UNCONFIRMED};
use alloc::vec::Vec;
use axon_wire::{MacAddr, Time};
use core::net::IpAddr;

impl HostTable {
    /// Enters a host that the store held; `None` if it cannot be one, or is there already.
    pub(in crate::controller) fn restore(
        &mut self,
        place: Place,
        mac: MacAddr,
    ) -> Option<HostIndex> {
        if self.by_mac(mac).is_some() {
            return None;
        }
        let Learned::Here(index) = self.add(place, mac, None) else { return None };
        let host = self.slots[index.index()].as_mut()?;
        host.claims[0].remembered = true;
        self.remembers = true;
        Some(index)
    }

    /// A switch was heard for the first time: the claims of its ports that are remembered run out
    /// unless it reports them.
    pub(in crate::controller) fn heard(&mut self, now: Time, switch: SwitchIndex) {
        if !self.remembers {
            return;
        }
        let until = now + UNCONFIRMED;
        for host in self.slots.iter_mut().flatten() {
            let claims = host.claims.iter_mut();
            for claim in claims.filter(|claim| claim.remembered && claim.place.switch == switch) {
                if claim.until.is_none() {
                    claim.until = Some(until);
                    self.unconfirmed.insert((until, host.mac, claim.place));
                }
            }
        }
    }

    /// A switch has started anew: its claims are remembered, and run out unless it makes them
    /// again. Returns them.
    pub(in crate::controller) fn reborn(
        &mut self,
        now: Time,
        switch: SwitchIndex,
    ) -> Vec<(Place, MacAddr)> {
        let until = now + UNCONFIRMED;
        let mut claims = Vec::new();
        for host in self.slots.iter_mut().flatten() {
            for claim in host.claims.iter_mut().filter(|claim| claim.place.switch == switch) {
                claims.push((claim.place, host.mac));
                if claim.until.is_none() {
                    (claim.remembered, claim.until) = (true, Some(until));
                    self.unconfirmed.insert((until, host.mac, claim.place));
                }
            }
        }
        claims
    }

    /// Whether the claim of a host at a place is remembered, with the address to query it by.
    pub(in crate::controller) fn remembered(&self, place: Place, mac: MacAddr) -> Option<IpAddr> {
        let host = self.get(self.by_mac(mac)?)?;
        let mut claims = host.claims.iter();
        claims.any(|claim| claim.place == place && claim.remembered).then_some(())?;
        host.ips.last().copied()
    }
}
