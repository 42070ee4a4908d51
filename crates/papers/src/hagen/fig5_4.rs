//! Figure 5-4 of paper 002: two streams of full rate over one link, then one receiver slows down.

use super::cna::{Blaster, CNA, Ground, OTHER, SHARED, Throughput};
use crate::reproduce::{Context, Experiment, Outcome, Plot, Row, Series, Table};
use anyhow::Result;
use axon_wire::Span;
use axon_wire::priority::Priority;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "hagen/fig5-4",
    title: "A stream beside another whose receiver becomes slow",
    source: "002 §5.4, figure 5-4",
    setup: "Blaster at full rate from CNA 1 to CNA 3, alone; beside it the same from CNA 2 to CNA 4 over the one \
            link between the switches; then CNA 4 reads no more than 350 MB/s. All in one priority with PFC, \
            each receiver takes 538 MB/s. 100 ms of each. Then the last again with the second stream in another \
            priority with PFC.",
    run,
};

/// What the slowed receiver takes, MB/s. The paper says that the network converged to its least
/// capable device, and that the victim had 350 MB/s; so that is what the device could do.
const SLOWED: f64 = 350.0;
const SETTLE: Span = Span::from_millis(20);
const MEASURED: Span = Span::from_millis(100);
const STEPS: [&str; 3] = ["TS 1 alone", "TS 1 with TS 2", "TS 1 as victim"];
/// As the text gives them, MB/s.
const PAPER: [f64; 3] = [550.0, 530.0, 350.0];

/// What came of the three steps.
struct Steps {
    first: [Throughput; 3],
    second: [Throughput; 3],
    /// Stops heard by CNA 1, and by the host that sends the second stream, in each step.
    stops: [(u64, u64); 3],
    lost: u64,
}

fn measure(second: Priority, seed: u64) -> Result<Steps> {
    let mut ground = Ground::new(true, seed)?;
    let one = ground.blast((CNA[0], CNA[2]), Blaster::FULL, SHARED)?;
    let mut steps = Steps {
        first: Default::default(),
        second: Default::default(),
        stops: Default::default(),
        lost: 0,
    };
    let heard = |ground: &Ground| {
        (ground.flow_control(CNA[0], SHARED).1, ground.flow_control(CNA[1], second).1)
    };
    ground.world.run_for(SETTLE);
    let before = heard(&ground);
    [steps.first[0]] = ground.measure([&one], MEASURED);
    steps.stops[0] = (heard(&ground).0 - before.0, heard(&ground).1 - before.1);
    let two = ground.blast((CNA[1], CNA[3]), Blaster::FULL, second)?;
    for step in 1..STEPS.len() {
        if step == 2 {
            ground.read_at(CNA[3], SLOWED)?;
        }
        ground.world.run_for(SETTLE);
        let before = heard(&ground);
        [steps.first[step], steps.second[step]] = ground.measure([&one, &two], MEASURED);
        steps.stops[step] = (heard(&ground).0 - before.0, heard(&ground).1 - before.1);
    }
    steps.lost = ground.lost(&one) + ground.lost(&two) + ground.dropped();
    ground.check()?;
    Ok(steps)
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    context.step("one priority")?;
    let shared = measure(SHARED, context.seed)?;
    context.step("two priorities")?;
    let apart = measure(OTHER, context.seed)?;
    let columns = ["step", "TS 1, MB/s", "TS 2, MB/s", "stops of CNA 1", "stops of CNA 2"];
    for (name, steps) in [("one-priority", &shared), ("two-priorities", &apart)] {
        let mut table = Table::new(name, &columns);
        for (at, step) in STEPS.into_iter().enumerate() {
            let (one, two) = (steps.first[at].received, steps.second[at].received);
            let (stops_one, stops_two) = steps.stops[at];
            table.push(vec![
                step.into(),
                one.into(),
                two.into(),
                stops_one.into(),
                stops_two.into(),
            ]);
        }
        outcome.tables.push(table);
    }
    let ours = shared.first.map(|throughput| throughput.received);
    let rows = &mut outcome.rows;
    for at in 0..2 {
        rows.push(Row::within(STEPS[at], PAPER[at], ours[at], "MB/s", (PAPER[at], 5.0)));
    }
    rows.push(Row::at_most(STEPS[2], PAPER[2], ours[2], "MB/s", 400.0));
    rows.push(Row::within("frames lost", 0.0, shared.lost as f64, "", (0.0, 0.0)));
    let name = "TS 1 as victim, TS 2 in another priority";
    let alone = apart.first[0].received;
    rows.push(Row::within(name, "", apart.first[2].received, "MB/s", (alone, 2.0)));
    outcome.remark("TS 2 beside the victim", "", shared.second[2].received, "MB/s");
    let stops = |at: usize| shared.stops[at].0;
    for (at, step) in STEPS.into_iter().enumerate() {
        outcome.remark(format!("{step}: stops of CNA 1"), "", stops(at), "in 100 ms");
    }
    let points = |of: [f64; 3]| of.into_iter().enumerate().map(|(at, y)| (at as f64, y)).collect();
    let series = vec![
        Series::theirs("paper", points(PAPER)),
        Series::ours("one priority", points(ours)),
        Series::ours("two priorities", points(apart.first.map(|t| t.received))),
    ];
    let title = "Throughput of CNA 1";
    outcome.plots.push(Plot::bars("victim", title, &STEPS, "MB/s", series));
    outcome.note(
        "A stop on the link between the switches holds both streams, and what then leaves it alternates between \
         them, so the innocent one gets what the slow receiver takes: the fate that a priority shares. In a \
         priority of its own it keeps its rate. The paper does not say how far CNA 4 was slowed down; 350 MB/s is what \
         it says the network converged to.",
    );
    Ok(outcome)
}
