//! What nodes tell about themselves: the JSON of `status`.

use crate::flow_control;
use crate::probe::Desk;
use crate::run::Inspect;
use axon_control::discovery::Discovery;
use axon_control::node::{ControllerNode, SwitchNode};
use axon_dcbx::agent::{AgentNode, FABRIC, HOST, Rules};
use axon_node::{Action, Awaited, Drop, Input, Node, PortCounters, PortKind, Refusal, Reply};
use axon_plane::Plane;
use axon_plane::memory::Memory;
use axon_wire::priority::Priority;
use axon_wire::{Frame, FrameBuf, PortNo, Time};
use serde_json::{Map, Value, json};

/// A switch that can be asked.
pub struct Switch {
    node: SwitchNode<FrameBuf, Plane<FrameBuf>>,
    desk: Desk,
}

impl Switch {
    /// Nobody has asked it yet.
    pub fn new(node: SwitchNode<FrameBuf, Plane<FrameBuf>>) -> Switch {
        Switch { node, desk: Desk::default() }
    }
}

/// A controller that can be asked.
pub struct Controller {
    node: ControllerNode<FrameBuf, Plane<FrameBuf>>,
}

impl Controller {
    /// Nobody has asked it yet.
    pub fn new(node: ControllerNode<FrameBuf, Plane<FrameBuf>>) -> Controller {
        Controller { node }
    }
}

/// An agent at a host's edge that can be asked.
pub struct Agent {
    node: AgentNode<FrameBuf>,
}

impl Agent {
    /// Nobody has asked it yet.
    pub fn new(node: AgentNode<FrameBuf>) -> Agent {
        Agent { node }
    }
}

macro_rules! is_a_node {
    ($name:ident) => {
        impl Node<FrameBuf> for $name {
            fn handle(
                &mut self,
                now: Time,
                input: Input<FrameBuf>,
                out: &mut Vec<Action<FrameBuf>>,
            ) {
                self.node.handle(now, input, out);
            }

            fn deadline(&self) -> Option<Time> {
                self.node.deadline()
            }

            fn awaited(&mut self) -> Awaited {
                self.node.awaited()
            }
        }
    };
}

is_a_node!(Switch);
is_a_node!(Controller);
is_a_node!(Agent);

impl Inspect for Switch {
    fn replied(&mut self, reply: &Reply) {
        self.desk.replied(reply);
    }

    fn port_kind(&self, port: PortNo) -> PortKind {
        self.node.discovery().kind(port)
    }

    fn has_queue(&self, port: PortNo) -> bool {
        self.node.plane().queued_frames(port) > 0
    }

    fn status(&self, now: Time) -> Value {
        let node = &self.node;
        let hosts = node.edge().hosts().map(|(mac, host)| {
            let ip = host.ip.map(|ip| ip.to_string());
            json!({ "mac": mac.to_string(), "port": host.port.0, "ip": ip })
        });
        let routes = node.edge().flows().map(|(port, destination, flow)| {
            json!({
                "port": port.0,
                "destination": destination.to_string(),
                "hops": flow.route.hops.to_string(),
                "placed": flow.is_placed(),
            })
        });
        let path = node.uplink().path().map(|path| path.hops.to_string());
        let edge = node.edge().counters();
        let ports = (0..node.plane().config().ports).map(PortNo);
        let dcbx = ports.filter_map(|port| Some(crate::dcbx::status(port, node.dcbx(port)?)));
        json!({
            "role": "switch",
            "id": node.incarnation().node.to_string(),
            "controller_path": path,
            "neighbours": neighbours(node.discovery()),
            "dcbx": dcbx.collect::<Vec<_>>(),
            "hosts": hosts.collect::<Vec<_>>(),
            "routes": routes.collect::<Vec<_>>(),
            "waiting_bytes": node.waiting_bytes(),
            "unacknowledged": node.unacknowledged(),
            "plane": plane(node.plane(), now),
            "probes": self.desk.status(node),
            "refusals": refusals(|refusal| node.refusals().of(refusal)),
            "edge": {
                "hosts_refused": edge.hosts_refused,
                "hosts_moved": edge.hosts_moved,
                "hosts_lost": edge.hosts_lost,
                "arp_cached": edge.arp_cached,
                "setups_begun": edge.setups_begun,
                "setups_done": edge.setups_done,
                "setups_failed": edge.setups_failed,
                "setups_refused": edge.setups_refused,
                "slow_path": edge.slow_path,
            },
        })
    }
}

impl Inspect for Agent {
    fn port_kind(&self, _: PortNo) -> PortKind {
        PortKind::Host
    }

    fn has_queue(&self, port: PortNo) -> bool {
        self.node.ports().queued_frames(port) > 0
    }

    fn rules(&self, port: PortNo) -> Option<&Rules> {
        (port == HOST).then(|| self.node.rules())
    }

    fn status(&self, now: Time) -> Value {
        let node = &self.node;
        let rates = Priority::ALL.into_iter().filter_map(|priority| {
            let rate = node.limiter(priority)?.point().rate().bits_per_second();
            Some((priority.to_string(), rate.into()))
        });
        let rates: Map<String, Value> = rates.collect();
        let pfc = node.ports().pfc(FABRIC);
        let dcbx = node.neighbour().map(|port| crate::dcbx::status(FABRIC, port));
        json!({
            "role": "agent",
            "pfc": pfc.to_string(),
            "pause": pfc.is_empty(),
            "rules": node.rules().to_string(),
            "cnms": Priority::ALL.map(|priority| node.cnms(priority)),
            "rates_bps": rates,
            "dcbx": dcbx.into_iter().collect::<Vec<_>>(),
            "host": flow_control::status(node.ports(), now, HOST),
            "fabric": flow_control::status(node.ports(), now, FABRIC),
            "drops": drops(&node.ports().counters().total()),
        })
    }
}

impl Inspect for Controller {
    fn port_kind(&self, port: PortNo) -> PortKind {
        self.node.discovery().kind(port)
    }

    fn has_queue(&self, port: PortNo) -> bool {
        self.node.plane().queued_frames(port) > 0
    }

    fn status(&self, now: Time) -> Value {
        let node = &self.node;
        let controller = node.controller();
        let graph = controller.graph();
        let hosts = controller.hosts().iter().map(|(_, host)| {
            let place = host.place();
            let ips: Vec<String> = host.ips.iter().map(ToString::to_string).collect();
            json!({
                "mac": host.mac.to_string(),
                "switch": graph.switch(place.switch).incarnation.node.to_string(),
                "port": place.port.0,
                "ips": ips,
            })
        });
        let counters = controller.counters();
        let dhcp = controller.dhcp().counters();
        json!({
            "role": "controller",
            "id": node.incarnation().node.to_string(),
            "neighbours": neighbours(node.discovery()),
            "switches": graph.len(),
            "hosts": hosts.collect::<Vec<_>>(),
            "routes": controller.flows().len(),
            "unacknowledged": node.unacknowledged(),
            "plane": plane(node.plane(), now),
            "refusals": refusals(|refusal| node.refusals().of(refusal)),
            "counters": {
                "arp_answered": counters.arp_answered,
                "arp_unknown_target": counters.arp_unknown_target,
                "arp_unreachable": counters.arp_unreachable,
                "arp_misplaced": counters.arp_misplaced,
                "routes_moved": counters.routes_moved,
                "routes_removed": counters.routes_removed,
                "stale_incarnation": counters.stale_incarnation,
            },
            "dhcp": {
                "offers": dhcp.offers,
                "acks": dhcp.acks,
                "naks": dhcp.naks,
                "exhausted": dhcp.exhausted,
                "malformed": dhcp.malformed,
            },
        })
    }
}

fn neighbours(discovery: &Discovery) -> Vec<Value> {
    let neighbours = discovery.neighbours().map(|(port, neighbour)| {
        json!({
            "port": port.0,
            "node": neighbour.incarnation.node.to_string(),
            "their_port": neighbour.port.0,
        })
    });
    neighbours.collect()
}

/// Totals, drops by reason over the whole node, and what waits at each port. Reasons that
/// never occurred are left out.
fn plane<B: Frame>(plane: &Plane<B>, now: Time) -> Value {
    let total = plane.counters().total();
    let numbers = 0..plane.config().ports;
    let queued: Vec<u64> = numbers.clone().map(|port| plane.queued_bytes(PortNo(port)).0).collect();
    let table: Vec<usize> = numbers.clone().map(|port| plane.tables().len(PortNo(port))).collect();
    let ports = plane.ports();
    let flow_control: Option<Vec<Value>> = plane
        .config()
        .dcb
        .is_some()
        .then(|| numbers.map(|port| flow_control::status(ports, now, PortNo(port))).collect());
    json!({
        "rx_frames": total.rx_frames,
        "tx_frames": total.tx_frames,
        "drops": drops(&total),
        "queued_bytes": queued,
        "memory": ports.memory().map(|memory| json!({
            "lossless": pool(memory, true),
            "lossy": pool(memory, false),
        })),
        "table_entries": table,
        "flow_control": flow_control,
    })
}

/// What a pool of the shared memory holds, and the most that it has held.
fn pool(memory: &Memory, lossless: bool) -> Value {
    let (used, peak) = memory.pool(lossless);
    json!({ "used_bytes": used.0, "peak_bytes": peak.0 })
}

fn drops(counted: &PortCounters) -> Map<String, Value> {
    let counts = Drop::ALL.iter().map(|reason| (reason.name(), counted.dropped(*reason)));
    let counts = counts.filter(|(_, count)| *count > 0);
    counts.map(|(name, count)| (name.to_owned(), count.into())).collect()
}

fn refusals(of: impl Fn(Refusal) -> u64) -> Map<String, Value> {
    let counts = Refusal::ALL.iter().map(|refusal| (refusal.name().to_owned(), of(*refusal)));
    counts.filter(|(_, count)| *count > 0).map(|(name, count)| (name, count.into())).collect()
}
