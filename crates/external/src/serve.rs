//! Executes a program's requests on its switch.

use crate::limits::Limits;
use crate::message::{FromProgram, Reply, Request};
use axon_pipeline::Control;

/// Minimum cost of a message, in bytes.
const MESSAGE_COST: u64 = 4 << 10;
/// Cost of a table change, in bytes. A thousand changes take about a millisecond.
const CHANGE_COST: u64 = 1 << 10;

/// Executes a request. Returns `None` if the request has no reply.
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

/// Returns the cost of a message, given as the number of frame bytes that take the same time. A
/// switch that does not wait for its program returns to its ports after a limited cost.
pub(crate) fn cost(message: &FromProgram) -> u64 {
    MESSAGE_COST
        + match message {
            FromProgram::Request(Request::Send { frame, .. } | Request::Inject { frame, .. }) => {
                frame.len() as u64
            }
            FromProgram::Request(Request::Commit(changes)) => changes.len() as u64 * CHANGE_COST,
            _ => 0,
        }
}

/// Work that a program has done in one call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    frames: u32,
    bytes: u64,
}

impl Work {
    /// Counts a request. If it exceeds a limit, returns the reason as an error.
    pub(crate) fn count(&mut self, request: &Request, limits: &Limits) -> Result<(), String> {
        let Limits { frames_per_call, bytes_per_call, frame_bytes, changes_per_commit, .. } =
            *limits;
        match request {
            Request::Commit(changes) if changes.len() > changes_per_commit => {
                let found = changes.len();
                Err(format!("it made {found} changes at once; at most {changes_per_commit} can be"))
            }
            Request::Send { frame, .. } | Request::Inject { frame, .. } => {
                self.frames += 1;
                self.bytes += frame.len() as u64;
                if self.frames > frames_per_call {
                    Err(format!("it sent more than {frames_per_call} frames in one call"))
                } else if self.bytes > bytes_per_call {
                    Err(format!("it sent more than {bytes_per_call} bytes in one call"))
                } else if frame.len() > frame_bytes {
                    let found = frame.len();
                    Err(format!("it sent a frame of {found} bytes; at most {frame_bytes} can be"))
                } else {
                    Ok(())
                }
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_pipeline::Change;
    use axon_wire::PortNo;

    fn send(bytes: usize) -> Request {
        Request::Send { port: PortNo(0), frame: vec![0; bytes] }
    }

    #[test]
    fn frames_their_bytes_and_changes_at_once_have_limits() {
        let limits = Limits {
            frames_per_call: 3,
            bytes_per_call: 200,
            frame_bytes: 100,
            changes_per_commit: 2,
            ..Limits::default()
        };
        let refused = |requests: &[Request]| {
            let mut work = Work::default();
            requests.iter().find_map(|request| work.count(request, &limits).err())
        };
        let commit = |changes| Request::Commit(vec![Change::Miss(None); changes]);
        assert_eq!(refused(&[send(60), send(60), send(60), commit(2), commit(2)]), None);
        assert!(refused(&[send(1), send(1), send(1), send(1)]).unwrap().contains("3 frames"));
        assert!(refused(&[send(100), send(100), send(1)]).unwrap().contains("200 bytes"));
        assert!(refused(&[send(101)]).unwrap().contains("a frame of 101 bytes"));
        assert!(refused(&[commit(3)]).unwrap().contains("3 changes at once"));
    }

    #[test]
    fn long_frames_and_many_changes_cost_more() {
        let costs = |request| cost(&FromProgram::Request(request));
        assert_eq!(costs(send(1500)) - costs(send(0)), 1500);
        let commit = |changes| costs(Request::Commit(vec![Change::Miss(None); changes]));
        assert_eq!(commit(1000) - commit(0), 1000 << 10);
    }
}
