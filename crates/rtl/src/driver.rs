//! Driver of the device: everything that software does with its registers.
//!
//! A route is installed as an entry of the port's route table: its valid bit is cleared, rows,
//! header and attributes are written, and the bit is set. The header is written as it leaves, after
//! its first hop, so a change of a port's kind writes the entries that lead to it again. A frame
//! that has matched an entry reads its header within `IN_FLIGHT_CYCLES`; the driver waits for
//! that before it writes over an entry.

use crate::model::Size;
use crate::registers::{self, Counter, Register, Table, counter, device, port, table};
use crate::routes::{Entry, HEADER_BYTES_MAX, MASQUERADED_HEADER_BYTES_MAX, PortRoutes, ROWS, Row};
use axon_node::{Drop, Masqueraded, PortKind, RouteError, RouteKey};
use axon_plane::PlaneConfig;
use axon_plane::routes::header_of;
use axon_wire::header::HopWidth;
use axon_wire::{MacAddr, PortNo, Route, Span, Time};

/// Length of a cycle: 125 MHz.
pub(crate) const CYCLE: Span = Span::from_nanos(8);
/// Cycles after which no frame leaves with the header of an entry that is not valid any more.
const IN_FLIGHT_CYCLES: u64 = 64;
/// Cycles after a row, in which the device finds a moment between frames to write it.
const ROW_CYCLES: u64 = 16;
/// Symbols of a buffer that no frame can use.
const BUFFER_MARGIN: u32 = 64;

/// Register bus of a device.
pub trait Bus {
    /// Returns the value of the register at `address`, in words.
    fn read(&mut self, address: u16) -> u32;

    /// Writes the register at `address`, in words.
    fn write(&mut self, address: u16, value: u32);

    /// Waits for this many clock cycles.
    fn wait(&mut self, cycles: u64);
}

/// Returns the value of a register of the device.
pub fn read(bus: &mut impl Bus, register: &Register) -> u32 {
    bus.read(register.offset)
}

/// Returns a counter of `port`, or of the CPU.
pub fn count(bus: &mut impl Bus, port: PortNo, counter: &Counter) -> u32 {
    let block = if port == PortNo::CONTROL { 0 } else { registers::port_block(port.0) };
    bus.read(block + counter.offset)
}

/// Writes a register of `port`.
///
/// # Panics
/// If the register does not take the value.
pub fn set(bus: &mut impl Bus, port: PortNo, register: &Register, value: u32) {
    let Register { name, offset, min, max, .. } = *register;
    assert!((min..=max).contains(&value), "{name}: {value} is not in {min} to {max}");
    bus.write(registers::port_block(port.0) + offset, value);
}

/// Writes an element of a table of `port`.
///
/// # Panics
/// If the table has no such element, or a field does not take its value.
pub fn put(bus: &mut impl Bus, port: PortNo, table: &Table, index: &[u32], values: &[u32]) {
    let word = |fields: &[registers::Field], values: &[u32]| {
        assert!(fields.len() == values.len(), "{}: {values:?}", table.name);
        fields.iter().zip(values).fold(0, |word, (field, &value)| {
            let (name, max) = (field.name, field.max);
            assert!(value <= max, "{} {name}: {value} is not in 0 to {max}", table.name);
            word | value << field.shift
        })
    };
    let at = table.offset + word(table.index, index) as u16;
    bus.write(registers::port_block(port.0) + at, word(table.fields, values));
}

/// State of the device as its driver has set it.
#[derive(Clone, Debug)]
pub struct Driver {
    width: HopWidth,
    ports: u16,
    route_bytes_max: usize,
    kinds: Vec<PortKind>,
    routes: Vec<PortRoutes>,
    /// Counters of drops at the last look, of each port and then of the CPU.
    drops: Vec<[u32; counter::ALL.len()]>,
}

impl Driver {
    /// Initialises a device that has been reset: its ports are of unknown kind, and its tables are
    /// empty.
    pub fn new(bus: &mut impl Bus, size: Size, config: &PlaneConfig) -> Driver {
        let ports = usize::from(config.ports);
        let routes = config.routes_per_port_max.min(size.routes as usize);
        let masqueraded = config.masqueraded_per_port_max.min(size.routes as usize - routes);
        let driver = Driver {
            width: config.hop_width,
            ports: size.ports as u16,
            route_bytes_max: config.route_bytes_max.min(HEADER_BYTES_MAX),
            kinds: vec![PortKind::Unknown; ports],
            routes: vec![PortRoutes::new(routes, masqueraded); ports],
            drops: vec![[0; counter::ALL.len()]; size.ports as usize + 1],
        };
        let bytes_max = (config.probe_bytes_max() as u32).min(size.buffer_bytes - BUFFER_MARGIN);
        for number in (0..config.ports).map(PortNo) {
            set(bus, number, &port::FRAME_BYTES_MAX, config.frame_bytes_max as u32);
            set(bus, number, &port::BYTES_MAX, bytes_max);
            set(bus, number, &port::ROUTE_BYTES_MAX, config.route_bytes_max as u32);
            set(bus, number, &port::PUNTS_RESOLUTION, config.punts_resolution.into());
            (0..ROWS).for_each(|row| driver.write_row(bus, number, Row::of(row)));
        }
        driver
    }

    /// Returns whether the device has the registers of this version.
    pub fn is_known(bus: &mut impl Bus) -> bool {
        let is_expected = |register: &Register| read(bus, register) == register.max;
        [device::MAGIC, device::VERSION].iter().all(is_expected)
    }

    /// Sets the time that probes are stamped with. Takes two cycles; `time` is that of the next.
    pub fn set_time(bus: &mut impl Bus, time: Time) {
        // The register has its value a cycle later.
        let ticks = (time + CYCLE).ticks();
        bus.write(device::TIME_HIGH.offset, (ticks >> 32) as u32);
        bus.write(device::TIME_LOW.offset, ticks as u32);
    }

    /// Returns the kind of `port`; `None` if there is no such port.
    pub fn kind(&self, port: PortNo) -> Option<PortKind> {
        self.kinds.get(port.index()).copied()
    }

    /// Sets the kind of `port`, and writes the routes that lead to it again.
    pub fn set_kind(&mut self, bus: &mut impl Bus, port: PortNo, kind: PortKind) {
        let Some(place) = self.kinds.get_mut(port.index()) else { return };
        if core::mem::replace(place, kind) == kind {
            return;
        }
        let number = match kind {
            PortKind::Unknown => port::KIND_UNKNOWN,
            PortKind::Host => port::KIND_HOST,
            PortKind::Axon => port::KIND_AXON,
        };
        set(bus, port, &port::KIND, number);
        for ingress in (0..self.kinds.len() as u16).map(PortNo) {
            let table = &self.routes[ingress.index()];
            let plain = table.iter().map(|(_, route, entry)| (route, None, entry));
            let given = table.masqueraded();
            let given = given.map(|(one, entry)| (&one.route, Some(one.destination), entry));
            let all = plain.chain(given).filter(|(route, ..)| route.hops.first() == Some(&port));
            let all = all.map(|(route, destination, entry)| (route.clone(), destination, entry));
            for (route, destination, entry) in all.collect::<Vec<_>>() {
                self.invalidate(bus, ingress, entry);
                if let Ok(header) = header_of(&route, self.width) {
                    self.write_entry(bus, ingress, entry, (header, destination));
                }
                self.write_valid(bus, ingress);
            }
        }
    }

    /// Installs `route` for frames from `port` with this key, replacing any before it.
    ///
    /// # Errors
    /// `Full`, `NoSuchPort`; `Unrepresentable` also if the header is longer than an entry, or the
    /// key has a VLAN. The old route, if any, is then kept.
    pub fn install(
        &mut self,
        bus: &mut impl Bus,
        port: PortNo,
        key: RouteKey,
        route: Route,
    ) -> Result<(), RouteError> {
        let header = header_of(&route, self.width)?;
        if header.len() > self.route_bytes_max || !key.vlan.is_none() {
            return Err(RouteError::Unrepresentable);
        }
        let table = self.routes.get(port.index()).ok_or(RouteError::NoSuchPort)?;
        let entry = table.place(key).ok_or(RouteError::Full)?;
        self.invalidate(bus, port, entry);
        let changed = self.routes[port.index()].set(entry, key, route);
        self.change_entry(bus, port, entry, changed, (header, None));
        Ok(())
    }

    /// Installs the route of a masqueraded address for frames from `port`, replacing that at the
    /// same index.
    ///
    /// # Errors
    /// `Full` if there is no such index, `NoSuchPort`; `Unrepresentable` also if the address has
    /// none, the header is longer than such an entry, or the key has a source or a VLAN. The old
    /// route, if any, is then kept.
    pub fn masquerade(
        &mut self,
        bus: &mut impl Bus,
        port: PortNo,
        route: Masqueraded,
    ) -> Result<(), RouteError> {
        let header = header_of(&route.route, self.width)?;
        let bytes_max = self.route_bytes_max.min(MASQUERADED_HEADER_BYTES_MAX);
        let table = self.routes.get(port.index()).ok_or(RouteError::NoSuchPort)?;
        let entry = table.place_masqueraded(route.key)?;
        if header.len() > bytes_max {
            return Err(RouteError::Unrepresentable);
        }
        self.invalidate(bus, port, entry);
        let destination = route.destination;
        let changed = self.routes[port.index()].set_masqueraded(entry, route);
        self.change_entry(bus, port, entry, changed, (header, Some(destination)));
        Ok(())
    }

    /// Writes an entry that takes part in no lookup, of which these rows have changed, and lets it
    /// take part.
    fn change_entry(
        &self,
        bus: &mut impl Bus,
        port: PortNo,
        entry: usize,
        changed: Vec<Row>,
        contents: (Vec<u8>, Option<MacAddr>),
    ) {
        changed.into_iter().for_each(|row| self.write_row(bus, port, row));
        set(bus, port, &port::BY_SOURCE, self.routes[port.index()].by_source());
        self.write_entry(bus, port, entry, contents);
        self.write_valid(bus, port);
    }

    /// Removes a route, that of a masqueraded address too; it is not an error if there is none.
    pub fn remove(&mut self, bus: &mut impl Bus, port: PortNo, key: RouteKey) {
        let table = self.routes.get_mut(port.index());
        if table.is_some_and(|table| table.remove(key)) {
            self.write_valid(bus, port);
        }
    }

    /// Removes all routes of `port`.
    pub fn clear(&mut self, bus: &mut impl Bus, port: PortNo) {
        for key in self.routes(port).into_iter().map(|(key, _)| key) {
            self.remove(bus, port, key);
        }
        for key in self.masqueraded(port).into_iter().map(|route| route.key) {
            self.remove(bus, port, key);
        }
    }

    /// Returns the routes of `port`, in the order of their keys.
    pub fn routes(&self, port: PortNo) -> Vec<(RouteKey, Route)> {
        let tables = self.routes.get(port.index()).into_iter();
        tables.flat_map(PortRoutes::iter).map(|(key, route, _)| (key, route.clone())).collect()
    }

    /// Returns the routes of masqueraded addresses of `port`, by index.
    pub fn masqueraded(&self, port: PortNo) -> Vec<Masqueraded> {
        let tables = self.routes.get(port.index()).into_iter();
        tables.flat_map(PortRoutes::masqueraded).map(|(route, _)| route.clone()).collect()
    }

    /// Returns the number of routes of `port`, those of masqueraded addresses not counted.
    pub fn len(&self, port: PortNo) -> usize {
        self.routes.get(port.index()).map_or(0, PortRoutes::len)
    }

    /// Returns the drops since the last call, by ingress and reason. Carrier events without a frame
    /// have none.
    pub fn take_drops(&mut self, bus: &mut impl Bus) -> Vec<(PortNo, Option<Drop>, u64)> {
        let mut all = Vec::new();
        let ports = (0..self.ports).map(PortNo).chain([PortNo::CONTROL]);
        for (port, seen) in ports.zip(&mut self.drops) {
            for (counter, seen) in counter::ALL.iter().zip(seen) {
                if counter.drop.is_none() && *counter != counter::NO_START {
                    continue;
                }
                let now = count(bus, port, counter);
                let more = now.wrapping_sub(core::mem::replace(seen, now));
                let reason = counter.drop.and_then(|drop| Drop::ALL.get(usize::from(drop)));
                if more > 0 {
                    all.push((port, reason.copied(), more.into()));
                }
            }
        }
        all
    }

    /// Clears the valid bit of an entry, and waits until it may be written.
    fn invalidate(&self, bus: &mut impl Bus, port: PortNo, entry: usize) {
        let valid = self.routes[port.index()].valid() & !(1 << entry);
        set(bus, port, &port::VALID, valid);
        bus.wait(IN_FLIGHT_CYCLES);
    }

    fn write_valid(&self, bus: &mut impl Bus, port: PortNo) {
        set(bus, port, &port::VALID, self.routes[port.index()].valid());
    }

    fn write_row(&self, bus: &mut impl Bus, port: PortNo, row: Row) {
        let Row { is_low, position, nibble } = row;
        let index = [is_low.into(), position as u32, nibble as u32];
        put(bus, port, &table::ROW, &index, &[self.routes[port.index()].row(row)]);
        bus.wait(ROW_CYCLES);
    }

    /// Writes header and attributes of an entry, and the destination that it gives to frames.
    fn write_entry(
        &self,
        bus: &mut impl Bus,
        port: PortNo,
        entry: usize,
        (header, destination): (Vec<u8>, Option<MacAddr>),
    ) {
        let Entry { output, priority, header } =
            Entry::of(header, self.width, port, |port| self.kind(port));
        let rewritten = destination.iter().flat_map(|MacAddr(bytes)| bytes);
        let rewritten = (MASQUERADED_HEADER_BYTES_MAX as u32..).zip(rewritten);
        for (byte, &data) in (0..).zip(&header).chain(rewritten) {
            put(bus, port, &table::MEMORY, &[entry as u32, byte], &[data.into()]);
        }
        let rewrites = u32::from(destination.is_some());
        let values = [output.into(), header.len() as u32, priority.value().into(), rewrites];
        put(bus, port, &table::ATTRIBUTES, &[entry as u32], &values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::masquerade::address;
    use std::collections::BTreeMap;

    const SIZE: Size = Size { ports: 4, hop_bits: 8, buffer_bytes: 2048, routes: 32 };

    /// Registers that hold what is written, and the order of the writes.
    #[derive(Default)]
    struct Memory {
        values: BTreeMap<u16, u32>,
        log: Vec<(u16, u32)>,
    }

    impl Memory {
        /// Returns the value of a register of port 0.
        fn at(&self, offset: u16) -> u32 {
            let address = registers::port_block(0) + offset;
            self.values.get(&address).copied().unwrap_or_default()
        }

        /// Returns output and header of an entry of port 0.
        fn entry(&self, entry: u16) -> (u32, Vec<u8>) {
            let attributes = self.at(table::ATTRIBUTES.offset + entry);
            let byte = |byte| self.at(table::MEMORY.offset + entry * 32 + byte) as u8;
            (attributes & 0xf, (0..(attributes >> 4 & 0x1f) as u16).map(byte).collect())
        }
    }

    impl Bus for Memory {
        fn read(&mut self, address: u16) -> u32 {
            self.values.get(&address).copied().unwrap_or_default()
        }

        fn write(&mut self, address: u16, value: u32) {
            self.values.insert(address, value);
            self.log.push((address, value));
        }

        fn wait(&mut self, _cycles: u64) {}
    }

    fn driver(bus: &mut Memory) -> Driver {
        let config = PlaneConfig::with_ports(4, MacAddr::default());
        let mut driver = Driver::new(bus, SIZE, &config);
        driver.set_kind(bus, PortNo(0), PortKind::Host);
        driver.set_kind(bus, PortNo(1), PortKind::Axon);
        driver.set_kind(bus, PortNo(2), PortKind::Host);
        bus.log.clear();
        driver
    }

    fn key(last: u8) -> RouteKey {
        RouteKey::to(MacAddr([2, 0, 0, 0, 0, last]))
    }

    #[test]
    fn an_entry_holds_the_header_as_it_leaves() {
        let mut bus = Memory::default();
        let mut driver = driver(&mut bus);
        let mut install = |at: u8, route: Route| {
            driver.install(&mut bus, PortNo(0), key(at), route).expect("there is room");
            bus.entry(at.into())
        };
        let taken = vec![0x10, 0, 0x80, 1, 0, 0x10, 7, 0];
        assert_eq!(install(0, Route::from([1, 7])), (1, taken), "to an Axon");
        assert_eq!(install(1, Route::from([2])), (2, vec![]), "to the hosts of this switch");
        let to_us = vec![0x10, 0, 0x70, 0, 0, 0x10, 0];
        assert_eq!(install(2, Route::from([PortNo::CONTROL.0])), (15, to_us), "to the CPU");
        assert_eq!(install(3, Route::from([200])).0, 14, "to no port");
        assert_eq!(install(4, Route::from([3])).0, 3, "to a port of unknown kind");
    }

    #[test]
    fn an_entry_is_written_while_it_is_not_valid() {
        let mut bus = Memory::default();
        let mut driver = driver(&mut bus);
        driver.install(&mut bus, PortNo(0), key(1), Route::from([1])).unwrap();
        let first = bus.log.len();
        driver.install(&mut bus, PortNo(0), key(1), Route::from([1, 2])).unwrap();
        driver.set_kind(&mut bus, PortNo(1), PortKind::Unknown);
        let valid = registers::port_block(0) + port::VALID.offset;
        let kind = registers::port_block(1) + port::KIND.offset;
        let (mut is_valid, mut writes) = (true, 0);
        for &(at, value) in &bus.log[first..] {
            match at {
                _ if at == valid => is_valid = value & 1 == 1,
                _ if at == kind => {}
                _ => {
                    assert!(!is_valid, "{at:#x}");
                    writes += 1;
                }
            }
        }
        assert!(is_valid && writes > 10);
    }

    #[test]
    fn a_full_table_and_routes_that_do_not_fit_are_refused() {
        let mut bus = Memory::default();
        let mut driver = driver(&mut bus);
        let mut install = |port, key, route| driver.install(&mut bus, PortNo(port), key, route);
        for last in 0..32 {
            assert_eq!(install(0, key(last), Route::from([1])), Ok(()));
        }
        assert_eq!(install(0, key(32), Route::from([1])), Err(RouteError::Full));
        assert_eq!(install(0, key(3), Route::from([2])), Ok(()), "replaced");
        assert_eq!(install(4, key(3), Route::from([2])), Err(RouteError::NoSuchPort));
        let hops = |count| (0..count).map(|_| PortNo(1)).collect::<Route>();
        assert_eq!(install(1, key(1), hops(25)), Ok(()));
        assert_eq!(install(1, key(1), hops(26)), Err(RouteError::Unrepresentable));
        driver.remove(&mut bus, PortNo(0), key(3));
        assert_eq!(driver.len(PortNo(0)), 31);
        driver.clear(&mut bus, PortNo(0));
        assert_eq!((driver.len(PortNo(0)), bus.at(port::VALID.offset)), (0, 0));
    }

    #[test]
    fn a_masqueraded_address_has_an_entry_with_the_true_one() {
        let mut bus = Memory::default();
        let few = PlaneConfig {
            routes_per_port_max: 4,
            masqueraded_per_port_max: 64,
            ..PlaneConfig::with_ports(4, MacAddr::default())
        };
        let mut driver = Driver::new(&mut bus, SIZE, &few);
        driver.set_kind(&mut bus, PortNo(1), PortKind::Axon);
        let (at, destination) = (PortNo(0), MacAddr([2, 3, 4, 5, 6, 7]));
        let mut give = |index, generation, hops: usize| {
            let key = RouteKey::to(address(index, generation));
            let route = (0..hops).map(|_| PortNo(1)).collect::<Route>();
            driver.masquerade(&mut bus, at, Masqueraded { key, destination, route })
        };
        assert_eq!(give(27, 1, 18), Ok(()), "24 bytes");
        assert_eq!(give(27, 2, 19), Err(RouteError::Unrepresentable));
        assert_eq!(give(28, 1, 1), Err(RouteError::Full), "four entries are for others");
        assert_eq!(give(27, 2, 2), Ok(()), "replaced");
        let given = driver.masqueraded(at);
        assert_eq!(
            given.iter().map(|one| one.key.destination).collect::<Vec<_>>(),
            [address(27, 2)]
        );
        let taken = vec![0x10, 0, 0x80, 1, 0, 0x10, 1, 0];
        assert_eq!((bus.entry(0), bus.at(table::ATTRIBUTES.offset) >> 12), ((1, taken), 1));
        let written = (24..30).map(|byte| bus.at(table::MEMORY.offset + byte) as u8);
        assert!(written.eq(destination.0));
        // A route of the same key wins while it is there.
        let key = RouteKey::to(address(27, 2));
        driver.install(&mut bus, at, key, Route::from([1])).unwrap();
        assert_eq!(bus.at(port::VALID.offset), 0b10);
        driver.set_kind(&mut bus, PortNo(1), PortKind::Host);
        assert_eq!((bus.entry(0), bus.entry(1)), ((1, vec![]), (1, vec![])), "to its hosts");
        driver.clear(&mut bus, at);
        assert_eq!(bus.at(port::VALID.offset), 0);
        assert_eq!(driver.masqueraded(at), []);
    }

    #[test]
    fn drops_are_counted_once_and_past_the_wrap_of_their_counter() {
        let mut bus = Memory::default();
        let mut driver = driver(&mut bus);
        let full = registers::port_block(2) + counter::QUEUE_FULL.offset;
        let mut drops_at = |count| {
            bus.values.insert(full, count);
            driver.take_drops(&mut bus)
        };
        let dropped = |count| vec![(PortNo(2), Some(Drop::QueueFull), count)];
        assert_eq!(drops_at(u32::MAX), dropped(u32::MAX.into()));
        assert_eq!(drops_at(1), dropped(2));
        assert_eq!(drops_at(1), []);
    }

    #[test]
    #[should_panic(expected = "kind: 3 is not in 0 to 2")]
    fn a_value_that_does_not_fit_its_register_is_refused() {
        set(&mut Memory::default(), PortNo(0), &port::KIND, 3);
    }

    #[test]
    #[should_panic(expected = "attributes header_bytes: 32 is not in 0 to 31")]
    fn a_value_that_does_not_fit_its_field_is_refused() {
        put(&mut Memory::default(), PortNo(0), &table::ATTRIBUTES, &[0], &[0, 32, 0, 0]);
    }
}
