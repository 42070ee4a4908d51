//! A learning bridge with RSTP as table entries (IEEE 802.1D-2004 clauses 7 and 17).
//!
//! In plain English: a frame whose source is not known at its port goes to the program besides,
//! which enters the address; a frame whose destination has no entry goes to a group of all ports that
//! forward. The spanning tree is [`axon_baselines::rstp`]: its BPDUs are trapped, and a port that
//! does not forward is out of the group and has an entry that drops what comes in by it.
//!
//! Differences from the standard: the tables count frames to an address, not from it, so an entry
//! ages when nothing has been sent to its address for 300 s; it comes back with the next frame from
//! there. A frame to an address behind its own ingress is dropped as in the standard (clause 7.7.1):
//! entries lead to a group of one port, and a group leaves the ingress out.

mod fdb;

use crate::book::Book;
use crate::entries::Match;
use crate::site::Site;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use axon_baselines::bridge::plane::PortState;
use axon_baselines::rstp::{BridgeId, Request, Rstp, RstpConfig, Times, path_cost};
use axon_pipeline::{
    Action, Change, Control, Field, Group, Interface, PortOptions, Program, Received, Target,
    TcamEntry, Udlk, UdlkId,
};
use axon_wire::{MacAddr, PortNo, Time};
use fdb::Fdb;

/// The key of all entries: ingress port and destination MAC.
const KEY: UdlkId = UdlkId(0);
/// The TCAM entry of reserved addresses; those of ports that do not forward are below it.
const RESERVED: u16 = 2047;
/// The group of ports that forward; the group of port `p` alone is `p + 1`.
const FLOOD: u16 = 0;

/// A bridge.
pub struct Bridge {
    rstp: Rstp,
    states: Vec<PortState>,
    fdb: Fdb,
    book: Book,
    failure: Option<String>,
}

impl Bridge {
    /// The program of the switch at `site`.
    pub fn new(site: &Site) -> Bridge {
        let own = site.own();
        Bridge {
            rstp: Rstp::new(RstpConfig {
                id: BridgeId { priority: 0x8000, mac: own.mac },
                path_costs: own.ports.iter().map(|port| path_cost(port.rate)).collect(),
                times: Times::default(),
                tx_hold_count: 6,
            }),
            states: alloc::vec![PortState::Discarding; own.ports.len()],
            fdb: Fdb::default(),
            book: Book::default(),
            failure: None,
        }
    }

    /// Makes the tables what the states of ports say.
    fn update(&mut self, control: &mut dyn Control) {
        let ports = || (0..).map(PortNo).zip(&self.states);
        let mut wanted = Vec::new();
        let key = Udlk::new([Field::Ingress, Field::Bytes { first: 0, last: 5 }]);
        wanted.push(Change::Udlk(KEY, Some(key)));
        // 01-80-C2-00-00-00 to 0F (clause 7.12.6).
        let reserved = Match::new()
            .any(2)
            .masked(&[0x01, 0x80, 0xc2, 0, 0, 0], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xf0]);
        wanted.push(tcam(RESERVED, reserved, Action::cpu()));
        for (port, &state) in ports() {
            wanted.push(Change::Interface(port.0, Some(Interface::of(port))));
            let alone = Group { interfaces: Vec::from([port.0]) };
            wanted.push(Change::Group(group_of(port), Some(alone)));
            let options = PortOptions {
                learn: state != PortState::Discarding,
                routed: false,
                ..PortOptions::default()
            };
            wanted.push(Change::Port(port, Some(options)));
            if state != PortState::Forwarding {
                let all = Match::new().ingress(port).any(6);
                wanted.push(tcam(port.0, all, Target::Drop.into()));
            }
        }
        let open = ports().filter(|(_, state)| **state == PortState::Forwarding);
        let flood = Group { interfaces: open.map(|(port, _)| port.0).collect() };
        wanted.push(Change::Group(FLOOD, Some(flood)));
        wanted.push(Change::Miss(Some(Target::Group(FLOOD).into())));
        if let Err(error) = self.book.sync(wanted, control) {
            self.failure = Some(format!("the tables refuse its entries: {error}"));
        }
    }

    fn carry_out(&mut self, requests: Vec<Request>, control: &mut dyn Control) {
        let mut has_changed = false;
        for request in requests {
            match request {
                Request::Send { port, frame } => control.send_packet(port, &frame),
                Request::State { port, state } => {
                    if let Some(current) = self.states.get_mut(port.index()) {
                        has_changed |= core::mem::replace(current, state) != state;
                    }
                }
                Request::Flush { port } => self.fdb.flush(port, control),
            }
        }
        if has_changed {
            self.update(control);
        }
    }

    fn learns(&self, port: PortNo) -> bool {
        self.states.get(port.index()).is_some_and(|&state| state != PortState::Discarding)
    }
}

/// The group of one port.
fn group_of(port: PortNo) -> u16 {
    port.0 + 1
}

fn tcam(index: u16, of: Match, action: Action) -> Change {
    let (value, mask) = of.into_parts();
    Change::Tcam(index, Some(TcamEntry { udlk: KEY, value, mask, action }))
}

impl Program for Bridge {
    fn start(&mut self, now: Time, control: &mut dyn Control) {
        self.fdb.start(now);
        self.update(control);
    }

    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        let mut requests = Vec::new();
        self.rstp.link(now, port, up, &mut requests);
        self.carry_out(requests, control);
    }

    /// A frame comes here for one reason or two: its source is to be learned, and it is for a
    /// reserved address. A BPDU whose source is not known yet comes twice, so it is read when its
    /// source is known.
    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control) {
        let Received { ingress, frame } = received;
        let source = MacAddr::source_of(frame).unwrap_or_default();
        let destination = MacAddr::destination_of(frame).unwrap_or_default();
        let is_new = self.learns(ingress)
            && source.is_unicast()
            && self.fdb.learn(now, source, ingress, Target::Group(group_of(ingress)), control);
        if is_new || !destination.is_link_local() {
            return;
        }
        let mut requests = Vec::new();
        if self.rstp.receive(now, ingress, frame, &mut requests).is_ok() {
            self.carry_out(requests, control);
        }
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        let mut requests = Vec::new();
        self.rstp.timeout(now, &mut requests);
        self.carry_out(requests, control);
        self.fdb.timeout(now, control);
    }

    fn deadline(&self) -> Option<Time> {
        [self.rstp.deadline(), self.fdb.deadline()].into_iter().flatten().min()
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}
