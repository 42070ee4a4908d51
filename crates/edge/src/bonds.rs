//! Bond ports at the edge (IEEE 802.1AX clause 6).
//!
//! LACP runs at a bond port (`crates/switch/src/lacp.rs`), and the controller decides whether it is
//! selected: whether it leads to the same partner as the other ports of the bond. Until frames may
//! pass, hosts' frames are dropped there. While no LACPDUs arrive, the port is like any other.
//!
//! Selected ports of one bond at one switch are one location: a host known at one of them is known
//! at all, and sends by any. When its own port is lost, it moves to another one and keeps its
//! state. Hosts at a selected port are not probed, because their answers may go to another switch;
//! LACP monitors the link.
//!
//! A port that no longer distributes counts as a link that is down, and is flooded as such
//! (`crates/switch/src/switch/failover.rs`): routes that end there have backups that end at another
//! port.

use super::context::Cx;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use axon_link::member::Member;
use axon_wire::PortNo;
use axon_wire::message::{Item, LinkEnd, MemberState};

/// LACP state of the bond ports of this switch.
#[derive(Clone, Debug, Default)]
pub(super) struct Bonds {
    /// State of each port.
    of: BTreeMap<PortNo, Member>,
}

impl Bonds {
    /// Returns the bond ports, in order.
    pub(super) fn ports(&self) -> impl Iterator<Item = (PortNo, Member)> {
        self.of.iter().map(|(&port, &member)| (port, member))
    }

    /// Records the LACP state of a port and reports it; returns the previous one if it differs.
    pub(super) fn change(&mut self, cx: &mut Cx, port: PortNo, member: Member) -> Option<Member> {
        let before = self.of.insert(port, member).unwrap_or_default();
        if before == member {
            return None;
        }
        report(cx, port, member);
        let distributed = before.state == MemberState::Distributing;
        if distributed && member.state != MemberState::Distributing {
            let far = LinkEnd { node: cx.settings.node, port };
            cx.out.push(Effect::LinkLost { port, far });
        }
        Some(before)
    }

    /// Returns whether LACP blocks hosts' frames at a port.
    pub(super) fn is_blocked(&self, port: PortNo) -> bool {
        self.of.get(&port).is_some_and(Member::is_blocked)
    }

    /// Returns whether a port is selected for a bond, so that its hosts are at all of its ports.
    pub(super) fn is_joined(&self, port: PortNo) -> bool {
        self.of.get(&port).is_some_and(|member| member.selected)
    }

    /// Reports all bond ports. They come before the hosts at them.
    pub(super) fn report_all(&self, cx: &mut Cx) {
        for (port, member) in self.ports() {
            report(cx, port, member);
        }
    }
}

fn report(cx: &mut Cx, port: PortNo, member: Member) {
    let Member { state, partner, selected, .. } = member;
    cx.report(Item::BondMember { port, state, partner, selected });
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use alloc::vec::Vec;
    use axon_node::{Drop, PortKind};
    use axon_wire::MacAddr;
    use axon_wire::lacp::{Partner, SystemId};
    use axon_wire::{Route, host_frame, membership};
    use core::net::Ipv4Addr;

    fn member(state: MemberState) -> Member {
        let system = SystemId { priority: 1, mac: mac(1) };
        let knows =
            !matches!(state, MemberState::Down | MemberState::Expired | MemberState::Individual);
        let partner = knows.then_some(Partner { system, key: 9 });
        Member { key: 5, state, partner, selected: state >= MemberState::Attached }
    }

    fn announcement(n: u8) -> Vec<u8> {
        host_frame::request(mac(n), ip(n), MacAddr::BROADCAST, ip(n))
    }

    pub(super) fn change(bench: &mut Bench, port: u16, state: MemberState) -> Vec<Effect> {
        let changed = (PortNo(port), member(state));
        bench.call(|edge, now, ports, out| edge.untagged(now, ports, out).member_changed(changed))
    }

    fn reports(effects: &[Effect]) -> Vec<Item> {
        let report = |effect: &Effect| match effect {
            Effect::Report(item) => Some(item.clone()),
            _ => None,
        };
        effects.iter().filter_map(report).collect()
    }

    /// Both ports distribute, and host 1 is known at the first.
    fn bonded() -> Bench {
        let mut bench = Bench::new();
        change(&mut bench, 0, MemberState::Distributing);
        change(&mut bench, 1, MemberState::Distributing);
        bench.host(0, 1);
        bench
    }

    #[test]
    fn a_host_sends_from_any_port_of_its_bond_and_is_at_one() {
        let mut bench = bonded();
        assert_eq!(reports(&bench.frame(1, &announcement(1))), []);
        let at: Vec<_> = bench.edge.plain().hosts().map(|(_, host)| host.port).collect();
        assert_eq!(at, [PortNo(0)]);
        assert_eq!(bench.edge.counters().hosts_moved, 0);
        bench.set_route(1, 9, 1, 3);
        assert_eq!(bench.placed(1, 9), Some(Route::from([3])), "each port has its own routes");
    }

    #[test]
    fn until_frames_may_pass_they_end_and_without_a_partner_the_port_is_a_plain_one() {
        for state in [
            MemberState::Expired,
            MemberState::Detached,
            MemberState::Attached,
            MemberState::Individual,
            MemberState::Collecting,
        ] {
            let mut bench = Bench::new();
            change(&mut bench, 0, state);
            bench.frame(0, &announcement(1));
            let passes = state == MemberState::Individual || state == MemberState::Collecting;
            assert_eq!(bench.last_drop(), (!passes).then_some(Drop::Refused), "{state:?}");
            assert_eq!(bench.edge.plain().hosts().count(), usize::from(passes));
        }
    }

    #[test]
    fn a_host_whose_port_is_lost_is_at_the_other_and_is_never_gone() {
        let mut bench = bonded();
        bench.set_route(1, 9, 1, 3);
        let effects = change(&mut bench, 0, MemberState::Down);
        let seen = Item::HostSeen { port: PortNo(1), mac: mac(1), ips: [ip(1).into()].into() };
        let gone = Item::HostGone { port: PortNo(0), mac: mac(1) };
        assert_eq!(reports(&effects)[1..], [seen, gone]);
        let far = LinkEnd { node: bench.edge.plain_mut().settings().node, port: PortNo(0) };
        assert!(effects.contains(&Effect::LinkLost { port: PortNo(0), far }));
        assert_eq!(bench.placed(1, 9), Some(Route::from([3])));
    }

    #[test]
    fn a_port_that_leads_elsewhere_loses_its_hosts_and_routes() {
        let mut bench = Bench::new();
        change(&mut bench, 0, MemberState::Individual);
        bench.host(0, 1);
        bench.set_route(0, 9, 1, 3);
        let effects = change(&mut bench, 0, MemberState::Detached);
        assert!(reports(&effects).contains(&Item::HostGone { port: PortNo(0), mac: mac(1) }));
        assert_eq!((bench.placed(0, 9), bench.edge.plain().hosts().count()), (None, 0));
    }

    #[test]
    fn memberships_by_any_port_of_a_bond_are_reported_and_end_with_their_host() {
        let mut bench = bonded();
        let group = Ipv4Addr::new(239, 1, 2, 3);
        let member = |joined| {
            let (port, mac, group) = (PortNo(1), mac(1), group.into());
            Item::GroupMember { port, mac, group, joined }
        };
        let joins = membership::reports::igmp_v2((mac(1), ip(1)), group, true);
        assert_eq!(reports(&bench.frame(1, &joins)), [member(true)]);
        // The controller queries for the host, so it may have removed it with its groups.
        bench.item(Item::AskHost { port: PortNo(0), mac: mac(1), ip: ip(1).into() });
        assert!(reports(&bench.host(0, 1)).contains(&member(true)));
        // The port is no longer a host port.
        let gone = bench.port(0, Some(PortKind::Unknown));
        assert!(reports(&gone).contains(&member(false)), "{gone:?}");
        assert_eq!(bench.edge.plain().members().count(), 0);
    }

    #[test]
    fn hosts_at_a_bond_are_not_probed_and_stay() {
        let mut bench = bonded();
        for _ in 0..60 {
            bench.pass(axon_wire::Span::from_secs(1));
        }
        assert_eq!(bench.edge.plain().hosts().count(), 1, "its answers may go elsewhere");
        assert_eq!(bench.edge.counters().hosts_lost, 0);
    }

    #[test]
    fn a_new_controller_gets_the_members_before_the_hosts() {
        let mut bench = bonded();
        let items =
            reports(&bench.controller(Some(axon_wire::Incarnation { number: 6, ..CONTROLLER })));
        assert!(matches!(items[0], Item::BondMember { port: PortNo(0), selected: true, .. }));
        assert!(matches!(items[1], Item::BondMember { port: PortNo(1), .. }));
        assert!(matches!(items[2], Item::HostSeen { .. }));
    }
}
