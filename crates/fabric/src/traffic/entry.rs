//! Syntax of the `traffic` section.

use super::{Congestion, Reduction, Rewrite};
use crate::file::tagged::Tagged;
use crate::units::{BytesText, RateText, SpanText};
use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::PathBuf;

/// An entry of the traffic section.
pub type Entry = Tagged<AppEntry, EntryEnds>;

/// Application of an entry.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppEntry {
    /// Datagrams at a constant rate.
    Udp(UdpEntry),
    /// A byte stream from `from` to `to`.
    Tcp(TcpEntry),
    /// Requests and responses, one after the other: `from` sends requests to `to`.
    RequestResponse(RequestEntry),
    /// `to` sends requests to all `hosts` at once, and waits for all responses before the next
    /// round.
    Incast(IncastEntry),
    /// Bursts of datagrams, with pauses.
    OnOff(OnOffEntry),
    /// Sum over all `hosts`.
    AllReduce(AllReduceEntry),
    /// A PostMark-like file service: `from` is a client of `to`.
    FileService(FileServiceEntry),
    /// ARP requests of `hosts`, by a pattern of their own.
    Arp(ArpEntry),
    /// Frames of a capture, sent by `from`.
    Replay(ReplayEntry),
    /// Echo requests from `from` to `to`.
    Ping(PingEntry),
}

/// One traffic entry. Exactly one key gives the application: `udp`, `tcp`, `request_response`,
/// `incast`, `on_off`, `all_reduce`, `file_service`, `arp`, `replay` or `ping`. The hosts are given
/// by `from` and `to`, `pairs`, or `pattern` with or without `hosts`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Entry")]
pub struct EntryEnds {
    /// Name in results; kind and number by default.
    pub name: Option<String>,
    /// Host that sends data or requests.
    pub from: Option<String>,
    /// Host that receives data or answers requests.
    pub to: Option<String>,
    /// Several pairs of `from` and `to`: `[[h1, h2], [h3, h4]]`.
    pub pairs: Option<Vec<[String; 2]>>,
    /// Priority of all its frames, in both directions: 0 to 7; 0, untagged, by default. Not for
    /// `arp`, which is untagged, and `replay`, whose frames have their own.
    #[schemars(range(max = 7))]
    pub priority: Option<u8>,
    /// Pattern of the flows between `hosts`.
    pub pattern: Option<Pattern>,
    /// Hosts by name, or a range of numbered ones such as `h1..h16`; all by default.
    pub hosts: Option<Vec<String>>,
    /// Start, counted from when the network is ready; 0 by default.
    pub start: Option<SpanText>,
    /// Stop, counted as `start` is; the end of the run by default.
    pub stop: Option<SpanText>,
}

/// Flows between a set of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// From each to one other, so that each receives from one: one random cycle through all of
    /// them.
    Permutation,
    /// From each to every other.
    AllToAll,
    /// From all others to `to`.
    Incast,
    /// From each to another that is drawn at random.
    Random,
    /// From the first to the second, from the third to the fourth, and so on.
    Pairs,
}

/// Datagrams at a constant rate.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UdpEntry {
    /// Bits of payload per second on each flow; the rate of the host's link by default.
    pub rate: Option<RateText>,
    /// Bytes of payload in each datagram, 1 to the MTU's limit; the maximum by default.
    pub payload: Option<u32>,
    /// Datagrams on each flow; until the end by default.
    pub count: Option<u64>,
}

/// A byte stream over TCP on each flow.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TcpEntry {
    /// Bytes to send; until the end by default.
    pub bytes: Option<BytesText>,
    /// Congestion control: `reno` (or `true`), the default; `cubic`; `dctcp`, with ECN; or `none`
    /// (or `false`), which leaves the buffers as the only limit.
    pub congestion_control: Option<CongestionControl>,
    /// Size of the send buffer and of the receive buffer in bytes, 4KiB to 64MiB; 128KiB by
    /// default.
    pub buffer: Option<BytesText>,
}

/// Congestion control: the name of an algorithm, or whether there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum CongestionControl {
    /// `true` is Reno, `false` is none.
    Switch(bool),
    /// The name of an algorithm.
    Named(Congestion),
}

impl CongestionControl {
    /// Returns the algorithm.
    pub(crate) fn algorithm(self) -> Congestion {
        match self {
            CongestionControl::Switch(true) => Congestion::Reno,
            CongestionControl::Switch(false) => Congestion::None,
            CongestionControl::Named(congestion) => congestion,
        }
    }
}

impl<'de> Deserialize<'de> for CongestionControl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CongestionControl, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

/// Visitor that parses a [`CongestionControl`].
struct Written;

impl Visitor<'_> for Written {
    type Value = CongestionControl;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reno, cubic, dctcp or none")
    }

    fn visit_bool<E: Error>(self, works: bool) -> Result<CongestionControl, E> {
        Ok(CongestionControl::Switch(works))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<CongestionControl, E> {
        Ok(CongestionControl::Named(match name {
            "reno" => Congestion::Reno,
            "cubic" => Congestion::Cubic,
            "dctcp" => Congestion::Dctcp,
            "none" => Congestion::None,
            _ => return Err(E::invalid_value(Unexpected::Str(name), &self)),
        }))
    }
}

/// Transport protocol of requests and responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportName {
    /// On a connection that stays open.
    #[default]
    Tcp,
    /// In datagrams; a request without a response is sent again after 10 ms.
    Udp,
}

/// Requests and responses, one after the other.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestEntry {
    /// Transport protocol of requests and responses; TCP by default.
    pub transport: TransportName,
    /// Bytes of a request; 1 by default.
    pub request: Option<BytesText>,
    /// Bytes of a response; 1 by default.
    pub response: Option<BytesText>,
    /// Time from a response to the next request; none by default.
    pub think: Option<SpanText>,
    /// Processor time of the server for each request; none by default.
    pub service: Option<SpanText>,
    /// Number of requests; until the end by default.
    pub count: Option<u64>,
}

/// Responses of many hosts to one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IncastEntry {
    /// Transport protocol of requests and responses; TCP by default.
    #[serde(default)]
    pub transport: TransportName,
    /// Bytes of each response.
    pub bytes: BytesText,
    /// Time from the last response to the next round; none by default.
    pub think: Option<SpanText>,
    /// Number of rounds; until the end by default.
    pub rounds: Option<u64>,
    /// Buffer size of each connection in bytes, which bounds its window; 128KiB by default.
    pub buffer: Option<BytesText>,
}

/// Bursts of datagrams with pauses between them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOffEntry {
    /// Bits of payload per second within a burst; the rate of the host's link by default.
    pub rate: Option<RateText>,
    /// Bytes of payload in each datagram; the MTU's maximum by default.
    pub payload: Option<u32>,
    /// Bytes of payload in a burst.
    pub on: SizesEntry,
    /// Lengths of the pauses between bursts.
    pub off: SpansEntry,
}

/// A distribution of sizes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SizesEntry {
    /// The same value each time.
    Fixed(BytesText),
    /// Exponential, with this mean.
    Exponential(BytesText),
    /// Pareto, cut off at both ends.
    Pareto {
        /// Minimum size in bytes.
        min: BytesText,
        /// Maximum size in bytes.
        max: BytesText,
        /// Shape, times 1000: 1200 for 1.2.
        shape_per_mille: u32,
    },
    /// By measured points: a size, and how many of a thousand are no larger; the last is 1000.
    /// Sizes are spread evenly between points.
    Cdf(Vec<(BytesText, u32)>),
}

/// A distribution of spans of time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpansEntry {
    /// The same value each time.
    Fixed(SpanText),
    /// Exponential, with this mean.
    Exponential(SpanText),
}

/// Sums over all hosts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllReduceEntry {
    /// Bytes at each host.
    pub bytes: BytesText,
    /// Algorithm of the reduction; a ring by default.
    #[serde(default)]
    pub algorithm: Reduction,
    /// Number of rounds, one after the other; 1 by default.
    pub rounds: Option<u64>,
    /// Buffer size of each connection in bytes, which bounds its window; 128KiB by default.
    pub buffer: Option<BytesText>,
}

/// A PostMark-like file service. Defaults are PostMark's.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileServiceEntry {
    /// Transport protocol of calls; TCP by default.
    pub transport: TransportName,
    /// Number of files before the transactions begin; 500 by default.
    pub files: Option<u32>,
    /// Number of transactions; 500 by default.
    pub transactions: Option<u64>,
    /// Size of the smallest file; 500 B by default.
    pub size_min: Option<BytesText>,
    /// Size of the largest file; 9.77 kB by default.
    pub size_max: Option<BytesText>,
    /// Maximum bytes that one call reads or writes; 8 KiB by default, over UDP 1 KiB.
    pub block: Option<BytesText>,
    /// Number of ten transactions that read rather than append; 5 by default.
    pub read_bias: Option<u32>,
    /// Number of ten transactions that create rather than delete; 5 by default.
    pub create_bias: Option<u32>,
    /// Processor time of the server for each call; none by default.
    pub server: Option<SpanText>,
    /// Processor time of the client between calls; none by default.
    pub client: Option<SpanText>,
}

/// MACs that each host requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArpPattern {
    /// Each host requests others, drawn uniformly at random.
    Random,
    /// A few servers are requested by nearly all hosts, and most requests stay in the subnet, as in
    /// the traces of the Lawrence Berkeley National Laboratory.
    Lbnl,
}

/// ARP requests for hosts, as hosts broadcast them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArpEntry {
    /// Hosts that each host requests.
    pub pattern: ArpPattern,
    /// Requests of each host, for `lbnl` on average; 5 by default.
    pub per_host: Option<u32>,
    /// Interval between requests of a host; 1 s by default.
    pub interval: Option<SpanText>,
}

/// Frames of a capture.
///
/// A frame counts as received if the target receives an equal one, whatever its addresses are. A
/// frame sent for another reason, such as an ARP request of its own, also counts if it equals a
/// frame of the capture; then more may be received than was sent, and the loss is unknown. Two
/// replays of one capture to one target differ only by their senders' MACs: not with `rewrite:
/// nothing`, and not in a PortLand network, which rewrites them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayEntry {
    /// A pcap or pcapng file of Ethernet frames; its path is relative to this file.
    pub file: PathBuf,
    /// Fields rewritten in the frames; MACs by default.
    #[serde(default)]
    pub rewrite: Rewrite,
}

/// ICMP echo requests, as `ping` sends them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PingEntry {
    /// Interval between requests; 1 s by default.
    pub interval: Option<SpanText>,
    /// Number of requests, up to 65,535; 10 by default.
    pub count: Option<u16>,
}
