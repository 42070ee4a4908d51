//! Conversion of the `traffic` section to checked data.

use super::entry::{
    AppEntry, Entry, FileServiceEntry, OnOffEntry, ReplayEntry, RequestEntry, SizesEntry,
    SpansEntry, TransportName,
};
use super::flows::Ends;
use super::place::Place;
use super::{App, Congestion, FileService, Sizes, Tcp, Traffic, Transport};
use crate::capture;
use crate::error::Problem;
use crate::file;
use crate::model::Fabric;
use crate::names;
use crate::units::{BytesText, RateText, SpanText, span_text};
use axon_wire::priority::Priority;
use axon_wire::{Bytes, Span};
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

/// Resolves names and patterns.
pub(crate) fn resolve(fabric: &Fabric, entries: &[Entry]) -> Result<Vec<Traffic>, Problem> {
    let mut all: Vec<Traffic> = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let place = Place::of(number);
        let traffic = traffic(fabric, &place, (number, entry))?;
        if all.iter().any(|other| other.name == traffic.name) {
            let what = format!("`{}` names two entries", traffic.name);
            return Err(place.problem("name", what, "another name"));
        }
        all.push(traffic);
    }
    Ok(all)
}

fn traffic(
    fabric: &Fabric,
    place: &Place,
    (number, Entry { kinds, common: entry }): (usize, &Entry),
) -> Result<Traffic, Problem> {
    let [kind] = &kinds[..] else {
        let what = format!("it has {} kinds of traffic", kinds.len());
        let expected = format!("exactly one of {}", file::names::<AppEntry>().join(", "));
        return Err(place.problem("", what, expected));
    };
    let ends = Ends::new(fabric, place, (number, entry));
    let hosts = ends.hosts()?;
    let flows = match kind {
        AppEntry::Arp(arp) => ends.questions(&hosts, arp)?,
        AppEntry::Incast(_) => ends.to_one(&hosts)?,
        AppEntry::AllReduce(_) => ends.cycle(&hosts)?,
        _ => ends.flows(&hosts)?,
    };
    if flows.len() > FLOWS_MAX {
        let what = format!("there are {} flows", flows.len());
        return Err(place.problem("", what, format!("at most {FLOWS_MAX}")));
    }
    let app = Asked { fabric, place, flows: &flows }.app(kind)?;
    let start = entry.start.map_or(Span::ZERO, |start| start.0);
    let stop = entry.stop.map(|stop| stop.0);
    if let Some(stop) = stop.filter(|&stop| stop <= start) {
        let what = format!("it stops at {}, and starts at {}", span_text(stop), span_text(start));
        return Err(place.problem("stop", what, "a time after its start"));
    }
    let name = entry.name.clone();
    let name = name.unwrap_or_else(|| format!("{}{}", app.name(), number + 1));
    let taking_part: BTreeSet<usize> = flows.iter().flat_map(|&(from, to)| [from, to]).collect();
    let hosts = hosts.into_iter().filter(|host| taking_part.contains(host)).collect();
    let priority = entry.priority.map_or(Ok(Priority::ZERO), |value| priority(place, &app, value));
    Ok(Traffic { name, start, stop, hosts, flows, priority: priority?, app })
}

fn priority(place: &Place, app: &App, value: u8) -> Result<Priority, Problem> {
    if matches!(app, App::Arp { .. } | App::Replay { .. }) {
        let what = format!("{} cannot have a priority", app.name());
        let expected = "no priority: ARP has no tag, and frames of a capture have their own";
        return Err(place.problem("priority", what, expected));
    }
    names::priority(place.key("priority"), value)
}

/// Limits that the application of an entry is checked against.
struct Asked<'a> {
    fabric: &'a Fabric,
    place: &'a Place,
    flows: &'a [(usize, usize)],
}

impl Asked<'_> {
    fn app(&self, kind: &AppEntry) -> Result<App, Problem> {
        let place = self.place;
        let second = |interval: Option<SpanText>| interval.map_or(Span::from_secs(1), |of| of.0);
        let zero = |span: Option<SpanText>| span.map_or(Span::ZERO, |span| span.0);
        Ok(match kind {
            AppEntry::Udp(asked) => {
                let payload = self.payload("udp.payload", asked.payload)?;
                let interval = self.interval("udp.rate", asked.rate, payload)?;
                App::Udp { payload, interval, count: place.count("udp.count", asked.count)? }
            }
            AppEntry::Tcp(asked) => {
                let bytes = asked.bytes.map(|bytes| place.size("tcp.bytes", bytes)).transpose()?;
                let congestion = asked.congestion_control.map(|written| written.algorithm());
                let congestion = congestion.unwrap_or_default();
                let tcp = Tcp { congestion, ..self.tcp("tcp.buffer", asked.buffer)? };
                App::Tcp { bytes, tcp }
            }
            AppEntry::RequestResponse(asked) => self.request(asked)?,
            AppEntry::Incast(asked) => App::Incast {
                transport: self.transport(asked.transport, "incast.buffer", asked.buffer)?,
                bytes: self.message("incast.bytes", asked.bytes.0, asked.transport)?,
                think: zero(asked.think),
                rounds: place.count("incast.rounds", asked.rounds)?,
            },
            AppEntry::OnOff(asked) => self.on_off(asked)?,
            AppEntry::AllReduce(asked) => App::AllReduce {
                reduction: asked.algorithm,
                bytes: place.size("all_reduce.bytes", asked.bytes)?,
                rounds: place.count("all_reduce.rounds", asked.rounds)?.unwrap_or(1),
                tcp: self.tcp("all_reduce.buffer", asked.buffer)?,
            },
            AppEntry::FileService(asked) => App::FileService(self.file_service(asked)?),
            AppEntry::Arp(asked) => {
                App::Arp { interval: place.above_zero("arp.interval", second(asked.interval))? }
            }
            AppEntry::Replay(asked) => self.replay(asked)?,
            AppEntry::Ping(asked) => {
                let count = place.count("ping.count", asked.count.map(u64::from))?.unwrap_or(10);
                let interval = place.above_zero("ping.interval", second(asked.interval))?;
                App::Ping { interval, count: count as u16 }
            }
        })
    }

    /// Returns the settings of connections with buffers of this size, or of the default size.
    fn tcp(&self, key: &str, buffer: Option<BytesText>) -> Result<Tcp, Problem> {
        let buffer = buffer.map_or(Bytes(128 << 10), |buffer| buffer.0);
        let buffer = self.place.size_in(key, buffer, 4096..=64 << 20, "4KiB to 64MiB")?;
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
        Err(self.place.problem(key, what, format!("1 to {most}")))
    }

    /// Returns the interval between datagrams at this rate of payload; without a rate, at the line
    /// rate of the slowest sender.
    fn interval(&self, key: &str, rate: Option<RateText>, payload: u32) -> Result<Span, Problem> {
        let packet = u64::from(payload + UDP_HEADERS).max(PACKET_BYTES_MIN);
        let frame = Bytes(packet + WIRE_OVERHEAD);
        let senders = self.flows.iter().map(|&(from, _)| &self.fabric.hosts[from]);
        let Some(slowest) = senders.min_by_key(|host| host.wire.rate) else {
            return Err(self.place.problem("", "it has no sender", "two hosts or more"));
        };
        let least = slowest.wire.rate.time_for(frame);
        let Some(RateText(rate)) = rate else { return Ok(least) };
        let interval = rate.time_for(Bytes(u64::from(payload)));
        if interval >= least {
            return Ok(interval);
        }
        let (name, link) = (&slowest.name, slowest.wire.rate);
        let most = u128::from(link.bits_per_second()) * u128::from(payload) / u128::from(frame.0);
        let what = format!("{rate} of payload do not fit {name}'s link of {link}");
        Err(self.place.problem(
            key,
            what,
            format!("at most {most} bps, or no rate for as fast as it can"),
        ))
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
        Ok(self.place.size_in(key, bytes, 1..=most, &why)?.0 as u32)
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
            count: self.place.count("request_response.count", asked.count)?,
        })
    }

    fn on_off(&self, asked: &OnOffEntry) -> Result<App, Problem> {
        let payload = self.payload("on_off.payload", asked.payload)?;
        let interval = self.interval("on_off.rate", asked.rate, payload)?;
        let off = match asked.off {
            SpansEntry::Fixed(span) => Sizes::Fixed(span.0.ticks()),
            SpansEntry::Exponential(mean) => {
                let mean = self.place.above_zero("on_off.off.exponential", mean.0)?;
                Sizes::Exponential { mean: mean.ticks() }
            }
        };
        Ok(App::OnOff { payload, interval, on: self.sizes("on_off.on", &asked.on)?, off })
    }

    fn sizes(&self, key: &str, asked: &SizesEntry) -> Result<Sizes, Problem> {
        let size = |name: &str, bytes| Ok(self.place.size(&format!("{key}.{name}"), bytes)?.0);
        match asked {
            SizesEntry::Fixed(bytes) => Ok(Sizes::Fixed(size("fixed", *bytes)?)),
            SizesEntry::Exponential(mean) => {
                Ok(Sizes::Exponential { mean: size("exponential", *mean)? })
            }
            &SizesEntry::Pareto { min, max, shape_per_mille } => {
                let (min, max) = (size("pareto.min", min)?, size("pareto.max", max)?);
                if min >= max {
                    let what = format!("{} is not above the smallest", Bytes(max));
                    return Err(self.place.problem(
                        &format!("{key}.pareto.max"),
                        what,
                        "a larger size",
                    ));
                }
                if !(1..=100_000).contains(&shape_per_mille) {
                    let what = format!("{shape_per_mille} is out of range");
                    let key = format!("{key}.pareto.shape_per_mille");
                    return Err(self.place.problem(
                        &key,
                        what,
                        "1 to 100000, 1200 for a shape of 1.2",
                    ));
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
                    return Err(self.place.problem(
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
            self.place.size(&format!("file_service.{key}"), BytesText(bytes))
        };
        let (size_min, size_max) =
            (size("size_min", asked.size_min, 500)?, size("size_max", asked.size_max, 9770)?);
        if size_min > size_max {
            let what = format!("{size_min} is above the largest, {size_max}");
            return Err(self.place.problem("file_service.size_min", what, "a smaller size"));
        }
        let bias = |key: &str, asked: Option<u32>| match asked.unwrap_or(5) {
            bias @ 0..=10 => Ok(bias),
            bias => {
                let what = format!("{bias} of ten is out of range");
                Err(self.place.problem(&format!("file_service.{key}"), what, "0 to 10"))
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
        let block = self.place.size_in("file_service.block", block, 1..=most, &expected)?;
        let files = asked.files.unwrap_or(500);
        if !(1..=1_000_000).contains(&files) {
            let what = format!("{files} is out of range");
            return Err(self.place.problem("file_service.files", what, "1 to 1000000"));
        }
        Ok(FileService {
            transport: self.transport(asked.transport, "", None)?,
            files,
            transactions: self
                .place
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
        let refuse = |what: String| self.place.problem("replay.file", what, expected);
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
