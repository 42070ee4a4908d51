//! LLDP and DCBX on all ports of a node: their configuration, and requests to the data plane.

use super::{DcbEvent, DcbPort, DcbxConfig, DcbxNote, Operational, Source};
use crate::lldp::{LldpAgent, LldpConfig, LldpIdentity};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use axon_plane::qcn::{DefenceConfig, Treatment};
use axon_wire::dcbx::ieee::Ets;
use axon_wire::lldp::{Id, Tlv, kind};
use axon_wire::priority::PRIORITIES;
use axon_wire::{MacAddr, PortNo, PrioritySet, Time};

/// Configuration of a node that runs LLDP and DCBX on its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcbxNodeConfig {
    /// Name of the node. Names of its ports are derived from it: `s1`, `s1-p0`. At most 240 bytes
    /// are sent.
    pub system_name: String,
    /// Timers and bounds of the LLDP agents.
    pub lldp: LldpConfig,
    /// The DCBX configuration of each port.
    pub dcbx: DcbxConfig,
    /// Defence of the congestion notification domain, by port. Ports beyond the end of the list use
    /// `dcbx.congestion`.
    pub defences: Vec<DefenceConfig>,
}

/// Maximum length of a name as sent, in bytes. An LLDP ID has room for it and a port number.
pub(crate) const NAME_BYTES_MAX: usize = 240;

/// Returns the part of a name that is sent, at most `NAME_BYTES_MAX` bytes.
pub fn truncated(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}

/// Creates a port without carrier. `mac` is the source address of its frames, `system` is the name
/// of its node, and `name` is its own name, which must fit into an ID.
pub fn port(
    (mac, system, name): (MacAddr, &str, &str),
    lldp: LldpConfig,
    dcbx: DcbxConfig,
) -> DcbPort {
    let (chassis, port) = (Id::chassis_of_mac(mac), Id::port_of_name(name));
    let system = Tlv { kind: kind::SYSTEM_NAME, value: truncated(system).as_bytes().to_vec() };
    let agent = LldpAgent::new(lldp, LldpIdentity { mac, chassis, port });
    DcbPort::new(agent, dcbx, Vec::from([system]))
}

/// A request from a port to its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortRequest {
    /// Send this frame, untagged, ahead of data.
    Send(Vec<u8>),
    /// Schedule traffic classes by this table, which comes from the given end of the link.
    Classes(Ets, Source),
    /// Enable PFC for exactly these priorities.
    Pfc(PrioritySet),
    /// Treat frames as given for each priority, to defend the congestion notification domain.
    Defence([Treatment; PRIORITIES]),
    /// Report this note, which has just begun to apply.
    Note(DcbxNote),
}

/// LLDP and DCBX on all ports of a node.
#[derive(Clone, Debug)]
pub struct DcbPorts {
    ports: Vec<Port>,
    /// Time at which the next timer is due.
    next: Option<Time>,
    events: Vec<DcbEvent>,
}

#[derive(Clone, Debug)]
struct Port {
    port: DcbPort,
    /// Settings last applied to the data plane. They are initially those of its configuration.
    in_force: (Ets, Source, PrioritySet, Option<[Treatment; PRIORITIES]>),
}

impl DcbPorts {
    /// Creates the ports of a node with MAC address `mac`, without carrier.
    pub fn new(config: &DcbxNodeConfig, mac: MacAddr, ports: u16) -> DcbPorts {
        let system = &config.system_name;
        let with_number = |number: u16| {
            let name = format!("{}-p{number}", truncated(system));
            let mut dcbx = config.dcbx.clone();
            if let Some(&defence) = config.defences.get(usize::from(number)) {
                dcbx.congestion = Some(defence);
            }
            let (ets, pfc) = (dcbx.ieee.ets, dcbx.ieee.pfc);
            let port = port((mac, system, &name), config.lldp, dcbx);
            let in_force = (ets, Source::Local, pfc, port.treatments());
            Port { port, in_force }
        };
        DcbPorts { ports: (0..ports).map(with_number).collect(), next: None, events: Vec::new() }
    }

    /// Returns the state of one port, or `None` if there is no such port.
    pub fn port(&self, port: PortNo) -> Option<&DcbPort> {
        self.ports.get(port.index()).map(|port| &port.port)
    }

    /// Returns the settings in force on `port`: the ETS table if it comes from the peer, the
    /// priorities with PFC, and the defence of the congestion notification domain.
    #[allow(clippy::type_complexity, reason = "three settings, each of which may be absent")]
    pub fn in_force(
        &self,
        port: PortNo,
    ) -> (Option<Ets>, Option<PrioritySet>, Option<[Treatment; PRIORITIES]>) {
        let Some(Port { in_force: (ets, from, pfc, treatments), .. }) =
            self.ports.get(port.index())
        else {
            return (None, None, None);
        };
        ((*from == Source::Peer).then_some(*ets), Some(*pfc), *treatments)
    }

    /// Processes a carrier change on a port.
    pub fn link(
        &mut self,
        now: Time,
        port: PortNo,
        up: bool,
        out: &mut Vec<(PortNo, PortRequest)>,
    ) {
        if let Some(state) = self.ports.get_mut(port.index()) {
            state.port.link(now, up, &mut self.events);
            self.pass_on(port, out);
        }
    }

    /// Handles a frame with LLDP's EtherType. Returns whether it was a valid LLDPDU for this port.
    pub fn receive(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &[u8],
        out: &mut Vec<(PortNo, PortRequest)>,
    ) -> bool {
        let Some(state) = self.ports.get_mut(port.index()) else { return false };
        let before = state.port.agent().counters().received;
        state.port.receive(now, frame, &mut self.events);
        let read = state.port.agent().counters().received > before;
        self.pass_on(port, out);
        read
    }

    /// Processes due timers. Early and repeated calls are harmless.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<(PortNo, PortRequest)>) {
        if self.next.is_none_or(|at| at > now) {
            return;
        }
        for number in 0..self.ports.len() {
            let state = &mut self.ports[number];
            if state.port.deadline().is_some_and(|at| at <= now) {
                state.port.timeout(now, &mut self.events);
                self.pass_on(PortNo(number as u16), out);
            }
        }
    }

    /// Returns the time of the next [`DcbPorts::timeout`].
    pub const fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// Forwards a port's events and changes of its operational state to the node.
    fn pass_on(&mut self, port: PortNo, out: &mut Vec<(PortNo, PortRequest)>) {
        let Port { port: state, in_force } = &mut self.ports[port.index()];
        let treatments = state.treatments();
        if let Some(defence) = treatments.filter(|_| treatments != in_force.3) {
            out.push((port, PortRequest::Defence(defence)));
        }
        for event in self.events.drain(..) {
            match event {
                DcbEvent::Send(frame) => out.push((port, PortRequest::Send(frame))),
                DcbEvent::Note(note) => out.push((port, PortRequest::Note(note))),
                DcbEvent::Operational => {}
            }
        }
        let Operational { ets, ets_from, pfc, .. } = *state.operational();
        if (ets, ets_from) != (in_force.0, in_force.1) {
            out.push((port, PortRequest::Classes(ets, ets_from)));
        }
        if pfc != in_force.2 {
            out.push((port, PortRequest::Pfc(pfc)));
        }
        *in_force = (ets, ets_from, pfc, treatments);
        self.next = self.ports.iter().filter_map(|port| port.port.deadline()).min();
    }
}
