//! Figure 4.9 of the thesis (000 §4.5; 001 §5.3, figure 5): how many CAM entries a port needs.

use super::cam::distance::{Curve, Distances, Reading};
use super::cam::traces::{DATA_CENTER, EDGE, EDGE_LONG, Statistics, Trace};
use super::cam::{self, PAPER_ENTRIES};
use crate::reproduce::{Context, Experiment, Outcome, Row};
use anyhow::Result;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "axon/fig4.9",
    title: "CAM entries against hit rate",
    source: "000 §4.5, figure 4.9; 001 §5.3, figure 5",
    setup: "Re-use distances of destination addresses in two generated traces of 4,000,000 \
            packets. Flows go to destinations by Zipf's law (exponent 1), have a Pareto number of \
            packets (exponent 1, cut), and a fixed number of them runs at any moment. `edge`: \
            200,000 destinations, 2,000 flows at a time of 1 to 10,000 packets each; two named for \
            their shortest flow of 6 packets: the same edge, and a data center of 8,000 \
            destinations with 300 flows of up to 100,000 packets. LRU is a CAM that evicts the \
            least recently used entry; `packets` counts all packets in between, as the thesis \
            does, and needs more. `axon cam FILE` does the same with any pcap or pcapng file.",
    run,
};

/// Hits among the lookups that could hit, in per cent, that count as sufficient, by trace: the
/// one from 1 packet on has many destinations that come back once after very long, which no
/// CAM of any use would keep.
const LEAST_PERCENT: [f64; 3] = [95.0, 99.0, 99.0];

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut curves = Vec::new();
    for statistics in [EDGE, EDGE_LONG, DATA_CENTER] {
        context.step(format!("a trace like {}", statistics.name))?;
        curves.push((statistics.name, curve(statistics, context.seed)));
    }
    for ((name, curve), least) in curves.iter().zip(LEAST_PERCENT) {
        let ours = 100.0 * curve.reuse_hit_rate(Reading::Entries, PAPER_ENTRIES);
        let name = format!("{name}: repeated lookups that hit with {PAPER_ENTRIES} entries");
        outcome.rows.push(Row::at_least(name, "sufficient", ours, "%", least));
    }
    let need = |curve: &Curve| curve.entries_for(Reading::Entries, 990);
    let (edge, inside) = (need(&curves[1].1), need(&curves[2].1));
    let fewer = inside.zip(edge).is_some_and(|(inside, edge)| inside < edge);
    let name = "entries for 99 %, data center, flows of 6 packets or more";
    let bound = format!("< edge, flows of 6 packets or more ({})", edge.unwrap_or(0));
    outcome.rows.push(Row::holds(name, "fewer than edge", inside, "entries", bound, fewer));
    for (name, curve) in &curves {
        for (reading, what) in [(Reading::Entries, "LRU"), (Reading::Packets, "packets")] {
            let ours = 100.0 * curve.hit_rate(reading, PAPER_ENTRIES);
            let name = format!("{name}: all lookups that hit, {what}");
            outcome.remark(name, "", ours, "%");
        }
        let first = curve.addresses as f64 / curve.packets as f64 * 100.0;
        outcome.remark(format!("{name}: first packets, which hit nowhere"), "", first, "%");
    }
    let named: Vec<(&str, &Curve)> = curves.iter().map(|(name, curve)| (*name, curve)).collect();
    let (table, plot) = cam::drawn("CAM entries against hits, generated traces", &named);
    outcome.tables.push(table);
    outcome.plots.push(plot);
    outcome.note(
        "The traces of the paper (CESCA-I, NCAR-I, LBNL) are no longer to be had, and the paper \
         says \"about 4000\" from a figure without numbers. What the run shows is what statistics \
         suffice for it and, with flows from 1 packet on, what do not quite; how a network of \
         one's own compares is what the tool is for. The curve by packets in between reaches the \
         same share later, because a frequent address counts each time.",
    );
    Ok(outcome)
}

fn curve(statistics: Statistics, seed: u64) -> Curve {
    let mut distances = Distances::default();
    Trace::new(statistics, seed).for_each(|to| distances.packet(to));
    distances.curve()
}
