//! Places in route tables, and changes that the data plane has not answered.
//!
//! A change must be answered within five seconds. Otherwise it counts as refused, and a later
//! answer is ignored. The number of changes and refused removals that are remembered is that of all
//! table entries. A data plane with more of them counts as lost: all of them are dropped and no
//! change is requested until the data plane is resynchronised a second later, which removes excess
//! routes. Meanwhile software forwards the frames of new flows.

use super::entry_reservations::{Key, Places, of_port};
use super::masqueraded::{Place, mixed};
use crate::effect::Effect;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::telemetry::EdgeDebts;
use axon_node::{Capabilities, Feature, Note, PortView, RouteChange, RouteKey, RouteTicket};
use axon_wire::masquerade::INDEXES;
use axon_wire::vlan::VlanId;
use axon_wire::{HopWidth, MacAddr, PortNo, Route, Span, Time};
use core::net::IpAddr;

/// Time to wait for an answer of the data plane.
const ANSWER_WAIT: Span = Span::from_secs(5);
/// Time from a refusal or a loss until the next attempt.
pub(super) const PAUSE: Span = Span::from_secs(1);
/// Minimum number of changes remembered, for small tables.
const OWED_MIN: usize = 64;
/// Maximum number of changes remembered, for large tables.
const OWED_MAX: usize = 1 << 16;

/// Route tables of a data plane, with the entries that the edge has requested for all VLANs.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    per_port_max: usize,
    width: HopWidth,
    hops_max: usize,
    places: Places,
    masqueraded_max: usize,
    /// True if the data plane matches on sources.
    by_source: bool,
    tickets: u64,
    /// Unanswered changes, with their deadlines; later tickets have later deadlines.
    requested: BTreeMap<RouteTicket, (Requested, Time)>,
    /// Removals that the data plane has refused, by port and address in its tables. It may still
    /// have these routes.
    stale: BTreeSet<Key>,
    /// Ports that are not asked until their pause after a refusal ends.
    paused: BTreeSet<PortNo>,
    /// Maximum number of changes and refused removals together.
    owed_max: usize,
    /// Time to resynchronise a lost data plane; `None` unless lost.
    lost: Option<Time>,
    /// Number of losses of the data plane.
    losses: u64,
    /// True if several VLANs share the tables.
    is_shared: bool,
    /// Ports of shared tables, with the VLANs that found no room there.
    wanting: BTreeMap<PortNo, BTreeSet<VlanId>>,
    /// Ports of shared tables that have room again, and the VLANs to offer it to; all of the port
    /// if `None`.
    freed: BTreeSet<(PortNo, Option<VlanId>)>,
}

/// A change that the data plane has not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requested {
    Install(Key),
    /// Removal, by the address in the tables.
    Remove(Key),
}

impl Tables {
    /// Creates an empty table at each port of a data plane with these capabilities. Masqueraded
    /// addresses depend on a seed that is unique to the incarnation. `is_shared` is true if there
    /// are VLANs.
    pub(super) fn new(has: &Capabilities, seed: u64, is_shared: bool) -> Tables {
        let masqueraded_max = has.masqueraded_per_port_max.min(INDEXES);
        let seed = mixed(seed);
        Tables {
            per_port_max: has.routes_per_port_max,
            width: has.hop_width,
            hops_max: has.hops_max(),
            places: Places::new(has.ports, has.routes_per_port_max, (masqueraded_max, seed)),
            masqueraded_max,
            by_source: has.features.has(Feature::RoutesBySource),
            tickets: 0,
            requested: BTreeMap::new(),
            stale: BTreeSet::new(),
            paused: BTreeSet::new(),
            owed_max: (has.routes_per_port_max.saturating_add(masqueraded_max))
                .saturating_mul(usize::from(has.ports))
                .clamp(OWED_MIN, OWED_MAX),
            lost: None,
            losses: 0,
            is_shared,
            wanting: BTreeMap::new(),
            freed: BTreeSet::new(),
        }
    }

    /// Returns the outstanding answers of the data plane.
    pub(super) fn debts(&self) -> EdgeDebts {
        EdgeDebts {
            unanswered: self.requested.len() as u64,
            stale: self.stale.len() as u64,
            lost: self.is_lost(),
        }
    }

    /// Returns the number of losses of the data plane.
    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns whether the data plane has more answers outstanding than are remembered.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Returns when an answer is overdue, or a lost data plane must be resynchronised.
    pub(super) fn deadline(&self) -> Option<Time> {
        let first = self.requested.first_key_value().map(|(_, &(_, until))| until);
        first.into_iter().chain(self.lost).min()
    }

    /// Returns a change whose answer is overdue.
    pub(super) fn overdue(&self, now: Time) -> Option<RouteTicket> {
        let (&ticket, _) =
            self.requested.first_key_value().filter(|(_, (_, until))| *until <= now)?;
        Some(ticket)
    }

    /// Returns the VLAN of the route that an answer is for. An answer that is not expected any more
    /// is of no VLAN.
    pub(super) fn vlan_of(&self, ticket: RouteTicket) -> VlanId {
        let requested = self.requested.get(&ticket).map(|(requested, _)| requested);
        requested
            .map_or(VlanId::NONE, |(Requested::Install(key) | Requested::Remove(key))| key.1.vlan)
    }

    /// Offers the room at a port of shared tables to the VLANs that found none.
    fn freed(&mut self, port: PortNo) {
        let wanting = self.wanting.remove(&port).unwrap_or_default();
        self.freed.extend(wanting.into_iter().map(|vlan| (port, Some(vlan))));
    }

    /// Returns the ports of shared tables that have room again since the last call, each with a
    /// VLAN to offer it to, or `None` for all VLANs of the port.
    pub(super) fn take_freed(&mut self) -> BTreeSet<(PortNo, Option<VlanId>)> {
        core::mem::take(&mut self.freed)
    }

    /// Removes the change that an answer is for; `None` if it is not expected any more.
    pub(super) fn answered(&mut self, ticket: RouteTicket) -> Option<Requested> {
        self.requested.remove(&ticket).map(|(request, _)| request)
    }

    /// Starts the pause of a port with a refusal; `false` if it has one already.
    pub(super) fn pause(&mut self, port: PortNo) -> bool {
        self.paused.insert(port)
    }

    /// Returns whether a port has a refusal and its pause has not ended.
    pub(super) fn is_paused(&self, port: PortNo) -> bool {
        self.paused.contains(&port)
    }

    /// Ends the pause of a port, and requests its refused removals again.
    pub(super) fn end_pause(&mut self, now: Time, out: &mut Vec<Effect>, port: PortNo) {
        self.paused.remove(&port);
        if self.is_shared {
            self.freed.insert((port, None));
        }
        let stale: BTreeSet<Key> = self.stale.range(of_port(port)).copied().collect();
        for key in stale {
            self.take_out(now, out, key);
        }
    }

    /// Returns whether to resynchronise a lost data plane now. If that does not succeed, the next
    /// attempt is a second later.
    pub(super) fn take_lost(&mut self, now: Time) -> bool {
        let due = self.lost.is_some_and(|at| at <= now);
        if due {
            self.lost = Some(now + PAUSE);
        }
        due
    }

    /// Clears all outstanding answers after a resynchronisation.
    pub(super) fn settle(&mut self) {
        self.requested.clear();
        self.stale.clear();
        self.lost = None;
    }

    /// Records a removal that the data plane has refused.
    pub(super) fn keep_stale(&mut self, key: Key) {
        if !self.is_lost() {
            self.stale.insert(key);
        }
    }

    /// Returns the number of routes in the table and route memory of one port together.
    pub(super) fn placed_max(&self) -> usize {
        self.per_port_max.saturating_add(self.masqueraded_max)
    }

    /// Returns whether destinations without a place in the table may get masqueraded addresses.
    pub(super) fn can_masquerade(&self) -> bool {
        self.masqueraded_max > 0
    }

    /// Returns the address of a route in the data plane's tables: that of its destination, or the
    /// masqueraded one.
    pub(super) fn address(&self, key: Key) -> Key {
        let destination = self.places.given(key).unwrap_or(key.1.destination);
        (key.0, RouteKey { destination, ..key.1 })
    }

    /// Returns the destination for which this address is currently given at a port.
    pub(super) fn owner(&self, address: Key) -> Option<MacAddr> {
        let place = self.places.given_at(address).filter(|place| place.is_taken());
        place.map(|place| place.destination)
    }

    /// Returns the state of a given address that no longer leads to a destination.
    pub(super) fn former(&self, address: Key) -> Option<&Place> {
        self.places.given_at(address).filter(|place| !place.is_taken())
    }

    /// Returns the state of a destination's current masqueraded address.
    pub(super) fn given_place(&mut self, key: Key) -> Option<&mut Place> {
        self.places.given_to(key).filter(|place| place.is_taken())
    }

    /// Returns the MAC address of a destination that a host is given for `ip`.
    pub(super) fn show(&mut self, key: Key, ip: IpAddr) -> MacAddr {
        self.places.show(key, ip).unwrap_or(key.1.destination)
    }

    /// Reserves the MAC address of a host of `port`, which is never given there meanwhile.
    pub(super) fn occupy(&mut self, port: PortNo, mac: MacAddr) {
        self.places.occupy(port, mac);
    }

    /// Stops giving this MAC address.
    pub(super) fn give_up(&mut self, port: PortNo, mac: MacAddr) {
        self.places.give_up(port, mac);
    }

    /// Releases a MAC address that no host of `port` has any more.
    pub(super) fn vacate(&mut self, port: PortNo, mac: MacAddr) {
        self.places.vacate(port, mac);
    }

    /// Returns the number of masqueraded addresses in use.
    pub(super) fn given_count(&self) -> usize {
        self.places.given_count()
    }

    /// Returns the number of routes in the table of one port.
    pub(super) fn per_port_max(&self) -> usize {
        self.per_port_max
    }

    /// Returns whether `port` exists and `route` fits in a header of this fabric.
    pub(super) fn can_hold(&self, ports: &dyn PortView, port: PortNo, route: &Route) -> bool {
        ports.kind(port).is_some()
            && route.hops.len() <= self.hops_max
            && route.hops.iter().all(|&hop| self.width.can_name(hop))
    }

    /// Reserves an entry for a route, if it has none yet. `false` if the table is full, the data
    /// plane does not support such routes, or it is lost.
    pub(super) fn reserve(&mut self, key: Key) -> bool {
        let has_such = self.by_source || key.1.source.is_none();
        let has_room = has_such && !self.is_lost() && self.places.reserve(key);
        if self.is_shared && !has_room {
            self.wanting.entry(key.0).or_default().insert(key.1.vlan);
        }
        has_room
    }

    /// Reserves the entry of a destination's route at `address` of the tables; `false` if it cannot
    /// stay there. A route under the destination's own MAC address may get another address.
    pub(super) fn take_over(&mut self, address: Key, destination: MacAddr) -> bool {
        match address.1.destination == destination {
            true => self.reserve(address),
            false => !self.is_lost() && self.places.take_over(address, destination),
        }
    }

    /// Reserves an entry for a destination whose MAC address is not known yet.
    pub(super) fn hold(&mut self, port: PortNo, vlan: VlanId) -> bool {
        self.places.hold(port, vlan)
    }

    /// Releases a place that [`Tables::hold`] took.
    pub(super) fn release(&mut self, port: PortNo, vlan: VlanId) {
        if self.places.release(port, vlan) {
            self.freed(port);
        }
    }

    /// Frees the entry of a route that was not requested.
    pub(super) fn free(&mut self, key: Key) {
        if self.places.free(key) {
            self.freed(key.0);
        }
    }

    /// Frees all entries of a VLAN at one port, whose routes are gone.
    pub(super) fn clear(&mut self, port: PortNo, vlan: VlanId) {
        if self.places.clear(port, vlan) {
            self.freed(port);
        }
    }

    /// Requests a route that has an entry.
    pub(super) fn install(
        &mut self,
        now: Time,
        out: &mut Vec<Effect>,
        (key, route): (Key, Route),
    ) -> RouteTicket {
        let (port, RouteKey { destination, .. }) = key;
        let (_, address) = self.address(key);
        self.stale.remove(&(port, address));
        let change = match address == key.1 {
            true => RouteChange::Install { port, key: address, route },
            false => RouteChange::Masquerade { port, key: address, destination, route },
        };
        self.ask(now, out, (Requested::Install(key), change))
    }

    /// Requests the removal of a route, and frees its entry.
    pub(super) fn remove(&mut self, now: Time, out: &mut Vec<Effect>, key: Key) {
        let (port, RouteKey { destination, .. }) = key;
        let address = self.address(key);
        self.free(key);
        out.push(Effect::Note(Note::RouteRemoved { port, destination }));
        self.take_out(now, out, address);
    }

    /// Requests the removal of the route at an address in the tables.
    pub(super) fn take_out(&mut self, now: Time, out: &mut Vec<Effect>, address: Key) {
        let (port, key) = address;
        self.stale.remove(&address);
        self.ask(now, out, (Requested::Remove(address), RouteChange::Remove { port, key }));
    }

    fn ask(
        &mut self,
        now: Time,
        out: &mut Vec<Effect>,
        (request, change): (Requested, RouteChange),
    ) -> RouteTicket {
        self.tickets += 1;
        let ticket = RouteTicket(self.tickets);
        if self.is_lost() {
            return ticket;
        }
        let owed = self.requested.len() + self.stale.len();
        if owed >= self.owed_max {
            self.settle();
            self.lost = Some(now + PAUSE);
            self.losses += 1;
            let count = u32::try_from(owed).unwrap_or(u32::MAX);
            out.push(Effect::Note(Note::AnswersOwed { count }));
            return ticket;
        }
        self.requested.insert(ticket, (request, now + ANSWER_WAIT));
        out.push(Effect::Route { ticket, change });
        ticket
    }

    /// Returns the number of places taken on one port.
    #[cfg(test)]
    pub(super) fn taken(&self, port: PortNo) -> usize {
        self.places.taken(port)
    }
}
