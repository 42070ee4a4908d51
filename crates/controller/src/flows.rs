//! Flow registry: every route that switches hold for hosts, and the links it uses.
//!
//! Each port has a route table that is looked up by destination. So a route here leads from one
//! host port to one host. Its users are the hosts at that port that requested it. The route is
//! removed with its last user. A flow of paper 001 is a user of a route. A route may also be for
//! frames from one host only ([`Origin`]), which is then its only user.
//!
//! Each directed link has the list of its routes, and each route has its position in those lists.
//! So the cost of adding or removing a route is linear in its length, and the routes over a failed
//! link are found without a search.

use super::bounds::{ROUTES_PER_PORT_MAX, ROUTES_PER_SWITCH_MAX};
use super::counts::Counts;
use super::hosts::{HostIndex, Place};
use super::peers::{ByOther, Peers};
use super::router::Step;
use super::topology::SwitchIndex;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_wire::{Hops, Layer, PortNo};

/// Index of a route in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteIndex(pub u32);

impl RouteIndex {
    const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Origin of a route: all hosts at a port, or one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// Host port.
    pub at: Place,
    /// Source host, or `None` for all hosts at the port.
    pub source: Option<HostIndex>,
}

impl From<Place> for Origin {
    fn from(at: Place) -> Origin {
        Origin { at, source: None }
    }
}

/// Route from a host port to a host.
#[derive(Clone, Debug)]
pub struct Route {
    /// Host port whose route table contains the route.
    pub at: Place,
    /// Source host, or `None` for all hosts at the port.
    pub source: Option<HostIndex>,
    /// Destination host.
    pub destination: HostIndex,
    /// Stamp number of the decision that made the route.
    pub number: u64,
    /// Host port where the route ends.
    pub exit: Place,
    /// Layer of the route.
    pub layer: Layer,
    users: Vec<HostIndex>,
    links: Vec<Link>,
    account: Account,
}

/// Account to which a route is charged, see [`super::bounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// Made by a request from a host at this port, for a host at that switch.
    Requested(Place, SwitchIndex),
    /// Taken over from an earlier incarnation of the controller, at this port.
    Inherited(Place),
}

#[derive(Clone, Copy, Debug)]
struct Link {
    switch: SwitchIndex,
    port: PortNo,
    /// Position of the route in the list of that link.
    position: u32,
}

/// Entry for a route in the list for a link.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    route: RouteIndex,
    /// Index of the link within the route.
    link: u32,
}

impl Route {
    /// Returns the links that the route uses, nearest first.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        self.links.iter().map(|link| Step { switch: link.switch, egress: link.port })
    }

    /// Returns the number of links that the route uses.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns whether the route has no links, because it stays within one switch.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Returns the hops of the route, with `last` appended as the last hop.
    pub(crate) fn hops_to(&self, last: PortNo) -> Hops {
        let mut hops = Vec::with_capacity(self.links.len() + 1);
        hops.extend(self.links.iter().map(|link| link.port));
        hops.push(last);
        Hops(hops)
    }

    /// Returns the route to the host, as its switch installs it.
    pub fn to_install(&self) -> axon_wire::Route {
        axon_wire::Route { layer: self.layer, ..self.hops_to(self.exit.port).into() }
    }

    /// Returns the origin of the frames that the route is for.
    pub(crate) const fn origin(&self) -> Origin {
        Origin { at: self.at, source: self.source }
    }

    /// Returns the account to which the route is charged.
    pub(super) const fn account(&self) -> Account {
        self.account
    }

    /// Returns the hosts that requested the route.
    pub fn users(&self) -> &[HostIndex] {
        &self.users
    }
}

/// Registry of all routes.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    routes: Vec<Option<Route>>,
    free: Vec<RouteIndex>,
    count: usize,
    /// Routes by destination host, then by origin.
    towards: Vec<BTreeMap<Origin, RouteIndex>>,
    /// Routes by user, with their destination hosts.
    used_by: Vec<BTreeSet<(HostIndex, RouteIndex)>>,
    /// Routes by switch, then by egress port.
    over: Vec<Vec<Vec<Crossing>>>,
    /// Number of routes for each requesting port.
    requested: Counts,
    /// Number of routes for each requesting port and peer switch, kept for large accounts.
    by_port: Peers<Place, ROUTES_PER_PORT_MAX>,
    by_switch: Peers<SwitchIndex, ROUTES_PER_SWITCH_MAX>,
    /// Number of inherited routes at each port.
    inherited: Counts,
    /// Routes that were added or changed and that [`Flows::take_fresh`] has not returned yet.
    fresh: BTreeSet<RouteIndex>,
}

impl Flows {
    /// Returns the number of routes.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the upper end of the indices in use. Every route has a smaller index.
    pub(crate) fn end(&self) -> u32 {
        self.routes.len() as u32
    }

    /// Returns the number of routes made by requests from a switch. The routes may be at any
    /// switch.
    pub fn requested_by(&self, switch: SwitchIndex) -> usize {
        self.requested.of(switch)
    }

    /// Returns the number of routes made by requests from one port.
    pub(crate) fn requested_at(&self, place: Place) -> usize {
        self.requested.at(place.switch, place.port)
    }

    /// Returns upper bounds on the numbers of routes between a port, or its switch, and the hosts
    /// at one other switch. A bound is exact for an account that is more than half full.
    pub(crate) fn requested_with(&self, place: Place, other: SwitchIndex) -> (usize, usize) {
        let of_port = self.by_port.of(place, other, self.requested_at(place));
        let of_switch = self.by_switch.of(place.switch, other, self.requested_by(place.switch));
        (of_port, of_switch)
    }

    /// Returns the number of inherited routes at a switch.
    pub fn inherited_by(&self, switch: SwitchIndex) -> usize {
        self.inherited.of(switch)
    }

    /// Returns the route with this index, if there is one.
    pub fn get(&self, index: RouteIndex) -> Option<&Route> {
        self.routes.get(index.index())?.as_ref()
    }

    /// Returns the routes, in order of index.
    pub fn iter(&self) -> impl Iterator<Item = (RouteIndex, &Route)> {
        let routes = self.routes.iter().enumerate();
        routes.filter_map(|(at, route)| Some((RouteIndex(at as u32), route.as_ref()?)))
    }

    /// Returns the route to a host from a port, for all hosts there or for one of them.
    pub fn find(&self, from: impl Into<Origin>, destination: HostIndex) -> Option<RouteIndex> {
        self.towards.get(destination.index())?.get(&from.into()).copied()
    }

    /// Returns the routes to a host.
    pub fn towards(&self, destination: HostIndex) -> Vec<RouteIndex> {
        let routes = self.towards.get(destination.index());
        routes.map_or_else(Vec::new, |routes| routes.values().copied().collect())
    }

    /// Returns the routes that a host uses.
    pub(crate) fn used_by(&self, user: HostIndex) -> Vec<RouteIndex> {
        let routes = self.used_by.get(user.index());
        routes.map_or_else(Vec::new, |routes| routes.iter().map(|&(_, route)| route).collect())
    }

    /// Returns the routes over a directed link. A route that crosses the link twice is listed
    /// twice.
    pub fn over(&self, switch: SwitchIndex, port: PortNo) -> impl Iterator<Item = RouteIndex> {
        let link = self.over.get(switch.index()).and_then(|ports| ports.get(port.index()));
        link.into_iter().flatten().map(|crossing| crossing.route)
    }

    /// Adds a new route without users, and charges it to an account.
    pub(crate) fn insert(
        &mut self,
        from: impl Into<Origin>,
        destination: HostIndex,
        (path, layer): (&[Step], Layer),
        exit: Place,
        (number, account): (u64, Account),
    ) -> RouteIndex {
        let Origin { at, source } = from.into();
        let index = self.free.pop().unwrap_or_else(|| {
            self.routes.push(None);
            RouteIndex((self.routes.len() - 1) as u32)
        });
        let links = self.link(index, path);
        let users = Vec::with_capacity(1);
        let route = Route { at, source, destination, number, exit, layer, users, links, account };
        self.routes[index.index()] = Some(route);
        match account {
            Account::Requested(by, other) => self.request(by, other),
            Account::Inherited(by) => self.inherited.add(by.switch, by.port),
        }
        grown(&mut self.towards, destination.index()).insert(Origin { at, source }, index);
        self.fresh.insert(index);
        self.count += 1;
        index
    }

    /// Counts a new route that a host at port `by` has requested for a host at switch `other`.
    fn request(&mut self, by: Place, other: SwitchIndex) {
        self.requested.add(by.switch, by.port);
        let (of_port, of_switch) = (self.requested_at(by), self.requested_by(by.switch));
        let requested = self.routes.iter().flatten().filter_map(|route| match route.account {
            Account::Requested(by, other) => Some((by, other)),
            Account::Inherited(_) => None,
        });
        let count = |others: &mut dyn Iterator<Item = SwitchIndex>| {
            let mut counts = ByOther::new();
            others.for_each(|other| *counts.entry(other).or_default() += 1);
            counts
        };
        let others = || requested.clone().filter(|(at, _)| *at == by).map(|(_, other)| other);
        self.by_port.added((by, other), of_port, || count(&mut others()));
        let others =
            || requested.clone().filter(|(at, _)| at.switch == by.switch).map(|(_, other)| other);
        self.by_switch.added((by.switch, other), of_switch, || count(&mut others()));
    }

    /// Adds a host to the users of a route.
    pub(crate) fn add_user(&mut self, index: RouteIndex, user: HostIndex) {
        let Some(route) = self.routes.get_mut(index.index()).and_then(Option::as_mut) else {
            return;
        };
        if !route.users.contains(&user) {
            route.users.push(user);
            grown(&mut self.used_by, user.index()).insert((route.destination, index));
        }
    }

    /// Removes a host from the users of a route. Returns whether it was the last one.
    pub(crate) fn drop_user(&mut self, index: RouteIndex, user: HostIndex) -> bool {
        let Some(route) = self.routes.get_mut(index.index()).and_then(Option::as_mut) else {
            return false;
        };
        route.users.retain(|&other| other != user);
        if let Some(routes) = self.used_by.get_mut(user.index()) {
            routes.remove(&(route.destination, index));
        }
        route.users.is_empty()
    }

    /// Changes the path of a route.
    pub(crate) fn change(
        &mut self,
        index: RouteIndex,
        (path, layer): (&[Step], Layer),
        exit: Place,
        number: u64,
    ) {
        self.unlink(index);
        let links = self.link(index, path);
        if let Some(route) = self.routes.get_mut(index.index()).and_then(Option::as_mut) {
            route.links = links;
            (route.exit, route.layer) = (exit, layer);
            route.number = number;
        }
        self.fresh.insert(index);
    }

    /// Takes one of the routes that were added or changed, lowest index first.
    pub(super) fn take_fresh(&mut self) -> Option<RouteIndex> {
        self.fresh.pop_first()
    }

    /// Clears the list of added or changed routes.
    pub(super) fn clear_fresh(&mut self) {
        self.fresh.clear();
    }

    /// Returns whether [`Flows::take_fresh`] has a route to return.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Removes a route, and with it all its users.
    pub(crate) fn remove(&mut self, index: RouteIndex) -> Option<Route> {
        self.unlink(index);
        let route = self.routes.get_mut(index.index())?.take()?;
        if let Some(routes) = self.towards.get_mut(route.destination.index()) {
            routes.remove(&route.origin());
        }
        for user in &route.users {
            if let Some(routes) = self.used_by.get_mut(user.index()) {
                routes.remove(&(route.destination, index));
            }
        }
        self.free.push(index);
        self.fresh.remove(&index);
        self.count -= 1;
        match route.account {
            Account::Requested(by, other) => {
                self.requested.remove(by.switch, by.port);
                self.by_port.removed((by, other), self.requested_at(by));
                self.by_switch.removed((by.switch, other), self.requested_by(by.switch));
            }
            Account::Inherited(by) => self.inherited.remove(by.switch, by.port),
        }
        Some(route)
    }

    /// Adds a route to the lists for its links.
    fn link(&mut self, index: RouteIndex, path: &[Step]) -> Vec<Link> {
        let enter = |(at, step): (usize, &Step)| {
            let ports = grown(&mut self.over, step.switch.index());
            let crossings = grown(ports, step.egress.index());
            crossings.push(Crossing { route: index, link: at as u32 });
            let position = (crossings.len() - 1) as u32;
            Link { switch: step.switch, port: step.egress, position }
        };
        path.iter().enumerate().map(enter).collect()
    }

    /// Removes a route from the lists for its links. The last entry of each list fills the gap, and
    /// the position recorded in that entry's route is updated.
    fn unlink(&mut self, index: RouteIndex) {
        let Some(Some(route)) = self.routes.get_mut(index.index()) else {
            return;
        };
        let mut links = core::mem::take(&mut route.links);
        for at in 0..links.len() {
            let Link { switch, port, position } = links[at];
            let crossings = &mut self.over[switch.index()][port.index()];
            crossings.swap_remove(position as usize);
            let Some(&moved) = crossings.get(position as usize) else {
                continue;
            };
            if moved.route == index {
                links[moved.link as usize].position = position;
            } else if let Some(Some(other)) = self.routes.get_mut(moved.route.index()) {
                other.links[moved.link as usize].position = position;
            }
        }
    }
}

/// Returns the entry at index `at`, and creates it if there is none.
fn grown<T: Default>(list: &mut Vec<T>, at: usize) -> &mut T {
    if list.len() <= at {
        list.resize_with(at + 1, T::default);
    }
    &mut list[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(switch: u32, port: u16) -> Place {
        Place { switch: SwitchIndex(switch), port: PortNo(port) }
    }

    const EXIT: Place = Place { switch: SwitchIndex(2), port: PortNo(5) };
    const OWN: Account = Account::Inherited(Place { switch: SwitchIndex(0), port: PortNo(9) });

    fn step(switch: u32, port: u16) -> Step {
        Step { switch: SwitchIndex(switch), egress: PortNo(port) }
    }

    fn over(flows: &Flows, switch: u32, port: u16) -> Vec<RouteIndex> {
        let mut routes: Vec<_> = flows.over(SwitchIndex(switch), PortNo(port)).collect();
        routes.sort();
        routes
    }

    #[test]
    fn links_know_their_routes_through_every_change() {
        let mut flows = Flows::default();
        let path = [step(0, 1), step(1, 1)];
        let a = flows.insert(at(0, 9), HostIndex(1), (&path, Layer::ZERO), EXIT, (1, OWN));
        let b = flows.insert(at(0, 8), HostIndex(1), (&path, Layer::ZERO), EXIT, (2, OWN));
        let c = flows.insert(at(1, 8), HostIndex(1), (&[step(1, 1)], Layer::ZERO), EXIT, (3, OWN));
        assert_eq!(over(&flows, 1, 1), [a, b, c]);
        let layer = Layer::new(3).unwrap();
        flows.change(a, (&[step(0, 2)], layer), at(2, 6), 4);
        assert_eq!((over(&flows, 0, 1), over(&flows, 1, 1)), ([b].into(), [b, c].into()));
        let expected = axon_wire::Route { layer, ..Hops::from([2, 6]).into() };
        assert_eq!(flows.get(a).unwrap().to_install(), expected);
        flows.remove(c);
        flows.remove(b);
        assert!(over(&flows, 1, 1).is_empty() && over(&flows, 0, 1).is_empty());
        assert_eq!((flows.len(), flows.find(at(0, 8), HostIndex(1))), (1, None));
        assert_eq!(flows.get(a).unwrap().steps().collect::<Vec<_>>(), [step(0, 2)]);
    }

    #[test]
    fn a_route_for_one_host_stands_beside_that_for_all_of_its_port() {
        let mut flows = Flows::default();
        let (here, to) = (at(0, 9), HostIndex(1));
        let of = |host| Origin { at: here, source: Some(HostIndex(host)) };
        let all = flows.insert(here, to, (&[], Layer::ZERO), EXIT, (1, OWN));
        let own = flows.insert(of(2), to, (&[step(0, 1)], Layer::ZERO), EXIT, (2, OWN));
        [all, own].into_iter().for_each(|route| flows.add_user(route, HostIndex(2)));
        assert_eq!((flows.find(here, to), flows.find(of(2), to)), (Some(all), Some(own)));
        assert_eq!(flows.find(of(3), to), None);
        assert_eq!((flows.towards(to).len(), flows.used_by(HostIndex(2)).len()), (2, 2));
        flows.remove(all);
        assert_eq!((flows.find(here, to), flows.find(of(2), to)), (None, Some(own)));
        assert_eq!(flows.used_by(HostIndex(2)), [own]);
    }

    #[test]
    fn a_route_goes_with_the_last_of_its_users() {
        let mut flows = Flows::default();
        let route = flows.insert(at(0, 9), HostIndex(1), (&[], Layer::ZERO), EXIT, (1, OWN));
        flows.add_user(route, HostIndex(2));
        flows.add_user(route, HostIndex(3));
        flows.add_user(route, HostIndex(3));
        assert!(!flows.drop_user(route, HostIndex(3)));
        assert!(flows.used_by(HostIndex(3)).is_empty());
        assert_eq!(flows.used_by(HostIndex(2)), [route]);
        assert!(flows.drop_user(route, HostIndex(2)));
    }
}
