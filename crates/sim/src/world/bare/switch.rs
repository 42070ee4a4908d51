//! A switch's data plane without a control plane, and its observation.

use super::plan::{Event, MAC, OVERHEAD_BYTES, Plan};
use axon_node::{Action, Awaited, Drop, Input, Node, PortKind, Shortcuts};
use axon_plane::dcb::DcbConfig;
use axon_plane::{Plane, PlaneConfig};
use axon_wire::mac_control::{MacControl, Quanta};
use axon_wire::priority::PrioritySet;
use axon_wire::{FrameBuf, PortNo, Time};
use std::sync::mpsc;

pub(super) struct Switch {
    index: usize,
    plane: Plane,
    /// Source at each port.
    sources: Vec<Option<usize>>,
    /// Priorities for which each port has sent XOFF to its peer.
    paused: Vec<PrioritySet>,
    queued_bytes_max: u64,
    log: mpsc::Sender<Event>,
}

impl Switch {
    pub(super) fn new(
        index: usize,
        plan: &Plan,
        dcb: DcbConfig,
        log: mpsc::Sender<Event>,
    ) -> Switch {
        let ports = dcb.rates.len() as u16;
        let mut config = PlaneConfig::with_ports(ports, dcb.mac);
        config.dcb = Some(Box::new(dcb));
        let mut plane = Plane::new(config);
        (0..ports).for_each(|port| plane.set_kind(PortNo(port), PortKind::Axon));
        let source = |port| plan.sources.iter().position(|source| source.at == (index, port));
        let sources = (0..ports).map(PortNo).map(source).collect();
        let paused = vec![PrioritySet::EMPTY; usize::from(ports)];
        Switch { index, plane, sources, paused, queued_bytes_max: 0, log }
    }

    fn record(&self, event: Event) {
        // The receiver is gone once the world has ended.
        let _ = self.log.send(event);
    }

    /// Records the observations of the last actions.
    fn note(&mut self, now: Time, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Dropped { reason, .. } if *reason != Drop::MacControl => {
                    self.record(Event::Lost(*reason));
                }
                Action::Transmit { port, frame, .. } => self.note_xoff(now, *port, frame),
                _ => {}
            }
        }
        let ports = (0..self.plane.config().ports).map(PortNo);
        let queued = ports.map(|port| self.plane.ports().queues().bytes(port).0).max().unwrap_or(0);
        if queued > self.queued_bytes_max {
            self.queued_bytes_max = queued;
            self.record(Event::Queued(self.index, queued));
        }
    }

    fn note_xoff(&mut self, now: Time, port: PortNo, frame: &FrameBuf) {
        let Ok(MacControl::Pfc(pfc)) = MacControl::parse(frame.bytes(), MAC) else { return };
        let before = self.paused[port.index()];
        let is_xoff = |priority| pfc.time(priority) != Some(Quanta::ZERO);
        for priority in pfc.enabled.iter() {
            let paused = &mut self.paused[port.index()];
            if is_xoff(priority) { paused.insert(priority) } else { paused.remove(priority) }
        }
        if !self.paused[port.index()].difference(before).is_empty() {
            self.record(Event::Xoff(self.index, port, now));
        }
    }
}

impl Node for Switch {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let start = out.len();
        if let Input::Frame { port, frame, .. } = &input
            && let Some(source) = self.sources[port.index()]
        {
            let passed = (now, frame.bytes().len() as u64 + OVERHEAD_BYTES);
            self.record(Event::From(source, passed));
        }
        self.plane.handle(now, input, out);
        self.note(now, &out[start..]);
    }

    fn deadline(&self) -> Option<Time> {
        self.plane.deadline()
    }
}

impl Shortcuts for Switch {
    fn awaited(&mut self) -> Awaited {
        self.plane.awaited()
    }
}
