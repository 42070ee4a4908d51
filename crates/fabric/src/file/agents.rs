//! The `agents` section.

use crate::file::{MacText, Tagged};
use crate::units::{BytesText, RateText, SpanText};
use axon_plane::qcn::CpConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use std::net::Ipv4Addr;

/// An entry of the agents section.
pub type Agent = Tagged<AgentWhat, AgentKeys>;

/// Kind of an agent, by its key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentWhat {
    /// A cache in the network, which answers requests from its contents.
    Cache(Cache),
    /// A congestion responder, which answers marked frames that meet a long queue.
    Congestion(Congestion),
    /// A forwarder: a load balancer or a router.
    Forwarder(Forwarder),
    /// Program to run, with its arguments; Linux only.
    Run(Vec<String>),
}

/// An agent: a program at a switch that processes packets. Exactly one of `cache`, `congestion`,
/// `forwarder` and `run` must be given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Agent")]
pub struct AgentKeys {
    /// Name; by default `a1`, `a2`, ... in order.
    pub name: Option<String>,
    /// Switch (`s1`) or port (`s1-p7`).
    pub at: String,
    /// Frames that go to the agent, where the switch is programmable: those that match one of
    /// these. It sends them back with their addresses unchanged. With `congestion` it gets copies,
    /// and the frames continue. Not for `forwarder`, which has an address of its own.
    #[serde(default)]
    pub select: Vec<Select>,
    /// Part of a frame that the agent receives.
    #[serde(default)]
    pub payload: Payload,
    /// First bytes of a frame that the agent receives with `payload: cached`, 14 to 9000; by
    /// default the number that a shipped agent needs, and 128 with `run`.
    #[schemars(range(min = 14, max = 9000))]
    pub head_bytes: Option<u16>,
    /// Payload buffers for incoming frames, 1 to 32768; 384 by default (paper 003 section 3.2).
    #[schemars(range(min = 1, max = 32768))]
    pub buffers: Option<u16>,
    /// Payload buffers for frames that the agent sends, 1 to 32767; 64 by default.
    #[schemars(range(min = 1, max = 32767))]
    pub send_buffers: Option<u16>,
    /// Maximum time that the agent may hold a packet, 1us to 1h; the switch then takes it back. 10s
    /// by default.
    pub hold_max: Option<SpanText>,
    /// Action on a packet for which no payload buffer is free.
    #[serde(default)]
    pub when_full: WhenAgentFull,
    /// CPU time of the agent for a packet, up to 1s; none by default. Simulator only.
    pub service: Option<SpanText>,
    /// Rate of the link between switch and agent; 4Gbps by default (paper 004 section 4.1).
    /// Simulator only.
    pub rate: Option<RateText>,
    /// One-way latency of the link between switch and agent; 1us by default. Simulator only.
    pub latency: Option<SpanText>,
}

/// Part of a frame that an agent receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// The first bytes; the rest stays in a buffer of the switch.
    #[default]
    Cached,
    /// The whole frame, copied both ways.
    Copied,
}

/// Action on a packet for which no payload buffer is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhenAgentFull {
    /// The packet waits in the queue of the agent port.
    #[default]
    Wait,
    /// The packet is dropped and counted.
    Drop,
}

/// Frames for an agent: those that match all given fields. With ports or a protocol, only IPv4
/// without header options matches.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Select {
    /// EtherType after the addresses, 0x600 to 0xffff.
    pub ethertype: Option<u16>,
    /// Protocol in the IPv4 header.
    pub protocol: Option<Transport>,
    /// Source port of TCP or UDP.
    pub source_port: Option<u16>,
    /// Destination port of TCP or UDP.
    pub destination_port: Option<u16>,
    /// Other bytes of the frame.
    pub bytes: Vec<BytesAt>,
}

/// Bytes of a frame to match.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BytesAt {
    /// Offset of the first byte, 0 to 127, counted from the destination MAC.
    pub at: u8,
    /// Values of the bytes in hex: `0800`.
    pub value: String,
    /// Mask of the bits that must match, in hex; all by default.
    pub mask: Option<String>,
}

/// A transport protocol over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP segments (RFC 9293).
    Tcp,
    /// UDP datagrams (RFC 768).
    Udp,
}

/// A cache in the network (paper 004 section 6.1).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cache {
    /// Method by which requests and replies are matched.
    pub protocol: CacheProtocol,
    /// The servers' UDP port; 5000 by default, 11211 with `memcached`.
    pub port: Option<u16>,
    /// Position of the ID, with `protocol: id`.
    pub id: Option<IdAt>,
    /// Memory for answers, up to 64GiB; 64MiB by default.
    pub bytes: Option<BytesText>,
    /// Lifetime of a cached answer, 1ms to 1d; 10s with `memcached`, otherwise unlimited while
    /// there is room.
    pub ttl: Option<SpanText>,
}

/// A congestion responder: QCN's congestion point in software (paper 004 section 5.2). `select`
/// matches the frames that their sources mark, which are its samples.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Congestion {
    /// Egress whose queue it watches: a port of its switch (`s1-p3`), or a host there (`h2`).
    pub egress: String,
    /// Queue length to hold (Q_EQ), 100B at least; 26kB by default.
    #[serde(default = "set_point")]
    pub set_point: BytesText,
    /// Weight of the queue's growth relative to its length is 2^this; 1 by default.
    #[serde(default = "weight_log2")]
    #[schemars(range(min = -10, max = 10))]
    pub weight_log2: i8,
    /// Bytes of the marked frame after its tags that a message carries; 0 by default.
    #[serde(default = "header_bytes")]
    #[schemars(range(max = 64))]
    pub header_bytes: u8,
    /// Priority of the messages; 6 by default.
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

/// Method by which requests and replies are matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheProtocol {
    /// By an ID at the same offset in both.
    #[default]
    Id,
    /// By the key in memcached's text protocol over UDP.
    Memcached,
}

/// Position of an ID.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdAt {
    /// Offset in bytes from the start of the UDP payload, 0 to 1000; 0 by default.
    #[serde(default)]
    pub offset: u16,
    /// Length in bytes, 1 to 64; 8 by default.
    #[serde(default = "eight")]
    pub bytes: u16,
}

fn eight() -> u16 {
    8
}

/// A forwarder, with its role.
pub type Forwarder = Tagged<ForwarderRole, ForwarderKeys>;

/// Role of a forwarder, by its key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForwarderRole {
    /// A load balancer of one service.
    Balancer(Balancer),
    /// Routes of a router.
    Routes(Vec<Route>),
}

/// A forwarder (paper 003). Exactly one of `balancer` and `routes` must be given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Forwarder")]
pub struct ForwarderKeys {
    /// IPv4 address in the subnet: that of the service, or of the router.
    pub address: Ipv4Addr,
    /// MAC address; `02:61:` and the agent's number by default.
    pub mac: Option<MacText>,
}

/// A load balancer of one service.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Balancer {
    /// Transport protocol of the service.
    pub protocol: Transport,
    /// Port of the service.
    pub port: u16,
    /// Servers: names of hosts with a fixed address, or addresses.
    pub backends: Vec<String>,
    /// Port of the servers; that of the service by default.
    pub backend_port: Option<u16>,
    /// Maximum idle time of a connection, 1s to 1d; 5min for UDP and 124min for TCP by default.
    pub idle: Option<SpanText>,
    /// Maximum number of connections, 1 to 64511; 64511 by default.
    #[schemars(range(min = 1, max = 64511))]
    pub connections: Option<u16>,
}

/// A route of a router.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Destinations: `10.1.0.0/16`, or `0.0.0.0/0` for all.
    pub to: String,
    /// Next hop; the destination itself by default.
    pub via: Option<Ipv4Addr>,
}
