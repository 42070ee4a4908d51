//! Throughput and queues over time, as SVG.

use anyhow::{Context, Result};
use axon_papers::reproduce::{Axis, Plot, Series};
use axon_sim::results::Samples;
use axon_sim::run::Report;
use std::path::Path;

/// Lines of a plot, at most.
const LINES_MAX: usize = 8;

/// Draws `path` and, beside it, the queues.
///
/// # Errors
/// Nothing was sampled, or a file cannot be written.
pub fn draw(path: &Path, report: &Report) -> Result<()> {
    let samples = report.samples.as_ref().filter(|samples| samples.times.len() > 1);
    let samples = samples.context("the run was too short to draw anything")?;
    let (whose, lines) = match samples.flows.is_empty() {
        true => ("what the busiest ports sent", port_rates(samples)),
        false => ("what the largest flows received", flow_rates(samples, report)),
    };
    let throughput = Plot::lines(
        "throughput",
        &format!("{}, seed {}: {whose}", report.fabric, report.seed),
        Axis::linear("simulated time, ms"),
        Axis::linear("Mb/s"),
        lines,
    );
    throughput.draw(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let queues = Plot::lines(
        "queues",
        &format!("{}, seed {}: the fullest queues", report.fabric, report.seed),
        Axis::linear("simulated time, ms"),
        Axis::linear("bytes that wait"),
        queue_lines(samples),
    );
    queues.draw(&path.with_file_name(format!("{name}-queues.svg")))
}

fn millis(samples: &Samples, index: usize) -> f64 {
    samples.times[index].as_nanos() as f64 / 1e6
}

/// Megabits per second between each sample and the next; none where a switch has restarted.
fn rates(samples: &Samples, bytes: &[u64]) -> Vec<(f64, f64)> {
    let rate = |index: usize| {
        let millis = (millis(samples, index), millis(samples, index - 1));
        let sent = bytes[index].checked_sub(bytes[index - 1])?;
        Some((millis.0, sent as f64 * 8.0 / 1e3 / (millis.0 - millis.1)))
    };
    (1..samples.times.len()).filter_map(rate).collect()
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

fn queue_lines(samples: &Samples) -> Vec<Series> {
    let mut ports: Vec<_> = samples.ports.iter().collect();
    ports.sort_by_key(|port| std::cmp::Reverse(port.queued_bytes.iter().max().copied()));
    let line = |queued: &[u64]| {
        let points = queued.iter().enumerate();
        points.map(|(index, &bytes)| (millis(samples, index), bytes as f64)).collect()
    };
    let fullest = ports.iter().take(LINES_MAX);
    fullest.map(|port| Series::ours(&port.name, line(&port.queued_bytes))).collect()
}
