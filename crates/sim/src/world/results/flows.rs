//! Results of the fabric's traffic, by flow.

use crate::engine::station::StationNode;
use crate::world::nodes::Nodes;
use crate::world::running::{Name, Running, Work, port_of};
use axon_fabric::model::{Fabric, Traffic};
use axon_fabric::traffic::App;
use axon_simhost::Ends;
use axon_simhost::apps::{AppId, FileStats, FlowStats, Histogram, Received, rate};
use axon_simhost::lost::LostDatagrams;
use axon_wire::{Span, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// Distribution of times, in nanoseconds rounded down. Quantiles are at most 1.6 % above the true
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Times {
    /// Number of measured times.
    pub count: u64,
    /// Minimum of the samples, in nanoseconds.
    pub min_ns: u64,
    /// Mean of the samples, in nanoseconds.
    pub mean_ns: u64,
    /// Median of the samples, in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// Maximum of the samples, in nanoseconds.
    pub max_ns: u64,
}

impl Times {
    /// Returns the distribution of a histogram, or `None` if it is empty.
    pub(crate) fn of(histogram: &Histogram) -> Option<Times> {
        Some(Times {
            count: histogram.count(),
            min_ns: histogram.min()?.as_nanos(),
            mean_ns: histogram.mean()?.as_nanos(),
            p50_ns: histogram.quantile(500)?.as_nanos(),
            p99_ns: histogram.quantile(990)?.as_nanos(),
            max_ns: histogram.max()?.as_nanos(),
        })
    }
}

/// Combined times of all flows of an entry of the traffic section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EntryTimes {
    /// Name of the entry in the traffic section.
    pub name: String,
    /// Number of flows of the entry; the report's flows are in the order of entries.
    pub flows: usize,
    /// Durations of completed items, or latencies of datagrams.
    pub times: Option<Times>,
}

/// Results of a file service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// Transactions per thousand seconds: `1234567` for 1234.567 a second.
    pub transactions_per_1000s: u64,
    /// File bytes read per second, while transactions ran.
    pub read_bytes_per_second: u64,
    /// File bytes written per second, from the creation of the pool on.
    pub written_bytes_per_second: u64,
    /// Numbers of files created, deleted, read and appended to.
    pub operations: [u64; 4],
}

/// Results of one flow of an entry of the traffic section. In JSON, times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowReport {
    /// Name of the entry in the traffic section.
    pub name: String,
    /// Application: `udp`, `tcp`, ...
    pub app: &'static str,
    /// Host that sends or requests.
    pub from: String,
    /// Host that receives or answers; `*` for several.
    pub to: String,
    /// Number of datagrams, replayed frames, writes or requests sent.
    pub sent_packets: u64,
    /// Payload bytes sent; frame bytes of a replay.
    pub sent_bytes: u64,
    /// Number of datagrams, replayed frames or reads received at the other end, or of answers.
    pub received_packets: u64,
    /// Payload bytes received; frame bytes of a replay.
    pub received_bytes: u64,
    /// Number of datagrams, frames or requests sent and not received so far, lost or in flight, if
    /// these are counted. `None` if more was received than sent: a frame was duplicated, or a
    /// replay's sink counted frames of others.
    pub missing_packets: Option<u64>,
    /// Number of missing datagrams that have ended for a counted reason, at most all; unknown for
    /// replays and pings.
    pub lost_packets: Option<u64>,
    /// Lost packets by reason. In networks that flood, they include copies sent elsewhere.
    pub lost: BTreeMap<&'static str, u64>,
    /// Number of missing packets not known to be lost: in queues, on wires, in hosts.
    pub in_flight_packets: Option<u64>,
    /// Number of datagrams that arrived after one sent later.
    pub reordered: u64,
    /// Number of retransmitted segments or repeated requests.
    pub retransmits: u64,
    /// Number of stream bytes that differ from those sent; nonzero only through a bug.
    pub wrong_bytes: u64,
    /// Time of the first transmission, in nanoseconds.
    pub first_ns: Option<u64>,
    /// Time of the last arrival, in nanoseconds.
    pub last_ns: Option<u64>,
    /// Payload rate from the first transmission to the last arrival, in bits per second.
    pub goodput_bps: Option<u64>,
    /// Number of completed transfers, rounds or transactions.
    pub completed: u64,
    /// Number of failed requests and connections.
    pub failed: u64,
    /// True if the flow should have ended and has not, or its connection failed: the run has
    /// failed.
    pub unfinished: bool,
    /// Durations of completed items.
    pub times: Option<Times>,
    /// One-way latencies of datagrams.
    pub latency: Option<Times>,
    /// Time at which all work was complete, in nanoseconds.
    pub done_ns: Option<u64>,
    /// Results of a file service.
    pub files: Option<FileReport>,
}

/// Returns whether a flow never started for want of an address.
pub fn never_started(flow: &FlowReport) -> bool {
    flow.failed > 0 && flow.sent_packets == 0
}

/// Started flows of the fabric's traffic.
#[derive(Clone, Copy)]
pub struct Flows<'a> {
    fabric: &'a Fabric,
    nodes: &'a Nodes,
    running: &'a [Running],
}

impl<'a> Flows<'a> {
    pub(crate) fn new(fabric: &'a Fabric, nodes: &'a Nodes, running: &'a [Running]) -> Flows<'a> {
        Flows { fabric, nodes, running }
    }

    /// Returns the flows, in the order of the entries of the traffic.
    pub(super) fn running(&self) -> impl Iterator<Item = (&'a Running, &'a Traffic)> {
        self.running.iter().map(|running| (running, &self.fabric.traffic[running.entry]))
    }

    /// Returns the results so far, in the order of the entries and flows. A flow whose host has
    /// restarted has lost its counters.
    pub fn report(&self) -> Vec<FlowReport> {
        let lost = self.lost_datagrams();
        self.running.iter().map(|running| self.report_of(running, &lost)).collect()
    }

    /// Returns the datagrams lost so far, in all stations.
    pub(super) fn lost_datagrams(&self) -> LostDatagrams {
        let mut lost = LostDatagrams::default();
        self.nodes.engine().stations().for_each(|station| {
            lost.merge(&station.adapter().ledger().lost);
            if let StationNode::Host(host) = &station.node {
                lost.merge(host.lost());
            }
        });
        lost
    }

    /// Returns the simulated time.
    pub(super) fn now(&self) -> Time {
        self.nodes.engine().now()
    }

    /// Returns whether everything started has completed its work. Flows that run until the end have
    /// not.
    pub fn are_done(&self) -> bool {
        self.running.iter().all(|running| self.is_done(running))
    }

    /// Returns whether one flow has completed its work.
    pub(super) fn is_done(&self, running: &Running) -> bool {
        match running.work {
            Work::None => true,
            Work::Ping(id) => self.nodes.ping_stats(id).is_none_or(|stats| stats.done),
            Work::App(host, id) => {
                self.nodes.flow_stats(host, id).is_none_or(|stats| stats.done.is_some())
            }
            Work::ArpHost(host) => self.nodes.arp_host(host).is_none_or(|host| host.is_done()),
        }
    }

    /// Returns the times of each entry of the traffic: durations of its flows' completed items, or
    /// else latencies of their datagrams, for all of its flows together.
    pub(crate) fn times(&self) -> Vec<EntryTimes> {
        let names = self.fabric.traffic.iter();
        let mut all: Vec<(EntryTimes, Histogram)> = names
            .map(|entry| {
                let name = entry.name.clone();
                (EntryTimes { name, flows: 0, times: None }, Histogram::default())
            })
            .collect();
        for running in self.running {
            let (entry, histogram) = &mut all[running.entry];
            entry.flows += 1;
            match running.work {
                Work::Ping(id) => {
                    let times =
                        self.nodes.host(id.host).and_then(|host| host.ping_times(id.number));
                    times.into_iter().for_each(|times| histogram.merge(times));
                }
                Work::App(host, id) => {
                    let Some(stats) = self.nodes.flow_stats(host, id) else { continue };
                    histogram.merge(&stats.times);
                    if stats.times.count() == 0
                        && let Some(received) = self.received_by(running, host, id)
                    {
                        histogram.merge(&received.latency);
                    }
                }
                Work::None | Work::ArpHost(_) => {}
            }
        }
        let done = |(entry, histogram): (EntryTimes, Histogram)| EntryTimes {
            times: Times::of(&histogram),
            ..entry
        };
        all.into_iter().map(done).collect()
    }

    /// Returns the datagrams, writes or requests that each entry of the traffic has sent so far.
    pub(crate) fn sent(&self) -> Vec<u64> {
        let (mut sent, nothing) = (vec![0; self.fabric.traffic.len()], LostDatagrams::default());
        for running in self.running {
            sent[running.entry] += self.report_of(running, &nothing).sent_packets;
        }
        sent
    }

    /// Returns for each flow, in the order of [`Flows::report`], the payload bytes received
    /// so far and the receiving hosts. The bytes are `None` before the first transmission and while
    /// one of the flow's hosts has no power.
    pub(crate) fn received(
        &self,
    ) -> impl Iterator<Item = (Option<u64>, impl Iterator<Item = usize>)> {
        self.running.iter().map(|running| {
            let sinks = running.sinks.iter().map(|&(host, _)| host);
            let at_sender = match running.work {
                Work::App(host, _) if running.sinks.is_empty() => Some(host),
                _ => None,
            };
            (self.received_bytes(running), sinks.chain(at_sender))
        })
    }

    fn received_bytes(&self, running: &'a Running) -> Option<u64> {
        let Work::App(host, id) = running.work else { return None };
        let stats = self.nodes.flow_stats(host, id)?;
        stats.first_sent?;
        match running.sinks[..] {
            [] => Some(stats.received.bytes.0),
            [(sink, _)] if self.nodes.host(sink).is_none() => None,
            _ => Some(self.at_sinks(running, host, id)?.map(|at| at.bytes.0).sum()),
        }
    }

    /// Returns the results of one flow, without determining whether it is unfinished.
    pub(super) fn report_of(&self, running: &'a Running, lost: &LostDatagrams) -> FlowReport {
        let hosts = &self.fabric.hosts;
        let name = |name: &Name| match name {
            Name::Host(host) => hosts[*host].name.clone(),
            Name::Several => "*".to_owned(),
        };
        let entry = &self.fabric.traffic[running.entry];
        let mut report = FlowReport {
            name: entry.name.clone(),
            app: entry.app.name(),
            from: name(&running.from),
            to: name(&running.to),
            ..empty()
        };
        match running.work {
            Work::None => report.failed = 1,
            Work::Ping(id) => self.ping_report(id, &mut report),
            Work::App(host, id) => {
                if let Some(stats) = self.nodes.flow_stats(host, id) {
                    fill(stats, self.received_by(running, host, id).as_ref(), &mut report);
                }
                if let Some(ends) = self.ends(running, host, id) {
                    tell_apart(lost.of(ends), &mut report);
                }
            }
            Work::ArpHost(host) => {
                if let Some(host) = self.nodes.arp_host(host) {
                    let stats = host.stats();
                    (report.sent_packets, report.received_packets) =
                        (stats.requests, stats.answered);
                    (report.completed, report.failed) = (stats.answered, stats.failed);
                }
            }
        }
        report
    }

    /// Returns what the powered sinks of a flow have received from its sender.
    fn at_sinks(
        self,
        running: &'a Running,
        host: usize,
        id: AppId,
    ) -> Option<impl Iterator<Item = &'a Received>> {
        // A replay has no port: its sinks count every frame that looks like one of the capture and
        // goes the same way.
        let from = (self.nodes.address(host)?, self.nodes.host(host)?.source_port(id).unwrap_or(0));
        let sinks = running.sinks.iter();
        Some(sinks.filter_map(move |&(at, sink)| self.nodes.host(at)?.received_from(sink, from)))
    }

    /// Returns the total that a flow's sinks have received, if there are sinks.
    fn received_by(&self, running: &'a Running, host: usize, id: AppId) -> Option<Received> {
        self.nodes.host(running.sinks.first()?.0)?;
        let mut at_sinks = self.at_sinks(running, host, id)?;
        let mut all = at_sinks.next().cloned().unwrap_or_default();
        at_sinks.for_each(|received| all.merge(received));
        Some(all)
    }

    /// Returns the ends of a flow of datagrams.
    fn ends(&self, running: &Running, host: usize, id: AppId) -> Option<Ends> {
        let app = &self.fabric.traffic[running.entry].app;
        let (App::Udp { .. } | App::OnOff { .. }, &Name::Host(to)) = (app, &running.to) else {
            return None;
        };
        let from = (self.nodes.address(host)?, self.nodes.host(host)?.source_port(id)?);
        Some((from, (self.nodes.address(to)?, port_of(running.entry))))
    }

    fn ping_report(&self, id: crate::PingId, report: &mut FlowReport) {
        let Some(host) = self.nodes.host(id.host) else { return };
        if let Some(stats) = host.ping_stats(id.number) {
            report.sent_packets = u64::from(stats.sent);
            report.received_packets = u64::from(stats.received);
            report.missing_packets = Some(report.sent_packets - report.received_packets);
            report.completed = report.received_packets;
        }
        report.times = host.ping_times(id.number).and_then(Times::of);
    }
}

fn empty() -> FlowReport {
    FlowReport {
        name: String::new(),
        app: "",
        from: String::new(),
        to: String::new(),
        sent_packets: 0,
        sent_bytes: 0,
        received_packets: 0,
        received_bytes: 0,
        missing_packets: None,
        lost_packets: None,
        lost: BTreeMap::new(),
        in_flight_packets: None,
        reordered: 0,
        retransmits: 0,
        wrong_bytes: 0,
        first_ns: None,
        last_ns: None,
        goodput_bps: None,
        completed: 0,
        failed: 0,
        unfinished: false,
        times: None,
        latency: None,
        done_ns: None,
        files: None,
    }
}

fn fill(stats: &FlowStats, at_sink: Option<&Received>, report: &mut FlowReport) {
    let received = at_sink.unwrap_or(&stats.received);
    let nanos = |at: Option<Time>| at.map(Time::as_nanos);
    report.sent_packets = stats.sent_packets;
    report.sent_bytes = stats.sent_bytes.0;
    report.received_packets = received.packets;
    report.received_bytes = received.bytes.0;
    report.reordered = received.reordered;
    report.wrong_bytes = received.wrong_bytes;
    report.retransmits = stats.retransmits;
    report.first_ns = nanos(stats.first_sent);
    report.last_ns = nanos(received.last);
    if let (Some(first), Some(last)) = (stats.first_sent, received.last) {
        let goodput = rate(received.bytes, last.since(first));
        report.goodput_bps = goodput.map(|rate| rate.bits_per_second());
    }
    if at_sink.is_some() && matches!(report.app, "udp" | "on_off" | "replay") {
        report.missing_packets = stats.sent_packets.checked_sub(received.packets);
    }
    report.completed = stats.completed;
    report.failed = stats.failed;
    report.times = Times::of(&stats.times);
    report.latency = Times::of(&received.latency);
    report.done_ns = nanos(stats.done);
    report.files = stats.files.and_then(|files| file_report(stats, &files, received.last?));
}

/// Divides the missing datagrams into lost ones and those in flight.
fn tell_apart(lost: BTreeMap<&'static str, u64>, report: &mut FlowReport) {
    let Some(missing) = report.missing_packets else { return };
    let known = lost.values().sum::<u64>().min(missing);
    report.lost = lost;
    (report.lost_packets, report.in_flight_packets) = (Some(known), Some(missing - known));
}

fn file_report(stats: &FlowStats, files: &FileStats, end: Time) -> Option<FileReport> {
    let ran = end.since(files.began?);
    let all = end.since(stats.first_sent?);
    let second = u128::from(Span::from_secs(1).ticks());
    let per = |count: u128, span: Span| {
        let rate = (count * second).checked_div(u128::from(span.ticks()));
        u64::try_from(rate.unwrap_or(0)).unwrap_or(u64::MAX)
    };
    Some(FileReport {
        transactions_per_1000s: per(u128::from(stats.completed) * 1000, ran),
        read_bytes_per_second: per(u128::from(files.read_bytes.0), ran),
        written_bytes_per_second: per(u128::from(files.written_bytes.0), all),
        operations: [files.created, files.deleted, files.reads, files.appends],
    })
}
