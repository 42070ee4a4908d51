//! Configuration of every node of a fabric, shared by the simulator and Linux.

use crate::model::{Dhcp, Fabric};
use axon_controller::config::{ControllerConfig, DhcpConfig, RelayConfig};
use axon_edge::config::{ByteLimit, EdgeConfig, EdgeServices, EdgeVlan};
use axon_link::config::{NodeConfig, ServerIdentity};
use axon_node::Stored;
use axon_plane::dcb::DcbConfig;
use axon_plane::{Plane, PlaneConfig, PuntLimit};
use axon_switch::config::{StaticConfig, SwitchConfig};
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::priority::Priority;
use axon_wire::{Bytes, FrameBuf, Incarnation, MacAddr, Time};

pub use crate::identity::{
    CONTROLLER_ID, CONTROLLER_MAC, SERVER_MAC, host_mac, switch_id, switch_mac,
};
pub use crate::names::{host_index, is_device_name, port_name, split_port, switch_index};

/// Maximum bytes that wait for routes on one switch: some 700 full frames.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Maximum number of hosts behind one port.
const HOSTS_PER_PORT_MAX: usize = 64;

/// A switch: its control plane and its data plane.
#[derive(Clone, Debug)]
pub struct SwitchSetup {
    /// Identity, timers and advertised settings.
    pub control: SwitchConfig,
    /// Ports, buffers, tables, traffic classes.
    pub plane: PlaneConfig,
}

/// A controller: its control plane and the data plane of its own ports.
#[derive(Clone, Debug)]
pub struct ControllerSetup {
    /// Identity, timers, DHCP service and router.
    pub control: ControllerConfig,
    /// The controller's one port.
    pub plane: PlaneConfig,
}

impl SwitchSetup {
    /// Builds the switch on the software plane.
    pub fn on_software(self) -> SwitchNode<Plane> {
        SwitchNode::new(self.control, Plane::new(self.plane))
    }
}

impl ControllerSetup {
    /// Builds the controller on the software plane, started at `now` with the contents of its
    /// store.
    pub fn on_software(self, now: Time, stored: &[Stored]) -> ControllerNode<Plane> {
        ControllerNode::restored(self.control, Plane::new(self.plane), now, stored)
    }
}

/// Returns the configuration of a switch by index.
///
/// `incarnation` counts its incarnations and is above zero; `seed` seeds its random numbers and
/// must be unpredictable outside a simulation.
///
/// # Panics
/// If there is no such switch.
pub fn switch_config(fabric: &Fabric, index: usize, incarnation: u64, seed: u64) -> SwitchSetup {
    let ports = fabric.switches[index].ports;
    let incarnation = Incarnation { node: switch_id(index), number: incarnation };
    let dcb = fabric.dcb.as_deref();
    let dcb = dcb.map(|dcb| Box::new(crate::dcb::config(fabric, dcb, index, switch_mac(index))));
    let dcbx = dcb.as_ref().and_then(|dcb| crate::dcb::node_config(fabric, index, dcb));
    let mac = switch_mac(index);
    let node = node_config(fabric, incarnation, mac, seed);
    let alone = fabric.is_static().then(|| Box::new(static_config(fabric, &node)));
    let edge = EdgeConfig {
        node,
        waiting_bytes_max: WAITING_BYTES_MAX,
        hosts_per_port_max: HOSTS_PER_PORT_MAX,
        host_control: ByteLimit::default(),
        groups: fabric.groups,
        ports: crate::ports::policies(fabric, index),
        services: EdgeServices {
            dhcp_server: fabric.dhcp.relay.map(|host| fabric.hosts[host].mac),
            ipv6: fabric.ipv6.clone().map(Box::new),
        },
        vlans: crate::vlans::servers(fabric, server(fabric))
            .map(|(vlan, server)| EdgeVlan {
                id: vlan.id,
                server,
                ipv6: vlan.ipv6.clone().map(Box::new),
            })
            .collect(),
    };
    let control = SwitchConfig { edge, dcbx, alone };
    let mut plane = plane_config(fabric, (mac, dcb), ports);
    if crate::vlan_ports::has_trunks(fabric, index) {
        // Masqueraded addresses would collide between the VLANs of a port.
        plane.masqueraded_per_port_max = 0;
    }
    SwitchSetup { control, plane }
}

/// Returns the configuration of the controller; see [`switch_config`].
pub fn controller_config(fabric: &Fabric, incarnation: u64, seed: u64) -> ControllerSetup {
    let incarnation = Incarnation { node: CONTROLLER_ID, number: incarnation };
    let control = control_config(fabric, node_config(fabric, incarnation, CONTROLLER_MAC, seed));
    // All events that hosts cause arrive at the controller's one port.
    let causes = fabric.switches.len() + fabric.hosts.len();
    let addressed = PuntLimit::for_causes(u32::try_from(causes).unwrap_or(u32::MAX));
    let plane = plane_config(fabric, (CONTROLLER_MAC, None), 1);
    ControllerSetup { control, plane: PlaneConfig { addressed, ..plane } }
}

/// Returns the configuration by which a switch computes routes in a fabric without a controller.
/// Only reserved addresses are given out: two switches could otherwise lease the same one.
fn static_config(fabric: &Fabric, node: &NodeConfig) -> StaticConfig {
    let mut controller = control_config(fabric, node.clone());
    let none = fabric.dhcp.server;
    (controller.dhcp.pool_first, controller.dhcp.pool_last) = (none, none);
    StaticConfig { controller, topology: crate::static_mode::topology(fabric) }
}

/// Returns the controller configuration of node `node`.
fn control_config(fabric: &Fabric, node: NodeConfig) -> ControllerConfig {
    ControllerConfig {
        node,
        dhcp: DhcpConfig { relay: relay(fabric), ..dhcp_config(&fabric.dhcp) },
        router: fabric.controller.router,
        layers: fabric.layers(),
        policy: fabric.policy.clone(),
        by_source: fabric.by_source,
        backups: has_backups(fabric),
        dhcpv6: crate::ipv6::dhcpv6(fabric),
        uplinks: crate::uplinks::config(fabric),
        vlans: crate::vlans::plan(fabric, server(fabric), dhcp_config),
        bonds: crate::bonds::configs(fabric),
    }
}

/// Returns the configuration of the fabric's own DHCP service.
fn dhcp_config(dhcp: &Dhcp) -> DhcpConfig {
    DhcpConfig {
        prefix_len: dhcp.prefix_len,
        pool_first: dhcp.pool_first,
        pool_last: dhcp.pool_last,
        lease: dhcp.lease,
        leases_per_port_max: dhcp.leases_per_port as usize,
        reservations: dhcp.reservations.clone(),
        router: dhcp.router,
        dns: dhcp.dns.clone(),
        domain: dhcp.domain.clone(),
        mtu: dhcp.mtu,
        clients: dhcp.clients.clone(),
        relay: None,
    }
}

/// Returns the addresses of the fabric towards hosts in no VLAN.
const fn server(fabric: &Fabric) -> ServerIdentity {
    ServerIdentity { mac: SERVER_MAC, ip: fabric.dhcp.server }
}

/// Returns the DHCP server among the hosts, and the names by which it sees the switches.
fn relay(fabric: &Fabric) -> Option<RelayConfig> {
    let host = &fabric.hosts[fabric.dhcp.relay?];
    let names = fabric.switches.iter().enumerate();
    Some(RelayConfig {
        ip: host.ip?,
        mac: host.mac,
        at: (switch_id(host.switch), host.port),
        names: names.map(|(index, switch)| (switch_id(index), switch.name.clone())).collect(),
    })
}

fn node_config(fabric: &Fabric, incarnation: Incarnation, mac: MacAddr, seed: u64) -> NodeConfig {
    NodeConfig {
        incarnation,
        mac,
        keys: fabric.keys.clone(),
        seed,
        timers: fabric.timers,
        server: server(fabric),
    }
}

fn plane_config(
    fabric: &Fabric,
    (mac, dcb): (MacAddr, Option<Box<DcbConfig>>),
    ports: u16,
) -> PlaneConfig {
    let control_priority = fabric.dcb.as_ref().map_or(Priority::ZERO, |dcb| dcb.control_priority);
    let plane = PlaneConfig {
        hop_width: fabric.hop_width,
        frame_bytes_max: crate::model::frame_bytes_max(fabric),
        route_bytes_max: route_bytes_max(fabric),
        queue_bytes_max: queue(fabric),
        self_congestion_pause: fabric.self_congestion_pause,
        on_full: fabric.on_full,
        nack_bytes_max: fabric.nack_queue,
        control_priority,
        dcb,
        ..PlaneConfig::with_ports(ports, mac)
    };
    fabric.cam.apply(plane)
}

/// Returns whether routes have backups: the file wants them, and either no priority is lossless
/// or the router has an order that backups follow too. With any other router a backup could
/// close a cycle of buffers that no proof covers.
pub(crate) fn has_backups(fabric: &Fabric) -> bool {
    let router = fabric.controller.router;
    fabric.controller.backups && (router.is_ordered() || !fabric.is_lossless())
}

/// Returns the length of the longest header that a packet of this fabric needs, in bytes.
///
/// No path visits a switch twice, whatever has failed: the rest of a fabric may be one long line.
/// So a route has at most as many hops as there are switches, its hop to the host included. A probe
/// goes out and back in twice as many, with a hop to a control plane at each end. The controller
/// and the edges choose no longer ones, and no header is longer than the headroom of a frame.
fn route_bytes_max(fabric: &Fabric) -> usize {
    let hops = 2 * fabric.switches.len() + 2;
    fabric.hop_width.header_bytes(hops).min(FrameBuf::HEADROOM)
}

/// Returns the size of all buffers in the fabric: that of `links.queue`, which every wire has.
fn queue(fabric: &Fabric) -> Bytes {
    fabric.controller.wire.queue
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_node_has_its_own_identity_and_address() {
        let fabric = crate::samples::sample("torus: { rows: 15, cols: 20, hosts_per_switch: 2 }");
        let mut ids = BTreeSet::from([CONTROLLER_ID]);
        let mut macs = BTreeSet::from([SERVER_MAC, CONTROLLER_MAC]);
        for index in 0..300 {
            let config = switch_config(&fabric, index, 1, 7);
            assert!(ids.insert(config.control.edge.node.incarnation.node));
            assert!(macs.insert(config.control.edge.node.mac));
        }
        for host in &fabric.hosts {
            assert!(macs.insert(host.mac) && host.mac.is_unicast());
        }
    }

    #[test]
    fn a_header_holds_the_longest_route_of_its_fabric_and_not_more_than_its_headroom() {
        let hops_max = |topology: &str, width: u8| {
            let text = format!("name: a\nhop_width: {width}\ntopology: {{{topology}}}");
            let fabric = crate::parse("a.yaml".as_ref(), &text).unwrap();
            switch_config(&fabric, 0, 1, 7).plane.hops_max()
        };
        // The bytes of a header are whole hops; hops of 4 bits come in pairs.
        for width in [4, 8, 16] {
            let ring = hops_max("ring: {switches: 3}", width);
            assert!((8..=9).contains(&ring), "each of them, twice");
        }
        let line = hops_max("line: {switches: 12}", 8);
        assert!((26..=27).contains(&line), "{line}: to the other end and back");
        assert_eq!(hops_max("fat_tree: {k: 8}", 8), 122, "80 switches: the headroom is the bound");
    }

    #[test]
    fn what_the_file_says_reaches_the_nodes() {
        let text = "name: a\ntopology: {ring: {switches: 3}}\nmtu: 9000\nhop_width: 16\n\
                    links: {queue: 64KiB, on_full: nack, nack_queue: 8KiB}\n\
                    timers: {heartbeat: 20ms}\ndhcp: {subnet: 10.1.0.0/24}";
        let fabric = crate::parse("a.yaml".as_ref(), text).unwrap();
        let switch = switch_config(&fabric, 1, 5, 7);
        assert_eq!((switch.plane.frame_bytes_max, switch.plane.ports), (9014, 3));
        assert_eq!(switch.plane.queue_bytes_max, Bytes(64 << 10));
        assert_eq!(switch.plane.on_full, axon_plane::OnFull::Nack);
        assert_eq!(switch.plane.nack_bytes_max, Bytes(8 << 10));
        assert_eq!(switch.control.edge.node.timers.heartbeat.as_millis(), 20);
        assert_eq!(switch.control.edge.node.incarnation.number, 5);
        let controller = controller_config(&fabric, 5, 7);
        assert_eq!(controller.control.node.server.ip.octets(), [10, 1, 0, 1]);
        assert_eq!(controller.control.dhcp.pool_last.octets(), [10, 1, 0, 254]);
        assert_eq!(controller.plane.ports, 1);
    }
}
