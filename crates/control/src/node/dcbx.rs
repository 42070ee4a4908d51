//! LLDP and DCBX in a whole node: frames in and out, and what is agreed on becomes what each
//! port of the plane does.

use super::chassis::Chassis;
use crate::effect::Effect;
use alloc::vec::Vec;
use axon_dcbx::tables::schedule_of;
use axon_dcbx::{DcbPorts, PortWish, Source};
use axon_node::Note;
use axon_wire::dcbx::ieee::Ets;
use axon_wire::{Frame, PortNo, Time};

impl<B: Frame> Chassis<B> {
    /// The carrier of a port has come or gone.
    pub fn dcbx_link(&mut self, now: Time, port: PortNo, up: bool) {
        self.with_dcbx(now, |dcbx, wishes| dcbx.link(now, port, up, wishes));
    }

    /// A frame with LLDP's EtherType has come; says whether there is anybody to read it, and
    /// whether it could be read.
    pub fn hear_lldp(&mut self, now: Time, port: PortNo, frame: &[u8]) -> bool {
        let mut read = false;
        self.with_dcbx(now, |dcbx, wishes| read = dcbx.receive(now, port, frame, wishes));
        read
    }

    /// Says what is due.
    pub fn dcbx_timeout(&mut self, now: Time) {
        if self.dcbx.as_ref().and_then(|dcbx| dcbx.deadline()).is_some_and(|at| at <= now) {
            self.with_dcbx(now, |dcbx, wishes| dcbx.timeout(now, wishes));
        }
    }

    /// Lets the ports work, and does what they ask for.
    fn with_dcbx(
        &mut self,
        now: Time,
        work: impl FnOnce(&mut DcbPorts, &mut Vec<(PortNo, PortWish)>),
    ) {
        let Some(dcbx) = &mut self.dcbx else { return };
        let mut wishes = Vec::new();
        work(dcbx, &mut wishes);
        for (port, wish) in wishes {
            match wish {
                PortWish::Send(frame) => {
                    let frame = B::with_headroom(0, &frame);
                    self.plane.send_raw(now, port, frame, &mut self.actions);
                }
                PortWish::Classes(ets, from) => self.set_classes(now, port, &ets, from),
                PortWish::Pfc(pfc) => {
                    self.plane.ports_mut().set_pfc(now, port, pfc, &mut self.actions);
                    self.effects.push(Effect::Note(Note::PfcInForce { port, pfc }));
                }
                PortWish::Defence(treatments) => {
                    self.plane.set_treatments(port, treatments);
                    self.effects.push(Effect::Note(Note::DefenceInForce { port }));
                }
                PortWish::Note(_) => self.effects.push(Effect::Note(Note::DcbxTrouble { port })),
            }
        }
    }

    /// Classes take turns as the peer recommends, or as the plane was set to.
    fn set_classes(&mut self, now: Time, port: PortNo, ets: &Ets, from: Source) {
        let Some(own) = &self.plane.config().dcb else { return };
        let (prio_tc, schedule) = match from {
            Source::Local => (own.prio_tc, own.schedule.clone()),
            Source::Peer => (ets.class_of, schedule_of(ets, own.schedule.cost)),
        };
        let ports = self.plane.ports_mut();
        let set = ports.set_classes(now, port, prio_tc, &schedule, &mut self.actions);
        let note = match set {
            Ok(()) => Note::ClassesInForce { port, recommended: from == Source::Peer },
            Err(_) => Note::DcbxTrouble { port },
        };
        self.effects.push(Effect::Note(note));
    }
}
