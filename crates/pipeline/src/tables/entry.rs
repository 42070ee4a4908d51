//! An entry of a table with its counters, and the names of tables.

use crate::action::Action;
use crate::key::UdlkId;
use axon_wire::MacAddr;
use core::fmt;
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// What is done with frames that meet an entry, and how many have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) action: Action,
    pub(crate) frames: u64,
    /// Bytes as they came in, without FCS.
    pub(crate) bytes: u64,
}

impl Entry {
    pub(crate) fn new(action: Action) -> Entry {
        Entry { action, frames: 0, bytes: 0 }
    }

    #[inline]
    pub(super) fn count(&mut self, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }
}

/// The key of the MAC table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MacKey {
    /// The bridge that the ingress port belongs to ([`PortOptions::bridge`]).
    #[serde(default)]
    pub bridge: u16,
    /// The destination MAC.
    pub mac: MacAddr,
}

impl MacKey {
    #[inline]
    pub(super) fn packed(self) -> u64 {
        let [a, b, c, d, e, f] = self.mac.0;
        let [g, h] = self.bridge.to_be_bytes();
        u64::from_be_bytes([g, h, a, b, c, d, e, f])
    }

    pub(super) fn unpacked(packed: u64) -> MacKey {
        let [g, h, mac @ ..] = packed.to_be_bytes();
        MacKey { bridge: u16::from_be_bytes([g, h]), mac: MacAddr(mac) }
    }
}

/// A prefix of IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Prefix {
    /// The address; zero behind the length.
    pub address: Ipv4Addr,
    /// Bits: 0 to 32.
    pub length: u8,
}

impl Prefix {
    /// Whether it is one: at most 32 bits, and zeros behind them.
    pub fn is_sound(self) -> bool {
        self.length <= 32 && self.address.to_bits() & !mask(self.length) == 0
    }
}

/// The bits of a prefix of this length, at most 32.
pub(super) fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0)
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// An entry of the TCAM: the frames whose key has these bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcamEntry {
    /// The key that is compared.
    pub udlk: UdlkId,
    /// The bits that frames must have: the fields of the key in their order. What the mask leaves
    /// out is zero.
    pub value: alloc::vec::Vec<u8>,
    /// The bits that count.
    pub mask: alloc::vec::Vec<u8>,
    /// What is done with the frames.
    pub action: Action,
}

/// How frames of a port are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PortOptions {
    /// The bridge of the port: entries of the MAC table belong to one. 0 by default.
    pub bridge: u16,
    /// Whether IPv4 destinations and labels of its frames are looked up; true by default.
    pub routed: bool,
    /// Whether a frame goes to the control program besides if its source MAC has no entry of this
    /// port's bridge that leads to this port: directly, by an interface, or by a group whose only
    /// member is an interface of this port. False by default.
    pub learn: bool,
    /// Whether the port leads to an Axon switch: its frames begin with an Axon header, and are of
    /// the type `axon`. False by default.
    pub axon: bool,
}

impl Default for PortOptions {
    fn default() -> PortOptions {
        PortOptions { bridge: 0, routed: true, learn: false, axon: false }
    }
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableName {
    /// Lookup keys.
    Udlk,
    /// The TCAM.
    Tcam,
    /// Exact match on the label.
    Mpls,
    /// Exact match on the IPv4 destination.
    Ipv4,
    /// Exact match on the destination MAC.
    Mac,
    /// Longest prefix match.
    Prefix,
    /// Interfaces.
    Interface,
    /// Groups.
    Group,
    /// Tunnels.
    Tunnel,
}

impl TableName {
    /// All of them, in order: those that frames are looked up in by the precedence of what they
    /// find.
    pub const ALL: [TableName; 9] = [
        TableName::Udlk,
        TableName::Tcam,
        TableName::Mpls,
        TableName::Ipv4,
        TableName::Mac,
        TableName::Prefix,
        TableName::Interface,
        TableName::Group,
        TableName::Tunnel,
    ];

    /// The name in commands and messages.
    pub const fn name(self) -> &'static str {
        match self {
            TableName::Udlk => "udlk",
            TableName::Tcam => "tcam",
            TableName::Mpls => "mpls",
            TableName::Ipv4 => "ipv4",
            TableName::Mac => "mac",
            TableName::Prefix => "prefix",
            TableName::Interface => "interface",
            TableName::Group => "group",
            TableName::Tunnel => "tunnel",
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How full a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryCount {
    /// The table.
    pub table: TableName,
    /// Its entries.
    pub entries: u32,
    /// As many as it holds.
    pub size: u32,
}
