//! Links that are lost, here and elsewhere (`node/failover.rs`).
//!
//! Only a link that was one is reported: a port whose carrier goes, or whose neighbour has been
//! silent for too long. A neighbour that has started anew is no lost link: by the time it is known,
//! the link is there again. The word of another switch counts from a neighbour alone.

use super::Discovery;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::Refusal;
use axon_wire::message::{LinkDown, LinkEnd, Role};
use axon_wire::{Incarnation, PortNo};

impl Discovery {
    /// The link at a port is lost, if it leads from a switch to a switch.
    pub(super) fn report_lost(&self, index: usize, out: &mut Vec<Effect>) {
        let Some(lost) = self.ports[index].neighbour.as_deref() else { return };
        if (self.role, lost.role) == (Role::Switch, Role::Switch) {
            let far = LinkEnd { node: lost.incarnation.node, port: lost.port };
            out.push(Effect::LinkLost { port: PortNo(index as u16), far });
        }
    }

    /// A neighbour passes on that a link is down.
    pub(super) fn on_link_down(
        &mut self,
        index: usize,
        from: Incarnation,
        news: LinkDown,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let neighbour = self.ports[index].neighbour.as_deref();
        if neighbour.is_none_or(|known| known.incarnation != from || known.role != Role::Switch) {
            return Err(Refusal::Unexpected);
        }
        out.push(Effect::LinkDown { ingress: PortNo(index as u16), news });
        Ok(())
    }
}
