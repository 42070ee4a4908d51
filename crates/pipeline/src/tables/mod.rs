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
mod objects;
mod prefixes;
mod read;
mod tcam;
mod ternary;

pub(crate) use entry::Entry;
pub use entry::{EntryCount, MacKey, PortOptions, Prefix, TableName, TcamEntry};
pub use objects::Objects;
pub use read::Shown;

use crate::action::Action;
use crate::frame_type::Parsed;
use crate::sizes::Sizes;
use alloc::vec::Vec;
use axon_wire::{HopWidth, PortNo};
use exact::Exact;
use prefixes::Prefixes;
use tcam::Tcam;
use ternary::{Keyed, Ternary};

/// The tables of one switch.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Bits of a hop, for routes that entries push.
    hop_width: HopWidth,
    ternary: Ternary,
    mpls: Exact,
    ipv4: Exact,
    mac: Exact,
    prefixes: Prefixes,
    objects: Objects,
    miss: Option<Entry>,
    ports: Vec<PortOptions>,
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
    pub(crate) objects: &'a Objects,
}

/// Returns the bridge of a frame received on a port with these options.
#[inline]
fn bridge_of(parsed: &Parsed, options: PortOptions) -> u16 {
    parsed.bridge.unwrap_or(options.bridge)
}

/// Returns what the lookup keys of a frame are made of.
#[inline]
fn keyed<'a>(frame: &'a [u8], parsed: &Parsed, ingress: PortNo, priority: u8) -> Keyed<'a> {
    Keyed { frame, frame_type: parsed.frame_type, ingress, priority }
}

impl Tables {
    /// Returns empty tables of these sizes for a switch with this many ports, whose Axon headers
    /// have hops of this width. `seed` determines which addresses collide in its hash tables; it
    /// should be unpredictable outside a simulation.
    pub fn new(sizes: Sizes, hop_width: HopWidth, ports: u16, seed: u64) -> Tables {
        Tables {
            hop_width,
            ternary: Ternary::new(sizes.tcam.min(1 << 16)),
            mpls: Exact::new(sizes.mpls, seed),
            ipv4: Exact::new(sizes.ipv4, seed),
            mac: Exact::new(sizes.mac, seed),
            prefixes: Prefixes::new(sizes.prefix),
            objects: Objects::new(&sizes),
            miss: None,
            ports: alloc::vec![PortOptions::default(); usize::from(ports)],
        }
    }

    /// Looks up a frame, and counts it at the winning entry. If that leaves the decision to other
    /// entries, `Tables::lookup_deciding` finds it.
    #[inline]
    pub fn lookup(
        &mut self,
        frame: &[u8],
        parsed: &Parsed,
        ingress: PortNo,
        priority: u8,
    ) -> Verdict<'_> {
        let options = self.options(ingress);
        let tcam = self.ternary.highest(keyed(frame, parsed, ingress, priority), Tcam::lookup);
        let learn = options.learn && self.is_to_learn(parsed, bridge_of(parsed, options), ingress);
        Verdict { learn, ..self.take_winner(tcam, frame, parsed, options) }
    }

    /// Looks up a frame among the deciding entries: all but those with the target
    /// [`Target::Tables`](crate::Target::Tables). Nothing is learned.
    #[cold]
    pub(crate) fn lookup_deciding(
        &mut self,
        frame: &[u8],
        parsed: &Parsed,
        ingress: PortNo,
        priority: u8,
    ) -> Verdict<'_> {
        let options = self.options(ingress);
        let keyed = keyed(frame, parsed, ingress, priority);
        let tcam = self.ternary.highest(keyed, Tcam::lookup_deciding);
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
        let Tables { ternary, mpls, ipv4, prefixes, objects, .. } = self;
        let entry = if let Some(index) = tcam {
            ternary.entry_mut(index)
        } else if let Some(entry) = label.and_then(|label| mpls.get_mut(label.into())) {
            Some(entry)
        } else if let Some(entry) = address.and_then(|ip| ipv4.get_mut(ip.to_bits().into())) {
            Some(entry)
        } else if let Some(entry) = mac.and_then(|mac| self.mac.get_mut(mac)) {
            Some(entry)
        } else if let Some(entry) = address.and_then(|ip| prefixes.lookup_mut(ip)) {
            Some(entry)
        } else {
            self.miss.as_mut()
        };
        let action = entry.map(|entry| {
            entry.count(frame.len());
            &entry.action
        });
        Verdict { action, learn: false, objects }
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
    pub(crate) fn matches(
        &self,
        frame: &[u8],
        parsed: &Parsed,
        ingress: PortNo,
        priority: u8,
    ) -> Vec<(Hit, &Action)> {
        let options = self.options(ingress);
        let tcam = self.ternary.matches(keyed(frame, parsed, ingress, priority));
        let mut all: Vec<_> = tcam.map(|(index, action)| (Hit::Tcam(index), action)).collect();
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
        let prefix = address.and_then(|ip| self.prefixes.lookup(ip));
        all.extend(prefix.map(|(slot, entry)| (Hit::Prefix(slot), &entry.action)));
        all.extend(self.miss.as_ref().map(|entry| (Hit::Miss, &entry.action)));
        all
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
                self.objects.interface(number).is_some_and(|interface| interface.port == ingress)
            }
            crate::Target::Group(number) => {
                let port = |&one: &u16| self.objects.interface(one).map(|one| one.port);
                matches!(self.objects.members(number), [one] if port(one) == Some(ingress))
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
