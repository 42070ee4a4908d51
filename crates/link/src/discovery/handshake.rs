//! The handshake: effects of each link message on a port.

use super::{Discovery, Neighbour, send};
use crate::effect::Effect;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_node::{Note, PortKind, Refusal};
use axon_wire::message::{Heartbeat, Hello, HelloConfirm, HelloReply, Message};
use axon_wire::{Incarnation, PortNo, Span, Time};

impl Discovery {
    pub(super) fn on_hello(
        &mut self,
        now: Time,
        index: usize,
        from: Incarnation,
        hello: &Hello,
        out: &mut Vec<impl From<Effect>>,
    ) -> Result<(), Refusal> {
        if hello.hop_width != self.hop_width {
            return Err(Refusal::HopWidth);
        }
        let hold = self.met_hold();
        let state = &mut self.ports[index];
        let met = |peer: &Neighbour| peer.incarnation == from && peer.challenge == hello.challenge;
        if !state.neighbour.as_deref().is_some_and(met) {
            state.pending =
                Some(Box::new(Neighbour::new(now, from, hello.port, hello.role, hello.challenge)));
        }
        let challenge = state.challenge;
        if state.neighbour.is_none() {
            state.host_at = now + hold;
            self.set_kind(index, PortKind::Unknown, out);
        }
        let reply = HelloReply {
            port: PortNo(index as u16),
            role: self.role,
            hop_width: self.hop_width,
            echo: hello.challenge,
            challenge,
        };
        send(out, index, from, Message::HelloReply(reply));
        Ok(())
    }

    pub(super) fn on_reply(
        &mut self,
        now: Time,
        index: usize,
        from: Incarnation,
        reply: &HelloReply,
        out: &mut Vec<impl From<Effect>>,
    ) -> Result<(), Refusal> {
        if reply.hop_width != self.hop_width {
            return Err(Refusal::HopWidth);
        }
        let hold = self.met_hold();
        let state = &mut self.ports[index];
        if reply.echo != state.challenge {
            return Err(Refusal::Unexpected);
        }
        let met = |peer: &Neighbour| peer.incarnation == from && peer.challenge == reply.challenge;
        if !state.neighbour.as_deref().is_some_and(met) {
            state.pending =
                Some(Box::new(Neighbour::new(now, from, reply.port, reply.role, reply.challenge)));
        }
        if state.neighbour.is_none() {
            state.host_at = now + hold;
            self.set_kind(index, PortKind::Unknown, out);
        }
        send(out, index, from, Message::HelloConfirm(HelloConfirm { echo: reply.challenge }));
        Ok(())
    }

    /// Handles a confirmation or heartbeat. The other end has returned our challenge, so the
    /// pending node of that incarnation becomes the neighbour. A new incarnation of a neighbour
    /// whose data plane still forwards replaces the old one without other changes.
    pub(super) fn on_echo(
        &mut self,
        now: Time,
        index: usize,
        from: Incarnation,
        echo: u64,
        out: &mut Vec<impl From<Effect>>,
    ) -> Result<&mut Neighbour, Refusal> {
        let state = &mut self.ports[index];
        if echo != state.challenge {
            return Err(Refusal::Unexpected);
        }
        if state.pending.as_deref().is_some_and(|pending| pending.incarnation == from) {
            let mut newcomer = state.pending.take().ok_or(Refusal::Unexpected)?;
            newcomer.received_at = now;
            let known = state.neighbour.as_deref().filter(|known| {
                (known.incarnation.node, known.port, known.role)
                    == (from.node, newcomer.port, newcomer.role)
            });
            let same = known.is_some_and(|known| known.incarnation == from || known.forwards());
            let was_restarting = known.is_some_and(Neighbour::is_restarting);
            if !same {
                self.lose_neighbour(index, out);
                self.version += 1;
            }
            if !same || was_restarting {
                let note = Note::NeighbourUp { port: PortNo(index as u16), node: from.node };
                out.push(Effect::Note(note).into());
            }
            self.ports[index].neighbour = Some(newcomer);
            self.paths_version += 1;
            self.set_kind(index, PortKind::Axon, out);
            self.heartbeat(now, index, out);
        }
        let neighbour = self.ports[index].neighbour.as_deref_mut();
        neighbour.filter(|known| known.incarnation == from).ok_or(Refusal::Unexpected)
    }

    pub(super) fn on_heartbeat(
        &mut self,
        now: Time,
        index: usize,
        from: Incarnation,
        beat: &Heartbeat,
        out: &mut Vec<impl From<Effect>>,
    ) -> Result<(), Refusal> {
        let neighbour = self.on_echo(now, index, from, beat.echo, out)?;
        neighbour.received_at = now;
        neighbour.excused = Span::ZERO;
        let was_restarting = neighbour.is_restarting();
        neighbour.echoes = None;
        let is_new = neighbour.path != beat.path;
        if is_new {
            neighbour.path.clone_from(&beat.path);
        }
        self.paths_version += u64::from(is_new);
        if was_restarting {
            let note = Note::NeighbourUp { port: PortNo(index as u16), node: from.node };
            out.push(Effect::Note(note).into());
        }
        Ok(())
    }
}
