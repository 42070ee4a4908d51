//! Table 7.1 (002 §7.4.3): how much the aggressor makes the victims' throughput vary.

use super::watermarks::{
    BIN, FRAME_BYTES, NARROW_BIN, at_ms, choices, marks, three_into_one, used,
    victims_and_aggressor,
};
use crate::reproduce::{Axis, Context, Experiment, Outcome, Plot, Row, Series, Table};
use anyhow::Result;
use axon_plane::targeted::Choice;

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "hagen/table7.1",
    title: "Standard deviation of the victims' throughput",
    source: "002 §7.4.3, table 7.1",
    setup: "The worlds of hagen/fig7-8 from 4 to 24 ms: the victims offer 2.5 Gb/s each, the \
            aggressor line rate. The standard deviation of what came by the links of the victims, \
            the worse of both, in bins of 49.2 us and of 12.3 us; random sampling as the mean of \
            ten seeds. Then the same with victims that send frames of 252 bytes.",
    run,
};

const FROM_MS: u64 = 4;
const UNTIL_MS: u64 = 24;
/// What the table says of victim 1, Gb/s, in the order of `choices`.
const PAPER: [Option<f64>; 5] = [Some(3.4), None, Some(0.9), Some(0.5), None];
/// Ours must be within this factor of it: the width of the paper's bins is not given.
const FACTOR: f64 = 2.0;
const SEEDS: u64 = 10;
/// Without FCS: 276 on the wire.
const SHORT_BYTES: u64 = 252;

/// What came of one way to choose.
struct Came {
    /// The worse victim's deviation in bins of 49.2 and 12.3 us, Gb/s.
    deviation: [f64; 2],
    /// The worse victim's mean, Gb/s: 2.5 unless it is starved.
    mean: f64,
    /// Of the outbound link, %.
    used: f64,
    lost: u64,
    /// How often victims received XOFF.
    stops: usize,
}

fn measure(choice: Option<Choice>, victim_bytes: u64, seed: u64) -> Came {
    let until = at_ms(UNTIL_MS);
    let plan =
        three_into_one(Some(marks(true, choice)), victims_and_aggressor(until, victim_bytes));
    let seen = plan.run(until, seed);
    let time = (at_ms(FROM_MS), until);
    let deviation = [BIN, NARROW_BIN].map(|bin| {
        let (sources, _) = used(&seen, time, bin);
        sources[0].sd.max(sources[1].sd)
    });
    let (sources, sink) = used(&seen, time, BIN);
    let (mean, percent) = (sources[0].mean.min(sources[1].mean), 10.0 * sink.mean);
    let stops = seen.xoffs[0][..2].iter().map(Vec::len).sum();
    Came { deviation, mean, used: percent, lost: seen.all_lost(), stops }
}

/// The mean of several seeds where something is drawn, and of one where nothing is.
fn mean(choice: impl Fn(u64) -> Option<Choice>, victim_bytes: u64, seed: u64) -> Came {
    let seeds = if matches!(choice(seed), Some(Choice::Sampled { .. })) { SEEDS } else { 1 };
    let runs: Vec<Came> =
        (seed..seed + seeds).map(|seed| measure(choice(seed), victim_bytes, seed)).collect();
    let mean = |of: fn(&Came) -> f64| runs.iter().map(of).sum::<f64>() / seeds as f64;
    Came {
        deviation: [mean(|came| came.deviation[0]), mean(|came| came.deviation[1])],
        mean: mean(|came| came.mean),
        used: mean(|came| came.used),
        lost: runs.iter().map(|came| came.lost).sum(),
        stops: runs.iter().map(|came| came.stops).sum::<usize>() / runs.len(),
    }
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = [
        "who is to stop",
        "victims' frames, bytes",
        "paper, Gb/s",
        "deviation in 49.2 us, Gb/s",
        "deviation in 12.3 us, Gb/s",
        "mean, Gb/s",
        "link used, %",
        "frames lost",
        "XOFF to victims, times",
    ];
    let mut table = Table::new("deviation", &columns);
    let (mut full, mut short) = (Vec::new(), Vec::new());
    for (victim_bytes, came) in [(FRAME_BYTES, &mut full), (SHORT_BYTES, &mut short)] {
        for (index, (name, _)) in choices(0).into_iter().enumerate() {
            context.step(format!("{name}, victims with frames of {victim_bytes} bytes"))?;
            let of = mean(|seed| choices(seed)[index].1, victim_bytes, context.seed);
            let paper = PAPER[index].filter(|_| victim_bytes == FRAME_BYTES);
            let [wide, narrow] = of.deviation;
            table.push(vec![
                name.into(),
                victim_bytes.into(),
                paper.into(),
                wide.into(),
                narrow.into(),
                of.mean.into(),
                of.used.into(),
                of.lost.into(),
                of.stops.into(),
            ]);
            came.push(of);
        }
    }
    judge(&mut outcome, &full, &short);
    outcome.tables.push(table);
    outcome.plots.push(plot(&full));
    outcome.note(
        "The paper does not say how wide its bins are. A steady stream of 2.5 Gb/s has no \
         deviation in bins of 49.2 us, which hold ten of its frames, but 0.27 Gb/s in bins of 12.3 \
         us, which hold two and a half (and 0.5 if each frame counted for one bin only). So the \
         paper's 0.5 for fair bandwidth need not mean that a victim was ever stopped; ours never \
         is. Fair bandwidth counts frames, so victims with short frames look like aggressors to \
         it; max-min counts bytes. How often random sampling draws again is ours (hagen/fig7-8); \
         the paper's 0.9 is below both of ours.",
    );
    Ok(outcome)
}

/// Holds what came of each way to choose to its bounds, with full and with short frames of the
/// victims.
fn judge(outcome: &mut Outcome, full: &[Came], short: &[Came]) {
    let lost: u64 = full.iter().chain(short).map(|came| came.lost).sum();
    outcome.rows.push(Row::within("all of them: lost", 0.0, lost as f64, "frames", (0.0, 0.0)));
    let [none, _, sampled, fair, ours] = [0, 1, 2, 3, 4].map(|index| &full[index]);
    let order = |bins: usize| {
        let [a, b, c] = [none, sampled, fair].map(|came| came.deviation[bins]);
        (format!("{a:.2} > {b:.2} > {c:.2}"), a > b && b > c)
    };
    for (bins, what) in ["49.2", "12.3"].into_iter().enumerate() {
        let (text, falls) = order(bins);
        let name = format!("HW-LW > sampling > fair, bins of {what} us");
        let row = Row::holds(name, "3.4 > 0.9 > 0.5", text, "Gb/s", "falls", falls);
        outcome.rows.push(row.effect());
        for (index, (name, _)) in choices(0).into_iter().enumerate() {
            let Some(paper) = PAPER[index] else { continue };
            let (name, came) = (format!("{name}, {what} us"), full[index].deviation[bins]);
            let range = (paper / FACTOR, paper * FACTOR);
            outcome.rows.push(Row::between(name, paper, came, "Gb/s", range));
        }
    }
    for (what, came) in [("", ours), (", victims with short frames", &short[4])] {
        let name = format!("max-min (ours){what}");
        outcome.rows.push(Row::at_most(&name, "", came.deviation[0], "Gb/s", 0.05));
        outcome.rows.push(Row::at_least(format!("{name}: link used"), "", came.used, "%", 99.0));
        let mean = format!("{name}: mean of the worse victim");
        outcome.rows.push(Row::within(mean, "", came.mean, "Gb/s", (2.5, 0.5)));
        let stops = came.stops as f64;
        let name = format!("{name}: XOFF to victims");
        outcome.rows.push(Row::within(name, "", stops, "times", (0.0, 0.0)));
    }
    for (index, (name, _)) in choices(0).into_iter().enumerate() {
        if PAPER[index].is_none() {
            let [wide, narrow] = full[index].deviation;
            outcome.remark(format!("{name}, 49.2 us"), "", wide, "Gb/s");
            outcome.remark(format!("{name}, 12.3 us"), "", narrow, "Gb/s");
        }
        outcome.remark(format!("{name}: mean of the worse victim"), "", full[index].mean, "Gb/s");
        let of = short[index].deviation[0];
        outcome.remark(format!("{name}, 49.2 us, victims with short frames"), "", of, "Gb/s");
    }
}

fn plot(came: &[Came]) -> Plot {
    let names = choices(0).map(|(name, _)| name);
    let bars = |points: Vec<f64>| {
        points.into_iter().enumerate().map(|(x, y)| (x as f64, y)).collect::<Vec<_>>()
    };
    let of = |bins: usize| bars(came.iter().map(|came| came.deviation[bins]).collect());
    let theirs = bars(PAPER.iter().map(|paper| paper.unwrap_or(0.0)).collect());
    let series = vec![
        Series::theirs("paper", theirs),
        Series::ours("ours, bins of 12.3 us", of(1)),
        Series::ours("ours, bins of 49.2 us", of(0)),
    ];
    let title = "Standard deviation of the worse victim";
    Plot::bars("deviation", title, &names, Axis::linear("deviation", "Gb/s"), series)
}
