//! A learning bridge with RSTP, implemented as table entries (IEEE 802.1D-2004 clauses 7 and 17).
//!
//! A frame whose source is unknown at its port is also copied to the program, which learns the
//! address. A frame whose destination has no entry goes to a group of all forwarding ports. The
//! spanning tree is [`axon_baselines::rstp`]. Its BPDUs are trapped. A port that does not forward
//! is excluded from the group and has an entry that drops its ingress frames.
//!
//! There are two differences from the standard. The tables count frames to an address, not from it,
//! so an entry ages out when nothing has been sent to its address for 300 s. The address is learned
//! again with the next frame from it. A frame to an address behind its own ingress port is dropped
//! as in the standard (clause 7.7.1), because entries lead to a group of one port, and a group
//! excludes the ingress.
//!
//! A port to an agent is not part of the network. The spanning tree ignores it, nothing is flooded
//! there, and no address is learned there, because frames return with the addresses of their hosts.

mod fdb;

use crate::book::Book;
use crate::entries::Match;
use crate::planned::RETRY;
use crate::site::{Neighbour, Site};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use axon_baselines::bridge::plane::PortState;
use axon_baselines::rstp::{BridgeId, Request, Role, Rstp, RstpConfig, Times, path_cost};
use axon_pipeline::{
    Action, Change, ChangeError, Control, EntryName, Field, Group, Interface, PortOptions, Program,
    Received, Target, TcamEntry, Udlk, UdlkId,
};
use axon_wire::{MacAddr, PortNo, Time};
use fdb::Fdb;

/// Key of all entries: ingress port and destination MAC.
const KEY: UdlkId = UdlkId(0);
/// TCAM index of the entry for reserved addresses. Entries for non-forwarding ports are below it.
const RESERVED: u16 = 2047;
/// Group of all forwarding ports. The group of port `p` alone is `p + 1`.
const FLOOD: u16 = 0;

/// Control program of a bridge.
pub struct Bridge {
    rstp: Rstp,
    states: Vec<PortState>,
    /// Ports with agents.
    agents: Vec<PortNo>,
    fdb: Fdb,
    book: Book,
    /// Reason why the last update was refused.
    refusal: Option<String>,
    /// Time of the next attempt after a refusal.
    retry_at: Option<Time>,
}

impl Bridge {
    /// Creates the program for the switch at `site`.
    pub(crate) fn new(site: &Site) -> Bridge {
        let own = site.own();
        Bridge {
            rstp: Rstp::new(RstpConfig {
                id: BridgeId { priority: 0x8000, mac: own.mac },
                path_costs: own.ports.iter().map(|port| path_cost(port.rate)).collect(),
                times: Times::default(),
                tx_hold_count: 6,
            }),
            states: alloc::vec![PortState::Discarding; own.ports.len()],
            agents: site
                .ports()
                .filter(|&(_, there)| there == Neighbour::Agent)
                .map(|(port, _)| port)
                .collect(),
            fdb: Fdb::default(),
            book: Book::default(),
            refusal: None,
            retry_at: None,
        }
    }

    /// Updates the tables to match the port states.
    fn update(&mut self, now: Time, control: &mut dyn Control) {
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
            if state != PortState::Forwarding && !self.agents.contains(&port) {
                let all = Match::new().ingress(port).any(6);
                wanted.push(tcam(port.0, all, Target::Drop.into()));
            }
        }
        let open = ports().filter(|(_, state)| **state == PortState::Forwarding);
        let flood = Group { interfaces: open.map(|(port, _)| port.0).collect() };
        wanted.push(Change::Group(FLOOD, Some(flood)));
        wanted.push(Change::Miss(Some(Target::Group(FLOOD).into())));
        let made = self.book.sync(wanted, control);
        self.made(now, made);
    }

    /// Records the result of an update.
    fn made(&mut self, now: Time, made: Result<(), ChangeError>) {
        let refused = made.err();
        self.retry_at = refused.as_ref().map(|_| now + RETRY);
        self.refusal = refused.map(|error| error.to_string());
    }

    fn carry_out(&mut self, now: Time, requests: Vec<Request>, control: &mut dyn Control) {
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
            self.update(now, control);
        }
    }

    fn learns(&self, port: PortNo) -> bool {
        self.states.get(port.index()).is_some_and(|&state| state != PortState::Discarding)
    }
}

/// Returns the group of one port.
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
        self.update(now, control);
    }

    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        if self.agents.contains(&port) {
            return;
        }
        let mut requests = Vec::new();
        self.rstp.link(now, port, up, &mut requests);
        self.carry_out(now, requests, control);
    }

    /// Processes a frame that is to be learned from, is sent to a reserved address, or both. A BPDU
    /// with an unknown source arrives twice, so it is processed only once its source is known.
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
            self.carry_out(now, requests, control);
        }
    }

    /// Restores the program's own entries at once. An address is learned again with its next frame.
    fn removed(&mut self, now: Time, entries: &[EntryName], control: &mut dyn Control) {
        self.fdb.forget(entries);
        if let Err(error) = self.book.restore(entries, control) {
            self.made(now, Err(error));
        }
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        let mut requests = Vec::new();
        self.rstp.timeout(now, &mut requests);
        self.carry_out(now, requests, control);
        self.fdb.timeout(now, control);
        if self.retry_at.is_some_and(|at| at <= now) {
            self.update(now, control);
        }
    }

    fn deadline(&self) -> Option<Time> {
        [self.rstp.deadline(), self.fdb.deadline(), self.retry_at].into_iter().flatten().min()
    }

    /// Returns whether every port that should forward does so.
    fn is_ready(&self) -> bool {
        let open = |port: PortNo| self.rstp.state(port) == PortState::Forwarding;
        let ports = || (0..self.states.len() as u16).map(PortNo);
        let to_open =
            |port: &PortNo| matches!(self.rstp.role(*port), Role::Root | Role::Designated);
        let is_connected = ports().any(open) || self.fdb.has_swept();
        is_connected && ports().filter(to_open).all(open)
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Net, datagram};
    use crate::plans;
    use alloc::boxed::Box;
    use axon_node::Drop;
    use axon_pipeline::TableName;
    use axon_wire::Span;
    use core::net::Ipv4Addr;

    const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    /// Network of bridges whose host ports are edge ports of the spanning tree.
    fn net(plan: crate::site::Plan) -> Net {
        let mut net = Net::new(plan, |site| Box::new(Bridge::new(&site)));
        net.run(Span::from_secs(6));
        net
    }

    /// Returns the host that a frame between two addresses reaches, or the number of hosts if it is
    /// not exactly one.
    fn reached(net: &mut Net, from: u32, source: MacAddr, to: MacAddr) -> Result<u32, usize> {
        net.send(from, &datagram(source, to, IP, IP, 1));
        match net.received[..] {
            [(host, _)] => Ok(host),
            ref all => Err(all.len()),
        }
    }

    #[test]
    fn it_floods_until_it_has_learned_and_the_spanning_tree_has_no_loop() {
        let plan = plans::ring(5);
        let mut net = net(plan.clone());
        let mac = |host: usize| plan.hosts[host].mac;
        assert_eq!(reached(&mut net, 0, mac(0), mac(2)), Err(4), "flooded, once to each host");
        assert_eq!(reached(&mut net, 2, mac(2), mac(0)), Ok(0));
        assert_eq!(reached(&mut net, 0, mac(0), mac(2)), Ok(2));
        assert_eq!(reached(&mut net, 0, mac(0), MacAddr::BROADCAST), Err(4));
        assert_eq!(reached(&mut net, 2, mac(4), mac(0)), Ok(0), "it has moved");
        assert_eq!(reached(&mut net, 0, mac(0), mac(4)), Ok(2));
        assert_eq!(reached(&mut net, 0, mac(3), mac(0)), Err(0), "behind the same port");
        assert_eq!(net.drops, [(0, Drop::Filtered)]);
    }

    #[test]
    fn another_way_is_found_when_a_link_of_the_tree_fails() {
        let plan = plans::ring(5);
        let mut net = net(plan.clone());
        for (node, port) in net.links() {
            net.link(node, port, false);
            net.run(Span::from_secs(1));
            for from in 0..5 {
                let source = plan.hosts[from as usize].mac;
                let broadcast = reached(&mut net, from, source, MacAddr::BROADCAST);
                assert_eq!(broadcast, Err(4), "link {node} {port}");
            }
            net.link(node, port, true);
            net.run(Span::from_secs(40));
        }
        let source = plan.hosts[0].mac;
        assert_eq!(reached(&mut net, 0, source, MacAddr::BROADCAST), Err(4));
    }

    #[test]
    fn a_port_that_does_not_forward_drops_what_comes_in_and_sends_nothing() {
        let plan = plans::ring(3);
        let mut net = Net::new(plan.clone(), |site| Box::new(Bridge::new(&site)));
        let (a, b) = (plan.hosts[0].mac, plan.hosts[1].mac);
        assert_eq!(reached(&mut net, 0, a, b), Err(0), "no port to a host is an edge yet");
        assert_eq!(net.drops.iter().map(|drop| drop.1).collect::<Vec<_>>(), [Drop::Denied]);
        net.run(Span::from_secs(6));
        assert_eq!(reached(&mut net, 0, a, b), Err(2));
    }

    #[test]
    fn an_address_ages_when_nothing_is_sent_to_it_for_300_seconds() {
        let plan = plans::ring(3);
        let mut net = net(plan.clone());
        let mac = |host: usize| plan.hosts[host].mac;
        reached(&mut net, 0, mac(0), mac(1)).unwrap_err();
        reached(&mut net, 1, mac(1), mac(0)).unwrap();
        for _ in 0..4 {
            net.run(Span::from_secs(150));
            assert_eq!(reached(&mut net, 0, mac(0), mac(1)), Ok(1), "in use");
        }
        let entries = |net: &Net| net.count(0, TableName::Mac);
        let before = entries(&net);
        net.run(Span::from_secs(320));
        assert!(entries(&net) < before, "{before} before");
        assert_eq!(reached(&mut net, 0, mac(0), mac(1)), Err(2), "flooded again");
    }

    #[test]
    fn a_flood_of_unknown_sources_takes_no_bpdu_the_way_to_the_program() {
        let plan = plans::ring(3);
        let mut net = net(plan.clone());
        let states = |net: &Net| {
            let of = |node| net.node(node).pipeline().tables().entries(TableName::Tcam);
            (0..3).map(|node| of(node).into_iter().map(|one| one.change).collect()).collect()
        };
        let before: Vec<Vec<Change>> = states(&net);
        let mut number = 0_u32;
        for _ in 0..40 {
            // Uses up each port's egress quota for program frames just before a program sends.
            net.run_until(Span::from_nanos(10));
            for _ in 0..257 {
                number += 1;
                let [a, b, c, d] = number.to_be_bytes();
                let source = MacAddr([2, 9, a, b, c, d]);
                net.send(0, &datagram(source, MacAddr::BROADCAST, IP, IP, 1));
            }
            net.run(Span::from_nanos(10));
            assert_eq!(states(&net), before, "a port has another state");
        }
        assert!(net.drops.contains(&(1, Drop::PuntLimit)), "what is too much is dropped");
    }

    #[test]
    fn what_an_operator_clears_comes_back() {
        let plan = plans::ring(3);
        let mut net = net(plan.clone());
        let (a, b) = (plan.hosts[0].mac, plan.hosts[1].mac);
        reached(&mut net, 0, a, b).unwrap_err();
        reached(&mut net, 1, b, a).unwrap();
        let all = |net: &Net, table| -> Vec<Change> {
            let entries = net.node(0).pipeline().tables().entries(table);
            entries.into_iter().map(|shown| shown.change).collect()
        };
        let (tcam, macs) = (all(&net, TableName::Tcam), all(&net, TableName::Mac));
        let removals = |of: &[Change]| -> Vec<Change> {
            of.iter().map(|change| change.entry().removal()).collect()
        };
        net.commit(0, &removals(&tcam));
        assert_eq!(all(&net, TableName::Tcam), tcam, "the trap of BPDUs among them");
        net.commit(0, &removals(&macs));
        assert_eq!(all(&net, TableName::Mac), []);
        let trapped = |net: &Net| {
            let ports = net.node(0).pipeline().ports().counters();
            ports.port(plan.hosts[0].port).dropped(Drop::Consumed)
        };
        let before = trapped(&net);
        for _ in 0..5 {
            reached(&mut net, 0, a, a).unwrap_err();
        }
        assert_eq!(trapped(&net), before + 1, "it is learned once");
        net.commit(0, &[Change::Port(PortNo(0), None), Change::Miss(None)]);
        assert_eq!(reached(&mut net, 0, a, MacAddr::BROADCAST), Err(2));
    }
}
