//! In-memory switch, which takes frames in and returns frames.

use crate::arguments::{Mac, port};
use crate::change::PyChange;
use crate::entry::{PyEntry, PyExplanation};
use crate::error::{self, named_register, refused};
use crate::name::PyEntryName;
use axon_node::{Action, Drop, Input, Node, PortEvent};
use axon_pipeline::{Change, Pipeline, PipelineConfig, Register, Sizes, TableName};
use axon_wire::{Bytes, FrameBuf, PortNo, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;

/// Default limit on each port's frames to the control program, both per second and as burst. No
/// test reaches it.
const CPU_FRAMES: u32 = u32::MAX;

/// Port and frame.
type Carried<'py> = (u16, Bound<'py, PyBytes>);
/// Frames that were transmitted, and frames that were sent to the control program.
type Outcome<'py> = (Vec<Carried<'py>>, Vec<Carried<'py>>);

/// Egress or ingress port, and the frame.
type Passed = (PortNo, FrameBuf);

/// In-memory switch. Its ports are infinitely fast, so nothing is queued.
#[pyclass(module = "axon")]
pub(crate) struct Memory {
    pipeline: Pipeline,
    now: Time,
}

impl Memory {
    /// Executes the actions of the pipeline, and any actions that result from them. Returns the
    /// transmitted frames and the frames sent to the control program.
    fn run(
        &mut self,
        start: impl FnOnce(&mut Pipeline, &mut Vec<Action>),
    ) -> (Vec<Passed>, Vec<Passed>) {
        let (mut left, mut trapped, mut actions) = (Vec::new(), Vec::new(), Vec::new());
        start(&mut self.pipeline, &mut actions);
        while !actions.is_empty() {
            for action in std::mem::take(&mut actions) {
                match action {
                    Action::Transmit { port, frame, .. } => {
                        left.push((port, frame));
                        self.pipeline.handle(self.now, Input::TxDone { port }, &mut actions);
                    }
                    Action::Punt { ingress, frame, .. } => trapped.push((ingress, frame)),
                    _ => {}
                }
            }
        }
        (left, trapped)
    }

    fn outcome<'py>(
        &mut self,
        py: Python<'py>,
        start: impl FnOnce(&mut Pipeline, &mut Vec<Action>),
    ) -> Outcome<'py> {
        let (left, trapped) = self.run(start);
        let carried = |(port, frame): (PortNo, FrameBuf)| (port.0, PyBytes::new(py, frame.bytes()));
        (left.into_iter().map(carried).collect(), trapped.into_iter().map(carried).collect())
    }

    /// Returns the port if the switch has it.
    fn own(&self, number: u32) -> PyResult<PortNo> {
        let ports = self.pipeline.config().ports;
        let found = port(number)?;
        let missing = || PyValueError::new_err(format!("no port {number}: there are {ports}"));
        if found.0 < ports { Ok(found) } else { Err(missing()) }
    }
}

#[pymethods]
impl Memory {
    /// Creates a switch with empty tables. All its ports have carrier.
    #[new]
    fn new(ports: u16, mac: Mac, sizes: BTreeMap<String, u32>, seed: u64) -> PyResult<Memory> {
        let mut config = PipelineConfig::with_ports(ports, mac.0);
        config.sizes = self::sizes(&sizes)?;
        config.seed = seed;
        config.queue_bytes_max = Bytes(1 << 30);
        config.cpu.frames_per_second = CPU_FRAMES;
        config.cpu.burst = CPU_FRAMES;
        let mut memory = Memory { pipeline: Pipeline::new(config), now: Time::ZERO };
        for port in (0..ports).map(PortNo) {
            let now = memory.now;
            memory.run(|pipeline, out| pipeline.handle(now, Input::Link { port, up: true }, out));
        }
        Ok(memory)
    }

    #[getter]
    fn ports(&self) -> u16 {
        self.pipeline.config().ports
    }

    #[getter]
    fn mac(&self) -> String {
        self.pipeline.config().mac.to_string()
    }

    #[getter]
    fn now_ns(&self) -> u64 {
        self.now.as_nanos()
    }

    fn advance(&mut self, nanoseconds: u64) {
        self.now += Span::from_nanos(nanoseconds);
    }

    fn commit(&mut self, py: Python<'_>, changes: Vec<PyChange>) -> PyResult<()> {
        let changes: Vec<Change> = changes.into_iter().map(|change| change.0).collect();
        self.pipeline.commit(&changes).map_err(|error| refused(py, &error))
    }

    fn read_register(&self, name: &str) -> PyResult<u64> {
        self.read(named_register(name)?)
    }

    fn write_register(&mut self, name: &str, value: u64) -> PyResult<()> {
        let written = self.pipeline.write_register(named_register(name)?, value);
        written.map_err(|error| error::register(&error))
    }

    fn read_entry(&self, entry: PyEntryName) -> PyResult<(u64, u64)> {
        let [frames, bytes] = entry.registers();
        Ok((self.read(frames)?, self.read(bytes)?))
    }

    fn receive<'py>(
        &mut self,
        py: Python<'py>,
        ingress: u32,
        frame: &[u8],
    ) -> PyResult<Outcome<'py>> {
        let (now, port) = (self.now, self.own(ingress)?);
        let frame = FrameBuf::new(frame);
        let input = Input::Frame { port, frame, complete_at: now, intact: true };
        Ok(self.outcome(py, |pipeline, out| pipeline.handle(now, input, out)))
    }

    fn send_packet<'py>(
        &mut self,
        py: Python<'py>,
        egress: u32,
        frame: &[u8],
    ) -> PyResult<Outcome<'py>> {
        let (now, port) = (self.now, self::port(egress)?);
        Ok(self.outcome(py, |pipeline, out| pipeline.send(now, port, frame, out)))
    }

    #[pyo3(signature = (frame, ingress))]
    fn inject_packet<'py>(
        &mut self,
        py: Python<'py>,
        frame: &[u8],
        ingress: Option<u32>,
    ) -> PyResult<Outcome<'py>> {
        let now = self.now;
        let port = ingress.map(|ingress| self.own(ingress)).transpose()?;
        Ok(self.outcome(py, |pipeline, out| pipeline.inject(now, port, frame, out)))
    }

    fn set_link<'py>(&mut self, py: Python<'py>, port: u32, up: bool) -> PyResult<Outcome<'py>> {
        let (now, port) = (self.now, self.own(port)?);
        Ok(self.outcome(py, |pipeline, out| {
            pipeline.handle(now, Input::Link { port, up }, out);
        }))
    }

    fn is_up(&self, port: u32) -> PyResult<bool> {
        Ok(self.pipeline.ports().wires().is_up(self.own(port)?))
    }

    /// Counts a frame sent to the control program, as consumed if `taken`, otherwise as over the
    /// rate limit.
    fn count_trapped(&mut self, ingress: u16, taken: bool) {
        let reason = if taken { Drop::Consumed } else { Drop::PuntLimit };
        self.pipeline.ports_mut().count(PortNo(ingress), PortEvent::Drop(reason));
    }

    fn counts(&self) -> BTreeMap<&'static str, (u32, u32)> {
        let counts = self.pipeline.tables().counts();
        counts.into_iter().map(|count| (count.table.name(), (count.entries, count.size))).collect()
    }

    fn dropped(&self) -> BTreeMap<&'static str, u64> {
        let total = self.pipeline.ports().counters().total();
        let all = Drop::ALL.iter().map(|&reason| (reason.name(), total.dropped(reason)));
        all.filter(|(_, frames)| *frames > 0).collect()
    }

    #[pyo3(signature = (table))]
    fn entries(&self, table: Option<&str>) -> PyResult<Vec<PyEntry>> {
        let tables = match table {
            None => TableName::ALL.to_vec(),
            Some(name) => vec![self::table(name)?],
        };
        let all = tables.into_iter().flat_map(|table| self.pipeline.tables().entries(table));
        Ok(all.map(PyEntry).collect())
    }

    fn explain(&self, ingress: u32, frame: &[u8]) -> PyResult<PyExplanation> {
        Ok(PyExplanation(self.pipeline.explain(self.own(ingress)?, frame)))
    }
}

impl Memory {
    fn read(&self, register: Register) -> PyResult<u64> {
        self.pipeline.read_register(register).map_err(|error| error::register(&error))
    }
}

fn table(name: &str) -> PyResult<TableName> {
    let found = TableName::ALL.into_iter().find(|table| table.name() == name);
    found.ok_or_else(|| {
        let names = TableName::ALL.map(TableName::name).join(", ");
        PyValueError::new_err(format!("no table {name:?}: expected one of {names}"))
    })
}

fn sizes(asked: &BTreeMap<String, u32>) -> PyResult<Sizes> {
    let mut sizes = Sizes::default();
    for (name, &size) in asked {
        let place = match table(name)? {
            TableName::Tcam => &mut sizes.tcam,
            TableName::Mpls => &mut sizes.mpls,
            TableName::Ipv4 => &mut sizes.ipv4,
            TableName::Mac => &mut sizes.mac,
            TableName::Prefix => &mut sizes.prefix,
            TableName::Interface => &mut sizes.interface,
            TableName::Group => &mut sizes.group,
            TableName::Tunnel => &mut sizes.tunnel,
            TableName::Udlk => return Err(PyValueError::new_err("there are always 16 keys")),
        };
        *place = size;
    }
    Ok(sizes)
}
