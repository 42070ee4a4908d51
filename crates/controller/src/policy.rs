//! Policy that determines which hosts may reach each other. It is a pure type, and `isolation.rs`
//! applies it wherever a route is made or kept.
//!
//! A host is in one tenant, is shared, or is in no tenant. Hosts of one tenant reach each other,
//! shared hosts reach every tenant, and a tenant may reach others that the fabric file names. Hosts
//! in no tenant reach each other and shared hosts, or, if so configured, no host at all. A
//! quarantined host reaches no host. Quarantine takes precedence over an operator's rule for two
//! hosts, which takes precedence over tenants. Reachability is symmetric, because traffic without a
//! reverse path gets no answer.
//!
//! A host is identified by its MAC address, or else by its port. Any host can use any MAC address.
//! Therefore, a host may be pinned. Its MAC address is then admitted at its port only, and no other
//! MAC address is admitted there.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use axon_node::{HostPair, PolicyRefusal, StoreChange, StoreKey, Stored, Subject};
use axon_wire::{MacAddr, NodeId, PortNo};
use core::net::IpAddr;

/// Maximum number of operator changes of each kind. A pair takes about 40 bytes.
pub(crate) const CHANGES_MAX: usize = 16_384;

/// Port of a switch, as the policy identifies it.
pub type PortOf = (NodeId, PortNo);

/// Group to which a host belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// In no tenant.
    #[default]
    Other,
    /// Shared, so that all tenants reach the host.
    Shared,
    /// In the tenant with this index in the fabric file.
    Tenant(usize),
}

/// Identity of a host, as the policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// MAC address of the host.
    pub mac: MacAddr,
    /// Port of the host, or `None` if it is unknown.
    pub at: Option<PortOf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tenant {
    name: String,
    /// Other tenants that this one may reach.
    reach: BTreeSet<usize>,
}

/// Policy that determines which hosts may reach each other. By default, all hosts do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    tenants: Vec<Tenant>,
    groups: BTreeMap<Subject, Group>,
    pins: BTreeMap<MacAddr, PortOf>,
    pinned: BTreeSet<PortOf>,
    /// Addresses that only hosts in a certain group may own.
    addresses: BTreeMap<IpAddr, Group>,
    /// True if hosts in no tenant reach no host.
    others_denied: bool,
    quarantine: BTreeSet<Subject>,
    /// Changes by operators that differ from the fabric file.
    changed_quarantine: BTreeMap<Subject, bool>,
    changed_pairs: BTreeMap<HostPair, bool>,
}

/// Construction from the fabric file.
impl Policy {
    /// Adds a tenant.
    pub fn add_tenant(&mut self, name: impl Into<String>) -> Group {
        self.tenants.push(Tenant { name: name.into(), reach: BTreeSet::new() });
        Group::Tenant(self.tenants.len() - 1)
    }

    /// Puts a host, or the hosts at a port, into a group. Replaces the previous group.
    pub fn put(&mut self, subject: Subject, group: Group) {
        self.groups.insert(subject, group);
    }

    /// Pins a host to a port. The host is admitted there only, and only hosts pinned to that port
    /// are admitted there.
    pub fn pin(&mut self, mac: MacAddr, to: PortOf) {
        self.pins.insert(mac, to);
        self.pinned.insert(to);
    }

    /// Restricts an address to the hosts in a group.
    pub fn reserve(&mut self, ip: IpAddr, group: Group) {
        self.addresses.insert(ip, group);
    }

    /// Lets the hosts in two tenants reach each other. Has no effect on groups other than tenants.
    pub fn join(&mut self, one: Group, other: Group) {
        if let (Group::Tenant(one), Group::Tenant(other)) = (one, other) {
            for (from, to) in [(one, other), (other, one)] {
                if let Some(tenant) = self.tenants.get_mut(from) {
                    tenant.reach.insert(to);
                }
            }
        }
    }

    /// Denies all access to hosts in no tenant.
    pub fn deny_others(&mut self) {
        self.others_denied = true;
    }

    /// Quarantines a host, or the hosts at a port.
    pub fn isolate(&mut self, subject: Subject) {
        self.quarantine.insert(subject);
    }

    /// Returns the names of the tenants, in order.
    pub fn tenants(&self) -> impl Iterator<Item = &str> {
        self.tenants.iter().map(|tenant| tenant.name.as_str())
    }
}

/// Queries.
impl Policy {
    /// Returns whether every host may reach every other host, be at any port, and own any address.
    pub fn is_open(&self) -> bool {
        let said = self.groups.is_empty() && self.addresses.is_empty() && self.pins.is_empty();
        said && !self.others_denied && self.quarantine.is_empty() && !self.is_changed()
    }

    /// Returns whether an operator has changed the policy.
    pub(crate) fn is_changed(&self) -> bool {
        !self.changed_quarantine.is_empty() || !self.changed_pairs.is_empty()
    }

    /// Returns the group of a host, by its MAC address or else by its port.
    pub(crate) fn group(&self, of: &Identity) -> Group {
        let by_mac = self.groups.get(&Subject::Mac(of.mac));
        let by_port = || self.groups.get(&port_of(of)?);
        by_mac.or_else(by_port).copied().unwrap_or_default()
    }

    /// Returns whether a host is in the same group at every port.
    fn has_fixed_group(&self, mac: MacAddr) -> bool {
        let is_port = |subject: &Subject| matches!(subject, Subject::Port(..));
        self.groups.contains_key(&Subject::Mac(mac)) || !self.groups.keys().any(is_port)
    }

    /// Returns whether a host is quarantined, by its MAC address or by its port.
    pub(crate) fn is_quarantined(&self, host: &Identity) -> bool {
        let mac = Subject::Mac(host.mac);
        self.holds(mac) || port_of(host).is_some_and(|port| self.holds(port))
    }

    fn holds(&self, subject: Subject) -> bool {
        let changed = self.changed_quarantine.get(&subject).copied();
        changed.unwrap_or_else(|| self.quarantine.contains(&subject))
    }

    /// Returns whether two hosts may reach each other.
    pub fn allows(&self, a: &Identity, b: &Identity) -> bool {
        if self.is_quarantined(a) || self.is_quarantined(b) {
            return false;
        }
        let changed = self.changed_pairs.get(&HostPair::of(a.mac, b.mac)).copied();
        changed.unwrap_or_else(|| self.groups_allow(self.group(a), self.group(b)))
    }

    fn groups_allow(&self, a: Group, b: Group) -> bool {
        match (a, b) {
            (Group::Other, _) | (_, Group::Other) if self.others_denied => false,
            (Group::Shared, _) | (_, Group::Shared) | (Group::Other, Group::Other) => true,
            (Group::Tenant(a), Group::Tenant(b)) => {
                a == b || self.tenants.get(a).is_some_and(|tenant| tenant.reach.contains(&b))
            }
            (Group::Other, Group::Tenant(_)) | (Group::Tenant(_), Group::Other) => false,
        }
    }

    /// Returns whether a host may be at a port, or at the ports of one bond. The host must not be
    /// pinned elsewhere, share the port with a pinned host, or be at a port that belongs to another
    /// tenant.
    pub fn admits(&self, mac: MacAddr, ports: &[PortOf]) -> bool {
        if let Some(to) = self.pins.get(&mac) {
            return ports.contains(to);
        }
        let of_mac = self.groups.get(&Subject::Mac(mac));
        ports.iter().all(|at| {
            let of_port = self.groups.get(&Subject::Port(at.0, at.1));
            let is_anothers = of_mac.zip(of_port).is_some_and(|(mac, port)| mac != port);
            !self.pinned.contains(at) && !is_anothers
        })
    }

    /// Returns whether the groups let a host own an address.
    pub fn may_own(&self, host: &Identity, ip: IpAddr) -> bool {
        self.addresses.get(&ip).is_none_or(|group| *group == self.group(host))
    }

    /// Returns the addresses that only hosts in a certain group may own.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.addresses.keys().copied()
    }
}

/// Changes by operators. Each method returns the change to be stored.
impl Policy {
    /// Allows two hosts to reach each other or forbids it, regardless of their groups.
    ///
    /// # Errors
    /// Both hosts are the same, one of the addresses is not a host address, or there are too many
    /// changes.
    pub(crate) fn change_pair(
        &mut self,
        [a, b]: [&Identity; 2],
        allowed: bool,
    ) -> Result<StoreChange, PolicyRefusal> {
        if a.mac == b.mac {
            return Err(PolicyRefusal::SameHost);
        }
        if let Some(none) = [a.mac, b.mac].into_iter().find(|mac| !mac.is_unicast()) {
            return Err(PolicyRefusal::NoHost(none));
        }
        let pair = HostPair::of(a.mac, b.mac);
        // The change is kept for a host whose group depends on its port, because the host may move.
        let is_fixed = self.has_fixed_group(a.mac) && self.has_fixed_group(b.mac);
        if is_fixed && self.groups_allow(self.group(a), self.group(b)) == allowed {
            self.changed_pairs.remove(&pair);
            return Ok(StoreChange::Delete(StoreKey::Pair(pair)));
        }
        has_room(self.changed_pairs.len(), self.changed_pairs.contains_key(&pair))?;
        self.changed_pairs.insert(pair, allowed);
        Ok(StoreChange::Put(Stored::Pair(pair, allowed)))
    }

    /// Quarantines a host or port, or ends its quarantine.
    ///
    /// # Errors
    /// The subject is a MAC address that is not a host address, or there are too many changes.
    pub(crate) fn change_quarantine(
        &mut self,
        subject: Subject,
        on: bool,
    ) -> Result<StoreChange, PolicyRefusal> {
        if let Subject::Mac(mac) = subject
            && !mac.is_unicast()
        {
            return Err(PolicyRefusal::NoHost(mac));
        }
        if self.quarantine.contains(&subject) == on {
            self.changed_quarantine.remove(&subject);
            return Ok(StoreChange::Delete(StoreKey::Quarantine(subject)));
        }
        let known = self.changed_quarantine.contains_key(&subject);
        has_room(self.changed_quarantine.len(), known)?;
        self.changed_quarantine.insert(subject, on);
        Ok(StoreChange::Put(Stored::Quarantine(subject, on)))
    }

    /// Restores a stored change. Other stored entries are ignored.
    pub(crate) fn restore(&mut self, stored: &Stored) {
        match *stored {
            Stored::Pair(pair, allowed) => {
                self.changed_pairs.insert(pair, allowed);
            }
            Stored::Quarantine(subject, on) => {
                self.changed_quarantine.insert(subject, on);
            }
            Stored::Host(_) | Stored::Lease(_) | Stored::Lease6(_) | Stored::InVlan(..) => {}
        }
    }

    /// Returns all quarantined hosts and ports, in order.
    pub(crate) fn quarantined(&self) -> impl Iterator<Item = Subject> {
        let all: BTreeSet<Subject> =
            self.quarantine.iter().chain(self.changed_quarantine.keys()).copied().collect();
        all.into_iter().filter(|subject| self.holds(*subject))
    }

    /// Returns the pairs for which an operator has changed what their groups allow.
    pub(crate) fn changed_pairs(&self) -> impl Iterator<Item = (HostPair, bool)> {
        self.changed_pairs.iter().map(|(&pair, &allowed)| (pair, allowed))
    }
}

fn port_of(host: &Identity) -> Option<Subject> {
    host.at.map(|(node, port)| Subject::Port(node, port))
}

fn has_room(changes: usize, known: bool) -> Result<(), PolicyRefusal> {
    if known || changes < CHANGES_MAX {
        return Ok(());
    }
    Err(PolicyRefusal::Full(CHANGES_MAX as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn mac(host: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, host])
    }

    fn at(port: u16) -> PortOf {
        (NodeId(1), PortNo(port))
    }

    /// Returns the host at the port with the same number.
    fn host(number: u8) -> Identity {
        Identity { mac: mac(number), at: Some(at(number.into())) }
    }

    /// Hosts 1 and 2 are red, host 3 and the hosts at port 4 are blue, and host 9 is shared.
    fn policy() -> (Policy, [Group; 2]) {
        let mut policy = Policy::default();
        let [red, blue] = ["red", "blue"].map(|name| policy.add_tenant(name));
        for (number, group) in [(1, red), (2, red), (3, blue), (9, Group::Shared)] {
            policy.put(Subject::Mac(mac(number)), group);
        }
        policy.put(Subject::Port(NodeId(1), PortNo(4)), blue);
        (policy, [red, blue])
    }

    /// Returns those of the hosts 1 to 9 that this one may reach.
    fn reached(policy: &Policy, from: u8) -> Vec<u8> {
        (1..=9).filter(|&to| to != from && policy.allows(&host(from), &host(to))).collect()
    }

    #[test]
    fn tenants_reach_themselves_and_shared_hosts() {
        let (mut policy, [red, blue]) = policy();
        assert_eq!(reached(&policy, 1), [2, 9]);
        assert_eq!(reached(&policy, 3), [4, 9], "host 4 by its port");
        assert_eq!(reached(&policy, 5), [6, 7, 8, 9], "those in no tenant");
        assert_eq!(reached(&policy, 9), [1, 2, 3, 4, 5, 6, 7, 8]);
        policy.deny_others();
        assert_eq!((reached(&policy, 5), reached(&policy, 9)), (vec![], vec![1, 2, 3, 4]));
        policy.join(red, blue);
        assert_eq!(reached(&policy, 4), [1, 2, 3, 9]);
        assert!(Policy::default().is_open() && !policy.is_open());
    }

    #[test]
    fn quarantine_goes_before_a_changed_pair_and_that_before_tenants() {
        let (mut policy, _) = policy();
        policy.isolate(Subject::Mac(mac(2)));
        let pair = |policy: &mut Policy, a, b, allowed| {
            policy.change_pair([&host(a), &host(b)], allowed).unwrap()
        };
        pair(&mut policy, 3, 1, true);
        pair(&mut policy, 2, 3, true);
        assert_eq!((reached(&policy, 1), reached(&policy, 2)), (vec![3, 9], vec![]));
        let here = Subject::Port(NodeId(1), PortNo(1));
        let put = policy.change_quarantine(here, true);
        assert_eq!(put, Ok(StoreChange::Put(Stored::Quarantine(here, true))));
        assert_eq!(reached(&policy, 1), []);
        let end = policy.change_quarantine(here, false);
        assert_eq!(end, Ok(StoreChange::Delete(StoreKey::Quarantine(here))));
        policy.change_quarantine(Subject::Mac(mac(2)), false).unwrap();
        assert_eq!(reached(&policy, 2), [1, 3, 9]);
        // A rule that says the same as the tenants do is not a change.
        let back = pair(&mut policy, 1, 3, false);
        assert!(matches!(back, StoreChange::Delete(_)), "{back:?}");
        let same = policy.change_pair([&host(1), &host(1)], true);
        assert_eq!(same, Err(PolicyRefusal::SameHost));
    }

    #[test]
    fn what_is_said_of_a_host_holds_wherever_it_comes_back() {
        let (mut policy, _) = policy();
        let away = Identity { at: None, ..host(4) };
        for (allowed, there) in [(false, 3), (true, 5)] {
            let change = policy.change_pair([&away, &host(there)], allowed).unwrap();
            assert!(matches!(change, StoreChange::Put(_)), "{change:?}");
            // At that port it is blue, like host 3, and host 5 is in no tenant.
            assert_eq!(policy.allows(&host(4), &host(there)), allowed);
        }
    }

    #[test]
    fn a_pin_binds_a_host_to_its_port_and_the_port_to_it() {
        let (mut policy, [red, _]) = policy();
        assert!(policy.admits(mac(1), &[at(7)]) && policy.admits(mac(7), &[at(4)]));
        assert!(!policy.admits(mac(1), &[at(4)]), "the port is blue");
        policy.pin(mac(1), at(1));
        assert!(policy.admits(mac(1), &[at(1)]) && !policy.admits(mac(1), &[at(7)]));
        assert!(!policy.admits(mac(7), &[at(1)]) && policy.admits(mac(7), &[at(7)]));
        // Ports 1 and 7 belong to one bond.
        let both = [at(7), at(1)];
        assert!(policy.admits(mac(1), &both) && !policy.admits(mac(7), &both));
        assert!(!policy.admits(mac(2), &[at(7), at(4)]), "one of the ports is blue");
        let ip = IpAddr::from([10, 0, 0, 1]);
        policy.reserve(ip, red);
        assert!(policy.may_own(&host(2), ip) && !policy.may_own(&host(3), ip));
    }

    proptest! {
        #[test]
        fn reaching_is_symmetric_and_what_the_store_holds_makes_the_same_policy(
            groups in prop::collection::vec((1..10u8, 0..4usize), 0..9),
            joined in prop::collection::vec((0..3usize, 0..3usize), 0..3),
            changes in prop::collection::vec((1..10u8, 1..10u8, any::<bool>()), 0..12),
        ) {
            let mut policy = Policy::default();
            for name in ["a", "b", "c"] {
                policy.add_tenant(name);
            }
            for (number, group) in groups {
                let group = if group == 3 { Group::Shared } else { Group::Tenant(group) };
                policy.put(Subject::Mac(mac(number)), group);
            }
            joined.iter().for_each(|&(a, b)| policy.join(Group::Tenant(a), Group::Tenant(b)));
            let mut next = policy.clone();
            let mut store = BTreeMap::new();
            for (a, b, yes) in changes {
                let change = match a == b {
                    true => policy.change_quarantine(Subject::Mac(mac(a)), yes),
                    false => policy.change_pair([&host(a), &host(b)], yes),
                };
                match change.unwrap() {
                    StoreChange::Put(entry) => drop(store.insert(entry.key(), entry)),
                    StoreChange::Delete(key) => drop(store.remove(&key)),
                }
                if a != b && !policy.is_quarantined(&host(a)) && !policy.is_quarantined(&host(b)) {
                    prop_assert_eq!(policy.allows(&host(a), &host(b)), yes);
                }
            }
            store.values().for_each(|entry| next.restore(entry));
            prop_assert_eq!(&next, &policy);
            for (a, b) in (1..10).flat_map(|a| (1..10).map(move |b| (a, b))) {
                prop_assert_eq!(
                    policy.allows(&host(a), &host(b)),
                    policy.allows(&host(b), &host(a))
                );
            }
        }
    }
}
