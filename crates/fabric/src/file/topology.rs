//! The `topology` section: generators, a graph from another file, and listed topologies.

use super::tagged::Tagged;
use super::text::{BitErrorsText, MacText, ShortOr};
use crate::units::{RateText, SpanText};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// One of the generators, or a listed topology.
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
    /// A k-ary n-flat: a grid of n - 1 dimensions of k switches, fully connected in each dimension.
    FlattenedButterfly(FlattenedButterfly),
    /// Groups of switches, fully connected inside a group and between groups.
    Dragonfly(Dragonfly),
    /// BCube(n, k), with switches in place of its forwarding servers.
    Bcube(BCube),
    /// DCell(n, k), with switches in place of its forwarding servers.
    Dcell(DCell),
    /// A connected random graph with a bound on each switch's links.
    Random(Random),
    /// A connected random graph as in paper 001 section 5: each switch makes links to random
    /// others.
    RandomLinks(RandomLinks),
    /// A list of links in a separate file.
    Graph(GraphFile),
    /// Switches, hosts and links, listed one by one.
    Listed(Listed),
}

/// Line, ring and star.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Number of switches, 1 or more.
    pub switches: usize,
    /// Hosts at each switch, on a star at each but s1; 1 if neither this nor `hosts` is given.
    pub hosts_per_switch: Option<usize>,
    /// Total number of hosts and their placement, instead of `hosts_per_switch`.
    pub hosts: Option<Placed>,
}

/// Total number of hosts, instead of a number at each switch.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// Number of hosts, 0 to 100000.
    pub count: usize,
    /// Placement of the hosts among the switches that may have hosts.
    #[serde(default)]
    pub placement: Placement,
    /// Seed of a random placement; the fabric's by default.
    pub seed: Option<u64>,
}

/// Placement of hosts at switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// An equal number at each switch, or one more.
    #[default]
    Even,
    /// An independent random switch for each host.
    Random,
}

/// A torus. A side of two has one link where a ring would have two.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Torus {
    /// Rows; at least 2.
    pub rows: usize,
    /// Columns; at least 2.
    pub cols: usize,
    /// Hosts at each switch; 1 if neither this nor `hosts` is given.
    pub hosts_per_switch: Option<usize>,
    /// Total number of hosts and their placement, instead of `hosts_per_switch`.
    pub hosts: Option<Placed>,
}

/// A fat tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FatTree {
    /// Ports of a switch; even, at least 2.
    pub k: usize,
    /// Hosts at each edge switch; k/2 by default.
    pub hosts_per_edge: Option<usize>,
    /// Total number of hosts and their placement at the edge switches, instead of `hosts_per_edge`.
    pub hosts: Option<Placed>,
}

/// A random graph: a random tree first, then random links until no switch may have more.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// Number of switches; at least 2.
    pub switches: usize,
    /// Maximum number of links to other switches at a switch; at least 2.
    pub degree: usize,
    /// Hosts at each switch; 1 if neither this nor `hosts` is given.
    pub hosts_per_switch: Option<usize>,
    /// Total number of hosts and their placement, instead of `hosts_per_switch`.
    pub hosts: Option<Placed>,
    /// Seed of the graph; the fabric's by default.
    pub seed: Option<u64>,
}

/// A k-ary n-flat (J. Kim, W. J. Dally, D. Abts, ISCA 2007): k^(n-1) switches, each linked to
/// the k - 1 others that differ in one digit of its number, for each of its n - 1 digits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlattenedButterfly {
    /// Switches in a row of each dimension; at least 2.
    pub k: usize,
    /// Number of dimensions plus one; at least 2.
    pub n: usize,
    /// Hosts at each switch; k if neither this nor `hosts` is given.
    pub hosts_per_switch: Option<usize>,
    /// Total number of hosts and their placement, instead of `hosts_per_switch`.
    pub hosts: Option<Placed>,
}

/// A dragonfly (J. Kim, W. J. Dally, S. Scott, D. Abts, ISCA 2008).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dragonfly {
    /// Switches in a group, all linked to each other.
    pub a: usize,
    /// Hosts at each switch; half of a, rounded up, if neither this nor `hosts` is given.
    pub p: Option<usize>,
    /// Maximum number of links of each switch to other groups.
    pub h: usize,
    /// Number of groups, 2 to a * h + 1; the maximum by default.
    pub groups: Option<usize>,
    /// Total number of hosts and their placement, instead of `p`.
    pub hosts: Option<Placed>,
}

/// BCube(n, k) (C. Guo et al., SIGCOMM 2009). Its n^(k+1) servers are switches here, each with its
/// hosts: they have k + 1 links and forward, as BCube's servers do. The n^k switches of each level,
/// 0 to k, are numbered after them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BCube {
    /// Ports of a switch; at least 2.
    pub n: usize,
    /// The highest level; BCube(n, 0) is one switch and n servers.
    pub k: usize,
    /// Hosts at each switch that is a server; 1 if neither this nor `hosts` is given.
    pub hosts_per_switch: Option<usize>,
    /// Total number of hosts and their placement, instead of `hosts_per_switch`.
    pub hosts: Option<Placed>,
}

/// DCell(n, k) (C. Guo et al., SIGCOMM 2008). Its servers are switches here, each with its hosts:
/// they have k + 1 links and forward, as DCell's servers do. The switches of the cells of level 0
/// are numbered after them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DCell {
    /// Servers in a cell of level 0; at least 2.
    pub n: usize,
    /// The highest level of cells, k.
    pub k: usize,
    /// Hosts at each switch that is a server; 1 if neither this nor `hosts` is given.
    pub hosts_per_switch: Option<usize>,
    /// Total number of hosts and their placement, instead of `hosts_per_switch`.
    pub hosts: Option<Placed>,
}

/// A random graph in which each switch makes links to random others. Random-low of paper 001 has an
/// average degree of 4; random-high has that of a flattened butterfly, (n - 1)(k - 1).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomLinks {
    /// Number of switches; at least 3.
    pub switches: usize,
    /// Average number of links of a switch: each makes half as many, and with an odd number every
    /// second switch makes one more.
    pub average_degree: usize,
    /// Hosts at each switch; 1 if neither this nor `hosts` is given.
    pub hosts_per_switch: Option<usize>,
    /// Total number of hosts and their placement, instead of `hosts_per_switch`.
    pub hosts: Option<Placed>,
    /// Seed of the graph; the fabric's by default.
    pub seed: Option<u64>,
}

/// A graph in a text file of its own. Each line is a link: the names of two switches, then `rate=`,
/// `latency=`, `loss_ppm=` or `bit_error_rate=` where it differs from the defaults. A bare number
/// `7` means the switch `s7`. Switches are in the order in which they first appear. Text after `#`
/// is ignored.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphFile {
    /// Path of the file, relative to the fabric file.
    pub file: PathBuf,
    /// Hosts at each switch; 1 if neither this nor `hosts` is given.
    pub hosts_per_switch: Option<usize>,
    /// Total number of hosts and their placement, instead of `hosts_per_switch`.
    pub hosts: Option<Placed>,
    /// Contents of the file, once it is read.
    #[serde(skip)]
    pub text: String,
}

/// A topology listed by hand. Where no port is named, the lowest free one is used: first for hosts,
/// then for links, then for the controller.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Names of the switches.
    pub switches: Vec<String>,
    /// Hosts by name, each with its switch.
    #[serde(default)]
    pub hosts: Hosts,
    /// The links between switches.
    #[serde(default)]
    pub links: Vec<ShortOr<[String; 2], ListedLink>>,
}

/// Hosts in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Hosts(pub Vec<(String, ShortOr<String, ListedHost>)>);

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

/// A property of one link.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(extend("x-any-number" = true))]
pub enum WireKey {
    /// Rate of the link.
    Rate(RateText),
    /// Propagation delay of the link.
    Latency(SpanText),
    /// Frames lost per million on the link.
    LossPpm(u32),
    /// Share of bits that arrive flipped on the link.
    BitErrorRate(BitErrorsText),
}

/// A host, with the properties of its link.
pub type ListedHost = Tagged<WireKey, ListedHostKeys>;
/// A link, with its properties.
pub type ListedLink = Tagged<WireKey, ListedLinkKeys>;

/// A host with all its properties.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListedHost")]
pub struct ListedHostKeys {
    /// Switch (`s1`) or port (`s1-p0`).
    pub at: String,
    /// Fixed address instead of DHCP, in the subnet of `dhcp`.
    pub ip: Option<Ipv4Addr>,
    /// Fixed IPv6 address, beside the link-local one that every host has: in `ipv6.prefix`, or with
    /// the same first 64 bits as all others if the file has none.
    pub ip6: Option<Ipv6Addr>,
    /// MAC address; derived from the position in the list by default.
    pub mac: Option<MacText>,
}

/// A link with all its properties.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListedLink")]
pub struct ListedLinkKeys {
    /// Two ends, switches (`s1`) or ports (`s1-p0`).
    pub between: [String; 2],
}
