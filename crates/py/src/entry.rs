//! Inspection of tables: entries with their counters, and the path of a frame.

use crate::change::PyChange;
use crate::name::PyEntryName;
use axon_pipeline::{Explanation, Shown};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Table entry: the change that creates it, and its counters.
#[pyclass(name = "Entry", module = "axon", frozen, eq)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyEntry(pub(crate) Shown);

#[pymethods]
impl PyEntry {
    /// Name of the entry.
    #[getter]
    fn name(&self) -> PyEntryName {
        PyEntryName(self.0.change.entry())
    }

    /// Change that creates the entry.
    #[getter]
    fn change(&self) -> PyChange {
        PyChange(self.0.change.clone())
    }

    /// Number of frames that matched the entry.
    #[getter]
    fn frames(&self) -> u64 {
        self.0.frames
    }

    /// Bytes of the frames that matched the entry, as received and without FCS.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    fn __repr__(&self) -> String {
        let Shown { change, frames, bytes } = &self.0;
        format!("<Entry {}: {frames} frames, {bytes} bytes>", change.entry())
    }
}

/// Path of one frame through the switch.
#[pyclass(name = "Explanation", module = "axon", frozen)]
pub(crate) struct PyExplanation(pub(crate) Explanation);

#[pymethods]
impl PyExplanation {
    /// Processing stages in order, each with its name and result.
    #[getter]
    fn stages(&self) -> Vec<(String, String)> {
        self.0.stages.iter().map(|stage| (stage.name.clone(), stage.text.clone())).collect()
    }

    /// Egress ports, each with the frame as it would be sent.
    #[getter]
    fn sent<'py>(&self, py: Python<'py>) -> Vec<(u16, Bound<'py, PyBytes>)> {
        self.0.sent.iter().map(|(port, frame)| (port.0, PyBytes::new(py, frame))).collect()
    }

    /// True if the control program would get the frame or a copy of it.
    #[getter]
    fn to_cpu(&self) -> bool {
        self.0.to_cpu
    }

    fn __str__(&self) -> String {
        let lines = self.0.stages.iter().map(|stage| format!("{}: {}", stage.name, stage.text));
        lines.collect::<Vec<_>>().join("\n")
    }
}
