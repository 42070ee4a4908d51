//! Echoes, which test whether the data plane of a silent neighbour still forwards (the echo
//! function of RFC 5880 §6.4, here for non-stop forwarding).
//!
//! A node that restarts sends no heartbeats, but its data plane, such as the kernel's, may still
//! forward. When a heartbeat is late by half an interval, the node sends an echo to the neighbour
//! every half interval. An echo is a control packet from this node to itself, with the hops
//!
//! ```text
//!   the neighbour's port towards us | our control plane
//! ```
//!
//! The data plane of the neighbour takes the first hop and returns the packet by its ingress port.
//! That needs no table and no node there. While echoes return, the neighbour counts as restarting
//! and is kept. It is removed [`Timers::restart_max`] after its last heartbeat, or when no echo has
//! returned for as long as a neighbour may be silent. Without any echo, it is removed at the usual
//! time.
//!
//! An echo counts once, at the port it left by, if it is sealed by this incarnation and its number
//! is one of the current silence, whose numbers start at random. So echoes cannot be forged or
//! replayed without the keys of the fabric.
//!
//! [`Timers::restart_max`]: crate::config::Timers::restart_max

use super::echoes::Echoes;
use super::{Discovery, Neighbour};
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_node::Note;
use axon_wire::{Hops, PortNo, Span, Time};

impl Neighbour {
    /// Returns whether the node has been silent for longer than allowed while its data plane
    /// forwards.
    pub fn is_restarting(&self) -> bool {
        self.echoes.is_some_and(|echoes| echoes.noted)
    }

    /// Returns whether the data plane has returned an echo since the last heartbeat.
    pub(super) fn forwards(&self) -> bool {
        self.echoes.is_some_and(|echoes| echoes.returned > 0)
    }
}

impl Discovery {
    /// Handles an echo of this node returned by `port`. Ignores one that was not sent there, or
    /// that is not expected any more.
    pub fn echoed(&mut self, now: Time, port: PortNo, number: u64) {
        let state = self.ports.get_mut(port.index()).filter(|state| state.up);
        let neighbour = state.and_then(|state| state.neighbour.as_deref_mut());
        let Some(echoes) = neighbour.and_then(|neighbour| neighbour.echoes.as_mut()) else {
            return;
        };
        let which = number.wrapping_sub(echoes.before);
        if (echoes.returned + 1..=echoes.sent).contains(&which) {
            (echoes.returned, echoes.returned_at) = (which, Some(now));
            self.find_deadline();
        }
    }

    /// Returns when the next echo to a neighbour is due.
    pub(super) fn echo_at(&self, neighbour: &Neighbour) -> Time {
        let late_at = || neighbour.received_at + self.echo_pause() * 3 + neighbour.excused;
        neighbour.echoes.map_or_else(late_at, |echoes| echoes.next_at)
    }

    /// Sends an echo to the neighbour at a port.
    pub(super) fn echo(&mut self, now: Time, index: usize, out: &mut Vec<impl From<Effect>>) {
        let pause = self.echo_pause();
        let port = PortNo(index as u16);
        let Some(neighbour) = self.ports[index].neighbour.as_deref_mut() else { return };
        let random = &mut self.random;
        let echoes = neighbour.echoes.get_or_insert_with(|| Echoes {
            before: random.next_u64(),
            sent: 0,
            returned: 0,
            returned_at: None,
            next_at: now,
            noted: false,
        });
        echoes.sent += 1;
        echoes.next_at = now + pause;
        let number = echoes.before.wrapping_add(echoes.sent);
        let hops = [port, neighbour.port, PortNo::CONTROL].into_iter().collect::<Hops>();
        out.push(Effect::Echo { port, hops, number }.into());
    }

    /// Notes a neighbour that is kept because of its echoes alone.
    pub(super) fn note_restart(
        &mut self,
        now: Time,
        index: usize,
        out: &mut Vec<impl From<Effect>>,
    ) {
        let patience = self.patience();
        let Some(neighbour) = self.ports[index].neighbour.as_deref_mut() else { return };
        let is_silent = neighbour.received_at + patience + neighbour.excused <= now;
        if let Some(echoes) = neighbour.echoes.as_mut().filter(|echoes| !echoes.noted && is_silent)
        {
            echoes.noted = true;
            let (port, node) = (PortNo(index as u16), neighbour.incarnation.node);
            out.push(Effect::Note(Note::NeighbourRestarting { port, node }).into());
        }
    }

    /// Returns when a neighbour is removed if neither a heartbeat nor an echo arrives before.
    pub(super) fn dead_at(&self, neighbour: &Neighbour) -> Time {
        let silent_at = neighbour.received_at + self.patience() + neighbour.excused;
        let returned_at = neighbour.echoes.and_then(|echoes| echoes.returned_at);
        let Some(returned_at) = returned_at else { return silent_at };
        let echoed_until = returned_at + self.patience() + neighbour.excused;
        let last = neighbour.received_at + self.timers.restart_max();
        echoed_until.min(last).max(silent_at)
    }

    /// Returns the echo interval, half a heartbeat interval. The first echo is due three of these
    /// after a heartbeat.
    fn echo_pause(&self) -> Span {
        Span::from_ticks((self.timers.heartbeat.ticks() / 2).max(1))
    }
}
