//! Figures 7-8 to 7-10 (002 §7.4): the inbound links with no targeting, random sampling and fair
//! bandwidth; and with ours.

use super::bins::Bins;
use super::watermarks::{
    BIN, FRAME_BYTES, RATE, at_ms, choices, marks, three_into_one, used, victims_and_aggressor,
};
use crate::reproduce::{Axis, Context, Experiment, Outcome, Plot, Row, Series};
use anyhow::Result;
use axon_plane::targeted::Choice;
use axon_wire::Bytes;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "hagen/fig7-8",
    title: "The inbound links with each way to choose who is to stop (figures 7-8 to 7-10)",
    source: "002 §7.4, figures 7-8, 7-9 and 7-10",
    setup: "As hagen/fig7-7 with both watermarks. Two victims send 2.5 Gb/s from 1 ms on; the \
            aggressor the same from 1 to 3 ms, and line rate from 4 ms on. Whom the target \
            watermark (33 frames) stops: nobody (7-8), a source drawn at random (7-9), those with \
            more than an even part of the queue (7-10), and those above their max-min share \
            (ours). Throughput in bins of 49.2 us.",
    run,
};

const UNTIL_MS: u64 = 8;
/// What a victim offers, Gb/s.
const OFFERED: f64 = 2.5;
/// XOFFs to a victim over those to the aggressor that are the same fate, and that are infrequent:
/// the paper gives no figure for either.
const SAME: (f64, f64) = (1.0, 20.0);
const INFREQUENT: f64 = 0.5;

fn run(context: &mut Context) -> Result<Outcome> {
    let until = at_ms(UNTIL_MS);
    let mut outcome = Outcome::default();
    for ((name, choice), (plot, figure)) in choices(context.seed).into_iter().zip([
        ("fig7-8", "figure 7-8"),
        ("every-frame", "appendix A to the letter"),
        ("fig7-9", "figure 7-9"),
        ("fig7-10", "figure 7-10"),
        ("ours", "ours"),
    ]) {
        context.step(name)?;
        let plan =
            three_into_one(Some(marks(true, choice)), victims_and_aggressor(until, FRAME_BYTES));
        let seen = plan.run(until, context.seed);
        let (calm, _) = used(&seen, (at_ms(1) + BIN, at_ms(3)), BIN);
        let (busy, sink) = used(&seen, (at_ms(4), until), BIN);
        let even = calm.iter().map(|used| (used.mean - OFFERED).abs()).fold(0.0, f64::max);
        let row = format!("{name}: off 2.5 Gb/s before 3 ms, worst");
        // Three sources that together offer less than the link carries are not slowed down.
        let row = Row::at_most(row, "even", even, "Gb/s", 0.01);
        outcome.rows.push(row.by_construction());
        let lost = seen.all_lost() as f64;
        outcome.rows.push(Row::within(format!("{name}: lost"), 0.0, lost, "frames", (0.0, 0.0)));
        let stops = [0, 1, 2].map(|source| seen.xoffs[0][source].len() as f64);
        outcome.rows.push(judge(name, choice, stops));
        outcome.remark(format!("{name}: outbound link"), "", 10.0 * sink.mean, "%");
        for (source, what) in ["victim 1", "victim 2", "aggressor"].into_iter().enumerate() {
            let stops = seen.xoffs[0][source].len();
            outcome.remark(format!("{name}: {what}, XOFF"), "", stops, "times");
            let name = format!("{name}: {what}, deviation after 4 ms");
            outcome.remark(name, "", busy[source].sd, "Gb/s");
        }
        let bins = Bins::between(at_ms(0), until, BIN);
        let series = ["victim 1", "victim 2", "aggressor"].into_iter().zip(&seen.sources);
        let series = series
            .map(|(what, passed)| Series::ours(what, bins.points(&bins.throughput(passed, RATE))));
        let title = format!("Inbound links, {name} ({figure})");
        let (x, y) = (Axis::linear("time", "ms"), Axis::linear("throughput on the wire", "Gb/s"));
        outcome.plots.push(Plot::lines(plot, &title, x, y, series.collect()));
    }
    outcome.note(
        "Whom a mechanism stops after 4 ms is judged by XOFFs to the worse victim over those to \
         the aggressor: all alike in figure 7-8; victims \"only infrequently\" in figure 7-9, \
         which we read as at most half as often; the aggressor only in figure 7-10.",
    );
    outcome.note(
        "A source that was stopped sends what it has saved up at line rate, so that a victim that \
         is stopped swings between nothing and 10 Gb/s. Appendix A draws a frame with every frame \
         that comes above the target watermark: while the aggressor's frames that are in flight \
         still come in, it draws the victims too. The text of §7.4.1 describes few draws, and of a \
         queue that grows to the high watermark when one was wrong; so the second kind draws again \
         only after 33 frames more, when the draw before has shown. With one draw each time the \
         queue comes to the mark it is worse than no targeting: once both victims are stopped, the \
         aggressor alone just fills the link, and the queue never sinks to the low watermark that \
         would let them go on.",
    );
    Ok(outcome)
}

/// Holds XOFFs to victim 1, victim 2 and the aggressor to what the paper says of the mechanism.
fn judge(name: &str, choice: Option<Choice>, [one, two, aggressor]: [f64; 3]) -> Row {
    let part = one.max(two) / aggressor;
    let what = format!("{name}: XOFFs to the worse victim over those to the aggressor");
    match choice {
        None => Row::within(what, "all alike", part, "x", SAME).effect(),
        // The appendix to the letter is a reading; the text's is the one that the figure shows.
        Some(Choice::Sampled { interval: Bytes(0), .. }) => {
            Row::at_most(what, "infrequently", part, "x", INFREQUENT)
        }
        Some(Choice::Sampled { .. }) => {
            Row::at_most(what, "infrequently", part, "x", INFREQUENT).effect()
        }
        Some(Choice::FairBandwidth) => {
            Row::within(what, "the aggressor only", part, "x", (0.0, 0.0)).effect()
        }
        Some(Choice::MaxMin) => Row::within(what, "", part, "x", (0.0, 0.0)),
    }
}
