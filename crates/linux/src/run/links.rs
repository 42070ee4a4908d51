//! Follows the carrier of the ports of a run loop.

use super::{RETRY, Runtime};
use crate::inspect::Inspect;
use crate::kernel::NodeQueues;
use crate::link_watch::LinkEvent;
use axon_node::Input;
use axon_wire::PortNo;

impl<N: Inspect> Runtime<N> {
    pub(super) fn follow_links(&mut self) {
        let mut events = Vec::new();
        let complete = self.watch.read(&mut events);
        for LinkEvent { device, up } in events {
            match self.slots.iter().position(|slot| slot.setup.device == device) {
                Some(index) => self.set_link(index, up),
                None if up => {}
                None => self.raise_queues(),
            }
        }
        if !complete {
            self.look_at_all_links();
        }
    }

    /// Handles agents that have been attached or have gone.
    pub(super) fn follow_agents(&mut self) {
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            if slot.has_own_carrier() && slot.carrier() != slot.up {
                let up = !slot.up;
                self.set_link(index, up);
            }
        }
    }

    /// Opens ports that have carrier and could not be opened before.
    pub(super) fn retry_ports(&mut self) {
        let now = self.clock.now();
        if now.since(self.retried) < RETRY {
            return;
        }
        self.retried = now;
        for index in 0..self.slots.len() {
            if !self.slots[index].failed {
                continue;
            }
            self.slots[index].open_tap();
            // rtnetlink will report a later loss of carrier.
            if self.slots[index].carrier() {
                self.set_link(index, true);
            }
        }
    }

    pub(super) fn look_at_all_links(&mut self) {
        for index in 0..self.slots.len() {
            // A TAP device does not exist until its port is opened.
            self.slots[index].open_tap();
            let up = self.slots[index].carrier();
            self.set_link(index, up);
        }
        self.raise_queues();
    }

    /// Sets the node's queue devices up again if something else has set them down.
    fn raise_queues(&self) {
        let kernel = self.kernel.as_ref().map(|kernel| kernel.borrow());
        kernel.iter().filter_map(|kernel| kernel.queues()).for_each(NodeQueues::raise);
    }

    pub(super) fn set_link(&mut self, index: usize, up: bool) {
        let slot = &mut self.slots[index];
        if slot.set_up(up) {
            let up = slot.up;
            let port = PortNo(index as u16);
            let named = (port, slot.setup.device.as_str());
            let now = self.clock.now();
            self.notes.carrier(now, &self.name, named, up);
            self.feed(now, Input::Link { port, up });
        }
    }
}
