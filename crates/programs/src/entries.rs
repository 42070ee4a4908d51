//! Collects the entries that a program wants: numbers for interfaces, groups and TCAM entries, and
//! the traps that all programs share.

use crate::link_state;
use crate::site::{Neighbour, Site};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_pipeline::{
    Action, Change, Field, FrameType, Group, Interface, Target, TcamEntry, Udlk, UdlkId,
};
use axon_wire::PortNo;
use axon_wire::constants::ethertype;

/// Keys of the traps; programs have the others, from 0.
const ARP_KEY: UdlkId = UdlkId(14);
const LINK_STATE_KEY: UdlkId = UdlkId(15);
/// Keys of the entries against labels: ingress port, and the EtherType behind a tag.
const LABELS_KEY: UdlkId = UdlkId(12);
const TAGGED_LABELS_KEY: UdlkId = UdlkId(13);
/// The EtherType of a frame without a tag.
const ETHERTYPE: Field = Field::Bytes { first: 12, last: 13 };
/// The EtherType behind a tag.
const TAGGED_ETHERTYPE: Field = Field::Bytes { first: 16, last: 17 };

/// A value of the TCAM with its mask: all fields of a key in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    value: Vec<u8>,
    mask: Vec<u8>,
}

impl Match {
    /// Nothing yet.
    pub fn new() -> Match {
        Match::default()
    }

    /// And then these bytes.
    #[must_use]
    pub fn exactly(self, bytes: &[u8]) -> Match {
        let count = bytes.len();
        self.masked(bytes, &alloc::vec![0xff; count])
    }

    /// And then so many bytes, whatever they are.
    #[must_use]
    pub fn any(self, count: usize) -> Match {
        self.masked(&alloc::vec![0; count], &alloc::vec![0; count])
    }

    /// And then the bits of `value` that `mask` has, which is as long.
    #[must_use]
    pub fn masked(mut self, value: &[u8], mask: &[u8]) -> Match {
        self.value.extend(value.iter().zip(mask).map(|(value, mask)| value & mask));
        self.mask.extend(mask);
        self
    }

    /// And then the number of an ingress port.
    #[must_use]
    pub fn ingress(self, port: PortNo) -> Match {
        self.exactly(&port.0.to_be_bytes())
    }

    /// Value and mask.
    pub fn into_parts(self) -> (Vec<u8>, Vec<u8>) {
        (self.value, self.mask)
    }
}

/// The entries of one switch.
///
/// Interface `p` leads out of port `p` and changes nothing; interface `ports + p`, where a host is
/// at port `p`, gives frames the host's address.
#[derive(Clone, Debug)]
pub struct Entries {
    changes: Vec<Change>,
    ports: u16,
    groups: BTreeMap<Vec<PortNo>, u16>,
    tcam: u16,
    /// Entries of the TCAM that come before all others.
    first: Vec<TcamEntry>,
}

impl Entries {
    /// Interfaces of all ports, and traps for ARP and link states.
    pub fn new(site: &Site) -> Entries {
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

    /// Labels are of switches only: frames that have some and come in by other ports end here, as
    /// their senders could choose the way of each, and rounds.
    pub fn refuse_labels(&mut self, site: &Site) {
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

    /// One more entry of the TCAM that comes before all of [`Entries::tcam`], whenever they come.
    pub fn first(&mut self, udlk: UdlkId, of: Match, action: impl Into<Action>) {
        let (value, mask) = of.into_parts();
        self.first.push(TcamEntry { udlk, value, mask, action: action.into() });
    }

    /// One more change.
    pub fn push(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// One more entry of the TCAM, which comes before those that are there. Beyond index 65,535
    /// it takes the place of the last: no table is so large.
    pub fn tcam(&mut self, udlk: UdlkId, of: Match, action: impl Into<Action>) {
        let (value, mask) = of.into_parts();
        self.set_next(TcamEntry { udlk, value, mask, action: action.into() });
    }

    fn set_next(&mut self, entry: TcamEntry) {
        self.push(Change::Tcam(self.tcam, Some(entry)));
        self.tcam = self.tcam.saturating_add(1);
    }

    /// Out of one of these ports, by the hash of the flow; nowhere without any.
    pub fn one_of(&mut self, ports: &[PortNo]) -> Target {
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

    /// To the host at a port of this switch.
    pub fn host(&self, port: PortNo) -> Target {
        Target::Interface(self.ports + port.0)
    }

    /// All changes.
    pub fn into_changes(mut self) -> Vec<Change> {
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
