//! Agent side of an agent port, which exchanges packets with a switch over shared memory.
//!
//! Packet heads are never Rust slices here. Python maps the memory itself (`mmap.mmap`) and hands
//! out views of that mapping, which exists as long as any view does. The memory can neither shrink
//! nor disappear. A view that is kept too long shows other bytes, but does no other harm.

use crate::error::{
    FullError, NoSwitchError, NotHeldError, ProtocolError, RefusedError, SwitchGone,
};
use axon_agent_port::client::{Client, Given};
use axon_agents::{Full, Outbox};
use axon_cache::Handle;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PySlice};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait. Longer timeouts are reduced to it.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// Agent attached to a switch.
#[pyclass(name = "AgentClient", module = "axon")]
pub(crate) struct PyClient {
    /// Never locked. The mutex only makes the client `Sync`, and Python's borrow prevents
    /// concurrent use.
    client: Mutex<Option<Client>>,
    /// View of the whole shared memory.
    memory: Py<PyMemoryView>,
}

impl PyClient {
    fn open(&mut self) -> PyResult<&mut Client> {
        let client = self.client.get_mut().unwrap_or_else(PoisonError::into_inner);
        client.as_mut().ok_or_else(closed)
    }
}

#[pymethods]
impl PyClient {
    /// Attaches an agent named `name` to the socket of an agent port, and waits for the switch.
    #[new]
    #[pyo3(signature = (socket, name))]
    fn new(py: Python<'_>, socket: PathBuf, name: &str) -> PyResult<PyClient> {
        let connected = py.detach(|| Client::connect(&socket, name));
        let client = connected.map_err(|error| {
            // If the wait was ended by a signal, raise its exception.
            py.check_signals().err().unwrap_or_else(|| not_attached(&socket, error))
        })?;
        let (fd, bytes) = (client.memory_fd().as_raw_fd(), client.layout().memory_bytes());
        let mapped = py.import("mmap")?.call_method1("mmap", (fd, bytes))?;
        let memory = PyMemoryView::from(&mapped)?.unbind();
        Ok(PyClient { client: Mutex::new(Some(client)), memory })
    }

    /// Maximum length of a packet head, in bytes.
    #[getter]
    fn head_bytes(&mut self) -> PyResult<usize> {
        Ok(self.open()?.layout().head_bytes)
    }

    /// Maximum length of a frame that can be sent, in bytes without FCS.
    #[getter]
    fn frame_bytes_max(&mut self) -> PyResult<usize> {
        Ok(self.open()?.layout().buffer_bytes)
    }

    /// True if payloads stay in the switch.
    #[getter]
    fn payload_stays(&mut self) -> PyResult<bool> {
        Ok(self.open()?.layout().stays)
    }

    /// Returns the packets and the fetched payloads that the switch has for the agent, at most
    /// `max` in total. Both lists may be empty.
    #[pyo3(signature = (max = 64))]
    fn receive<'py>(
        slf: &Bound<'py, PyClient>,
        max: usize,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let (mut packets, mut payloads) = (Vec::new(), Vec::new());
        let mut borrowed = slf.try_borrow_mut().map_err(|_| shared())?;
        let client = borrowed.open()?;
        for _ in 0..max {
            match client.next_given().map_err(lost)? {
                None => break,
                Some(Given::Packet(packet)) => packets.push(PyPacket {
                    client: slf.clone().unbind(),
                    handle: packet.handle,
                    frame_bytes: packet.frame_bytes,
                }),
                Some(Given::Payload(fetched)) => {
                    let (handle, offset) = (fetched.handle, fetched.offset);
                    let frame_bytes = client.frame_bytes(handle).unwrap_or(0);
                    let data = PyBytes::new(slf.py(), client.fetched(fetched)).unbind();
                    let packet = PyPacket { client: slf.clone().unbind(), handle, frame_bytes };
                    payloads.push(PyPayload { packet: Py::new(slf.py(), packet)?, offset, data });
                }
            }
        }
        Ok((PyList::new(slf.py(), packets)?, PyList::new(slf.py(), payloads)?))
    }

    /// Sends one of the agent's own frames, without FCS, through the agent port into the switch.
    fn send(&mut self, py: Python<'_>, frame: &Bound<'_, PyAny>) -> PyResult<()> {
        let client = self.open()?;
        with_bytes(py, frame, |frame| {
            check_length(client, frame.len())?;
            client.send(frame).map_err(|Full| full(client))
        })
    }

    /// Passes all decisions since the last flush to the switch.
    fn flush(&mut self) -> PyResult<()> {
        self.open()?.flush();
        Ok(())
    }

    /// Flushes, then waits for at most `timeout_s` seconds until the switch has something for the
    /// agent. The default and maximum is 3600 s. Polls for `spin_us` microseconds before it sleeps.
    /// Returns True if the switch has something. A signal may end the wait early.
    #[pyo3(signature = (timeout_s = None, spin_us = 0))]
    fn wait(&mut self, py: Python<'_>, timeout_s: Option<f64>, spin_us: u64) -> PyResult<bool> {
        let timeout = timeout_s.map_or(Ok(WAIT_MAX), Duration::try_from_secs_f64);
        let no_time = |error| PyValueError::new_err(format!("no time to wait for: {error}"));
        let timeout = timeout.map_err(no_time)?.min(WAIT_MAX);
        let spin = Duration::from_micros(spin_us).min(timeout);
        let client = self.open()?;
        let waited = py.detach(|| {
            client.flush();
            let began = Instant::now();
            while !client.has_given() {
                if began.elapsed() >= spin {
                    return client.wait(timeout.saturating_sub(began.elapsed()));
                }
                std::hint::spin_loop();
            }
            Ok(())
        });
        py.check_signals()?;
        waited.map_err(lost)?;
        Ok(client.has_given())
    }

    /// Flushes and detaches the agent. Packets that it holds are lost. Views of heads stay valid.
    /// Closing again has no effect.
    fn close(&mut self) {
        let client = self.client.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut client) = client.take() {
            client.flush();
        }
    }

    fn __enter__(slf: Bound<'_, PyClient>) -> Bound<'_, PyClient> {
        slf
    }

    fn __exit__(
        &mut self,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close();
    }
}

/// Packet received from the switch. It is held until it is forwarded, dropped or replaced.
#[pyclass(name = "Packet", module = "axon", frozen)]
pub(crate) struct PyPacket {
    client: Py<PyClient>,
    handle: Handle,
    frame_bytes: usize,
}

impl PyPacket {
    /// Calls `act` with the client if the client holds the packet.
    fn with<T>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Client, &Py<PyMemoryView>) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut borrowed = self.client.try_borrow_mut(py).map_err(|_| shared())?;
        let PyClient { client, memory } = &mut *borrowed;
        let client = client.get_mut().unwrap_or_else(PoisonError::into_inner);
        let client = client.as_mut().ok_or_else(closed)?;
        if client.head_place(self.handle).is_none() {
            return Err(NotHeldError::new_err(format!(
                "packet {} is not held: it was forwarded, replaced or dropped before, or was held \
                 for too long; decide once on each packet",
                self.handle
            )));
        }
        act(client, memory)
    }

    fn view<'py>(
        &self,
        py: Python<'py>,
        place: impl FnOnce(&Client) -> Option<Range<usize>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.with(py, |client, memory| {
            let place = place(client).unwrap_or(0..0);
            let part = PySlice::new(py, place.start as isize, place.end as isize, 1);
            memory.bind(py).get_item(part)
        })
    }
}

#[pymethods]
impl PyPacket {
    /// Handle of the packet in the switch.
    #[getter]
    fn handle(&self) -> u64 {
        self.handle.raw()
    }

    /// Head of the packet: the first bytes of the frame in shared memory, readable and writable in
    /// place.
    #[getter]
    fn head<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.view(py, |client| client.head_place(self.handle))
    }

    /// Bytes after the head if payloads are copied to the agent, or empty if they stay in the
    /// switch.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.view(py, |client| client.payload_place(self.handle))
    }

    /// Current length of the head in bytes.
    #[getter]
    fn head_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |client, _| Ok(client.head_place(self.handle).unwrap_or(0..0).len()))
    }

    /// Length of the whole frame as received, in bytes without FCS.
    #[getter]
    fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    /// True if the agent still holds the packet.
    #[getter]
    fn is_held(&self, py: Python<'_>) -> PyResult<bool> {
        let mut borrowed = self.client.try_borrow_mut(py).map_err(|_| shared())?;
        let client = borrowed.client.get_mut().unwrap_or_else(PoisonError::into_inner);
        Ok(client.as_ref().is_some_and(|client| client.head_place(self.handle).is_some()))
    }

    /// Forwards the packet with its current head, and its payload from the switch's buffer.
    fn forward(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |client, _| {
            client.forward(self.handle);
            Ok(())
        })
    }

    /// Drops the packet.
    fn drop(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |client, _| {
            Outbox::drop(client, self.handle);
            Ok(())
        })
    }

    /// Resizes the head at its front to `bytes` bytes. The content of added bytes is arbitrary, and
    /// removed bytes are the first ones. Earlier views still show the old location.
    fn resize_head(&self, py: Python<'_>, bytes: usize) -> PyResult<()> {
        self.with(py, |client, _| {
            let most = client.head_bytes_max(self.handle).unwrap_or(0);
            let why = || format!("a head of {bytes} bytes: there is room for {most}");
            let resized = client.resize_head(self.handle, bytes);
            if resized { Ok(()) } else { Err(PyValueError::new_err(why())) }
        })
    }

    /// Requests `bytes` bytes of the frame as received, starting at byte `offset`. They arrive as a
    /// `Payload`, at the cost of a copy.
    fn fetch(&self, py: Python<'_>, offset: usize, bytes: usize) -> PyResult<()> {
        self.with(py, |client, _| {
            client.fetch(self.handle, offset, bytes);
            Ok(())
        })
    }

    /// Forwards the packet with its current head, and with `payload` instead of its own payload.
    fn replace(&self, py: Python<'_>, payload: &Bound<'_, PyAny>) -> PyResult<()> {
        with_bytes(py, payload, |payload| {
            self.with(py, |client, _| {
                let head_bytes = client.head_place(self.handle).unwrap_or(0..0).len();
                check_length(client, head_bytes + payload.len())?;
                client.replace(self.handle, payload).map_err(|Full| full(client))
            })
        })
    }

    fn __eq__(&self, other: &PyPacket) -> bool {
        self.handle == other.handle && self.client.is(&other.client)
    }

    fn __hash__(&self) -> u64 {
        self.handle.raw()
    }

    fn __repr__(&self) -> String {
        format!("<Packet {}: {} bytes>", self.handle, self.frame_bytes)
    }
}

/// Part of a frame that was fetched.
#[pyclass(name = "Payload", module = "axon", frozen, get_all)]
pub(crate) struct PyPayload {
    /// Packet whose frame the part belongs to.
    packet: Py<PyPacket>,
    /// Offset of the part in the frame as received, in bytes.
    offset: usize,
    /// Fetched bytes, as many as requested or up to the end of the frame.
    data: Py<PyBytes>,
}

fn closed() -> PyErr {
    PyValueError::new_err("the client is closed; attach another one")
}

fn shared() -> PyErr {
    PyRuntimeError::new_err("another thread uses this client; an agent has one thread")
}

/// Calls `act` with the bytes of an object that supports the buffer protocol.
fn with_bytes<T>(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    act: impl FnOnce(&[u8]) -> PyResult<T>,
) -> PyResult<T> {
    match object.cast::<PyBytes>() {
        Ok(bytes) => act(bytes.as_bytes()),
        Err(_) => act(&PyBuffer::<u8>::get(object)?.to_vec(py)?),
    }
}

fn check_length(client: &Client, bytes: usize) -> PyResult<()> {
    let most = client.layout().buffer_bytes;
    let why = || format!("a frame of {bytes} bytes: expected 1 to {most}");
    if (1..=most).contains(&bytes) { Ok(()) } else { Err(PyValueError::new_err(why())) }
}

fn full(client: &Client) -> PyErr {
    let buffers = client.layout().buffers;
    FullError::new_err(format!(
        "all {buffers} buffers of the agent are in use: nothing was sent; call wait and receive, \
         which take buffers back, and try again, or set more send_buffers"
    ))
}

/// Returns the exception to raise for a failed attachment.
fn not_attached(socket: &Path, error: io::Error) -> PyErr {
    let socket = socket.display();
    let by_kernel = error.raw_os_error().is_some();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => NoSwitchError::new_err(format!(
            "no switch at {socket} ({error}); start it, or give the socket of an agent port of it, \
             which root and the user of the switch may open"
        )),
        ErrorKind::ConnectionRefused if by_kernel => NoSwitchError::new_err(format!(
            "no switch at {socket} ({error}): one that has ended has left its socket; start it"
        )),
        ErrorKind::ConnectionRefused => {
            RefusedError::new_err(format!("the switch at {socket} refuses this agent: {error}"))
        }
        _ => lost(error),
    }
}

/// Returns the exception to raise for a lost attachment.
fn lost(error: io::Error) -> PyErr {
    match error.kind() {
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            SwitchGone::new_err(format!(
                "{error}: it was stopped, or has detached this agent, and its log says why; what \
                 the agent held is lost; attach again"
            ))
        }
        ErrorKind::InvalidData => ProtocolError::new_err(format!(
            "{error}; attach again, and use the module and the switch of the same release"
        )),
        _ => error.into(),
    }
}
