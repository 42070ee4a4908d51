//! Results of probes, as a table or as JSON.

use axon_fabric::assemble::port_name;
use axon_fabric::model::{End, Fabric};
use axon_node::probe::{ProbeReport, ProbeTimes};
use axon_sim::probe::links_of;
use axon_wire::{PortNo, Span};
use serde::Serialize;
use std::fmt;

/// Picoseconds in a tick.
const PICOS: u64 = 10;

/// Minimum, mean and maximum of some spans.
#[derive(Clone, Copy, Default, Serialize)]
#[serde(into = "RangeJson")]
struct Range {
    least: u64,
    sum: u64,
    most: u64,
    count: u64,
}

impl Range {
    fn add(&mut self, span: Span) {
        let ticks = span.ticks();
        self.least = if self.count == 0 { ticks } else { self.least.min(ticks) };
        self.most = self.most.max(ticks);
        self.sum += ticks;
        self.count += 1;
    }

    fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }
}

/// Minimum, mean and maximum of some spans.
#[derive(Serialize)]
struct RangeJson {
    /// Minimum; 0 if nothing was measured, as are the others.
    min_ps: u64,
    /// Mean in picoseconds, rounded down.
    mean_ps: u64,
    /// Maximum of the samples, in picoseconds.
    max_ps: u64,
}

impl From<Range> for RangeJson {
    fn from(range: Range) -> RangeJson {
        let picoseconds = |ticks: u64| ticks * PICOS;
        RangeJson {
            min_ps: picoseconds(range.least),
            mean_ps: picoseconds(range.mean()),
            max_ps: picoseconds(range.most),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = |ticks: u64| match ticks % 100 {
            0 => format!("{}", ticks / 100),
            rest => format!("{}.{rest:02}", ticks / 100),
        };
        if self.count == 0 {
            return write!(f, "{:>11} {:>11} {:>11}", "-", "-", "-");
        }
        let [least, mean, most] = [self.least, self.mean(), self.most].map(nanos);
        write!(f, "{least:>11} {mean:>11} {most:>11}")
    }
}

/// A switch of the path, one entry for each time a probe passes it.
#[derive(Serialize)]
struct Hop {
    /// Name of the switch, `s1`.
    switch: String,
    /// Port by which probes enter.
    ingress: String,
    /// Port by which probes leave.
    egress: String,
    /// Time from ingress to egress.
    residence: Range,
    /// Maximum number of bytes queued at the egress when a probe arrived there.
    queued_bytes_max: u64,
}

/// A link of a path that was probed out and back: both directions together.
#[derive(Serialize)]
struct Link {
    /// Port nearer to the sender.
    near: String,
    /// Port at the other end.
    far: String,
    /// Time on the link, both directions together.
    round_trip: Range,
}

/// Summary of a report. In JSON, times are in picoseconds.
#[derive(Serialize)]
pub struct Summary {
    /// Description of the path.
    #[serde(rename = "path")]
    title: String,
    /// Size of a probe when sent, header included, without FCS.
    bytes: usize,
    /// Probes that the origin sent.
    sent: u32,
    /// Probes that did not return.
    lost: u32,
    /// Probes that returned without some unit's record.
    #[serde(rename = "without_all_records")]
    unread: u32,
    /// Switches of the path, in the order in which probes pass them.
    hops: Vec<Hop>,
    /// Links of the path; empty for an external Ethernet.
    links: Vec<Link>,
    /// Time from departure to return.
    total: Range,
}

impl Summary {
    /// Summarises probes along `path` of this fabric and back.
    pub(crate) fn of_path(fabric: &Fabric, path: &[usize], report: &ProbeReport) -> Summary {
        let names: Vec<&str> =
            path.iter().map(|&switch| fabric.switches[switch].name.as_str()).collect();
        let mut summary = Summary::empty(format!("{} and back", names.join(" > ")), report);
        let links = links_of(fabric, path).unwrap_or_default();
        summary.links = links
            .iter()
            .map(|&(near, far)| Link {
                near: end_name(fabric, near),
                far: end_name(fabric, far),
                round_trip: Range::default(),
            })
            .collect();
        // Out to the last switch, then the others in reverse, without the first.
        let inner = names.iter().skip(1);
        let back = names.iter().rev().skip(1).take(names.len().saturating_sub(2));
        let switches: Vec<&str> = inner.chain(back).copied().collect();
        summary.read(report, &switches);
        summary
    }

    /// Summarises Ethernet probes out of one port of a switch and in by another.
    pub(crate) fn of_ether(
        switch: &str,
        (from, to): (PortNo, PortNo),
        report: &ProbeReport,
    ) -> Summary {
        let [from, to] = [from, to].map(|port| port_name(switch, port));
        let mut summary =
            Summary::empty(format!("{from} > {to} through the Ethernet outside"), report);
        summary.read(report, &[]);
        summary
    }

    fn empty(title: String, report: &ProbeReport) -> Summary {
        Summary {
            title,
            bytes: report.plan.bytes,
            sent: report.sent,
            lost: report.lost,
            unread: 0,
            hops: Vec::new(),
            links: Vec::new(),
            total: Range::default(),
        }
    }

    fn read(&mut self, report: &ProbeReport, switches: &[&str]) {
        for back in &report.returns {
            match back.times().filter(|times| times.passages.len() == switches.len()) {
                Some(times) => self.add(&times, switches),
                None => self.unread += 1,
            }
        }
    }

    fn add(&mut self, times: &ProbeTimes, switches: &[&str]) {
        if self.hops.is_empty() {
            let hop = |(switch, passage): (&&str, &axon_node::probe::Passage)| Hop {
                switch: (*switch).to_owned(),
                ingress: port_name(switch, passage.ingress),
                egress: port_name(switch, passage.egress),
                residence: Range::default(),
                queued_bytes_max: 0,
            };
            self.hops = switches.iter().zip(&times.passages).map(hop).collect();
        }
        self.total.add(times.total);
        for (hop, passage) in self.hops.iter_mut().zip(&times.passages) {
            hop.residence.add(passage.residence);
            hop.queued_bytes_max = hop.queued_bytes_max.max(passage.queued.0);
        }
        let round_trips = times.round_trips().unwrap_or_default();
        for (link, round_trip) in self.links.iter_mut().zip(round_trips) {
            link.round_trip.add(round_trip);
        }
    }

    /// Returns whether every probe returned with all records.
    pub(crate) fn is_complete(&self) -> bool {
        self.lost == 0 && self.unread == 0 && self.total.count > 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let Summary { bytes, sent, lost, unread, .. } = self;
        write!(f, "{sent} probes of {bytes} bytes, {lost} lost")?;
        writeln!(
            f,
            "{}; times in ns",
            if *unread > 0 { format!(", {unread} without all records") } else { String::new() }
        )?;
        let columns = format!("{:>11} {:>11} {:>11}", "min", "mean", "max");
        if !self.hops.is_empty() {
            writeln!(
                f,
                "\n{:<12} {:<10} {:<10} {columns} {:>12}",
                "inside", "ingress", "egress", "queued bytes"
            )?;
        }
        for hop in &self.hops {
            let Hop { switch, ingress, egress, residence, queued_bytes_max } = hop;
            writeln!(
                f,
                "{switch:<12} {ingress:<10} {egress:<10} {residence} {queued_bytes_max:>12}"
            )?;
        }
        if !self.links.is_empty() {
            writeln!(f, "\n{:<12} {:<10} {:<10} {columns}", "link", "near", "far")?;
        }
        for Link { near, far, round_trip } in &self.links {
            writeln!(f, "{:<12} {near:<10} {far:<10} {round_trip}", "there, back")?;
        }
        writeln!(f, "\n{:<34} {}", "in all", self.total)
    }
}

/// Returns the name of one end of a link.
fn end_name(fabric: &Fabric, end: End) -> String {
    port_name(&fabric.switches[end.switch].name, end.port)
}
