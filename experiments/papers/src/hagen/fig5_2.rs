//! Figures 5-2 and 5-3 of paper 002: blaster by number of threads, and with PFC off and on.

use super::cna::{Blaster, CNA, Frames, Ground, RECEIVER, SHARED, Throughput};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::Result;
use axon_plot::{Axis, Plot, Series};
use axon_wire::Span;

/// Experiment `hagen/fig5-2..3`: a sender that is faster than its receiver, with PFC off and on.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hagen/fig5-2..3",
    file: file!(),
    title: "A sender that is faster than its receiver, with PFC off and on",
    source: "002 §5.2 and §5.3, figures 5-2 and 5-3",
    setup: "Blaster sends frames of 1,000 bytes from CNA 1 through two switches to CNA 3, which \
            reads 538 MB/s; everything is linked at 10 Gb/s. One to six threads with PFC off, then \
            four with PFC off and on: what is sent, what is received, and what is lost of the \
            frames of 200 ms.",
    run,
};

/// Rate of a single thread, and maximum rate of a host, in MB/s (figure 5-2).
const ONE_THREAD: f64 = 700.0;
const THREADS_MAX: u64 = 6;
/// The threads with which the paper's curve is level.
const LEVEL_FROM: u64 = 4;
/// Loss with PFC off in per cent of the sent bytes: 168.1 of 429 GB (§5.3).
const PAPER_LOST_PERCENT: f64 = 100.0 * 168.1 / 429.0;
const SETTLE: Span = Span::from_millis(10);
const MEASURED: Span = Span::from_millis(200);

/// Results of one run: throughput, all frames, and the number of lost frames.
struct Measured {
    throughput: Throughput,
    frames: Frames,
    lost: u64,
    dropped: u64,
}

/// Returns the offered rate of a number of threads: the figure's straight line from one thread to
/// where it is level.
fn offers(threads: u64) -> f64 {
    let full = Blaster::FULL.offers;
    let step = (full - ONE_THREAD) / (LEVEL_FROM - 1) as f64;
    (ONE_THREAD + step * (threads - 1) as f64).min(full)
}

fn measure(blaster: Blaster, pfc: bool, seed: u64) -> Result<Measured> {
    let mut ground = Ground::new(pfc, seed)?;
    let stream = ground.blast((CNA[0], CNA[2]), blaster, SHARED)?;
    ground.world.run_for(SETTLE);
    let [throughput] = ground.measure([&stream], MEASURED);
    let lost = ground.lost(&stream);
    ground.check()?;
    Ok(Measured { throughput, frames: ground.frames(&stream), lost, dropped: ground.dropped() })
}

/// Measures figure 5-2: sent and received rates by number of threads, with PFC off.
fn by_threads(context: &mut Context, outcome: &mut Outcome) -> Result<()> {
    let mut table = Table::new("threads", &["threads", "sent, MB/s", "received, MB/s"]);
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for threads in 1..=THREADS_MAX {
        context.step(format!("{threads} threads"))?;
        let run = measure(Blaster { threads, offers: offers(threads) }, false, context.seed)?;
        table.push(vec![
            threads.into(),
            run.throughput.sent.into(),
            run.throughput.received.into(),
        ]);
        sent.push((threads as f64, run.throughput.sent));
        received.push((threads as f64, run.throughput.received));
    }
    outcome.tables.push(table);
    let series = vec![Series::ours("sent", sent), Series::ours("received", received)];
    let axes = (Axis::linear("threads", ""), Axis::linear("throughput", "MB/s"));
    let title = "Blaster with PFC off";
    outcome.plots.push(Plot::lines("threads", title, axes.0, axes.1, series));
    Ok(())
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    by_threads(context, &mut outcome)?;
    context.step("PFC off")?;
    let off = measure(Blaster::FULL, false, context.seed)?;
    context.step("PFC on")?;
    let on = measure(Blaster::FULL, true, context.seed)?;
    let lost = |run: &Measured| 100.0 * run.lost as f64 / run.frames.sent as f64;
    let full = Blaster::FULL.offers;
    let rows = &mut outcome.rows;
    let row = Row::within("PFC off: sent", full, off.throughput.sent, "MB/s", (full, 1.0));
    rows.push(row.by_construction());
    let bound = (PAPER_LOST_PERCENT, 15.0);
    let row = Row::within("PFC off: lost", PAPER_LOST_PERCENT, lost(&off), "%", bound);
    rows.push(row.by_construction());
    let on_both = [("sent", on.throughput.sent), ("received", on.throughput.received)];
    rows.extend(on_both.map(|(what, ours)| {
        let name = format!("PFC on: {what}");
        Row::within(name, RECEIVER, ours, "MB/s", (RECEIVER, 1.0)).by_construction()
    }));
    let row = Row::within("PFC on: frames lost", 0.0, on.lost as f64, "", (0.0, 0.0));
    rows.push(row.effect());
    rows.push(Row::within("PFC on: frames dropped", 0.0, on.dropped as f64, "", (0.0, 0.0)));
    let gap = "260.9 of 429 GB";
    outcome.remark("PFC off: received", gap, off.throughput.received, "MB/s");
    outcome.remark("PFC on: frames sent", "", on.frames.sent, "");
    let bars = |of: fn(&Measured) -> f64| vec![(0.0, of(&off)), (1.0, of(&on))];
    let series = vec![
        Series::theirs("sent, paper", vec![(0.0, full), (1.0, RECEIVER)]),
        Series::ours("sent", bars(|run| run.throughput.sent)),
        Series::ours("received", bars(|run| run.throughput.received)),
    ];
    let title = "A receiver that takes 538 MB/s";
    outcome.plots.push(Plot::bars(
        "pfc",
        title,
        &["PFC off", "PFC on"],
        Axis::linear("throughput", "MB/s"),
        series,
    ));
    outcome.note(
        "What blaster's threads offer is taken from figure 5-2: no processor is simulated. Neither \
         the paper's 835 MB/s nor its 538 MB/s is a limit of the network, which would carry 1,225 \
         MB/s of such frames. So what is sent and lost with PFC off, and what is received with it \
         on, follow from what was set, and so does what is sent with it on once nothing is lost. \
         That nothing is lost does not.",
    );
    outcome.note(
        "With PFC off our receiver still takes its 538 MB/s, so that 35 % are lost; the paper's \
         took 61 % of 835, about 510 MB/s, less than with PFC on: a host spends time on frames \
         that it then drops, ours does not.",
    );
    Ok(outcome)
}
