//! Lookups of an Axon switch, made in the tables of a programmable pipeline.

use super::entries;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::{Drop, PortKind, Punt, RouteError, RouteKey};
use axon_pipeline::{
    Action, Change, EntryName, MacKey, Modify, Parsed, PortOptions, Reason, Sizes, Tables, Target,
};
use axon_plane::routes::{self, KeyMap};
use axon_plane::{Lookups, PlaneConfig, Step};
use axon_wire::header::{self, HOPS_MAX, HeaderFields, PacketType};
use axon_wire::vlan::VlanId;
use axon_wire::{HopWidth, Layer, MacAddr, PortNo, Route};

/// Key of a bridge: port, VLAN, and the source MAC if the source has its own routes.
type Ingress = (PortNo, VlanId, Option<MacAddr>);

/// Edge and transit processing of one Axon switch, as table entries.
#[derive(Clone, Debug)]
pub struct AxonTables {
    width: HopWidth,
    routes_per_port_max: usize,
    tables: Tables,
    /// Keys that have an entry, by port, each with its match count when it was last read.
    destinations: Vec<KeyMap<u64>>,
    /// Bridges for each VLAN on a port, and for each source in it that has its own routes, together
    /// with the number of entries for that source. Untagged frames use the bridge of their port.
    bridges: BTreeMap<Ingress, (u16, usize)>,
    /// Released bridge numbers.
    free: BTreeSet<u16>,
    /// Header of the last lookup.
    header: Vec<u8>,
}

impl AxonTables {
    /// Creates tables of these sizes for a switch with this configuration.
    ///
    /// # Panics
    /// If the ports do not fit into a TCAM of this size; see [`entries::ports_in`].
    pub fn new(config: &PlaneConfig, sizes: Sizes) -> AxonTables {
        let (width, ports) = (config.hop_width, config.ports);
        assert!(ports <= entries::ports_in(sizes.tcam), "too many ports for the TCAM");
        let mut tables = Tables::new(sizes, width, ports, 0);
        let mut changes = Vec::from(entries::fixed(width, ports));
        for port in (0..ports).map(PortNo) {
            let options = PortOptions { bridge: port.0, routed: false, ..PortOptions::default() };
            changes.push(Change::Port(port, Some(options)));
            changes.extend(entries::of_port(width, port, PortKind::Unknown));
        }
        tables.commit(&changes).expect("entries of ports that have places");
        AxonTables {
            width,
            routes_per_port_max: config.routes_per_port_max,
            tables,
            destinations: (0..ports).map(|_| KeyMap::default()).collect(),
            bridges: BTreeMap::new(),
            free: BTreeSet::new(),
            header: Vec::new(),
        }
    }

    /// Returns the tables for inspection.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the action for a route: it pushes the header, then sends the packet towards its
    /// first hop. The port entries determine how the packet is processed there.
    fn push(&self, route: &Route) -> Action {
        let target = match route.hops.first() {
            Some(&hop) if hop.index() < self.destinations.len() => Target::Port(hop),
            _ => Target::Cpu,
        };
        // With hops of 4 bits, the header has no room for a layer.
        let layer = if self.width == HopWidth::Four { Layer::ZERO } else { route.layer };
        Action::from(target).with(Modify::AxonPush(Route { layer, ..route.clone() }))
    }

    /// Returns the bridge of a key. Returns `None` if there is no such entry, or too many bridges
    /// are in use.
    fn bridge(&self, port: PortNo, key: RouteKey) -> Option<u16> {
        if key.vlan.is_none() && key.source.is_none() {
            return Some(port.0);
        }
        self.bridges.get(&(port, key.vlan, key.source)).map(|(bridge, _)| *bridge)
    }

    /// Returns the bridge for a new entry, either a released one or the next one after those of the
    /// ports.
    fn bridge_for(&mut self, port: PortNo, key: RouteKey) -> Option<u16> {
        if let Some(bridge) = self.bridge(port, key) {
            return Some(bridge);
        }
        let used = self.destinations.len() + self.bridges.len() + self.free.len();
        let next = self.free.pop_first().or(u16::try_from(used).ok())?;
        self.bridges.insert((port, key.vlan, key.source), (next, 0));
        Some(next)
    }

    /// Updates the entry count of a source, and releases its bridge if no entries remain.
    fn count(&mut self, port: PortNo, key: RouteKey, change: isize) {
        let ingress = (port, key.vlan, key.source);
        let bridge = self.bridges.get_mut(&ingress).filter(|_| key.source.is_some());
        let Some((number, entries)) = bridge else { return };
        *entries = entries.saturating_add_signed(change);
        if *entries == 0 {
            self.free.insert(*number);
            self.bridges.remove(&ingress);
        }
    }

    fn mac_key(&self, port: PortNo, key: RouteKey) -> Option<MacKey> {
        Some(MacKey { bridge: self.bridge(port, key)?, mac: key.destination })
    }

    fn frames(&self, port: PortNo, key: RouteKey) -> u64 {
        let entry = self.mac_key(port, key).map(EntryName::Mac);
        entry.and_then(|entry| self.tables.counters(entry)).map_or(0, |(frames, _)| frames)
    }
}

/// Returns the route that an action pushes.
fn pushed(action: &Action) -> Option<&Route> {
    action.modify.iter().find_map(|modify| match modify {
        Modify::AxonPush(route) => Some(route),
        _ => None,
    })
}

impl Lookups for AxonTables {
    const NAME: &'static str = "pipeline";
    const STATELESS_STEP: bool = false;

    /// Creates tables of the default sizes.
    fn with_config(config: &PlaneConfig) -> AxonTables {
        AxonTables::new(config, Sizes::default())
    }

    fn install(&mut self, port: PortNo, key: RouteKey, route: &Route) -> Result<(), RouteError> {
        routes::header_of(route, self.width)?;
        let action = self.push(route);
        let own = self.destinations.get(port.index()).ok_or(RouteError::NoSuchPort)?;
        if own.len() >= self.routes_per_port_max && !own.contains_key(&key) {
            return Err(RouteError::Full);
        }
        let bridge = self.bridge_for(port, key).ok_or(RouteError::Full)?;
        let entry = MacKey { bridge, mac: key.destination };
        let made = self.tables.commit(&[Change::Mac(entry, Some(action))]);
        let own = self.destinations.get_mut(port.index());
        let is_new = made.is_ok() && own.is_some_and(|own| own.insert(key, 0).is_none());
        self.count(port, key, isize::from(is_new));
        made.map_err(|error| match error.reason {
            Reason::Full { .. } => RouteError::Full,
            _ => RouteError::Unrepresentable,
        })
    }

    fn remove(&mut self, port: PortNo, key: RouteKey) -> bool {
        let own = self.destinations.get_mut(port.index());
        let known = own.is_some_and(|own| own.remove(&key).is_some());
        if let Some(entry) = self.mac_key(port, key).filter(|_| known) {
            let made = self.tables.commit(&[Change::Mac(entry, None)]);
            debug_assert_eq!(made, Ok(()), "an entry can always go");
            self.count(port, key, -1);
        }
        known
    }

    fn clear(&mut self, port: PortNo) {
        let Some(own) = self.destinations.get_mut(port.index()) else { return };
        let gone: Vec<RouteKey> = core::mem::take(own).into_keys().collect();
        let entries = gone.iter().filter_map(|&key| self.mac_key(port, key));
        let entries: Vec<Change> = entries.map(|entry| Change::Mac(entry, None)).collect();
        let made = self.tables.commit(&entries);
        debug_assert_eq!(made, Ok(()), "entries can always go");
        gone.into_iter().for_each(|key| self.count(port, key, -1));
    }

    #[inline]
    fn lookup(&mut self, port: PortNo, key: RouteKey, frame: &[u8]) -> Option<(&[u8], bool)> {
        // A non-existent port would map to the bridge of port 0.
        let own = self.destinations.get(port.index())?;
        let pair = key.from_source(MacAddr::source_of(frame));
        let key = if own.contains_key(&pair) { pair } else { key };
        let bridge = Some(self.bridge(port, key)?);
        let parsed = Parsed { bridge, ..Parsed::ethernet(frame) };
        let found = self.tables.lookup(frame, &parsed, port, 0);
        let route = pushed(found.action?)?;
        routes::write_header(route, self.width, &mut self.header).ok()?;
        Some((&self.header, route.tagged))
    }

    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        let frames = self.frames(port, key);
        let own = self.destinations.get_mut(port.index());
        let before = own.and_then(|own| own.get_mut(&key));
        before.is_some_and(|before| core::mem::replace(before, frames) != frames)
    }

    fn routes(&self, port: PortNo) -> Vec<(RouteKey, Route)> {
        let Some(own) = self.destinations.get(port.index()) else { return Vec::new() };
        let route = |key: RouteKey| {
            let mac = key.destination.0;
            let bridge = Some(self.bridge(port, key)?);
            let parsed = Parsed { bridge, ..Parsed::ethernet(&mac) };
            let (_, action) = self.tables.find(&mac, &parsed, port, 0)?;
            Some((key, pushed(action)?.clone()))
        };
        let mut routes: Vec<_> = own.keys().filter_map(|&key| route(key)).collect();
        routes.sort();
        routes
    }

    fn len(&self, port: PortNo) -> usize {
        self.destinations.get(port.index()).map_or(0, KeyMap::len)
    }

    fn set_kind(&mut self, port: PortNo, kind: PortKind) {
        if port.index() < self.destinations.len() {
            let made = self.tables.commit(&entries::of_port(self.width, port, kind));
            debug_assert_eq!(made, Ok(()), "every port has its places");
        }
    }

    /// Uses only the entries, not the plane's own record of port kinds.
    #[inline]
    fn forward(
        &mut self,
        bytes: &mut [u8],
        width: HopWidth,
        header: &HeaderFields,
        ingress: PortNo,
        _kind_of: impl FnOnce(PortNo) -> Option<PortKind>,
    ) -> Step {
        let priority = header.priority.value();
        let found = self.tables.lookup(bytes, &Parsed::axon(), ingress, priority);
        let Some(action) = found.action else { return Step::Drop(Drop::NoSuchPort) };
        let (mut punt, mut strip) = (Punt::Addressed, false);
        for modify in &action.modify {
            match modify {
                Modify::AxonHop => header.advance(bytes, width, ingress),
                Modify::AxonError => {
                    header::set_type(bytes, PacketType::Error);
                    punt = Punt::Error;
                }
                // The plane removes the header once the ports have processed the packet.
                Modify::AxonStrip => strip = true,
                _ => {}
            }
        }
        match action.target {
            Target::Port(port) if strip => Step::Strip { port, header_bytes: header.header_bytes },
            Target::Port(port) => Step::Egress(port),
            Target::Cpu => Step::Punt(punt),
            _ if header.reverse_count == HOPS_MAX => Step::Drop(Drop::Malformed),
            _ => Step::Drop(Drop::EgressUnknown),
        }
    }
}
