//! The control plane of a switch in a fabric without a controller (thesis 000 §3.2.3: "the network
//! topology and route selection is set statically via a configuration file").
//!
//! Every switch has the fabric file and a controller for its own ports only
//! ([`at_switch`](axon_controller::Controller::at_switch)), which starts with the graph of the
//! file. Switches send each other, by source routes, the reports that would otherwise go to a
//! controller:
//!
//! - *Greeting* (`peer.rs`). When its port state changes, a switch sends it to every other switch
//!   as a Controller Hello until that is acknowledged. Links of the file that an end reports to be
//!   down do not count until both ends report them again. Only link-down messages are flooded
//!   (`failover.rs`).
//! - *Reports*. Learned and removed hosts, and memberships in groups, go to every other switch on a
//!   reliable stream. So each switch has the location of every host seen so far.
//! - *Axon-ARP*. The source switch reserves memory, chooses its route, and queries the target
//!   switch. That switch reserves memory, queries its host, installs the reverse route that it has
//!   chosen itself, and answers along the reverse route. For an unknown host, one message goes to
//!   each edge.
//!
//! Each switch decides about the routes at its own ports, and no message between switches carries a
//! route. A cable that does not match the file (`cables.rs`) is not used.

mod cables;
mod peer;

use crate::config::StaticConfig;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_controller::Controller;
use axon_controller::{Effect, Effects};
use axon_link::config::Timers;
use axon_link::discovery::Discovery;
use axon_link::seal::{ANY_INCARNATION, Opened};
use axon_node::telemetry::{ControllerHost, StaticTelemetry};
use axon_node::{PolicyChange, PolicyDone, PolicyRefusal, Refusal};
use axon_wire::message::{ControllerHello, Item, Message, PortState};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, NodeId, Time};
use cables::Cables;
use peer::Peer;

/// Number of Hellos after the start before the port state is sent even if cables are missing.
const HELLOS_BEFORE_GREETING: u64 = 5;
/// Interval in heartbeats between refresh greetings. A switch silent for 600 heartbeats is removed.
const REFRESH_HEARTBEATS: u64 = 100;

/// Control plane of a switch without a controller.
#[derive(Debug)]
pub struct StaticControl {
    home: Incarnation,
    controller: Controller,
    cables: Cables,
    timers: Timers,
    /// Other switches of the file.
    peers: BTreeMap<NodeId, Peer>,
    /// Version of discovery at the last update.
    seen: Option<u64>,
    /// Ports that match the file.
    view: Vec<PortState>,
    /// Version of the port state sent to others; 0 before the first greeting.
    version: u64,
    /// Time to send the first greeting even if cables are missing.
    greet_at: Option<Time>,
    refresh_at: Option<Time>,
}

impl StaticControl {
    /// Creates the control plane of a switch that has just started. Its routes have at most
    /// `hops_max` hops.
    pub(crate) fn new(config: &StaticConfig, hops_max: usize) -> StaticControl {
        let StaticConfig { controller, topology } = config;
        let home = controller.node.incarnation;
        let others = topology.switches.iter().map(|switch| switch.node);
        let others = others.filter(|&node| node != home.node);
        StaticControl {
            home,
            controller: Controller::at_switch(controller, topology, hops_max),
            cables: Cables::new(home.node, &topology.switches),
            timers: controller.node.timers,
            peers: others.map(|node| (node, Peer::default())).collect(),
            seen: None,
            view: Vec::new(),
            version: 0,
            greet_at: None,
            refresh_at: None,
        }
    }

    /// Returns the controller of this switch's own ports: graph, hosts, routes.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Returns the number of reports that other switches have not acknowledged.
    pub(crate) fn unacknowledged(&self) -> usize {
        self.peers.values().map(Peer::unacknowledged).sum()
    }

    /// Compares the ports found by discovery with the file. Call it after every input that may have
    /// changed discovery.
    pub(crate) fn update(&mut self, now: Time, discovery: &Discovery, out: &mut Vec<Effect>) {
        let greet_at =
            *self.greet_at.get_or_insert(now + self.timers.hello * HELLOS_BEFORE_GREETING);
        let is_new = self.seen.replace(discovery.version()) != Some(discovery.version());
        if !is_new && self.version > 0 {
            return;
        }
        let view = self.cables.judge(discovery.port_states(), out);
        let changed = view != self.view;
        self.view = view;
        let begins = self.version == 0 && (now >= greet_at || self.cables.all_there(&self.view));
        if begins || (changed && self.version > 0) {
            self.version += 1;
            self.enter_own(now, out);
            self.peers.values_mut().for_each(|peer| peer.has_news(now));
        }
    }

    /// Enters the state of this switch's own ports and marks the switch as alive.
    fn enter_own(&mut self, now: Time, out: &mut Vec<Effect>) {
        let hello = ControllerHello { version: self.version, nonce: 0, ports: self.view.clone() };
        let home = self.home;
        self.ask(out, |all, out| {
            all.controller_hello(now, home, Hops::to_control(), hello, out);
        });
        self.refresh_at = Some(now + self.timers.heartbeat * REFRESH_HEARTBEATS);
    }

    /// Passes to the controller that this switch's edge has carried out its commands up to
    /// `number`.
    pub(crate) fn acknowledged(&mut self, now: Time, number: u64) {
        self.controller.acknowledged(now, number);
    }

    /// Handles a request of this switch's edge, in place of a fabric controller.
    pub(crate) fn request(&mut self, now: Time, message: Message, out: &mut Vec<Effect>) {
        match message {
            Message::ArpRequest(request) => {
                let home = self.home;
                self.ask(out, |all, out| all.arp_request(now, home, request, out));
            }
            Message::DhcpRelay(relay) => {
                let home = self.home;
                self.ask(out, |all, out| all.dhcp_relay(now, home, relay, out));
            }
            _ => {}
        }
    }

    /// Handles a report of this switch's edge, and passes it to other switches if they need it.
    pub(crate) fn report(&mut self, now: Time, item: Item, out: &mut Vec<Effect>) {
        if is_shared(&item) {
            self.peers.values_mut().for_each(|peer| peer.push(&item));
        }
        let home = self.home;
        self.ask(out, |all, out| all.item(now, home, (VlanId::NONE, item), out));
    }

    /// Handles a command of the local controller. Returns the item if it is for this switch's edge.
    /// Another switch is sent host queries only.
    pub(crate) fn command(&mut self, to: NodeId, item: Item) -> Option<Item> {
        if to == self.home.node {
            return Some(item);
        }
        if matches!(item, Item::AskHost { .. })
            && let Some(peer) = self.peers.get_mut(&to)
        {
            peer.push(&item);
        }
        None
    }

    /// Calls the controller inside. A fabric without a controller node has no VLANs.
    fn ask<R>(
        &mut self,
        out: &mut Vec<Effect>,
        call: impl FnOnce(&mut Controller, &mut Effects) -> R,
    ) -> R {
        let mut own = Effects::new();
        let result = call(&mut self.controller, &mut own);
        out.extend(own.into_iter().map(|(_, effect)| effect));
        result
    }

    /// Handles a message of another switch, to which `reverse` leads. Messages for the edge go out
    /// as [`Effect::Routed`] to this switch itself.
    ///
    /// # Errors
    /// The reason for the refusal: the sender is not in the file or has not sent a greeting, or may
    /// not send this message.
    pub(crate) fn message(
        &mut self,
        now: Time,
        reverse: Hops,
        opened: Opened,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let Opened { from, vlan, message, addressed } = opened;
        if !vlan.is_none() {
            return Err(Refusal::Misplaced);
        }
        let peer = self.peers.get_mut(&from.node).ok_or(Refusal::Unexpected)?;
        let message = match message {
            Message::ControllerHello(_) if !addressed => {
                // It may be a replay: only messages for this incarnation count.
                return self.greet_back(from, reverse, out);
            }
            Message::ControllerHello(hello) => {
                return self.greeted(now, (from, reverse), hello, out);
            }
            _ if !addressed || !peer.is(from) => return Err(Refusal::Unexpected),
            message => message,
        };
        let word = match message {
            Message::ControllerHelloAck(ack) => {
                peer.acknowledged(ack, self.version);
                return Ok(());
            }
            Message::Segment(segment) => {
                for item in peer.receive(now, segment) {
                    self.item(now, from, item, out);
                }
                return Ok(());
            }
            Message::ArpTarget(target) => {
                let asked =
                    self.ask(out, |all, out| all.target_asked(now, (from, reverse), target, out));
                asked.map(Message::ArpTarget)
            }
            Message::ArpReply(reply) => self
                .ask(out, |all, out| all.target_found(now, from, reply, out))
                .map(Message::ArpReply),
            Message::Seek(seek) => Some(Message::Seek(seek)),
            _ => return Err(Refusal::Misplaced),
        };
        if let Some(message) = word {
            out.push(Effect::Routed { hops: Hops::to_control(), to: self.home, message });
        }
        Ok(())
    }

    /// Answers a switch that lacks this incarnation's number, or an acknowledgement of its
    /// greeting.
    fn greet_back(
        &mut self,
        from: Incarnation,
        hops: Hops,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        if self.version > 0 {
            let nonce = self.peers.get(&from.node).map_or(0, Peer::nonce);
            let hello = ControllerHello { version: self.version, nonce, ports: self.view.clone() };
            let message = Message::ControllerHello(hello);
            out.push(Effect::Routed { hops, to: from, message });
        }
        Ok(())
    }

    /// Handles the port state of another switch.
    fn greeted(
        &mut self,
        now: Time,
        (from, reverse): (Incarnation, Hops),
        hello: ControllerHello,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let known = self.controller.graph().incarnation_of(from.node);
        if known.is_some_and(|known| known.number > from.number) {
            return Err(Refusal::StaleIncarnation);
        }
        let ports = self.cables.filter(from.node, hello.ports);
        let hello = ControllerHello { ports, ..hello };
        self.ask(out, |all, out| all.controller_hello(now, from, reverse, hello, out));
        let Some(peer) = self.peers.get_mut(&from.node) else { return Ok(()) };
        if !peer.is(from) {
            peer.met(now, from, self.timers.retry, self.controller.reports());
        }
        Ok(())
    }

    /// Handles a report or a host query of another switch.
    fn item(&mut self, now: Time, from: Incarnation, item: Item, out: &mut Vec<Effect>) {
        match item {
            Item::AskHost { .. } => out.push(Effect::Command { to: self.home.node, item }),
            item if is_shared(&item) => {
                self.ask(out, |all, out| all.item(now, from, (VlanId::NONE, item), out));
            }
            _ => {}
        }
    }

    /// Handles expired timers. Early or repeated calls are harmless.
    pub(crate) fn timeout(&mut self, now: Time, out: &mut Vec<Effect>) {
        if self.controller.deadline().is_some_and(|at| at <= now) {
            self.ask(out, |all, out| all.timeout(now, out));
        }
        if self.version > 0 && self.refresh_at.is_some_and(|at| at <= now) {
            self.enter_own(now, out);
            self.peers.values_mut().for_each(|peer| peer.has_news(now));
        }
    }

    /// Sends greetings and reports that are due. A switch without a path gets them later.
    pub(crate) fn flush(&mut self, now: Time, out: &mut Vec<Effect>) {
        for (&node, peer) in &mut self.peers {
            if self.version == 0 || !peer.wants(now) {
                continue;
            }
            let greeted = self.controller.path_for_greeting(node);
            // The path in the graph may be broken: every other greeting takes a different path.
            let path = match peer.is_odd() {
                true => greeted,
                false => self.controller.path_to(node).or(greeted),
            };
            let greeting = |nonce| {
                let (version, ports) = (self.version, self.view.clone());
                Message::ControllerHello(ControllerHello { version, nonce, ports })
            };
            for (to, message) in peer.poll(now, (node, self.timers.retry), greeting) {
                let hops = path.clone();
                out.extend(hops.map(|hops| Effect::Routed { hops, to, message }));
            }
        }
    }

    /// Returns whether [`StaticControl::flush`] has something to do.
    pub(crate) fn wants(&self, now: Time) -> bool {
        match self.version {
            0 => self.greet_at.is_some_and(|at| at <= now),
            _ => self.peers.values().any(|peer| peer.wants(now)),
        }
    }

    /// Returns when to call [`StaticControl::timeout`], [`StaticControl::update`] and
    /// [`StaticControl::flush`] next.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let greets = self.greet_at.filter(|_| self.version == 0);
        let peers = self.peers.values().filter_map(Peer::deadline);
        let peers = peers.min().filter(|_| self.version > 0);
        let own = [self.controller.deadline(), greets, self.refresh_at, peers];
        own.into_iter().flatten().min()
    }

    /// Changes the policy of which hosts may reach which, at this switch.
    ///
    /// # Errors
    /// The errors of [`Controller::change_policy`]; nothing has changed.
    pub(crate) fn change_policy(
        &mut self,
        now: Time,
        change: PolicyChange,
        out: &mut Vec<Effect>,
    ) -> Result<PolicyDone, PolicyRefusal> {
        self.ask(out, |all, out| all.change_policy(now, change, out))
    }

    /// Returns the telemetry of the static control plane.
    pub fn telemetry(&self) -> Box<StaticTelemetry> {
        let controller = &self.controller;
        let graph = controller.graph();
        let hosts = controller.hosts().iter().map(|(_, host)| {
            let place = host.place();
            let switch = graph.switch(place.switch).incarnation.node;
            ControllerHost {
                vlan: VlanId::NONE,
                mac: host.mac,
                switch,
                port: place.port,
                ips: host.ips.clone(),
            }
        });
        Box::new(StaticTelemetry {
            switches: self.peers.len() as u64 + 1,
            met: self.peers.values().filter(|peer| peer.is_met()).count() as u64,
            missing: self.cables.missing(&self.view),
            miscabled: self.cables.miscabled().collect(),
            hosts: hosts.collect(),
            ip_conflicts: controller.ip_conflicts().collect(),
            routes: controller.flows().len() as u64,
            policy: controller.policy_telemetry(),
            counters: controller.counters(),
            dhcp: controller.dhcp().counters(),
        })
    }
}

/// Returns whether switches report this item to each other.
fn is_shared(item: &Item) -> bool {
    matches!(item, Item::HostSeen { .. } | Item::HostGone { .. } | Item::GroupMember { .. })
}

/// Returns whether a message cannot be opened yet: its receiver's incarnation is unknown, and it is
/// no greeting.
pub(crate) fn is_for_nobody(to: Incarnation, message: &Message) -> bool {
    to.number == ANY_INCARNATION && !matches!(message, Message::ControllerHello(_))
}
