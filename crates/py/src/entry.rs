//! Looking at tables: entries as they stand, and the way of a frame.

use crate::change::PyChange;
use crate::name::PyEntryName;
use axon_pipeline::{Explanation, Shown};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An entry as it stands: the change that makes it, and what it has counted.
#[pyclass(name = "Entry", module = "axon", frozen, eq)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyEntry(pub(crate) Shown);

#[pymethods]
impl PyEntry {
    /// Its name.
    #[getter]
    fn name(&self) -> PyEntryName {
        PyEntryName(self.0.change.entry())
    }

    /// What makes it.
    #[getter]
    fn change(&self) -> PyChange {
        PyChange(self.0.change.clone())
    }

    /// Frames that met it.
    #[getter]
    fn frames(&self) -> u64 {
        self.0.frames
    }

    /// Their bytes as they came in, without FCS.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    fn __repr__(&self) -> String {
        let Shown { change, frames, bytes } = &self.0;
        format!("<Entry {}: {frames} frames, {bytes} bytes>", change.entry())
    }
}

/// The way of one frame.
#[pyclass(name = "Explanation", module = "axon", frozen)]
pub(crate) struct PyExplanation(pub(crate) Explanation);

#[pymethods]
impl PyExplanation {
    /// The stages in order: name, and what happens.
    #[getter]
    fn stages(&self) -> Vec<(String, String)> {
        self.0.stages.iter().map(|stage| (stage.name.clone(), stage.text.clone())).collect()
    }

    /// The ports that it would leave by, each with the frame as it would leave.
    #[getter]
    fn sent<'py>(&self, py: Python<'py>) -> Vec<(u16, Bound<'py, PyBytes>)> {
        self.0.sent.iter().map(|(port, frame)| (port.0, PyBytes::new(py, frame))).collect()
    }

    /// Whether the control program would get it, or a copy.
    #[getter]
    fn to_cpu(&self) -> bool {
        self.0.to_cpu
    }

    fn __str__(&self) -> String {
        let lines = self.0.stages.iter().map(|stage| format!("{}: {}", stage.name, stage.text));
        lines.collect::<Vec<_>>().join("\n")
    }
}
