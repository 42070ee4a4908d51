//! Native half of the Python module `axon`: the in-memory switch, the program side for a switch in
//! another process, and the agent side of an agent port. The public API is in `python/axon`.
#![deny(unsafe_code)]

mod action;
mod agent;
mod arguments;
mod change;
mod entry;
mod error;
mod memory;
mod name;
mod pattern;
mod plan;
mod remote;

use pyo3::prelude::*;

/// Native half of the module `axon`.
#[pymodule]
#[pyo3(name = "_axon")]
mod native {
    #[pymodule_export]
    use crate::action::PyAction;
    #[pymodule_export]
    use crate::agent::{PyClient, PyPacket, PyPayload};
    #[pymodule_export]
    use crate::change::PyChange;
    #[pymodule_export]
    use crate::entry::{PyEntry, PyExplanation};
    #[pymodule_export]
    use crate::error::{
        ChangeError, FullError, NoSwitchError, NotHeldError, ProtocolError, RefusedError,
        RegisterError, SwitchGone,
    };
    #[pymodule_export]
    use crate::memory::Memory;
    #[pymodule_export]
    use crate::name::PyEntryName;
    #[pymodule_export]
    use crate::pattern::{arrange_tcam, combine_patterns, prefix_pattern, range_patterns};
    #[pymodule_export]
    use crate::plan::arp_answer;
    #[pymodule_export]
    use crate::remote::Remote;

    /// Version of the messages exchanged between a switch and its program.
    #[pymodule_export]
    const PROTOCOL_VERSION: u16 = axon_external::message::VERSION;
}
