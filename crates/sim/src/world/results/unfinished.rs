//! Flows that have not ended.
//!
//! A flow has an end if the fabric file limits its work (`bytes`, `count`, `rounds`,
//! `transactions`, the frames of a capture) or sets a stop time. It is unfinished if that end was
//! due and was not reached, or if its connection failed. A stream without an end is unfinished if
//! it has sent data that was not received, and nothing has been received for [`STALL`].

use super::flows::{FlowReport, Flows, never_started};
use crate::world::World;
use crate::world::running::{Running, Work};
use axon_fabric::model::Traffic;
use axon_fabric::traffic::App;
use axon_wire::{Span, Time};

/// Time without arrivals after which a stream without an end counts as stalled.
const STALL: Span = Span::from_secs(1);
/// Time after its last datagram for which a flow may have some in flight without a warning.
const IN_FLIGHT: Span = Span::from_millis(20);

/// Remaining work of flows that have an end. While it changes, they make progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unresolved {
    /// Number of flows that have not ended.
    flows: usize,
    /// Packets sent, bytes received, and items completed or failed by these flows, in total.
    moved: u64,
    /// Datagrams of flows that send no more, which are neither received nor lost.
    in_flight: u64,
}

/// Returns the remaining work of flows that have an end, for traffic that began at `began`. `None`
/// if all is complete and every datagram is received or lost.
pub(crate) fn unresolved(flows: Flows<'_>, began: Time) -> Option<Unresolved> {
    let lost = flows.lost_datagrams();
    let mut all = Unresolved::default();
    for (running, entry) in flows.running() {
        let flow = flows.report_of(running, &lost);
        if is_due(flows, (running, entry), &flow, began) {
            all.flows += 1;
            all.moved += flow.sent_packets + flow.received_bytes + flow.completed + flow.failed;
        } else if flow.done_ns.is_some() {
            all.in_flight += flow.in_flight_packets.unwrap_or(0);
        }
    }
    (all.flows > 0 || all.in_flight > 0).then_some(all)
}

/// Returns the longest time for which a flow that has not ended sends nothing by its own schedule,
/// for traffic that began at `began`.
pub(crate) fn longest_pause(flows: Flows<'_>, began: Time) -> Span {
    let lost = flows.lost_datagrams();
    let due = flows.running().filter(|&(running, entry)| {
        is_due(flows, (running, entry), &flows.report_of(running, &lost), began)
    });
    due.map(|(_, entry)| pause(&entry.app)).max().unwrap_or_default()
}

/// Returns whether a flow without an end is running.
pub(crate) fn has_endless(flows: Flows<'_>) -> bool {
    flows.running().any(|(_, entry)| entry.stop.is_none() && work(&entry.app).is_none())
}

/// Marks the unfinished flows, for traffic that began at `began`. Returns what each of them lacks,
/// in their order.
pub(super) fn mark(flows: Flows<'_>, began: Time, reports: &mut [FlowReport]) -> Vec<String> {
    let mut lacks = Vec::new();
    for ((running, entry), flow) in flows.running().zip(reports) {
        let broke = flow.app == "tcp" && flow.failed > 0 && !never_started(flow);
        let due = is_due(flows, (running, entry), flow, began);
        let stalled = !due && is_stalled(entry, flow, flows.now());
        flow.unfinished = broke || due || stalled;
        if flow.unfinished {
            lacks.push(lack(entry, flow, broke));
        }
    }
    lacks
}

/// Returns a warning for each entry with flows between hosts that may not reach each other.
pub(super) fn forbidden(world: &World) -> impl Iterator<Item = String> {
    let (fabric, truth) = (world.fabric(), world.truth());
    fabric.traffic.iter().filter_map(move |entry| {
        let forbidden = |&&(from, to): &&(usize, usize)| !truth.may_reach(from, to);
        let &(from, to) = entry.flows.iter().find(forbidden)?;
        let count = entry.flows.iter().filter(forbidden).count();
        let [from, to] = [from, to].map(|host| &fabric.hosts[host].name);
        let (name, all) = (&entry.name, entry.flows.len());
        Some(format!(
            "{name}: {count} of {all} flows are between hosts that may not reach each other, such \
             as {from} and {to}"
        ))
    })
}

/// Returns a warning for each flow that ended a while before `now` and has datagrams that are
/// neither received nor lost.
pub(super) fn in_flight(flows: &[FlowReport], now: Time) -> Vec<String> {
    let latest = now.as_nanos().saturating_sub(IN_FLIGHT.as_nanos());
    let old = |flow: &&FlowReport| flow.done_ns.is_some_and(|done| done < latest);
    let in_flight = |flow: &FlowReport| {
        let packets = flow.in_flight_packets.filter(|&packets| packets > 0)?;
        let FlowReport { name, from, to, .. } = flow;
        Some(format!(
            "{name} from {from} to {to}: {packets} datagrams were neither received nor lost when \
             the run ended"
        ))
    };
    flows.iter().filter(old).filter_map(in_flight).collect()
}

/// Returns whether a flow should have ended, or still should, and has not.
fn is_due(
    flows: Flows<'_>,
    (running, entry): (&Running, &Traffic),
    flow: &FlowReport,
    began: Time,
) -> bool {
    let ran = flows.now().since(began);
    let done = match running.work {
        // A flow that could not be started is reported as such.
        Work::None => true,
        Work::App(..) => flow.done_ns.is_some(),
        // Unanswered requests count as missing.
        Work::Ping(_) | Work::ArpHost(_) => flows.is_done(running),
    };
    let stopped = entry.stop.is_some_and(|stop| stop <= ran);
    !done && entry.start <= ran && (stopped || work(&entry.app).is_some())
}

/// Returns whether a stream without an end has stalled.
fn is_stalled(entry: &Traffic, flow: &FlowReport, now: Time) -> bool {
    let last = flow.last_ns.or(flow.first_ns);
    let waits = flow.done_ns.is_none() && flow.sent_bytes > flow.received_bytes;
    matches!(entry.app, App::Tcp { .. })
        && waits
        && last.is_some_and(|last| now.as_nanos() - last >= STALL.as_nanos())
}

/// Describes what an unfinished flow lacks: `tcp1 from h1 to h3: 1151448 of 100000000 bytes
/// received, the last after 1.023s`.
fn lack(entry: &Traffic, flow: &FlowReport, broke: bool) -> String {
    let FlowReport { name, from, to, .. } = flow;
    let (done, unit) = match entry.app {
        App::Tcp { .. } => (flow.received_bytes, "bytes received"),
        App::Udp { .. } | App::OnOff { .. } => (flow.sent_packets, "datagrams sent"),
        App::Replay { .. } => (flow.sent_packets, "frames sent"),
        App::Ping { .. } => (flow.sent_packets, "requests sent"),
        App::Arp { .. } => (flow.completed, "addresses found"),
        App::AllReduce { .. } | App::Incast { .. } => (flow.completed, "rounds completed"),
        App::FileService(_) => (flow.completed, "transactions completed"),
        _ => (flow.completed, "requests answered"),
    };
    let of = match work(&entry.app) {
        // Each host resolves its own addresses.
        Some(_) if matches!(entry.app, App::Arp { .. }) => format!(" of {}", flow.sent_packets),
        Some(all) => format!(" of {all}"),
        None => String::new(),
    };
    let since = match flow.last_ns {
        Some(last) => format!(", the last at {}", Time::from_nanos(last)),
        None => String::new(),
    };
    let end = if broke { "; its connection broke" } else { "" };
    format!("{name} from {from} to {to}: {done}{of} {unit}{since}{end}")
}

/// Returns the longest time between two items that a flow of an application sends by its own
/// schedule.
fn pause(app: &App) -> Span {
    match app {
        App::Udp { interval, .. } | App::Arp { interval } | App::Ping { interval, .. } => *interval,
        App::RequestResponse { think, service, .. } => *think + *service,
        App::Incast { think, .. } => *think,
        App::FileService(files) => files.server + files.client,
        App::Replay { frames, .. } => {
            let ticks = frames.iter().map(|frame| frame.at.ticks());
            let gaps = ticks.clone().skip(1).zip(ticks).map(|(next, at)| next.saturating_sub(at));
            Span::from_ticks(gaps.max().unwrap_or(0))
        }
        App::Tcp { .. } | App::AllReduce { .. } | App::OnOff { .. } => Span::ZERO,
    }
}

/// Returns the work of a flow of an application, if it has an end: in bytes, packets, rounds,
/// requests or transactions.
fn work(app: &App) -> Option<u64> {
    match app {
        App::Udp { count, .. } | App::RequestResponse { count, .. } => *count,
        App::Tcp { bytes, .. } => bytes.map(|bytes| bytes.0),
        App::Incast { rounds, .. } => *rounds,
        App::AllReduce { rounds, .. } => Some(*rounds),
        App::FileService(files) => files.transactions,
        App::Replay { frames, .. } => Some(frames.len() as u64),
        App::Arp { .. } => Some(1),
        App::Ping { count, .. } => Some(u64::from(*count)),
        App::OnOff { .. } => None,
    }
}
