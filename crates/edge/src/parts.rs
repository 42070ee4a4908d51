//! Parts of an edge, and the way of each call of its node through them.

use super::answers::{AddressMessage, Content, answer};
use super::bonds::Bonds;
use super::context::{Cx, Timer};
use super::controller::Change;
use super::groups::Groups;
use super::hosts::Hosts;
use super::intercept::{self, Intercepted};
use super::learning::Learning;
use super::members::Pair;
use super::outcome::Outcome;
use super::routes::Routes;
use super::services::Services;
use super::tables::Tables;
use crate::config::EdgeConfig;
use crate::effect::Effect;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use axon_link::member::Member;
use axon_node::{Drop, RouteAnswer, RouteKey, Snapshot};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::message::{
    ArpReply, ArpTarget, HostFrame, Item, LinkEnd, MemberState, Message, Seek,
};
use axon_wire::{MacAddr, PortNo, Time, host_frame, membership};

/// Parts of the edge of a VLAN. Each owns one concern.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    learning: Learning,
    bonds: Bonds,
    routes: Routes,
    services: Services,
    groups: Groups,
}

fn uplinks(config: &EdgeConfig) -> BTreeSet<PortNo> {
    let policies = config.ports.iter().zip(0..);
    policies.filter(|(policy, _)| policy.uplink).map(|(_, port)| PortNo(port)).collect()
}

impl Parts {
    /// Creates the parts of an edge without hosts.
    pub(super) fn new(config: &EdgeConfig, tables: &Tables) -> Parts {
        Parts {
            learning: Learning::new(Hosts::new(config.hosts_per_port_max, uplinks(config))),
            bonds: Bonds::default(),
            routes: Routes::new(tables),
            services: Services::default(),
            groups: Groups::new(config.groups),
        }
    }

    pub(super) fn hosts(&self) -> &Hosts {
        self.learning.hosts()
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

    pub(super) fn routes_mut(&mut self) -> &mut Routes {
        &mut self.routes
    }

    /// Returns when to call [`Call::timeout`] next, timers of the agenda apart.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.routes.deadline()
    }

    /// Returns the parts with the context of a call.
    pub(super) fn call<'a>(&'a mut self, cx: Cx<'a>) -> Call<'a> {
        Call { parts: self, cx }
    }
}

/// A call of the edge of a VLAN at one time. Requests are appended to a list.
pub struct Call<'a> {
    parts: &'a mut Parts,
    cx: Cx<'a>,
}

impl Call<'_> {
    /// Learns the sender of a frame; `false` if the frame must be dropped.
    fn learn(&mut self, port: PortNo, mac: MacAddr) -> bool {
        let Call { parts, cx } = self;
        parts.learning.learn(cx, (&mut parts.groups, &mut parts.routes), port, mac)
    }

    /// Handles a host's frame without Axon header that had no route, and learns from it.
    ///
    /// Queued frames leave with [`Effect::Release`] or are dropped with [`Effect::Abandon`].
    ///
    /// # Errors
    /// The drop reason, if the frame is dropped now.
    pub fn host_frame(&mut self, port: PortNo, frame: &[u8]) -> Result<Outcome, Drop> {
        let (source, destination) = intercept::header(&self.cx, port, frame)?;
        if self.parts.bonds.is_blocked(port) || !self.learn(port, source) {
            return Err(Drop::Refused);
        }
        let hosts = self.parts.learning.hosts();
        if let Some(done) =
            self.parts.services.configuration(&mut self.cx, hosts, (port, source), frame)
        {
            return done;
        }
        match intercept::read(self.cx.settings, (source, destination), frame)? {
            Intercepted::Membership(read) => self
                .parts
                .groups
                .membership(&mut self.cx, (port, source), read)
                .map(|()| Outcome::Served),
            Intercepted::Address(message) => {
                self.address_message(port, message)?;
                Ok(match message.content {
                    Content::Reply => self.parts.routes.fate_of_reply(&self.cx, port, destination),
                    _ => Outcome::Served,
                })
            }
            Intercepted::Dhcp => {
                let relay = Message::DhcpRelay(HostFrame { port, frame: frame.to_vec() });
                self.cx.out.push(Effect::ToController(relay));
                Ok(Outcome::Served)
            }
            Intercepted::Own => self.parts.services.ping.answer(&mut self.cx, port, frame),
            Intercepted::Group => {
                let pair = self.parts.groups.admit(&mut self.cx, port, frame)?;
                self.send_to_group(port, pair)
            }
            Intercepted::Unicast => {
                let (pair, hint) = ((source, destination), host_frame::destination_ip(frame));
                self.parts.routes.unicast(
                    &mut self.cx,
                    self.parts.learning.here(),
                    port,
                    pair,
                    hint,
                )
            }
        }
    }

    /// Handles an ARP packet or a neighbour message of a host, whose address is learned from it.
    fn address_message(
        &mut self,
        port: PortNo,
        AddressMessage { sender, content }: AddressMessage,
    ) -> Result<(), Drop> {
        let Call { parts, cx } = self;
        parts.learning.learn_ip(cx, &mut parts.groups, sender.mac, sender.ip);
        match content {
            Content::Reply => {
                let hosts = parts.learning.hosts();
                parts.routes.target_answered(cx, hosts, (port, sender.mac), sender.ip);
            }
            Content::Request(ip) if cx.settings.is_own_ip(ip) => {
                let own = cx.settings.server.mac;
                answer(cx, port, sender, own, ip);
            }
            Content::Request(ip) => {
                parts.routes.resolve(cx, parts.learning.here(), port, sender, ip);
            }
            Content::Announcement => {}
            Content::Refused => return Err(Drop::Refused),
        }
        Ok(())
    }

    /// Copies a frame that waited for its list.
    ///
    /// # Errors
    /// The drop reason, if the frame is dropped now.
    pub(crate) fn waited_for_list(&mut self, port: PortNo, frame: &[u8]) -> Result<Outcome, Drop> {
        let (source, group) = self.parts.groups.pair_of(frame)?;
        if !self.parts.hosts().is_on(source, port) {
            return Err(Drop::Refused);
        }
        self.send_to_group(port, (source, group))
    }

    /// Makes the copies of a frame: each takes its route, or waits for it.
    fn send_to_group(&mut self, port: PortNo, pair: Pair) -> Result<Outcome, Drop> {
        let Some(hosts) = self.parts.groups.receivers(&mut self.cx, port, pair)? else {
            return Ok(Outcome::Wait(membership::mac_of(pair.1)));
        };
        let mut copies = Vec::new();
        for host in hosts {
            let here = self.parts.learning.here();
            match self.parts.routes.unicast(&mut self.cx, here, port, (pair.0, host), None) {
                Ok(fate) => copies.push(fate),
                Err(_) => self.cx.counters.group_copies_lost += 1,
            }
        }
        if copies.is_empty() {
            return Err(Drop::Broadcast);
        }
        self.cx.counters.group_frames += 1;
        self.cx.counters.group_copies += copies.len() as u64;
        Ok(Outcome::Copies(copies))
    }

    /// Handles phase II of Axon-ARP: the controller looks up a host of this switch.
    pub fn arp_target(&mut self, m: ArpTarget) {
        let own_port =
            m.source_switch.node == self.cx.settings.node && m.source_port == m.target_port;
        let sane = self.cx.settings.is_host_mac(m.source_mac)
            && m.source_mac != m.target_mac
            && !own_port
            && self.cx.controller.is_current(m.stamp);
        // A host at a bond may have sent by its other ports only.
        if sane && self.parts.bonds.is_joined(m.target_port) {
            self.learn(m.target_port, m.target_mac);
        }
        if !sane || !self.parts.hosts().is_on(m.target_mac, m.target_port) {
            self.cx.counters.messages_ignored += 1;
            return;
        }
        self.parts.routes.phase_two(&mut self.cx, self.parts.learning.hosts(), m);
    }

    /// Handles phase IV of Axon-ARP: the target switch's answer.
    pub fn arp_reply(&mut self, m: ArpReply) {
        self.parts.routes.phase_four(&mut self.cx, self.parts.learning.hosts(), &m);
    }

    /// Handles the controller's search for the hosts that have this address.
    pub fn seek(&mut self, m: Seek) {
        self.parts.learning.seek(&mut self.cx, m);
    }

    /// Handles a command of the controller from its reliable stream. Items that only a switch sends
    /// are counted and ignored.
    pub fn item(&mut self, item: Item) {
        match self.parts.routes.command(&mut self.cx, self.parts.learning.hosts(), item) {
            // The node runs LACP, and handles `SelectMember`.
            None | Some(Item::SelectMember { .. }) => {}
            Some(Item::AskHost { port, mac, ip }) => {
                self.parts.learning.recall(&mut self.cx, (port, mac), ip)
            }
            Some(Item::GroupHosts { port, mac, group, first, more, hosts }) => {
                self.parts.groups.list(&mut self.cx, (port, (mac, group)), (first, more), hosts);
            }
            Some(_) => self.cx.counters.messages_ignored += 1,
        }
    }

    /// Sends a frame of the controller, a DHCP reply, to a host. The host's address is learned from
    /// a DHCP acknowledgement.
    pub fn host_frame_out(&mut self, m: HostFrame) {
        let HostFrame { port, frame } = m;
        let sane = (ETHERNET_BYTES..=self.cx.settings.frame_bytes_max).contains(&frame.len());
        if !sane || !self.cx.ports.is_host(port) {
            self.cx.counters.messages_ignored += 1;
            return;
        }
        if let Some((mac, ip)) = host_frame::dhcp_ack(&frame)
            && self.parts.hosts().is_on(mac, port)
        {
            self.parts.learning.learn_ip(&mut self.cx, &mut self.parts.groups, mac, ip.into());
        }
        self.cx.out.push(Effect::Host { port, frame });
    }

    /// Handles the data plane's answer to a route change.
    pub fn route_changed(&mut self, answer: RouteAnswer) {
        self.parts.routes.route_changed(&mut self.cx, answer);
    }

    /// Requests the software routes of a port while its table has room.
    pub(super) fn promote(&mut self, port: PortNo) {
        self.parts.routes.promote(&mut self.cx, port);
    }

    /// Resynchronises the flows with a data plane that has lost its tables. `has` is its current
    /// state, and whether it had too many answers outstanding.
    pub(super) fn resynchronised(&mut self, has: (&Snapshot, bool)) {
        self.parts.routes.resynchronised(&mut self.cx, has);
    }

    /// Handles a change of carrier. Routes found at a port without carrier are removed; others wait
    /// from now on for at most [`Timers::inherited_max`].
    ///
    /// [`Timers::inherited_max`]: axon_link::config::Timers::inherited_max
    pub fn link(&mut self, link: (PortNo, bool)) {
        self.parts.routes.link(&mut self.cx, link);
    }

    /// Switches every flow over this lost link to its backup route.
    pub fn fail_over(&mut self, ends: [LinkEnd; 2]) {
        self.parts.routes.fail_over(&mut self.cx, ends);
    }

    /// Removes these routes and reports that to the controller.
    pub(crate) fn remove_idle(&mut self, idle: &[(PortNo, RouteKey)]) {
        self.parts.routes.remove_idle(&mut self.cx, idle);
    }

    /// Handles a change of a port's kind or carrier, shown by `ports`. Hosts at a port that is no
    /// longer a host port are removed with their flows.
    pub fn port_changed(&mut self, port: PortNo) {
        if self.cx.ports.kind(port).is_none() {
            return;
        }
        self.parts.routes.adopt(&mut self.cx, port);
        self.parts.learning.port_changed(&mut self.cx, port);
        self.parts.services.advertising.port_changed(
            &mut self.cx,
            self.parts.learning.hosts(),
            port,
        );
        if !self.cx.ports.is_host(port) {
            self.clear_port(port);
            self.cx.tables.clear(port, self.cx.vlan);
        }
    }

    /// Removes the hosts of a port and its routes.
    fn clear_port(&mut self, port: PortNo) {
        let Call { parts, cx } = self;
        parts.learning.clear_port(cx, (&mut parts.groups, &mut parts.routes), port);
    }

    /// Handles a controller that is reachable again, or another one.
    ///
    /// While none is reachable, flows and routes are kept. When the same incarnation is back, the
    /// edge reports changes; after half of [`Timers::silence_max`](axon_link::config::Timers)
    /// without it, all hosts, because it may have removed them. A new incarnation has none of the
    /// old decisions: all hosts and routes are reported, and the routes are kept until it has
    /// decided; see `inherited.rs`. In both cases open requests are repeated at once.
    pub(super) fn controller_changed(&mut self, change: Change) {
        let Call { parts, cx } = self;
        if change.is_new {
            parts.routes.end_queries(cx);
        }
        parts.bonds.report_all(cx);
        parts.learning.report_all(cx, &mut parts.groups, change);
        parts.groups.report(cx, change.has_forgotten || change.is_new);
        parts.routes.controller_changed(cx, change.is_new);
    }

    /// Handles expired timers. Early or repeated calls are harmless.
    pub fn timeout(&mut self) {
        self.parts.routes.timeout(&mut self.cx);
        let due: Vec<_> = core::iter::from_fn(|| self.cx.agenda.pop_due(self.cx.now)).collect();
        for timer in due {
            self.due(timer);
        }
    }

    fn due(&mut self, timer: Timer) {
        let Call { parts, cx } = self;
        match timer {
            Timer::Host(mac) => {
                parts.learning.probe(cx, (&mut parts.groups, &mut parts.routes), mac);
            }
            Timer::Recall(port, mac) => parts.learning.recall_due(cx, (port, mac)),
            Timer::Sought(port) => parts.learning.search_due(cx, port),
            Timer::Groups(port) => parts.groups.due(cx, port),
            Timer::Advertise(port) => {
                parts.services.advertising.due(cx, parts.learning.hosts(), port);
            }
            Timer::Setup(..) | Timer::Failed(..) | Timer::Query(..) | Timer::Place(_) => {
                if let Some((setup, requesters)) = parts.routes.due(cx, timer) {
                    parts.learning.claim(cx, &mut parts.groups, setup, &requesters);
                }
            }
        }
    }

    /// Handles a change of a port's LACP state.
    pub fn member_changed(&mut self, (port, member): (PortNo, Member)) {
        let Some(before) = self.parts.bonds.change(&mut self.cx, port, member) else { return };
        if member.selected {
            self.parts.learning.join(port, member.key);
            return;
        }
        if before.selected {
            let others = (&mut self.parts.groups, &mut self.parts.routes);
            self.parts.learning.part(&mut self.cx, others, (port, member.key));
        }
        // The port has a different partner: its previous hosts are not behind it.
        if member.partner.is_some() || member.state == MemberState::Expired {
            self.clear_port(port);
        }
    }
}
