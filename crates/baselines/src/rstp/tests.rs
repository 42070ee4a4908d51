//! Networks of bridges without data planes. They are tested for convergence to the tree,
//! convergence time, and absence of loops.

use super::*;
use alloc::collections::{BTreeMap, BTreeSet};
use axon_node::random::Random;
use axon_wire::{MacAddr, Rate};

/// Latency of a BPDU between bridges.
const LATENCY: Span = Span::from_micros(20);

/// A link between ports of two bridges.
#[derive(Clone, Copy, Debug)]
struct Cable {
    ends: [(usize, PortNo); 2],
    up: bool,
}

/// Bridges and cables. Every bridge has one additional port for a host.
struct Net {
    now: Time,
    bridges: Vec<Option<Rstp>>,
    cables: Vec<Cable>,
    /// BPDUs in flight, in order of arrival.
    flying: BTreeMap<(Time, u64), (usize, PortNo, Vec<u8>)>,
    sequence: u64,
    ports: Vec<usize>,
    /// Last time at which a port between bridges changed state.
    changed: Time,
}

impl Net {
    fn new(bridges: usize, pairs: &[(usize, usize)]) -> Net {
        let mut ports = alloc::vec![1; bridges];
        let mut cables = Vec::new();
        for &(a, b) in pairs {
            let ends = [a, b].map(|bridge| {
                ports[bridge] += 1;
                (bridge, PortNo(ports[bridge] as u16 - 1))
            });
            cables.push(Cable { ends, up: true });
        }
        let mut net = Net {
            now: Time::ZERO,
            bridges: (0..bridges).map(|_| None).collect(),
            cables,
            flying: BTreeMap::new(),
            sequence: 0,
            ports,
            changed: Time::ZERO,
        };
        (0..bridges).for_each(|bridge| net.power_on(bridge));
        net
    }

    fn power_on(&mut self, bridge: usize) {
        // Numbered in reverse, so that the root is not the first bridge.
        let mac = MacAddr([2, 0, 0, 0, 1, (200 - bridge) as u8]);
        self.bridges[bridge] = Some(Rstp::new(RstpConfig {
            id: BridgeId { priority: 0x8000, mac },
            path_costs: alloc::vec![path_cost(Rate::gbps(1)); self.ports[bridge]],
            times: Times::default(),
            tx_hold_count: 6,
        }));
        self.carrier(bridge, PortNo(0), true);
        for index in 0..self.cables.len() {
            let [a, b] = self.cables[index].ends;
            if (a.0 == bridge || b.0 == bridge) && self.bridges[a.0].is_some() {
                self.set_cable(index, self.bridges[b.0].is_some());
            }
        }
    }

    fn power_off(&mut self, bridge: usize) {
        self.bridges[bridge] = None;
        for index in 0..self.cables.len() {
            if self.cables[index].ends.iter().any(|end| end.0 == bridge) {
                self.set_cable(index, false);
            }
        }
    }

    fn set_cable(&mut self, index: usize, up: bool) {
        self.cables[index].up = up;
        for (bridge, port) in self.cables[index].ends {
            self.carrier(bridge, port, up);
        }
    }

    fn carrier(&mut self, bridge: usize, port: PortNo, up: bool) {
        let mut requests = Vec::new();
        if let Some(rstp) = &mut self.bridges[bridge] {
            rstp.link(self.now, port, up, &mut requests);
        }
        self.apply(bridge, requests);
    }

    fn apply(&mut self, bridge: usize, requests: Vec<Request>) {
        for request in requests {
            match request {
                Request::State { port, .. } if port != PortNo(0) => self.changed = self.now,
                Request::State { .. } | Request::Flush { .. } => {}
                Request::Send { port, frame } => {
                    let from = (bridge, port);
                    let cable = self.cables.iter().find(|cable| cable.ends.contains(&from));
                    if let Some(cable) = cable.filter(|cable| cable.up) {
                        let to = cable.ends[usize::from(cable.ends[0] == from)];
                        self.sequence += 1;
                        let key = (self.now + LATENCY, self.sequence);
                        self.flying.insert(key, (to.0, to.1, frame));
                    }
                }
            }
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let arrival = self.flying.keys().next().map(|key| key.0);
            let wake = self.bridges.iter().flatten().filter_map(Rstp::deadline).min();
            let Some(next) = [arrival, wake].into_iter().flatten().min().filter(|&at| at <= end)
            else {
                self.now = end;
                return;
            };
            self.now = next;
            if arrival == Some(next) {
                let (_, (bridge, port, frame)) = self.flying.pop_first().unwrap();
                let mut requests = Vec::new();
                if let Some(rstp) = &mut self.bridges[bridge] {
                    rstp.receive(next, port, &frame, &mut requests).unwrap();
                }
                self.apply(bridge, requests);
            } else {
                for bridge in 0..self.bridges.len() {
                    let mut requests = Vec::new();
                    if let Some(rstp) = &mut self.bridges[bridge] {
                        rstp.timeout(next, &mut requests);
                    }
                    self.apply(bridge, requests);
                }
            }
            self.assert_no_loop();
        }
    }

    /// Returns the cables that forward at both ends.
    fn forwarding(&self) -> Vec<usize> {
        let forwards = |&(bridge, port): &(usize, PortNo)| {
            let rstp = self.bridges[bridge].as_ref();
            rstp.is_some_and(|rstp| rstp.state(port) == PortState::Forwarding)
        };
        let open = |cable: &Cable| cable.up && cable.ends.iter().all(forwards);
        (0..self.cables.len()).filter(|&index| open(&self.cables[index])).collect()
    }

    /// Asserts that the forwarding cables form no loop.
    fn assert_no_loop(&self) {
        let mut group: Vec<usize> = (0..self.bridges.len()).collect();
        for index in self.forwarding() {
            let [a, b] = self.cables[index].ends.map(|end| group[end.0]);
            assert_ne!(a, b, "a loop at {} through cable {index}", self.now);
            group.iter_mut().filter(|g| **g == a).for_each(|g| *g = b);
        }
    }

    /// Asserts that the powered bridges form one tree with the lowest identifier as root, along
    /// cheapest paths, and that every host port forwards.
    fn assert_tree(&self, when: &str) {
        let alive: Vec<usize> =
            (0..self.bridges.len()).filter(|&bridge| self.bridges[bridge].is_some()).collect();
        let links = self.forwarding().len();
        assert_eq!(links, alive.len() - 1, "{when}: not a tree at {}", self.now);
        let root = *alive.iter().max().unwrap();
        let root_id = self.bridges[root].as_ref().unwrap().id();
        let mut cost = BTreeMap::from([(root, 0)]);
        let mut edge = BTreeSet::from([root]);
        while !edge.is_empty() {
            let mut next = BTreeSet::new();
            for cable in self.cables.iter().filter(|cable| cable.up) {
                for [a, b] in [cable.ends, [cable.ends[1], cable.ends[0]]] {
                    if edge.contains(&a.0) && !cost.contains_key(&b.0) {
                        next.insert(b.0);
                    }
                }
            }
            let far = cost[edge.first().unwrap()] + 20_000;
            cost.extend(next.iter().map(|&bridge| (bridge, far)));
            edge = next;
        }
        for bridge in alive {
            let rstp = self.bridges[bridge].as_ref().unwrap();
            assert_eq!(rstp.root(), (root_id, cost[&bridge]), "{when}: bridge {bridge}");
            assert_eq!(rstp.state(PortNo(0)), PortState::Forwarding, "{when}");
            assert!(rstp.is_edge(PortNo(0)), "{when}");
        }
    }
}

fn ring(bridges: usize) -> Vec<(usize, usize)> {
    (0..bridges).map(|bridge| (bridge, (bridge + 1) % bridges)).collect()
}

fn torus(side: usize) -> Vec<(usize, usize)> {
    let at = |x: usize, y: usize| y % side * side + x % side;
    let cells = (0..side * side).map(|cell| (cell % side, cell / side));
    cells.flat_map(|(x, y)| [(at(x, y), at(x + 1, y)), (at(x, y), at(x, y + 1))]).collect()
}

/// Returns a connected graph: a random tree with as many additional links, including parallel ones.
fn random(bridges: usize, seed: u64) -> Vec<(usize, usize)> {
    let mut random = Random::new(seed);
    let mut below = |limit: usize| (random.next_u64() % limit as u64) as usize;
    let mut pairs: Vec<_> = (1..bridges).map(|bridge| (bridge, below(bridge))).collect();
    while pairs.len() < 2 * bridges {
        let (a, b) = (below(bridges), below(bridges));
        if a != b {
            pairs.push((a, b));
        }
    }
    pairs
}

#[test]
fn rings_and_tori_become_trees_by_agreement_and_not_by_timers() {
    for (bridges, pairs) in [(3, ring(3)), (12, ring(12)), (16, torus(4)), (36, torus(6))] {
        let mut net = Net::new(bridges, &pairs);
        // When all start at once, some ports use up their six BPDUs and wait a second for the next.
        // Without agreement, two hello times, four seconds, would have to pass.
        net.run(Span::from_secs(3));
        assert_eq!(net.forwarding().len(), bridges - 1, "{bridges} bridges");
        net.run(Span::from_secs(7));
        net.assert_tree("cold");
    }
}

#[test]
fn a_cut_and_a_mended_link_change_the_tree_at_once() {
    for pairs in [ring(8), torus(4)] {
        let bridges = pairs.iter().map(|pair| pair.0).max().unwrap() + 1;
        let mut net = Net::new(bridges, &pairs);
        net.run(Span::from_secs(10));
        for cable in net.forwarding() {
            for up in [false, true] {
                let at = net.now;
                net.set_cable(cable, up);
                net.run(Span::from_secs(1));
                net.assert_tree("a second after");
                // Two bridges that exchange stale information count up to the maximum age, and may
                // then wait a second for the next BPDU.
                assert!(net.changed.since(at) < Span::from_secs(1), "cable {cable} up {up}");
                net.run(Span::from_secs(20));
            }
        }
    }
}

#[test]
fn the_death_of_the_root_gives_the_tree_another() {
    let mut net = Net::new(16, &torus(4));
    net.run(Span::from_secs(10));
    net.power_off(15);
    net.run(Span::from_secs(30));
    net.assert_tree("without the root");
    net.power_on(15);
    net.run(Span::from_secs(10));
    net.assert_tree("with the root again");
}

#[test]
fn random_networks_with_random_faults_become_trees_and_never_loop() {
    for seed in 0..20 {
        let mut net = Net::new(14, &random(14, seed));
        net.run(Span::from_secs(8));
        net.assert_tree(&alloc::format!("seed {seed}"));
        let mut random = Random::new(seed ^ 0x5eed);
        for _ in 0..6 {
            let cable = (random.next_u64() % net.cables.len() as u64) as usize;
            net.set_cable(cable, !net.cables[cable].up);
            net.run(Span::from_millis(random.next_u64() % 3000));
        }
        for cable in 0..net.cables.len() {
            if !net.cables[cable].up {
                net.set_cable(cable, true);
            }
        }
        net.run(Span::from_secs(40));
        net.assert_tree(&alloc::format!("seed {seed}, after faults"));
    }
}

#[test]
fn a_quiet_network_costs_one_bpdu_per_link_and_hello_time() {
    let mut net = Net::new(12, &ring(12));
    net.run(Span::from_secs(30));
    let sent = |net: &Net| net.bridges.iter().flatten().map(Rstp::sent).sum::<u64>();
    let before = sent(&net);
    net.run(Span::from_secs(20));
    // Twelve links and twelve edge ports.
    assert_eq!(sent(&net) - before, (12 + 12) * 10);
}

#[test]
fn parallel_links_between_two_bridges_leave_one_in_use() {
    let mut net = Net::new(2, &[(0, 1), (0, 1), (0, 1)]);
    net.run(Span::from_secs(8));
    net.assert_tree("parallel");
    let first = net.forwarding();
    net.set_cable(first[0], false);
    net.run(Span::from_millis(100));
    net.assert_tree("the next one takes over");
}

#[test]
fn news_of_the_root_ends_after_twenty_hops() {
    // The root is the last bridge. Max Age is 20 s, and each bridge adds one second.
    for (bridges, reached) in [(21, 21), (23, 21)] {
        let line: Vec<_> = (1..bridges).map(|bridge| (bridge - 1, bridge)).collect();
        let mut net = Net::new(bridges, &line);
        net.run(Span::from_secs(60));
        let root = net.bridges[bridges - 1].as_ref().unwrap().id();
        let believe = net.bridges.iter().flatten().filter(|rstp| rstp.root().0 == root).count();
        assert_eq!(believe, reached, "{bridges} bridges in a line");
    }
}
