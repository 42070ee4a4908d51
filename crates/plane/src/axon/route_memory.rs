//! Indexed route memory, beside the CAM (thesis 000 §3.2.1).
//!
//! A masqueraded destination MAC contains an index, and the route is at that index in the memory of
//! the ingress port. The whole address is stored there too and must match: an address that this
//! port was not given, or that has expired, has no route. The entry also contains the true address
//! of the destination, which replaces the masqueraded one in the frame. No search is needed, so the
//! size is limited by the cost of memory only.

use super::routes::{header_of, layer_of};
use crate::config::PlaneConfig;
use alloc::vec::Vec;
use axon_node::{Masqueraded, RouteError, RouteKey};
use axon_wire::header::{HeaderView, HopWidth};
use axon_wire::masquerade::index_of;
use axon_wire::{MacAddr, PortNo, Route};

/// Route memories of all ports of a switch. They grow with use.
#[derive(Clone, Debug)]
pub(super) struct RouteMemory {
    width: HopWidth,
    per_port_max: usize,
    ports: Vec<Vec<Option<Entry>>>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// The key with the address of this index.
    key: RouteKey,
    /// The true address, written to frames.
    destination: MacAddr,
    header: Vec<u8>,
    /// True if frames in VLANs leave tagged.
    tagged: bool,
    /// True if a frame has used the route since the last query.
    used: bool,
}

impl RouteMemory {
    /// Returns empty memories of `masqueraded_per_port_max` routes each.
    pub(super) fn new(config: &PlaneConfig) -> RouteMemory {
        RouteMemory {
            width: config.hop_width,
            per_port_max: config.masqueraded_per_port_max,
            ports: alloc::vec![Vec::new(); usize::from(config.ports)],
        }
    }

    /// Installs `route` to `destination` for frames with this key, replacing the entry at the index
    /// of their address.
    ///
    /// # Errors
    /// `Full` if there is no such index. `Unrepresentable` also if the address has no index, or the
    /// key has a source.
    pub(super) fn install(
        &mut self,
        port: PortNo,
        key: RouteKey,
        destination: MacAddr,
        route: &Route,
    ) -> Result<(), RouteError> {
        let header = header_of(route, self.width)?;
        let index = index_of(key.destination).filter(|_| key.source.is_none());
        let index = usize::from(index.ok_or(RouteError::Unrepresentable)?);
        let port = self.ports.get_mut(port.index()).ok_or(RouteError::NoSuchPort)?;
        if index >= self.per_port_max {
            return Err(RouteError::Full);
        }
        if index >= port.len() {
            port.resize(index + 1, None);
        }
        port[index] = Some(Entry { key, destination, header, tagged: route.tagged, used: false });
        Ok(())
    }

    /// Removes the route of a key; an entry of another key at the index is kept.
    pub(super) fn remove(&mut self, port: PortNo, key: RouteKey) {
        let place = index_of(key.destination)
            .and_then(|index| self.ports.get_mut(port.index())?.get_mut(usize::from(index)));
        if let Some(place) = place
            && place.as_ref().is_some_and(|entry| entry.key == key)
        {
            *place = None;
        }
    }

    /// Removes all routes of one port.
    pub(super) fn clear(&mut self, port: PortNo) {
        if let Some(port) = self.ports.get_mut(port.index()) {
            *port = Vec::new();
        }
    }

    /// Returns the true address of a frame from `port` with this key, the header to prepend, and
    /// whether frames in VLANs leave tagged. Marks the route as used.
    pub(super) fn lookup(&mut self, port: PortNo, key: RouteKey) -> Option<(MacAddr, &[u8], bool)> {
        let entry = self.entry(port, key)?;
        entry.used = true;
        Some((entry.destination, &entry.header, entry.tagged))
    }

    /// Returns whether the route was looked up since the last call.
    pub(super) fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        self.entry(port, key).is_some_and(|entry| core::mem::take(&mut entry.used))
    }

    /// Returns the routes of one port, by index.
    pub(super) fn routes(&self, port: PortNo) -> Vec<Masqueraded> {
        let entries = self.ports.get(port.index()).into_iter().flatten().flatten();
        let route = |entry: &Entry| {
            let view = HeaderView::parse(&entry.header, self.width).ok()?;
            let (hops, layer) = (view.forward(), layer_of(&view.fields()));
            let route = Route { hops, layer, tagged: entry.tagged };
            Some(Masqueraded { key: entry.key, destination: entry.destination, route })
        };
        entries.filter_map(route).collect()
    }

    fn entry(&mut self, port: PortNo, key: RouteKey) -> Option<&mut Entry> {
        let index = usize::from(index_of(key.destination)?);
        let entry = self.ports.get_mut(port.index())?.get_mut(index)?.as_mut()?;
        (entry.key == key).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use axon_wire::masquerade::address;
    use proptest::prelude::*;

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    fn memory(per_port_max: usize) -> RouteMemory {
        let config = PlaneConfig::with_ports(2, mac(99));
        RouteMemory::new(&PlaneConfig { masqueraded_per_port_max: per_port_max, ..config })
    }

    #[test]
    fn an_index_that_is_not_there_and_an_address_without_one_are_refused() {
        let mut memory = memory(2);
        let route = Route::from([3]);
        let mut install =
            |port, at: MacAddr| memory.install(PortNo(port), at.into(), mac(1), &route);
        assert_eq!(install(0, address(2, 1)), Err(RouteError::Full));
        assert_eq!(install(0, mac(1)), Err(RouteError::Unrepresentable));
        assert_eq!(install(2, address(1, 1)), Err(RouteError::NoSuchPort));
        assert_eq!(install(0, address(1, 1)), Ok(()));
    }

    #[derive(Clone, Debug)]
    enum Event {
        Install(u16, MacAddr, u8, u16),
        Remove(u16, MacAddr),
        Lookup(u16, MacAddr),
        Clear(u16),
    }

    fn event() -> impl Strategy<Value = Event> {
        let at = (0..4u16, 0..3u32).prop_map(|(index, generation)| address(index, generation));
        prop_oneof![
            4 => (0..2u16, at.clone(), 0..5u8, 1..9u16)
                .prop_map(|(port, at, to, hop)| Event::Install(port, at, to, hop)),
            2 => (0..2u16, at.clone()).prop_map(|(port, at)| Event::Remove(port, at)),
            4 => (0..2u16, at).prop_map(|(port, at)| Event::Lookup(port, at)),
            1 => (0..2u16).prop_map(Event::Clear),
        ]
    }

    proptest! {
        /// The reference is a map by port and whole address; no two entries share an index.
        #[test]
        fn an_address_leads_only_where_it_was_last_made_to_lead_and_only_from_its_port(
            events in prop::collection::vec(event(), 0..100),
        ) {
            let mut memory = memory(3);
            let mut simple: BTreeMap<(u16, MacAddr), (MacAddr, u16)> = BTreeMap::new();
            for event in events {
                match event {
                    Event::Install(port, at, to, hop) => {
                        let (port_no, route) = (PortNo(port), Route::from([hop]));
                        let done = memory.install(port_no, at.into(), mac(to), &route);
                        prop_assert_eq!(done.is_ok(), index_of(at) < Some(3));
                        if done.is_ok() {
                            simple.retain(|key, _| {
                                key.0 != port || index_of(key.1) != index_of(at)
                            });
                            simple.insert((port, at), (mac(to), hop));
                        }
                    }
                    Event::Remove(port, at) => {
                        memory.remove(PortNo(port), at.into());
                        simple.remove(&(port, at));
                    }
                    Event::Lookup(port, at) => {
                        let header = |hop: u16| header_of(&[hop].into(), HopWidth::Eight).unwrap();
                        let is = simple.get(&(port, at)).map(|&(to, hop)| (to, header(hop)));
                        let has = memory.lookup(PortNo(port), at.into());
                        let has = has.map(|(to, header, _)| (to, header.to_vec()));
                        prop_assert_eq!(has, is.clone());
                        prop_assert_eq!(memory.take_used(PortNo(port), at.into()), is.is_some());
                        prop_assert!(!memory.take_used(PortNo(port), at.into()));
                    }
                    Event::Clear(port) => {
                        memory.clear(PortNo(port));
                        simple.retain(|key, _| key.0 != port);
                    }
                }
                let all = memory.routes(PortNo(0)).len() + memory.routes(PortNo(1)).len();
                prop_assert_eq!(all, simple.len());
            }
        }
    }
}
