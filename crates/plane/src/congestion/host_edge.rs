//! A host port as the edge of the congestion notification domain, and as the place where priorities
//! are regenerated (IEEE 802.1Q clause 6.9.4).

use super::notification::{CnConfig, UNDEFENDED};
use super::qcn::{InputPriority, Treatment};
use axon_node::PortEvent;
use axon_wire::PortNo;
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::vlan;

/// Treatment of the frames of the hosts of one port.
#[derive(Clone, Debug)]
pub(crate) struct HostEdge {
    /// Treatment at the edge of the domain, by priority.
    treatments: [Treatment; PRIORITIES],
    /// Regenerated priority of a frame, by that of its tag.
    regeneration: [Priority; PRIORITIES],
}

impl HostEdge {
    /// Returns the treatment that is configured for `port`.
    pub(crate) fn new(cn: Option<&CnConfig>, port: PortNo) -> HostEdge {
        let treatments = cn.map_or([UNDEFENDED; PRIORITIES], |cn| cn.treatments[port.index()]);
        HostEdge { treatments, regeneration: Priority::ALL }
    }

    /// Sets the treatment by priority.
    pub(crate) fn set_treatments(&mut self, treatments: [Treatment; PRIORITIES]) {
        self.treatments = treatments;
    }

    /// Sets the priority regeneration table.
    pub(crate) fn set_regeneration(&mut self, table: [Priority; PRIORITIES]) {
        self.regeneration = table;
    }

    /// Returns the priority of a frame of a host from here on. If its tag has another one, the tag
    /// is rewritten; returns the events to count.
    #[inline]
    pub(crate) fn defend(&self, frame: &mut [u8]) -> (Priority, [Option<PortEvent>; 2]) {
        let tagged = vlan::priority_of(frame);
        let regenerated = self.regeneration[tagged.index()];
        let (priority, moved) = match self.treatments[regenerated.index()].input {
            InputPriority::Moved(to) => (to, Some(PortEvent::CnMoved)),
            InputPriority::Kept | InputPriority::Regenerated => (regenerated, None),
        };
        let is_other = regenerated != tagged;
        if is_other || moved.is_some() {
            vlan::set_priority(frame, priority);
        }
        (priority, [is_other.then_some(PortEvent::Regenerated), moved])
    }

    /// Returns whether frames of `priority` to the hosts lose their CN-TAGs.
    #[inline]
    pub(crate) fn strips_tag(&self, priority: Priority) -> bool {
        self.treatments[priority.index()].strip_tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::priority::PrioritySet;

    #[test]
    fn a_priority_is_regenerated_first_and_then_moved_out_of_the_domain() {
        let [zero, _, two, three, ..] = Priority::ALL;
        let mut cn = CnConfig::new(1, PrioritySet::only(three));
        cn.treatments[0][3] = Treatment { input: InputPriority::Moved(two), strip_tag: true };
        let mut edge = HostEdge::new(Some(&cn), PortNo(0));
        let [regenerated, moved] = [PortEvent::Regenerated, PortEvent::CnMoved].map(Some);
        let defend = |edge: &HostEdge, priority: Priority| {
            let mut frame = [0; 60];
            frame[12..15].copy_from_slice(&[0x81, 0, priority.value() << 5]);
            let (priority, events) = edge.defend(&mut frame);
            assert_eq!(vlan::priority_of(&frame), priority);
            (priority, events)
        };
        assert_eq!(defend(&edge, zero), (zero, [None, None]));
        assert_eq!(defend(&edge, three), (two, [None, moved]));
        let mut table = Priority::ALL;
        table[0] = three;
        edge.set_regeneration(table);
        assert_eq!(defend(&edge, zero), (two, [regenerated, moved]));
        assert!(edge.strips_tag(three) && !edge.strips_tag(two));
        edge.set_treatments([UNDEFENDED; PRIORITIES]);
        assert_eq!(defend(&edge, zero), (three, [regenerated, None]));
    }
}
