//! Program side for a switch in another process.

use crate::arguments::port;
use crate::change::PyChange;
use crate::error::{self, gone, named_register, refused};
use crate::name::PyEntryName;
use crate::plan::{PlainPlace, plain};
use axon_external::Session;
use axon_external::message::Call;
use axon_pipeline::Register;
use axon_wire::{PortNo, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Time for which a program may continue to run after its switch has ended.
const AFTER: Duration = Duration::from_millis(500);

/// Event: name, time in nanoseconds, port, carrier, frame, position of the program in the plan.
type PlainCall<'py> =
    (&'static str, u64, u16, bool, Option<Bound<'py, PyBytes>>, Option<PlainPlace>);

/// Program side for a switch in another process.
#[pyclass(module = "axon")]
pub(crate) struct Remote {
    session: Session,
}

#[pymethods]
impl Remote {
    /// Connects to the switch that started this process. From then on, the process ends soon after
    /// its switch does.
    #[new]
    fn new() -> PyResult<Remote> {
        let own = std::io::stdin().as_fd().try_clone_to_owned()?;
        std::thread::Builder::new().spawn(move || end_with(&own))?;
        Ok(Remote { session: Session::of_stdin()? })
    }

    fn next_call<'py>(&mut self, py: Python<'py>) -> PyResult<Option<PlainCall<'py>>> {
        let session = &mut self.session;
        let next = py.detach(|| session.next_call()).map_err(|error| gone(&error))?;
        let Some((now, call)) = next else { return Ok(None) };
        let now = now.as_nanos();
        Ok(Some(match call {
            Call::Load(place) => ("load", now, 0, false, None, Some(plain(&place))),
            Call::Start => ("start", now, 0, false, None, None),
            Call::Link { port, up } => ("link", now, port.0, up, None, None),
            Call::Packet { ingress, frame } => {
                ("packet", now, ingress.0, false, Some(PyBytes::new(py, &frame)), None)
            }
            Call::Timeout => ("timeout", now, 0, false, None, None),
        }))
    }

    fn done(&mut self, deadline_ns: Option<u64>, is_ready: bool) -> PyResult<()> {
        let done = self.session.done(deadline_ns.map(Time::from_nanos), is_ready);
        done.map_err(|error| gone(&error))
    }

    fn failed(&mut self, why: &str) -> PyResult<()> {
        self.session.failed(why).map_err(|error| gone(&error))
    }

    fn commit(&mut self, py: Python<'_>, changes: Vec<PyChange>) -> PyResult<()> {
        let changes = changes.into_iter().map(|change| change.0).collect();
        let committed = self.session.commit(changes).map_err(|error| gone(&error))?;
        committed.map_err(|error| refused(py, &error))
    }

    fn read_register(&mut self, name: &str) -> PyResult<u64> {
        self.read(named_register(name)?)
    }

    fn write_register(&mut self, name: &str, value: u64) -> PyResult<()> {
        let written = self.session.write_register(named_register(name)?, value);
        written.map_err(|error| gone(&error))?.map_err(|error| error::register(&error))
    }

    fn read_entry(&mut self, entry: PyEntryName) -> PyResult<(u64, u64)> {
        let [frames, bytes] = entry.registers();
        Ok((self.read(frames)?, self.read(bytes)?))
    }

    fn is_up(&mut self, port: u32) -> PyResult<bool> {
        self.session.is_up(self::port(port)?).map_err(|error| gone(&error))
    }

    fn send_packet(&mut self, egress: u32, frame: &[u8]) -> PyResult<()> {
        let sent = self.session.send_packet(port(egress)?, frame.to_vec());
        sent.map_err(|error| gone(&error))
    }

    #[pyo3(signature = (frame, ingress))]
    fn inject_packet(&mut self, frame: &[u8], ingress: Option<u32>) -> PyResult<()> {
        let ingress: Option<PortNo> = ingress.map(port).transpose()?;
        let sent = self.session.inject_packet(ingress, frame.to_vec());
        sent.map_err(|error| gone(&error))
    }
}

impl Remote {
    fn read(&mut self, register: Register) -> PyResult<u64> {
        let read = self.session.read_register(register).map_err(|error| gone(&error))?;
        read.map_err(|error| error::register(&error))
    }
}

/// Ends this process once the switch has closed its end, even if the program never checks.
fn end_with(switch: &OwnedFd) {
    let mut closed = [PollFd::new(switch.as_fd(), PollFlags::empty())];
    while !matches!(poll(&mut closed, PollTimeout::NONE), Ok(1..)) {}
    std::thread::sleep(AFTER);
    std::process::exit(1);
}
