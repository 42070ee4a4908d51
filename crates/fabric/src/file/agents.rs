//! Agents, as they are written.

use crate::file::MacText;
use crate::units::{BytesText, RateText, SpanText};
use axon_plane::qcn::CpConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::Ipv4Addr;

/// An agent: a program beside a switch that looks at packets. It is exactly one of `cache`,
/// `congestion`, `forwarder` and `run`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Its name; `a1`, `a2`, ... by their order by default.
    pub name: Option<String>,
    /// A switch (`s1`) or port (`s1-p7`).
    pub at: String,
    /// A cache in the network, which answers requests that it knows the answer to.
    pub cache: Option<Cache>,
    /// A congestion responder, which answers marked frames that meet a long queue.
    pub congestion: Option<Congestion>,
    /// A forwarder: a load balancer or a router.
    pub forwarder: Option<Forwarder>,
    /// A program of your own and its arguments; Linux only.
    pub run: Option<Vec<String>>,
    /// Which frames go to it, where the switch is programmable: those that meet one of these. It
    /// sends them back with the addresses that they have. With `congestion` it gets copies, and the
    /// frames go on. Not for `forwarder`, which has an address of its own.
    #[serde(default)]
    pub select: Vec<Select>,
    /// What it gets of a frame.
    #[serde(default)]
    pub payload: Payload,
    /// The first bytes of a frame that it gets with `payload: cached`, 14 to 9000; what a shipped
    /// agent needs by default, and 128 with `run`.
    #[schemars(range(min = 14, max = 9000))]
    pub head_bytes: Option<u16>,
    /// Payload buffers for frames that come in, 1 to 32768; 384 by default (paper 003 section 3.2).
    #[schemars(range(min = 1, max = 32768))]
    pub buffers: Option<u16>,
    /// Payload buffers for frames of its own, 1 to 32767; 64 by default.
    #[schemars(range(min = 1, max = 32767))]
    pub send_buffers: Option<u16>,
    /// How long it may hold a packet, 1us to 1h; the switch takes it back then. 10s by default.
    pub hold_max: Option<SpanText>,
    /// What becomes of a packet that finds no payload buffer.
    #[serde(default)]
    pub when_full: WhenAgentFull,
    /// How long its CPU takes for a packet, up to 1s; none by default. The simulator's only.
    pub service: Option<SpanText>,
    /// Rate of the way between switch and agent; 4Gbps by default (paper 004 section 4.1). The
    /// simulator's only.
    pub rate: Option<RateText>,
    /// One-way latency of it; 1us by default. The simulator's only.
    pub latency: Option<SpanText>,
}

/// What an agent gets of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// The first bytes; the rest stays in a buffer of the switch.
    #[default]
    Cached,
    /// All of it, copied there and back.
    Copied,
}

/// What becomes of a packet that finds no payload buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenAgentFull {
    /// It waits in the queue of the agent port.
    #[default]
    Wait,
    /// It is dropped and counted.
    Drop,
}

/// Frames for an agent: those that meet all that is said. With ports or a protocol, IPv4 without
/// options in its header.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Select {
    /// The EtherType behind the addresses, 0x600 to 0xffff.
    pub ethertype: Option<u16>,
    /// The protocol that IPv4 carries.
    pub protocol: Option<Transport>,
    /// The source port of TCP or UDP.
    pub source_port: Option<u16>,
    /// The destination port of TCP or UDP.
    pub destination_port: Option<u16>,
    /// Any other bytes of the frame.
    pub bytes: Vec<BytesAt>,
}

/// Bytes of a frame.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BytesAt {
    /// The place of the first, 0 to 127, counted from the destination MAC.
    pub at: u8,
    /// Their values in hex: `0800`.
    pub value: String,
    /// Which bits count, in hex; all by default.
    pub mask: Option<String>,
}

/// A transport protocol over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP, as RFC 9293 has it.
    Tcp,
    /// UDP, as RFC 768 has it.
    Udp,
}

/// A cache in the network (paper 004 section 6.1).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cache {
    /// How requests and replies are matched.
    pub protocol: CacheProtocol,
    /// The servers' UDP port; 5000 by default, 11211 with `memcached`.
    pub port: Option<u16>,
    /// With `protocol: id`, where the ID is.
    pub id: Option<IdAt>,
    /// What it may keep, up to 64GiB; 64MiB by default.
    pub bytes: Option<BytesText>,
    /// How long an answer is given, 1ms to 1d; 10s with `memcached`, otherwise for as long as there
    /// is room.
    pub ttl: Option<SpanText>,
}

/// A congestion responder: QCN's congestion point in software (paper 004 section 5.2). `select`
/// names the frames that their sources mark, which are its samples.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Congestion {
    /// The egress whose queue it watches: a port of its switch (`s1-p3`), or a host there (`h2`).
    pub egress: String,
    /// The length that the queue is held at (Q_EQ), 100B at least; 26kB by default.
    #[serde(default = "set_point")]
    pub set_point: BytesText,
    /// The growth of the queue counts 2^this times as much as its length; 1 by default.
    #[serde(default = "weight_log2")]
    #[schemars(range(min = -10, max = 10))]
    pub weight_log2: i8,
    /// Bytes of the marked frame behind its tags that a message carries; 0 by default.
    #[serde(default = "header_bytes")]
    #[schemars(range(max = 64))]
    pub header_bytes: u8,
    /// The priority of the messages; 6 by default.
    #[serde(default = "cnm_priority")]
    #[schemars(range(max = 7))]
    pub cnm_priority: u8,
}

fn set_point() -> BytesText {
    BytesText(CpConfig::default().set_point)
}

fn weight_log2() -> i8 {
    CpConfig::default().weight_log2
}

fn header_bytes() -> u8 {
    CpConfig::default().header_octets_min
}

fn cnm_priority() -> u8 {
    6
}

/// How requests and replies are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheProtocol {
    /// By an ID at the same place of both.
    #[default]
    Id,
    /// By the key in the text protocol of memcached over UDP.
    Memcached,
}

/// The place of an ID.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdAt {
    /// Where it begins, in bytes from the first of the UDP payload, 0 to 1000; 0 by default.
    #[serde(default)]
    pub offset: u16,
    /// Its length in bytes, 1 to 64; 8 by default.
    #[serde(default = "eight")]
    pub bytes: u16,
}

fn eight() -> u16 {
    8
}

/// A forwarder (paper 003). It is exactly one of `balancer` and `routes`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Forwarder {
    /// Its address in the subnet: that of the service, or of the router.
    pub address: Ipv4Addr,
    /// Its MAC; `02:61:` and its number by default.
    pub mac: Option<MacText>,
    /// A load balancer of one service.
    pub balancer: Option<Balancer>,
    /// A router, and its routes.
    pub routes: Option<Vec<Route>>,
}

/// A load balancer of one service.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Balancer {
    /// The transport protocol of the service.
    pub protocol: Transport,
    /// The port of the service.
    pub port: u16,
    /// The servers: hosts with a fixed address, by name, or addresses.
    pub backends: Vec<Backends>,
    /// The port of the servers; that of the service by default.
    pub backend_port: Option<u16>,
    /// How long a connection may be idle, 1s to 1d; 5min for UDP and 124min for TCP by default.
    pub idle: Option<SpanText>,
    /// Connections at most, 1 to 64511; as many by default.
    #[schemars(range(min = 1, max = 64511))]
    pub connections: Option<u16>,
}

/// A server: a host's name or an address.
pub type Backends = String;

/// A route of a router.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The destinations: `10.1.0.0/16`, or `0.0.0.0/0` for all.
    pub to: String,
    /// The next hop; the destination itself by default.
    pub via: Option<Ipv4Addr>,
}
