//! Catalogue of the checked models. Small models run with the tests, and large ones with `make
//! check-models`.

use crate::budget::Budget;
use crate::discovery::DiscoveryModel;
use crate::fabric::{FabricModel, Fault, Start};
use crate::run::{Outcome, find, run};
use crate::stream::StreamModel;

/// Size of the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// All models of this size together take seconds.
    Small,
    /// All models of this size together take minutes.
    Large,
}

const NONE: Budget =
    Budget { asks: 0, ticks: 0, losses: 0, duplicates: 0, cuts: 0, restarts: 0, controllers: 0 };

/// Named model that runs on a given number of threads.
pub struct Entry {
    /// Name of the model.
    pub name: &'static str,
    /// Runs the model.
    pub run: Box<dyn Fn(usize) -> Outcome>,
}

fn entry(name: &'static str, check: impl Fn(&str, usize) -> Outcome + 'static) -> Entry {
    Entry { name, run: Box::new(move |threads| check(name, threads)) }
}

fn fabric(name: &'static str, switches: usize, start: Start, budget: Budget) -> Entry {
    entry(name, move |name, threads| run(name, FabricModel::new(switches, start, budget), threads))
}

fn stream(name: &'static str, budget: Budget) -> Entry {
    entry(name, move |name, threads| {
        run(name, StreamModel { budget, takes_any_segment: false }, threads)
    })
}

fn discovery(name: &'static str, nodes: usize, budget: Budget) -> Entry {
    entry(name, move |name, threads| {
        run(name, DiscoveryModel { nodes, budget, opens_earlier: false }, threads)
    })
}

/// Returns all models of a size.
pub fn models(size: Size) -> Vec<Entry> {
    match size {
        Size::Small => small(),
        Size::Large => large(),
    }
}

fn small() -> Vec<Entry> {
    let one = Budget { losses: 1, duplicates: 1, ..NONE };
    vec![
        stream("stream", Budget { asks: 2, ticks: 2, restarts: 1, ..one }),
        discovery("discovery, a loss", 2, Budget { ticks: 1, ..one }),
        discovery("discovery, a restart", 2, Budget { restarts: 1, ..NONE }),
        fabric("set-up, 2 switches", 2, Start::Known, Budget { asks: 1, ticks: 1, ..one }),
        fabric("set-up, a restart", 2, Start::Known, Budget { asks: 1, restarts: 1, ..NONE }),
        fabric("failover, 3 switches", 3, Start::Connected, Budget { cuts: 1, ..NONE }),
    ]
}

fn large() -> Vec<Entry> {
    let one = Budget { losses: 1, duplicates: 1, ..NONE };
    let ask = Budget { asks: 1, ..NONE };
    let cut = Budget { cuts: 1, ..NONE };
    let tick = Budget { ticks: 1, ..NONE };
    let restart = Budget { restarts: 1, ..NONE };
    let controller = Budget { controllers: 1, ..NONE };
    let loss = Budget { losses: 1, ..NONE };
    let duplicate = Budget { duplicates: 1, ..NONE };
    let (known, connected) = (Start::Known, Start::Connected);
    vec![
        stream("stream, 3 items", Budget { asks: 3, ticks: 3, restarts: 1, ..one }),
        discovery("discovery, a loss, later", 2, Budget { ticks: 2, ..one }),
        discovery("discovery, 3 nodes", 3, Budget { losses: 1, ..NONE }),
        discovery("discovery, restart and loss", 2, Budget { restarts: 1, losses: 1, ..NONE }),
        discovery("discovery, restart, later", 2, Budget { restarts: 1, ticks: 1, ..NONE }),
        discovery("discovery, a link flaps", 2, Budget { cuts: 1, losses: 1, ..NONE }),
        fabric("set-up, 1 switch", 1, known, Budget { asks: 2, ticks: 1, ..one }),
        fabric("set-up, 3 switches", 3, known, Budget { ticks: 1, ..one.plus(ask) }),
        fabric("set-up, 3 switches, a restart", 3, known, Budget { restarts: 1, ..one.plus(ask) }),
        fabric("set-up, both ask", 2, known, Budget { asks: 2, ..one }),
        fabric("set-up, restart and loss", 2, known, Budget { restarts: 1, ..one.plus(ask) }),
        fabric("set-up, controller restarts", 2, known, Budget { controllers: 1, ..one.plus(ask) }),
        fabric("set-up, both restart", 2, known, Budget { restarts: 1, controllers: 1, ..ask }),
        fabric("set-up, a link fails", 3, known, ask.plus(cut)),
        fabric("failover, a loss", 3, connected, cut.plus(loss)),
        fabric("failover, a duplicate", 3, connected, cut.plus(duplicate)),
        fabric("failover, later", 3, connected, cut.plus(tick)),
        fabric("failover, a loss, later", 3, connected, cut.plus(tick).plus(loss)),
        fabric("failover, two links", 3, connected, Budget { cuts: 2, ..NONE }),
        fabric("failover, a switch restarts", 3, connected, cut.plus(restart)),
        fabric("failover, restart and loss", 3, connected, cut.plus(restart).plus(loss)),
        fabric("failover, restart, duplicate", 3, connected, cut.plus(restart).plus(duplicate)),
        fabric("failover, restart, both", 3, connected, cut.plus(restart).plus(one)),
        fabric("failover, controller restarts", 3, connected, cut.plus(controller)),
        fabric("failover, controller and loss", 3, connected, cut.plus(controller).plus(loss)),
        fabric("routes, a switch restarts", 3, connected, Budget { restarts: 1, ..one }),
        fabric("routes, controller restarts", 3, connected, Budget { controllers: 1, ..one }),
    ]
}

/// Returns the models with planted faults. Each fault must be found.
pub fn planted() -> Vec<Entry> {
    let stream_budget = Budget { asks: 2, duplicates: 1, ..NONE };
    let discovery_budget = Budget { ticks: 1, restarts: 1, ..NONE };
    vec![
        entry("planted: stream that takes any segment", move |name, threads| {
            let model = StreamModel { budget: stream_budget, takes_any_segment: true };
            find(name, model, threads)
        }),
        entry("planted: discovery that opens earlier seals", move |name, threads| {
            let model = DiscoveryModel { nodes: 2, budget: discovery_budget, opens_earlier: true };
            find(name, model, threads)
        }),
        planted_fabric(
            "planted: edge that takes older decisions",
            (3, Start::Known, Fault::TakesOlder),
            Budget { asks: 1, cuts: 1, ..NONE },
        ),
        planted_fabric(
            "planted: switch that is silent about links",
            (3, Start::Connected, Fault::SilentLinks),
            Budget { cuts: 1, ..NONE },
        ),
        planted_fabric(
            "planted: switch that keeps lost links",
            (3, Start::Connected, Fault::KeepsNews),
            Budget { cuts: 1, controllers: 1, ..NONE },
        ),
        planted_fabric(
            "planted: node that opens what is for another",
            (2, Start::Known, Fault::OpensAll),
            Budget { asks: 2, restarts: 1, ..NONE },
        ),
    ]
}

fn planted_fabric(
    name: &'static str,
    (switches, start, fault): (usize, Start, Fault),
    budget: Budget,
) -> Entry {
    entry(name, move |name, threads| {
        find(name, FabricModel::new(switches, start, budget).with_fault(fault), threads)
    })
}
