//! Read access to tables: all entries, single counters, numbers of entries.

use super::entry::{EntryCount, MacKey, PortOptions, TableName};
use super::{Entry, Hit, Key, Tables};
use crate::action::{Interface, Tunnel};
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
        let keys = self.keys.iter().flatten().count() as u32;
        let (entries, size) = match table {
            TableName::Udlk => (keys, UdlkId::COUNT as u32),
            TableName::Tcam => (self.tcam_entries, self.sizes.tcam),
            TableName::Mpls => (self.mpls.len() as u32, self.mpls.size()),
            TableName::Ipv4 => (self.ipv4.len() as u32, self.ipv4.size()),
            TableName::Mac => (self.mac.len() as u32, self.mac.size()),
            TableName::Prefix => (self.prefixes.len() as u32, self.sizes.prefix),
            TableName::Interface => (self.interfaces.len(), self.interfaces.size()),
            TableName::Group => (self.groups.len(), self.groups.size()),
            TableName::Tunnel => (self.tunnels.len(), self.tunnels.size()),
        };
        EntryCount { table, entries, size }
    }

    /// Returns all entries of a table, ordered by their keys or numbers.
    pub fn entries(&self, table: TableName) -> Vec<Shown> {
        let plain = |change| Shown { change, frames: 0, bytes: 0 };
        match table {
            TableName::Udlk => {
                let keys = (0..).zip(&self.keys);
                let udlk = |id, udlk| plain(Change::Udlk(UdlkId(id), Some(udlk)));
                keys.filter_map(|(id, key)| Some(udlk(id, key.as_ref()?.udlk.clone()))).collect()
            }
            TableName::Interface => {
                let all = self.interfaces.iter();
                all.map(|(number, one)| plain(Change::Interface(number, Some(*one)))).collect()
            }
            TableName::Group => {
                let all = self.groups.iter();
                all.map(|(number, one)| plain(Change::Group(number, Some(one.clone())))).collect()
            }
            TableName::Tunnel => {
                let all = self.tunnels.iter();
                all.map(|(number, one)| plain(Change::Tunnel(number, Some(one.clone())))).collect()
            }
            TableName::Tcam => {
                let all = (0..=u16::MAX).zip(&self.tcam);
                all.filter_map(|(index, slot)| {
                    let slot = slot.as_ref()?;
                    let entry = TcamEntry {
                        udlk: slot.udlk,
                        value: slot.value.clone(),
                        mask: slot.mask.clone(),
                        action: slot.entry.action.clone(),
                    };
                    Some(shown(Change::Tcam(index, Some(entry)), &slot.entry))
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
                let entries = self.prefixes.iter().filter_map(|(&prefix, &slot)| {
                    let entry = self.prefix_entries.get(slot as usize)?.as_ref()?;
                    let change = Change::Prefix(prefix, Some(entry.action.clone()));
                    Some(shown(change, entry))
                });
                entries.collect()
            }
        }
    }

    /// Returns the entries outside the tables: the action without a match, and the options of ports
    /// that are not the defaults.
    pub fn rest(&self) -> Vec<Shown> {
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
            EntryName::Tcam(index) => &self.tcam.get(usize::from(index))?.as_ref()?.entry,
            EntryName::Mac(key) => self.mac.get(key.packed())?,
            EntryName::Ipv4(address) => self.ipv4.get(address.to_bits().into())?,
            EntryName::Mpls(label) => self.mpls.get(label.into())?,
            EntryName::Prefix(prefix) => {
                let slot = *self.prefixes.get(&prefix)?;
                self.prefix_entries.get(slot as usize)?.as_ref()?
            }
            EntryName::Miss => self.miss.as_ref()?,
            _ => return None,
        };
        Some((entry.frames, entry.bytes))
    }

    /// Returns the name of the entry that a lookup found.
    pub fn name_of(&self, hit: Hit) -> EntryName {
        match hit {
            Hit::Tcam(index) => EntryName::Tcam(index),
            Hit::Mpls(label) => EntryName::Mpls(label),
            Hit::Ipv4(address) => EntryName::Ipv4(address),
            Hit::Mac(key) => EntryName::Mac(key),
            Hit::Prefix(slot) => {
                let prefix = self.prefixes.iter().find(|(_, other)| **other == slot);
                prefix.map_or(EntryName::Miss, |(&prefix, _)| EntryName::Prefix(prefix))
            }
            Hit::Miss => EntryName::Miss,
        }
    }

    /// Returns an interface by its number.
    pub fn interface(&self, number: u16) -> Option<&Interface> {
        self.interfaces.get(number)
    }

    /// Returns the members of a group; none if it does not exist.
    pub fn members(&self, group: u16) -> &[u16] {
        self.groups.get(group).map_or(&[], |group| &group.interfaces)
    }

    /// Returns the lookup keys of a frame: the bytes in the order of the key's fields.
    pub fn keys_of(
        &self,
        frame: &[u8],
        parsed: &Parsed,
        ingress: PortNo,
        priority: u8,
    ) -> Vec<(UdlkId, Vec<u8>)> {
        let ids = self.of_type[parsed.frame_type as usize].iter();
        let keys = ids.filter_map(|&id| Some((id, self.keys[usize::from(id.0)].as_ref()?)));
        let value = |key: &Key| {
            key.extractor.extract(frame, ingress, priority)[..key.extractor.len()].to_vec()
        };
        keys.map(|(id, key)| (id, value(key))).collect()
    }

    /// Returns a tunnel by its number.
    pub fn tunnel(&self, number: u16) -> Option<&Tunnel> {
        self.tunnels.get(number)
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
