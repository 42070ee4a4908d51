//! Connection table of a load balancer. It is indexed, in logarithmic time, by port, by client, by
//! end time, and, for half-open connections, by age.

use super::stage::Stage;
use alloc::collections::{BTreeMap, BTreeSet};
use axon_wire::{MacAddr, Time};
use core::net::Ipv4Addr;

/// First port for a connection, which is above the system ports (RFC 6056 section 3.2).
const FIRST_PORT: u16 = 1024;
/// Maximum number of connections, one for each port except that of the service.
pub const PORTS: usize = (u16::MAX - FIRST_PORT) as usize;

/// Address and port of a client.
pub(super) type Client = (Ipv4Addr, u16);

/// Connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pub client: Client,
    /// Destination MAC address for packets to the client. It is that of the host or router from
    /// which the client's packets come.
    pub mac: MacAddr,
    /// Index of the backend.
    pub backend: usize,
    /// Port of the balancer that is used towards the backend.
    pub port: u16,
}

/// Connection and its stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub connection: Connection,
    pub stage: Stage,
    pub ends_at: Time,
}

/// Connection table.
#[derive(Debug)]
pub(super) struct Table {
    by_port: BTreeMap<u16, Entry>,
    by_client: BTreeMap<Client, u16>,
    /// Number of connections from each client address.
    of_address: BTreeMap<Ipv4Addr, usize>,
    order: BTreeSet<(Time, u16)>,
    /// Half-open connections, in total and by address. All have equal lifetimes, so the first one
    /// to end is the oldest.
    half_open: BTreeSet<(Time, u16)>,
    half_open_of: BTreeSet<(Ipv4Addr, Time, u16)>,
    next_port: u16,
    /// Port of the service, which is not used for connections.
    reserved: u16,
}

impl Table {
    pub(crate) fn new(reserved: u16) -> Table {
        Table {
            by_port: BTreeMap::new(),
            by_client: BTreeMap::new(),
            of_address: BTreeMap::new(),
            order: BTreeSet::new(),
            half_open: BTreeSet::new(),
            half_open_of: BTreeSet::new(),
            next_port: FIRST_PORT,
            reserved,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_port.len()
    }

    pub(crate) fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// Returns the number of connections from a client address.
    pub(crate) fn of_address(&self, address: Ipv4Addr) -> usize {
        self.of_address.get(&address).copied().unwrap_or(0)
    }

    pub(crate) fn get(&self, port: u16) -> Option<Entry> {
        self.by_port.get(&port).copied()
    }

    pub(crate) fn of_client(&self, client: Client) -> Option<Entry> {
        self.get(*self.by_client.get(&client)?)
    }

    /// Returns the connection that ends first, by port, and its end time.
    pub(crate) fn first(&self) -> Option<(Time, u16)> {
        self.order.first().copied()
    }

    /// Returns the port of the oldest half-open connection.
    pub(crate) fn oldest_half_open(&self) -> Option<u16> {
        self.half_open.first().map(|&(_, port)| port)
    }

    /// Returns the port of the oldest half-open connection from a client address.
    pub(crate) fn oldest_half_open_of(&self, address: Ipv4Addr) -> Option<u16> {
        let all = (address, Time::ZERO, 0)..=(address, Time::MAX, u16::MAX);
        self.half_open_of.range(all).next().map(|&(_, _, port)| port)
    }

    /// Returns a free port. There must be one.
    pub(crate) fn free_port(&mut self) -> u16 {
        while self.by_port.contains_key(&self.next_port) || self.next_port == self.reserved {
            self.next_port = after(self.next_port);
        }
        let port = self.next_port;
        self.next_port = after(port);
        port
    }

    /// Inserts a connection whose port and client are unused.
    pub(crate) fn insert(&mut self, entry: Entry) {
        let Connection { client, port, .. } = entry.connection;
        self.by_client.insert(client, port);
        *self.of_address.entry(client.0).or_default() += 1;
        self.index(&entry);
        self.by_port.insert(port, entry);
    }

    /// Updates the stage and end time of a connection.
    pub(crate) fn update(&mut self, port: u16, stage: Stage, ends_at: Time) {
        let Some(mut entry) = self.get(port) else { return };
        self.unindex(&entry);
        (entry.stage, entry.ends_at) = (stage, ends_at);
        self.index(&entry);
        self.by_port.insert(port, entry);
    }

    /// Updates the destination MAC address for packets to a client.
    pub(crate) fn set_mac(&mut self, port: u16, mac: MacAddr) {
        if let Some(entry) = self.by_port.get_mut(&port) {
            entry.connection.mac = mac;
        }
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, port: u16) -> Option<Entry> {
        let entry = self.by_port.remove(&port)?;
        let client = entry.connection.client;
        self.by_client.remove(&client);
        if let Some(count) = self.of_address.get_mut(&client.0) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&client.0);
            }
        }
        self.unindex(&entry);
        Some(entry)
    }

    fn index(&mut self, entry: &Entry) {
        let Connection { client, port, .. } = entry.connection;
        self.order.insert((entry.ends_at, port));
        if entry.stage.is_half_open() {
            self.half_open.insert((entry.ends_at, port));
            self.half_open_of.insert((client.0, entry.ends_at, port));
        }
    }

    fn unindex(&mut self, entry: &Entry) {
        let Connection { client, port, .. } = entry.connection;
        self.order.remove(&(entry.ends_at, port));
        if entry.stage.is_half_open() {
            self.half_open.remove(&(entry.ends_at, port));
            self.half_open_of.remove(&(client.0, entry.ends_at, port));
        }
    }
}

const fn after(port: u16) -> u16 {
    if port == u16::MAX { FIRST_PORT } else { port + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::random::Random;
    use axon_wire::{MacAddr, Span};

    #[test]
    fn every_index_agrees_with_the_entries_whatever_happens() {
        let (mut table, mut random) = (Table::new(80), Random::new(11));
        let mut below = |bound: u64| random.next_u64() % bound;
        let stages = [
            Stage::HalfOpen { expected: None },
            Stage::HalfOpen { expected: Some(1) },
            Stage::Established { closed: [false; 2], seen: Default::default() },
            Stage::Closed,
        ];
        for step in 0..20_000 {
            let client = (Ipv4Addr::from_bits(below(5) as u32), below(20) as u16);
            let stage = stages[below(4) as usize];
            let ends_at = Time::ZERO + Span::from_millis(below(50));
            match (table.of_client(client), below(3)) {
                (None, _) => {
                    let port = table.free_port();
                    let mac = MacAddr::default();
                    let connection = Connection { client, mac, backend: 0, port };
                    table.insert(Entry { connection, stage, ends_at });
                }
                (Some(entry), 0) => drop(table.remove(entry.connection.port)),
                (Some(entry), _) => table.update(entry.connection.port, stage, ends_at),
            }
            let all = || table.by_port.values();
            let half_open = || all().filter(|entry| entry.stage.is_half_open());
            let oldest = |entries: &mut dyn Iterator<Item = &Entry>| {
                let oldest = entries.map(|entry| (entry.ends_at, entry.connection.port)).min();
                oldest.map(|(_, port)| port)
            };
            let first = all().map(|entry| (entry.ends_at, entry.connection.port)).min();
            assert_eq!((table.first(), table.order.len()), (first, table.len()), "step {step}");
            assert_eq!(table.oldest_half_open(), oldest(&mut half_open()));
            assert_eq!(table.half_open(), half_open().count());
            assert_eq!(
                (table.by_client.len(), table.half_open_of.len()),
                (table.len(), table.half_open())
            );
            for number in 0..5 {
                let address = Ipv4Addr::from_bits(number);
                let is_its = |entry: &&Entry| entry.connection.client.0 == address;
                assert_eq!(table.of_address(address), all().filter(is_its).count());
                let expected = oldest(&mut half_open().filter(is_its));
                assert_eq!(table.oldest_half_open_of(address), expected);
            }
        }
        assert!(table.of_address.len() <= 5);
    }
}
