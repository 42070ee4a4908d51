//! Lost links, local and remote (`crates/switch/src/switch/failover.rs`).
//!
//! A loss is reported for an established link only, when the carrier goes or the neighbour has been
//! silent for too long. A neighbour with a new incarnation is not reported, because its link is up
//! again already. Link-down messages are accepted from neighbours only.

use super::Discovery;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::Refusal;
use axon_wire::message::{LinkDown, LinkEnd, Role};
use axon_wire::{Incarnation, PortNo};

impl Discovery {
    /// Reports the loss of the link at a port, if it is between two switches.
    pub(super) fn report_lost(&self, index: usize, out: &mut Vec<impl From<Effect>>) {
        let Some(lost) = self.ports[index].neighbour.as_deref() else { return };
        if (self.role, lost.role) == (Role::Switch, Role::Switch) {
            let far = LinkEnd { node: lost.incarnation.node, port: lost.port };
            out.push(Effect::LinkLost { port: PortNo(index as u16), far }.into());
        }
    }

    /// Handles a link-down message from a neighbour.
    pub(super) fn on_link_down(
        &mut self,
        index: usize,
        from: Incarnation,
        news: LinkDown,
        out: &mut Vec<impl From<Effect>>,
    ) -> Result<(), Refusal> {
        let neighbour = self.ports[index].neighbour.as_deref();
        if neighbour.is_none_or(|known| known.incarnation != from || known.role != Role::Switch) {
            return Err(Refusal::Unexpected);
        }
        out.push(Effect::LinkDown { ingress: PortNo(index as u16), news }.into());
        Ok(())
    }
}
