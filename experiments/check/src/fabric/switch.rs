//! Switch in the model: the production edge, and a model of its node.

use super::device::Device;
use super::wiring::{self, Wiring};
use axon_edge::Edges;
use axon_edge::config::{ByteLimit, EdgeConfig, EdgeServices, GroupConfig};
use axon_link::config::{NodeConfig, ServerIdentity, Timers};
use axon_wire::message::{Item, Stamp};
use axon_wire::{Incarnation, MacAddr, PortNo, Route};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Switch in the model.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub(super) incarnation: Incarnation,
    pub(super) edge: Edges,
    pub(super) device: Device,
    /// Controller that has answered the switch.
    pub(super) controller: Option<Incarnation>,
    /// Controller to which the switch has introduced itself.
    pub(super) trial: Option<Incarnation>,
    /// Version of the switch's ports, which is incremented with each change.
    pub(super) version: u64,
    /// Ports whose link has failed.
    pub(super) lost: BTreeSet<PortNo>,
    /// Reports on the stream to the controller.
    pub(super) reports: VecDeque<Item>,
    /// Newest decision for each flow that the switch has accepted.
    pub(super) newest: BTreeMap<(PortNo, MacAddr), (Stamp, Option<Route>)>,
}

pub(super) fn node_config(incarnation: Incarnation) -> NodeConfig {
    NodeConfig {
        incarnation,
        mac: MacAddr([2, 0xee, 0, 0, 0, incarnation.node.0 as u8]),
        keys: [0; 32].into(),
        seed: incarnation.number,
        timers: Timers::default(),
        server: ServerIdentity {
            mac: MacAddr([2, 0xff, 0, 0, 0, 1]),
            ip: Ipv4Addr::new(10, 0, 0, 254),
        },
    }
}

impl Switch {
    /// Creates a switch that has just started on this data plane, whose tables may be from earlier.
    pub(super) fn new(switch: usize, number: u64, device: Device) -> Switch {
        let incarnation = Incarnation { node: wiring::node_id(switch), number };
        let config = EdgeConfig {
            node: node_config(incarnation),
            waiting_bytes_max: 1_000,
            hosts_per_port_max: 2,
            host_control: ByteLimit::default(),
            groups: GroupConfig { multicast: false, ..GroupConfig::default() },
            services: EdgeServices::default(),
            vlans: Vec::new(),
            ports: Vec::new(),
        };
        let mut edge = Edges::new(&config, &Device::capabilities());
        edge.found(&device.snapshot());
        Switch {
            incarnation,
            edge,
            device,
            controller: None,
            trial: None,
            version: 0,
            lost: BTreeSet::new(),
            reports: VecDeque::new(),
            newest: BTreeMap::new(),
        }
    }

    /// Creates a switch in its first incarnation, on an empty data plane.
    pub(super) fn first(wiring: &Wiring, switch: usize) -> Switch {
        Switch::new(switch, 1, Device::new(wiring, switch))
    }
}
