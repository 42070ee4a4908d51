//! The controller waits until frames on old paths have left, where its router asks for that.

use crate::controller::{World, config, ip, ring_with};
use axon_controller::router::{Flow, Router, RouterKind, ShortestPaths, Step};
use axon_controller::topology::Graph;
use axon_wire::message::Target;
use axon_wire::{Layer, NodeId};

/// Shortest paths, and a new rule as soon as a link is lost: no earlier path follows it, and no
/// path is given out before the earlier ones are drained.
#[derive(Clone, Debug, Default)]
struct Strict {
    shortest: ShortestPaths,
    links: usize,
    rules: u64,
    drains: bool,
}

impl Router for Strict {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        path.clear();
        !self.drains && self.shortest.pick(graph, flow.from, flow.to, flow.hash, path)
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        &mut self.shortest
    }

    fn changed(&mut self, graph: &Graph) -> bool {
        let links = graph.switches().map(|(at, _)| graph.edges(at).len()).sum();
        let lost = std::mem::replace(&mut self.links, links) > links;
        self.rules += u64::from(lost);
        self.drains |= lost;
        lost
    }

    fn allows(&mut self, _graph: &Graph, _path: &[Step], _layer: Layer) -> bool {
        !self.drains
    }

    fn draining(&self) -> Option<u64> {
        self.drains.then_some(self.rules)
    }

    fn drained(&mut self) {
        self.drains = false;
    }
}

/// Host 1 has asked for host 3, and a link has failed that neither route needs, as for a ring of
/// four.
fn failed() -> World {
    let mut world = ring_with(Box::<Strict>::default());
    world.ask(1, 9, 1, Target::Ip(ip(2))).expect("an answer");
    world.wait();
    assert_eq!((world.tables.len(), world.awaited.len()), (2, 0));
    world.cut((3, 1));
    world
}

fn asks(world: &mut World) -> bool {
    world.ask(1, 9, 1, Target::Ip(ip(2))).is_some()
}

#[test]
fn a_flow_without_a_path_beside_the_old_ones_gets_one_when_these_are_drained() {
    let mut world = failed();
    assert!(world.tables.is_empty(), "what breaks the rule is removed");
    world.wait();
    assert_eq!((asks(&mut world), &world.awaited[..]), (false, &[1][..]));
    // Nothing is drained before switches have acknowledged this very request.
    world.controller.acknowledged(world.now, 7);
    world.wait();
    assert!(world.controller.is_draining(), "another number counts for nothing");
    world.controller.acknowledged(world.now, 1);
    let until = world.now + config().node.timers.drain_max();
    world.controller.timeout(world.now, &mut world.out);
    assert!(world.controller.is_draining() && !asks(&mut world), "frames may be in flight");
    // No further: switches that say nothing for so long are forgotten.
    world.now = until;
    world.controller.timeout(world.now, &mut world.out);
    world.carry_out();
    assert!(!world.controller.is_draining());
    assert!(asks(&mut world), "{:?}", world.controller.counters());
    world.check();
    world.wait();
    assert_eq!(world.awaited, [1], "once");
}

#[test]
fn a_further_failure_or_a_switch_that_starts_anew_begins_the_wait_anew() {
    for restarts in [false, true] {
        let mut world = failed();
        world.wait();
        world.controller.acknowledged(world.now, 1);
        match restarts {
            true => world.restart(3),
            false => world.cut((2, 1)),
        }
        let mut times = 0;
        while world.awaited.len() < 2 {
            let deadline = world.controller.deadline().expect("something to do");
            world.now = world.now.max(deadline);
            world.controller.timeout(world.now, &mut world.out);
            world.carry_out();
            times += 1;
            assert!(times < 1_000 && world.controller.is_draining(), "drained too early");
        }
        world.controller.acknowledged(world.now, 1);
        world.wait();
        assert!(world.controller.is_draining(), "the first request counts no more");
        world.controller.acknowledged(world.now, 2);
        world.wait();
        assert!(!world.controller.is_draining());
    }
}

#[test]
fn a_switch_without_links_has_none_and_others_have_some() {
    let mut world = failed();
    assert!((1..=4).all(|node| world.controller.graph().has_links(NodeId(node))));
    world.cut((2, 1));
    assert!(
        !world.controller.graph().has_links(NodeId(3))
            && world.controller.graph().has_links(NodeId(2))
    );
    assert!(!world.controller.graph().has_links(NodeId(77)), "nobody knows it");
}

#[test]
fn a_way_there_without_one_back_leaves_no_route_behind() {
    let mut world = World::with(RouterKind::UpDown);
    world.seen(5, 100, 1);
    world.link((3, 1), (2, 2));
    world.link((3, 4), (5, 2));
    world.seen(2, 100, 3);
    world.link((3, 0), (1, 2));
    world.ask(5, 100, 1, Target::Ip(ip(3))).expect("both ways");
    world.link((4, 1), (2, 3));
    world.link((1, 3), (4, 0));
    world.seen(4, 101, 0);
    world.seen(5, 100, 3);
    world.link((4, 4), (5, 3));
    world.link((5, 1), (2, 4));
    world.seen(2, 100, 3);
    world.ask(2, 100, 3, Target::Ip(ip(0))).expect("both ways");
    world.seen(3, 101, 0);
    world.wait();
    // The order of links that follows waits for the routes of the one before.
    world.cut((3, 4));
    for _ in 0..3 {
        assert_eq!(world.ask(5, 100, 1, Target::Ip(ip(0))), None);
        world.check();
    }
}
