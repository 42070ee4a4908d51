//! The controller of the model, with its store and its streams of commands.

use super::switch::node_config;
use super::wiring::{self, CONTROLLER, CONTROLLER_NODE};
use crate::part::Part;
use crate::print::Print;
use axon_controller::config::{ControllerConfig, DhcpConfig};
use axon_controller::policy::Policy;
use axon_controller::router::RouterKind;
use axon_controller::{Controller, Effects};
use axon_link::config::NodeConfig;
use axon_node::{StoreChange, Stored};
use axon_wire::message::Item;
use axon_wire::{Incarnation, NodeId, PortNo, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Maximum length of a route, in hops.
const HOPS_MAX: usize = 122;

/// Commands from the controller to one incarnation of a switch.
#[derive(Clone, Debug)]
struct Commands {
    to: Incarnation,
    items: VecDeque<Item>,
}

/// Controller and its surroundings.
#[derive(Clone)]
pub(super) struct Head {
    controller: Part<Controller>,
    running: Incarnation,
    stored: Part<Vec<Stored>>,
    /// Switches that the controller knows, with its commands for them.
    commands: Part<BTreeMap<NodeId, Commands>>,
}

impl Head {
    /// Creates a controller that has just started.
    pub(super) fn new() -> Head {
        let config = controller_config(1);
        let mut controller = Controller::new(&config, HOPS_MAX);
        controller.attached(PortNo(0), Some((wiring::node_id(0), CONTROLLER)));
        Head {
            controller: Part::new(controller),
            running: config.node.incarnation,
            stored: Part::new(Vec::new()),
            commands: Part::new(BTreeMap::new()),
        }
    }

    /// Returns the fingerprints of the state.
    pub(super) fn prints(&self) -> [&Print; 3] {
        [self.controller.print(), self.stored.print(), self.commands.print()]
    }

    /// Returns the running incarnation.
    pub(super) fn running(&self) -> Incarnation {
        self.running
    }

    /// Returns the controller.
    pub(super) fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Calls the controller in the same way as its node, and returns its effects.
    pub(super) fn call(
        &mut self,
        now: Time,
        call: impl FnOnce(&mut Controller, Time, &mut Effects),
    ) -> Effects {
        let mut out = Vec::new();
        if self.controller.deadline().is_some_and(|at| at <= now) {
            self.controller.timeout(now, &mut out);
        }
        call(&mut self.controller, now, &mut out);
        self.controller.keep(&mut out);
        out
    }

    /// Restarts the controller. Returns the stored state to restore.
    pub(super) fn restart(&mut self) -> Part<Vec<Stored>> {
        let config = controller_config(self.running.number + 1);
        self.controller = Part::new(Controller::new(&config, HOPS_MAX));
        self.running = config.node.incarnation;
        self.commands.clear();
        self.stored.clone()
    }

    /// Returns the incarnation of a switch that the controller knows.
    pub(super) fn known(&self, node: NodeId) -> Option<Incarnation> {
        self.commands.get(&node).map(|commands| commands.to)
    }

    /// Begins a stream of commands to an incarnation of a switch.
    pub(super) fn meet(&mut self, to: Incarnation) {
        self.commands.insert(to.node, Commands { to, items: VecDeque::new() });
    }

    /// Appends a command to the stream to a switch.
    pub(super) fn push(&mut self, to: NodeId, item: Item) {
        if let Some(commands) = self.commands.get_mut(&to) {
            commands.items.push_back(item);
        }
    }

    /// Returns whether a command is on the stream to this incarnation of a switch.
    pub(super) fn has_command(&self, to: Incarnation) -> bool {
        let commands = self.commands.get(&to.node);
        commands.is_some_and(|commands| commands.to == to && !commands.items.is_empty())
    }

    /// Takes the next command to a switch.
    pub(super) fn pop(&mut self, to: NodeId) -> Option<Item> {
        self.commands.get_mut(&to)?.items.pop_front()
    }

    /// Changes the store.
    pub(super) fn store(&mut self, change: StoreChange) {
        let key = match &change {
            StoreChange::Put(stored) => stored.key(),
            StoreChange::Delete(key) => *key,
        };
        self.stored.retain(|stored: &Stored| stored.key() != key);
        if let StoreChange::Put(stored) = change {
            self.stored.push(stored);
        }
    }
}

fn controller_config(number: u64) -> ControllerConfig {
    let incarnation = Incarnation { node: CONTROLLER_NODE, number };
    ControllerConfig {
        node: NodeConfig { seed: 1, ..node_config(incarnation) },
        dhcp: DhcpConfig {
            prefix_len: 24,
            pool_first: Ipv4Addr::new(10, 0, 0, 100),
            pool_last: Ipv4Addr::new(10, 0, 0, 100),
            lease: Span::from_secs(3600),
            leases_per_port_max: 2,
            reservations: BTreeMap::new(),
            router: None,
            dns: Vec::new(),
            domain: None,
            mtu: None,
            clients: BTreeMap::new(),
            relay: None,
        },
        router: RouterKind::default(),
        layers: 1,
        policy: Policy::default(),
        by_source: Default::default(),
        backups: true,
        dhcpv6: None,
        uplinks: Vec::new(),
        vlans: Default::default(),
        bonds: Vec::new(),
    }
}
