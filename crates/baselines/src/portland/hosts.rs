//! Hosts on an edge switch: their PMACs, and their registration with the fabric manager (paper
//! §3.2).
//!
//! When the first frame from a host arrives on a port, the host gets a PMAC. It consists of the
//! location of the switch, the port, and the next number on that port. Once its IP address is known
//! too, both are registered, repeatedly until the manager acknowledges them. A host that appears on
//! another port gets another PMAC.

use super::message::Register;
use crate::portland::plane::Location;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_node::agenda::Agenda;
use axon_wire::{MacAddr, PortNo, Span, Time};
use core::net::Ipv4Addr;

/// Maximum interval between retries.
const PAUSE_MAX: Span = Span::from_secs(1);

/// Host on an edge switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Port of the host.
    pub port: PortNo,
    /// IPv4 address, if a frame contained it.
    pub ip: Option<Ipv4Addr>,
    /// PMAC, if the switch has a location.
    pub pmac: Option<MacAddr>,
    /// Delay before the next retry.
    pause: Span,
}

/// Hosts on one edge switch, by AMAC.
#[derive(Debug)]
pub(super) struct Hosts {
    hosts: BTreeMap<MacAddr, Host>,
    by_pmac: BTreeMap<MacAddr, MacAddr>,
    /// Registrations that the manager has not acknowledged.
    unacknowledged: Agenda<MacAddr>,
    /// Next host number on each port.
    numbers: BTreeMap<PortNo, u16>,
    retry: Span,
}

impl Hosts {
    pub(crate) fn new(retry: Span) -> Hosts {
        Hosts {
            hosts: BTreeMap::new(),
            by_pmac: BTreeMap::new(),
            unacknowledged: Agenda::new(),
            numbers: BTreeMap::new(),
            retry,
        }
    }

    /// Records `amac` on `port`, with the `ip` that it sent, if any. Returns its PMAC if the PMAC
    /// is new.
    pub(crate) fn learn(
        &mut self,
        now: Time,
        location: Option<Location>,
        port: PortNo,
        amac: MacAddr,
        ip: Option<Ipv4Addr>,
    ) -> Option<MacAddr> {
        let fresh = Host { port, ip: None, pmac: None, pause: self.retry };
        let host = self.hosts.entry(amac).or_insert(fresh);
        let moved = host.port != port;
        let new_ip = ip.filter(|_| host.ip != ip);
        host.port = port;
        host.ip = ip.or(host.ip);
        let mut given = None;
        if let Some(location) = location.filter(|_| moved || host.pmac.is_none()) {
            given = Some(self.name(location, amac));
        }
        if given.is_some() || new_ip.is_some() {
            self.register_soon(now, amac);
        }
        given
    }

    /// Assigns a PMAC to a host.
    fn name(&mut self, location: Location, amac: MacAddr) -> MacAddr {
        let host = self.hosts.get_mut(&amac).expect("named after it was learned");
        let number = self.numbers.entry(host.port).or_insert(0);
        *number = number.wrapping_add(1);
        let pmac = location.pmac(host.port.0 as u8, *number);
        if let Some(old) = host.pmac.replace(pmac) {
            self.by_pmac.remove(&old);
        }
        self.by_pmac.insert(pmac, amac);
        pmac
    }

    /// Sets the location of the switch, so that every host gets a PMAC there. Returns port, AMAC
    /// and PMAC of all hosts.
    pub(crate) fn place(
        &mut self,
        now: Time,
        location: Location,
    ) -> Vec<(PortNo, MacAddr, MacAddr)> {
        let amacs: Vec<MacAddr> = self.hosts.keys().copied().collect();
        let named = amacs.into_iter().map(|amac| {
            let pmac = self.name(location, amac);
            self.register_soon(now, amac);
            (self.hosts[&amac].port, amac, pmac)
        });
        named.collect()
    }

    /// Registers all hosts with the fabric manager once more.
    pub(crate) fn register_all(&mut self, now: Time) {
        let amacs: Vec<MacAddr> = self.hosts.keys().copied().collect();
        amacs.into_iter().for_each(|amac| self.register_soon(now, amac));
    }

    fn register_soon(&mut self, now: Time, amac: MacAddr) {
        if let Some(host) = self.hosts.get_mut(&amac) {
            host.pause = self.retry;
            self.unacknowledged.set(amac, now);
        }
    }

    /// Returns the registrations that are due.
    pub(crate) fn due(&mut self, now: Time) -> Vec<Register> {
        let mut due = Vec::new();
        while let Some(amac) = self.unacknowledged.pop_due(now) {
            let Some(host) = self.hosts.get_mut(&amac) else {
                continue;
            };
            if let (Some(ip), Some(pmac)) = (host.ip, host.pmac) {
                due.push(Register { ip, amac, pmac });
                self.unacknowledged.set(amac, now + host.pause);
                host.pause = (host.pause * 2).min(PAUSE_MAX);
            }
        }
        due
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.unacknowledged.next()
    }

    /// Processes the manager's acknowledgement of a registration.
    pub(crate) fn acknowledged(&mut self, amac: MacAddr, pmac: MacAddr) {
        if self.hosts.get(&amac).is_some_and(|host| host.pmac == Some(pmac)) {
            self.unacknowledged.cancel(amac);
        }
    }

    /// Records that the host with this PMAC has moved to another switch. Returns its AMAC, unless
    /// it is known here with another PMAC.
    pub(crate) fn gone(&mut self, pmac: MacAddr) -> Option<MacAddr> {
        let amac = self.by_pmac.remove(&pmac)?;
        self.hosts.remove(&amac);
        self.unacknowledged.cancel(amac);
        Some(amac)
    }

    pub(crate) fn get(&self, amac: MacAddr) -> Option<&Host> {
        self.hosts.get(&amac)
    }

    pub(crate) fn by_pmac(&self, pmac: MacAddr) -> Option<(MacAddr, &Host)> {
        let amac = *self.by_pmac.get(&pmac)?;
        Some((amac, self.hosts.get(&amac)?))
    }

    /// Returns all hosts by AMAC.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (MacAddr, &Host)> {
        self.hosts.iter().map(|(&amac, host)| (amac, host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Location = Location { pod: 3, position: 1 };
    const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);

    fn mac(last: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, last])
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_host_is_registered_until_the_manager_has_heard() {
        let mut hosts = Hosts::new(Span::from_millis(50));
        assert_eq!(hosts.learn(at(0), None, PortNo(2), mac(1), Some(IP)), None);
        assert!(hosts.due(at(0)).is_empty(), "no PMAC without a location");
        let placed = hosts.place(at(10), HERE);
        let pmac = HERE.pmac(2, 1);
        assert_eq!(placed, [(PortNo(2), mac(1), pmac)]);
        let expected = [Register { ip: IP, amac: mac(1), pmac }];
        for (millis, due) in [(10, true), (59, false), (60, true), (159, false), (160, true)] {
            assert_eq!(hosts.due(at(millis)), expected[..usize::from(due)]);
        }
        hosts.acknowledged(mac(1), HERE.pmac(2, 9));
        assert!(hosts.deadline().is_some(), "not for that PMAC");
        hosts.acknowledged(mac(1), pmac);
        assert_eq!(hosts.deadline(), None);
        assert_eq!(hosts.learn(at(200), Some(HERE), PortNo(2), mac(1), Some(IP)), None);
        assert_eq!(hosts.deadline(), None, "nothing new");
    }

    #[test]
    fn a_host_on_another_port_has_another_pmac() {
        let mut hosts = Hosts::new(Span::from_millis(50));
        let first = hosts.learn(at(0), Some(HERE), PortNo(2), mac(1), Some(IP)).unwrap();
        let second = hosts.learn(at(1), Some(HERE), PortNo(3), mac(1), None).unwrap();
        assert_eq!((first, second), (HERE.pmac(2, 1), HERE.pmac(3, 1)));
        assert_eq!(hosts.by_pmac(first), None);
        assert_eq!(hosts.by_pmac(second).unwrap().0, mac(1));
        assert_eq!(hosts.gone(first), None);
        assert_eq!(hosts.gone(second), Some(mac(1)));
        assert!(hosts.get(mac(1)).is_none() && hosts.deadline().is_none());
    }
}
