//! Tables: their entries, and the lookup of a frame.
//!
//! A frame is looked up in the TCAM by each lookup key of its type, in the exact-match tables by
//! its label, its IPv4 destination and its destination MAC, and in the prefixes by its IPv4
//! destination. TCAM precedes exact match, and exact match longest prefix match (paper 004 §4.1);
//! among the exact-match tables the label precedes the address and the address the MAC. Only the
//! winning entry counts the frame. A winning entry of the TCAM may leave the decision to lower ones
//! ([`Target::Tables`](crate::Target::Tables)); then the deciding entry counts it too.

mod commit;
mod entry;
mod exact;
mod lpm;
mod numbered;
mod read;
mod tcam;

pub(crate) use entry::Entry;
pub use entry::{EntryCount, MacKey, PortOptions, Prefix, TableName, TcamEntry};
pub use read::Shown;

use crate::action::{Action, Group, Interface, Tunnel};
use crate::frame_type::{FrameType, Parsed};
use crate::key::{Extractor, KeyBytes, Udlk, UdlkId};
use crate::sizes::Sizes;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::{HopWidth, PortNo};
use exact::Exact;
use lpm::Lpm;
use numbered::Numbered;
use tcam::Tcam;

/// Maximum number of keys of one frame type.
const KEYS_PER_TYPE: usize = 2;

/// The tables of one switch.
#[derive(Clone, Debug)]
pub struct Tables {
    pub(crate) sizes: Sizes,
    /// Bits of a hop, for routes that entries push.
    hop_width: HopWidth,
    keys: Vec<Option<Key>>,
    /// Keys by frame type.
    of_type: [Vec<UdlkId>; FrameType::ALL.len()],
    tcam: Vec<Option<TcamSlot>>,
    tcam_entries: u32,
    mpls: Exact,
    ipv4: Exact,
    mac: Exact,
    prefixes: BTreeMap<Prefix, u32>,
    prefix_entries: Vec<Option<Entry>>,
    free_prefixes: Vec<u32>,
    lpm: Lpm,
    /// True if the prefixes have changed since `lpm` was built.
    lpm_is_stale: bool,
    pub(crate) interfaces: Numbered<Interface>,
    pub(crate) groups: Numbered<Group>,
    pub(crate) tunnels: Numbered<Tunnel>,
    miss: Option<Entry>,
    ports: Vec<PortOptions>,
}

/// A lookup key and its entries.
#[derive(Clone, Debug)]
struct Key {
    udlk: Udlk,
    extractor: Extractor,
    tcam: Tcam,
    users: u32,
}

#[derive(Clone, Debug)]
struct TcamSlot {
    udlk: UdlkId,
    value: Vec<u8>,
    mask: Vec<u8>,
    entry: Entry,
}

/// Location of the winning entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The TCAM, at this index.
    Tcam(u16),
    /// Exact match on the label.
    Mpls(u32),
    /// Exact match on the IPv4 destination.
    Ipv4(core::net::Ipv4Addr),
    /// Exact match on the destination MAC.
    Mac(MacKey),
    /// The prefix in this slot.
    Prefix(u32),
    /// The action for frames without a match.
    Miss,
}

/// Result of a lookup.
#[derive(Debug)]
pub struct Verdict<'a> {
    /// The action; `None` if nothing matches.
    pub action: Option<&'a Action>,
    /// True if the source of the frame is to be learned.
    pub learn: bool,
    pub(crate) interfaces: &'a Numbered<Interface>,
    pub(crate) groups: &'a Numbered<Group>,
    pub(crate) tunnels: &'a Numbered<Tunnel>,
}

impl Verdict<'_> {
    /// Returns an interface by its number.
    pub fn interface(&self, number: u16) -> Option<&Interface> {
        self.interfaces.get(number)
    }
}

/// Returns the bridge of a frame received on a port with these options.
#[inline]
fn bridge_of(parsed: &Parsed, options: PortOptions) -> u16 {
    parsed.bridge.unwrap_or(options.bridge)
}

impl Tables {
    /// Returns empty tables of these sizes for a switch with this many ports, whose Axon headers
    /// have hops of this width. `seed` determines which addresses collide in its hash tables; it
    /// should be unpredictable outside a simulation.
    pub fn new(sizes: Sizes, hop_width: HopWidth, ports: u16, seed: u64) -> Tables {
        Tables {
            hop_width,
            keys: (0..UdlkId::COUNT).map(|_| None).collect(),
            of_type: Default::default(),
            tcam: Vec::new(),
            tcam_entries: 0,
            mpls: Exact::new(sizes.mpls, seed),
            ipv4: Exact::new(sizes.ipv4, seed),
            mac: Exact::new(sizes.mac, seed),
            prefixes: BTreeMap::new(),
            prefix_entries: Vec::new(),
            free_prefixes: Vec::new(),
            lpm: Lpm::default(),
            lpm_is_stale: false,
            interfaces: Numbered::new(sizes.interface.min(1 << 16)),
            groups: Numbered::new(sizes.group.min(1 << 16)),
            tunnels: Numbered::new(sizes.tunnel.min(1 << 16)),
            miss: None,
            ports: alloc::vec![PortOptions::default(); usize::from(ports)],
            sizes: Sizes { tcam: sizes.tcam.min(1 << 16), ..sizes },
        }
    }

    /// Looks up a frame, and counts it at the winning entry. If that leaves the decision to other
    /// entries, [`Tables::lookup_deciding`] finds it.
    #[inline]
    pub fn lookup(
        &mut self,
        frame: &[u8],
        parsed: &Parsed,
        ingress: PortNo,
        priority: u8,
    ) -> Verdict<'_> {
        let options = self.options(ingress);
        let tcam = self.match_tcam(frame, parsed.frame_type, ingress, priority, Tcam::lookup);
        let learn = options.learn && self.is_to_learn(parsed, bridge_of(parsed, options), ingress);
        Verdict { learn, ..self.take_winner(tcam, frame, parsed, options) }
    }

    /// Looks up a frame among the deciding entries: all but those with the target
    /// [`Target::Tables`](crate::Target::Tables). Nothing is learned.
    #[cold]
    pub fn lookup_deciding(
        &mut self,
        frame: &[u8],
        parsed: &Parsed,
        ingress: PortNo,
        priority: u8,
    ) -> Verdict<'_> {
        let options = self.options(ingress);
        let search = Tcam::lookup_deciding;
        let tcam = self.match_tcam(frame, parsed.frame_type, ingress, priority, search);
        self.take_winner(tcam, frame, parsed, options)
    }

    /// Returns the entry at this index of the TCAM, or else the first of the other tables, and
    /// counts the frame there.
    #[inline(always)]
    fn take_winner(
        &mut self,
        tcam: Option<u16>,
        frame: &[u8],
        parsed: &Parsed,
        options: PortOptions,
    ) -> Verdict<'_> {
        let label = parsed.label.filter(|_| options.routed);
        let address = parsed.ipv4.filter(|_| options.routed);
        let bridge = bridge_of(parsed, options);
        let mac = parsed.destination.map(|mac| MacKey { bridge, mac }.packed());
        let Tables { mpls, ipv4, lpm, interfaces, groups, tunnels, .. } = self;
        let entry = if let Some(index) = tcam {
            let slot = self.tcam.get_mut(usize::from(index)).and_then(Option::as_mut);
            slot.map(|slot| &mut slot.entry)
        } else if let Some(entry) = label.and_then(|label| mpls.get_mut(label.into())) {
            Some(entry)
        } else if let Some(entry) = address.and_then(|ip| ipv4.get_mut(ip.to_bits().into())) {
            Some(entry)
        } else if let Some(entry) = mac.and_then(|mac| self.mac.get_mut(mac)) {
            Some(entry)
        } else if let Some(slot) = address.and_then(|ip| lpm.lookup(ip.to_bits())) {
            self.prefix_entries.get_mut(slot as usize).and_then(Option::as_mut)
        } else {
            self.miss.as_mut()
        };
        let action = entry.map(|entry| {
            entry.count(frame.len());
            &entry.action
        });
        Verdict { action, learn: false, interfaces, groups, tunnels }
    }

    /// Looks up a frame without counting: returns the location of the entry, and its action.
    pub fn find(
        &self,
        frame: &[u8],
        parsed: &Parsed,
        ingress: PortNo,
        priority: u8,
    ) -> Option<(Hit, &Action)> {
        self.matches(frame, parsed, ingress, priority).into_iter().next()
    }

    /// Returns all entries that a frame matches, the winning one first. The TCAM is searched entry
    /// by entry, so this is slow.
    pub fn matches(
        &self,
        frame: &[u8],
        parsed: &Parsed,
        ingress: PortNo,
        priority: u8,
    ) -> Vec<(Hit, &Action)> {
        let options = self.options(ingress);
        let mut all = Vec::new();
        let keys = self.keys_of(frame, parsed, ingress, priority);
        let is_met = |slot: &TcamSlot| {
            let masked = |key: &[u8]| {
                let bits = key.iter().zip(&slot.mask).map(|(key, mask)| key & mask);
                bits.eq(slot.value.iter().copied())
            };
            keys.iter().any(|(id, key)| *id == slot.udlk && masked(key))
        };
        let highest = self.match_tcam(frame, parsed.frame_type, ingress, priority, Tcam::lookup);
        for index in highest.into_iter().flat_map(|highest| (0..=highest).rev()) {
            let slot = self.tcam.get(usize::from(index)).and_then(Option::as_ref);
            if let Some(slot) = slot.filter(|slot| is_met(slot)) {
                all.push((Hit::Tcam(index), &slot.entry.action));
            }
        }
        let label = parsed.label.filter(|_| options.routed);
        let address = parsed.ipv4.filter(|_| options.routed);
        if let Some(label) = label
            && let Some(entry) = self.mpls.get(label.into())
        {
            all.push((Hit::Mpls(label), &entry.action));
        }
        if let Some(ip) = address
            && let Some(entry) = self.ipv4.get(ip.to_bits().into())
        {
            all.push((Hit::Ipv4(ip), &entry.action));
        }
        let mac = parsed.destination.map(|mac| MacKey { bridge: bridge_of(parsed, options), mac });
        if let Some(key) = mac
            && let Some(entry) = self.mac.get(key.packed())
        {
            all.push((Hit::Mac(key), &entry.action));
        }
        if let Some(slot) = address.and_then(|ip| self.lpm.lookup(ip.to_bits()))
            && let Some(Some(entry)) = self.prefix_entries.get(slot as usize)
        {
            all.push((Hit::Prefix(slot), &entry.action));
        }
        all.extend(self.miss.as_ref().map(|entry| (Hit::Miss, &entry.action)));
        all
    }

    /// Returns the highest TCAM index that one of the keys of the frame matches, as found by
    /// `search`.
    #[inline(always)]
    fn match_tcam(
        &self,
        frame: &[u8],
        frame_type: FrameType,
        ingress: PortNo,
        priority: u8,
        search: impl Fn(&Tcam, &KeyBytes) -> Option<u16>,
    ) -> Option<u16> {
        let keys = self.of_type[frame_type as usize].iter();
        let keys = keys.filter_map(|id| self.keys[usize::from(id.0)].as_ref());
        keys.filter(|key| key.users > 0)
            .filter_map(|key| search(&key.tcam, &key.extractor.extract(frame, ingress, priority)))
            .max()
    }

    /// Returns whether a frame received on `ingress` goes to the control program for its source.
    pub(crate) fn learns(&self, parsed: &Parsed, ingress: PortNo) -> bool {
        let options = self.options(ingress);
        options.learn && self.is_to_learn(parsed, bridge_of(parsed, options), ingress)
    }

    /// Returns whether the source of a frame has no entry that leads to its ingress.
    fn is_to_learn(&self, parsed: &Parsed, bridge: u16, ingress: PortNo) -> bool {
        let Some(mac) = parsed.source.filter(|mac| mac.is_unicast()) else { return false };
        let entry = self.mac.get(MacKey { bridge, mac }.packed());
        let leads = |entry: &Entry| match entry.action.target {
            crate::Target::Port(port) => port == ingress,
            crate::Target::Interface(number) => {
                self.interfaces.get(number).is_some_and(|interface| interface.port == ingress)
            }
            crate::Target::Group(number) => {
                let members = self.groups.get(number).map_or(&[][..], |group| &group.interfaces);
                let port = |&one: &u16| self.interfaces.get(one).map(|interface| interface.port);
                matches!(members, [one] if port(one) == Some(ingress))
            }
            _ => false,
        };
        !entry.is_some_and(leads)
    }

    /// Parses a frame received on `port`.
    #[inline]
    pub(crate) fn parse(&self, frame: &[u8], port: PortNo) -> Parsed {
        if self.options(port).axon { Parsed::axon() } else { Parsed::ethernet(frame) }
    }

    #[inline]
    pub(crate) fn options(&self, port: PortNo) -> PortOptions {
        self.ports.get(port.index()).copied().unwrap_or_default()
    }
}
