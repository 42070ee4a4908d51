//! Remembered claims, from the controller's store or of a switch's previous incarnation. They count
//! until they expire, unless their switch reports them again.

use super::{HostIndex, HostTable, Learned, Place, SwitchIndex, UNCONFIRMED};
use alloc::vec::Vec;
use axon_wire::{MacAddr, Time};
use core::net::IpAddr;

impl HostTable {
    /// Restores a stored host. Returns `None` if its MAC address is not that of a host, or if the
    /// host exists already.
    pub(crate) fn restore(&mut self, place: Place, mac: MacAddr) -> Option<HostIndex> {
        if self.by_mac(mac).is_some() {
            return None;
        }
        let Learned::Here(index) = self.add(place, mac, None) else { return None };
        let host = self.slots[index.index()].as_mut()?;
        host.claims[0].remembered = true;
        self.remembers = true;
        Some(index)
    }

    /// Handles the first message from a switch. From now on, the remembered claims at its ports
    /// expire unless the switch reports them.
    pub(crate) fn heard(&mut self, now: Time, switch: SwitchIndex) {
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

    /// Handles a restart of a switch. Its claims become remembered ones, which expire unless the
    /// switch reports them. Returns these claims.
    pub(crate) fn reborn(&mut self, now: Time, switch: SwitchIndex) -> Vec<(Place, MacAddr)> {
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

    /// Returns the address with which to query a host if its claim at this place is only
    /// remembered.
    pub(crate) fn remembered(&self, place: Place, mac: MacAddr) -> Option<IpAddr> {
        let host = self.get(self.by_mac(mac)?)?;
        let mut claims = host.claims.iter();
        claims.any(|claim| claim.place == place && claim.remembered).then_some(())?;
        host.ips.last().copied()
    }
}
