//! Bytes carried by the links of a world, by class.

use crate::link::classes::ClassBytes;
use crate::link::links::LinkId;
use crate::world::World;
use axon_fabric::model::Network;

impl World {
    /// Starts to count bytes by class on all links, from zero.
    pub fn count_classes(&mut self) {
        let axon = self.fabric().network == Network::Axon;
        let (cables, controller) = (self.fabric().links.len(), self.controller_link());
        for id in (0..self.engine().links().len()).map(LinkId) {
            self.engine_mut().count_classes(id, axon && (id.0 < cables || id == controller));
        }
    }

    /// Returns the bytes that a link has carried since counting began, in both directions together.
    pub fn class_bytes(&self, link: LinkId) -> ClassBytes {
        let mut sum = ClassBytes::default();
        for side in 0..2 {
            if let Some(counted) = self.engine().class_bytes(link, side) {
                sum.add(counted);
            }
        }
        sum
    }
}
