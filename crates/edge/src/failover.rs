//! Backup routes: an edge replaces a route as soon as one of its links is down, before the
//! controller has chosen another one.
//!
//! The controller sends a backup for each route, with the switches on both. It is kept in the
//! memory of the control plane; the data plane has one route for each flow as before. A link is
//! down when a port of this switch loses its carrier or its neighbour, or when another switch
//! floods the loss (`crates/switch/src/switch/failover.rs`). Then every flow whose route crosses
//! the link takes its backup, by one change of its entry, and the edge reports that to the
//! controller. The backup is used up; the controller sends another one.
//!
//! The link is remembered as down for ten heartbeats. Meanwhile no backup over it is used, and a
//! new route over it is replaced at once, because it was decided before the controller received the
//! loss. After that the controller's state is newer.
//!
//! **Order.** The flow keeps the stamp of the decision that the backup belongs to. So an older
//! decision that arrives late changes nothing, and a newer one replaces the backup. A backup is
//! used only for the exact route that it was sent for. A route of an earlier incarnation of the
//! controller has no valid backup.

use super::entry_reservations::{Key, of_port};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::message::{LinkEnd, RoutePath};
use axon_wire::{NodeId, Route, Span, Time};

/// Heartbeats for which a link is remembered as down.
const DOWN_HEARTBEATS: u64 = 10;
/// Maximum number of link ends remembered as down. Further ones are ignored until the oldest
/// expire, except links of this switch. This bounds the messages that a neighbour can have flooded.
const DOWN_MAX: usize = 2_048;

/// Backups of the routes of one VLAN.
#[derive(Clone, Debug)]
pub(super) struct Backups {
    /// Maximum number of backups of one port, that of its routes.
    per_port_max: usize,
    of: BTreeMap<Key, Backup>,
}

/// Links that are down: the expiry of each direction of a lost link, by its near end.
#[derive(Clone, Debug, Default)]
pub(super) struct DownLinks(BTreeMap<LinkEnd, Time>);

/// Backup of one flow.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Backup {
    /// Route that the backup is for.
    primary: RoutePath,
    /// Backup route.
    backup: RoutePath,
}

impl Backups {
    /// Creates an empty set with at most `per_port_max` backups for each port.
    pub(super) const fn new(per_port_max: usize) -> Backups {
        Backups { per_port_max, of: BTreeMap::new() }
    }

    /// Returns all backups: the flow, the primary route, the backup route.
    pub(super) fn all(&self) -> impl Iterator<Item = (Key, &RoutePath, &RoutePath)> {
        self.of.iter().map(|(&key, kept)| (key, &kept.primary, &kept.backup))
    }

    /// Removes all backups.
    pub(super) fn clear(&mut self) {
        self.of.clear();
    }

    /// Removes the backup of a flow that is gone.
    pub(super) fn forget(&mut self, key: Key) {
        self.of.remove(&key);
    }

    /// Stores a backup of a flow; `false` if there is no room. A backup may arrive before its
    /// route, so those of flows that are not live count too, until there are too many.
    pub(super) fn set(
        &mut self,
        key: Key,
        (primary, backup): (RoutePath, RoutePath),
        is_live: impl Fn(Key) -> bool,
    ) -> bool {
        let count = |of: &BTreeMap<Key, Backup>| of.range(of_port(key.0)).count();
        if count(&self.of) >= self.per_port_max {
            self.of.retain(|other, _| other.0 != key.0 || is_live(*other));
        }
        let has_room = count(&self.of) < self.per_port_max;
        if has_room {
            self.of.insert(key, Backup { primary, backup });
        }
        has_room
    }

    /// Returns the flows with a backup whose primary route crosses this link.
    pub(super) fn over(&self, ends: [LinkEnd; 2]) -> Vec<Key> {
        let is_over = |path: &RoutePath| path.links().any(|end| ends.contains(&end));
        self.of.iter().filter(|(_, kept)| is_over(&kept.primary)).map(|(&key, _)| key).collect()
    }

    /// Removes and returns the backup of a flow if it is for the flow's route, and a link of that
    /// is down.
    pub(super) fn take(
        &mut self,
        (now, down): (Time, &DownLinks),
        key: Key,
        route: &Route,
    ) -> Option<Route> {
        let Backup { primary, backup } = self.of.get(&key)?;
        let is_down = |path| down.has_one_of(now, path);
        if primary.route != *route || !is_down(primary) || is_down(backup) {
            return None;
        }
        self.of.remove(&key).map(|kept| kept.backup.route)
    }

    /// Returns the number of backups.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }
}

impl DownLinks {
    /// Returns whether a path crosses a link that is down.
    fn has_one_of(&self, now: Time, path: &RoutePath) -> bool {
        path.links().any(|end| self.0.get(&end).is_some_and(|&until| now < until))
    }

    /// Returns whether a link has been known as down for less than one heartbeat.
    pub(super) fn knows(&self, now: Time, heartbeat: Span, ends: [LinkEnd; 2]) -> bool {
        let fresh = |kept: &Time| now + down_max(heartbeat) < *kept + heartbeat;
        ends.iter().all(|end| self.0.get(end).is_some_and(fresh))
    }

    /// Remembers a link as down for ten heartbeats. Returns `false` if it has been known for less
    /// than one heartbeat, or cannot be stored. A link of this switch is always stored: if there is
    /// no room, the link that would expire first is evicted.
    pub(super) fn mark(
        &mut self,
        now: Time,
        heartbeat: Span,
        ends: [LinkEnd; 2],
        here: NodeId,
    ) -> bool {
        let until = now + down_max(heartbeat);
        self.0.retain(|_, until| now < *until);
        if self.knows(now, heartbeat, ends) {
            return false;
        }
        let more = ends.iter().filter(|end| !self.0.contains_key(end)).count();
        while self.0.len() + more > DOWN_MAX {
            let is_of_others = |end: &LinkEnd| end.node != here;
            let others = self.0.iter().filter(|(end, _)| is_of_others(end));
            let oldest = others.min_by_key(|(_, until)| **until).map(|(end, _)| *end);
            match oldest {
                Some(oldest) if !ends.iter().all(is_of_others) => self.0.remove(&oldest),
                _ => return false,
            };
        }
        self.0.extend(ends.map(|end| (end, until)));
        true
    }
}

/// Returns how long a link is remembered as down.
fn down_max(heartbeat: Span) -> Span {
    heartbeat * DOWN_HEARTBEATS
}

/// Returns whether a path starts at a switch and names one for each hop, except possibly the last
/// hop, to the host.
pub(super) fn is_from(node: NodeId, path: &RoutePath) -> bool {
    let (switches, hops) = (path.switches.len(), path.route.hops.len());
    path.switches.first() == Some(&node) && (switches + 1 == hops || switches == hops)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::Placement;
    use crate::effect::Effect;
    use axon_wire::PortNo;
    use axon_wire::message::Item;
    use axon_wire::{Hops, Route, Span};

    const TIMERS: Span = Span::from_millis(100);

    fn end(node: u64, port: u16) -> LinkEnd {
        LinkEnd { node: NodeId(node), port: PortNo(port) }
    }

    /// Builds a path from the switch under test: the switch and the egress of each link, then the
    /// exit.
    fn path(links: &[(u64, u16)], exit: u16) -> RoutePath {
        let hops = links.iter().map(|&(_, port)| port).chain([exit]).map(PortNo);
        let route = Route::from(hops.collect::<Hops>());
        RoutePath { route, switches: links.iter().map(|&(node, _)| NodeId(node)).collect() }
    }

    /// Path over switch 2, or over switch 3, to a host at port 5 of switch 4.
    fn primary() -> RoutePath {
        path(&[(1, 3), (2, 1)], 5)
    }

    fn backup() -> RoutePath {
        path(&[(1, 2), (3, 1)], 5)
    }

    fn set(bench: &mut Bench, to: u8, number: u64, path: &RoutePath) -> Vec<Effect> {
        let (port, destination, route) = (PortNo(0), mac(to), path.route.clone());
        bench.item(Item::SetRoute { port, destination, source: None, stamp: stamp(number), route })
    }

    fn give(bench: &mut Bench, to: u8, primary: RoutePath, backup: RoutePath) -> Vec<Effect> {
        let (port, destination, backup) = (PortNo(0), mac(to), Some(backup));
        bench.item(Item::SetBackup { port, destination, source: None, primary, backup })
    }

    /// Handles a link-down message as the node does.
    fn down(bench: &mut Bench, ends: [LinkEnd; 2]) -> (bool, Vec<Effect>) {
        let news = bench.edge.link_down(bench.now, ends);
        let out =
            bench.call(|edge, now, ports, out| edge.untagged(now, ports, out).fail_over(ends));
        (news, out)
    }

    /// Returns the reports of used backups: the host and the number of the decision.
    fn used(effects: &[Effect]) -> Vec<(u8, u64)> {
        let used = |effect: &Effect| match effect {
            Effect::Report(Item::BackupUsed { destination, stamp, .. }) => {
                Some((destination.0[5], stamp.number))
            }
            _ => None,
        };
        effects.iter().filter_map(used).collect()
    }

    fn bench() -> Bench {
        let mut bench = Bench::new();
        bench.host(0, 1);
        set(&mut bench, 9, 1, &primary());
        give(&mut bench, 9, primary(), backup());
        bench
    }

    #[test]
    fn a_flow_takes_its_backup_when_its_own_port_or_a_link_far_away_is_down() {
        for ends in [[end(1, 3), end(2, 9)], [end(2, 1), end(4, 0)], [end(4, 0), end(2, 1)]] {
            let mut bench = bench();
            let (news, effects) = down(&mut bench, ends);
            assert!(news && used(&effects) == [(9, 1)], "{ends:?}");
            assert_eq!(bench.placed(0, 9), Some(backup().route));
            assert_eq!(bench.places(0), 1);
            let (news, effects) = down(&mut bench, ends);
            assert!(!news && used(&effects).is_empty(), "the other end says the same");
            assert_eq!(bench.edge.counters().backups_used, 1);
        }
    }

    #[test]
    fn links_of_other_routes_change_nothing_and_the_way_back_is_not_the_way_there() {
        let mut bench = bench();
        for ends in [[end(1, 1), end(7, 0)], [end(2, 3), end(4, 9)]] {
            assert_eq!(used(&down(&mut bench, ends).1), []);
        }
        assert_eq!(bench.placed(0, 9), Some(primary().route));
    }

    #[test]
    fn a_backup_over_a_link_that_is_down_is_never_used() {
        let mut bench = bench();
        down(&mut bench, [end(3, 1), end(4, 1)]);
        let primary_down = [end(2, 1), end(4, 0)];
        assert_eq!(used(&down(&mut bench, primary_down).1), []);
        // The controller has not received the loss yet.
        assert_eq!(used(&give(&mut bench, 9, primary(), backup())), []);
        assert_eq!(bench.placed(0, 9), Some(primary().route));
        // The link may be up by then: the backup is kept and need not be sent again.
        bench.pass(down_max(TIMERS));
        assert_eq!(used(&down(&mut bench, primary_down).1), [(9, 1)]);
    }

    #[test]
    fn what_was_decided_before_the_controller_knew_is_replaced_as_it_comes() {
        let mut bench = bench();
        down(&mut bench, [end(2, 1), end(4, 0)]);
        let effects = set(&mut bench, 8, 2, &primary());
        assert_eq!(used(&effects), [], "there is none");
        assert_eq!(used(&give(&mut bench, 8, primary(), backup())), [(8, 2)]);
        // The backup may arrive before the route.
        give(&mut bench, 7, primary(), backup());
        assert_eq!(used(&set(&mut bench, 7, 3, &primary())), [(7, 3)]);
        for host in [7, 8, 9] {
            assert_eq!(bench.placed(0, host), Some(backup().route));
        }
    }

    #[test]
    fn an_older_decision_does_not_undo_a_backup_and_a_newer_one_does() {
        let mut bench = bench();
        let other = path(&[(1, 1), (6, 6)], 5);
        set(&mut bench, 9, 5, &other);
        give(&mut bench, 9, other.clone(), backup());
        down(&mut bench, [end(6, 6), end(4, 7)]);
        assert_eq!(bench.placed(0, 9), Some(backup().route));
        for number in [4, 5] {
            set(&mut bench, 9, number, &primary());
            assert_eq!(bench.placed(0, 9), Some(backup().route), "{number}");
        }
        set(&mut bench, 9, 6, &primary());
        assert_eq!(bench.placed(0, 9), Some(primary().route));
        // A backup is not used for any route other than its primary.
        give(&mut bench, 9, other, backup());
        assert_eq!(used(&down(&mut bench, [end(2, 1), end(4, 0)]).1), []);
    }

    #[test]
    fn a_flow_that_software_forwards_takes_its_backup_too() {
        let mut bench = Bench::with(1, 1000, 4);
        bench.host(0, 1);
        set(&mut bench, 8, 1, &primary());
        set(&mut bench, 9, 1, &primary());
        give(&mut bench, 9, primary(), backup());
        assert_eq!(used(&down(&mut bench, [end(2, 1), end(4, 0)]).1), [(9, 1)]);
        let frame = udp_frame(mac(9), mac(1), 1);
        bench.frame(0, &frame);
        assert_eq!(bench.sent, [(PortNo(0), backup().route, frame)]);
        let flows: Vec<_> = bench.edge.plain().flows().map(|(_, _, flow)| flow.placement).collect();
        assert_eq!(flows, [Placement::Installed, Placement::Software]);
    }

    #[test]
    fn a_masqueraded_flow_takes_its_backup_under_the_same_address() {
        let mut bench = Bench::masquerading(1, 4);
        bench.host(0, 1);
        set(&mut bench, 8, 1, &primary());
        set(&mut bench, 9, 1, &primary());
        give(&mut bench, 9, primary(), backup());
        let given = bench.edge.masquerade_of(PortNo(0), mac(9)).expect("the table is full");
        assert_eq!(used(&down(&mut bench, [end(2, 1), end(4, 0)]).1), [(9, 1)]);
        let stands = bench.tables.memory.get(&(PortNo(0), given));
        assert_eq!(stands, Some(&(mac(9), backup().route)));
        assert_eq!(bench.tables.memory.len(), 1);
    }

    #[test]
    fn a_device_that_refuses_a_backup_leaves_the_flow_to_software() {
        let mut bench = bench();
        bench.tables.refuses = 1;
        down(&mut bench, [end(1, 3), end(2, 9)]);
        assert_eq!(bench.placed(0, 9), None, "the old route leads nowhere");
        let frame = udp_frame(mac(9), mac(1), 1);
        bench.frame(0, &frame);
        assert_eq!(bench.sent, [(PortNo(0), backup().route, frame)]);
    }

    #[test]
    fn backups_go_with_their_flows_and_no_port_has_more_than_routes() {
        let mut bench = bench();
        bench.remove_route(0, 9, 2);
        assert_eq!(bench.edge.plain().parts().routes().backups().len(), 0);
        // 8 places in the table, 8 more in software; none of these has a route.
        for to in 10..40 {
            give(&mut bench, to, primary(), backup());
            assert!(bench.edge.plain().parts().routes().backups().len() <= 16);
        }
        set(&mut bench, 9, 3, &primary());
        give(&mut bench, 9, primary(), backup());
        assert_eq!(used(&down(&mut bench, [end(2, 1), end(4, 0)]).1), [(9, 3)]);
    }

    #[test]
    fn a_backup_from_elsewhere_or_to_a_hop_that_nobody_can_name_is_ignored() {
        let mut bench = bench();
        let before = bench.edge.counters().messages_ignored;
        let elsewhere = path(&[(2, 2), (3, 1)], 5);
        let short = RoutePath { switches: [NodeId(1)].into(), ..backup() };
        let wide = path(&[(1, 999), (3, 1)], 5);
        for wrong in [elsewhere, short, wide, RoutePath::default()] {
            give(&mut bench, 9, primary(), wrong);
            assert_eq!(bench.edge.plain().parts().routes().backups().len(), 0);
        }
        assert_eq!(bench.edge.counters().messages_ignored, before + 4);
    }

    #[test]
    fn news_of_more_links_than_are_remembered_is_not_passed_on() {
        let mut bench = bench();
        let ends = |n: u64| [end(n + 100, 1), end(n + 100, 2)];
        let passed_on = (0..2_000).filter(|&n| down(&mut bench, ends(n)).0).count();
        assert_eq!(passed_on, DOWN_MAX / 2);
        // A link of this switch replaces another.
        let own = [end(1, 3), end(2, 9)];
        let (news, effects) = down(&mut bench, own);
        assert!(news && used(&effects) == [(9, 1)]);
        bench.pass(down_max(TIMERS));
        assert!(down(&mut bench, ends(0)).0);
    }

    #[test]
    fn a_link_that_is_lost_again_is_news_after_a_heartbeat() {
        let mut bench = bench();
        let far = [end(3, 1), end(4, 1)];
        assert!(down(&mut bench, far).0);
        bench.pass(Span::from_millis(99));
        assert!(!down(&mut bench, far).0, "the same loss by another way");
        bench.pass(Span::from_millis(1));
        assert!(down(&mut bench, far).0);
        // Remembered from the second loss on.
        bench.pass(Span::from_millis(901));
        assert_eq!(used(&down(&mut bench, [end(2, 1), end(4, 0)]).1), []);
    }
}
