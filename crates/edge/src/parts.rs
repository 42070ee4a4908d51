//! Parts of an edge, and the way of each call through them.

use super::bonds::Bonds;
use super::context::{Cx, Timer};
use super::controller::Change;
use super::flows::{Flows, Verdict};
use super::given::mixed;
use super::groups::Groups;
use super::hosts::Hosts;
use super::inherited::Inherited;
use super::queries::Queries;
use super::recall::Recalls;
use super::seek::Search;
use super::services::Services;
use super::setup::Setups;
use super::tables::Tables;
use crate::config::EdgeConfig;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_link::member::Member;
use axon_node::{Capabilities, RouteAnswer, RouteKey, Snapshot};
use axon_wire::host_frame;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::message::{HostFrame, Item, MemberState};
use axon_wire::{Incarnation, MacAddr, PortNo, Time};

/// Parts of an edge. Each owns one concern.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) inherited: Inherited,
    pub(super) hosts: Hosts,
    pub(super) bonds: Bonds,
    pub(super) flows: Flows,
    pub(super) setups: Setups,
    pub(super) queries: Queries,
    pub(super) recalls: Recalls,
    /// Addresses that the controller searches for.
    pub(super) search: Search,
    pub(super) services: Services,
    pub(super) groups: Groups,
}

/// Returns a seed that is unique to this incarnation of this switch.
fn incarnation_seed(config: &EdgeConfig) -> u64 {
    let Incarnation { node, number } = config.node.incarnation;
    config.node.seed ^ mixed(node.0 ^ mixed(number))
}

fn uplinks(config: &EdgeConfig) -> BTreeSet<PortNo> {
    let policies = config.ports.iter().zip(0..);
    policies.filter(|(policy, _)| policy.uplink).map(|(_, port)| PortNo(port)).collect()
}

impl Parts {
    /// Creates the parts of an edge without hosts.
    pub(super) fn new(config: &EdgeConfig, has: &Capabilities) -> Parts {
        Parts {
            inherited: Inherited::default(),
            hosts: Hosts::new(config.hosts_per_port_max, uplinks(config)),
            bonds: Bonds::default(),
            flows: Flows::new(Tables::new(has, incarnation_seed(config))),
            setups: Setups::new(),
            queries: Queries::default(),
            recalls: Recalls::default(),
            search: Search::default(),
            services: Services::default(),
            groups: Groups::new(config.groups),
        }
    }

    /// Handles a command of the controller from its reliable stream. Items that only a switch sends
    /// are counted and ignored.
    pub(super) fn item(&mut self, cx: &mut Cx, item: Item) {
        match item {
            Item::SetRoute { port, destination, source, stamp, route }
                if cx.controller.is_current(stamp) =>
            {
                let key = (port, RouteKey::to(destination).from_source(source));
                match self.flows.set_route(cx, &self.hosts, key, stamp, &route, None) {
                    Verdict::Removed | Verdict::Unusable => cx.counters.messages_ignored += 1,
                    _ => self.route_ready(cx, key, &route),
                }
                self.flows.promote(cx, port);
            }
            Item::RemoveRoute { port, destination, source, stamp }
                if cx.controller.is_current(stamp) =>
            {
                let key = (port, RouteKey::to(destination).from_source(source));
                self.flows.remove(cx, key, Some(stamp));
                self.flows.promote(cx, port);
            }
            Item::SetBackup { port, destination, source, primary, backup } => {
                let key = (port, RouteKey::to(destination).from_source(source));
                self.flows.set_backup(cx, key, primary, backup);
            }
            Item::AskHost { port, mac, ip } => {
                self.recalls.recall(cx, &self.hosts, (port, mac), ip)
            }
            // Handled by the node, which runs LACP.
            Item::SelectMember { .. } => {}
            Item::GroupHosts { port, mac, group, first, more, hosts } => {
                self.groups.list(cx, (port, (mac, group)), (first, more), hosts);
            }
            _ => cx.counters.messages_ignored += 1,
        }
    }

    /// Sends a frame of the controller, a DHCP reply, to a host. The host's address is learned from
    /// a DHCP acknowledgement.
    pub(super) fn host_frame_out(&mut self, cx: &mut Cx, m: HostFrame) {
        let HostFrame { port, frame } = m;
        let sane = (ETHERNET_BYTES..=cx.settings.frame_bytes_max).contains(&frame.len());
        if !sane || !cx.ports.is_host(port) {
            cx.counters.messages_ignored += 1;
            return;
        }
        if let Some((mac, ip)) = host_frame::dhcp_ack(&frame)
            && self.hosts.is_on(mac, port)
        {
            self.hosts.learn_ip(cx, (&mut self.search, &mut self.groups), mac, ip.into());
        }
        cx.out.push(Effect::Host { port, frame });
    }

    /// Handles the data plane's answer to a route change.
    pub(super) fn route_changed(&mut self, cx: &mut Cx, answer: RouteAnswer) {
        cx.counters.changes_refused += u64::from(answer.result.is_err());
        self.flows.answered(cx, answer);
    }

    /// Resynchronises the flows with a data plane that has lost its tables. `has` is its current
    /// state.
    pub(super) fn resynchronised(&mut self, cx: &mut Cx, has: &Snapshot) {
        self.flows.resynchronised(cx, has);
    }

    /// Handles a change of a port's kind or carrier, shown by `ports`. Hosts at a port that is no
    /// longer a host port are removed with their flows.
    pub(super) fn port_changed(&mut self, cx: &mut Cx, port: PortNo) {
        if cx.ports.kind(port).is_none() {
            return;
        }
        self.inherited.adopt(cx, &mut self.flows, port);
        self.recalls.port_changed(cx, &self.hosts, port);
        self.search.port_changed(cx, port);
        self.services.advertising.port_changed(cx, &self.hosts, port);
        if cx.ports.is_host(port) {
            return;
        }
        let macs: Vec<_> = self.hosts.on_port(port).collect();
        for mac in macs {
            self.forget_host(cx, mac);
        }
        self.flows.clear_port(cx, port);
        self.flows.tables.clear(port);
    }

    /// Handles a controller that is reachable again, or a new incarnation; see
    /// [`Edge::controller_changed`](super::Edge::controller_changed).
    pub(super) fn controller_changed(&mut self, cx: &mut Cx, change: Change) {
        let Change { is_new, has_forgotten } = change;
        if is_new {
            while let Some(key) = self.queries.first() {
                self.end_query(cx, key);
            }
        }
        if has_forgotten {
            self.hosts.forget_reports();
        }
        self.bonds.report_all(cx);
        self.hosts.report_all(cx, &mut self.groups, is_new);
        self.groups.report(cx, has_forgotten || is_new);
        if is_new {
            self.inherited.inherit(cx, &mut self.flows);
        }
        self.setups.ask_again(cx);
    }

    /// Handles expired timers. Early or repeated calls are harmless.
    pub(super) fn timeout(&mut self, cx: &mut Cx) {
        self.flows.removed.expire(cx.now);
        self.flows.give_up_overdue(cx);
        if self.flows.tables.take_lost(cx.now) {
            cx.out.push(Effect::Resynchronise);
        }
        self.inherited.due(cx, &mut self.flows);
        let due: Vec<_> = core::iter::from_fn(|| cx.agenda.pop_due(cx.now)).collect();
        for timer in due {
            match timer {
                Timer::Host(mac) => {
                    if self.hosts.probe(cx, mac) {
                        self.forget_host(cx, mac);
                    }
                }
                Timer::Setup(port, target, host) => self.setup_due(cx, (port, target, host)),
                Timer::Recall(port, mac) => self.recalls.due(cx, &self.hosts, (port, mac)),
                Timer::Place(port) => self.flows.try_again(cx, port),
                Timer::Sought(port) => self.search.due(cx, port),
                Timer::Groups(port) => self.groups.due(cx, port),
                Timer::Advertise(port) => self.services.advertising.due(cx, &self.hosts, port),
                Timer::Failed(port, target, host) => {
                    self.setups.forget_failure((port, target, host))
                }
                Timer::Query(port, target, source) => {
                    self.query_due(cx, (port, target, source));
                }
            }
        }
    }

    /// Returns when to call [`Parts::timeout`] next, timers of the agenda apart.
    pub(super) fn deadline(&self) -> Option<Time> {
        let expiry = self.flows.removed.next_expiry();
        let answers = self.flows.tables.deadline();
        [expiry, self.inherited.until(), answers].into_iter().flatten().min()
    }

    /// Handles a change of a port's LACP state.
    pub(super) fn member_changed(&mut self, cx: &mut Cx, (port, member): (PortNo, Member)) {
        let Some(before) = self.bonds.change(cx, port, member) else { return };
        if member.selected {
            self.hosts.join(port, member.key);
            return;
        }
        if before.selected {
            self.hosts.part(port);
            self.rehome(cx, port, member.key);
        }
        // The port has a different partner: its previous hosts are not behind it.
        if member.partner.is_some() || member.state == MemberState::Expired {
            self.clear(cx, port);
        }
    }

    /// Moves the hosts of a port to another one of the bond, if there is one.
    fn rehome(&mut self, cx: &mut Cx, port: PortNo, key: u16) {
        let Some(to) = self.hosts.joined(key).next() else { return };
        let macs: Vec<MacAddr> = self.hosts.on_port(port).collect();
        for mac in macs {
            self.hosts.change_port(mac, to);
            self.flows.tables.vacate(port, mac);
            self.hosts.report_moved(cx, &mut self.groups, (port, mac));
        }
        self.flows.clear_port(cx, port);
    }

    /// Removes the hosts of a port and its routes.
    fn clear(&mut self, cx: &mut Cx, port: PortNo) {
        let macs: Vec<MacAddr> = self.hosts.on_port(port).collect();
        for mac in macs {
            self.forget_host(cx, mac);
        }
        self.flows.clear_port(cx, port);
    }
}
