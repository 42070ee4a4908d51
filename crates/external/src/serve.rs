//! Requests of a program, carried out on its switch.

use crate::message::{Reply, Request};
use axon_pipeline::Control;

/// Carries a request out; `None` if it has no answer.
pub(crate) fn serve(request: Request, control: &mut dyn Control) -> Option<Reply> {
    Some(match request {
        Request::Commit(changes) => Reply::Commit(control.commit(&changes)),
        Request::Read(register) => Reply::Read(control.read_register(register)),
        Request::Write(register, value) => Reply::Write(control.write_register(register, value)),
        Request::IsUp(port) => {
            Reply::IsUp(port.index() < usize::from(control.ports()) && control.is_up(port))
        }
        Request::Send { port, frame } => {
            control.send_packet(port, &frame);
            return None;
        }
        Request::Inject { port, frame } => {
            control.inject_packet(port, &frame);
            return None;
        }
    })
}

/// What a program has done in one call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    frames: u32,
}

impl Work {
    /// Counts a request; the reason why it is one too many, if it is.
    pub(crate) fn count(&mut self, request: &Request, frames_max: u32) -> Result<(), String> {
        let sends = matches!(request, Request::Send { .. } | Request::Inject { .. });
        self.frames += u32::from(sends);
        if self.frames > frames_max {
            return Err(format!("it sent more than {frames_max} frames in one call"));
        }
        Ok(())
    }
}
