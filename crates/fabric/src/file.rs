//! The fabric file as it is written: what serde reads and the JSON Schema describes.

use crate::units::{BytesText, RateText, SpanText, text_value};
use axon_wire::MacAddr;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A fabric: what to build and what happens to it. Only `name` and `topology` are needed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Axon fabric")]
pub struct File {
    /// Its name, and the lab's: a letter, then letters, digits or `-`, at most 32.
    pub name: String,
    /// Seed of everything random in it.
    #[serde(default = "one")]
    pub seed: u64,
    /// Which switches, hosts and links there are.
    pub topology: Topology,
    /// What links are like, those to hosts and to the controller too.
    #[serde(default)]
    pub links: Links,
    /// Where single links differ.
    #[serde(default)]
    pub overrides: Vec<Override>,
    /// Bits of a hop: 4, 8 or 16. They bound the ports of a switch: 15, 255 or 65,535.
    #[serde(default = "eight")]
    #[schemars(extend("enum" = [4, 8, 16]))]
    pub hop_width: u8,
    /// The controller.
    #[serde(default)]
    pub controller: Controller,
    /// Addresses for hosts.
    #[serde(default)]
    pub dhcp: Dhcp,
    /// Intervals of the control plane.
    #[serde(default)]
    pub timers: Timers,
    /// MTU of the hosts, 576 to 9000 bytes of IP packet.
    #[serde(default = "ethernet_mtu")]
    #[schemars(range(min = 576, max = 9000))]
    pub mtu: u16,
    /// Whether switches send a host a PAUSE for the bytes that its routes add (thesis 000
    /// §3.3.3). Hosts on veth or TAP do not obey it.
    #[serde(default)]
    pub self_congestion_pause: bool,
    /// The key of the control plane, 64 hex digits. Without `key` and `key_file` it is the
    /// published lab key, which protects nothing.
    pub key: Option<String>,
    /// A file with the key, 64 hex digits; its path is relative to this file.
    pub key_file: Option<PathBuf>,
    /// What breaks and comes back, and when.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// What the hosts send, in the simulator.
    #[serde(default)]
    pub traffic: Vec<crate::traffic::Entry>,
}

fn one() -> u64 {
    1
}

fn eight() -> u8 {
    8
}

fn ethernet_mtu() -> u16 {
    1500
}

impl File {
    /// A fabric with nothing said but its topology.
    pub fn new(name: &str, topology: Topology) -> File {
        File {
            name: name.into(),
            seed: one(),
            topology,
            links: Links::default(),
            overrides: Vec::new(),
            hop_width: eight(),
            controller: Controller::default(),
            dhcp: Dhcp::default(),
            timers: Timers::default(),
            mtu: ethernet_mtu(),
            self_congestion_pause: false,
            key: None,
            key_file: None,
            faults: Vec::new(),
            traffic: Vec::new(),
        }
    }

    /// The key of the topology's one entry: `topology.ring`.
    pub(crate) fn topology_key(&self) -> &'static str {
        match self.topology {
            Topology::Line(_) => "topology.line",
            Topology::Ring(_) => "topology.ring",
            Topology::Star(_) => "topology.star",
            Topology::Torus(_) => "topology.torus",
            Topology::FatTree(_) => "topology.fat_tree",
            Topology::Random(_) => "topology.random",
            Topology::Listed(_) => "topology.listed",
        }
    }
}

/// One of the generators, or everything by hand.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Topology {
    /// s1 - s2 - s3 - ...
    Line(Row),
    /// A line whose ends meet; at least three switches.
    Ring(Row),
    /// All switches around s1, which has no hosts; at least two switches.
    Star(Row),
    /// A grid whose rows and columns are rings.
    Torus(Torus),
    /// A three-layer fat tree of switches with k ports.
    FatTree(FatTree),
    /// A connected random graph.
    Random(Random),
    /// Everything by hand.
    Listed(Listed),
}

/// Line, ring and star.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// How many switches.
    pub switches: usize,
    /// Hosts at each of them; on a star, at each but s1.
    #[serde(default = "one_host")]
    pub hosts_per_switch: usize,
}

fn one_host() -> usize {
    1
}

/// A torus. A side of two has one link where a ring would have two.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Torus {
    /// Rows; at least 2.
    pub rows: usize,
    /// Columns; at least 2.
    pub cols: usize,
    /// Hosts at each switch.
    #[serde(default = "one_host")]
    pub hosts_per_switch: usize,
}

/// A fat tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of a switch; even, at least 2.
    pub k: usize,
    /// Hosts at each edge switch; k/2 if not said.
    pub hosts_per_edge: Option<usize>,
}

/// A random graph: a random tree first, then random links until no switch may have more.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// How many switches; at least 2.
    pub switches: usize,
    /// Links to other switches that a switch has at most; at least 2.
    pub degree: usize,
    /// Hosts at each switch.
    #[serde(default = "one_host")]
    pub hosts_per_switch: usize,
    /// Seed of the graph; the fabric's if not said.
    pub seed: Option<u64>,
}

/// A topology by hand. Where no port is named, the lowest free one is taken: first for
/// hosts, then for links, then for the controller.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Names of the switches.
    pub switches: Vec<String>,
    /// The hosts by name, each with its switch.
    #[serde(default)]
    pub hosts: Hosts,
    /// The links between switches.
    #[serde(default)]
    pub links: Vec<ShortOr<[String; 2], ListedLink>>,
}

/// Hosts in the order in which they are written.
#[derive(Clone, Debug, Default)]
pub struct Hosts(pub Vec<(String, ShortOr<String, ListedHost>)>);

/// A host with all that can be said about it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedHost {
    /// Its switch (`s1`) or port (`s1-p0`).
    pub at: String,
    /// A fixed address instead of DHCP, in the subnet of `dhcp`.
    pub ip: Option<Ipv4Addr>,
    /// Its MAC; derived from its place in the list if not said.
    pub mac: Option<MacText>,
    /// Rate of its link.
    pub rate: Option<RateText>,
    /// Propagation delay of its link.
    pub latency: Option<SpanText>,
    /// Frames lost per million on its link.
    pub loss_ppm: Option<u32>,
}

/// A link with all that can be said about it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListedLink {
    /// Its two ends, switches (`s1`) or ports (`s1-p0`).
    pub between: [String; 2],
    /// Its rate.
    pub rate: Option<RateText>,
    /// Its propagation delay.
    pub latency: Option<SpanText>,
    /// Frames lost per million.
    pub loss_ppm: Option<u32>,
}

/// What all links are like.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Links {
    /// Bits per second; 1Gbps if not said.
    pub rate: RateText,
    /// Propagation delay; 1us if not said.
    pub latency: SpanText,
    /// Frames lost per million, each by itself; none if not said.
    #[schemars(range(max = 1_000_000))]
    pub loss_ppm: u32,
    /// The buffer that each output port has for each ingress port; 128KiB if not said.
    pub queue: BytesText,
}

impl Default for Links {
    fn default() -> Links {
        Links {
            rate: RateText(axon_wire::Rate::gbps(1)),
            latency: SpanText(axon_wire::Span::from_micros(1)),
            loss_ppm: 0,
            queue: BytesText(axon_wire::Bytes(128 * 1024)),
        }
    }
}

/// One link that differs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// Its two ends: switches, hosts, the controller, or ports (`s1-p0`).
    pub between: [String; 2],
    /// Its rate.
    pub rate: Option<RateText>,
    /// Its propagation delay.
    pub latency: Option<SpanText>,
    /// Frames lost per million.
    pub loss_ppm: Option<u32>,
}

/// Where the controller is plugged in.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Controller {
    /// A switch (`s1`) or port (`s1-p7`); the first switch if not said.
    pub at: Option<String>,
}

/// The address service that the controller gives to hosts.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dhcp {
    /// The subnet of all hosts; 10.0.0.0/16 if not said.
    pub subnet: SubnetText,
    /// The server's address; the subnet's first if not said.
    pub server: Option<Ipv4Addr>,
    /// First and last address to give; all of the subnet behind the first if not said.
    pub pool: Option<[Ipv4Addr; 2]>,
    /// How long a lease lasts; 1h if not said.
    pub lease: SpanText,
    /// Hosts, by name, that always get the same address.
    pub reservations: BTreeMap<String, Ipv4Addr>,
}

impl Default for Dhcp {
    fn default() -> Dhcp {
        Dhcp {
            subnet: SubnetText(Subnet { network: Ipv4Addr::new(10, 0, 0, 0), prefix_len: 16 }),
            server: None,
            pool: None,
            lease: SpanText(axon_wire::Span::from_secs(3600)),
            reservations: BTreeMap::new(),
        }
    }
}

/// Intervals of the control plane; see `axon_control::config::Timers` for the defaults.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timers {
    /// Between Hellos on a port without neighbour.
    pub hello: Option<SpanText>,
    /// Between heartbeats; a link is down after two without one.
    pub heartbeat: Option<SpanText>,
    /// Before an unacknowledged control message is sent again.
    pub retry: Option<SpanText>,
    /// Between probes of a local host.
    pub host_probe: Option<SpanText>,
}

/// Something that breaks or comes back. Beside `at`, exactly one key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When, after the start.
    pub at: SpanText,
    /// A link between two switches: both ends lose carrier.
    pub down: Option<[String; 2]>,
    /// It comes back, from `down` or from `silent`.
    pub up: Option<[String; 2]>,
    /// Frames vanish on a link, but its ends keep carrier.
    pub silent: Option<[String; 2]>,
    /// A switch or the controller loses power.
    pub crash: Option<String>,
    /// It starts again with nothing in memory.
    pub start: Option<String>,
    /// A host's cable is pulled.
    pub unplug: Option<String>,
    /// It is plugged in again.
    pub plug: Option<String>,
}

/// An IPv4 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Its lowest address.
    pub network: Ipv4Addr,
    /// Length of its prefix, 8 to 30 bits.
    pub prefix_len: u8,
}

const SUBNET_EXPECTED: &str = "a subnet such as 10.0.0.0/16, with a prefix of 8 to 30 bits and \
                               no bits set behind it";

fn subnet(text: &str) -> Result<Subnet, &'static str> {
    let (network, prefix) = text.split_once('/').ok_or(SUBNET_EXPECTED)?;
    let network: Ipv4Addr = network.parse().map_err(|_| SUBNET_EXPECTED)?;
    let prefix_len: u8 = prefix.parse().map_err(|_| SUBNET_EXPECTED)?;
    if !(8..=30).contains(&prefix_len) || network.to_bits() << prefix_len != 0 {
        return Err(SUBNET_EXPECTED);
    }
    Ok(Subnet { network, prefix_len })
}

const MAC_EXPECTED: &str = "a unicast MAC such as 02:00:00:00:00:01";

fn mac(text: &str) -> Result<MacAddr, &'static str> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2).ok_or(MAC_EXPECTED)?;
        *byte = u8::from_str_radix(part, 16).map_err(|_| MAC_EXPECTED)?;
    }
    let mac = MacAddr(bytes);
    (parts.next().is_none() && mac.is_unicast()).then_some(mac).ok_or(MAC_EXPECTED)
}

text_value!(
    /// A subnet in the file.
    SubnetText(Subnet), subnet, SUBNET_EXPECTED, r"^[0-9]+(\.[0-9]+){3}/[0-9]+$"
);
text_value!(
    /// A MAC in the file.
    MacText(MacAddr), mac, MAC_EXPECTED, r"^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$"
);

/// Either the short form (text or a list) or a mapping with more to say.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum ShortOr<S, L> {
    /// The short form.
    Short(S),
    /// The long form.
    Long(L),
}

struct ShortOrVisitor<S, L>(PhantomData<(S, L)>);

impl<'de, S: Deserialize<'de>, L: Deserialize<'de>> Visitor<'de> for ShortOrVisitor<S, L> {
    type Value = ShortOr<S, L>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, a list of two names, or a mapping")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        S::deserialize(serde::de::value::StrDeserializer::new(text)).map(ShortOr::Short)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let short = S::deserialize(SeqAccessDeserializer::new(&mut seq))?;
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(ShortOr::Short(short)),
            Some(_) => Err(A::Error::custom("there are too many; expected two names")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        L::deserialize(MapAccessDeserializer::new(map)).map(ShortOr::Long)
    }
}

impl<'de, S: Deserialize<'de>, L: Deserialize<'de>> Deserialize<'de> for ShortOr<S, L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShortOrVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hosts, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Hosts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("hosts by name, such as {h1: s1, h2: {at: s2}}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Hosts, A::Error> {
                let mut hosts = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    hosts.push(entry);
                }
                Ok(Hosts(hosts))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl JsonSchema for Hosts {
    fn schema_name() -> Cow<'static, str> {
        "Hosts".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let host = generator.subschema_for::<ShortOr<String, ListedHost>>();
        json_schema!({
            "description": "Hosts by name, in order.",
            "type": "object",
            "additionalProperties": host,
        })
    }
}
