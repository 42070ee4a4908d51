//! Priorities that hosts know as one.
//!
//! In plain English: hosts send a lossless priority, say 3. Between switches its frames have as
//! many priorities as its routes have layers, say 3 and 4, so that each layer has buffers, queues
//! and pauses of its own, and no layer's routes let buffers wait for each other in a cycle (Skeie,
//! Lysne and Theiss, LASH, IPDPS workshops 2002). A frame gets the priority of its route's layer
//! where its route is put before it, and keeps it as far as the last switch; its VLAN tag stays as
//! the host sent it. At a port with hosts all of them are the hosts' one priority again: what comes
//! in there is counted, and its sender paused, as that one, and what goes out there waits in that
//! one's class, which the host can pause.

use axon_wire::Layer;
use axon_wire::priority::{PRIORITIES, Priority};

/// Which priority a frame has on each layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers([[Priority; PRIORITIES]; PRIORITIES]);

impl Layers {
    /// No priority has layers: each stays what it is.
    pub const NONE: Layers = {
        let mut table = [[Priority::ZERO; PRIORITIES]; PRIORITIES];
        let mut index = 0;
        while index < PRIORITIES {
            table[index] = [Priority::ALL[index]; PRIORITIES];
            index += 1;
        }
        Layers(table)
    };

    /// Groups of priorities that hosts know as the first of each; the others are those of its
    /// layers from 1 on. A layer that a group does not have is its last.
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

    /// The priority that a frame has between switches, if its host sent it with `priority` and its
    /// route is on `layer`.
    #[inline]
    pub const fn on(&self, priority: Priority, layer: Layer) -> Priority {
        self.0[priority.index()][layer.index()]
    }

    /// What hosts know a priority as.
    #[inline]
    pub const fn at_hosts(&self, priority: Priority) -> Priority {
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
