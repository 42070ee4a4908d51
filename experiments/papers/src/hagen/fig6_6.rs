//! Figures 6-6 and 6-7 (002 §6.2.2): two queues of small frames beside one of large ones.

use super::contest::{CELLS, GAP, LONGEST, fair_weights};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::Result;
use axon_plot::{Axis, Plot, Series};

/// Experiment `hagen/fig6-6`: fair weights of two queues of small frames: 68 bytes and others.
pub(crate) const FIG6_6: Experiment = Experiment {
    id: "hagen/fig6-6",
    file: file!(),
    title: "Fair weights of two queues of small frames: 68 bytes and others",
    source: "002 §6.2.2, figure 6-6",
    setup: "Three classes to one port: frames of 68 bytes, of 128 to 1024, and of 1522. The quanta \
            of both small ones are searched as in figure 6-3 until all three have the same \
            throughput within 0.2 %.",
    run: |context| pairs(context, &[(68, 128), (68, 256), (68, 512), (68, 1_024)]),
};

/// Experiment `hagen/fig6-7`: fair weights of two queues of small frames: 128 bytes and others.
pub(crate) const FIG6_7: Experiment = Experiment {
    id: "hagen/fig6-7",
    file: file!(),
    title: "Fair weights of two queues of small frames: 128 bytes and others",
    source: "002 §6.2.2, figure 6-7",
    setup: "Three classes to one port: frames of 128 bytes, of 256 to 1024, and of 1522. The \
            quanta of both small ones are searched as in figure 6-3 until all three have the same \
            throughput within 0.2 %.",
    run: |context| pairs(context, &[(128, 256), (128, 512), (128, 1_024)]),
};

/// Accepted difference of a weight from that of figure 6-3, per cent.
const SAME_PERCENT: f64 = 1.0;

fn pairs(context: &mut Context, pairs: &[(u32, u32)]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = ["charged", "bytes", "weight", "weight by itself (figure 6-3)"];
    let mut table = Table::new("weights", &columns);
    for (name, cost) in [("gap and preamble", GAP), ("cells of 40 bytes too", CELLS)] {
        let (mut worst, mut bars) = (0.0_f64, [Vec::new(), Vec::new()]);
        let mut groups = Vec::new();
        for &(small, other) in pairs {
            context.step(format!("{small} and {other} bytes, {name}"))?;
            let both = fair_weights(cost, &[&[small], &[other]], LONGEST, context.seed);
            for (size, weight) in [small, other].into_iter().zip(both) {
                let alone = fair_weights(cost, &[&[size]], LONGEST, context.seed)[0];
                worst = worst.max(100.0 * (weight / alone - 1.0).abs());
                let size = size.to_string();
                let x = groups.len() as f64;
                bars[0].push((x, weight));
                bars[1].push((x, alone));
                table.push(vec![name.into(), size.clone().into(), weight.into(), alone.into()]);
                groups.push(size);
            }
        }
        let row = format!("furthest from figure 6-3, {name}");
        outcome.rows.push(Row::at_most(row, "coincide", worst, "%", SAME_PERCENT));
        let [both, alone] = bars;
        let series = vec![Series::ours("two queues", both), Series::ours("one queue", alone)];
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let file = if cost == GAP { "gap" } else { "cells" };
        let title = format!("Fair weights, charged: {name}");
        outcome.plots.push(Plot::bars(file, &title, &groups, Axis::linear("weight", ""), series));
    }
    outcome.by_construction(
        "each class is charged by itself, so that its weight cannot depend on the others.",
    );
    outcome.tables.push(table);
    outcome.note(
        "Which pairs stand in which of the two figures is not in the text; here 6-6 has those with \
         68 bytes and 6-7 the others.",
    );
    Ok(outcome)
}
