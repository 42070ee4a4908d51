//! What an entry does with the frames that meet it: where they go, and what changes in them.

use alloc::vec::Vec;
use axon_wire::{MacAddr, PortNo, Route};
use core::fmt;
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// The action of an entry. Modifications are made in their order, then the frame goes to its
/// target; a mirror gets it as it came in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Action {
    /// Where the frame goes.
    pub target: Target,
    /// What changes in it.
    #[serde(default)]
    pub modify: Vec<Modify>,
    /// Where a copy of it goes besides.
    #[serde(default)]
    pub mirror: Option<Mirror>,
}

impl From<Target> for Action {
    fn from(target: Target) -> Action {
        Action { target, modify: Vec::new(), mirror: None }
    }
}

impl Action {
    /// The same with one more modification.
    #[must_use]
    pub fn with(mut self, modify: Modify) -> Action {
        self.modify.push(modify);
        self
    }

    /// The same with a mirror.
    #[must_use]
    pub fn mirrored(self, mirror: Mirror) -> Action {
        Action { mirror: Some(mirror), ..self }
    }
}

/// The words of the action, as `axon table set` takes them: the target, the modifications in their
/// order, the mirror.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.target)?;
        self.modify.iter().try_for_each(|modify| write!(f, " {modify}"))?;
        self.mirror.iter().try_for_each(|mirror| write!(f, " mirror {mirror}"))
    }
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Nowhere; counted as `denied`.
    Drop,
    /// To the control program, as far as its port may send there.
    Cpu,
    /// Out of a port.
    Port(PortNo),
    /// Out of the port of an interface, with its addresses.
    Interface(u16),
    /// To every member of a group but those whose port is the ingress or has no carrier: a copy
    /// each. Without any other member the frame is dropped as `filtered`.
    Group(u16),
    /// To one member of a group, by the hash of the flow; members whose port has no carrier are
    /// passed over.
    Spread(u16),
    /// Where the frame would go without this entry and others with this target: to what the lower
    /// entries of the TCAM say, or else the tables below it. For entries of the TCAM without
    /// modifications only: those that mirror frames, or count them.
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

/// Where a copy of a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mirror {
    /// To the control program, as far as the port may send there.
    Cpu,
    /// Out of a port.
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

/// A label of MPLS: 20 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Label(pub u32);

impl Label {
    /// The largest label.
    pub const MAX: Label = Label((1 << 20) - 1);
}

/// A change of a frame. One that does not suit the frame (no IPv4 header, no label) drops it as
/// `malformed`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modify {
    /// Takes one off the TTL of IPv4 (with its checksum, RFC 1624) or the hop limit of IPv6. A
    /// frame whose TTL is 1 or 0 is dropped as `ttl_expired` instead.
    DecrementTtl,
    /// Sets the DSCP of IPv4 or IPv6 (RFC 2474): 0 to 63. ECN bits stay.
    SetDscp(u8),
    /// Puts a label on top of the stack, or begins one before an IP header. The TTL is that of the
    /// label or of the IP header below (RFC 3443, uniform model).
    MplsPush(Label),
    /// Replaces the top label and takes one off its TTL; dropped as `ttl_expired` at 1 or 0.
    MplsSwap(Label),
    /// Takes the top label off; what is below gets its TTL less one. Below the last label there
    /// must be IPv4 or IPv6.
    MplsPop,
    /// Puts the headers of a tunnel before the IP header.
    TunnelPush(u16),
    /// Takes the outer IPv4 header off, and what its tunnel has behind it: so many bytes. What is
    /// then in front must be IPv4 or IPv6.
    TunnelPop {
        /// Bytes between the outer header and the inner one: 0 to 32.
        shim_bytes: u8,
    },
    /// Replaces the destination MAC.
    SetDestination(MacAddr),
    /// Replaces the source MAC.
    SetSource(MacAddr),
    /// Puts the Axon header of a route before an Ethernet frame.
    AxonPush(Route),
    /// Takes the next hop of an Axon packet and puts the ingress port on its reverse list.
    AxonHop,
    /// Makes an Axon packet one that could not be forwarded: its type becomes Error.
    AxonError,
    /// Takes the Axon header off.
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

/// Hops such as `1.2.cpu`, and a layer other than 0 behind them: `1.2.cpu/3`.
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

/// A way out: a port, and the addresses that frames get there (the virtual interface of the
/// paper; in SAI a next hop and its router interface).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interface {
    /// The port.
    pub port: PortNo,
    /// The destination MAC that frames get; unchanged without one.
    #[serde(default)]
    pub destination: Option<MacAddr>,
    /// The source MAC that frames get; unchanged without one.
    #[serde(default)]
    pub source: Option<MacAddr>,
}

/// Members of a group: interfaces, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    /// Their numbers, in the order in which copies leave.
    pub interfaces: Vec<u16>,
}

/// The headers that [`Modify::TunnelPush`] puts before an IP packet: IPv4 without options and a
/// shim. Total length, identification and checksum are filled in.
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
    /// The longest shim, in bytes.
    pub const SHIM_BYTES_MAX: usize = 32;
}
