//! The conductor owns the controller's parts, and passes each message and timer through them.
//!
//! A message about hosts names their VLAN, and reaches the state of that VLAN alone ([`Vlans`]), if
//! the port in question is in it. Everything else concerns what all VLANs share, and is handled
//! once.

mod entry;

use crate::bonds::Bonds;
use crate::bound_checks::Bounds;
use crate::config::{ControllerConfig, StaticTopology};
use crate::dhcp::DhcpServer;
use crate::effect::{Effect, Effects};
use crate::fabric::Fabric;
use crate::flows::Flows;
use crate::forwarding::Shared;
use crate::hosts::HostTable;
use crate::network::Rights;
use crate::route_upkeep::Upkeep;
use crate::router::{Explicit, Router};
use crate::routes::Decisions;
use crate::store;
use crate::topology::{Admission, Graph, SwitchIndex};
use crate::vlans::Vlans;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use axon_node::telemetry::{
    BondTelemetry, ControllerCounters, DhcpCounters, IpConflict, PolicyTelemetry, Restored,
};
use axon_node::{PolicyChange, PolicyDone, PolicyRefusal, StoreChange, Stored};
use axon_wire::message::{ControllerHello, ControllerHelloAck, Item, Message};
use axon_wire::vlan::VlanId;
use axon_wire::{Hops, Incarnation, NodeId, PortNo, Span, Time};

/// The controller's state.
#[derive(Clone, Debug)]
pub struct Controller {
    all: Vlans,
    upkeep: Upkeep,
    /// Maximum time for which links of a switch's previous incarnation still count.
    reunion_max: Span,
    /// Interval of load reports in milliseconds, if the router needs them.
    measure_every_ms: Option<u32>,
    /// Counts of messages from earlier incarnations, and of misplaced items.
    counters: ControllerCounters,
    /// Number of stored entries dropped because their port is no longer in the VLAN.
    given_up: u64,
}

/// Creation and telemetry.
impl Controller {
    /// Creates a controller with an empty state. Its routes have at most `hops_max` hops.
    pub fn new(config: &ControllerConfig, hops_max: usize) -> Controller {
        let router = config.router.build(config.node.seed, config.layers);
        Controller::with_router(config, hops_max, router)
    }

    /// Creates a controller with the given router.
    pub fn with_router(
        config: &ControllerConfig,
        hops_max: usize,
        router: Box<dyn Router>,
    ) -> Controller {
        let timers = &config.node.timers;
        let every = |heartbeats: u32| (timers.heartbeat * u64::from(heartbeats)).as_millis();
        let measure_every_ms = router
            .measures()
            .map(|heartbeats| u32::try_from(every(heartbeats)).unwrap_or(u32::MAX).max(1));
        let bonds = Bonds::new(&config.bonds, timers.heartbeat * 10);
        let shared = Shared {
            fabric: Fabric::new(bonds, config.vlans.ports.clone()),
            rights: Rights::new(config),
            decisions: Decisions::new(&config.node, router, hops_max),
            bounds: Bounds::default(),
        };
        Controller {
            all: Vlans::new(config, shared),
            upkeep: Upkeep::new(timers),
            reunion_max: timers.reunion_max(),
            measure_every_ms,
            counters: ControllerCounters::default(),
            given_up: 0,
        }
    }

    /// Creates the controller inside the switch given in `config`, with the topology of the fabric
    /// file. Its routes have at most `hops_max` hops.
    pub fn at_switch(
        config: &ControllerConfig,
        topology: &StaticTopology,
        hops_max: usize,
    ) -> Controller {
        let router = config.router.build(config.node.seed, config.layers);
        let router = Explicit::over(router, &topology.paths);
        let mut controller = Controller::with_router(config, hops_max, router);
        let fabric = &mut controller.all.shared.fabric;
        for switch in &topology.switches {
            fabric.graph_mut().assume(switch.node, &switch.ports);
        }
        fabric.set_home(config.node.incarnation.node);
        let hosts: Vec<Stored> = topology.hosts.iter().cloned().map(Stored::Host).collect();
        controller.restore(Time::ZERO, &hosts, &mut Vec::new());
        // This state comes from the file. It is not a change, and it is not stored.
        controller.keep(&mut Vec::new());
        controller
    }

    /// Returns the graph of switches.
    pub fn graph(&self) -> &Graph {
        self.all.shared.fabric.graph()
    }

    /// Returns the state of each VLAN.
    pub fn vlans(&self) -> &Vlans {
        &self.all
    }

    /// Returns the host table of untagged hosts.
    pub fn hosts(&self) -> &HostTable {
        self.all.plain().hosts()
    }

    /// Returns the flow registry of untagged hosts.
    pub fn flows(&self) -> &Flows {
        self.all.plain().flows()
    }

    /// Returns the address service of untagged hosts.
    pub fn dhcp(&self) -> &DhcpServer {
        self.all.plain().dhcp()
    }

    /// Returns the counters, summed over all VLANs.
    pub fn counters(&self) -> ControllerCounters {
        let Shared { fabric, decisions, bounds, .. } = &self.all.shared;
        let own = self.counters.plus(&decisions.counters);
        let sum = self.all.iter().fold(own, |sum, (_, vlan)| sum.plus(&vlan.counters()));
        ControllerCounters {
            bond_mismatches: fabric.bonds().mismatches(),
            over_bound: bounds.refused(),
            hosts_misplaced: bounds.misplaced(),
            ..sum
        }
    }

    /// Returns the counters of the address services, summed over all VLANs.
    pub fn dhcp_counters(&self) -> DhcpCounters {
        let counters = self.all.iter().map(|(_, vlan)| vlan.dhcp().counters());
        counters.fold(DhcpCounters::default(), |sum, one| sum.plus(&one))
    }

    /// Returns counts of the state restored from the previous incarnation, summed over all VLANs.
    pub fn restored(&self) -> Restored {
        let all = self.all.iter().map(|(_, vlan)| vlan.restored());
        let sum = all.fold(Restored::default(), |sum, one| sum.plus(&one));
        Restored { refused: sum.refused + self.given_up, ..sum }
    }

    /// Returns whether old paths are still draining, in which case a flow may have no path.
    pub fn is_draining(&self) -> bool {
        self.all.shared.decisions.paths.router().draining().is_some()
    }

    /// Returns the standing conflicts: addresses that two hosts of a VLAN use.
    pub fn ip_conflicts(&self) -> impl Iterator<Item = IpConflict> {
        self.all
            .iter()
            .flat_map(|(_, vlan)| vlan.presence().addresses().ip_conflicts(self.all.net(vlan)))
    }

    /// Returns the telemetry of all bonds.
    pub fn bonds_telemetry(&self) -> Vec<BondTelemetry> {
        self.all.shared.fabric.bonds().telemetry()
    }

    /// Returns the policy as the controller has it. Acknowledgements that switches still owe are
    /// not included.
    pub fn policy_telemetry(&self) -> PolicyTelemetry {
        self.all.net(self.all.plain()).policy_telemetry()
    }

    /// Returns the reports from this switch that another switch needs after a first or repeated
    /// greeting: hosts first, then their groups.
    pub fn reports(&self) -> Vec<Item> {
        self.all.plain().presence().reports(&self.all.net(self.all.plain()))
    }

    /// Returns a path to another switch's control plane over links that their nearer ends have
    /// reported, to reconnect parts of a fabric that were cut off from each other.
    pub fn path_for_greeting(&self, to: NodeId) -> Option<Hops> {
        self.all.shared.fabric.path_for_greeting(to)
    }
}

/// Messages about the fabric, and timers.
impl Controller {
    /// Restores the stored state of an earlier incarnation: entries of each VLAN, and operators'
    /// changes of the policy. Entries that do not fit this configuration are dropped, and so are
    /// those of a VLAN that no longer exists, or that their port is not in. Call it once, before
    /// anything else.
    pub fn restore(&mut self, now: Time, stored: &[Stored], out: &mut Effects) {
        let mut own: BTreeMap<VlanId, Vec<Stored>> = BTreeMap::new();
        for entry in stored {
            let (Some((vlan, inner)), Some(at)) = (entry.open(), entry.at()) else {
                self.all.shared.rights.policy.restore(entry);
                continue;
            };
            if self.all.at_port(vlan, at).is_some() {
                own.entry(vlan).or_default().push(inner);
            } else {
                self.given_up += 1;
                out.push((vlan, Effect::Store(StoreChange::Delete(entry.key()))));
            }
        }
        for (vlan, mut stored) in own {
            stored.sort_by_key(|entry| match entry {
                Stored::Host(_) => 0,
                Stored::Lease(_) => 1,
                _ => 2,
            });
            // From now on, the silence of these switches counts.
            for (switch, _) in stored.iter().filter_map(Stored::at) {
                let switch = self.all.shared.fabric.graph_mut().remember(switch);
                self.upkeep.ageing.heard(now, switch);
            }
            self.all.with(vlan, out, |fwd, own, out| store::restore((fwd, own), now, &stored, out));
        }
    }

    /// Emits the changes since the last call that are to be stored.
    pub fn keep(&mut self, out: &mut Effects) {
        self.all.each(out, |fwd, own, out| {
            store::keep(&mut fwd.net, own.presence.addresses_mut(), out);
        });
    }

    /// Returns the path from here to a switch's control plane, ending in [`PortNo::CONTROL`]: the
    /// shortest one over all of the controller's own links, lowest port first. If the graph has no
    /// path yet, returns the reverse path of the switch's last Controller Hello.
    pub fn path_to(&mut self, switch: NodeId) -> Option<Hops> {
        let Shared { fabric, decisions, .. } = &mut self.all.shared;
        decisions.paths.path_to(fabric, switch)
    }

    /// Records the switch and port to which the controller's own `port` leads, or that it leads to
    /// none. Nothing is sent, because no flow passes through the controller.
    pub fn attached(&mut self, port: PortNo, peer: Option<(NodeId, PortNo)>) {
        self.all.shared.fabric.attached(port, peer);
    }

    /// Handles a switch's port state. `reverse` leads from here to that switch's control plane and
    /// ends in [`PortNo::CONTROL`]. The acknowledgement takes that path and so proves to the switch
    /// that it works. An older version is acknowledged too, because its path works as well.
    pub fn controller_hello(
        &mut self,
        now: Time,
        from: Incarnation,
        reverse: Hops,
        m: ControllerHello,
        out: &mut Effects,
    ) {
        let Some(index) = self.admit(now, from, out) else { return };
        let ack = ControllerHelloAck { version: m.version, nonce: m.nonce };
        let message = Message::ControllerHelloAck(ack);
        out.push((VlanId::NONE, Effect::Routed { hops: reverse.clone(), to: from, message }));
        let first = self.graph().switch(index).version.is_none();
        if first {
            self.all.each(out, |fwd, _, _| fwd.net.hosts_mut().heard(now, index));
        }
        let fabric = &mut self.all.shared.fabric;
        let was_edge = fabric.has_hosts(index);
        let change = fabric.graph_mut().update(index, m.version, &m.ports, reverse);
        let is_new_edge = !was_edge && fabric.has_hosts(index);
        if let Some(every_ms) = self.measure_every_ms.filter(|_| first) {
            let ask = Effect::Command { to: from.node, item: Item::AskLoad { every_ms } };
            out.push((VlanId::NONE, ask));
        }
        self.upkeep.changed(&mut self.all, now, &change, out);
        if is_new_edge {
            self.all.each(out, |fwd, _, out| {
                let (net, routes) = (&fwd.net, &mut fwd.routes);
                fwd.seeking.ask_newcomer(now, (net, routes), from, out);
            });
        }
    }

    /// Changes the policy of all VLANs, stores the change for the next incarnation, and removes the
    /// routes that have become forbidden. Two hosts without a common VLAN do not reach each other
    /// under any policy.
    ///
    /// # Errors
    /// Those of `Policy::change_pair` and `Policy::change_quarantine`. Nothing has changed.
    pub fn change_policy(
        &mut self,
        now: Time,
        change: PolicyChange,
        out: &mut Effects,
    ) -> Result<PolicyDone, PolicyRefusal> {
        let (stored, reach) = match change {
            PolicyChange::Pair(pair, allowed) => {
                let [a, b] = pair.hosts().map(|mac| self.all.identities(mac));
                let policy = &mut self.all.shared.rights.policy;
                let stored = policy.change_pair([&a[0].1, &b[0].1], allowed)?;
                let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
                let meet = pairs.filter(|(a, b)| a.0.is_none() || b.0.is_none() || a.0 == b.0);
                let mut reach = meet.map(|(a, b)| policy.allows(&a.1, &b.1)).peekable();
                (stored, reach.peek().is_some() && reach.all(|is_allowed| is_allowed))
            }
            PolicyChange::Quarantine(subject, on) => {
                (self.all.shared.rights.policy.change_quarantine(subject, on)?, !on)
            }
        };
        out.push((VlanId::NONE, Effect::Store(stored)));
        let (mut routes_removed, mut switches) = (0, BTreeSet::new());
        self.all.each(out, |fwd, own, out| {
            let (removed, at_switches) = fwd.enforce(change, out);
            routes_removed += removed;
            switches.extend(at_switches);
            own.presence.groups_mut().all_changed(now);
            own.presence.addresses_mut().end_conflicts(&fwd.net);
        });
        let switches = switches.into_iter().collect();
        Ok(PolicyDone { routes_removed, switches, reach })
    }

    /// Handles expired timers. Call it at [`Controller::deadline`]; early or repeated calls are
    /// harmless.
    pub fn timeout(&mut self, now: Time, out: &mut Effects) {
        self.upkeep.timeout(&mut self.all, now, out);
    }

    /// Returns when to call [`Controller::timeout`] next.
    pub fn deadline(&self) -> Option<Time> {
        self.upkeep.deadline(&self.all)
    }

    /// Looks up the switch that sent a message. Returns `None` if that incarnation of it has ended.
    /// If the switch has a new incarnation, its state is reset, because its tables are empty and it
    /// reports its hosts again.
    fn admit(&mut self, now: Time, from: Incarnation, out: &mut Effects) -> Option<SwitchIndex> {
        let graph = self.all.shared.fabric.graph_mut();
        let index = match graph.admit(from, now + self.reunion_max) {
            Admission::Known(index) => index,
            Admission::Stale => {
                self.counters.stale_incarnation += 1;
                return None;
            }
            Admission::Reborn(index, change) => {
                self.upkeep.reborn(&mut self.all, now, (index, &change), out);
                index
            }
        };
        self.upkeep.ageing.heard(now, index);
        Some(index)
    }

    /// Handles the acknowledgement of the request `number` by every switch with links
    /// ([`Effect::AwaitAcknowledged`]).
    pub fn acknowledged(&mut self, now: Time, number: u64) {
        self.all.shared.decisions.drain.acknowledged(now, number);
    }

    /// Records whether a switch leaves [`COMMANDS_PER_SWITCH_MAX`] or more commands unacknowledged.
    /// While it does, no route is made at it.
    ///
    /// [`COMMANDS_PER_SWITCH_MAX`]: super::bounds::COMMANDS_PER_SWITCH_MAX
    pub fn backlog(&mut self, of: NodeId, is_full: bool) {
        if let Some(switch) = self.graph().index_of(of) {
            self.all.shared.bounds.backlog(switch, is_full);
        }
    }
}
