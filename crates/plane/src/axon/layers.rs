//! Priorities between switches that hosts see as one.
//!
//! Hosts send a lossless priority, say 3. Between switches its frames have as many priorities as
//! its routes have layers, say 3 and 4, so that each layer has its own buffers, queues and pauses,
//! and no layer's routes let buffers wait for each other in a cycle (Skeie, Lysne and Theiss, LASH,
//! IPDPS workshops 2002). A frame gets the priority of its route's layer when its route is
//! prepended, and keeps it up to the last switch; its VLAN tag stays as the host sent it. At host
//! ports all layers are the hosts' one priority again: received frames are counted, and their
//! sender paused, as that priority, and transmitted frames wait in its class, which the host can
//! pause.

use axon_wire::Layer;
use axon_wire::priority::{PRIORITIES, Priority};

/// Priority of a frame on each layer, by its priority at hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers([[Priority; PRIORITIES]; PRIORITIES]);

impl Layers {
    /// Identity mapping: no priority has layers.
    pub(crate) const NONE: Layers = {
        let mut table = [[Priority::ZERO; PRIORITIES]; PRIORITIES];
        let mut index = 0;
        while index < PRIORITIES {
            table[index] = [Priority::ALL[index]; PRIORITIES];
            index += 1;
        }
        Layers(table)
    };

    /// Returns the layers of groups of priorities. Hosts see each group as its first priority; the
    /// others are those of its layers from 1 on. Layers beyond the size of a group use its last
    /// priority.
    pub fn of<'a>(groups: impl IntoIterator<Item = &'a [Priority]>) -> Layers {
        let mut layers = Layers::NONE;
        for group in groups {
            let mut on_layer = [Priority::ZERO; PRIORITIES];
            for (layer, priority) in on_layer.iter_mut().enumerate() {
                let last = group.len().saturating_sub(1);
                *priority = group.get(layer.min(last)).copied().unwrap_or_default();
            }
            group.iter().for_each(|priority| layers.0[priority.index()] = on_layer);
        }
        layers
    }

    /// Returns the priority between switches of a frame that its host sent with `priority` and
    /// whose route is on `layer`.
    #[inline]
    pub(crate) const fn on(&self, priority: Priority, layer: Layer) -> Priority {
        self.0[priority.index()][layer.index()]
    }

    /// Returns the priority at hosts of a priority between switches.
    #[inline]
    pub(crate) const fn at_hosts(&self, priority: Priority) -> Priority {
        self.on(priority, Layer::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_one_priority_at_hosts_and_one_for_each_layer_between_switches() {
        let all = Priority::ALL;
        let layers = Layers::of([&[all[3], all[5]][..], &[all[6], all[1]]]);
        let on =
            |priority: usize, layer| layers.on(all[priority], Layer::new(layer).unwrap()).value();
        assert_eq!([on(3, 0), on(3, 1), on(5, 0), on(5, 1)], [3, 5, 3, 5]);
        assert_eq!([on(6, 0), on(6, 1), on(1, 1), on(6, 7)], [6, 1, 1, 1]);
        assert_eq!([on(2, 0), on(2, 1)], [2, 2], "others have no layers");
        assert_eq!(layers.at_hosts(all[1]), all[6]);
    }
}
