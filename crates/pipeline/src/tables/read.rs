//! Read access to tables: all entries, single counters, numbers of entries.

use super::entry::{EntryCount, MacKey, PortOptions, TableName};
use super::objects::Objects;
use super::{Entry, Hit, Tables, keyed};
use crate::change::{Change, EntryName};
use crate::frame_type::Parsed;
use crate::key::UdlkId;
use crate::tables::TcamEntry;
use alloc::vec::Vec;
use axon_wire::PortNo;
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};

/// Entry for display: the change that would create it, and its counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The change that creates the entry.
    pub change: Change,
    /// Frames that matched the entry; 0 for entries without matching.
    pub frames: u64,
    /// Bytes of these frames as received, without FCS.
    pub bytes: u64,
}

impl Tables {
    /// Returns the numbers of entries of all tables.
    pub fn counts(&self) -> Vec<EntryCount> {
        TableName::ALL.into_iter().map(|table| self.count(table)).collect()
    }

    /// Returns the number of entries of a table.
    pub fn count(&self, table: TableName) -> EntryCount {
        let (entries, size) = match table {
            TableName::Udlk => (self.ternary.udlks().count() as u32, UdlkId::COUNT as u32),
            TableName::Tcam => self.ternary.count(),
            TableName::Mpls => self.mpls.count(),
            TableName::Ipv4 => self.ipv4.count(),
            TableName::Mac => self.mac.count(),
            TableName::Prefix => self.prefixes.count(),
            TableName::Interface => self.objects.interfaces.count(),
            TableName::Group => self.objects.groups.count(),
            TableName::Tunnel => self.objects.tunnels.count(),
        };
        EntryCount { table, entries, size }
    }

    /// Returns all entries of a table, ordered by their keys or numbers.
    pub fn entries(&self, table: TableName) -> Vec<Shown> {
        let plain = |change| Shown { change, frames: 0, bytes: 0 };
        match table {
            TableName::Udlk => {
                let keys = self.ternary.udlks();
                keys.map(|(id, udlk)| plain(Change::Udlk(id, Some(udlk.clone())))).collect()
            }
            TableName::Interface => {
                let all = self.objects.interfaces.iter();
                all.map(|(number, one)| plain(Change::Interface(number, Some(*one)))).collect()
            }
            TableName::Group => {
                let all = self.objects.groups.iter();
                all.map(|(number, one)| plain(Change::Group(number, Some(one.clone())))).collect()
            }
            TableName::Tunnel => {
                let all = self.objects.tunnels.iter();
                all.map(|(number, one)| plain(Change::Tunnel(number, Some(one.clone())))).collect()
            }
            TableName::Tcam => {
                let all = self.ternary.slots();
                all.map(|(index, slot)| {
                    let entry = TcamEntry {
                        udlk: slot.udlk,
                        value: slot.value.clone(),
                        mask: slot.mask.clone(),
                        action: slot.entry.action.clone(),
                    };
                    shown(Change::Tcam(index, Some(entry)), &slot.entry)
                })
                .collect()
            }
            TableName::Mpls => sorted(self.mpls.iter(), |label, entry| {
                Change::Mpls(label as u32, Some(entry.action.clone()))
            }),
            TableName::Ipv4 => sorted(self.ipv4.iter(), |address, entry| {
                let address = Ipv4Addr::from_bits(address as u32);
                Change::Ipv4(address, Some(entry.action.clone()))
            }),
            TableName::Mac => sorted(self.mac.iter(), |key, entry| {
                Change::Mac(MacKey::unpacked(key), Some(entry.action.clone()))
            }),
            TableName::Prefix => {
                let entries = self.prefixes.iter().map(|(prefix, entry)| {
                    shown(Change::Prefix(prefix, Some(entry.action.clone())), entry)
                });
                entries.collect()
            }
        }
    }

    /// Returns the entries outside the tables: the action without a match, and the options of ports
    /// that are not the defaults.
    pub(crate) fn rest(&self) -> Vec<Shown> {
        let miss = self.miss.iter();
        let miss = miss.map(|entry| shown(Change::Miss(Some(entry.action.clone())), entry));
        let ports = (0..).map(PortNo).zip(&self.ports);
        let ports = ports.filter(|(_, options)| **options != PortOptions::default());
        let port = |(port, options): (PortNo, &PortOptions)| Shown {
            change: Change::Port(port, Some(*options)),
            frames: 0,
            bytes: 0,
        };
        miss.chain(ports.map(port)).collect()
    }

    /// Returns frames and bytes that matched an entry; `None` if it does not exist or cannot match.
    pub fn counters(&self, name: EntryName) -> Option<(u64, u64)> {
        let entry = match name {
            EntryName::Tcam(index) => &self.ternary.slot(index)?.entry,
            EntryName::Mac(key) => self.mac.get(key.packed())?,
            EntryName::Ipv4(address) => self.ipv4.get(address.to_bits().into())?,
            EntryName::Mpls(label) => self.mpls.get(label.into())?,
            EntryName::Prefix(prefix) => self.prefixes.get(prefix)?,
            EntryName::Miss => self.miss.as_ref()?,
            _ => return None,
        };
        Some((entry.frames, entry.bytes))
    }

    /// Returns the name of the entry that a lookup found.
    pub(crate) fn name_of(&self, hit: Hit) -> EntryName {
        match hit {
            Hit::Tcam(index) => EntryName::Tcam(index),
            Hit::Mpls(label) => EntryName::Mpls(label),
            Hit::Ipv4(address) => EntryName::Ipv4(address),
            Hit::Mac(key) => EntryName::Mac(key),
            Hit::Prefix(slot) => {
                self.prefixes.prefix_of(slot).map_or(EntryName::Miss, EntryName::Prefix)
            }
            Hit::Miss => EntryName::Miss,
        }
    }

    /// Returns the objects that entries refer to.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Returns the lookup keys of a frame: the bytes in the order of the key's fields.
    pub(crate) fn keys_of(
        &self,
        frame: &[u8],
        parsed: &Parsed,
        ingress: PortNo,
        priority: u8,
    ) -> Vec<(UdlkId, Vec<u8>)> {
        self.ternary.keys_of(keyed(frame, parsed, ingress, priority))
    }
}

fn shown(change: Change, entry: &Entry) -> Shown {
    Shown { change, frames: entry.frames, bytes: entry.bytes }
}

fn sorted<'a>(
    entries: impl Iterator<Item = (u64, &'a Entry)>,
    change: impl Fn(u64, &Entry) -> Change,
) -> Vec<Shown> {
    let mut all: Vec<(u64, &Entry)> = entries.collect();
    all.sort_by_key(|(key, _)| *key);
    all.into_iter().map(|(key, entry)| shown(change(key, entry), entry)).collect()
}
