//! Changes of the tables, and errors of refused ones.
//!
//! Changes are made in transactions ([`Tables::commit`](crate::Tables::commit)): all of them or
//! none.

use crate::action::{Action, Group, Interface, Tunnel};
use crate::key::{KeyError, Udlk, UdlkId};
use crate::tables::{MacKey, PortOptions, Prefix, TableName, TcamEntry};
use axon_wire::PortNo;
use core::fmt;
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Change of one entry. `None` removes it; removing a missing entry is not an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A lookup key (SetUDLK).
    Udlk(UdlkId, Option<Udlk>),
    /// An interface (SetVifTable).
    Interface(u16, Option<Interface>),
    /// A group.
    Group(u16, Option<Group>),
    /// A tunnel.
    Tunnel(u16, Option<Tunnel>),
    /// An entry of the TCAM, by its index: among matching entries the highest index wins.
    Tcam(u16, Option<TcamEntry>),
    /// Exact match on bridge and destination MAC.
    Mac(MacKey, Option<Action>),
    /// Exact match on the IPv4 destination.
    Ipv4(Ipv4Addr, Option<Action>),
    /// Exact match on the top label: 0 to 1,048,575.
    Mpls(u32, Option<Action>),
    /// Longest prefix match on the IPv4 destination.
    Prefix(Prefix, Option<Action>),
    /// The action for frames that no entry matches; without one they are dropped as `no_route`.
    Miss(Option<Action>),
    /// The lookup options of a port; the defaults without one.
    Port(PortNo, Option<PortOptions>),
}

impl Change {
    /// Returns the name of the changed entry.
    pub fn entry(&self) -> EntryName {
        match *self {
            Change::Udlk(id, _) => EntryName::Udlk(id),
            Change::Interface(number, _) => EntryName::Interface(number),
            Change::Group(number, _) => EntryName::Group(number),
            Change::Tunnel(number, _) => EntryName::Tunnel(number),
            Change::Tcam(index, _) => EntryName::Tcam(index),
            Change::Mac(key, _) => EntryName::Mac(key),
            Change::Ipv4(address, _) => EntryName::Ipv4(address),
            Change::Mpls(label, _) => EntryName::Mpls(label),
            Change::Prefix(prefix, _) => EntryName::Prefix(prefix),
            Change::Miss(_) => EntryName::Miss,
            Change::Port(port, _) => EntryName::Port(port),
        }
    }
}

/// The name of one entry of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryName {
    /// A lookup key.
    Udlk(UdlkId),
    /// An interface.
    Interface(u16),
    /// A group.
    Group(u16),
    /// A tunnel.
    Tunnel(u16),
    /// An entry of the TCAM.
    Tcam(u16),
    /// An entry of the MAC table.
    Mac(MacKey),
    /// An entry of the IPv4 table.
    Ipv4(Ipv4Addr),
    /// An entry of the MPLS table.
    Mpls(u32),
    /// A prefix.
    Prefix(Prefix),
    /// The action without a match.
    Miss,
    /// The options of a port.
    Port(PortNo),
}

impl EntryName {
    /// Returns the table of the entry; `None` for entries outside the tables.
    pub const fn table(&self) -> Option<TableName> {
        match self {
            EntryName::Udlk(_) => Some(TableName::Udlk),
            EntryName::Interface(_) => Some(TableName::Interface),
            EntryName::Group(_) => Some(TableName::Group),
            EntryName::Tunnel(_) => Some(TableName::Tunnel),
            EntryName::Tcam(_) => Some(TableName::Tcam),
            EntryName::Mac(_) => Some(TableName::Mac),
            EntryName::Ipv4(_) => Some(TableName::Ipv4),
            EntryName::Mpls(_) => Some(TableName::Mpls),
            EntryName::Prefix(_) => Some(TableName::Prefix),
            EntryName::Miss | EntryName::Port(_) => None,
        }
    }

    /// Returns the change that removes the entry.
    pub const fn removal(self) -> Change {
        match self {
            EntryName::Udlk(id) => Change::Udlk(id, None),
            EntryName::Interface(number) => Change::Interface(number, None),
            EntryName::Group(number) => Change::Group(number, None),
            EntryName::Tunnel(number) => Change::Tunnel(number, None),
            EntryName::Tcam(index) => Change::Tcam(index, None),
            EntryName::Mac(key) => Change::Mac(key, None),
            EntryName::Ipv4(address) => Change::Ipv4(address, None),
            EntryName::Mpls(label) => Change::Mpls(label, None),
            EntryName::Prefix(prefix) => Change::Prefix(prefix, None),
            EntryName::Miss => Change::Miss(None),
            EntryName::Port(port) => Change::Port(port, None),
        }
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryName::Udlk(id) => write!(f, "udlk {id}"),
            EntryName::Interface(number) => write!(f, "interface {number}"),
            EntryName::Group(number) => write!(f, "group {number}"),
            EntryName::Tunnel(number) => write!(f, "tunnel {number}"),
            EntryName::Tcam(index) => write!(f, "tcam {index}"),
            EntryName::Mac(MacKey { bridge, mac }) => write!(f, "mac {mac} bridge {bridge}"),
            EntryName::Ipv4(address) => write!(f, "ipv4 {address}"),
            EntryName::Mpls(label) => write!(f, "mpls {label}"),
            EntryName::Prefix(prefix) => write!(f, "prefix {prefix}"),
            EntryName::Miss => f.write_str("miss"),
            EntryName::Port(port) => write!(f, "port {port}"),
        }
    }
}

/// Refused transaction; the tables are unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("change {position} ({entry}): {reason}")]
pub struct ChangeError {
    /// Position of the change in the transaction, from 1.
    pub position: u32,
    /// The entry to be changed.
    pub entry: EntryName,
    /// The reason of the refusal.
    pub reason: Reason,
}

/// Reasons for which a change is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The lookup key is invalid.
    #[error(transparent)]
    Key(KeyError),
    /// A third key for one type of frames.
    #[error("frames of type {0} have two keys already")]
    TooManyKeys(crate::frame_type::FrameType),
    /// The number is too high.
    #[error("numbers end at {last}")]
    NoSuchNumber {
        /// The highest number.
        last: u32,
    },
    /// The table has no room.
    #[error("the table is full: it holds {size} entries")]
    Full {
        /// The size of the table, in entries.
        size: u32,
    },
    /// The lookup key of the entry does not exist.
    #[error("there is no udlk {0}")]
    NoSuchUdlk(UdlkId),
    /// The interface of the entry does not exist.
    #[error("there is no interface {0}")]
    NoSuchInterface(u16),
    /// The group of the entry does not exist.
    #[error("there is no group {0}")]
    NoSuchGroup(u16),
    /// The tunnel of the entry does not exist.
    #[error("there is no tunnel {0}")]
    NoSuchTunnel(u16),
    /// The switch has no such port.
    #[error("there is no port {0}")]
    NoSuchPort(PortNo),
    /// Value or mask have another length than the key.
    #[error("value and mask have {found} bytes; the key has {expected}")]
    ValueBytes {
        /// Bytes of the key.
        expected: u16,
        /// Bytes of the entry.
        found: u16,
    },
    /// A bit of the value is set outside the mask, so no frame could match.
    #[error("byte {byte} of the value has bits that the mask leaves out")]
    ValueOutsideMask {
        /// The byte, from 0.
        byte: u16,
    },
    /// The entry is still used by others.
    #[error("{users} entries use it")]
    InUse {
        /// Number of entries and groups that use it.
        users: u32,
    },
    /// The transaction contains the entry twice.
    #[error("change {first} is of the same entry")]
    Contradiction {
        /// Position of the first of the two, from 1.
        first: u32,
    },
    /// A prefix longer than 32 bits, or with bits set beyond its length.
    #[error("no prefix: expected at most 32 bits and zeros behind them")]
    Prefix,
    /// A label of more than 20 bits.
    #[error("no label: expected 0 to 1048575")]
    Label,
    /// A DSCP of more than 6 bits.
    #[error("no DSCP: expected 0 to 63")]
    Dscp,
    /// A shim that is too long or not a multiple of four bytes, or a TTL of 0.
    #[error("no tunnel: expected a shim of 0, 4, ... 32 bytes and a TTL of 1 or more")]
    Tunnel,
    /// A route that does not fit an Axon header of this switch.
    #[error("no route: it has too many hops, or a port that no hop of this width names")]
    Route,
    /// A group with a repeated member.
    #[error("interface {0} is in the group twice")]
    TwiceInGroup(u16),
    /// [`Target::Tables`](crate::Target::Tables) outside the TCAM, or with modifications.
    #[error("only an entry of the TCAM that modifies nothing leaves frames to the other tables")]
    Tables,
    /// More modifications than a chip's fixed row of modifiers has.
    #[error("more modifications than {max}")]
    TooManyModifications {
        /// The maximum number.
        max: u8,
    },
}
