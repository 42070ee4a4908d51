//! News of links that are down: each switch passes it on to all its neighbours, as link-state
//! routing protocols flood theirs.
//!
//! In plain English: a switch that loses a neighbour, by its carrier or by its silence, sends the
//! two ends of that link to its other neighbours. Whoever did not know it yet passes it on. So the
//! news takes every way there is and reaches each edge by the fastest, within the delay of the
//! links and one step of each node, whether the controller can be reached or not. Edges then use
//! their backup routes (`edge/backup.rs`).
//!
//! News of a link is passed on once in a heartbeat, which is longer than it takes to come back by
//! another way, so it dies out by itself; and no further than [`HOPS_MAX`] switches, whatever
//! becomes of their clocks.

use super::chassis::Chassis;
use super::switch::SwitchNode;
use alloc::vec::Vec;
use axon_node::Dataplane;
use axon_wire::message::{LinkDown, LinkEnd, Message, Role};
use axon_wire::{PortNo, Time};

/// How many switches pass on one piece of news, one after the other.
const HOPS_MAX: u8 = 255;

impl<D: Dataplane> SwitchNode<D> {
    /// The link at a port is lost; the other end was this one.
    pub(super) fn link_lost(&mut self, now: Time, port: PortNo, far: LinkEnd) {
        let near = LinkEnd { node: self.incarnation().node, port };
        let ends = [near, far];
        self.link_down(now, port, LinkDown { ends, hops_left: HOPS_MAX });
        // A second loss within a heartbeat is no news to others.
        let Chassis { plane, effects, .. } = &mut self.chassis;
        self.edge.fail_over(now, ends, plane, effects);
    }

    /// A link is down, says a neighbour at `ingress`, or this switch itself. The neighbours come
    /// first: the farther the edge, the less it may be delayed.
    pub(super) fn link_down(&mut self, now: Time, ingress: PortNo, news: LinkDown) {
        let SwitchNode { edge, chassis, .. } = self;
        if !edge.link_down(now, news.ends) {
            return;
        }
        if let Some(hops_left) = news.hops_left.checked_sub(1) {
            pass_on(chassis, now, ingress, LinkDown { hops_left, ..news });
        }
        let Chassis { plane, effects, .. } = chassis;
        edge.fail_over(now, news.ends, plane, effects);
    }
}

fn pass_on<D: Dataplane>(chassis: &mut Chassis<D>, now: Time, ingress: PortNo, news: LinkDown) {
    let others = chassis.discovery.neighbours();
    let others = others.filter(|(port, peer)| *port != ingress && peer.role == Role::Switch);
    let others: Vec<_> = others.map(|(port, peer)| (port, peer.incarnation)).collect();
    for (port, to) in others {
        chassis.send_link(now, port, Some(to), &Message::LinkDown(news));
    }
}
