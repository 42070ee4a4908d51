//! Figure 6(c) of the paper (001 §5.4): Axon's control overhead and PortLand's.

use super::scale::shape::Shape;
use super::scale::{Run, Spread, pattern};
use crate::reproduce::{Axis, Context, Experiment, Figure, Outcome, Plot, Row, Series, Table};
use anyhow::Result;
use axon_fabric::model::Network;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "axon/fig6c",
    title: "Control overhead of Axon and of PortLand",
    source: "001 §5.4, figure 6(c)",
    setup: "Our PortLand (switches, fabric manager, ARP proxy; `docs/baselines.md`) in the same simulator \
            on the same tori, with the same hosts asking the same questions: 5 random others each. Warm: \
            every host has announced itself before. Cold: no host has said anything, so the manager \
            broadcasts what it cannot resolve. Mb/s per link between switches, both directions together, \
            at 10 questions a second from each host and 10 heartbeats a second.",
    run,
};

/// Hosts of the tori.
const SIZES: [usize; 3] = [500, 1_000, 2_000];
/// Questions of each host.
const ASKS: usize = 5;
/// What the paper's "over an order of magnitude" is.
const COLD_LEAST: f64 = 10.0;

/// The three networks compared.
const KINDS: [(&str, Network, bool); 3] = [
    ("Axon", Network::Axon, false),
    ("PortLand (warm)", Network::PortLand, false),
    ("PortLand (cold)", Network::PortLand, true),
];

/// What one network costs at one size: quiet, and asked.
type Cost = (Spread, Spread);

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut table = Table::new("overhead", &["network", "hosts", "heartbeat", "ARP", "sum", "max"]);
    let mut lines = KINDS.map(|(name, ..)| Series::ours(name, Vec::new()));
    for hosts in SIZES {
        let mut sums = Vec::new();
        for (kind, line) in KINDS.into_iter().zip(&mut lines) {
            let (idle, arp) = cost(context, kind, hosts)?;
            let sum = idle.mean + arp.mean;
            let figures = [idle.mean, arp.mean, sum, idle.max + arp.max];
            let names = [Figure::from(kind.0), Figure::from(hosts)];
            table.push(names.into_iter().chain(figures.map(Figure::from)).collect());
            line.points.push((hosts as f64, sum));
            sums.push((sum, arp.mean));
        }
        judge(&mut outcome, hosts, &sums);
    }
    outcome.tables.push(table);
    let (x, y) = (Axis::linear("hosts"), Axis::log("Mb/s per link"));
    let title = "Average control overhead per link, torus";
    outcome.plots.push(Plot::lines("overhead", title, x, y, lines.to_vec()));
    outcome.note(
        "Cold means the first question for a host that has not spoken yet; whoever asks is known from \
         then on, so about a tenth of the questions here are broadcast.",
    );
    Ok(outcome)
}

fn cost(
    context: &mut Context,
    (name, network, cold): (&str, Network, bool),
    hosts: usize,
) -> Result<Cost> {
    context.step(format!("{name}, {hosts} hosts"))?;
    let mut fabric = Shape::Torus.fabric(hosts, context.seed)?;
    fabric.network = network;
    let mut run = Run::new(context, &fabric, context.seed, cold);
    run.boot(context)?;
    let idle = run.idle(context)?;
    let asked = run.ask(context, &pattern::random(hosts, ASKS, context.seed), context.seed)?;
    Ok((idle, asked.load))
}

fn judge(outcome: &mut Outcome, hosts: usize, sums: &[(f64, f64)]) {
    let [axon, warm, cold] = *sums else { return };
    let name = format!("PortLand (warm) over Axon, {hosts} hosts");
    let ours = warm.0 / axon.0;
    let pass = ours < 1.0;
    outcome.rows.push(Row::holds(name, "slightly below 1", ours, "", "< 1", pass));
    let name = format!("PortLand (cold) over Axon, {hosts} hosts");
    outcome.rows.push(Row::at_least(name, "over 10", cold.0 / axon.0, "", COLD_LEAST));
    let name = format!("the same, ARP alone, warm, {hosts} hosts");
    outcome.remark(name, "", warm.1 / axon.1, "");
}
