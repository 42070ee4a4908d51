//! Throughput and queues over time, as SVG.

use crate::output::{self, is_standard};
use crate::say::Unwritten;
use anyhow::anyhow;
use axon_papers::reproduce::{Axis, Plot, Series};
use axon_sim::results::Samples;
use axon_sim::run::Report;
use std::path::{Path, PathBuf};

/// Lines of a plot, at most.
const LINES_MAX: usize = 8;
/// Points of a line, about.
const STEPS: usize = 100;

/// Draws `path` and, beside it, the queues; to standard output, throughput alone.
pub fn draw(path: &Path, report: &Report, unwritten: &mut Unwritten) {
    let samples = report.samples.as_ref().filter(|samples| samples.times.len() > 1);
    let Some(samples) = samples else {
        let name = output::name(path);
        return unwritten.take(Err(anyhow!("{name}: the run was too short to draw anything")));
    };
    let mut write = |path: &Path, plot: Plot| {
        unwritten.take(plot.svg().and_then(|svg| output::write(path, &svg)));
    };
    write(path, throughput(samples, report));
    if !is_standard(path) {
        write(&beside(path), queues(samples, report));
    }
}

fn throughput(samples: &Samples, report: &Report) -> Plot {
    let (whose, lines) = match samples.flows.is_empty() {
        true => ("what the busiest ports sent", port_rates(samples)),
        false => ("what the largest flows received", flow_rates(samples, report)),
    };
    Plot::lines(
        "throughput",
        &format!("{}, seed {}: {whose}", report.fabric, report.seed),
        Axis::linear("time since traffic began, ms"),
        Axis::linear("Mb/s"),
        lines,
    )
}

fn queues(samples: &Samples, report: &Report) -> Plot {
    Plot::lines(
        "queues",
        &format!("{}, seed {}: the fullest queues", report.fabric, report.seed),
        Axis::linear("time since traffic began, ms"),
        Axis::linear("bytes that wait"),
        queue_lines(samples),
    )
}

/// Where the queues are drawn.
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}-queues.svg"))
}

/// Milliseconds since the first sample, which is when traffic began.
fn millis(samples: &Samples, index: usize) -> f64 {
    samples.times[index].since(samples.times[0]).as_nanos() as f64 / 1e6
}

/// Indices at which samples are put together, so that a single frame is no spike: from the
/// first to a little after the last at which a flow received something or a queue was not
/// empty; without flows, to the last of all.
fn steps(samples: &Samples) -> Vec<usize> {
    let last = samples.times.len() - 1;
    let moved = |index: &usize| {
        samples.flows.iter().any(|bytes| bytes[*index] != bytes[index - 1])
            || samples.ports.iter().any(|port| port.queued_bytes[*index] > 0)
    };
    let active =
        if samples.flows.is_empty() { last } else { (1..=last).rfind(moved).unwrap_or(last) };
    let step = (active / STEPS).max(1);
    let mut steps: Vec<usize> =
        (0..last).step_by(step).take_while(|&at| at < active + step).collect();
    steps.push((steps.last().map_or(0, |at| at + step)).min(last));
    steps
}

/// Megabits per second between each step and the next.
fn rates(samples: &Samples, bytes: &[u64]) -> Vec<(f64, f64)> {
    let rate = |pair: &[usize]| {
        let millis = (millis(samples, pair[1]), millis(samples, pair[0]));
        let sent = bytes[pair[1]].checked_sub(bytes[pair[0]])?;
        Some((millis.0, sent as f64 * 8.0 / 1e3 / (millis.0 - millis.1)))
    };
    steps(samples).windows(2).filter_map(rate).collect()
}

fn flow_rates(samples: &Samples, report: &Report) -> Vec<Series> {
    let mut flows: Vec<_> = samples.flows.iter().zip(&report.flows).collect();
    flows.sort_by_key(|(bytes, _)| std::cmp::Reverse(bytes.last().copied()));
    let largest = flows.iter().take(LINES_MAX);
    let line = |bytes: &[u64], name: String| Series::ours(name, rates(samples, bytes));
    largest.map(|(bytes, flow)| line(bytes, format!("{} to {}", flow.from, flow.to))).collect()
}

fn port_rates(samples: &Samples) -> Vec<Series> {
    let mut ports: Vec<_> = samples.ports.iter().collect();
    ports.sort_by_key(|port| std::cmp::Reverse(port.tx_bytes.last().copied()));
    let busiest = ports.iter().take(LINES_MAX);
    busiest.map(|port| Series::ours(&port.name, rates(samples, &port.tx_bytes))).collect()
}

/// The ports whose queues were the fullest, of those that ever queued: the most that waited
/// in each step.
fn queue_lines(samples: &Samples) -> Vec<Series> {
    let most = |queued: &[u64]| queued.iter().max().copied().unwrap_or(0);
    let mut ports: Vec<_> =
        samples.ports.iter().filter(|port| most(&port.queued_bytes) > 0).collect();
    ports.sort_by_key(|port| std::cmp::Reverse(most(&port.queued_bytes)));
    let steps = steps(samples);
    let line = |queued: &[u64]| {
        let pairs = steps.windows(2);
        let point =
            |pair: &[usize]| (millis(samples, pair[1]), most(&queued[pair[0]..=pair[1]]) as f64);
        pairs.map(point).collect()
    };
    let fullest = ports.iter().take(LINES_MAX);
    fullest.map(|port| Series::ours(&port.name, line(&port.queued_bytes))).collect()
}
