//! Our own switch with the fault injected into it, if any.

use super::plant::{Plant, Planted};
use axon_node::{Action, Awaited, Input, Node, Shortcuts};
use axon_plane::Plane;
use axon_switch::SwitchNode;
use axon_wire::{FrameBuf, Rate, Time};

/// Switch under test.
pub(super) struct Device {
    node: SwitchNode<Plane>,
    planted: Option<Planted>,
}

impl Device {
    pub(super) fn new(node: SwitchNode<Plane>, plant: Option<(Plant, Rate)>) -> Device {
        Device { node, planted: plant.map(|(plant, rate)| Planted::new(plant, rate)) }
    }
}

impl Node for Device {
    fn handle(&mut self, now: Time, mut input: Input, out: &mut Vec<Action>) {
        let start = out.len();
        if let (Input::Frame { port, frame, .. }, Some(planted)) = (&mut input, &mut self.planted) {
            *frame = planted.comes(now, *port, std::mem::replace(frame, FrameBuf::new(&[])));
        }
        self.node.handle(now, input, out);
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
}

impl Shortcuts for Device {
    fn awaited(&mut self) -> Awaited {
        self.node.awaited()
    }
}
