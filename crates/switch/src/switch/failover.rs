//! Link-down messages: each switch passes them on to all its neighbours, as in link-state flooding.
//!
//! A switch that loses a neighbour, by carrier or by silence, sends the two ends of that link to
//! its other neighbours. A switch that receives it for the first time passes it on. So the message
//! takes every path and reaches each edge by the fastest, within the delay of the links and one
//! step of each node, even if the controller is unreachable. Edges then use their backup routes
//! (`edge/src/failover.rs`).
//!
//! A switch passes on the loss of a link once per heartbeat interval. That is longer than the
//! message takes to return by another path, so flooding ends. It also ends after [`HOPS_MAX`]
//! switches, independent of their clocks.

use super::SwitchNode;
use crate::chassis::Chassis;
use crate::effect::SwitchEffect;
use alloc::vec::Vec;
use axon_node::Dataplane;
use axon_wire::message::{LinkDown, LinkEnd, Message, Role};
use axon_wire::{PortNo, Time};

/// Maximum number of switches that pass on one message in turn.
const HOPS_MAX: u8 = 255;

impl<D: Dataplane> SwitchNode<D> {
    /// Handles the loss of the link at a port, whose other end was `far`.
    pub(super) fn link_lost(&mut self, now: Time, port: PortNo, far: LinkEnd) {
        let near = LinkEnd { node: self.incarnation().node, port };
        let ends = [near, far];
        self.link_down(now, port, LinkDown { ends, hops_left: HOPS_MAX });
        // A second loss within a heartbeat is not sent again.
        let Chassis { plane, effects, .. } = &mut self.chassis;
        self.edge.with_all(now, plane, effects, |mut call| call.fail_over(ends));
    }

    /// Handles a link-down message from a neighbour at `ingress`, or of this switch. Neighbours are
    /// served first, to limit the delay at distant edges.
    pub(super) fn link_down(&mut self, now: Time, ingress: PortNo, news: LinkDown) {
        let SwitchNode { edge, chassis, .. } = self;
        if !edge.link_down(now, news.ends) {
            return;
        }
        if let Some(hops_left) = news.hops_left.checked_sub(1) {
            pass_on(chassis, now, ingress, LinkDown { hops_left, ..news });
        }
        let Chassis { plane, effects, .. } = chassis;
        edge.with_all(now, plane, effects, |mut call| call.fail_over(news.ends));
    }
}

fn pass_on<D: Dataplane>(
    chassis: &mut Chassis<D, SwitchEffect>,
    now: Time,
    ingress: PortNo,
    news: LinkDown,
) {
    let others = chassis.discovery.neighbours();
    let others = others.filter(|(port, peer)| *port != ingress && peer.role == Role::Switch);
    let others: Vec<_> = others.map(|(port, peer)| (port, peer.incarnation)).collect();
    for (port, to) in others {
        chassis.send_link(now, port, Some(to), &Message::LinkDown(news));
    }
}
