//! Our own switch, and around it what counts its drops and what makes it faulty.

use super::plant::{Plant, Planted};
use crate::frames;
use crate::rig::Counters;
use axon_control::node::SwitchNode;
use axon_node::{Action, Awaited, Drop, Input, Node};
use axon_plane::Plane;
use axon_wire::{Frame, FrameBuf, PortNo, Rate, Time};
use std::sync::{Arc, Mutex, PoisonError};

/// What the rig reads.
#[derive(Debug, Default)]
pub(super) struct DeviceReport {
    pub(super) counters: Counters,
}

/// The switch.
pub(super) struct Device {
    node: SwitchNode<FrameBuf, Plane<FrameBuf>>,
    planted: Option<Planted>,
    report: Arc<Mutex<DeviceReport>>,
}

impl Device {
    pub(super) fn new(
        node: SwitchNode<FrameBuf, Plane<FrameBuf>>,
        plant: Option<(Plant, Rate)>,
        report: Arc<Mutex<DeviceReport>>,
    ) -> Device {
        Device { node, planted: plant.map(|(plant, rate)| Planted::new(plant, rate)), report }
    }

    /// Counts what ended by these actions.
    fn count(&self, actions: &[Action<FrameBuf>]) {
        let dropped = actions.iter().filter_map(|action| match action {
            Action::Dropped { reason, .. } => Some(*reason),
            _ => None,
        });
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        for reason in dropped {
            match reason {
                Drop::Malformed => report.counters.malformed += 1,
                Drop::Refused => report.counters.refused += 1,
                Drop::ForgedCnm => report.counters.forged += 1,
                Drop::MacControl => report.counters.mac_control += 1,
                Drop::HeadroomFull => report.counters.lossless_dropped += 1,
                _ => {}
            }
        }
    }

    /// Reads what the switch counts by itself.
    fn read(&self) {
        let plane = self.node.plane();
        let ports = (0..plane.config().ports).map(PortNo);
        let ignored = ports.map(|port| plane.counters().port(port).pfc_ignored).sum();
        self.report.lock().unwrap_or_else(PoisonError::into_inner).counters.pfc_ignored = ignored;
    }
}

impl Node<FrameBuf> for Device {
    fn handle(&mut self, now: Time, mut input: Input<FrameBuf>, out: &mut Vec<Action<FrameBuf>>) {
        let start = out.len();
        let mut heard = false;
        if let Input::Frame { port, frame, .. } = &mut input {
            heard = frames::is_mac_control(frame.bytes());
            if let Some(planted) = &mut self.planted {
                *frame = planted.comes(now, *port, std::mem::replace(frame, FrameBuf::new(&[])));
            }
        }
        self.node.handle(now, input, out);
        self.count(&out[start..]);
        if heard {
            self.read();
        }
        let Some(planted) = &mut self.planted else { return };
        for action in &mut out[start..] {
            if let Action::Transmit { port, frame, .. } = action {
                planted.goes(*port, frame);
            }
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.node.deadline()
    }

    fn awaited(&mut self) -> Awaited {
        self.node.awaited()
    }
}
