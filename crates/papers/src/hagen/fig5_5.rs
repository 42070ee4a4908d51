//! Figure 5-5 of paper 002: a stream of low rate beside one of full rate.

use super::cna::{Blaster, CNA, Ground, RECEIVER, SHARED};
use crate::reproduce::{Axis, Context, Experiment, Outcome, Plot, Row, Series, Table};
use anyhow::Result;
use axon_wire::Span;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "hagen/fig5-5",
    title: "A stream of low rate beside one of full rate",
    source: "002 §5.5, figure 5-5",
    setup: "Blaster with 16 threads that together send 250 MB/s from CNA 1 to CNA 3, alone; beside it four threads \
            without a delay from CNA 2 to CNA 4; then CNA 4 reads more slowly, from 500 down to 100 MB/s. All \
            in one priority with PFC. 50 ms of each.",
    run,
};

/// What the slowed receiver takes, MB/s.
const SLOWED: [f64; 7] = [500.0, 450.0, 400.0, 350.0, 300.0, 200.0, 100.0];
/// The one that stands for the paper's, which is not given: that of figure 5-4.
const AS_VICTIM: f64 = 350.0;
/// As the text gives them, MB/s: alone, with TS 2, as victim.
const PAPER: [f64; 3] = [250.0, 200.0, 240.0];
const SETTLE: Span = Span::from_millis(20);
const MEASURED: Span = Span::from_millis(50);

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut ground = Ground::new(true, context.seed)?;
    let low = ground.blast((CNA[0], CNA[2]), Blaster::LOW, SHARED)?;
    context.step("alone")?;
    ground.world.run_for(SETTLE);
    let [alone] = ground.measure([&low], MEASURED);
    let unstopped = ground.flow_control(CNA[0], SHARED).1;
    let full = ground.blast((CNA[1], CNA[3]), Blaster::FULL, SHARED)?;
    let columns = ["CNA 4 reads, MB/s", "TS 1, MB/s", "TS 2, MB/s", "stops of CNA 1", "of CNA 2"];
    let mut table = Table::new("reads", &columns);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut stops_with = 0;
    for reads in [RECEIVER].into_iter().chain(SLOWED) {
        context.step(format!("CNA 4 reads {reads} MB/s"))?;
        ground.read_at(CNA[3], reads)?;
        ground.world.run_for(SETTLE);
        let heard =
            |ground: &Ground| [0, 1].map(|host: usize| ground.flow_control(CNA[host], SHARED).1);
        let before = heard(&ground);
        let [one, two] = ground.measure([&low, &full], MEASURED);
        let after = heard(&ground);
        let stops = [0, 1].map(|host: usize| after[host] - before[host]);
        if reads == RECEIVER {
            stops_with = stops[0];
        }
        let (one, two) = (one.received, two.received);
        table.push(vec![reads.into(), one.into(), two.into(), stops[0].into(), stops[1].into()]);
        first.push((reads, one));
        second.push((reads, two));
    }
    let at = |reads: f64| first.iter().find(|point| point.0 == reads).map_or(0.0, |point| point.1);
    let ours = [alone.received, at(RECEIVER), at(AS_VICTIM)];
    // What waits for the slow reader has to arrive as well.
    ground.read_at(CNA[3], RECEIVER)?;
    let lost = ground.lost(&low) + ground.lost(&full) + ground.dropped();
    ground.check()?;
    let rows = &mut outcome.rows;
    rows.push(Row::within("TS 1 alone", PAPER[0], ours[0], "MB/s", (PAPER[0], 2.0)));
    rows.push(Row::within("stops of CNA 1 alone", 0.0, unstopped as f64, "", (0.0, 0.0)));
    rows.push(Row::at_least("TS 1 with TS 2", PAPER[1], ours[1], "MB/s", PAPER[1]));
    rows.push(Row::within("TS 1 as victim", PAPER[2], ours[2], "MB/s", (PAPER[2], 5.0)));
    rows.push(Row::within("frames lost", 0.0, lost as f64, "", (0.0, 0.0)));
    outcome.remark("stops of CNA 1 with TS 2", "some", stops_with, "in 50 ms");
    outcome.remark("TS 1, CNA 4 reads 100 MB/s", "", at(100.0), "MB/s");
    outcome.tables.push(table);
    let series = vec![Series::ours("TS 1", first), Series::ours("TS 2", second)];
    let axes = (Axis::linear("CNA 4 reads, MB/s"), Axis::linear("MB/s"));
    let title = "A stream of 250 MB/s beside one of full rate";
    outcome.plots.push(Plot::lines("reads", title, axes.0, axes.1, series));
    outcome.note(
        "The paper's stream fell from 250 to 200 MB/s and came back to 240 when the other was slowed down; ours keeps \
         its 250. Our switch counts memory by ingress and priority, and its queue takes turns: as long as the low \
         stream sends less than half of what leaves the link between the switches, little of it ever waits, so its sender \
         is not stopped at all (the table counts stops), and the other is. The paper saw its switch stop CNA 1 \
         too and puts the recovery down to stops that it ended early. When CNA 4 reads less than the low stream \
         sends, both get the same, as in figure 5-4.",
    );
    Ok(outcome)
}
