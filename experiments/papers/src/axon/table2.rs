//! Table 2 of the paper (001 §5.5): distribution of flows over the links of a torus and of a random
//! graph, by router, and cost of a link failure.

use super::planned::{Failure, Planned, Spread};
use crate::reproduce::{Context, Experiment, Figure, Outcome, Row, Table};
use anyhow::{Context as _, Result};
use axon_controller::router::{FixedTies, Router, RouterKind};
use axon_fabric::model::Fabric;
use axon_plot::{Axis, Plot, Series};
use oorandom::Rand64;
use std::collections::BTreeSet;
use std::path::Path;

/// Experiment `axon/table2`: flows on links by router, and the cost of a link failure.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "axon/table2",
    file: file!(),
    title: "Flows on links by router, and the cost of a link failure",
    source: "001 §5.5, table 2",
    setup: "1,000 Axons with 10 hosts each, as a torus of 10 rings of 100 and as a random graph in \
            which each Axon makes two links (random-low, average degree 4); 2,000 links. Each host \
            asks for 5 others, drawn at random, no pair twice: 100,000 routes, two for each pair. \
            The requests go to the very controller, and its registry is read. A link's flows are \
            those of both directions; the length of a route counts its hops, that to the host \
            included. Routers that improve what they have placed do so until a round moves one \
            route in 64 or fewer. Then the fullest link fails and what the controller sends is \
            counted.",
    run,
};

const FABRICS: [(&str, &str); 2] = [
    ("torus", "torus: { rows: 10, cols: 100, hosts_per_switch: 10 }"),
    ("random-low", "random_links: { switches: 1000, average_degree: 4, hosts_per_switch: 10 }"),
];
/// Flows that each host starts.
const FLOWS_PER_HOST: usize = 5;

/// Column of the paper's table: route length, flows per link (mean, sd, max), and cost of a link
/// failure (mean, max).
type Column = [f64; 6];
const PAPER_SHORTEST: [Column; 2] =
    [[28.469, 1511.0, 1310.0, 4300.0, 938.0, 2670.0], [6.366, 324.0, 112.0, 1026.0, 145.0, 460.0]];
const PAPER_SPAIN: [Column; 2] =
    [[28.677, 1524.0, 1216.0, 2836.0, 948.0, 1765.0], [6.43, 330.0, 45.0, 494.0, 148.0, 222.0]];
const LINES: [(&str, &str); 6] = [
    ("route length", "hops"),
    ("flows per link, mean", ""),
    ("flows per link, sd", ""),
    ("flows per link, max", ""),
    ("per link failure, mean", "kb"),
    ("per link failure, max", "kb"),
];
/// The line of the fullest link's failure.
const FAILURE_MAX: usize = 5;
/// Accepted difference from the paper in per cent, either way: on both fabrics, and for the
/// commands really sent after a link failure.
const PERCENT: f64 = 10.0;
/// The lines that a choice among equal paths decides: sd and max of the flows per link.
const TIES: std::ops::RangeInclusive<usize> = 2..=3;
/// Bytes of one packet per flow that the paper's failure lines count, before its route of one byte
/// a hop.
const PAPER_PACKET_BYTES: f64 = 51.0;

/// The routers of a run, and the names in the result.
const ROUTERS: [&str; 8] = [
    "shortest path, ties fixed",
    "shortest path, ties hashed (the product's shortest_path)",
    "ECMP",
    "SPAIN",
    "Hedera, first fit",
    "Hedera, annealing",
    "congestion-aware, nothing measured",
    "balanced",
];
const SHORTEST: usize = 0;
const PRODUCT: usize = 1;
const SPAIN: usize = 3;
const BALANCED: usize = 7;

fn router(index: usize, seed: u64) -> Box<dyn Router> {
    match index {
        SHORTEST => Box::<FixedTies>::default(),
        1 => RouterKind::ShortestPath.build(seed, 1),
        2 => RouterKind::Ecmp.build(seed, 1),
        SPAIN => RouterKind::Spain.build(seed, 1),
        4 => RouterKind::HederaFirstFit.build(seed, 1),
        5 => RouterKind::HederaAnnealing.build(seed, 1),
        6 => RouterKind::CongestionAware.build(seed, 1),
        _ => RouterKind::Balanced.build(seed, 1),
    }
}

/// Result of one router on one fabric.
#[derive(Clone, Copy, Debug)]
struct Measured {
    spread: Spread,
    moved: u64,
    seconds: f64,
    failure: Failure,
}

impl Measured {
    /// Returns the results in the order of [`LINES`].
    fn column(&self) -> Column {
        let Spread { route_hops, mean, sd, max } = self.spread;
        // Kilobits of 1,024, one packet per flow.
        let kb = |flows: f64| flows * (PAPER_PACKET_BYTES + route_hops) * 8.0 / 1024.0;
        [route_hops, mean, sd, max, kb(mean), kb(max)]
    }
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut excesses = Vec::new();
    for (at, (name, topology)) in FABRICS.into_iter().enumerate() {
        let measured = measure(context, name, topology)?;
        let (shortest, spain) = (&measured[SHORTEST].column(), &measured[SPAIN].column());
        rows_within(&mut outcome, at, SHORTEST, shortest);
        rows_within(&mut outcome, at, SPAIN, spain);
        factors(&mut outcome, at, shortest, spain);
        let paper = longer(&PAPER_SHORTEST[at], &PAPER_SPAIN[at]);
        let ours = longer(shortest, spain);
        excesses.push(format!("{ours:.2} % on the {name} (paper: {paper:.2})"));
        better_than_spain(&mut outcome, name, spain, &measured[BALANCED].column());
        tell(&mut outcome, name, at, &measured);
    }
    outcome.notes.extend(NOTES.map(str::to_owned));
    outcome.note(format!(
        "SPAIN's routes are longer than shortest ones by {}: what is judged is the excess, within \
         {PERCENT} % of the paper's, since the ratio itself is near 1 whatever a router does.",
        excesses.join(" and "),
    ));
    Ok(outcome)
}

fn measure(context: &mut Context, name: &str, topology: &str) -> Result<Vec<Measured>> {
    let seed = context.seed;
    let text = format!(
        "name: table2\nseed: {seed}\ntopology: {{ {topology} }}\ndhcp: {{ subnet: 10.0.0.0/8 }}\n\
         failover: {{ backup: false }}\n"
    );
    let fabric = axon_fabric::parse(Path::new("table2.yaml"), &text).context(name.to_owned())?;
    let pairs = pairs(&fabric, seed, FLOWS_PER_HOST);
    let mut measured = Vec::new();
    for (index, label) in ROUTERS.iter().enumerate() {
        context.step(format!("{name}, {label}"))?;
        measured.push(measure_one(&fabric, &pairs, router(index, seed), seed)?);
    }
    Ok(measured)
}

fn measure_one(
    fabric: &Fabric,
    pairs: &[(usize, usize)],
    router: Box<dyn Router>,
    seed: u64,
) -> Result<Measured> {
    let mut planned = Planned::new(fabric, router, seed);
    let started = std::time::Instant::now();
    planned.place(pairs)?;
    let seconds = started.elapsed().as_secs_f64();
    let (spread, moved) = (planned.spread(), planned.moved());
    Ok(Measured { spread, moved, seconds, failure: planned.fail_fullest()? })
}

/// Returns pairs of each host with `each` others, no pair twice in either order.
fn pairs(fabric: &Fabric, seed: u64, each: usize) -> Vec<(usize, usize)> {
    let hosts = fabric.hosts.len() as u64;
    let mut dice = Rand64::new(u128::from(seed));
    let mut seen = BTreeSet::new();
    let mut pairs = Vec::with_capacity(fabric.hosts.len() * each);
    for host in 0..hosts {
        let others = std::iter::repeat_with(|| dice.rand_range(0..hosts));
        let fresh = others.filter(|&it| it != host && seen.insert((it.min(host), it.max(host))));
        pairs.extend(fresh.take(each).map(|it| (host as usize, it as usize)));
    }
    pairs
}

/// Adds each line of the paper's table, for a router on the fabric of this index.
fn rows_within(outcome: &mut Outcome, fabric: usize, router: usize, ours: &Column) {
    let paper = match router {
        SHORTEST => &PAPER_SHORTEST[fabric],
        _ => &PAPER_SPAIN[fabric],
    };
    for (at, (line, unit)) in LINES.into_iter().enumerate() {
        let name = format!("{}, {}: {line}", FABRICS[fabric].0, ROUTERS[router]);
        if line.starts_with("per link failure") {
            // Reckoned from the flows with constants fitted to the paper's table: they would
            // pass whenever the flows do, so they are shown and not judged.
            let name = format!("{name}, reckoned from the flows");
            outcome.remark(name, paper[at], ours[at], unit);
            continue;
        }
        let row = Row::within(name, paper[at], ours[at], unit, (paper[at], PERCENT));
        outcome.rows.push(with_ties(row, fabric, (router, at)));
    }
}

/// Marks the row as by construction where the ties were chosen for the paper's figure: those of
/// shortest paths on the torus.
fn with_ties(row: Row, fabric: usize, (router, line): (usize, usize)) -> Row {
    match fabric == 0 && router == SHORTEST && TIES.contains(&line) {
        true => row.by_construction(),
        false => row,
    }
}

/// Adds the effect of SPAIN's weights that the paper reports, with its factor.
fn factors(outcome: &mut Outcome, at: usize, shortest: &Column, spain: &Column) {
    let fabric = FABRICS[at].0;
    for line in TIES {
        let paper = PAPER_SHORTEST[at][line] / PAPER_SPAIN[at][line];
        let name = format!("{fabric}, {}: shortest path / SPAIN", LINES[line].0);
        let ours = shortest[line] / spain[line];
        let row = Row::within(name, paper, ours, "", (paper, PERCENT));
        outcome.rows.push(with_ties(row, at, (SHORTEST, line)));
        let name = format!("{fabric}, {}: SPAIN below shortest path", LINES[line].0);
        let row = Row::holds(name, paper, ours, "x", "> 1", ours > 1.0).effect();
        outcome.rows.push(with_ties(row, at, (SHORTEST, line)));
    }
    let paper = longer(&PAPER_SHORTEST[at], &PAPER_SPAIN[at]);
    let name = format!("{fabric}, route length: SPAIN over shortest path, excess");
    let ours = longer(shortest, spain);
    outcome.rows.push(Row::within(name, paper, ours, "%", (paper, PERCENT)));
}

/// Returns the excess length of SPAIN's routes over shortest ones, in per cent.
fn longer(shortest: &Column, spain: &Column) -> f64 {
    100.0 * (spain[0] / shortest[0] - 1.0)
}

fn better_than_spain(outcome: &mut Outcome, fabric: &str, spain: &Column, ours: &Column) {
    for (line, bound, most) in [
        (0, "at most 1 % above SPAIN's", spain[0] * 1.01),
        (2, "below SPAIN's", spain[2]),
        (3, "below SPAIN's", spain[3]),
    ] {
        let (what, unit) = LINES[line];
        let name = format!("{fabric}, balanced: {what}");
        let bound = format!("{bound}: {most:.1}");
        outcome.rows.push(Row::holds(name, "", ours[line], unit, bound, ours[line] < most));
    }
}

/// Reports the commands counted when the fullest link has really failed.
fn really(outcome: &mut Outcome, fabric: &str, at: usize, measured: &[Measured]) {
    let kb = |index: usize| measured[index].failure.bytes as f64 * 8.0 / 1024.0;
    for (index, paper) in [(SHORTEST, &PAPER_SHORTEST[at]), (SPAIN, &PAPER_SPAIN[at])] {
        let name = format!("{fabric}, {}: sent when the fullest link fails", ROUTERS[index]);
        let paper = paper[FAILURE_MAX];
        outcome.rows.push(Row::within(name, paper, kb(index), "kb", (paper, PERCENT)));
    }
    let name = format!("{fabric}, balanced: sent when the fullest link fails");
    let bound = format!("below SPAIN's: {:.1}", kb(SPAIN));
    let ours = kb(BALANCED);
    outcome.rows.push(Row::holds(name, "", ours, "kb", bound, ours < kb(SPAIN)));
    let [_, mean, sd, max, ..] = measured[PRODUCT].column();
    let label = ROUTERS[PRODUCT];
    for (line, ours) in [(1, mean), (2, sd), (3, max)] {
        let name = format!("{fabric}, {label}: {}", LINES[line].0);
        outcome.remark(name, PAPER_SHORTEST[at][line], ours, "");
    }
}

/// Reports the table and the plot of all routers.
fn tell(outcome: &mut Outcome, fabric: &str, at: usize, measured: &[Measured]) {
    let columns = [
        "router",
        "route hops",
        "flows/link mean",
        "flows/link sd",
        "flows/link max",
        "kb/failure mean",
        "kb/failure max",
        "routes moved in rounds",
        "seconds",
        "failure of the fullest: routes",
        "packets",
        "bytes",
    ];
    let mut table = Table::new(fabric, &columns);
    for (name, column) in [("paper: SP", PAPER_SHORTEST[at]), ("paper: SPAIN", PAPER_SPAIN[at])] {
        let mut row: Vec<Figure> = vec![name.into()];
        row.extend(column.map(Figure::from));
        row.resize(columns.len(), Figure::None);
        table.push(row);
    }
    for (name, one) in ROUTERS.into_iter().zip(measured) {
        let mut row: Vec<Figure> = vec![name.into()];
        row.extend(one.column().map(Figure::from));
        row.extend([one.moved.into(), one.seconds.into()]);
        let Failure { routes, packets, bytes } = one.failure;
        row.extend([routes, packets, bytes].map(Figure::from));
        table.push(row);
    }
    really(outcome, fabric, at, measured);
    outcome.tables.push(table);
    let bar = |line: usize, paper: [f64; 2]| {
        let ours = measured.iter().enumerate().map(|(x, one)| (x as f64, one.column()[line]));
        let theirs = vec![(SHORTEST as f64, paper[0]), (SPAIN as f64, paper[1])];
        let name = LINES[line].0;
        [Series::theirs(format!("{name}, paper"), theirs), Series::ours(name, ours.collect())]
    };
    let lines = [2, 3].map(|line| bar(line, [PAPER_SHORTEST[at][line], PAPER_SPAIN[at][line]]));
    let title = format!("Flows on the links of the {fabric}, by router");
    let series = lines.into_iter().flatten().collect();
    outcome.plots.push(Plot::bars(fabric, &title, &ROUTERS, Axis::linear("flows", ""), series));
}

const NOTES: [&str; 5] = [
    "The failure lines of the paper are in Mb. One packet for each flow over the failed link, as \
     its text says, makes all eight figures come out to the last digit in kilobits of 1,024, with \
     packets of 51 bytes and one byte more for each hop of the mean route: (51 + 28.469) x 8 x \
     1,511 / 1,024 = 938. So the unit is taken to be kb, and ours are the same sum with our flows \
     and our lengths. What our controller really sends is beside it: routes are sealed (41 bytes a \
     packet), but up to 16 that go to one switch share a packet. So ours is not the paper's one \
     packet per flow: it comes out below, most on random-low, which has fewer flows than the paper \
     as well. The mean over all links that could fail is not measured.",
    "The paper's means are 10 % (torus) and 21 % (random) above what 100,000 routes of its own \
     mean length, less the hop to the host, put on 2,000 links: 1511 x 2000 / 27.469 = 110,010. So \
     its torus carries some 110,000 routes, and why is not said; ours carries the 100,000 that its \
     setup says, and all our figures of flows are lower by about that part. On the torus that \
     leaves them within 10 % of the paper's. On random-low it does not: mean, sd and max of both \
     routers are 12 to 20 % below, and those rows are missed. Drawing more routes than the setup \
     says would mend them, and was not done.",
    "By construction: sd and max of the shortest paths on the torus follow from a tie-break that \
     was chosen because it comes near them, as the next paragraph says. With the product's own \
     the maximum is 39 % below the paper's, in the remarks.",
    "The paper's shortest paths put 4,300 flows on one link where the mean of a long ring's links \
     is 2,750: ties between equal paths fall the same way everywhere. Which way is not said. Of \
     the usual ones, a breadth-first tree from each source in which the last of equal predecessors \
     stays comes near, and that is what the row with ties fixed has: a router made for this row, \
     which a fabric file cannot choose. Our own shortest-path router draws ties by the flow's \
     hash, which spreads flows as well as SPAIN on the torus without knowing of any flow.",
    "On the torus the standard deviation cannot fall much further: the links of the 10 long rings \
     carry ten times what those of the 100 short ones carry, whatever the router, and that alone \
     gives 1,120 or so. The router that balances spreads evenly within each kind.",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn small(topology: &str) -> Fabric {
        let dhcp = "dhcp: { subnet: 10.0.0.0/8 }";
        let text = format!("name: t\ntopology: {{ {topology} }}\n{dhcp}\n");
        axon_fabric::parse(Path::new("t.yaml"), &text).expect("a good fabric")
    }

    #[test]
    fn the_papers_failure_figures_are_kilobits_of_one_packet_per_flow() {
        for column in PAPER_SHORTEST.into_iter().chain(PAPER_SPAIN) {
            for (flows, kb) in [(column[1], column[4]), (column[3], column[5])] {
                let sum = flows * (PAPER_PACKET_BYTES + column[0]) * 8.0 / 1024.0;
                assert!((sum - kb).abs() < 1.0, "{sum} {kb}");
            }
        }
    }

    #[test]
    fn routes_that_are_twice_as_much_longer_as_the_papers_are_missed() {
        let row = |excess: f64| {
            let mut spain = PAPER_SPAIN[0];
            spain[0] = PAPER_SHORTEST[0][0] * (1.0 + excess / 100.0);
            let mut outcome = Outcome::default();
            factors(&mut outcome, 0, &PAPER_SHORTEST[0], &spain);
            outcome.rows.pop().unwrap()
        };
        assert_eq!(
            [0.73, 1.74, 0.3, 0.0].map(|excess| row(excess).pass),
            [true, false, false, false]
        );
    }

    #[test]
    fn every_flow_is_counted_once_on_each_link_of_its_route() {
        let fabric = small("torus: { rows: 4, cols: 6, hosts_per_switch: 2 }");
        let pairs = pairs(&fabric, 3, 5);
        assert_eq!(pairs.len(), 240);
        for (index, name) in ROUTERS.iter().enumerate() {
            let one = measure_one(&fabric, &pairs, router(index, 3), 3).unwrap();
            let Spread { route_hops, mean, sd, max } = one.spread;
            let crossings = mean * fabric.links.len() as f64;
            let same = (crossings - 480.0 * (route_hops - 1.0)).abs() < 1e-6;
            assert!(same && sd > 0.0 && max > mean, "{name}: {:?}", one.spread);
            // Every flow of the failed link, and no other, got another path.
            assert_eq!(one.failure.routes as f64, max, "{name}");
            assert!(one.failure.packets > 0 && one.failure.bytes > one.failure.packets * 60);
        }
    }

    #[test]
    fn balanced_beats_spain_and_spain_beats_fixed_ties() {
        for topology in [
            "torus: { rows: 4, cols: 12, hosts_per_switch: 4 }",
            "random_links: { switches: 48, average_degree: 4, hosts_per_switch: 4 }",
        ] {
            let fabric = small(topology);
            let pairs = pairs(&fabric, 1, 5);
            let measure = |index| measure_one(&fabric, &pairs, router(index, 1), 1).unwrap().spread;
            let (fixed, spain, balanced) = (measure(SHORTEST), measure(SPAIN), measure(BALANCED));
            assert!(
                spain.sd < fixed.sd && spain.max < fixed.max,
                "{topology}: {spain:?} {fixed:?}"
            );
            // On so small a torus balanced's shorter paths leave little to spread: there the
            // fullest link and the length are what it must win.
            let spread = match topology.starts_with("torus") {
                true => balanced.route_hops < spain.route_hops,
                false => balanced.sd < spain.sd,
            };
            assert!(spread, "{topology}: {balanced:?} {spain:?}");
            assert!(balanced.max <= spain.max, "{topology}: {balanced:?} {spain:?}");
        }
    }
}
