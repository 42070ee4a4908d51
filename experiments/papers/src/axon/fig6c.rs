//! Figure 6(c) of the paper (001 §5.4): Axon's control overhead and PortLand's.

use super::scale::shape::Shape;
use super::scale::{AT_ONCE, Asked, Run, Spread, beyond_the_link, pattern};
use crate::reproduce::{Context, Experiment, Figure, Outcome, Row, Table};
use anyhow::Result;
use axon_fabric::model::Network;
use axon_plot::{Axis, Plot, Series};
use axon_wire::Span;

/// Experiment `axon/fig6c`: control overhead of Axon and of PortLand.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "axon/fig6c",
    file: file!(),
    title: "Control overhead of Axon and of PortLand",
    source: "001 §5.4, figure 6(c)",
    setup: "Our PortLand (switches, fabric manager, ARP proxy; `docs/baselines.md`) in the same \
            simulator on the same tori and random graphs (random-low), with the same hosts asking \
            the same questions: 5 random others each, one right after another (10 ms) and one a \
            second. Warm: every host has announced itself before. Cold: no host has said anything, \
            so the manager broadcasts what it cannot resolve. Mb/s per link, the mean over the \
            links between switches as in all of figure 6, both directions together, stated for 10 \
            questions a second from each host, and 10 heartbeats a second.",
    run,
};

/// Hosts of each network.
const SIZES: [usize; 3] = [1_000, 2_000, 4_000];
/// Topologies of the comparison.
const SHAPES: [Shape; 2] = [Shape::Torus, Shape::RandomLow];
/// Questions of each host.
const ASKS: usize = 5;
/// Intervals between questions of a host: the paper's simulator has no time and lets a host send
/// all its questions at once.
const INTERVALS: [(&str, Span); 2] = [("10 ms", AT_ONCE), ("1 s", Span::from_secs(1))];
/// Accepted ratio to Axon for "slightly below".
const WARM: (f64, f64) = (0.8, 1.0);
/// Least ratio for the paper's "over an order of magnitude".
const COLD_LEAST: f64 = 10.0;

/// The three networks compared.
const KINDS: [(&str, Network, bool); 3] = [
    ("Axon", Network::Axon, false),
    ("PortLand (warm)", Network::PortLand, false),
    ("PortLand (cold)", Network::PortLand, true),
];

/// Cost of one network at one size: idle load, load of questions, and a remark.
type Cost = (Spread, Asked, Option<String>);

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = ["topology", "interval", "network", "hosts", "heartbeat", "ARP", "sum", "max"];
    let mut table = Table::new("overhead", &columns);
    let cases = SHAPES.into_iter().flat_map(|shape| INTERVALS.map(|interval| (shape, interval)));
    for (shape, (interval, spacing)) in cases {
        let mut lines = KINDS.map(|(name, ..)| Series::ours(name, Vec::new()));
        for hosts in SIZES {
            let mut sums = Vec::new();
            for (kind, line) in KINDS.into_iter().zip(&mut lines) {
                let (idle, asked, beyond) = cost(context, kind, (shape, spacing), hosts)?;
                let of = format!("{}, {}: ", kind.0, shape.name());
                outcome.notes.extend(beyond.map(|text| of + &text));
                let sum = asked.sum.mean;
                let names: [Figure; 4] =
                    [shape.name().into(), interval.into(), kind.0.into(), hosts.into()];
                let figures = [idle.mean, asked.load.mean, sum, asked.sum.max];
                table.push(names.into_iter().chain(figures.map(Figure::from)).collect());
                line.points.push((hosts as f64, sum));
                sums.push(asked.sum);
            }
            judge(&mut outcome, &format!("{}, {interval}, {hosts} hosts", shape.name()), &sums);
        }
        let (x, y) = (Axis::linear("hosts", ""), Axis::log("control traffic per link", "Mb/s"));
        let title =
            format!("Average control overhead per link, {}, {interval} apart", shape.name());
        let file = format!("{}-{interval}", shape.name()).replace(' ', "-");
        outcome.plots.push(Plot::lines(&file, &title, x, y, lines.to_vec()));
    }
    outcome.tables.push(table);
    outcome.note(
        "The order of magnitude does not show over the links between switches, to which the \
         paper's average belongs. A broadcast crosses each of them once, but reaches every host by \
         a link of its own: most of what the cold start costs is there, as the mean over all links \
         says. The factor grows with the network, since a resolved question costs its way only, \
         and falls with the time between the questions of a host: one second apart, hosts are \
         nearly all known before they are asked for. A host is looked for by broadcast once at \
         most. The paper shows networks of up to 50,000 hosts.",
    );
    outcome.note(
        "Warm, our PortLand is below Axon by more than slightly: its messages are not sealed (43 \
         bytes each), carry no route, and are two for each question where Axon has three.",
    );
    Ok(outcome)
}

fn cost(
    context: &mut Context,
    (name, network, cold): (&str, Network, bool),
    (shape, interval): (Shape, Span),
    hosts: usize,
) -> Result<Cost> {
    context.step(format!("{name}, {}, {hosts} hosts", shape.name()))?;
    let mut fabric = shape.fabric(hosts, context.seed)?;
    fabric.network = network;
    let mut run = Run::new(context, &fabric, context.seed, cold);
    run.boot(context)?;
    let idle = run.idle(context)?;
    let asked = run.ask(context, &pattern::random(hosts, ASKS, context.seed), interval)?;
    let beyond = beyond_the_link(&fabric, hosts, &asked);
    Ok((idle, asked, beyond))
}

fn judge(outcome: &mut Outcome, of: &str, sums: &[Spread]) {
    let [axon, warm, cold] = *sums else { return };
    let name = format!("PortLand (warm) over Axon, {of}");
    let ours = warm.mean / axon.mean;
    outcome.rows.push(Row::between(name, "slightly below 1", ours, "", WARM));
    let name = format!("PortLand (cold) over Axon, {of}");
    let ours = cold.mean / axon.mean;
    outcome.rows.push(Row::at_least(name, "over 10", ours, "", COLD_LEAST).effect());
    let name = format!("the same over all links, the hosts' included, {of}");
    outcome.remark(name, "", cold.mean_of_all / axon.mean_of_all, "");
}
