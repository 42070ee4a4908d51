//! Actions of table entries: the target of matching frames, and their modifications.

use alloc::vec::Vec;
use axon_wire::{MacAddr, PortNo, Route};
use core::fmt;
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Action of an entry. Modifications are applied in order, then the frame goes to its target; a
/// mirror gets the frame as received.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Action {
    /// The target of the frame.
    pub target: Target,
    /// The modifications of the frame.
    #[serde(default)]
    pub modify: Vec<Modify>,
    /// The destination of an additional copy.
    #[serde(default)]
    pub mirror: Option<Mirror>,
}

impl From<Target> for Action {
    fn from(target: Target) -> Action {
        Action { target, modify: Vec::new(), mirror: None }
    }
}

impl Action {
    /// Returns the action with one more modification.
    #[must_use]
    pub fn with(mut self, modify: Modify) -> Action {
        self.modify.push(modify);
        self
    }

    /// Returns the action with a mirror.
    #[must_use]
    pub fn mirrored(self, mirror: Mirror) -> Action {
        Action { mirror: Some(mirror), ..self }
    }
}

/// Formats the action in the syntax of `axon table set`: the target, the modifications in their
/// order, the mirror.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.target)?;
        self.modify.iter().try_for_each(|modify| write!(f, " {modify}"))?;
        self.mirror.iter().try_for_each(|mirror| write!(f, " mirror {mirror}"))
    }
}

/// Target of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// None: the frame is dropped and counted as `denied`.
    Drop,
    /// The control program, within the rate limit of the port.
    Cpu,
    /// A port.
    Port(PortNo),
    /// The port of an interface, with its addresses.
    Interface(u16),
    /// Every member of a group but those whose port is the ingress or has no carrier: a copy each.
    /// Without any such member the frame is dropped as `filtered`.
    Group(u16),
    /// One member of a group, by the hash of the flow; members whose port has no carrier are
    /// skipped.
    Spread(u16),
    /// The target without this entry and others with this target: that of the lower entries of the
    /// TCAM, or else of the tables below it. Only for entries of the TCAM without modifications,
    /// which mirror or count frames.
    Tables,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Drop => write!(f, "drop"),
            Target::Cpu => write!(f, "cpu"),
            Target::Port(port) => write!(f, "port {}", port.0),
            Target::Interface(number) => write!(f, "interface {number}"),
            Target::Group(number) => write!(f, "group {number}"),
            Target::Spread(number) => write!(f, "spread {number}"),
            Target::Tables => write!(f, "tables"),
        }
    }
}

/// Destination of a copy of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mirror {
    /// The control program, within the rate limit of the port.
    Cpu,
    /// A port.
    Port(PortNo),
}

impl fmt::Display for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mirror::Cpu => write!(f, "cpu"),
            Mirror::Port(port) => write!(f, "port {}", port.0),
        }
    }
}

/// MPLS label: 20 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Label(pub u32);

impl Label {
    /// The largest label.
    pub const MAX: Label = Label((1 << 20) - 1);
}

/// Modification of a frame. A frame that does not suit it (no IPv4 header, no label) is dropped as
/// `malformed`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modify {
    /// Decrements the TTL of IPv4 (with its checksum, RFC 1624) or the hop limit of IPv6. A frame
    /// whose TTL is 1 or 0 is dropped as `ttl_expired` instead.
    DecrementTtl,
    /// Sets the DSCP of IPv4 or IPv6 (RFC 2474): 0 to 63. The ECN bits are unchanged.
    SetDscp(u8),
    /// Pushes a label on the stack, or starts a stack before an IP header. The TTL is that of the
    /// label or of the IP header below (RFC 3443, uniform model).
    MplsPush(Label),
    /// Replaces the top label and decrements its TTL; dropped as `ttl_expired` at 1 or 0.
    MplsSwap(Label),
    /// Pops the top label; the header below gets its TTL minus one. Below the last label there must
    /// be IPv4 or IPv6.
    MplsPop,
    /// Prepends the headers of a tunnel to the IP header.
    TunnelPush(u16),
    /// Removes the outer IPv4 header and the shim of its tunnel. The next header must be IPv4 or
    /// IPv6.
    TunnelPop {
        /// Bytes between the outer header and the inner one: 0 to 32.
        shim_bytes: u8,
    },
    /// Replaces the destination MAC.
    SetDestination(MacAddr),
    /// Replaces the source MAC.
    SetSource(MacAddr),
    /// Prepends the Axon header of a route to an Ethernet frame.
    AxonPush(Route),
    /// Takes the next hop of an Axon packet and puts the ingress port on its reverse list.
    AxonHop,
    /// Changes the type of an Axon packet, which could not be forwarded, to Error.
    AxonError,
    /// Removes the Axon header.
    AxonStrip,
}

impl fmt::Display for Modify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Modify::DecrementTtl => write!(f, "decrement-ttl"),
            Modify::SetDscp(dscp) => write!(f, "dscp {dscp}"),
            Modify::MplsPush(label) => write!(f, "push {}", label.0),
            Modify::MplsSwap(label) => write!(f, "swap {}", label.0),
            Modify::MplsPop => write!(f, "pop"),
            Modify::TunnelPush(number) => write!(f, "tunnel {number}"),
            Modify::TunnelPop { shim_bytes } => write!(f, "untunnel {shim_bytes}"),
            Modify::SetDestination(mac) => write!(f, "destination {mac}"),
            Modify::SetSource(mac) => write!(f, "source {mac}"),
            Modify::AxonPush(route) => {
                write!(f, "axon-push ")?;
                fmt_route(route, f)
            }
            Modify::AxonHop => write!(f, "axon-hop"),
            Modify::AxonError => write!(f, "axon-error"),
            Modify::AxonStrip => write!(f, "axon-strip"),
        }
    }
}

/// Formats hops such as `1.2.cpu`, followed by a layer other than 0: `1.2.cpu/3`.
fn fmt_route(route: &Route, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (place, hop) in route.hops.iter().enumerate() {
        let dot = if place == 0 { "" } else { "." };
        match *hop {
            PortNo::CONTROL => write!(f, "{dot}cpu")?,
            PortNo(number) => write!(f, "{dot}{number}")?,
        }
    }
    match route.layer.index() {
        0 => {}
        layer => write!(f, "/{layer}")?,
    }
    if route.tagged { write!(f, " tagged") } else { Ok(()) }
}

/// Interface: a port, and the addresses of frames sent there (the virtual interface of the paper;
/// in SAI a next hop and its router interface).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interface {
    /// The port.
    pub port: PortNo,
    /// The destination MAC written to frames; unchanged without one.
    #[serde(default)]
    pub destination: Option<MacAddr>,
    /// The source MAC written to frames; unchanged without one.
    #[serde(default)]
    pub source: Option<MacAddr>,
}

/// Group of interfaces, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    /// Numbers of the interfaces, in the order in which copies leave.
    pub interfaces: Vec<u16>,
}

/// Headers that [`Modify::TunnelPush`] prepends to an IP packet: IPv4 without options and a shim.
/// Total length, identification and checksum are filled in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tunnel {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// IP protocol: 4 for IP in IP (RFC 2003).
    pub protocol: u8,
    /// TTL: 1 to 255.
    pub ttl: u8,
    /// Bytes between this header and the packet: a multiple of four, at most 32.
    #[serde(default)]
    pub shim: Vec<u8>,
}

impl Tunnel {
    /// Maximum length of the shim, in bytes.
    pub const SHIM_BYTES_MAX: usize = 32;
}
