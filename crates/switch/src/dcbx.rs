//! LLDP and DCBX in a node: frames in and out, and application of the agreed settings to the ports
//! of the plane.

use super::chassis::Chassis;
use alloc::boxed::Box;
use alloc::vec::Vec;
use axon_dcbx::{DcbPorts, PortRequest, Source};
use axon_link::effect::Effect;
use axon_node::{Dataplane, Note, PortSetting};
use axon_wire::{FrameBuf, PortNo, Time};

impl<D: Dataplane, E: From<Effect>> Chassis<D, E> {
    /// Handles a change of a port's carrier.
    pub(crate) fn dcbx_link(&mut self, now: Time, port: PortNo, up: bool) {
        self.with_dcbx(now, |dcbx, requests| dcbx.link(now, port, up, requests));
    }

    /// Handles a frame with LLDP's EtherType; returns whether LLDP runs and the frame is valid.
    pub(crate) fn receive_lldp(&mut self, now: Time, port: PortNo, frame: &[u8]) -> bool {
        let mut read = false;
        self.with_dcbx(now, |dcbx, requests| read = dcbx.receive(now, port, frame, requests));
        read
    }

    /// Sends the LLDP frames that are due.
    pub(crate) fn dcbx_timeout(&mut self, now: Time) {
        if self.dcbx.as_ref().and_then(|dcbx| dcbx.deadline()).is_some_and(|at| at <= now) {
            self.with_dcbx(now, |dcbx, requests| dcbx.timeout(now, requests));
        }
    }

    /// Runs `work` on the ports and carries out their requests.
    fn with_dcbx(
        &mut self,
        now: Time,
        work: impl FnOnce(&mut DcbPorts, &mut Vec<(PortNo, PortRequest)>),
    ) {
        let Some(dcbx) = &mut self.dcbx else { return };
        let mut requests = Vec::new();
        work(dcbx, &mut requests);
        for (port, request) in requests {
            match request {
                PortRequest::Send(frame) => {
                    let frame = FrameBuf::with_headroom(0, &frame);
                    self.plane.send(now, port, frame, &mut self.actions);
                }
                PortRequest::Classes(ets, from) => {
                    let ets = (from == Source::Peer).then(|| Box::new(ets));
                    self.set_port(now, port, PortSetting::Classes(ets));
                }
                PortRequest::Pfc(pfc) => self.set_port(now, port, PortSetting::Pfc(pfc)),
                PortRequest::Defence(treatments) => {
                    self.set_port(now, port, PortSetting::Defence(Box::new(treatments)));
                }
                PortRequest::Note(_) => {
                    self.effects.push(Effect::Note(Note::DcbxTrouble { port }).into())
                }
            }
        }
    }
}
