//! Plots of throughput and queues over time, as SVG.

use super::lines::{Line, bins};
use crate::cli::output::{self, is_standard};
use crate::cli::say::Unwritten;
use anyhow::anyhow;
use axon_plot::rates::Counted;
use axon_plot::{Axis, Plot, Series};
use axon_sim::results::{FlowReport, FlowSamples, Samples};
use axon_sim::run::Report;
use axon_wire::Time;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of lines of a plot.
const LINES_MAX: usize = 8;

/// Draws throughput to `path` and queues to the file beside it; to standard output, throughput
/// alone.
pub(crate) fn draw(path: &Path, report: &Report, unwritten: &mut Unwritten) {
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

/// Returns the path of the plot of queues.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}-queues.svg"))
}

/// Plots the bytes that flows received or, without flows, that ports sent.
fn throughput(samples: &Samples, report: &Report) -> Plot {
    let mut lines = flows(samples, &report.flows);
    // Pings and requests for addresses have no byte counts.
    lines.retain(|line| line.bytes.iter().any(Option::is_some));
    let (quantity, noun) = match lines.is_empty() {
        true => ("sent, frames without FCS", "ports"),
        false => ("payload received", "flows"),
    };
    if lines.is_empty() {
        lines = ports(samples);
    }
    lines.sort_by_key(|line| Reverse(line.all()));
    let note = left_out(lines.len(), noun);
    lines.truncate(LINES_MAX);
    let bins = bins(&samples.times, active(samples), &lines);
    let series =
        lines.iter().map(|line| Series::ours(&line.name, line.rates(&samples.times, &bins)));
    plot("throughput", report, Axis::linear(quantity, "Mb/s"), series.collect()).with_note(note)
}

/// Plots the maximum queue length in each bin.
fn queues(samples: &Samples, report: &Report) -> Plot {
    let mut lines = ports(samples);
    for (line, port) in lines.iter_mut().zip(linked(samples)) {
        line.bytes.clone_from(&samples.ports[port].queued_bytes);
    }
    let all = lines.len();
    lines.retain(|line| line.most() > 0);
    lines.sort_by_key(|line| Reverse(line.most()));
    let empty = all - lines.len();
    let note = match left_out(lines.len(), "ports") {
        none if none.is_empty() => format!("{empty} of {all} ports: nothing queued when sampled"),
        more => format!("{more}; {empty} of {all} ports: nothing queued when sampled"),
    };
    lines.truncate(LINES_MAX);
    let bins = bins(&samples.times, active(samples), &[]);
    let series =
        lines.iter().map(|line| Series::ours(&line.name, line.levels(&samples.times, &bins)));
    let y = Axis::linear("queued, most in each bin", "bytes");
    plot("queues", report, y, series.collect()).with_note(note)
}

fn plot(name: &str, report: &Report, y: Axis, series: Vec<Series>) -> Plot {
    let title = format!("{}, seed {}: {name}", report.fabric, report.seed);
    Plot::lines(name, &title, Axis::linear("time since traffic began", "ms"), y, series)
}

/// Describes how many lines are not drawn.
fn left_out(all: usize, noun: &str) -> String {
    match all.saturating_sub(LINES_MAX) {
        0 => String::new(),
        more => format!("and {more} of {all} {noun} that are not drawn: with less than these"),
    }
}

/// Returns the last sample up to which a flow received something or a queue was not empty; without
/// flows, the last sample.
fn active(samples: &Samples) -> usize {
    let last = samples.times.len() - 1;
    let moved = |at: &usize| {
        let flows = samples.flows.iter().map(|flow| &flow.received_bytes);
        flows.into_iter().any(|bytes| bytes[*at] != bytes[at - 1])
            || samples.ports.iter().any(|port| port.queued_bytes[*at] > Some(0))
    };
    if samples.flows.is_empty() { last } else { (1..=last).rfind(moved).unwrap_or(last) }
}

/// Returns lines of the flows, named as in the file; those of one entry differ by their hosts, and
/// those between the same hosts by their number.
fn flows(samples: &Samples, flows: &[FlowReport]) -> Vec<Line> {
    let mut all: BTreeMap<&str, usize> = BTreeMap::new();
    flows.iter().for_each(|flow| *all.entry(&flow.name).or_default() += 1);
    let name = |flow: &FlowReport| match all[flow.name.as_str()] {
        1 => flow.name.clone(),
        _ => format!("{} {} to {}", flow.name, flow.from, flow.to),
    };
    let mut names: Vec<String> = flows.iter().map(name).collect();
    number(&mut names);
    let line = |((name, flow), samples_of): ((String, &FlowReport), &FlowSamples)| {
        let over = flow.done_ns.map(|done| Time::from_nanos(done.max(flow.last_ns.unwrap_or(0))));
        let is_over = |at: Time| over.is_some_and(|over| at > over);
        let mut was_over = false;
        // The first sample after the flow's end has its last received bytes.
        let bytes = samples.times.iter().zip(&samples_of.received_bytes).map(|(&at, bytes)| {
            let bytes = if was_over { None } else { *bytes };
            was_over = is_over(at);
            bytes
        });
        let (rate_bps, counted) = (samples_of.rate_bps, Counted::AtEnd);
        Line { name, rate_bps, counted, bytes: bytes.collect() }
    };
    names.into_iter().zip(flows).zip(&samples.flows).map(line).collect()
}

/// Appends a number to names that occur several times.
fn number(names: &mut [String]) {
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    names.iter().for_each(|name| *all.entry(name.clone()).or_default() += 1);
    let mut before: BTreeMap<String, usize> = BTreeMap::new();
    for name in names {
        let count = before.entry(name.clone()).or_default();
        *count += 1;
        if all[name] > 1 {
            *name += &format!(", {count}");
        }
    }
}

/// Returns the ports that have a link, by their index.
fn linked(samples: &Samples) -> impl Iterator<Item = usize> {
    (0..samples.ports.len()).filter(|&port| samples.ports[port].rate_bps > 0)
}

fn ports(samples: &Samples) -> Vec<Line> {
    let line = |port: usize| {
        let port = &samples.ports[port];
        let (name, rate_bps, bytes) = (port.name.clone(), port.rate_bps, port.tx_bytes.clone());
        Line { name, rate_bps, counted: Counted::AtStart, bytes }
    };
    linked(samples).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_one_entry_and_the_same_hosts_are_numbered() {
        let mut names = ["a h1 to h2", "b", "a h1 to h2"].map(str::to_owned);
        number(&mut names);
        assert_eq!(names, ["a h1 to h2, 1", "b", "a h1 to h2, 2"]);
    }

    #[test]
    fn a_plot_says_how_many_lines_it_leaves_out() {
        assert_eq!(left_out(LINES_MAX, "flows"), "");
        assert!(left_out(24, "flows").starts_with("and 16 of 24 flows that are not drawn"));
    }
}
