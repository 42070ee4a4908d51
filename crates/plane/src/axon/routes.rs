//! Per-port CAM and route memory (paper 001 §4.1.1, thesis 000 §3.2.1).
//!
//! The CAM maps a destination MAC and its VLAN to a slot; the slot holds the Axon header to
//! prepend, ready to be copied. A slot is reserved before its route is known and becomes valid when
//! the route is installed; a reserved slot never matches. Each port has its own tables, so hosts on
//! different ports see only their own routes. Routes for one source are stored separately, so that
//! a port without any needs no second lookup; both kinds share the capacity of the table.
//!
//! In software the slot is stored beside its key in the hash table, header included, so that a
//! lookup waits for memory once and not three times.

use super::lookups::Lookups;
use crate::config::PlaneConfig;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::{RouteError, RouteKey};
use axon_wire::header::{self, HeaderError, HeaderFields, HeaderView, HopWidth, PacketType};
use axon_wire::vlan::VlanId;
use axon_wire::{Layer, MacAddr, PortNo, Priority, Route};
use core::hash::{BuildHasherDefault, Hasher};
use hashbrown::HashMap;

/// Route tables of all ports of a switch.
#[derive(Clone, Debug)]
pub struct RouteTables {
    width: HopWidth,
    routes_per_port_max: usize,
    ports: Vec<PortTable>,
}

/// Routes of one port.
#[derive(Clone, Debug, Default)]
struct PortTable {
    /// Routes for frames of any source.
    any: HashMap<AnySource, Slot, BuildHasherDefault<MacHasher>>,
    /// Routes for frames of one source.
    pairs: KeyMap<Slot>,
}

/// Key of a route for frames of any source, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AnySource(u64);

impl AnySource {
    #[inline]
    fn of(key: RouteKey) -> AnySource {
        let [a, b, c, d, e, f] = key.destination.0;
        let [high, low] = key.vlan.value().to_be_bytes();
        AnySource(u64::from_le_bytes([a, b, c, d, e, f, high, low]))
    }

    fn key(self) -> RouteKey {
        let [a, b, c, d, e, f, high, low] = self.0.to_le_bytes();
        let vlan = VlanId::new(u16::from_be_bytes([high, low])).unwrap_or_default();
        RouteKey { vlan, ..RouteKey::to(MacAddr([a, b, c, d, e, f])) }
    }
}

impl PortTable {
    fn len(&self) -> usize {
        self.any.len() + self.pairs.len()
    }

    #[inline]
    fn get(&mut self, key: RouteKey) -> Option<&mut Slot> {
        match key.source {
            None => self.any.get_mut(&AnySource::of(key)),
            Some(_) => self.pairs.get_mut(&key),
        }
    }

    fn insert(&mut self, key: RouteKey, slot: Slot) {
        match key.source {
            None => self.any.insert(AnySource::of(key), slot),
            Some(_) => self.pairs.insert(key, slot),
        };
    }

    fn remove(&mut self, key: RouteKey) -> bool {
        let removed = match key.source {
            None => self.any.remove(&AnySource::of(key)),
            Some(_) => self.pairs.remove(&key),
        };
        removed.is_some()
    }

    fn iter(&self) -> impl Iterator<Item = (RouteKey, &Slot)> {
        let any = self.any.iter().map(|(key, slot)| (key.key(), slot));
        any.chain(self.pairs.iter().map(|(&key, slot)| (key, slot)))
    }
}

/// Maximum header length kept in the slot itself, in bytes: 16 hops of 8 bits, 8 of 16, 33 of 4.
const SHORT_BYTES: usize = 22;

/// Flag in the length of a short header: a frame has used it since the last query.
const USED: u8 = 0x80;
/// Flag in the length of a short header: frames in VLANs leave tagged.
const TAGGED: u8 = 0x40;

/// A header to prepend, and whether a frame has used it since the last query.
#[derive(Clone, Debug)]
enum Slot {
    Short { length: u8, bytes: [u8; SHORT_BYTES] },
    Long { used: bool, tagged: bool, header: Box<[u8]> },
}

impl Slot {
    fn new(header: &[u8], tagged: bool) -> Slot {
        let mut bytes = [0; SHORT_BYTES];
        match bytes.get_mut(..header.len()) {
            None => Slot::Long { used: false, tagged, header: header.into() },
            Some(place) => {
                place.copy_from_slice(header);
                let tagged = if tagged { TAGGED } else { 0 };
                Slot::Short { length: header.len() as u8 | tagged, bytes }
            }
        }
    }

    /// Returns the header, marking it as used, and whether frames in VLANs leave tagged. A header
    /// already marked is only read.
    #[inline]
    fn use_header(&mut self) -> (&[u8], bool) {
        match self {
            Slot::Short { length, bytes } => {
                let bare = *length & !(USED | TAGGED);
                if *length & USED == 0 {
                    *length |= USED;
                }
                (&bytes[..usize::from(bare).min(SHORT_BYTES)], *length & TAGGED != 0)
            }
            Slot::Long { used, tagged, header } => {
                if !*used {
                    *used = true;
                }
                (header, *tagged)
            }
        }
    }

    const fn is_tagged(&self) -> bool {
        match self {
            Slot::Short { length, .. } => *length & TAGGED != 0,
            Slot::Long { tagged, .. } => *tagged,
        }
    }

    #[inline]
    fn header(&self) -> &[u8] {
        match self {
            Slot::Short { length, bytes } => {
                &bytes[..usize::from(*length & !(USED | TAGGED)).min(SHORT_BYTES)]
            }
            Slot::Long { header, .. } => header,
        }
    }

    fn take_used(&mut self) -> bool {
        match self {
            Slot::Short { length, .. } => {
                let used = *length & USED != 0;
                *length &= !USED;
                used
            }
            Slot::Long { used, .. } => core::mem::take(used),
        }
    }
}

impl RouteTables {
    /// Returns empty tables for `ports` ports of `routes_per_port_max` routes each.
    pub fn new(width: HopWidth, ports: u16, routes_per_port_max: usize) -> RouteTables {
        let ports = (0..ports).map(|_| PortTable::default()).collect();
        RouteTables { width, routes_per_port_max, ports }
    }

    /// Returns the header to prepend to a frame from `port` with this key, and whether frames in
    /// VLANs leave tagged; `None` if there is no route. Marks the route as used.
    #[inline]
    pub fn header(&mut self, port: PortNo, key: RouteKey) -> Option<(&[u8], bool)> {
        let slot = self.ports.get_mut(port.index())?.get(key)?;
        Some(slot.use_header())
    }

    /// Returns the lookup key of a frame from `port`: that with its source if there is such a
    /// route.
    #[inline]
    fn key_of(&self, port: PortNo, key: RouteKey, frame: &[u8]) -> RouteKey {
        let pairs = self.ports.get(port.index()).map(|table| &table.pairs);
        match pairs.filter(|pairs| !pairs.is_empty()) {
            None => key,
            Some(pairs) => {
                let pair = key.from_source(MacAddr::source_of(frame));
                if pairs.contains_key(&pair) { pair } else { key }
            }
        }
    }

    /// Returns whether no port has a route.
    pub fn is_empty(&self) -> bool {
        self.ports.iter().all(|table| table.len() == 0)
    }
}

impl Lookups for RouteTables {
    const NAME: &'static str = "software";

    fn with_config(config: &PlaneConfig) -> RouteTables {
        RouteTables::new(config.hop_width, config.ports, config.routes_per_port_max)
    }

    fn install(&mut self, port: PortNo, key: RouteKey, route: &Route) -> Result<(), RouteError> {
        let header = header_of(route, self.width)?;
        let most = self.routes_per_port_max;
        let table = self.ports.get_mut(port.index()).ok_or(RouteError::NoSuchPort)?;
        if table.len() >= most && table.get(key).is_none() {
            return Err(RouteError::Full);
        }
        table.insert(key, Slot::new(&header, route.tagged));
        Ok(())
    }

    fn remove(&mut self, port: PortNo, key: RouteKey) -> bool {
        self.ports.get_mut(port.index()).is_some_and(|table| table.remove(key))
    }

    fn clear(&mut self, port: PortNo) {
        if let Some(table) = self.ports.get_mut(port.index()) {
            *table = PortTable::default();
        }
    }

    #[inline]
    fn lookup(&mut self, port: PortNo, key: RouteKey, frame: &[u8]) -> Option<(&[u8], bool)> {
        let key = self.key_of(port, key, frame);
        self.header(port, key)
    }

    fn take_used(&mut self, port: PortNo, key: RouteKey) -> bool {
        let slot = self.ports.get_mut(port.index()).and_then(|table| table.get(key));
        slot.is_some_and(Slot::take_used)
    }

    fn routes(&self, port: PortNo) -> Vec<(RouteKey, Route)> {
        let Some(table) = self.ports.get(port.index()) else {
            return Vec::new();
        };
        let mut routes: Vec<_> = table
            .iter()
            .filter_map(|(key, slot)| {
                let header = slot.header();
                let view = HeaderView::parse(header, self.width).ok()?;
                let (hops, layer) = (view.forward(), layer_of(&view.fields()));
                Some((key, Route { hops, layer, tagged: slot.is_tagged() }))
            })
            .collect();
        routes.sort();
        routes
    }

    fn len(&self, port: PortNo) -> usize {
        self.ports.get(port.index()).map_or(0, PortTable::len)
    }
}

/// Returns the header of packets of `route`, without reverse hops.
///
/// # Errors
/// `Unrepresentable` if no header of this hop width can hold it.
pub fn header_of(route: &Route, width: HopWidth) -> Result<Vec<u8>, RouteError> {
    let mut bytes = Vec::new();
    write_header(route, width, &mut bytes)?;
    Ok(bytes)
}

/// Writes the header of packets of `route` to `bytes`, replacing their content and reusing their
/// memory.
///
/// # Errors
/// The errors of [`header_of`]; the content of `bytes` is then undefined.
#[inline]
pub fn write_header(route: &Route, width: HopWidth, bytes: &mut Vec<u8>) -> Result<(), RouteError> {
    bytes.resize(width.header_bytes(route.hops.len()), 0);
    header::emit(bytes, width, PacketType::Ethernet, &route.hops, &[])
        .map_err(|_: HeaderError| RouteError::Unrepresentable)?;
    // The layer is in the priority field; see `layer_of`.
    header::set_priority(bytes, width, Priority::from_low_bits(route.layer.value()));
    Ok(())
}

/// Returns the layer of a route from its header, where it is in the priority field. With hops of 4
/// bits there is no such field.
#[inline]
pub fn layer_of(header: &HeaderFields) -> Layer {
    Layer::new(header.priority.value()).unwrap_or_default()
}

/// Hasher of the six bytes of a MAC, or the eight of a [`RouteKey`], with one multiplication. A
/// host can choose the MACs that it resolves, and so make a few entries of its own port's table
/// collide: at most as many as it may resolve at once, and at no cost to other ports.
#[derive(Clone, Copy, Debug, Default)]
pub struct MacHasher(u64);

/// Hash table by route key, the same in every run.
pub type KeyMap<V> = HashMap<RouteKey, V, BuildHasherDefault<MacHasher>>;

/// Hash table by MAC, the same in every run.
pub type MacMap<V> = HashMap<MacAddr, V, BuildHasherDefault<MacHasher>>;

impl Hasher for MacHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut word = [0; 8];
        let length = bytes.len().min(8);
        word[..length].copy_from_slice(&bytes[..length]);
        let mixed = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    #[inline]
    fn write_usize(&mut self, _length: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: PortNo = PortNo(1);

    fn mac(last: u8) -> RouteKey {
        MacAddr([2, 0, 0, 0, 0, last]).into()
    }

    #[test]
    fn a_route_is_in_use_if_it_was_looked_up_since_that_was_last_asked() {
        let mut tables = RouteTables::new(HopWidth::Eight, 2, 4);
        let (short, long) = (Route::from([3]), Route::from([3; 40]));
        for (destination, route) in [(mac(1), short), (mac(2), long)] {
            tables.install(PORT, destination, &route).unwrap();
            assert!(!tables.take_used(PORT, destination), "it is new");
            let header = tables.header(PORT, destination).unwrap().0.to_vec();
            assert_eq!(tables.header(PORT, destination).unwrap().0, header);
            assert!(tables.take_used(PORT, destination));
            assert!(!tables.take_used(PORT, destination), "not since then");
        }
        tables.header(PORT, mac(1));
        assert!(!tables.take_used(PORT, mac(2)) && !tables.take_used(PortNo(0), mac(1)));
    }

    #[test]
    fn each_port_has_routes_of_its_own() {
        let mut tables = RouteTables::new(HopWidth::Eight, 2, 4);
        assert_eq!(tables.header(PORT, mac(1)), None);
        tables.install(PORT, mac(1), &Route::from([3, 4])).unwrap();
        let (header, _) = tables.header(PORT, mac(1)).unwrap();
        assert_eq!(header, [0x10, 0x00, 0x80, 2, 0, 0, 3, 4]);
        assert_eq!(tables.header(PortNo(0), mac(1)), None);
    }

    #[test]
    fn the_vlan_is_part_of_the_key_and_a_route_keeps_how_frames_leave() {
        let mut tables = RouteTables::new(HopWidth::Eight, 2, 8);
        let vlan = |number| RouteKey { vlan: VlanId::new(number).unwrap(), ..mac(1) };
        for (number, hops) in [(0, 1), (10, 2), (20, 40)] {
            let route: Route = core::iter::repeat_n(PortNo(3), hops).collect();
            let route = Route { tagged: number == 20, ..route };
            tables.install(PORT, vlan(number), &route).unwrap();
            assert_eq!(tables.header(PORT, vlan(number)).unwrap().1, number == 20);
            assert!(tables.routes(PORT).contains(&(vlan(number), route)));
        }
        assert_eq!(tables.header(PORT, vlan(30)), None);
        assert!(tables.remove(PORT, vlan(10)) && tables.header(PORT, vlan(10)).is_none());
        assert_eq!(tables.len(PORT), 2);
    }

    #[test]
    fn a_route_for_one_source_comes_before_that_for_any_and_both_fill_the_table() {
        let mut tables = RouteTables::new(HopWidth::Eight, 2, 2);
        let source = |last| MacAddr([2, 0, 0, 0, 1, last]);
        let frame = |last| [&mac(9).destination.0[..], &source(last).0].concat();
        let pair = mac(9).from_source(Some(source(1)));
        let hops = |tables: &mut RouteTables, last| {
            let header = tables.lookup(PORT, mac(9), &frame(last)).map(|(header, _)| header)?;
            Some(HeaderView::parse(header, HopWidth::Eight).unwrap().forward())
        };
        tables.install(PORT, pair, &Route::from([3])).unwrap();
        assert_eq!(hops(&mut tables, 1), Some(Route::from([3]).hops));
        assert_eq!(hops(&mut tables, 2), None, "the route of its neighbour is none of its own");
        tables.install(PORT, mac(9), &Route::from([4])).unwrap();
        assert_eq!(tables.install(PORT, mac(8), &Route::from([3])), Err(RouteError::Full));
        assert!(tables.take_used(PORT, pair) && !tables.take_used(PORT, mac(9)));
        assert_eq!(hops(&mut tables, 1), Some(Route::from([3]).hops));
        assert!(!tables.take_used(PORT, mac(9)), "its own route was taken");
        assert_eq!(hops(&mut tables, 2), Some(Route::from([4]).hops));
        let routes = [(mac(9), Route::from([4])), (pair, Route::from([3]))];
        assert_eq!((tables.routes(PORT), tables.len(PORT)), (routes.to_vec(), 2));
        assert!(tables.remove(PORT, pair) && !tables.remove(PORT, pair));
        assert_eq!(hops(&mut tables, 1), Some(Route::from([4]).hops));
    }

    #[test]
    fn a_full_table_refuses_and_keeps_what_it_has() {
        let mut tables = RouteTables::new(HopWidth::Eight, 2, 1);
        tables.install(PORT, mac(1), &Route::from([3])).unwrap();
        assert_eq!(tables.install(PORT, mac(2), &Route::from([3])), Err(RouteError::Full));
        assert_eq!(tables.routes(PORT), [(mac(1), Route::from([3]))]);
        assert!(tables.remove(PORT, mac(1)));
        tables.install(PORT, mac(2), &Route::from([5])).unwrap();
        assert_eq!(tables.routes(PORT), [(mac(2), Route::from([5]))]);
    }

    #[test]
    fn a_long_route_is_a_route_too() {
        let mut tables = RouteTables::new(HopWidth::Sixteen, 2, 4);
        for count in [8, 9, 200] {
            let route: Route = (0..count).map(PortNo).collect();
            tables.install(PORT, mac(1), &route).unwrap();
            assert_eq!(tables.header(PORT, mac(1)).unwrap().0.len(), 6 + 2 * usize::from(count));
            assert_eq!(tables.routes(PORT), [(mac(1), route)]);
        }
    }

    #[test]
    fn a_route_keeps_its_layer_where_its_header_has_room_for_a_priority() {
        for (width, kept) in [(HopWidth::Eight, 5), (HopWidth::Sixteen, 5), (HopWidth::Four, 0)] {
            let mut tables = RouteTables::new(width, 2, 4);
            let layer = Layer::new(5).unwrap();
            tables.install(PORT, mac(1), &Route { layer, ..Route::from([3, 4]) }).unwrap();
            let routes = tables.routes(PORT);
            assert_eq!(
                (routes[0].1.layer.value(), &routes[0].1.hops[..]),
                (kept, &Route::from([3, 4]).hops[..])
            );
        }
    }

    #[test]
    fn impossible_routes_leave_the_old_one() {
        let mut tables = RouteTables::new(HopWidth::Four, 2, 4);
        tables.install(PORT, mac(1), &Route::from([3])).unwrap();
        let bad = tables.install(PORT, mac(1), &Route::from([15]));
        assert_eq!(bad, Err(RouteError::Unrepresentable));
        assert_eq!(tables.routes(PORT), [(mac(1), Route::from([3]))]);
        let nowhere = tables.install(PortNo(9), mac(1), &Route::from([3]));
        assert_eq!(nowhere, Err(RouteError::NoSuchPort));
    }
}
