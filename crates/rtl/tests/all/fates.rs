//! A data plane under test, and what becomes of the frames that it gets.

use crate::needs;
use axon_node::{Action, Dataplane, Drop, Input, PortKind, Punt};
use axon_plane::{PlaneConfig, PuntLimit};
use axon_rtl::{Model, ModelError, RtlDataplane};
use axon_wire::{FrameBuf, HopWidth, MacAddr, PortNo, Span, Time};
use std::collections::BTreeMap;
use std::fmt;

pub const WIDTHS: [HopWidth; 3] = [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen];
pub const PORTS: u16 = 4;
/// Masqueraded addresses of a port.
pub const MASQUERADED: usize = 8;
/// Shortest frame on a wire, in bytes without FCS.
pub const FRAME_BYTES_MIN: usize = 60;

/// Returns the configuration of both data planes: no limit on punts ends a frame. With one hop
/// width address resolution ends at the control plane.
pub fn config(hop_width: HopWidth) -> PlaneConfig {
    let many = PuntLimit { frames_per_second: u32::MAX, burst: u32::MAX };
    PlaneConfig {
        hop_width,
        punt: many,
        addressed: many,
        routes_per_port_max: 32 - MASQUERADED,
        masqueraded_per_port_max: MASQUERADED,
        punts_resolution: hop_width == HopWidth::Sixteen,
        ..PlaneConfig::with_ports(PORTS, MacAddr([2; 6]))
    }
}

/// Returns a device; `None` if its shared library is missing, which a line says.
pub fn model(width: HopWidth) -> Option<Model> {
    match Model::load(width) {
        Ok(model) => Some(model),
        Err(error @ ModelError::Missing { .. }) => {
            needs::skip(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the data plane in gates; `None` if its shared library is missing, which a line says.
pub fn gates(width: HopWidth) -> Option<RtlDataplane> {
    let plane = RtlDataplane::with_model(model(width)?, config(width));
    Some(plane.expect("the registers are of this version"))
}

/// A frame that has left a data plane.
#[derive(Clone, PartialEq, Eq)]
pub enum Fate {
    /// By a port, with its padding.
    Sent { port: PortNo, frame: Vec<u8>, intact: bool },
    /// To the control plane.
    Punted { ingress: PortNo, punt: Punt, header_bytes: u16, frame: Vec<u8> },
}

impl Fate {
    /// Returns the port by which a frame has left; `None` for the control plane.
    pub fn output(&self) -> Option<PortNo> {
        match self {
            Fate::Sent { port, .. } => Some(*port),
            Fate::Punted { .. } => None,
        }
    }
}

impl fmt::Debug for Fate {
    /// Writes the beginning of the frame only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fate::Sent { frame, .. } | Fate::Punted { frame, .. }) = self;
        match self {
            Fate::Sent { port, intact, .. } => write!(f, "by {port} (intact: {intact}) ")?,
            Fate::Punted { ingress, punt, .. } => write!(f, "{} of {ingress} ", punt.name())?,
        }
        let hex: String = frame.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
        write!(f, "{hex}, {} bytes", frame.len())
    }
}

/// A frame on a wire: the delay after which it comes, its port, and whether its FCS is correct.
pub type Received = (Span, PortNo, Vec<u8>, bool);

/// A data plane with its time. Wires take every frame at once.
pub struct Tested<D> {
    pub plane: D,
    pub now: Time,
    /// True if the end of a bad frame comes after the frame may have begun to leave.
    pub cuts_through: bool,
    /// Bytes of padding of the frames sent by each port.
    padding: [u64; PORTS as usize],
}

impl<D: Dataplane> Tested<D> {
    pub fn new(plane: D) -> Tested<D> {
        Tested { plane, now: Time::ZERO, cuts_through: false, padding: [0; PORTS as usize] }
    }

    /// Handles one input, and then every `TxDone`.
    pub fn handle(&mut self, input: Input) -> Vec<Fate> {
        let mut out = Vec::new();
        self.plane.handle(self.now, input, &mut out);
        self.fates(out)
    }

    /// Sets the kinds of all ports, and their carriers.
    pub fn set_ports(&mut self, kinds: &[PortKind], is_up: impl Fn(PortNo) -> bool) {
        for port in (0..PORTS).map(PortNo) {
            let kind = kinds.get(port.index()).copied().unwrap_or_default();
            let setting = axon_node::PortSetting::Kind(kind);
            let set = self.plane.set_port(self.now, port, setting, &mut Vec::new());
            set.expect("every data plane has kinds of ports");
            let up = is_up(port);
            if self.plane.is_up(port) != up {
                self.handle(Input::Link { port, up });
            }
        }
        self.rest();
    }

    /// Receives frames, each after a delay, and returns the fates of all.
    pub fn receive(&mut self, frames: &[Received]) -> Vec<Fate> {
        let (start, mut fates) = (self.now, Vec::new());
        for (after, port, frame, intact) in frames {
            fates.extend(self.run_until(start + *after));
            let (port, intact) = (*port, *intact);
            let is_late = self.cuts_through && !intact;
            let end = Span::from_nanos(if is_late { 8 * frame.len() as u64 } else { 0 });
            let (complete_at, frame) = (self.now + end, FrameBuf::new(frame));
            fates.extend(self.handle(Input::Frame { port, frame, complete_at, intact }));
        }
        fates.extend(self.rest());
        fates
    }

    /// Handles deadlines until there is none.
    pub fn rest(&mut self) -> Vec<Fate> {
        let mut fates = Vec::new();
        while let Some(at) = self.plane.deadline() {
            self.now = self.now.max(at);
            fates.extend(self.handle(Input::Timeout));
        }
        fates
    }

    fn run_until(&mut self, time: Time) -> Vec<Fate> {
        let mut fates = Vec::new();
        while let Some(at) = self.plane.deadline().filter(|&at| at < time) {
            self.now = self.now.max(at);
            fates.extend(self.handle(Input::Timeout));
        }
        self.now = self.now.max(time);
        fates
    }

    pub fn fates(&mut self, mut out: Vec<Action>) -> Vec<Fate> {
        let mut fates = Vec::new();
        while !out.is_empty() {
            for action in std::mem::take(&mut out) {
                match action {
                    Action::Transmit { port, frame, intact, .. } => {
                        let mut frame = frame.bytes().to_vec();
                        let padding = FRAME_BYTES_MIN.saturating_sub(frame.len());
                        self.padding[port.index()] += padding as u64;
                        frame.resize(frame.len() + padding, 0);
                        fates.push(Fate::Sent { port, frame, intact });
                        self.plane.handle(self.now, Input::TxDone { port }, &mut out);
                    }
                    Action::Punt { ingress, frame, punt, header_bytes } => {
                        let frame = frame.bytes().to_vec();
                        fates.push(Fate::Punted { ingress, punt, header_bytes, frame });
                    }
                    Action::Dropped { .. } => {}
                    other => panic!("unexpected: {other:?}"),
                }
            }
        }
        fates
    }
}

/// Counters that are not zero, by port and name.
pub type Counted = BTreeMap<(u16, &'static str), u64>;

/// Returns the counters of a data plane. Bytes sent have padding, whether the data plane pads
/// frames or not.
pub fn counted<D: Dataplane>(tested: &Tested<D>) -> Counted {
    let (mut all, counters) = (BTreeMap::new(), tested.plane.counters());
    for port in (0..PORTS).map(PortNo).chain([PortNo::CONTROL]) {
        let of = counters.port(port);
        let mut add = |name, count| all.insert((port.0, name), count);
        add("rx_frames", of.rx_frames);
        add("rx_bytes", of.rx_bytes);
        add("tx_frames", of.tx_frames);
        let padding = tested.padding.get(port.index()).copied().unwrap_or_default();
        add("tx_bytes", of.tx_bytes + padding);
        for &reason in Drop::ALL {
            add(reason.name(), of.dropped(reason));
        }
        for &punt in Punt::ALL {
            add(punt.name(), of.punted(punt));
        }
    }
    all.retain(|_, count| *count > 0);
    all
}

/// Returns the counters that have changed, and by how much.
pub fn since(after: &Counted, before: &Counted) -> Counted {
    let change = |(&key, &count): (&(u16, &'static str), &u64)| {
        (key, count - before.get(&key).copied().unwrap_or_default())
    };
    after.iter().map(change).filter(|(_, change)| *change > 0).collect()
}
