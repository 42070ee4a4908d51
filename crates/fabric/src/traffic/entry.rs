//! The section as it is written.

use super::{Congestion, Reduction, Rewrite};
use crate::units::{BytesText, RateText, SpanText};
use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::PathBuf;

/// One entry. Exactly one key says what runs: `udp`, `tcp`, `request_response`, `incast`,
/// `on_off`, `all_reduce`, `file_service`, `arp`, `replay` or `ping`. Where it runs: `from`
/// and `to`, `pairs`, or `pattern` with or without `hosts`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// Its name in results; its kind and number by default.
    pub name: Option<String>,
    /// Datagrams at a constant rate.
    pub udp: Option<UdpEntry>,
    /// A byte stream from `from` to `to`.
    pub tcp: Option<TcpEntry>,
    /// Requests and answers, one after the other: `from` asks `to`.
    pub request_response: Option<RequestEntry>,
    /// `to` asks all `hosts` at once, and waits for all answers before it asks again.
    pub incast: Option<IncastEntry>,
    /// Bursts of datagrams, with pauses.
    pub on_off: Option<OnOffEntry>,
    /// All `hosts` sum up what each has.
    pub all_reduce: Option<AllReduceEntry>,
    /// A PostMark-like file service: `from` is a client of `to`.
    pub file_service: Option<FileServiceEntry>,
    /// ARP requests of `hosts`, by a pattern of their own.
    pub arp: Option<ArpEntry>,
    /// `from` sends the frames of a capture.
    pub replay: Option<ReplayEntry>,
    /// Echo requests from `from` to `to`.
    pub ping: Option<PingEntry>,
    /// The host that sends or asks.
    pub from: Option<String>,
    /// The host that receives or answers.
    pub to: Option<String>,
    /// Several of these: `[[h1, h2], [h3, h4]]`.
    pub pairs: Option<Vec<[String; 2]>>,
    /// The priority of all its frames, both ways: 0 to 7; 0, without a tag, by default. Not for
    /// `arp`, which has no tag, and `replay`, whose frames have their own.
    #[schemars(range(max = 7))]
    pub priority: Option<u8>,
    /// The flows between `hosts`.
    pub pattern: Option<Pattern>,
    /// Hosts by name, or a range of numbered ones such as `h1..h16`; all by default.
    pub hosts: Option<Vec<String>>,
    /// When it starts, after the network is ready; at once by default.
    pub start: Option<SpanText>,
    /// When it stops, counted as `start` is; at the end of the run by default.
    pub stop: Option<SpanText>,
}

/// The flows between a set of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Each to one other, and each from one other: one random cycle through all of them.
    Permutation,
    /// Each to every other.
    AllToAll,
    /// All others to `to`.
    Incast,
    /// Each to another that is drawn at random.
    Random,
    /// The first to the second, the third to the fourth, and so on.
    Pairs,
}

/// Datagrams at a constant rate.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UdpEntry {
    /// Bits of payload per second on each flow; as fast as the host's link by default.
    pub rate: Option<RateText>,
    /// Bytes of payload in each, 1 to what the MTU leaves; the most by default.
    pub payload: Option<u32>,
    /// How many on each flow; until the end by default.
    pub count: Option<u64>,
}

/// A byte stream over TCP on each flow.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TcpEntry {
    /// How many bytes; until the end by default.
    pub bytes: Option<BytesText>,
    /// What decides how much may be in flight: `reno` (or `true`), the default; `cubic`; `dctcp`,
    /// with ECN; or `none` (or `false`), the buffers alone.
    pub congestion_control: Option<CongestionControl>,
    /// Bytes of the send and of the receive buffer, 4KiB to 64MiB; 128KiB by default.
    pub buffer: Option<BytesText>,
}

/// A congestion control as it is written: its name, or whether there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum CongestionControl {
    /// `true` is Reno, `false` is none.
    Switch(bool),
    /// The name of an algorithm.
    Named(Congestion),
}

impl CongestionControl {
    /// The algorithm.
    pub fn algorithm(self) -> Congestion {
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

/// Reads a [`CongestionControl`].
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

/// The transport protocol that calls use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportName {
    /// On a connection that stays open.
    #[default]
    Tcp,
    /// In datagrams; a request without an answer is sent again after 10 ms.
    Udp,
}

/// Requests and answers, one after the other.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestEntry {
    /// How they travel; over TCP by default.
    pub transport: TransportName,
    /// Bytes of a request; 1 by default.
    pub request: Option<BytesText>,
    /// Bytes of an answer; 1 by default.
    pub response: Option<BytesText>,
    /// From an answer to the next request; none by default.
    pub think: Option<SpanText>,
    /// The server's processor time for each request; none by default.
    pub service: Option<SpanText>,
    /// How many requests; until the end by default.
    pub count: Option<u64>,
}

/// Answers of many to one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IncastEntry {
    /// How requests and answers travel; over TCP by default.
    #[serde(default)]
    pub transport: TransportName,
    /// Bytes of each answer.
    pub bytes: BytesText,
    /// From the last answer to the next round; none by default.
    pub think: Option<SpanText>,
    /// How many rounds; until the end by default.
    pub rounds: Option<u64>,
    /// Bytes of the buffers of each connection, which bound its window; 128KiB by default.
    pub buffer: Option<BytesText>,
}

/// Bursts of datagrams with pauses between them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOffEntry {
    /// Bits of payload per second within a burst; as fast as the host's link by default.
    pub rate: Option<RateText>,
    /// Bytes of payload in each datagram; what the MTU leaves by default.
    pub payload: Option<u32>,
    /// Bytes of payload in a burst.
    pub on: SizesEntry,
    /// The lengths of the pauses between bursts.
    pub off: SpansEntry,
}

/// A distribution of sizes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SizesEntry {
    /// The same size every time.
    Fixed(BytesText),
    /// Exponential, with this mean.
    Exponential(BytesText),
    /// Pareto, cut off at both ends.
    Pareto {
        /// The smallest size that is drawn.
        min: BytesText,
        /// The largest size that is drawn.
        max: BytesText,
        /// A thousand times the shape: 1200 for 1.2.
        shape_per_mille: u32,
    },
    /// By measured points: a size, and how many of a thousand are no larger. The last says
    /// 1000. Between points sizes are spread evenly.
    Cdf(Vec<(BytesText, u32)>),
}

/// A distribution of spans of time.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpansEntry {
    /// The same time every time.
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
    /// How the data moves; around a ring by default.
    #[serde(default)]
    pub algorithm: Reduction,
    /// How often, one after the other; once by default.
    pub rounds: Option<u64>,
    /// Bytes of the buffers of each connection, which bound its window; 128KiB by default.
    pub buffer: Option<BytesText>,
}

/// A PostMark-like file service. What is not given is PostMark's default.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileServiceEntry {
    /// How calls travel; over TCP by default.
    pub transport: TransportName,
    /// Files before the transactions begin; 500 by default.
    pub files: Option<u32>,
    /// Transactions; 500 by default.
    pub transactions: Option<u64>,
    /// The smallest file; 500 B by default.
    pub size_min: Option<BytesText>,
    /// The largest; 9.77 kB by default.
    pub size_max: Option<BytesText>,
    /// The most that one call reads or writes; 8 KiB by default, over UDP 1 KiB.
    pub block: Option<BytesText>,
    /// Of ten transactions, how many read and do not append; 5 by default.
    pub read_bias: Option<u32>,
    /// Of ten transactions, how many create and do not delete; 5 by default.
    pub create_bias: Option<u32>,
    /// The server's processor time for each call; none by default.
    pub server: Option<SpanText>,
    /// The client's processor time between calls; none by default.
    pub client: Option<SpanText>,
}

/// Which MACs each host asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArpPattern {
    /// Each host asks for others drawn at random, all alike.
    Random,
    /// A few servers are asked for by nearly everyone, and most questions stay in the
    /// subnet: like the traces of the Lawrence Berkeley National Laboratory.
    Lbnl,
}

/// ARP requests for hosts, as hosts broadcast them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArpEntry {
    /// Which hosts each host asks for.
    pub pattern: ArpPattern,
    /// Questions of each host: of `lbnl` on average. 5 by default.
    pub per_host: Option<u32>,
    /// From one question of a host to its next; 1 s by default.
    pub interval: Option<SpanText>,
}

/// The frames of a capture.
///
/// A frame counts as received where the target takes in one that looks like it, whatever its
/// addresses are. So one that is there for another reason, such as an ARP request of its own,
/// counts too if it equals a frame of the capture; then more may be received than was sent, and
/// the loss is unknown. Two replays of one capture to one target differ by their
/// senders' MACs alone: not with `rewrite: nothing`, and not in a PortLand network, which rewrites
/// them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayEntry {
    /// A pcap or pcapng file of Ethernet frames; its path is relative to this file.
    pub file: PathBuf,
    /// What is changed in the frames; MACs by default.
    #[serde(default)]
    pub rewrite: Rewrite,
}

/// ICMP echo requests, as `ping` sends them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PingEntry {
    /// From one request to the next; 1 s by default.
    pub interval: Option<SpanText>,
    /// How many, up to 65,535; 10 by default.
    pub count: Option<u16>,
}
