//! Collection of a program's entries. It assigns numbers to interfaces, groups and TCAM entries,
//! and contains the traps shared by all programs.

use crate::link_state;
use crate::site::{Neighbour, Site};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_pipeline::{
    Action, Change, Field, FrameType, Group, Interface, Target, TcamEntry, Udlk, UdlkId,
};
use axon_wire::PortNo;
use axon_wire::constants::ethertype;

/// Key of the traps. Programs use the other keys, from 0.
const ARP_KEY: UdlkId = UdlkId(14);
const LINK_STATE_KEY: UdlkId = UdlkId(15);
/// Key of the entries that drop labelled frames: ingress port, and the EtherType after a tag.
const LABELS_KEY: UdlkId = UdlkId(12);
const TAGGED_LABELS_KEY: UdlkId = UdlkId(13);
/// EtherType of an untagged frame.
const ETHERTYPE: Field = Field::Bytes { first: 12, last: 13 };
/// EtherType after a tag.
const TAGGED_ETHERTYPE: Field = Field::Bytes { first: 16, last: 17 };

/// TCAM value and mask, made of all fields of a key in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    value: Vec<u8>,
    mask: Vec<u8>,
}

impl Match {
    /// Returns an empty match.
    pub(crate) fn new() -> Match {
        Match::default()
    }

    /// Appends bytes that must match exactly.
    #[must_use]
    pub(crate) fn exactly(self, bytes: &[u8]) -> Match {
        let count = bytes.len();
        self.masked(bytes, &alloc::vec![0xff; count])
    }

    /// Appends `count` wildcard bytes.
    #[must_use]
    pub(crate) fn any(self, count: usize) -> Match {
        self.masked(&alloc::vec![0; count], &alloc::vec![0; count])
    }

    /// Appends `value` with `mask`, which has the same length.
    #[must_use]
    pub(crate) fn masked(mut self, value: &[u8], mask: &[u8]) -> Match {
        self.value.extend(value.iter().zip(mask).map(|(value, mask)| value & mask));
        self.mask.extend(mask);
        self
    }

    /// Appends an ingress port number.
    #[must_use]
    pub(crate) fn ingress(self, port: PortNo) -> Match {
        self.exactly(&port.0.to_be_bytes())
    }

    /// Returns value and mask.
    pub(crate) fn into_parts(self) -> (Vec<u8>, Vec<u8>) {
        (self.value, self.mask)
    }
}

/// Table entries of one switch.
///
/// Interface `p` leads out of port `p` and changes nothing. If a host is attached to port `p`,
/// interface `ports + p` gives frames the host's address.
#[derive(Clone, Debug)]
pub struct Entries {
    changes: Vec<Change>,
    ports: u16,
    groups: BTreeMap<Vec<PortNo>, u16>,
    tcam: u16,
    /// TCAM entries that precede all others.
    first: Vec<TcamEntry>,
}

impl Entries {
    /// Creates the interfaces of all ports, and the traps for ARP and link states.
    pub(crate) fn new(site: &Site) -> Entries {
        let ports = u16::try_from(site.own().ports.len()).unwrap_or(u16::MAX);
        let mut entries = Entries {
            changes: Vec::new(),
            ports,
            groups: BTreeMap::new(),
            tcam: 0,
            first: Vec::new(),
        };
        for (port, neighbour) in site.ports() {
            if neighbour == Neighbour::Nothing {
                continue;
            }
            let plain = Interface::of(port);
            entries.push(Change::Interface(port.0, Some(plain)));
            if let Neighbour::Host(host) = neighbour
                && let Some(host) = site.plan.hosts.get(host as usize)
            {
                let delivering = Interface { destination: Some(host.mac), ..plain };
                entries.push(Change::Interface(ports + port.0, Some(delivering)));
            }
        }
        entries.trap(ARP_KEY, FrameType::Arp, ethertype::ARP);
        entries.trap(LINK_STATE_KEY, FrameType::Other, link_state::ETHERTYPE);
        entries
    }

    fn trap(&mut self, key: UdlkId, frame_type: FrameType, ethertype: u16) {
        self.push(Change::Udlk(key, Some(Udlk::of(frame_type, [ETHERTYPE]))));
        self.first(key, Match::new().exactly(&ethertype.to_be_bytes()), Action::cpu());
    }

    /// Drops labelled frames from ports that do not lead to switches, because their senders could
    /// choose paths and cause loops.
    pub(crate) fn refuse_labels(&mut self, site: &Site) {
        let to_nodes = |there| matches!(there, Neighbour::Node(..));
        let ports: Vec<PortNo> =
            site.ports().filter(|(_, there)| !to_nodes(*there)).map(|(port, _)| port).collect();
        if ports.is_empty() {
            return;
        }
        let plain = Udlk::of(FrameType::Mpls, [Field::Ingress]);
        let tagged = Udlk::of(FrameType::Tagged, [Field::Ingress, TAGGED_ETHERTYPE]);
        self.push(Change::Udlk(LABELS_KEY, Some(plain)));
        self.push(Change::Udlk(TAGGED_LABELS_KEY, Some(tagged)));
        for port in ports {
            let from = || Match::new().ingress(port);
            self.first(LABELS_KEY, from(), Target::Drop);
            let tagged = from().exactly(&ethertype::MPLS.to_be_bytes());
            self.first(TAGGED_LABELS_KEY, tagged, Target::Drop);
        }
    }

    /// Adds a TCAM entry that precedes all those added with [`Entries::tcam`], regardless of order.
    pub(crate) fn first(&mut self, udlk: UdlkId, of: Match, action: impl Into<Action>) {
        let (value, mask) = of.into_parts();
        self.first.push(TcamEntry { udlk, value, mask, action: action.into() });
    }

    /// Appends a change to the collection.
    pub(crate) fn push(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Adds a TCAM entry that precedes the existing ones. Beyond index 65,535 it replaces the last
    /// one, but no table is that large.
    pub(crate) fn tcam(&mut self, udlk: UdlkId, of: Match, action: impl Into<Action>) {
        let (value, mask) = of.into_parts();
        self.set_next(TcamEntry { udlk, value, mask, action: action.into() });
    }

    fn set_next(&mut self, entry: TcamEntry) {
        self.push(Change::Tcam(self.tcam, Some(entry)));
        self.tcam = self.tcam.saturating_add(1);
    }

    /// Returns a target that selects one of these ports by flow hash, or a drop if there are none.
    pub(crate) fn one_of(&mut self, ports: &[PortNo]) -> Target {
        match *ports {
            [] => Target::Drop,
            [port] => Target::Interface(port.0),
            _ => {
                let next = self.groups.len() as u16;
                let number = *self.groups.entry(ports.to_vec()).or_insert(next);
                Target::Spread(number)
            }
        }
    }

    /// Returns the target for the host at a port of this switch.
    pub fn host(&self, port: PortNo) -> Target {
        Target::Interface(self.ports + port.0)
    }

    /// Returns all changes, in order.
    pub(crate) fn into_changes(mut self) -> Vec<Change> {
        for entry in core::mem::take(&mut self.first) {
            self.set_next(entry);
        }
        let Entries { mut changes, groups, .. } = self;
        changes.extend(groups.into_iter().map(|(ports, number)| {
            let interfaces = ports.iter().map(|port| port.0).collect();
            Change::Group(number, Some(Group { interfaces }))
        }));
        changes
    }
}
