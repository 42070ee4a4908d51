//! Parts of an edge, and the way of each call through them.

use super::answers::{AddressMessage, Content, answer};
use super::bonds::Bonds;
use super::context::{Cx, Timer};
use super::controller::Change;
use super::fate::Fate;
use super::given::mixed;
use super::groups::Groups;
use super::hosts::Hosts;
use super::intercept::{self, Intercepted};
use super::learning::Learning;
use super::members::Pair;
use super::routes::Routes;
use super::services::Services;
use super::settings::Settings;
use super::tables::Tables;
use crate::config::EdgeConfig;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_link::effect::Effect;
use axon_link::member::Member;
use axon_node::{Capabilities, Drop, RouteAnswer, RouteKey, Snapshot};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::message::{
    ArpReply, ArpTarget, HostFrame, Item, LinkEnd, MemberState, Message, Seek,
};
use axon_wire::{Incarnation, MacAddr, PortNo, Time, host_frame, membership};

/// Parts of an edge. Each owns one concern.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    learning: Learning,
    bonds: Bonds,
    routes: Routes,
    services: Services,
    groups: Groups,
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
            learning: Learning::new(Hosts::new(config.hosts_per_port_max, uplinks(config))),
            bonds: Bonds::default(),
            routes: Routes::new(Tables::new(has, incarnation_seed(config))),
            services: Services::default(),
            groups: Groups::new(config.groups),
        }
    }

    pub(super) fn hosts(&self) -> &Hosts {
        self.learning.hosts()
    }

    pub(super) fn bonds(&self) -> &Bonds {
        &self.bonds
    }

    pub(super) fn routes(&self) -> &Routes {
        &self.routes
    }

    pub(super) fn groups(&self) -> &Groups {
        &self.groups
    }

    #[cfg(test)]
    pub(super) fn learning(&self) -> &Learning {
        &self.learning
    }

    #[cfg(test)]
    pub(super) fn services(&self) -> &Services {
        &self.services
    }

    /// Learns the sender of a frame; `false` if the frame must be dropped.
    fn learn(&mut self, cx: &mut Cx, port: PortNo, mac: MacAddr) -> bool {
        self.learning.learn(cx, (&mut self.groups, &mut self.routes), port, mac)
    }

    /// Learns from a host's frame and handles it by its kind. The error is the drop reason.
    pub(super) fn serve(&mut self, cx: &mut Cx, port: PortNo, frame: &[u8]) -> Result<Fate, Drop> {
        let (source, destination) = intercept::header(cx, port, frame)?;
        if self.bonds.is_blocked(port) || !self.learn(cx, port, source) {
            return Err(Drop::Refused);
        }
        let hosts = self.learning.hosts();
        if let Some(done) = self.services.configuration(cx, hosts, (port, source), frame) {
            return done;
        }
        match intercept::read(cx.settings, (source, destination), frame)? {
            Intercepted::Membership(read) => {
                self.groups.membership(cx, (port, source), read).map(|()| Fate::Served)
            }
            Intercepted::Address(message) => {
                self.address_message(cx, port, message)?;
                Ok(match message.content {
                    Content::Reply => self.routes.of_reply(port, destination),
                    _ => Fate::Served,
                })
            }
            Intercepted::Dhcp => {
                let relay = Message::DhcpRelay(HostFrame { port, frame: frame.to_vec() });
                cx.out.push(Effect::ToController(relay));
                Ok(Fate::Served)
            }
            Intercepted::Own => self.services.ping.answer(cx, port, frame),
            Intercepted::Group => {
                let pair = self.groups.admit(cx, port, frame)?;
                self.send_to_group(cx, port, pair)
            }
            Intercepted::Unicast => {
                let (pair, hint) = ((source, destination), host_frame::destination_ip(frame));
                self.routes.unicast(cx, self.learning.here(), port, pair, hint)
            }
        }
    }

    /// Handles an ARP packet or a neighbour message of a host, whose address is learned from it.
    fn address_message(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        AddressMessage { sender, content }: AddressMessage,
    ) -> Result<(), Drop> {
        self.learning.learn_ip(cx, &mut self.groups, sender.mac, sender.ip);
        match content {
            Content::Reply => {
                let hosts = self.learning.hosts();
                self.routes.target_answered(cx, hosts, (port, sender.mac), sender.ip);
            }
            Content::Request(ip) if cx.settings.is_own_ip(ip) => {
                answer(cx, port, sender, cx.settings.server.mac, ip);
            }
            Content::Request(ip) => {
                self.routes.resolve(cx, self.learning.here(), port, sender, ip);
            }
            Content::Announcement => {}
            Content::Refused => return Err(Drop::Refused),
        }
        Ok(())
    }

    /// Copies a frame that waited for its list.
    pub(super) fn waited_for_list(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        frame: &[u8],
    ) -> Result<Fate, Drop> {
        let (source, group) = self.groups.pair_of(frame)?;
        if !self.hosts().is_on(source, port) {
            return Err(Drop::Refused);
        }
        self.send_to_group(cx, port, (source, group))
    }

    /// Makes the copies of a frame: each takes its route, or waits for it.
    fn send_to_group(&mut self, cx: &mut Cx, port: PortNo, pair: Pair) -> Result<Fate, Drop> {
        let Some(hosts) = self.groups.receivers(cx, port, pair)? else {
            return Ok(Fate::Wait(membership::mac_of(pair.1)));
        };
        let mut copies = Vec::new();
        for host in hosts {
            let here = self.learning.here();
            match self.routes.unicast(cx, here, port, (pair.0, host), None) {
                Ok(fate) => copies.push(fate),
                Err(_) => cx.counters.group_copies_lost += 1,
            }
        }
        if copies.is_empty() {
            return Err(Drop::Broadcast);
        }
        cx.counters.group_frames += 1;
        cx.counters.group_copies += copies.len() as u64;
        Ok(Fate::Copies(copies))
    }

    /// Handles phase II of Axon-ARP: the controller looks up a host of this switch.
    pub(super) fn phase_two(&mut self, cx: &mut Cx, m: ArpTarget) {
        let own_port = m.source_switch.node == cx.settings.node && m.source_port == m.target_port;
        let sane = cx.settings.is_host_mac(m.source_mac)
            && m.source_mac != m.target_mac
            && !own_port
            && cx.controller.is_current(m.stamp);
        // A host at a bond may have sent by its other ports only.
        if sane && self.bonds.is_joined(m.target_port) {
            self.learn(cx, m.target_port, m.target_mac);
        }
        if !sane || !self.hosts().is_on(m.target_mac, m.target_port) {
            cx.counters.messages_ignored += 1;
            return;
        }
        self.routes.phase_two(cx, self.learning.hosts(), m);
    }

    /// Handles phase IV of Axon-ARP: the target switch's answer.
    pub(super) fn phase_four(&mut self, cx: &mut Cx, m: &ArpReply) {
        self.routes.phase_four(cx, self.learning.hosts(), m);
    }

    /// Handles the controller's search for the hosts that have this address.
    pub(super) fn seek(&mut self, cx: &mut Cx, m: Seek) {
        self.learning.seek(cx, m);
    }

    /// Handles a command of the controller from its reliable stream. Items that only a switch sends
    /// are counted and ignored.
    pub(super) fn item(&mut self, cx: &mut Cx, item: Item) {
        match self.routes.command(cx, self.learning.hosts(), item) {
            // The node runs LACP, and handles `SelectMember`.
            None | Some(Item::SelectMember { .. }) => {}
            Some(Item::AskHost { port, mac, ip }) => self.learning.recall(cx, (port, mac), ip),
            Some(Item::GroupHosts { port, mac, group, first, more, hosts }) => {
                self.groups.list(cx, (port, (mac, group)), (first, more), hosts);
            }
            Some(_) => cx.counters.messages_ignored += 1,
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
            && self.hosts().is_on(mac, port)
        {
            self.learning.learn_ip(cx, &mut self.groups, mac, ip.into());
        }
        cx.out.push(Effect::Host { port, frame });
    }

    /// Handles the data plane's answer to a route change.
    pub(super) fn route_changed(&mut self, cx: &mut Cx, answer: RouteAnswer) {
        self.routes.route_changed(cx, answer);
    }

    /// Resynchronises the flows with a data plane that has lost its tables.
    pub(super) fn resynchronised(&mut self, cx: &mut Cx, has: &Snapshot) {
        self.routes.resynchronised(cx, has);
    }

    /// Records the routes that the data plane had at the start.
    pub(super) fn found(&mut self, has: &Snapshot) {
        self.routes.found(has);
    }

    /// Handles a change of carrier.
    pub(super) fn link(&mut self, cx: &mut Cx, link: (PortNo, bool)) {
        self.routes.link(cx, link);
    }

    /// Records that a link is down; returns whether that is new.
    pub(super) fn link_down(&mut self, now: Time, settings: &Settings, ends: [LinkEnd; 2]) -> bool {
        self.routes.link_down(now, settings, ends)
    }

    /// Switches every flow over this lost link to its backup route.
    pub(super) fn fail_over(&mut self, cx: &mut Cx, ends: [LinkEnd; 2]) {
        self.routes.fail_over(cx, ends);
    }

    /// Returns the routes without frames since the last call.
    pub(super) fn idle(
        &mut self,
        now: Time,
        used: impl FnMut(PortNo, RouteKey) -> bool,
    ) -> Vec<(PortNo, RouteKey)> {
        self.routes.idle(now, used)
    }

    /// Removes these routes and reports that to the controller.
    pub(super) fn remove_idle(&mut self, cx: &mut Cx, idle: &[(PortNo, RouteKey)]) {
        self.routes.remove_idle(cx, idle);
    }

    /// Handles a change of a port's kind or carrier, shown by `ports`. Hosts at a port that is no
    /// longer a host port are removed with their flows.
    pub(super) fn port_changed(&mut self, cx: &mut Cx, port: PortNo) {
        if cx.ports.kind(port).is_none() {
            return;
        }
        self.routes.adopt(cx, port);
        self.learning.port_changed(cx, port);
        self.services.advertising.port_changed(cx, self.learning.hosts(), port);
        if !cx.ports.is_host(port) {
            self.clear_port(cx, port);
            self.routes.free_port(port);
        }
    }

    /// Removes the hosts of a port and its routes.
    fn clear_port(&mut self, cx: &mut Cx, port: PortNo) {
        self.learning.clear_port(cx, (&mut self.groups, &mut self.routes), port);
    }

    /// Handles a controller that is reachable again, or a new incarnation; see
    /// [`Edge::controller_changed`](super::Edge::controller_changed).
    pub(super) fn controller_changed(&mut self, cx: &mut Cx, change: Change) {
        let Change { is_new, has_forgotten } = change;
        if is_new {
            self.routes.end_queries(cx);
        }
        if has_forgotten {
            self.learning.forget_reports();
        }
        self.bonds.report_all(cx);
        self.learning.report_all(cx, &mut self.groups, is_new);
        self.groups.report(cx, has_forgotten || is_new);
        self.routes.controller_changed(cx, is_new);
    }

    /// Handles expired timers. Early or repeated calls are harmless.
    pub(super) fn timeout(&mut self, cx: &mut Cx) {
        self.routes.timeout(cx);
        let due: Vec<_> = core::iter::from_fn(|| cx.agenda.pop_due(cx.now)).collect();
        for timer in due {
            self.due(cx, timer);
        }
    }

    fn due(&mut self, cx: &mut Cx, timer: Timer) {
        match timer {
            Timer::Host(mac) => {
                self.learning.probe(cx, (&mut self.groups, &mut self.routes), mac);
            }
            Timer::Recall(port, mac) => self.learning.recall_due(cx, (port, mac)),
            Timer::Sought(port) => self.learning.search_due(cx, port),
            Timer::Groups(port) => self.groups.due(cx, port),
            Timer::Advertise(port) => {
                self.services.advertising.due(cx, self.learning.hosts(), port);
            }
            Timer::Setup(..) | Timer::Failed(..) | Timer::Query(..) | Timer::Place(_) => {
                if let Some((setup, requesters)) = self.routes.due(cx, timer) {
                    self.learning.claim(cx, &mut self.groups, setup, &requesters);
                }
            }
        }
    }

    /// Returns when to call [`Parts::timeout`] next, timers of the agenda apart.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.routes.deadline()
    }

    /// Handles a change of a port's LACP state.
    pub(super) fn member_changed(&mut self, cx: &mut Cx, (port, member): (PortNo, Member)) {
        let Some(before) = self.bonds.change(cx, port, member) else { return };
        if member.selected {
            self.learning.join(port, member.key);
            return;
        }
        if before.selected {
            let others = (&mut self.groups, &mut self.routes);
            self.learning.part(cx, others, (port, member.key));
        }
        // The port has a different partner: its previous hosts are not behind it.
        if member.partner.is_some() || member.state == MemberState::Expired {
            self.clear_port(cx, port);
        }
    }
}
