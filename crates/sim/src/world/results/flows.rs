//! What has come of the fabric's traffic, flow by flow.

use crate::engine::station::StationNode;
use crate::host::apps::{AppId, FileStats, FlowStats, Histogram, Received, rate};
use crate::host::datagram::Ends;
use crate::host::lost::LostDatagrams;
use crate::world::World;
use crate::world::running::{Name, Running, Work, port_of};
use axon_fabric::traffic::App;
use axon_wire::{Span, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// Spans of time, in nanoseconds rounded down; quantiles are at most 1.6 % above the true
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Times {
    /// The spans that were measured.
    pub count: u64,
    /// The shortest of the spans, in nanoseconds.
    pub min_ns: u64,
    /// The mean of the spans, in nanoseconds.
    pub mean_ns: u64,
    /// What half of them do not exceed.
    pub p50_ns: u64,
    /// What 99 of 100 do not exceed.
    pub p99_ns: u64,
    /// The longest of the spans, in nanoseconds.
    pub max_ns: u64,
}

impl Times {
    /// A histogram's, if it has any.
    pub fn of(histogram: &Histogram) -> Option<Times> {
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

/// The times of all flows of an entry of the traffic section, put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EntryTimes {
    /// The name of the entry in the traffic section.
    pub name: String,
    /// How many flows it has; those of the report are in the order of entries.
    pub flows: usize,
    /// How long what they completed took, or how long their datagrams were in flight.
    pub times: Option<Times>,
}

/// What a file service has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// Transactions per thousand seconds: `1234567` for 1234.567 a second.
    pub transactions_per_1000s: u64,
    /// Bytes of files read a second, while transactions ran.
    pub read_bytes_per_second: u64,
    /// Bytes of files written a second, from the creation of the pool on.
    pub written_bytes_per_second: u64,
    /// Files created, deleted, read and appended to.
    pub operations: [u64; 4],
}

/// One flow of one entry of the traffic section. As JSON, times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowReport {
    /// The name of its entry in the traffic section.
    pub name: String,
    /// What runs: `udp`, `tcp`, ...
    pub app: &'static str,
    /// The host that sends or asks.
    pub from: String,
    /// The host that receives or answers; `*` for several.
    pub to: String,
    /// Datagrams, frames of a replay, writes or requests sent.
    pub sent_packets: u64,
    /// Bytes of payload sent; of a replay, of frames.
    pub sent_bytes: u64,
    /// Datagrams, frames of a replay or reads received at the other end, or answers.
    pub received_packets: u64,
    /// Bytes of payload received; of a replay, of frames.
    pub received_bytes: u64,
    /// Datagrams, frames or requests sent for which nothing was received so far, where they are
    /// what is counted: they are lost or in flight. Nobody knows it if more was received than
    /// sent: a frame came twice, or a replay's sink took others for its own.
    pub missing_packets: Option<u64>,
    /// Of those, at most all, datagrams that have ended for a counted reason; not known of replays
    /// and pings.
    pub lost_packets: Option<u64>,
    /// The same by reason. In networks that flood, copies that went elsewhere are among them.
    pub lost: BTreeMap<&'static str, u64>,
    /// Of the missing, those that are neither lost nor received: in queues, on wires, in hosts.
    pub in_flight_packets: Option<u64>,
    /// Datagrams that came after one that was sent later.
    pub reordered: u64,
    /// Segments or requests that were sent again.
    pub retransmits: u64,
    /// Bytes of a stream that were not what was sent: none, or there is a bug.
    pub wrong_bytes: u64,
    /// When the first was sent.
    pub first_ns: Option<u64>,
    /// When the last was received.
    pub last_ns: Option<u64>,
    /// Payload received per time from the first sending to the last arrival, in bits per
    /// second.
    pub goodput_bps: Option<u64>,
    /// Transfers, rounds or transactions that came to their end.
    pub completed: u64,
    /// What was given up or broke.
    pub failed: u64,
    /// Whether it should have come to its end and has not, or its connection broke: the run has
    /// failed.
    pub unfinished: bool,
    /// How long each completed one took.
    pub times: Option<Times>,
    /// From sending to arrival, of datagrams.
    pub latency: Option<Times>,
    /// When all that there was to do was done.
    pub done_ns: Option<u64>,
    /// Of a file service.
    pub files: Option<FileReport>,
}

impl World {
    /// What has come of the fabric's traffic so far, in the order of its entries and flows.
    /// A flow whose host has restarted has lost its counts.
    pub fn traffic_report(&self) -> Vec<FlowReport> {
        let lost = self.lost_datagrams();
        self.traffic.iter().map(|running| self.flow_report(running, &lost)).collect()
    }

    /// The datagrams that were lost so far, in all stations.
    pub(super) fn lost_datagrams(&self) -> LostDatagrams {
        let mut lost = LostDatagrams::default();
        self.engine().stations().for_each(|station| {
            lost.merge(&station.adapter.lost);
            if let StationNode::Host(host) = &station.node {
                lost.merge(&host.stack.nic.lost);
            }
        });
        lost
    }

    /// Whether all that was started has done all that it had to do; what runs until the end
    /// has not.
    pub fn traffic_is_done(&self) -> bool {
        self.traffic.iter().all(|running| match running.work {
            Work::None => true,
            Work::Ping(id) => self.ping_stats(id).is_none_or(|stats| stats.done),
            Work::App(host, id) => {
                self.flow_stats(host, id).is_none_or(|stats| stats.done.is_some())
            }
            Work::ArpHost(host) => self.arp_host(host).is_none_or(|host| host.is_done()),
        })
    }

    /// For each entry of the traffic, how long what its flows completed took, or else how long
    /// their datagrams were in flight: all of its flows together.
    pub fn traffic_times(&self) -> Vec<EntryTimes> {
        let names = self.fabric().traffic.iter();
        let mut all: Vec<(EntryTimes, Histogram)> = names
            .map(|entry| {
                let name = entry.name.clone();
                (EntryTimes { name, flows: 0, times: None }, Histogram::default())
            })
            .collect();
        for running in &self.traffic {
            let (entry, histogram) = &mut all[running.entry];
            entry.flows += 1;
            match running.work {
                Work::Ping(id) => {
                    let times = self.host(id.host).and_then(|host| host.ping_times(id.number));
                    times.into_iter().for_each(|times| histogram.merge(times));
                }
                Work::App(host, id) => {
                    let Some(stats) = self.flow_stats(host, id) else { continue };
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

    /// Datagrams, writes or requests that each entry of the traffic has sent so far.
    pub(crate) fn traffic_sent(&self) -> Vec<u64> {
        let (mut sent, nothing) = (vec![0; self.fabric().traffic.len()], LostDatagrams::default());
        for running in &self.traffic {
            sent[running.entry] += self.flow_report(running, &nothing).sent_packets;
        }
        sent
    }

    /// For each flow, in the order of [`World::traffic_report`]: the bytes of payload that it has
    /// received so far, `None` before it has sent anything and while a host of it has no power; and
    /// the hosts that receive it.
    pub(crate) fn traffic_received(
        &self,
    ) -> impl Iterator<Item = (Option<u64>, impl Iterator<Item = usize>)> {
        self.traffic.iter().map(|running| {
            let sinks = running.sinks.iter().map(|&(host, _)| host);
            let at_sender = match running.work {
                Work::App(host, _) if running.sinks.is_empty() => Some(host),
                _ => None,
            };
            (self.received_bytes(running), sinks.chain(at_sender))
        })
    }

    fn received_bytes(&self, running: &Running) -> Option<u64> {
        let Work::App(host, id) = running.work else { return None };
        let stats = self.flow_stats(host, id)?;
        stats.first_sent?;
        match running.sinks[..] {
            [] => Some(stats.received.bytes.0),
            [(sink, _)] if self.host(sink).is_none() => None,
            _ => Some(self.at_sinks(running, host, id)?.map(|at| at.bytes.0).sum()),
        }
    }

    /// What has come of one flow; whether it is unfinished is left open.
    pub(super) fn flow_report(&self, running: &Running, lost: &LostDatagrams) -> FlowReport {
        let hosts = &self.fabric().hosts;
        let name = |name: &Name| match name {
            Name::Host(host) => hosts[*host].name.clone(),
            Name::Several => "*".to_owned(),
        };
        let entry = &self.fabric().traffic[running.entry];
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
                if let Some(stats) = self.flow_stats(host, id) {
                    fill(stats, self.received_by(running, host, id).as_ref(), &mut report);
                }
                if let Some(ends) = self.ends(running, host, id) {
                    tell_apart(lost.of(ends), &mut report);
                }
            }
            Work::ArpHost(host) => {
                if let Some(host) = self.arp_host(host) {
                    let stats = host.stats();
                    (report.sent_packets, report.received_packets) =
                        (stats.requests, stats.answered);
                    (report.completed, report.failed) = (stats.answered, stats.failed);
                }
            }
        }
        report
    }

    /// What the sinks of a flow have received from its sender, of those with power.
    fn at_sinks<'a>(
        &'a self,
        running: &'a Running,
        host: usize,
        id: AppId,
    ) -> Option<impl Iterator<Item = &'a Received>> {
        // A replay has no port: its sinks count whatever looks like a frame of the capture and
        // goes the same way.
        let from = (self.address(host)?, self.host(host)?.source_port(id).unwrap_or(0));
        let sinks = running.sinks.iter();
        Some(sinks.filter_map(move |&(at, sink)| self.host(at)?.received_from(sink, from)))
    }

    /// The same together, if there are sinks.
    fn received_by(&self, running: &Running, host: usize, id: AppId) -> Option<Received> {
        self.host(running.sinks.first()?.0)?;
        let mut at_sinks = self.at_sinks(running, host, id)?;
        let mut all = at_sinks.next().cloned().unwrap_or_default();
        at_sinks.for_each(|received| all.merge(received));
        Some(all)
    }

    /// Where the datagrams of a flow come from and go to, if it is one of datagrams.
    fn ends(&self, running: &Running, host: usize, id: AppId) -> Option<Ends> {
        let app = &self.fabric().traffic[running.entry].app;
        let (App::Udp { .. } | App::OnOff { .. }, &Name::Host(to)) = (app, &running.to) else {
            return None;
        };
        let from = (self.address(host)?, self.host(host)?.source_port(id)?);
        Some((from, (self.address(to)?, port_of(running.entry))))
    }

    fn ping_report(&self, id: crate::PingId, report: &mut FlowReport) {
        let Some(host) = self.host(id.host) else { return };
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

/// What of the datagrams that are missing is lost, and what is in flight.
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
