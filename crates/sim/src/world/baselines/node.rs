//! Other networks in the same world: learning bridges with RSTP, PortLand, static multipath.
//!
//! They are nodes on the same ports, buffers and wires as ours, chosen by the fabric's
//! `network`. None of them serves DHCP, so every host without a fixed address is given one
//! before the start: its reservation, or the first free one of the pool, in the order of
//! hosts. The place of the controller stays empty where there is none.

use super::multipath;
use crate::engine::station::{Body, Station};
use axon_control::node::{BridgeNode, BridgeNodeConfig, MultipathNode};
use axon_control::portland::{ManagerConfig, ManagerNode, PortLandNode, SwitchConfig};
use axon_control::rstp::path_cost;
use axon_fabric::assemble;
use axon_fabric::model::{Fabric, Network};
use axon_plane::multipath::{MultipathConfig, Places};
use axon_plane::portland::PortLandConfig;
use axon_plane::{Action, Awaited, Drop, Input, Node, PortBank};
use axon_wire::{FrameBuf, PortNo, Time};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Bytes of an Ethernet header, which an MTU does not count.
const ETHERNET_BYTES: usize = 14;
/// The longest frame of an Ethernet with the ordinary MTU: control messages need it.
const FRAME_BYTES: usize = 1514;
/// Bytes that may wait for a way on one PortLand switch.
const WAITING_BYTES_MAX: usize = 1 << 18;

/// A node of another network.
#[allow(clippy::large_enum_variant, reason = "a body boxes it as a whole")]
pub enum Baseline {
    /// A learning bridge.
    Bridge(BridgeNode<FrameBuf>),
    /// A switch with static tables.
    Multipath(MultipathNode<FrameBuf>),
    /// A PortLand switch.
    PortLand(PortLandNode<FrameBuf>),
    /// PortLand's fabric manager.
    Manager(ManagerNode<FrameBuf>),
}

impl Baseline {
    /// Its ports.
    pub fn bank(&self) -> &PortBank<FrameBuf> {
        match self {
            Baseline::Bridge(node) => node.bank(),
            Baseline::Multipath(node) => node.bank(),
            Baseline::PortLand(node) => node.bank(),
            Baseline::Manager(node) => node.bank(),
        }
    }

    /// Punted frames that wait in the control plane, and those that went on from there.
    fn kept(&self) -> (u64, u64) {
        match self {
            Baseline::PortLand(node) => (node.waiting_frames(), node.resumed_frames()),
            _ => (0, 0),
        }
    }

    /// Frames that it holds: in queues, for their tails, or in the control plane.
    pub(crate) fn held(&self) -> u64 {
        let bank = self.bank();
        let queued: u64 = (0..bank.ports()).map(|port| bank.queued_frames(PortNo(port))).sum();
        queued + bank.held_frames() + self.kept().0
    }

    /// Checks that every frame has exactly one fate.
    pub(crate) fn check(&self, station: &Station) -> Result<(), String> {
        let (accounts, bank) = (&station.harness.accounts, self.bank());
        let total = bank.counters().total();
        let own = bank.counters().port(PortNo::CONTROL).rx_frames;
        if total.rx_frames != accounts.received + own || total.tx_frames != accounts.sent {
            let (rx, tx) = (total.rx_frames, total.tx_frames);
            return Err(format!("{rx} in (of them {own} of its own) and {tx} out: {accounts:?}"));
        }
        for (&reason, seen) in Drop::ALL.iter().zip(accounts.dropped) {
            let counted = total.dropped(reason);
            if counted != seen {
                return Err(format!("{}: {counted} counted, {seen} seen", reason.name()));
            }
        }
        let queued: u64 = (0..bank.ports()).map(|port| bank.queued_frames(PortNo(port))).sum();
        let held = bank.held_frames();
        let dropped: u64 = accounts.dropped.iter().sum();
        let (waiting, resumed) = self.kept();
        let come = total.rx_frames + total.copies;
        let gone = total.tx_frames + queued + held + dropped + waiting + resumed;
        if come == gone {
            return Ok(());
        }
        Err(format!(
            "{come} in and copied; {} out, {queued} queued, {held} held, {dropped} dropped, \
             {waiting} waiting, {resumed} resumed",
            total.tx_frames
        ))
    }
}

impl Node<FrameBuf> for Baseline {
    fn handle(&mut self, now: Time, input: Input<FrameBuf>, out: &mut Vec<Action<FrameBuf>>) {
        match self {
            Baseline::Bridge(node) => node.handle(now, input, out),
            Baseline::Multipath(node) => node.handle(now, input, out),
            Baseline::PortLand(node) => node.handle(now, input, out),
            Baseline::Manager(node) => node.handle(now, input, out),
        }
    }

    fn deadline(&self) -> Option<Time> {
        match self {
            Baseline::Bridge(node) => node.deadline(),
            Baseline::Multipath(node) => node.deadline(),
            Baseline::PortLand(node) => node.deadline(),
            Baseline::Manager(node) => node.deadline(),
        }
    }

    fn awaited(&mut self) -> Awaited {
        match self {
            Baseline::Bridge(node) => node.awaited(),
            Baseline::Multipath(node) => node.awaited(),
            Baseline::PortLand(node) => node.awaited(),
            Baseline::Manager(node) => node.awaited(),
        }
    }
}

/// What the nodes of a baseline are built from, computed once.
#[derive(Default)]
pub(crate) struct Plans {
    /// Ethernet: the path cost of each port of each switch.
    path_costs: Vec<Vec<u32>>,
    /// Static multipath: where hosts are, and each switch's tables.
    places: Arc<Places>,
    tables: Vec<multipath::Tables>,
}

impl Plans {
    /// Plans for the fabric's network.
    pub(crate) fn new(fabric: &Fabric) -> Plans {
        let mut plans = Plans::default();
        match fabric.network {
            Network::Ethernet => plans.path_costs = path_costs(fabric),
            Network::Ecmp => {
                plans.places = Arc::new(multipath::places(fabric));
                plans.tables = multipath::tables(fabric);
            }
            Network::Axon | Network::PortLand => {}
        }
        plans
    }

    /// A switch of the fabric's network in one of its lives; `None` for Axon's own.
    pub(crate) fn switch(
        &self,
        fabric: &Fabric,
        index: usize,
        life: u64,
        seed: u64,
    ) -> Option<Body> {
        let ports = fabric.switches[index].ports;
        let queue_bytes_max = fabric.controller.wire.queue;
        let frame_bytes_max = (usize::from(fabric.mtu) + ETHERNET_BYTES).max(FRAME_BYTES);
        let mac = assemble::switch_mac(index);
        let node = match fabric.network {
            Network::Axon => return None,
            Network::Ethernet => {
                let mut config = BridgeNodeConfig::new(mac, self.path_costs[index].clone());
                config.bridge.queue_bytes_max = queue_bytes_max;
                config.bridge.frame_bytes_max = frame_bytes_max;
                Baseline::Bridge(BridgeNode::new(config))
            }
            Network::Ecmp => {
                let tables = self.tables[index].clone();
                Baseline::Multipath(MultipathNode::new(MultipathConfig {
                    ports,
                    queue_bytes_max,
                    frame_bytes_max,
                    switch: index as u32,
                    places: self.places.clone(),
                    sets: tables.sets,
                    routes: tables.routes,
                    tree: tables.tree,
                    seed,
                }))
            }
            Network::PortLand => Baseline::PortLand(PortLandNode::new(SwitchConfig {
                plane: PortLandConfig { ports, queue_bytes_max, frame_bytes_max, mac, seed },
                life: life as u32,
                interval: fabric.timers.heartbeat,
                retry: fabric.timers.retry,
                waiting_bytes_max: WAITING_BYTES_MAX,
            })),
        };
        Some(Body::Baseline(Box::new(node)))
    }
}

/// What stands in the controller's place, `Body::Off` for nothing; `None` for Axon's own.
pub(crate) fn controller(fabric: &Fabric, life: u64) -> Option<Body> {
    match fabric.network {
        Network::Axon => None,
        Network::Ethernet | Network::Ecmp => Some(Body::Off),
        Network::PortLand => {
            let node = ManagerNode::new(ManagerConfig {
                mac: assemble::CONTROLLER_MAC,
                life: life as u32,
                interval: fabric.timers.heartbeat,
                retry: fabric.timers.retry,
                queue_bytes_max: fabric.controller.wire.queue,
            });
            Some(Body::Baseline(Box::new(Baseline::Manager(node))))
        }
    }
}

/// The path cost of each port of each switch: by the rate of what is plugged in, or of the
/// fabric's links where nothing is.
fn path_costs(fabric: &Fabric) -> Vec<Vec<u32>> {
    let spare = path_cost(fabric.controller.wire.rate);
    let mut costs: Vec<Vec<u32>> =
        fabric.switches.iter().map(|switch| vec![spare; usize::from(switch.ports)]).collect();
    for link in &fabric.links {
        for end in [link.a, link.b] {
            costs[end.switch][end.port.index()] = path_cost(link.wire.rate);
        }
    }
    for host in &fabric.hosts {
        costs[host.switch][host.port.index()] = path_cost(host.wire.rate);
    }
    costs
}

/// Gives every host a fixed address, in a network without address service.
pub(crate) fn fix_addresses(fabric: &mut Fabric) {
    if fabric.network == Network::Axon {
        return;
    }
    let reserved = &fabric.dhcp.reservations;
    let mut used: BTreeSet<Ipv4Addr> = reserved.values().copied().collect();
    used.extend(fabric.hosts.iter().filter_map(|host| host.ip));
    used.insert(fabric.dhcp.server);
    let pool = fabric.dhcp.pool_first.to_bits()..=fabric.dhcp.pool_last.to_bits();
    let mut free = pool.map(Ipv4Addr::from_bits).filter(|ip| !used.contains(ip));
    for host in fabric.hosts.iter_mut().filter(|host| host.ip.is_none()) {
        host.ip = reserved.get(&host.mac).copied().or_else(|| free.next());
    }
}
