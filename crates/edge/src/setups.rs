//! Open route requests, and those that failed recently.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::message::Target;
use axon_wire::{MacAddr, PortNo, Time};
use core::net::{IpAddr, Ipv4Addr};

/// Port that needs a route, target IP or MAC address, and requesting host: another host of the port
/// may not be allowed the route.
pub(super) type Key = (PortNo, Target, MacAddr);

/// A route request that the controller has not answered.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) id: u32,
    pub(super) source_ip: Option<IpAddr>,
    /// Destination IP address of the frame that needs the route, if it was looked up by MAC
    /// address.
    pub(super) hint: Option<IpAddr>,
    /// True if a table entry is reserved: counted for an IP address, by MAC for a MAC address.
    pub(super) held: bool,
    pub(super) requesters: Vec<Requester>,
    pub(super) tries: u32,
    pub(super) until: Time,
}

/// A host that waits for an ARP reply or an advertisement. For an ARP probe (RFC 5227 §1.1) or
/// duplicate address detection (RFC 4862 §5.4) the host has no address of its own yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requester {
    pub(super) mac: MacAddr,
    pub(super) ip: IpAddr,
}

/// All set-ups of the switch, and those that failed recently.
#[derive(Clone, Debug)]
pub(super) struct Setups {
    pub(super) next_id: u32,
    pub(super) open: BTreeMap<Key, Setup>,
    pub(super) open_on: BTreeMap<PortNo, usize>,
    pub(super) failed: BTreeMap<Key, Failure>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) times: u32,
    pub(super) until: Time,
}

impl Setups {
    pub(super) fn new() -> Setups {
        Setups {
            next_id: 0,
            open: BTreeMap::new(),
            open_on: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    pub(super) fn count_on(&self, port: PortNo) -> usize {
        self.open_on.get(&port).copied().unwrap_or(0)
    }

    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    pub(super) fn contains(&self, key: Key) -> bool {
        self.open.contains_key(&key)
    }

    pub(super) fn insert(&mut self, key: Key, setup: Setup) {
        if self.open.insert(key, setup).is_none() {
            *self.open_on.entry(key.0).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Setup> {
        let setup = self.open.remove(&key)?;
        if let Some(count) = self.open_on.get_mut(&key.0) {
            *count -= 1;
            if *count == 0 {
                self.open_on.remove(&key.0);
            }
        }
        Some(setup)
    }

    /// Returns the open set-ups of a port for one target, of one host or of all.
    pub(super) fn towards(
        &self,
        (port, target): (PortNo, Target),
        source: Option<MacAddr>,
    ) -> Vec<Key> {
        let (from, to) = source.map_or((MacAddr([0; 6]), MacAddr::BROADCAST), |mac| (mac, mac));
        let range = (port, target, from)..=(port, target, to);
        self.open.range(range).map(|(&key, _)| key).collect()
    }

    #[cfg(test)]
    pub(super) fn failures(&self) -> usize {
        self.failed.len()
    }

    #[cfg(test)]
    pub(super) fn macs_on(&self, port: PortNo) -> impl Iterator<Item = MacAddr> {
        self.open.keys().filter_map(move |key| match key.1 {
            Target::Mac(mac) if key.0 == port => Some(mac),
            _ => None,
        })
    }

    #[cfg(test)]
    pub(super) fn held_on(&self, port: PortNo) -> usize {
        let held = |((on, target, _), setup): (&Key, &Setup)| {
            *on == port && matches!(target, Target::Ip(_)) && setup.held
        };
        self.open.iter().filter(|&(key, setup)| held((key, setup))).count()
    }
}

pub(super) fn of_port(port: PortNo) -> core::ops::RangeInclusive<Key> {
    let first = (port, Target::Ip(Ipv4Addr::UNSPECIFIED.into()), MacAddr([0; 6]));
    first..=(port, Target::Mac(MacAddr::BROADCAST), MacAddr::BROADCAST)
}
