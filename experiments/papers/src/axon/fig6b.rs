//! Figure 6(b) of the paper (001 §5.4): control overhead on five topologies.

use super::scale::shape::Shape;
use super::scale::{AT_ONCE, Run, pattern};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::Result;
use axon_plot::{Axis, Plot, Series};

/// Experiment `axon/fig6b`: control overhead on five topologies.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "axon/fig6b",
    file: file!(),
    title: "Control overhead on five topologies",
    source: "001 §5.4, figure 6(b)",
    setup: "Torus, fat tree, flattened butterfly, random-low (average degree 4) and random-high \
            (the butterfly's degree), each with as few Axons as hold the hosts; who asks for whom \
            is LBNL-like (`axon_fabric::traffic`'s pattern, as in `axon sim`), the mean of 5 \
            random placements of hosts, and random, 5 questions each. Mb/s per link, both \
            directions together, the mean over the links between switches as in all of figure 6, \
            at 10 questions a second from each host and 10 heartbeats a second. The largest fat \
            tree has 1,280 switches and 49,152 cables.",
    run,
};

/// Hosts of the networks.
const SIZES: [usize; 3] = [1_000, 4_000, 16_000];
/// Random placements of hosts that are averaged.
const PLACEMENTS: u64 = 5;
/// Questions of each host in the random pattern.
const ASKS: usize = 5;

/// Cost of one topology at one size, in Mb/s per link.
#[derive(Clone, Copy)]
struct Point {
    shape: Shape,
    hosts: usize,
    heartbeat: f64,
    lbnl: Lbnl,
    random: f64,
}

/// The LBNL-like pattern over all placements.
#[derive(Clone, Copy)]
struct Lbnl {
    mean: f64,
    /// Greatest difference of a placement from the mean.
    spread: f64,
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut points = Vec::new();
    for hosts in SIZES {
        let here = Shape::ALL.map(|shape| point(context, shape, hosts));
        let here = here.into_iter().collect::<Result<Vec<Point>>>()?;
        judge(&mut outcome, &here);
        points.extend(here);
    }
    outcome.tables.push(table(&points));
    outcome.plots.push(plot(&points));
    outcome.note(
        "The LBNL traces can no longer be had as the paper used them: the pattern is drawn from \
         the statistics that `axon_fabric::traffic::arp_questions` states, the same as a fabric \
         file's `arp` traffic. It asks for servers more than for others, and where those stand \
         moves with the placement.",
    );
    outcome.note(
        "That ARP exceeds heartbeats on the torus too, at every size, is explained by the links' \
         counters in the notes of axon/fig6a: a heartbeat crosses one link, a question is three \
         messages across the whole torus.",
    );
    Ok(outcome)
}

/// Measures all placements on one topology. The idle load does not depend on the questions, so the
/// first placement's serves for all.
fn point(context: &mut Context, shape: Shape, hosts: usize) -> Result<Point> {
    let fabric = shape.fabric(hosts, context.seed)?;
    let mut heartbeat = 0.0;
    let mut loads = Vec::new();
    let mut quiet = None;
    for placement in 0..=PLACEMENTS {
        context.step(format!("{}, {hosts} hosts, placement {placement}", shape.name()))?;
        let mut run = Run::new(context, &fabric, context.seed, false);
        run.boot(context)?;
        match quiet.take() {
            None => heartbeat = run.idle(context)?.mean,
            Some(before) => run.take_idle(before),
        }
        let whom = match placement {
            0 => pattern::random(hosts, ASKS, context.seed),
            _ => pattern::lbnl(hosts, context.seed, placement),
        };
        loads.push(run.ask(context, &whom, AT_ONCE)?.load.mean);
        quiet = Some(run.into_idle());
    }
    let (random, lbnl) = (loads[0], &loads[1..]);
    let mean = lbnl.iter().sum::<f64>() / lbnl.len() as f64;
    let spread = lbnl.iter().map(|load| (load - mean).abs()).fold(0.0, f64::max);
    Ok(Point { shape, hosts, heartbeat, lbnl: Lbnl { mean, spread }, random })
}

fn judge(outcome: &mut Outcome, points: &[Point]) {
    let [torus, others @ ..] = points else { return };
    let hosts = torus.hosts;
    type Of = fn(&Point) -> f64;
    let figures: [(&str, Of); 3] = [
        ("LBNL-like ARP", |point| point.lbnl.mean),
        ("random ARP", |point| point.random),
        ("heartbeat", |point| point.heartbeat),
    ];
    for (what, of) in figures {
        let next = others.iter().map(of).fold(0.0, f64::max);
        let name = format!("{what}, torus over the highest other, {hosts} hosts");
        let ours = of(torus) / next;
        outcome.rows.push(Row::holds(name, "highest", ours, "", "> 1", ours > 1.0).effect());
    }
    for point in points {
        let ours = point.lbnl.mean / point.heartbeat;
        let name = format!("LBNL-like ARP over heartbeat, {}, {hosts} hosts", point.shape.name());
        let (paper, bound, pass) = match point.shape {
            Shape::Torus => ("at most 1", "<= 1", ours <= 1.0),
            _ => ("more than 1", "> 1", ours > 1.0),
        };
        outcome.rows.push(Row::holds(name, paper, ours, "", bound, pass).effect());
    }
    if let Some(low) = others.iter().find(|point| point.shape == Shape::RandomLow) {
        let sum = |point: &Point| point.heartbeat + point.lbnl.mean;
        let name = format!("overhead, random-low over torus, {hosts} hosts");
        let ours = sum(low) / sum(torus);
        outcome.rows.push(Row::holds(name, "lower", ours, "", "< 1", ours < 1.0).effect());
    }
}

fn table(points: &[Point]) -> Table {
    let columns = ["topology", "hosts", "heartbeat", "LBNL-like ARP", "+- placement", "random ARP"];
    let mut table = Table::new("overhead", &columns);
    for point in points {
        table.push(vec![
            point.shape.name().into(),
            point.hosts.into(),
            point.heartbeat.into(),
            point.lbnl.mean.into(),
            point.lbnl.spread.into(),
            point.random.into(),
        ]);
    }
    table
}

fn plot(points: &[Point]) -> Plot {
    let line = |shape: Shape| {
        let of = points.iter().filter(|point| point.shape == shape);
        let at = |point: &Point| (point.hosts as f64, point.heartbeat + point.lbnl.mean);
        Series::ours(shape.name(), of.map(at).collect())
    };
    let (x, y) = (Axis::linear("hosts", ""), Axis::linear("control traffic per link", "Mb/s"));
    let title = "Average control overhead per link, LBNL-like pattern";
    Plot::lines("overhead", title, x, y, Shape::ALL.map(line).to_vec())
}
