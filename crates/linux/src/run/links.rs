//! Follows the carrier of the ports of a run loop.

use super::Runtime;
use crate::inspect::Inspect;
use crate::kernel::NodeQueues;
use crate::link_watch::LinkEvent;
use axon_node::Input;
use axon_wire::PortNo;

impl<N: Inspect> Runtime<N> {
    pub(super) fn follow_links(&mut self) {
        let mut events = Vec::new();
        let complete = self.events.links(&mut events);
        for LinkEvent { device, up } in events {
            match self.ports.all().iter().position(|port| port.device() == device) {
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
        for index in 0..self.ports.count() {
            let device = self.ports.device_mut(index);
            if device.has_own_carrier() && device.carrier() != device.is_up() {
                let up = !device.is_up();
                self.set_link(index, up);
            }
        }
    }

    /// Opens ports that have carrier and could not be opened before.
    pub(super) fn retry_ports(&mut self) {
        if !self.ports.retry(self.clock.now()) {
            return;
        }
        for index in 0..self.ports.count() {
            let device = self.ports.device_mut(index);
            if !device.has_failed() {
                continue;
            }
            device.open_tap();
            // rtnetlink will report a later loss of carrier.
            if device.carrier() {
                self.set_link(index, true);
            }
        }
    }

    pub(super) fn look_at_all_links(&mut self) {
        for index in 0..self.ports.count() {
            // A TAP device does not exist until its port is opened.
            let device = self.ports.device_mut(index);
            device.open_tap();
            let up = device.carrier();
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
        let device = self.ports.device_mut(index);
        if device.set_up(up) {
            let up = device.is_up();
            let port = PortNo(index as u16);
            let named = (port, device.device());
            let now = self.clock.now();
            self.notes.carrier(now, &self.name, named, up);
            self.feed(now, Input::Link { port, up });
        }
    }
}
