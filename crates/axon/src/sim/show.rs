//! The report as text.

use super::wall::Wall;
use axon_sim::results::never_started;
use axon_sim::results::{FlowReport, Times};
use axon_sim::run::{Report, Round};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum number of ports and drops in a list; `--csv` has all of them.
const ROWS_MAX: usize = 8;

/// Appends a line to the report; writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($rest:tt)*) => {{
        let _ = writeln!($out, $($rest)*);
    }};
}

/// Returns the whole report.
pub fn text(report: &Report, wall: &Wall) -> String {
    let mut text = String::new();
    let out = &mut text;
    let Report { fabric, seed, hosts, addressed, .. } = report;
    line!(out, "{fabric}, seed {seed}: {addressed} of {hosts} hosts have an address");
    if !report.without_address.is_empty() {
        line!(out, "no address: {}", first(&report.without_address, ", "));
    }
    if !report.rounds.is_empty() {
        rounds(out, &report.rounds);
    }
    if !report.flows.is_empty() {
        flows(out, report);
    }
    ports(out, report);
    for agent in &report.agents {
        line!(out, "agent {} ({}): {}", agent.agent, agent.kind, listed(&agent.counters));
    }
    line!(out, "drops: {}", listed(&report.drops));
    line!(out, "losses on links: {}", listed(&report.losses));
    if !report.ended.is_empty() {
        line!(out, "ended in normal operation: {}", listed(&report.ended));
    }
    if report.corrupted > 0 {
        line!(out, "frames with a flipped bit: {}", report.corrupted);
    }
    for route in &report.stale_routes {
        line!(out, "stale route: {route}");
    }
    if let Some(deadlock) = &report.deadlock {
        let (at, cycle) = (deadlock.at_ns as f64 / 1e6, deadlock.cycle.join(" -> "));
        line!(out, "deadlock at {at:.3} ms: {cycle}");
    }
    if let Some(problem) = &report.unaccounted {
        line!(out, "{problem}");
    }
    line!(
        out,
        "{} ms simulated in {:.3} s, {} events, {} packet-hops ({}/s), {} of memory, trace {}",
        report.simulated_ns / 1_000_000,
        wall.seconds,
        report.events,
        report.packet_hops,
        short(wall.pace()),
        size(wall.memory_bytes),
        report.trace_hash
    );
    text
}

/// Formats counts by name.
fn listed(counts: &BTreeMap<&str, u64>) -> String {
    let text: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if text.is_empty() { "none".to_owned() } else { text.join(", ") }
}

fn rounds(out: &mut String, rounds: &[Round]) {
    line!(
        out,
        "{:>10}  {:>13}  {:>8}  {:>8}  {:>10}",
        "from",
        "pairs",
        "requests",
        "replies",
        "worst rtt"
    );
    for round in rounds {
        line!(
            out,
            "{:>7} ms  {:>13}  {:>8}  {:>8}  {:>7} us",
            round.at_ns / 1_000_000,
            format!("{} of {}", round.answered, round.pairs),
            round.requests,
            round.replies,
            round.rtt_max_ns / 1_000
        );
    }
    for pair in rounds.iter().flat_map(|round| &round.unanswered) {
        line!(out, "no answer: {pair}");
    }
}

/// Writes the flows, with those of one entry of the traffic section together.
fn flows(out: &mut String, report: &Report) {
    let flows = &report.flows;
    line!(
        out,
        "{:<16} {:<16} {:>5}  {:>10}  {:>10}  {:>7}  {:>9}  {:>10}  {:>10}  {:>10}  {:>10}  {}",
        "traffic",
        "app",
        "flows",
        "sent",
        "received",
        "lost",
        "in flight",
        "b/s least",
        "b/s mean",
        "p50 time",
        "p99 time",
        "time of"
    );
    let mut rest = &flows[..];
    for together in &report.entries {
        let (entry, after) = rest.split_at(together.flows.min(rest.len()));
        rest = after;
        if entry.is_empty() {
            continue;
        }
        let sum = |of: fn(&FlowReport) -> u64| entry.iter().map(of).sum::<u64>();
        let goodputs: Vec<u64> = entry.iter().filter_map(|flow| flow.goodput_bps).collect();
        let mean = goodputs.iter().sum::<u64>() as f64 / goodputs.len().max(1) as f64;
        let least = goodputs.iter().min().copied().unwrap_or(0) as f64;
        let times = together.times;
        let [lost, in_flight] = missing(entry);
        let span = |of: fn(&Times) -> u64| times.as_ref().map_or("-".into(), |t| nanos(of(t)));
        line!(
            out,
            "{:<16} {:<16} {:>5}  {:>10}  {:>10}  {:>7}  {:>9}  {:>10}  {:>10}  {:>10}  {:>10}  {}",
            entry[0].name,
            entry[0].app,
            entry.len(),
            size(sum(|flow| flow.sent_bytes)),
            size(sum(|flow| flow.received_bytes)),
            lost,
            in_flight,
            short(least),
            short(mean),
            span(|times| times.p50_ns),
            span(|times| times.p99_ns),
            times.map_or("-", |_| timed(entry))
        );
    }
    reasons(out, flows);
    if !report.unfinished.is_empty() {
        line!(out, "unfinished: {} of {} flows", report.unfinished.len(), flows.len());
        line!(out, "{}", first(&report.unfinished, "\n"));
    }
    given_up(out, flows);
    for flow in flows.iter().filter(|flow| never_started(flow) || flow.wrong_bytes > 0) {
        let what = if never_started(flow) { "was not started" } else { "received wrong bytes" };
        line!(out, "{} from {} to {} {what}", flow.name, flow.from, flow.to);
    }
    file_services(out, flows);
}

/// Writes the results of file services.
fn file_services(out: &mut String, flows: &[FlowReport]) {
    for flow in flows {
        let Some(files) = &flow.files else { continue };
        line!(
            out,
            "{}: {}.{:03} transactions/s, {}/s read, {}/s written",
            flow.name,
            files.transactions_per_1000s / 1000,
            files.transactions_per_1000s % 1000,
            size(files.read_bytes_per_second),
            size(files.written_bytes_per_second)
        );
    }
}

/// Describes the times of an entry: of what its flows complete, or of each frame that arrives.
fn timed(entry: &[FlowReport]) -> &'static str {
    let completes = entry.iter().any(|flow| flow.times.is_some());
    match entry[0].app {
        "replay" => "a frame, one way",
        _ if !completes => "a datagram, one way",
        "tcp" => "a transfer",
        "request_response" | "arp" => "a request and its answer",
        "incast" | "all_reduce" => "a round",
        "file_service" => "a transaction",
        "ping" => "a round trip",
        _ => "what was completed",
    }
}

/// Joins the first items of a list, and the number of further ones.
fn first(all: &[String], between: &str) -> String {
    let mut text = all[..all.len().min(ROWS_MAX)].join(between);
    if all.len() > ROWS_MAX {
        text += &format!("{between}and {} more; --json has all", all.len() - ROWS_MAX);
    }
    text
}

/// Writes what each entry's flows gave up.
fn given_up(out: &mut String, flows: &[FlowReport]) {
    for entry in flows.chunk_by(|flow, next| flow.name == next.name) {
        let started = entry.iter().filter(|flow| !never_started(flow));
        let (failed, completed) =
            started.fold((0, 0), |sum, flow| (sum.0 + flow.failed, sum.1 + flow.completed));
        if failed > 0 {
            line!(out, "{}: {failed} given up, {completed} completed", entry[0].name);
        }
    }
}

/// Formats a span in the unit that leaves at most four digits before the point.
fn nanos(nanos: u64) -> String {
    match nanos {
        0..10_000 => format!("{nanos} ns"),
        10_000..10_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", nanos as f64 / 1e6),
        _ => format!("{:.1} s", nanos as f64 / 1e9),
    }
}

/// Writes the busiest ports.
fn ports(out: &mut String, report: &Report) {
    let mut ports: Vec<_> = report.ports.iter().collect();
    ports.sort_by_key(|port| std::cmp::Reverse((port.tx_bytes, port.rx_bytes)));
    ports.truncate(ROWS_MAX);
    line!(
        out,
        "{:<12}  {:<12}  {:>10}  {:>10}  {:>8}",
        "busiest",
        "to",
        "sent",
        "received",
        "dropped"
    );
    for port in ports {
        line!(
            out,
            "{:<12}  {:<12}  {:>10}  {:>10}  {:>8}",
            port.name,
            port.peer,
            size(port.tx_bytes),
            size(port.rx_bytes),
            port.dropped
        );
    }
}

/// Formats a number with three digits and a metric prefix.
pub(crate) fn short(number: f64) -> String {
    let scales = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    match scales.iter().find(|(scale, _)| number >= *scale) {
        Some((scale, letter)) => format!("{:.2}{letter}", number / scale),
        None => format!("{number:.0} "),
    }
}

/// Formats bytes in the largest unit that they fill.
pub fn size(bytes: u64) -> String {
    let scales = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match scales.iter().find(|(bits, _)| bytes >> bits > 0) {
        Some((bits, unit)) => format!("{:.2} {unit}", bytes as f64 / (1u64 << bits) as f64),
        None => format!("{bytes} B"),
    }
}

/// Returns the packets that an entry's flows lost and that are in flight; `-` where packets are not
/// counted, or where more was received than sent. The sum of both is marked with a `?` if they
/// cannot be distinguished.
fn missing(entry: &[FlowReport]) -> [String; 2] {
    let unknown = || "-".to_owned();
    let more = |flow: &FlowReport| {
        let counted = matches!(flow.app, "udp" | "on_off" | "replay");
        counted && flow.missing_packets.is_none() && flow.received_packets > flow.sent_packets
    };
    let sum = |of: fn(&FlowReport) -> Option<u64>| {
        entry.iter().filter_map(of).reduce(|sum, packets| sum + packets)
    };
    if entry.iter().any(more) {
        return [unknown(), unknown()];
    }
    match (sum(|flow| flow.lost_packets), sum(|flow| flow.missing_packets)) {
        (Some(lost), _) => {
            let in_flight = sum(|flow| flow.in_flight_packets).unwrap_or(0);
            [lost.to_string(), in_flight.to_string()]
        }
        (None, Some(0)) => [0, 0].map(|none: u64| none.to_string()),
        (None, Some(missing)) => [format!("{missing}?"), unknown()],
        (None, None) => [unknown(), unknown()],
    }
}

/// Writes the loss reasons of each entry's flows.
fn reasons(out: &mut String, flows: &[FlowReport]) {
    for entry in flows.chunk_by(|flow, next| flow.name == next.name) {
        let mut all: BTreeMap<&str, u64> = BTreeMap::new();
        for (reason, count) in entry.iter().flat_map(|flow| &flow.lost) {
            *all.entry(reason).or_default() += count;
        }
        let text: Vec<String> = all.iter().map(|(why, count)| format!("{why} {count}")).collect();
        if !text.is_empty() {
            line!(out, "lost of {}: {}", entry[0].name, text.join(", "));
        }
    }
    if flows.iter().any(|flow| flow.lost_packets.is_none() && flow.missing_packets > Some(0)) {
        line!(out, "?: lost or in flight");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_keep_their_unit() {
        assert_eq!(short(12.3), "12 ");
        assert_eq!(short(12_345_678.0), "12.35 M");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(3 << 29), "1.50 GiB");
    }
}
