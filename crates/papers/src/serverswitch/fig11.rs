//! Figure 11 (004 §6.3): a source follows a link whose rate changes, and the queue stays.

use super::bottleneck::{Bottleneck, Seen};
use crate::reproduce::rates::{Counted, spread};
use crate::reproduce::{Axis, Context, Experiment, Outcome, Plot, Row, Series, Table};
use anyhow::Result;
use axon_plane::qcn::RpConfig;
use axon_wire::{Bytes, Rate, Span};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    id: "serverswitch/fig11",
    title: "QCN: throughput and queue while the link behind the queue changes",
    source: "004 §5.2 and §6.3, figure 11",
    setup: "A host sends 1500-byte frames through a switch with a congestion point, links of 1 \
            Gb/s. After 20 s the link behind the queue has 200 Mb/s, and 200 Mb/s more every 20 s. \
            Q_EQ is 50 KB, then 25, 100 and 200; the queue may hold 1 MiB. The reaction point has \
            the MIB's variables brought from 10 Gb/s to 1 Gb/s (timer 150 ms, increases of 0.5 and \
            5 Mb/s); once more as they are, for 50 KB.",
    run,
};

const LINK: Rate = Rate::gbps(1);
const STEP: Span = Span::from_secs(20);
const STEPS_MBPS: [u64; 5] = [200, 400, 600, 800, 1_000];
/// Of the queue and the link in the figure.
const BIN: Span = Span::from_millis(500);
const BINS: usize = 40;
/// What of each step counts as steady: its second half.
const STEADY: std::ops::Range<usize> = 20..40;
const KILOBYTES: [u64; 4] = [50, 25, 100, 200];
const POOL: Bytes = Bytes(1 << 20);
/// How far the queue's mean may be from Q_EQ, per cent.
const QUEUE_PERCENT: f64 = 10.0;
/// Between which the queue must fluctuate in a steady half, in per cent of Q_EQ: never empty, never
/// twice as long. The paper draws a queue that "fluctuates around Q_EQ" and gives no figure.
const FLUCTUATION: (f64, f64) = (1.0, 200.0);
/// Queries a second in the paper, at most and in the mean, and how far ours may be, in per cent.
const PAPER_QUERIES: [f64; 2] = [801.0, 173.0];
const QUERIES_PERCENT: f64 = 10.0;

/// One run.
struct Run {
    /// By step with a queue: its mean in the steady half, in per cent of Q_EQ, and how much of the
    /// link is used there, per cent.
    steady: Vec<(f64, f64)>,
    /// The shortest and the longest queue of the steady halves, in per cent of Q_EQ.
    fluctuation: (f64, f64),
    lost: u64,
    longest: u64,
    /// CNMs in a second at most, and on average from the first step on.
    cnms: (u64, f64),
    /// Seconds, and Mb/s or KB.
    throughput: Vec<(f64, f64)>,
    queue: Vec<(f64, f64)>,
}

impl Run {
    /// Takes in a bin of a steady half. One in which nothing passed the queue had an empty one.
    fn fluctuate(&mut self, seen: &Seen, set_point: Bytes) {
        let percent = |bytes: u64| 100.0 * bytes as f64 / set_point.0 as f64;
        let (least, most) = self.fluctuation;
        let shortest = percent(seen.shortest.unwrap_or(0));
        self.fluctuation = (least.min(shortest), most.max(percent(seen.longest)));
    }
}

fn follow(rp: RpConfig, set_point: Bytes, seed: u64) -> Result<Run> {
    let mut world = Bottleneck::new(rp, (set_point, POOL), seed)?;
    let mut run = Run {
        steady: Vec::new(),
        fluctuation: (f64::INFINITY, 0.0),
        lost: 0,
        longest: 0,
        cnms: (0, 0.0),
        throughput: Vec::new(),
        queue: Vec::new(),
    };
    let (mut at, mut cnms) = (0.0, 0);
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
            run.cnms.0 = run.cnms.0.max(seen.cnms * 2);
            cnms += seen.cnms;
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
    // A frame counts when it has come out whole, though part of it came in the bin before.
    spread(&mut drained, &most, Counted::AtEnd);
    let throughput = drained.into_iter().flatten().zip(&run.queue);
    run.throughput =
        throughput.map(|(bytes, &(at, _))| (at, bytes * 8.0 / seconds / 1e6)).collect();
    run.cnms.1 = cnms as f64 / (STEPS_MBPS.len() as f64 * STEP.ticks() as f64 / 1e11);
    Ok(run)
}

/// Throughput and queue over time.
fn plots(run: Run) -> [Plot; 2] {
    let x = || Axis::linear("time", "s");
    let y = Axis::linear("throughput on the wire", "Mb/s");
    let series = vec![Series::ours("throughput", run.throughput)];
    let throughput = Plot::lines("throughput", "Throughput", x(), y, series);
    let y = Axis::linear("mean queue", "KB");
    let series = vec![Series::ours("queue", run.queue)];
    [throughput, Plot::lines("queue", "Queue, Q_EQ 50 KB", x(), y, series)]
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = ["Q_EQ, KB", "link, Mb/s", "queue, % of Q_EQ", "link used, %"];
    let mut table = Table::new("steps", &columns);
    for kilobytes in KILOBYTES {
        context.step(format!("{kilobytes} KB"))?;
        let rp = RpConfig::scaled_for_port(LINK);
        let run = follow(rp, Bytes(1_000 * kilobytes), context.seed)?;
        for (rate, &(queue, used)) in STEPS_MBPS.iter().zip(&run.steady) {
            table.push(vec![kilobytes.into(), (*rate).into(), queue.into(), used.into()]);
        }
        let furthest = run.steady.iter().map(|step| step.0);
        let furthest = furthest.max_by(|a, b| (a - 100.0).abs().total_cmp(&(b - 100.0).abs()));
        let furthest = furthest.unwrap_or(f64::NAN);
        let name = format!("{kilobytes} KB: queue furthest from Q_EQ");
        let paper = if kilobytes == 50 { "around Q_EQ" } else { "similar" };
        let bound = (100.0, QUEUE_PERCENT);
        outcome.rows.push(Row::within(name, paper, furthest, "% of Q_EQ", bound));
        let (low, high) = run.fluctuation;
        let unit = "% of Q_EQ";
        let name = format!("{kilobytes} KB: shortest queue, steady halves");
        outcome.rows.push(Row::between(name, "around Q_EQ", low, unit, (FLUCTUATION.0, 100.0)));
        let name = format!("{kilobytes} KB: longest queue, steady halves");
        outcome.rows.push(Row::between(name, "around Q_EQ", high, unit, (100.0, FLUCTUATION.1)));
        let least = run.steady.iter().map(|step| step.1).fold(f64::INFINITY, f64::min);
        let name = format!("{kilobytes} KB: link used, at least");
        outcome.rows.push(Row::at_least(name, "adapts", least, "%", 99.0));
        let name = format!("{kilobytes} KB: frames lost");
        outcome.rows.push(Row::within(name, 0.0, run.lost as f64, "", (0.0, 0.0)));
        let longest = run.longest as f64 / 1e3;
        outcome.remark(format!("{kilobytes} KB: longest queue of all"), "", longest, "KB");
        if kilobytes == 50 {
            let names = ["50 KB: CNMs, most in a second", "50 KB: CNMs, mean"];
            let ours = [run.cnms.0 as f64, run.cnms.1];
            for ((name, paper), ours) in names.into_iter().zip(PAPER_QUERIES).zip(ours) {
                let bound = (paper, QUERIES_PERCENT);
                outcome.rows.push(Row::within(name, paper, ours, "1/s", bound));
            }
            outcome.plots.extend(plots(run));
        }
    }
    context.step("50 KB, variables of 10 Gb/s")?;
    let run = follow(RpConfig::for_port(LINK), Bytes(50_000), context.seed)?;
    let queues: Vec<String> = run.steady.iter().map(|step| format!("{:.0}", step.0)).collect();
    let name = "50 KB, variables of 10 Gb/s: queue at 200 to 800 Mb/s";
    outcome.remark(name, "around Q_EQ", queues.join(", "), "% of Q_EQ");
    outcome.tables.push(table);
    outcome.note(
        "The mean, the shortest and the longest queue are over the second half of each step with a \
         queue, the latter two at every frame. With 100 and 200 KB its mean is within a tenth \
         of Q_EQ, but it never falls to Q_EQ, and does not fluctuate around it: these rows are \
         missed. The paper counts queries, one for each frame that its source marks, and both its \
         figures are missed: ours samples in the switch and sends only the messages that say \
         \"slower\", and no message says that the queue is short. 801 queries a second are one for \
         every 150 KB at 961 Mb/s, so the paper's most may be the source's marks at the rate of \
         its link, before there was a queue. With the standard's variables, which are made for 10 \
         Gb/s, increases are a larger part of the rate and the queue stays above its set point.",
    );
    Ok(outcome)
}
