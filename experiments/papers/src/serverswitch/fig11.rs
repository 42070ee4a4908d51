//! Figure 11 (004 §6.3): adaptation of a source to a link whose rate changes, with a stable queue.

use super::bottleneck::Bottleneck;
use super::seen::Seen;
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::Result;
use axon_plane::qcn::RpConfig;
use axon_plot::rates::{Counted, spread};
use axon_plot::{Axis, Plot, Series};
use axon_wire::{Bytes, Rate, Span};

/// Experiment `serverswitch/fig11`: QCN: throughput and queue while the link behind the queue
/// changes.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "serverswitch/fig11",
    file: file!(),
    title: "QCN: throughput and queue while the link behind the queue changes",
    source: "004 §5.2 and §6.3, figure 11",
    setup: "A host sends 1500-byte frames through a switch with a congestion point, links of 1 \
            Gb/s. After 20 s the link behind the queue has 200 Mb/s, and 200 Mb/s more every 20 s. \
            Q_EQ is 50 KB, then 25, 100 and 200; the queue may hold 1 MiB. The reaction point has \
            the MIB's variables brought from 10 Gb/s to 1 Gb/s (timer 150 ms, increases of 0.5 and \
            5 Mb/s), and once more as they are, for 50 KB. In the last run the \
            congestion point is in software, as in the paper: the source marks frames, by a rule \
            of ours, the switch mirrors them to its CPU port, and an agent there reads the queue \
            and answers after 23 us.",
    run,
};

const LINK: Rate = Rate::gbps(1);
const STEP: Span = Span::from_secs(20);
const STEPS_MBPS: [u64; 5] = [200, 400, 600, 800, 1_000];
/// Bin width of the queue and the link in the figure.
const BIN: Span = Span::from_millis(500);
const BINS: usize = 40;
/// Steady part of each step: its second half.
const STEADY: std::ops::Range<usize> = 20..40;
const KILOBYTES: [u64; 4] = [PAPER_KILOBYTES, 25, 100, 200];
/// Q_EQ of the paper's figure.
const PAPER_KILOBYTES: u64 = 50;
const POOL: Bytes = Bytes(1 << 20);
/// Accepted difference of the queue's mean from Q_EQ, per cent.
const QUEUE_PERCENT: f64 = 10.0;
/// Accepted fluctuation of the queue in a steady half, in per cent of Q_EQ: never empty, never
/// twice as long. The paper draws a queue that "fluctuates around Q_EQ" and gives no figure.
const FLUCTUATION: (f64, f64) = (1.0, 200.0);
/// Queries per second in the paper, maximum and mean, and our accepted difference in per cent.
const PAPER_QUERIES: [f64; 2] = [801.0, 173.0];
const QUERIES_PERCENT: f64 = 10.0;

/// Name of a run whose congestion point is the agent's.
const SOFTWARE: &str = "responder in software";

/// Result of one run.
struct Measured {
    /// By step with a queue: its mean in the steady half, in per cent of Q_EQ, and the link
    /// utilisation there, per cent.
    steady: Vec<(f64, f64)>,
    /// Shortest and longest queue of the steady halves, in per cent of Q_EQ.
    fluctuation: (f64, f64),
    lost: u64,
    longest: u64,
    /// Sampled frames per second: maximum, and mean from the first step on.
    samples: (u64, f64),
    /// CNMs per second: maximum, and mean from the first step on.
    cnms: (u64, f64),
    /// Points of time in seconds, and Mb/s or KB.
    throughput: Vec<(f64, f64)>,
    queue: Vec<(f64, f64)>,
}

impl Measured {
    /// Adds a bin of a steady half. If nothing passed the queue in the bin, it was empty.
    fn fluctuate(&mut self, seen: &Seen, set_point: Bytes) {
        let percent = |bytes: u64| 100.0 * bytes as f64 / set_point.0 as f64;
        let (least, most) = self.fluctuation;
        let shortest = percent(seen.shortest.unwrap_or(0));
        self.fluctuation = (least.min(shortest), most.max(percent(seen.longest)));
    }
}

fn follow(mut world: Bottleneck, set_point: Bytes) -> Measured {
    let mut run = Measured {
        steady: Vec::new(),
        fluctuation: (f64::INFINITY, 0.0),
        lost: 0,
        longest: 0,
        samples: (0, 0.0),
        cnms: (0, 0.0),
        throughput: Vec::new(),
        queue: Vec::new(),
    };
    let (mut at, mut samples, mut cnms) = (0.0, Vec::new(), Vec::new());
    let (mut drained, mut most) = (Vec::new(), Vec::new());
    let seconds = BIN.ticks() as f64 / Span::from_secs(1).ticks() as f64;
    for rate in [1_000].into_iter().chain(STEPS_MBPS).map(Rate::mbps) {
        if at > 0.0 {
            world.set_rate(rate);
        }
        let (mut means, mut bytes) = (Vec::new(), 0);
        for bin in 0..BINS {
            let seen = world.look(BIN);
            let mean = seen.queue_mean(BIN);
            drained.push(Some(seen.wire_bytes as f64));
            most.push(rate.bytes_in(BIN).0 as f64);
            run.queue.push((at + seconds / 2.0, mean / 1e3));
            at += seconds;
            run.lost += seen.lost;
            run.longest = run.longest.max(seen.longest);
            samples.push(seen.samples);
            cnms.push(seen.cnms);
            if STEADY.contains(&bin) {
                means.push(mean);
                bytes += seen.wire_bytes;
                if rate < LINK {
                    run.fluctuate(&seen, set_point);
                }
            }
        }
        if rate < LINK {
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            let all = rate.bytes_in(BIN * STEADY.len() as u64).0;
            let used = 100.0 * bytes as f64 / all as f64;
            run.steady.push((100.0 * mean / set_point.0 as f64, used));
        }
    }
    // A frame counts when it has come out completely, though part of it came in the bin before.
    spread(&mut drained, &most, Counted::AtEnd);
    let throughput = drained.into_iter().flatten().zip(&run.queue);
    run.throughput =
        throughput.map(|(bytes, &(at, _))| (at, bytes * 8.0 / seconds / 1e6)).collect();
    run.samples = most_and_mean(&samples);
    run.cnms = most_and_mean(&cnms);
    run
}

/// Returns the maximum in a second, which is two bins, and the mean per second from the first step
/// on.
fn most_and_mean(bins: &[u64]) -> (u64, f64) {
    let most = bins.windows(2).map(|second| second[0] + second[1]).max();
    let steps: u64 = bins.iter().skip(BINS).sum();
    (most.unwrap_or(0), steps as f64 / (STEPS_MBPS.len() as f64 * STEP.ticks() as f64 / 1e11))
}

/// Returns the plots of throughput and queue over time.
fn plots(run: Measured) -> [Plot; 2] {
    let x = || Axis::linear("time", "s");
    let y = Axis::linear("throughput on the wire", "Mb/s");
    let series = vec![Series::ours("throughput", run.throughput)];
    let throughput = Plot::lines("throughput", "Throughput", x(), y, series);
    let y = Axis::linear("mean queue", "KB");
    let series = vec![Series::ours("queue", run.queue)];
    [throughput, Plot::lines("queue", "Queue, Q_EQ 50 KB", x(), y, series)]
}

/// Compares a run with the paper's claims; `name` describes its variables and Q_EQ.
fn judge(outcome: &mut Outcome, name: &str, paper: &str, run: &Measured) {
    let furthest = run.steady.iter().map(|step| step.0);
    let furthest = furthest.max_by(|a, b| (a - 100.0).abs().total_cmp(&(b - 100.0).abs()));
    let (furthest, unit) = (furthest.unwrap_or(f64::NAN), "% of Q_EQ");
    let rows = &mut outcome.rows;
    let what = format!("{name}: queue furthest from Q_EQ");
    rows.push(Row::within(what, paper, furthest, unit, (100.0, QUEUE_PERCENT)));
    let (low, high) = run.fluctuation;
    let what = format!("{name}: shortest queue, steady halves");
    rows.push(Row::between(what, "around Q_EQ", low, unit, (FLUCTUATION.0, 100.0)).effect());
    let what = format!("{name}: longest queue, steady halves");
    rows.push(Row::between(what, "around Q_EQ", high, unit, (100.0, FLUCTUATION.1)).effect());
    let least = run.steady.iter().map(|step| step.1).fold(f64::INFINITY, f64::min);
    let what = format!("{name}: link used, at least");
    rows.push(Row::at_least(what, "adapts", least, "%", 99.0));
    let what = format!("{name}: frames lost");
    rows.push(Row::within(what, 0.0, run.lost as f64, "", (0.0, 0.0)));
    let longest = run.longest as f64 / 1e3;
    outcome.remark(format!("{name}: longest queue of all"), "", longest, "KB");
}

/// Compares the queries of a run with the paper's Q_EQ: one for each frame that the source marks,
/// or that our congestion point samples.
fn judge_queries(outcome: &mut Outcome, name: &str, is_software: bool, run: &Measured) {
    let of = |(most, mean): (u64, f64)| [most as f64, mean];
    let [samples, cnms] = [run.samples, run.cnms].map(of);
    for (at, what) in ["most in a second", "mean"].into_iter().enumerate() {
        let (paper, name) = (PAPER_QUERIES[at], |of: &str| format!("{name}: {of}, {what}"));
        let bound = (paper, QUERIES_PERCENT);
        let row = Row::within(name("frames sampled"), paper, samples[at], "1/s", bound);
        // Marks at the rate of the source's link are one for every 150 KB: a division.
        let is_division = at == 0 && is_software;
        outcome.rows.push(if is_division { row.by_construction() } else { row });
        outcome.remark(name("CNMs"), "", cnms[at], "1/s");
    }
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = ["Q_EQ, KB", "variables", "link, Mb/s", "queue, % of Q_EQ", "link used, %"];
    let mut table = Table::new("steps", &columns);
    let scaled = KILOBYTES.map(|kilobytes| (kilobytes, "1 Gb/s", RpConfig::scaled_for_port(LINK)));
    let unscaled = (PAPER_KILOBYTES, "10 Gb/s", RpConfig::for_port(LINK));
    let software = (PAPER_KILOBYTES, SOFTWARE, RpConfig::scaled_for_port(LINK));
    for (kilobytes, variables, rp) in scaled.into_iter().chain([unscaled, software]) {
        let name = match variables {
            "1 Gb/s" => format!("{kilobytes} KB"),
            SOFTWARE => format!("{kilobytes} KB, {SOFTWARE}"),
            _ => format!("{kilobytes} KB, variables of {variables}"),
        };
        context.step(&name)?;
        let set_point = Bytes(1_000 * kilobytes);
        let world = match variables {
            SOFTWARE => Bottleneck::with_responder(rp, (set_point, POOL), context.seed)?,
            _ => Bottleneck::new(rp, (set_point, POOL), context.seed)?,
        };
        let run = follow(world, set_point);
        for (rate, &(queue, used)) in STEPS_MBPS.iter().zip(&run.steady) {
            let step = [variables.into(), (*rate).into(), queue.into(), used.into()];
            table.push([kilobytes.into()].into_iter().chain(step).collect());
        }
        let paper = if kilobytes == PAPER_KILOBYTES { "around Q_EQ" } else { "similar" };
        judge(&mut outcome, &name, paper, &run);
        if kilobytes == PAPER_KILOBYTES {
            judge_queries(&mut outcome, &name, variables == SOFTWARE, &run);
        }
        if name == "50 KB" {
            outcome.plots.extend(plots(run));
        }
    }
    outcome.tables.push(table);
    outcome.notes.extend(NOTES.map(str::to_owned));
    Ok(outcome)
}

const NOTES: [&str; 3] = [
    "The mean, the shortest and the longest queue are over the second half of each step with a \
     queue, the latter two at every frame. Where the queue never falls to Q_EQ it does not \
     fluctuate around it, and the row is not reproduced. The paper says \"the QCN baseline \
     parameters\" and not for which rate: the standard's are made for 10 Gb/s, and at 1 Gb/s their \
     increases are ten times as large a part of the rate. So both are judged, those brought to 1 \
     Gb/s for every Q_EQ and those as they are for the paper's 50 KB.",
    "The paper counts queries, one for each frame that its source marks; ours are the frames that \
     the congestion point samples, of those that wait for the link: one that need not wait is not \
     looked at. 801 queries a second are one for every 150 KB at 961 Mb/s, so the paper's most may \
     be the source's marks at the rate of its link, before there was a queue. At 600 Mb/s, the \
     mean of the five rates, that would be 500 a second and not 173: so its source marks less \
     often then, by a rule that is not given.",
    "With the responder in software, the frames sampled are those that the source marks, whether \
     there is a queue or not: one for every 150 KB without feedback, and more of them the worse it \
     is, as the standard's congestion point would sample. So their most in a second is 150 KB \
     divided into the link, by construction. The variables are those brought to 1 \
     Gb/s. That it answers after 23 us is set, from the paper; `serverswitch/qcn-delay` measures \
     ours, by another way to the agent.",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    fn run(fluctuation: (f64, f64), samples: (u64, f64)) -> Measured {
        Measured {
            steady: vec![(103.0, 100.0)],
            fluctuation,
            lost: 0,
            longest: 60_000,
            samples,
            cnms: (0, 0.0),
            throughput: Vec::new(),
            queue: Vec::new(),
        }
    }

    #[test]
    fn a_queue_that_stays_on_one_side_of_its_set_point_does_not_fluctuate_around_it() {
        let verdict = |fluctuation| {
            let mut outcome = Outcome::default();
            judge(&mut outcome, "", "", &run(fluctuation, (0, 0.0)));
            outcome.verdict()
        };
        assert_eq!(verdict((93.0, 111.0)), Verdict::Held);
        for beside in [(100.5, 111.0), (80.0, 99.0), (0.0, 111.0), (93.0, 201.0)] {
            assert_eq!(verdict(beside), Verdict::NotReproduced, "{beside:?}");
        }
    }

    #[test]
    fn samples_are_held_to_the_papers_queries_on_both_sides() {
        let held = |samples| {
            let mut outcome = Outcome::default();
            judge_queries(&mut outcome, "", false, &run((93.0, 111.0), samples));
            [outcome.rows[0].pass, outcome.rows[1].pass]
        };
        assert_eq!(held((801, 173.0)), [true, true]);
        assert_eq!(held((700, 200.0)), [false, false]);
        assert_eq!(held((900, 150.0)), [false, false]);
    }

    #[test]
    fn a_second_is_two_bins_and_the_mean_leaves_out_what_was_before_the_steps() {
        let mut bins = vec![0; BINS * (1 + STEPS_MBPS.len())];
        (bins[3], bins[BINS], bins[BINS + 1], bins[BINS + 3]) = (9, 5, 7, 8);
        assert_eq!(most_and_mean(&bins), (12, 0.2));
    }

    #[test]
    fn every_cnm_comes_of_a_sample() {
        let rp = RpConfig::scaled_for_port(LINK);
        let mut world = Bottleneck::new(rp, (Bytes(50_000), POOL), 1).unwrap();
        world.look(BIN);
        world.set_rate(Rate::mbps(200));
        let seen = world.look(BIN);
        assert!(seen.cnms > 0 && seen.samples >= seen.cnms, "{seen:?}");
        let all = (0..10).map(|_| world.look(BIN)).map(|seen| (seen.samples, seen.cnms));
        let (samples, cnms) = all.fold((0, 0), |sum, seen| (sum.0 + seen.0, sum.1 + seen.1));
        assert!(samples > cnms, "{samples} {cnms}");
    }
}
