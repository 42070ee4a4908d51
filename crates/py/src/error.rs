//! Exceptions raised by the module, with details in their fields, and lookup of port registers by
//! name.

use crate::name::PyEntryName;
use axon_external::ChannelError;
use axon_pipeline::Register;
use pyo3::exceptions::{PyConnectionError, PyException, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    axon,
    ChangeError,
    PyException,
    "A transaction that was refused; the tables are as before."
);
pyo3::create_exception!(
    axon,
    SwitchGone,
    PyConnectionError,
    "The switch of a program or of an agent is gone."
);
pyo3::create_exception!(
    axon,
    NoSwitchError,
    PyConnectionError,
    "No switch has an agent port at this socket."
);
pyo3::create_exception!(axon, RefusedError, PyConnectionError, "The switch refuses this agent.");
pyo3::create_exception!(
    axon,
    ProtocolError,
    PyConnectionError,
    "The other side of a socket or of shared memory is no switch that works."
);
pyo3::create_exception!(
    axon,
    NotHeldError,
    PyValueError,
    "The agent does not hold this packet: it has decided on it before."
);
pyo3::create_exception!(
    axon,
    FullError,
    PyException,
    "The agent has no free buffer for what it sends; nothing was sent."
);
pyo3::create_exception!(axon, RegisterError, PyException, "A register was not read or written.");

/// Returns the exception for a refused transaction, with the fields `position`, `entry` and
/// `reason`.
pub(crate) fn refused(py: Python<'_>, error: &axon_pipeline::ChangeError) -> PyErr {
    let raised = ChangeError::new_err(error.to_string());
    let value = raised.value(py);
    let set = value
        .setattr("position", error.position)
        .and_then(|()| value.setattr("entry", PyEntryName(error.entry)))
        .and_then(|()| value.setattr("reason", error.reason.to_string()));
    set.err().unwrap_or(raised)
}

/// Returns the exception for a register error.
pub(crate) fn register(error: &axon_pipeline::RegisterError) -> PyErr {
    RegisterError::new_err(error.to_string())
}

/// Returns the exception for a lost switch.
pub(crate) fn gone(error: &ChannelError) -> PyErr {
    SwitchGone::new_err(format!("the switch is gone: {error}"))
}

/// Returns the port register with this name, as written in the paper.
///
/// # Errors
/// No port register has this name.
pub(crate) fn named_register(name: &str) -> PyResult<Register> {
    Register::of_port(name).ok_or_else(|| {
        let expected = "expected one of a port, as OUTPUT_QUEUE_BYTES_PORT0";
        RegisterError::new_err(format!("no register {name:?}: {expected}"))
    })
}
