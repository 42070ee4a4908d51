//! Multicast groups at a switch: member hosts of its ports, and receivers of its hosts' frames.
//! Only edges and the controller handle groups; transit switches forward copies by their routes.
//!
//! All state is kept for each port and bounded there.

use super::context::{Cx, Timer};
use super::members::{Members, Pair};
use super::senders::Senders;
use crate::config::GroupConfig;
use alloc::vec::Vec;
use axon_node::Drop;
use axon_wire::membership::Membership;
use axon_wire::{MacAddr, PortNo};

/// Memberships and senders of the hosts of all ports.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    members: Members,
    senders: Senders,
}

impl Groups {
    /// Creates the state without ports.
    pub(super) fn new(config: GroupConfig) -> Groups {
        Groups { members: Members::new(config), senders: Senders::new(config) }
    }

    /// Handles a report of a host. Membership reports are never forwarded.
    pub(super) fn membership(
        &mut self,
        cx: &mut Cx,
        from: (PortNo, MacAddr),
        read: Membership,
    ) -> Result<(), Drop> {
        self.members.handle(cx, from, read)?;
        self.due_later(cx, from.0);
        Ok(())
    }

    /// Returns the memberships.
    pub(super) fn members(&self) -> &Members {
        &self.members
    }

    /// Reports the memberships of a host that is itself reported as new, at any of these ports.
    pub(super) fn report_again(&mut self, cx: &mut Cx, ports: &[PortNo], mac: MacAddr) {
        self.members.report_again(cx, ports, mac);
    }

    /// Returns the sender and the group of a frame.
    ///
    /// # Errors
    /// The frame may not be copied.
    pub(super) fn pair_of(&self, frame: &[u8]) -> Result<Pair, Drop> {
        self.senders.group_of(frame).ok_or(Drop::Broadcast)
    }

    /// Returns the sender and the group of a host's frame, within the rate of its port.
    ///
    /// # Errors
    /// The frame may not be copied, or its port exceeds the rate.
    pub(super) fn admit(&mut self, cx: &mut Cx, port: PortNo, frame: &[u8]) -> Result<Pair, Drop> {
        let pair = self.pair_of(frame)?;
        self.senders.admit(cx, port).then_some(pair).ok_or(Drop::Broadcast)
    }

    /// Returns the receivers of a frame; `None` if it waits for their list.
    ///
    /// # Errors
    /// The port has too many senders, or copies.
    pub(super) fn receivers(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        pair: Pair,
    ) -> Result<Option<Vec<MacAddr>>, Drop> {
        let hosts = self.senders.receivers(cx, port, pair)?;
        if hosts.is_none() {
            self.due_later(cx, port);
        }
        Ok(hosts)
    }

    /// Handles a part of a list of receivers.
    pub(super) fn list(
        &mut self,
        cx: &mut Cx,
        (port, pair): (PortNo, Pair),
        part: (u16, bool),
        hosts: Vec<MacAddr>,
    ) {
        if self.senders.list(cx, (port, pair), part, hosts) {
            self.due_later(cx, port);
        }
    }

    /// Schedules a query of a port where a host has been learned.
    pub(super) fn host_learned(&mut self, cx: &mut Cx, port: PortNo) {
        if self.members.host_learned(cx, port) {
            self.due_later(cx, port);
        }
    }

    /// Removes the memberships and senders of a host that has left a port and all others of its
    /// bond; those of all hosts there if `is_last`.
    pub(super) fn host_gone(
        &mut self,
        cx: &mut Cx,
        (ports, is_last): (&[PortNo], bool),
        mac: MacAddr,
    ) {
        for &port in ports {
            self.members.host_gone(cx, port, mac, is_last);
            self.senders.host_gone(cx, port, mac, is_last);
            self.due_later(cx, port);
        }
    }

    /// Reports all that the controller lacks, and requests all lists again. `anew` if it may have
    /// lost its state.
    pub(super) fn report(&mut self, cx: &mut Cx, anew: bool) {
        self.members.report_all(cx, anew);
        self.senders.ask_for_lists(cx);
    }

    /// Handles the expired timer of a port.
    pub(super) fn due(&mut self, cx: &mut Cx, port: PortNo) {
        let ask = self.members.expire(cx, port);
        self.senders.expire(cx, port);
        if ask {
            self.members.query_all(cx, port);
        }
        self.due_later(cx, port);
    }

    /// Sets the timer of a port.
    fn due_later(&self, cx: &mut Cx, port: PortNo) {
        match self.members.due(port).into_iter().chain(self.senders.due(port)).min() {
            Some(at) => cx.agenda.set(Timer::Groups(port), at),
            None => cx.agenda.cancel(Timer::Groups(port)),
        }
    }

    /// Returns the senders.
    #[cfg(test)]
    pub(super) fn senders(&self) -> &Senders {
        &self.senders
    }

    /// Returns the number of ports with a timer.
    #[cfg(test)]
    pub(super) fn timers(&self) -> usize {
        let ports = self.members.ports().chain(self.senders.ports());
        let due =
            |port: &PortNo| self.members.due(*port).is_some() || self.senders.due(*port).is_some();
        ports.filter(due).collect::<alloc::collections::BTreeSet<_>>().len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::members::MEMBERS_PER_PORT_MAX;
    use super::super::senders::{SENDER_MAX, SENDERS_PER_PORT_MAX};
    use super::super::testing::*;
    use super::*;
    use crate::effect::Effect;
    use axon_node::{Drop, PortKind};
    use axon_wire::Span;
    use axon_wire::membership::{self, reports};
    use axon_wire::message::Item;
    use core::net::Ipv4Addr;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

    fn report(host: u8, group: Ipv4Addr, joined: bool) -> Vec<u8> {
        reports::igmp_v2((mac(host), ip(host)), group, joined)
    }

    /// Builds an empty datagram to a group.
    fn datagram(from: u8, group: Ipv4Addr) -> Vec<u8> {
        let mut frame = udp_frame(membership::mac_of(group.into()), mac(from), 0);
        frame[14..34]
            .copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 9, 17, 0, 0, 10, 0, 0, 1, 0, 0, 0, 0]);
        frame[30..34].copy_from_slice(&group.octets());
        frame
    }

    fn member(port: u16, host: u8, group: Ipv4Addr, joined: bool) -> Effect {
        let (port, mac, group) = (PortNo(port), mac(host), group.into());
        Effect::Report(Item::GroupMember { port, mac, group, joined })
    }

    fn list(host: u8, first: u16, more: bool, hosts: &[u8]) -> Item {
        let hosts = hosts.iter().map(|&host| mac(host)).collect();
        Item::GroupHosts {
            port: PortNo(0),
            mac: mac(host),
            group: GROUP.into(),
            first,
            more,
            hosts,
        }
    }

    fn queries(effects: &[Effect]) -> usize {
        let is_query = |effect: &&Effect| match effect {
            Effect::Host { frame, .. } => {
                membership::read(frame) == Some(membership::Membership::Query)
            }
            _ => false,
        };
        effects.iter().filter(is_query).count()
    }

    #[test]
    fn a_report_makes_a_member_until_it_leaves_or_is_silent() {
        let mut bench = Bench::new();
        bench.host(1, 1);
        assert_eq!(queries(&bench.pass(Span::from_millis(500))), 2, "both protocols, once");
        assert_eq!(bench.frame(1, &report(1, GROUP, true)), [member(1, 1, GROUP, true)]);
        assert_eq!(bench.frame(1, &report(1, GROUP, true)), [], "it is known");
        let left = bench.frame(1, &report(1, GROUP, false));
        assert_eq!((left.len(), queries(&left)), (1, 1), "{left:?}");
        let gone = bench.pass(Span::from_secs(2));
        assert!(gone.contains(&member(1, 1, GROUP, false)), "{gone:?}");
        // It sends no further reports; its ARP entry is kept alive.
        bench.frame(1, &report(1, GROUP, true));
        let mut effects = Vec::new();
        for second in 1..=260 {
            effects.extend(bench.pass(Span::from_secs(1)));
            bench.host(1, 1);
            let known = bench.edge.plain().members().count();
            assert_eq!(known, usize::from(second < 260), "after {second} s");
        }
        assert_eq!(queries(&effects), 4, "two rounds");
        assert!(effects.contains(&member(1, 1, GROUP, false)));
        bench.frame(1, &report(1, GROUP, true));
        let down = bench.port(1, Some(PortKind::Unknown));
        assert!(down.contains(&member(1, 1, GROUP, false)), "{down:?}");
        let groups = &bench.edge.plain().parts().groups();
        assert_eq!(groups.members().ports().chain(groups.senders().ports()).count(), 0);
    }

    #[test]
    fn a_new_controller_gets_all_members_and_senders() {
        let mut bench = Bench::new();
        bench.host(0, 2);
        bench.frame(0, &report(2, GROUP, true));
        bench.frame(0, &datagram(2, GROUP));
        bench.controller(None);
        let next = axon_wire::Incarnation { number: CONTROLLER.number + 1, ..CONTROLLER };
        let effects = bench.controller(Some(next));
        assert!(effects.contains(&member(0, 2, GROUP, true)), "{effects:?}");
        let (port, mac, group) = (PortNo(0), mac(2), GROUP.into());
        let asked = Effect::Report(Item::AskGroup { port, mac, group, wanted: true });
        assert!(effects.contains(&asked), "{effects:?}");
    }

    #[test]
    fn frames_wait_for_the_list_and_each_copy_for_its_route() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let frame = datagram(1, GROUP);
        let (port, mac1, group) = (PortNo(0), mac(1), GROUP.into());
        let asks = Effect::Report(Item::AskGroup { port, mac: mac1, group, wanted: true });
        assert_eq!(bench.frame(0, &frame), [asks]);
        assert_eq!(bench.waiting_bytes(), 124);
        // In two parts, of which one has a host with a route.
        bench.set_route(0, 8, 1, 5);
        assert_eq!(bench.item(list(1, 0, true, &[8])), []);
        assert_eq!(bench.sent, []);
        let request = asked(&bench.item(list(1, 1, false, &[9])));
        assert_eq!(bench.sent.len(), 1, "by the route that is there");
        bench.reply(answer_to(request, 2));
        let sent: Vec<_> = bench.sent.drain(..).map(|(_, route, bytes)| (route, bytes)).collect();
        let routes = [[5].into(), [3, 4].into()];
        assert_eq!(sent, routes.map(|route: axon_wire::Route| (route, frame.clone())));
        bench.frame(0, &frame);
        assert_eq!((bench.sent.len(), bench.waiting_bytes()), (2, 0));
        // No member is left, and a stale part changes nothing.
        bench.item(list(1, 0, false, &[]));
        bench.item(list(1, 1, false, &[9]));
        bench.frame(0, &frame);
        assert_eq!((bench.sent.len(), bench.last_drop()), (2, Some(Drop::Broadcast)));
        let counters = bench.edge.counters();
        assert_eq!((counters.group_frames, counters.group_copies), (2, 4));
        let gone = bench.pass(SENDER_MAX);
        let senders = bench.edge.plain().parts().groups().senders();
        assert!(senders.ports().all(|port| senders.count_on(port) == 0));
        let (port, mac) = (PortNo(0), mac1);
        let over = Effect::Report(Item::AskGroup { port, mac, group, wanted: false });
        assert!(gone.contains(&over), "{gone:?}");
    }

    #[test]
    fn a_list_that_does_not_come_ends_the_wait() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.frame(0, &datagram(1, GROUP));
        bench.pass(Span::from_secs(4));
        assert_eq!((bench.last_drop(), bench.waiting_bytes()), (Some(Drop::NoRoute), 0));
    }

    #[test]
    fn a_storm_and_too_many_groups_are_bounded_and_counted() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.set_route(0, 8, 1, 5);
        bench.frame(0, &datagram(1, GROUP));
        bench.item(list(1, 0, false, &[8]));
        (0..10_000).for_each(|_| drop(bench.frame(0, &datagram(1, GROUP))));
        assert_eq!(bench.sent.len(), 500, "a burst of one second");
        assert_eq!(bench.edge.counters().group_limited, 9_501);
        bench.now += Span::from_secs(100);
        let other = |n: u32| Ipv4Addr::from(0xef02_0000 + n);
        (0..400).for_each(|n| drop(bench.frame(0, &datagram(1, other(n)))));
        assert_eq!(
            bench.edge.plain().parts().groups().senders().count_on(PortNo(0)),
            SENDERS_PER_PORT_MAX
        );
        for n in 0..1_000 {
            bench.now += Span::from_millis(20);
            bench.frame(0, &report(1, other(n), true));
        }
        assert_eq!(bench.edge.plain().members().count(), MEMBERS_PER_PORT_MAX);
        let counters = bench.edge.counters();
        assert_eq!(counters.members_refused, 1_000 - MEMBERS_PER_PORT_MAX as u64);
        assert_eq!(counters.senders_refused, 400 - SENDERS_PER_PORT_MAX as u64 + 1);
    }

    #[test]
    fn a_port_has_so_many_copies_a_second_however_few_the_frames() {
        let mut bench = Bench::with(64, 1 << 16, 4);
        bench.host(0, 1);
        let hosts: Vec<u8> = (10..60).collect();
        hosts.iter().for_each(|&host| drop(bench.set_route(0, host, 1, 5)));
        bench.frame(0, &datagram(1, GROUP));
        bench.item(list(1, 0, false, &hosts));
        (0..400).for_each(|_| drop(bench.frame(0, &datagram(1, GROUP))));
        assert_eq!(bench.sent.len(), 10_000, "two hundred frames at once");
        let counters = bench.edge.counters();
        assert_eq!((counters.group_limited, counters.group_copies_limited), (0, 201 * 50));
        assert_eq!(bench.last_drop(), Some(Drop::Broadcast));
        bench.sent.clear();
        for _ in 0..100 {
            bench.now += Span::from_millis(100);
            (0..40).for_each(|_| drop(bench.frame(0, &datagram(1, GROUP))));
        }
        assert_eq!(bench.sent.len(), 100_000, "ten thousand a second, in whole frames");
    }

    #[test]
    fn a_host_that_joins_and_leaves_all_the_time_changes_its_group_ever_more_seldom() {
        let mut bench = Bench::new();
        bench.host(1, 1);
        let mut changes = 0;
        let mut seconds = Vec::new();
        for second in 0..600 {
            bench.host(1, 1);
            let mut effects = Vec::new();
            if bench.edge.plain().members().count() == 0 {
                seconds.push(second);
                effects.extend(bench.frame(1, &report(1, GROUP, true)));
                effects.extend(bench.frame(1, &report(1, GROUP, false)));
            }
            effects.extend(bench.pass(Span::from_secs(1)));
            let is_change =
                |effect: &&Effect| matches!(effect, Effect::Report(Item::GroupMember { .. }));
            changes += effects.iter().filter(is_change).count();
        }
        assert_eq!(seconds[..8], [0, 2, 6, 14, 30, 62, 126, 190], "2 seconds, 4, 8, ... 64");
        assert!(changes <= 30, "{changes} in ten minutes");
        // After two minutes in no group it leaves as fast as any other host.
        bench.frame(1, &report(1, GROUP, false));
        for _ in 0..200 {
            bench.pass(Span::from_secs(1));
            bench.host(1, 1);
        }
        assert_eq!(bench.edge.plain().parts().groups().members().left_count(PortNo(1)), 0);
        bench.frame(1, &report(1, GROUP, true));
        bench.frame(1, &report(1, GROUP, false));
        assert!(bench.pass(Span::from_secs(2)).contains(&member(1, 1, GROUP, false)));
    }

    #[test]
    fn the_memberships_of_a_host_that_is_reported_anew_are_so_too() {
        let mut bench = Bench::new();
        bench.host(0, 7);
        bench.frame(0, &report(7, GROUP, true));
        let ask = Item::AskHost { port: PortNo(0), mac: mac(7), ip: ip(7).into() };
        bench.item(ask);
        let effects = bench.host(0, 7);
        let is_seen = |effect: &Effect| matches!(effect, Effect::Report(Item::HostSeen { .. }));
        let seen = effects.iter().position(is_seen);
        let joined = effects.iter().position(|effect| *effect == member(0, 7, GROUP, true));
        assert!(seen.is_some() && seen < joined, "{effects:?}");
        assert!(!bench.host(0, 7).contains(&member(0, 7, GROUP, true)), "once");
    }

    #[test]
    fn broadcasts_go_to_nobody_unless_that_is_wanted_and_queries_of_hosts_never() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        let all = [
            datagram(1, Ipv4Addr::BROADCAST),
            datagram(1, membership::ALL_SYSTEMS),
            membership::igmp_query((mac(1), ip(1)), None, (10, 125)),
        ];
        for frame in &all {
            assert_eq!(bench.frame(0, frame), []);
            assert_eq!(bench.last_drop(), Some(Drop::Broadcast));
        }
        let mut config = Bench::config(1000, 4);
        config.groups.broadcast = true;
        let mut bench = Bench::on(TestDevice::new(8), config);
        bench.host(0, 1);
        let asks = all.map(|frame| bench.frame(0, &frame).len());
        assert_eq!(asks, [1, 1, 0]);
        let offer = dhcp_frame(MacAddr::BROADCAST, mac(1), (67, 68), b"offer");
        assert_eq!(bench.frame(0, &offer), [], "a server of DHCP that is a host's");
    }
}
