//! LLDP and DCBX at all ports of a node: what it is told, and what comes of it at each port.

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

/// What a node is told that speaks LLDP and DCBX at its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcbxNodeConfig {
    /// Its name, from which follow those of its ports: `s1`, `s1-p0`. At most 240 bytes of it are
    /// told.
    pub system_name: String,
    /// Timers and bounds.
    pub lldp: LldpConfig,
    /// What each port says and heeds.
    pub dcbx: DcbxConfig,
    /// By port, how it defends the congestion notification domain; as `dcbx` says where the list
    /// ends.
    pub defences: Vec<DefenceConfig>,
}

/// The longest name that is told, in bytes: with a port's number behind it still an ID.
pub const NAME_BYTES_MAX: usize = 240;

/// As much of a name as is told.
pub(crate) fn told(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}

/// The port of this name, as long as an ID at most, without carrier. Frames come from `mac`, and
/// `system` is the node that they tell of.
pub(crate) fn port(
    (mac, system, name): (MacAddr, &str, &str),
    lldp: LldpConfig,
    dcbx: DcbxConfig,
) -> DcbPort {
    let (chassis, port) = (Id::chassis_of_mac(mac), Id::port_of_name(name));
    let system = Tlv { kind: kind::SYSTEM_NAME, value: told(system).as_bytes().to_vec() };
    let agent = LldpAgent::new(lldp, LldpIdentity { mac, chassis, port });
    DcbPort::new(agent, dcbx, Vec::from([system]))
}

/// What a port asks of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortWish {
    /// Send this frame, untagged, ahead of data.
    Send(Vec<u8>),
    /// Classes are to take turns like this; by its own configuration if the source is local.
    Classes(Ets, Source),
    /// These priorities have PFC.
    Pfc(PrioritySet),
    /// The congestion notification domain is defended like this, by priority.
    Defence([Treatment; PRIORITIES]),
    /// Something begins to be wrong.
    Note(DcbxNote),
}

/// All ports.
#[derive(Clone, Debug)]
pub struct DcbPorts {
    ports: Vec<Port>,
    /// When something is due.
    next: Option<Time>,
    events: Vec<DcbEvent>,
}

#[derive(Clone, Debug)]
struct Port {
    port: DcbPort,
    /// What its data plane was last set to, and is set to at first.
    in_force: (Ets, Source, PrioritySet, Option<[Treatment; PRIORITIES]>),
}

impl DcbPorts {
    /// Ports without carrier, of a node with this address.
    pub fn new(config: &DcbxNodeConfig, mac: MacAddr, ports: u16) -> DcbPorts {
        let system = &config.system_name;
        let with_number = |number: u16| {
            let name = format!("{}-p{number}", told(system));
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

    /// One of them: what it says, what it hears, what is in force.
    pub fn port(&self, port: PortNo) -> Option<&DcbPort> {
        self.ports.get(port.index()).map(|port| &port.port)
    }

    /// What `port` is set to, where that differs from its configuration: classes, priorities with
    /// PFC, defence of the congestion notification domain.
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

    /// The carrier of a port has come or gone.
    pub fn link(&mut self, now: Time, port: PortNo, up: bool, out: &mut Vec<(PortNo, PortWish)>) {
        if let Some(state) = self.ports.get_mut(port.index()) {
            state.port.link(now, up, &mut self.events);
            self.pass_on(port, out);
        }
    }

    /// A frame with LLDP's EtherType has come; says whether it was one to read.
    pub fn receive(
        &mut self,
        now: Time,
        port: PortNo,
        frame: &[u8],
        out: &mut Vec<(PortNo, PortWish)>,
    ) -> bool {
        let Some(state) = self.ports.get_mut(port.index()) else { return false };
        let before = state.port.agent().counters().received;
        state.port.receive(now, frame, &mut self.events);
        let read = state.port.agent().counters().received > before;
        self.pass_on(port, out);
        read
    }

    /// Does what is due. Early and repeated calls are harmless.
    pub fn timeout(&mut self, now: Time, out: &mut Vec<(PortNo, PortWish)>) {
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

    /// When to call [`DcbPorts::timeout`] next.
    pub const fn deadline(&self) -> Option<Time> {
        self.next
    }

    /// What has come out of a port is its node's to do; of what is in force, what the plane has
    /// not been told.
    fn pass_on(&mut self, port: PortNo, out: &mut Vec<(PortNo, PortWish)>) {
        let Port { port: state, in_force } = &mut self.ports[port.index()];
        let treatments = state.treatments();
        if let Some(defence) = treatments.filter(|_| treatments != in_force.3) {
            out.push((port, PortWish::Defence(defence)));
        }
        for event in self.events.drain(..) {
            match event {
                DcbEvent::Send(frame) => out.push((port, PortWish::Send(frame))),
                DcbEvent::Note(note) => out.push((port, PortWish::Note(note))),
                DcbEvent::Operational => {}
            }
        }
        let Operational { ets, ets_from, pfc, .. } = *state.operational();
        if (ets, ets_from) != (in_force.0, in_force.1) {
            out.push((port, PortWish::Classes(ets, ets_from)));
        }
        if pfc != in_force.2 {
            out.push((port, PortWish::Pfc(pfc)));
        }
        *in_force = (ets, ets_from, pfc, treatments);
        self.next = self.ports.iter().filter_map(|port| port.port.deadline()).min();
    }
}
