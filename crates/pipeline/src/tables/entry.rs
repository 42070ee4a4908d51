//! Table entries with their counters, and the names of tables.

use crate::action::Action;
use crate::key::UdlkId;
use axon_wire::MacAddr;
use core::fmt;
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// The action of an entry, and its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) action: Action,
    pub(crate) frames: u64,
    /// Bytes of matching frames as received, without FCS.
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

/// Key of the MAC table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MacKey {
    /// The bridge of the ingress port ([`PortOptions::bridge`]).
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

/// IPv4 prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Prefix {
    /// The address; zero beyond the length.
    pub address: Ipv4Addr,
    /// Length in bits: 0 to 32.
    pub length: u8,
}

impl Prefix {
    /// Returns whether the prefix is valid: at most 32 bits, and zeros beyond them.
    pub fn is_sound(self) -> bool {
        self.length <= 32 && self.address.to_bits() & !mask(self.length) == 0
    }
}

/// Returns the mask of a prefix of this length, at most 32.
pub(super) fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0)
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Entry of the TCAM, which matches frames by one lookup key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcamEntry {
    /// The lookup key compared.
    pub udlk: UdlkId,
    /// The required bits: the fields of the key in their order. Bits outside the mask are zero.
    pub value: alloc::vec::Vec<u8>,
    /// The bits compared.
    pub mask: alloc::vec::Vec<u8>,
    /// The action for matching frames.
    pub action: Action,
}

/// Lookup options of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PortOptions {
    /// The bridge of the port, to which entries of the MAC table belong; 0 by default.
    pub bridge: u16,
    /// True if IPv4 destinations and labels of its frames are looked up; true by default.
    pub routed: bool,
    /// True if a copy of a frame goes to the control program if its source MAC has no entry of this
    /// port's bridge that leads to this port: directly, by an interface, or by a group whose only
    /// member is an interface of this port. False by default.
    pub learn: bool,
    /// True if the port leads to an Axon switch: its frames begin with an Axon header, and are of
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
    /// All tables, in order: those in which frames are looked up by their precedence.
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

    /// Returns the name in commands and messages.
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

/// Number of entries of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryCount {
    /// The table.
    pub table: TableName,
    /// Current number of entries.
    pub entries: u32,
    /// Maximum number of entries.
    pub size: u32,
}
