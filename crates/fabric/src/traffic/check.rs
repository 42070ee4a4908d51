//! Conversion of the `traffic` section to checked data.

use super::entry::{
    ArpEntry, Entry, FileServiceEntry, IncastEntry, OnOffEntry, PingEntry, ReplayEntry,
    RequestEntry, SizesEntry, SpansEntry, TransportName, UdpEntry,
};
use super::{App, Congestion, FileService, Sizes, Tcp, Traffic, Transport};
use crate::capture;
use crate::error::Problem;
use crate::model::Fabric;
use crate::units::{BytesText, span_text};
use axon_wire::priority::Priority;
use axon_wire::{Bytes, Rate, Span};
use std::collections::BTreeSet;
use std::fs::File;

/// IPv4 and UDP headers, in bytes.
const UDP_HEADERS: u32 = 28;
/// Overhead of a packet on the wire, in bytes: Ethernet header, FCS, preamble and gap.
const WIRE_OVERHEAD: u64 = 14 + 4 + 8 + 12;
/// Shortest packet that fills a frame, in bytes.
const PACKET_BYTES_MIN: u64 = 46;
/// Maximum number of flows of one entry.
const FLOWS_MAX: usize = 1 << 20;
/// Maximum size of a capture, in bytes.
const CAPTURE_BYTES_MAX: u64 = 256 << 20;

const KINDS: &str = "exactly one of udp, tcp, request_response, incast, on_off, all_reduce, \
                     file_service, arp, replay, ping";

/// One entry with its key.
pub(super) struct Asked<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) entry: &'a Entry,
    key: String,
    pub(super) number: usize,
}

/// Resolves names and patterns.
pub(crate) fn resolve(fabric: &Fabric, entries: &[Entry]) -> Result<Vec<Traffic>, Problem> {
    let mut all: Vec<Traffic> = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let asked = Asked { fabric, entry, key: format!("traffic[{number}]"), number };
        let traffic = asked.traffic()?;
        if all.iter().any(|other| other.name == traffic.name) {
            let what = format!("`{}` names two entries", traffic.name);
            return Err(asked.problem("name", what, "another name"));
        }
        all.push(traffic);
    }
    Ok(all)
}

impl Asked<'_> {
    pub(super) fn problem(
        &self,
        key: &str,
        what: impl Into<String>,
        expected: impl Into<String>,
    ) -> Problem {
        let dot = if key.is_empty() { "" } else { "." };
        Problem::new(format!("{}{dot}{key}", self.key), what, expected)
    }

    fn traffic(&self) -> Result<Traffic, Problem> {
        let entry = self.entry;
        let hosts = self.hosts()?;
        let flows = match () {
            () if entry.arp.is_some() => self.questions(&hosts)?,
            () if entry.incast.is_some() => self.to_one(&hosts)?,
            () if entry.all_reduce.is_some() => self.cycle(&hosts)?,
            () => self.flows(&hosts)?,
        };
        if flows.len() > FLOWS_MAX {
            let what = format!("there are {} flows", flows.len());
            return Err(self.problem("", what, format!("at most {FLOWS_MAX}")));
        }
        let app = self.app(&flows)?;
        let start = entry.start.map_or(Span::ZERO, |start| start.0);
        let stop = entry.stop.map(|stop| stop.0);
        if let Some(stop) = stop.filter(|&stop| stop <= start) {
            let what =
                format!("it stops at {}, and starts at {}", span_text(stop), span_text(start));
            return Err(self.problem("stop", what, "a time after its start"));
        }
        let name = entry.name.clone();
        let name = name.unwrap_or_else(|| format!("{}{}", app.name(), self.number + 1));
        let taking_part: BTreeSet<usize> =
            flows.iter().flat_map(|&(from, to)| [from, to]).collect();
        let ordered = hosts.into_iter().filter(|host| taking_part.contains(host)).collect();
        let priority = self.priority(&app)?;
        Ok(Traffic { name, start, stop, hosts: ordered, flows, priority, app })
    }

    fn priority(&self, app: &App) -> Result<Priority, Problem> {
        let Some(number) = self.entry.priority else { return Ok(Priority::ZERO) };
        if matches!(app, App::Arp { .. } | App::Replay { .. }) {
            let what = format!("{} cannot have a priority", app.name());
            let expected = "no priority: ARP has no tag, and frames of a capture have their own";
            return Err(self.problem("priority", what, expected));
        }
        let expected = "0 to 7";
        let what = || format!("{number} is not a priority");
        Priority::new(number).ok_or_else(|| self.problem("priority", what(), expected))
    }

    fn app(&self, flows: &[(usize, usize)]) -> Result<App, Problem> {
        let entry = self.entry;
        let mut apps = Vec::new();
        if let Some(udp) = &entry.udp {
            apps.push(self.udp(udp, flows)?);
        }
        if let Some(tcp) = &entry.tcp {
            let bytes = tcp.bytes.map(|bytes| self.size("tcp.bytes", bytes)).transpose()?;
            let congestion = tcp.congestion_control.map(|written| written.algorithm());
            let congestion = congestion.unwrap_or_default();
            let tcp = Tcp { congestion, ..self.tcp("tcp.buffer", tcp.buffer)? };
            apps.push(App::Tcp { bytes, tcp });
        }
        if let Some(asked) = &entry.request_response {
            apps.push(self.request(asked)?);
        }
        if let Some(asked) = &entry.incast {
            apps.push(self.incast(asked)?);
        }
        if let Some(asked) = &entry.on_off {
            apps.push(self.on_off(asked, flows)?);
        }
        if let Some(asked) = &entry.all_reduce {
            apps.push(App::AllReduce {
                reduction: asked.algorithm,
                bytes: self.size("all_reduce.bytes", asked.bytes)?,
                rounds: self.count("all_reduce.rounds", asked.rounds)?.unwrap_or(1),
                tcp: self.tcp("all_reduce.buffer", asked.buffer)?,
            });
        }
        if let Some(asked) = &entry.file_service {
            apps.push(App::FileService(self.file_service(asked)?));
        }
        if let Some(ArpEntry { interval, .. }) = &entry.arp {
            let interval = interval.map_or(Span::from_secs(1), |interval| interval.0);
            apps.push(App::Arp { interval: self.above_zero("arp.interval", interval)? });
        }
        if let Some(asked) = &entry.replay {
            apps.push(self.replay(asked)?);
        }
        if let Some(PingEntry { interval, count }) = &entry.ping {
            let interval = interval.map_or(Span::from_secs(1), |interval| interval.0);
            let count = self.count("ping.count", count.map(u64::from))?.unwrap_or(10);
            let interval = self.above_zero("ping.interval", interval)?;
            apps.push(App::Ping { interval, count: count as u16 });
        }
        let found = apps.len();
        let mut apps = apps.into_iter();
        match (apps.next(), apps.next()) {
            (Some(app), None) => Ok(app),
            _ => Err(self.problem("", format!("it has {found} kinds of traffic"), KINDS)),
        }
    }

    fn above_zero(&self, key: &str, span: Span) -> Result<Span, Problem> {
        match span {
            Span::ZERO => Err(self.problem(key, "0s is out of range", "a time above zero")),
            span => Ok(span),
        }
    }

    pub(super) fn count(&self, key: &str, count: Option<u64>) -> Result<Option<u64>, Problem> {
        match count {
            Some(0) => Err(self.problem(key, "0 is out of range", "1 or more")),
            count => Ok(count),
        }
    }

    fn size(&self, key: &str, BytesText(bytes): BytesText) -> Result<Bytes, Problem> {
        self.size_in(key, bytes, 1..=1 << 50, "1 B or more")
    }

    fn size_in(
        &self,
        key: &str,
        bytes: Bytes,
        range: std::ops::RangeInclusive<u64>,
        expected: &str,
    ) -> Result<Bytes, Problem> {
        if range.contains(&bytes.0) {
            return Ok(bytes);
        }
        Err(self.problem(key, format!("{bytes} is out of range"), expected))
    }

    /// Returns the settings of connections with buffers of this size, or of the default size.
    fn tcp(&self, key: &str, buffer: Option<BytesText>) -> Result<Tcp, Problem> {
        let buffer = buffer.map_or(Bytes(128 << 10), |buffer| buffer.0);
        let buffer = self.size_in(key, buffer, 4096..=64 << 20, "4KiB to 64MiB")?;
        Ok(Tcp { congestion: Congestion::Reno, buffer })
    }

    fn transport(
        &self,
        name: TransportName,
        key: &str,
        buffer: Option<BytesText>,
    ) -> Result<Transport, Problem> {
        Ok(match name {
            TransportName::Tcp => Transport::Tcp(self.tcp(key, buffer)?),
            TransportName::Udp => Transport::Udp,
        })
    }

    /// Returns the maximum payload of a datagram, in bytes.
    fn payload_max(&self) -> u32 {
        u32::from(self.fabric.mtu) - UDP_HEADERS
    }

    fn payload(&self, key: &str, asked: Option<u32>) -> Result<u32, Problem> {
        let most = self.payload_max();
        let payload = asked.unwrap_or(most);
        if (1..=most).contains(&payload) {
            return Ok(payload);
        }
        let what = format!("{payload} is out of range with an mtu of {}", self.fabric.mtu);
        Err(self.problem(key, what, format!("1 to {most}")))
    }

    /// Returns the interval between datagrams at this rate of payload; without a rate, at the line
    /// rate of the slowest sender.
    fn interval(
        &self,
        key: &str,
        rate: Option<Rate>,
        payload: u32,
        flows: &[(usize, usize)],
    ) -> Result<Span, Problem> {
        let packet = u64::from(payload + UDP_HEADERS).max(PACKET_BYTES_MIN);
        let frame = Bytes(packet + WIRE_OVERHEAD);
        let senders = flows.iter().map(|&(from, _)| &self.fabric.hosts[from]);
        let Some(slowest) = senders.min_by_key(|host| host.wire.rate) else {
            return Err(self.problem("", "it has no sender", "two hosts or more"));
        };
        let least = slowest.wire.rate.time_for(frame);
        let Some(rate) = rate else { return Ok(least) };
        let interval = rate.time_for(Bytes(u64::from(payload)));
        if interval >= least {
            return Ok(interval);
        }
        let (name, link) = (&slowest.name, slowest.wire.rate);
        let most = u128::from(link.bits_per_second()) * u128::from(payload) / u128::from(frame.0);
        let what = format!("{rate} of payload do not fit {name}'s link of {link}");
        Err(self.problem(
            key,
            what,
            format!("at most {most} bps, or no rate for as fast as it can"),
        ))
    }

    fn udp(&self, asked: &UdpEntry, flows: &[(usize, usize)]) -> Result<App, Problem> {
        let payload = self.payload("udp.payload", asked.payload)?;
        let rate = asked.rate.map(|rate| rate.0);
        let interval = self.interval("udp.rate", rate, payload, flows)?;
        Ok(App::Udp { payload, interval, count: self.count("udp.count", asked.count)? })
    }

    /// Checks the size of a message: over UDP it must fit one datagram.
    fn message(&self, key: &str, bytes: Bytes, name: TransportName) -> Result<u32, Problem> {
        let (most, why) = match name {
            TransportName::Tcp => (u64::from(u32::MAX), "1 B to 4294967295 B".to_owned()),
            TransportName::Udp => {
                let most = u64::from(self.payload_max());
                (most, format!("1 B to {most} B, for one datagram"))
            }
        };
        Ok(self.size_in(key, bytes, 1..=most, &why)?.0 as u32)
    }

    fn request(&self, asked: &RequestEntry) -> Result<App, Problem> {
        let message = |key: &str, size: Option<BytesText>| {
            let bytes = size.map_or(Bytes(1), |size| size.0);
            self.message(&format!("request_response.{key}"), bytes, asked.transport)
        };
        Ok(App::RequestResponse {
            transport: self.transport(asked.transport, "", None)?,
            request: message("request", asked.request)?,
            response: message("response", asked.response)?,
            think: asked.think.map_or(Span::ZERO, |think| think.0),
            service: asked.service.map_or(Span::ZERO, |service| service.0),
            count: self.count("request_response.count", asked.count)?,
        })
    }

    fn incast(&self, asked: &IncastEntry) -> Result<App, Problem> {
        Ok(App::Incast {
            transport: self.transport(asked.transport, "incast.buffer", asked.buffer)?,
            bytes: self.message("incast.bytes", asked.bytes.0, asked.transport)?,
            think: asked.think.map_or(Span::ZERO, |think| think.0),
            rounds: self.count("incast.rounds", asked.rounds)?,
        })
    }

    fn on_off(&self, asked: &OnOffEntry, flows: &[(usize, usize)]) -> Result<App, Problem> {
        let payload = self.payload("on_off.payload", asked.payload)?;
        let rate = asked.rate.map(|rate| rate.0);
        let interval = self.interval("on_off.rate", rate, payload, flows)?;
        let off = match asked.off {
            SpansEntry::Fixed(span) => Sizes::Fixed(span.0.ticks()),
            SpansEntry::Exponential(mean) => {
                let mean = self.above_zero("on_off.off.exponential", mean.0)?;
                Sizes::Exponential { mean: mean.ticks() }
            }
        };
        Ok(App::OnOff { payload, interval, on: self.sizes("on_off.on", &asked.on)?, off })
    }

    fn sizes(&self, key: &str, asked: &SizesEntry) -> Result<Sizes, Problem> {
        let size = |name: &str, bytes| Ok(self.size(&format!("{key}.{name}"), bytes)?.0);
        match asked {
            SizesEntry::Fixed(bytes) => Ok(Sizes::Fixed(size("fixed", *bytes)?)),
            SizesEntry::Exponential(mean) => {
                Ok(Sizes::Exponential { mean: size("exponential", *mean)? })
            }
            &SizesEntry::Pareto { min, max, shape_per_mille } => {
                let (min, max) = (size("pareto.min", min)?, size("pareto.max", max)?);
                if min >= max {
                    let what = format!("{} is not above the smallest", Bytes(max));
                    return Err(self.problem(&format!("{key}.pareto.max"), what, "a larger size"));
                }
                if !(1..=100_000).contains(&shape_per_mille) {
                    let what = format!("{shape_per_mille} is out of range");
                    let key = format!("{key}.pareto.shape_per_mille");
                    return Err(self.problem(&key, what, "1 to 100000, 1200 for a shape of 1.2"));
                }
                Ok(Sizes::Pareto { min, max, shape_per_mille })
            }
            SizesEntry::Cdf(points) => {
                let points: Vec<_> =
                    points.iter().map(|&(size, share)| (size.0.0, share)).collect();
                let rising =
                    points.windows(2).all(|two| two[0].0 <= two[1].0 && two[0].1 < two[1].1);
                if !rising || points.last().is_none_or(|last| last.1 != 1000 || last.0 == 0) {
                    let expected = "rising pairs such as [[10kB, 500], [1MB, 1000]], the last 1000";
                    return Err(self.problem(
                        &format!("{key}.cdf"),
                        "it is not a distribution",
                        expected,
                    ));
                }
                Ok(Sizes::Cdf(points))
            }
        }
    }

    fn file_service(&self, asked: &FileServiceEntry) -> Result<FileService, Problem> {
        let size = |key: &str, asked: Option<BytesText>, default| {
            let bytes = asked.map_or(Bytes(default), |size| size.0);
            self.size(&format!("file_service.{key}"), BytesText(bytes))
        };
        let (size_min, size_max) =
            (size("size_min", asked.size_min, 500)?, size("size_max", asked.size_max, 9770)?);
        if size_min > size_max {
            let what = format!("{size_min} is above the largest, {size_max}");
            return Err(self.problem("file_service.size_min", what, "a smaller size"));
        }
        let bias = |key: &str, asked: Option<u32>| match asked.unwrap_or(5) {
            bias @ 0..=10 => Ok(bias),
            bias => {
                let what = format!("{bias} of ten is out of range");
                Err(self.problem(&format!("file_service.{key}"), what, "0 to 10"))
            }
        };
        // A call's header is sent together with its data.
        let most = match asked.transport {
            TransportName::Tcp => 1 << 20,
            TransportName::Udp => u64::from(self.payload_max()) - 64,
        };
        let default = if asked.transport == TransportName::Tcp { 8 << 10 } else { most.min(1024) };
        let block = asked.block.map_or(Bytes(default), |block| block.0);
        let expected = format!("1 B to {most} B");
        let block = self.size_in("file_service.block", block, 1..=most, &expected)?;
        let files = asked.files.unwrap_or(500);
        if !(1..=1_000_000).contains(&files) {
            let what = format!("{files} is out of range");
            return Err(self.problem("file_service.files", what, "1 to 1000000"));
        }
        Ok(FileService {
            transport: self.transport(asked.transport, "", None)?,
            files,
            transactions: self
                .count("file_service.transactions", Some(asked.transactions.unwrap_or(500)))?,
            size_min,
            size_max,
            block,
            read_bias: bias("read_bias", asked.read_bias)?,
            create_bias: bias("create_bias", asked.create_bias)?,
            server: asked.server.map_or(Span::ZERO, |span| span.0),
            client: asked.client.map_or(Span::ZERO, |span| span.0),
        })
    }

    fn replay(&self, asked: &ReplayEntry) -> Result<App, Problem> {
        let name = asked.file.display();
        let expected = "a pcap or pcapng file of Ethernet frames, at most 256 MiB";
        let refuse = |what: String| self.problem("replay.file", what, expected);
        let cannot = |error: std::io::Error| refuse(format!("{name} cannot be read: {error}"));
        let file = File::open(&asked.file).map_err(cannot)?;
        let bytes = file.metadata().map_err(cannot)?.len();
        if bytes > CAPTURE_BYTES_MAX {
            return Err(refuse(format!("{name} has {bytes} bytes")));
        }
        let frames = capture::read(file, CAPTURE_BYTES_MAX);
        let frames = frames.map_err(|error| refuse(format!("{name}: {error}")))?;
        if frames.is_empty() {
            return Err(refuse(format!("{name} has no frames")));
        }
        let file = asked.file.clone();
        Ok(App::Replay { file, frames: frames.into(), rewrite: asked.rewrite })
    }
}
