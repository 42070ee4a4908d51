//! Buffer dependency graph, which has an edge from each lossless buffer to those that it waits for.

use alloc::vec::Vec;
use axon_node::Step;
use axon_node::SwitchIndex;
use axon_wire::{PortNo, Priority};

/// Number of flows kept for each dependency, for use in messages.
pub const FLOWS_KEPT: usize = 3;
/// Stands for no buffer or no flow.
const NONE: u32 = u32::MAX;

/// A lossless buffer, for one priority at the ingress port where a directed link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer {
    /// The switch where the link begins.
    pub from: SwitchIndex,
    /// The egress port where the link begins.
    pub egress: PortNo,
    /// The priority of the frames in it.
    pub priority: Priority,
}

/// An edge of the graph, from a buffer to one that it waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dependency {
    /// The number of the buffer that is waited for.
    pub on: u32,
    /// Number of routes that cause the dependency. Saturates.
    pub routes: u32,
    /// The first flows on these routes. Unused entries are [`u32::MAX`].
    pub flows: [u32; FLOWS_KEPT],
}

impl Dependency {
    /// Returns the flows that are kept.
    pub(crate) fn flows(&self) -> impl Iterator<Item = u32> {
        self.flows.into_iter().filter(|&flow| flow != NONE)
    }
}

/// The buffer dependency graph of a set of routes.
///
/// Its nodes are the lossless buffers: one for each priority at each ingress port that a link
/// between switches ends at. A frame in buffer `a` that continues over the link to buffer `b`
/// waits for room in `b`. So there is an edge from `a` to `b` if some route uses the two links one
/// after the other, in the same priority. The frame waits for nothing else, because a route has one
/// next hop. Buffers of host ports are left out: no switch waits for them. The last link of a route
/// is left out too: a host accepts every frame. Neither can be on a cycle.
///
/// Without a cycle, the buffers can be ordered so that each waits only for later ones. The last can
/// always drain, then the one before it, and so on. So no set of frames on these routes can
/// deadlock (W. J. Dally and C. L. Seitz, IEEE Transactions on Computers C-36(5), 1987, theorem 1).
///
/// A cycle proves less than its absence. The frames would wait for each other for ever if they
/// filled all its buffers at once, but rates and timing determine whether traffic can do that.
/// Where frames may choose among next hops, a cycle can be harmless (J. Duato, IEEE TPDS 4(12),
/// 1993 and 6(10), 1995). A frame with its route in its header has no choice. So a cycle means that
/// deadlock is not ruled out.
///
/// **Cost.** Adding a route takes time proportional to its length times the logarithm of a switch's
/// ports. Memory grows with the pairs of adjacent links in use, not with the routes. Nothing
/// recurses.
#[derive(Clone, Debug, Default)]
pub struct Dependencies {
    /// The number of a buffer, by switch, then by egress port and priority.
    numbers: Vec<Vec<u32>>,
    buffers: Vec<Buffer>,
    /// By the waiting buffer. Each list is sorted by the buffer that is waited for.
    waits: Vec<Vec<Dependency>>,
    routes: u64,
    count: u64,
}

impl Dependencies {
    /// Adds the route of a flow. `path` contains its links in order. `flow` identifies the flow in
    /// `Wait::flows` and is below [`u32::MAX`].
    pub fn add(&mut self, flow: u32, priority: Priority, path: impl IntoIterator<Item = Step>) {
        self.routes += 1;
        let mut before: Option<u32> = None;
        for step in path {
            let buffer = Buffer { from: step.switch, egress: step.egress, priority };
            let here = self.number(buffer);
            if let Some(before) = before {
                self.wait(before, here, flow);
            }
            before = Some(here);
        }
    }

    /// Adds a dependency that is not caused by a flow.
    pub(super) fn add_wait(&mut self, before: Buffer, on: Buffer) {
        let (before, on) = (self.number(before), self.number(on));
        self.wait(before, on, NONE);
    }

    fn number(&mut self, buffer: Buffer) -> u32 {
        let place = buffer.egress.index() * Priority::ALL.len() + buffer.priority.index();
        let at = buffer.from.index();
        if self.numbers.len() <= at {
            self.numbers.resize_with(at + 1, Vec::new);
        }
        let ports = &mut self.numbers[at];
        if ports.len() <= place {
            ports.resize(place + 1, NONE);
        }
        if ports[place] == NONE {
            ports[place] = self.buffers.len() as u32;
            self.buffers.push(buffer);
            self.waits.push(Vec::new());
        }
        ports[place]
    }

    fn wait(&mut self, before: u32, on: u32, flow: u32) {
        let waits = &mut self.waits[before as usize];
        let at = match waits.binary_search_by_key(&on, |wait| wait.on) {
            Ok(at) => at,
            Err(at) => {
                waits.insert(at, Dependency { on, routes: 0, flows: [NONE; FLOWS_KEPT] });
                self.count += 1;
                at
            }
        };
        let wait = &mut waits[at];
        if let Some(free) = wait.flows.get_mut(wait.routes as usize) {
            *free = flow;
        }
        wait.routes = wait.routes.saturating_add(1);
    }

    /// Returns the number of routes that were added.
    pub const fn routes(&self) -> u64 {
        self.routes
    }

    /// Returns the number of buffers that are filled by some route: one for each priority on each
    /// directed link in use.
    pub(crate) fn buffers(&self) -> usize {
        self.buffers.len()
    }

    /// Returns the number of directed links that are used by some route, in any priority.
    pub fn links(&self) -> usize {
        let links = self.numbers.iter().flat_map(|ports| ports.chunks(Priority::ALL.len()));
        links.filter(|link| link.iter().any(|&number| number != NONE)).count()
    }

    /// Returns the number of dependencies, which are pairs of buffers of which one waits for the
    /// other.
    pub const fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn buffer(&self, number: u32) -> Buffer {
        self.buffers[number as usize]
    }

    pub(super) fn waits(&self, number: u32) -> &[Dependency] {
        &self.waits[number as usize]
    }

    /// Performs Kahn's topological sort (Communications of the ACM 5(11), 1962). Buffers without
    /// predecessors are removed together with their dependencies until there are none.
    ///
    /// Returns the removed buffers in order, and the number of remaining predecessors of each
    /// buffer.
    pub(super) fn sorted(&self) -> (Vec<u32>, Vec<u32>) {
        let count = self.buffers.len();
        let mut waiting: Vec<u32> = alloc::vec![0; count];
        for wait in self.waits.iter().flatten() {
            waiting[wait.on as usize] += 1;
        }
        let all = 0..count as u32;
        let mut ready: Vec<u32> = all.filter(|&at| waiting[at as usize] == 0).collect();
        let mut next = 0;
        while let Some(&here) = ready.get(next) {
            next += 1;
            for wait in self.waits(here) {
                let there = wait.on as usize;
                waiting[there] -= 1;
                if waiting[there] == 0 {
                    ready.push(wait.on);
                }
            }
        }
        (ready, waiting)
    }

    /// Returns all buffers in topological order, each before those that it waits for, or `None` if
    /// there is a cycle.
    pub(super) fn order(&self) -> Option<Vec<u32>> {
        let (order, _) = self.sorted();
        (order.len() == self.buffers.len()).then_some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use proptest::prelude::*;

    fn step(switch: u32, egress: u16) -> Step {
        Step { switch: SwitchIndex(switch), egress: PortNo(egress) }
    }

    /// Returns the dependency graph of routes, which are given by their links. Link `n` leaves
    /// switch `n` by port 1.
    fn graph(routes: &[&[u32]]) -> Dependencies {
        let mut all = Dependencies::default();
        for (flow, route) in routes.iter().enumerate() {
            let path = route.iter().map(|&link| step(link, 1));
            all.add(flow as u32, Priority::ZERO, path);
        }
        all
    }

    fn links(buffers: &[Buffer]) -> Vec<u32> {
        buffers.iter().map(|buffer| buffer.from.0).collect()
    }

    #[test]
    fn routes_that_lead_one_way_are_free_and_the_longest_chain_joins_several() {
        let all = graph(&[&[0, 1, 2], &[2, 3], &[1, 4], &[9]]);
        assert_eq!((all.routes(), all.buffers(), all.count()), (4, 6, 4));
        assert_eq!(all.links(), 6);
        let Verdict::Free(chain) = all.verdict() else { panic!() };
        assert_eq!(links(&chain), [0, 1, 2, 3]);
        assert_eq!(Dependencies::default().verdict(), Verdict::Free(Vec::new()));
    }

    #[test]
    fn four_routes_of_two_links_round_a_ring_of_four_wait_in_a_cycle() {
        let all = graph(&[&[0, 1], &[1, 2], &[2, 3], &[3, 0], &[0, 1], &[7, 8]]);
        let Verdict::Cycle(cycle) = all.verdict() else { panic!() };
        let waits: Vec<_> = cycle.waits.iter().map(|wait| wait.buffer.from.0).collect();
        assert_eq!(waits, [0, 1, 2, 3]);
        assert_eq!((cycle.waits[0].routes, &cycle.waits[0].flows[..]), (2, &[0, 4][..]));
        assert_eq!(cycle.waits[3].flows, [3]);
        assert!(cycle.is_shortest);
        assert_eq!(cycle.entangled, 4);
    }

    #[test]
    fn the_shortest_of_several_cycles_is_named() {
        let all = graph(&[&[0, 1, 2, 3, 4, 0], &[3, 8, 2], &[5, 0], &[4, 6]]);
        let Verdict::Cycle(cycle) = all.verdict() else { panic!() };
        let waits: Vec<_> = cycle.waits.iter().map(|wait| wait.buffer.from.0).collect();
        assert_eq!(waits, [2, 3, 8]);
        assert_eq!(cycle.entangled, 6, "5 only leads into it, and 6 only out of it");
    }

    #[test]
    fn priorities_do_not_wait_for_each_other() {
        let mut all = Dependencies::default();
        let high = Priority::new(3).unwrap();
        all.add(0, Priority::ZERO, [step(0, 1), step(1, 1)]);
        all.add(1, high, [step(1, 1), step(0, 1)]);
        assert!(matches!(all.verdict(), Verdict::Free(_)));
        assert_eq!((all.buffers(), all.links()), (4, 2));
        all.add(2, Priority::ZERO, [step(1, 1), step(0, 1)]);
        assert!(matches!(all.verdict(), Verdict::Cycle(_)));
    }

    /// Returns whether a link is reachable from itself, by brute-force closure of the pairs.
    fn has_cycle(routes: &[Vec<u32>]) -> bool {
        let mut reach = [[false; 8]; 8];
        for pair in routes.iter().flat_map(|route| route.windows(2)) {
            reach[pair[0] as usize][pair[1] as usize] = true;
        }
        for via in 0..8 {
            let on = reach[via];
            for from in reach.iter_mut().filter(|from| from[via]) {
                from.iter_mut().zip(on).for_each(|(to, on)| *to |= on);
            }
        }
        (0..8).any(|at| reach[at][at])
    }

    proptest! {
        #[test]
        fn a_cycle_is_found_if_and_only_if_there_is_one_and_it_is_one(
            routes in prop::collection::vec(prop::collection::btree_set(0..8_u32, 0..4), 0..10),
            turned in any::<u16>(),
        ) {
            // Some routes are reversed, so that there is no common order.
            let routes: Vec<Vec<u32>> = routes
                .iter()
                .enumerate()
                .map(|(at, route)| {
                    let mut links: Vec<u32> = route.iter().copied().collect();
                    if turned >> at & 1 == 1 {
                        links.reverse();
                    }
                    links
                })
                .collect();
            let slices: Vec<&[u32]> = routes.iter().map(Vec::as_slice).collect();
            match graph(&slices).verdict() {
                Verdict::Free(chain) => {
                    prop_assert!(!has_cycle(&routes));
                    for pair in links(&chain).windows(2) {
                        prop_assert!(slices.iter().any(|r| r.windows(2).any(|w| w == pair)));
                    }
                }
                Verdict::Cycle(cycle) => {
                    prop_assert!(has_cycle(&routes) && cycle.is_shortest);
                    let next = cycle.waits.iter().cycle().skip(1);
                    for (wait, on) in cycle.waits.iter().zip(next) {
                        let pair = [wait.buffer.from.0, on.buffer.from.0];
                        prop_assert!(!wait.flows.is_empty());
                        for &flow in &wait.flows {
                            prop_assert!(routes[flow as usize].windows(2).any(|w| w == pair));
                        }
                    }
                }
            }
        }
    }
}
