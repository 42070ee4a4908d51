//! Registers: counters and states accessed by control programs by name (ReadRegister,
//! WriteRegister; paper 004 §3.3.2).

use crate::change::EntryName;
use axon_wire::PortNo;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Register of the `PortNo` or entry given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Register {
    /// Bytes queued for the wire of a port (`OUTPUT_QUEUE_BYTES_PORT0` of the paper).
    QueueBytes(PortNo),
    /// Frames queued for the wire of a port.
    QueueFrames(PortNo),
    /// Frames received on a port.
    RxFrames(PortNo),
    /// Bytes received on a port, without FCS.
    RxBytes(PortNo),
    /// Frames sent by a port.
    TxFrames(PortNo),
    /// Bytes sent by a port, without FCS.
    TxBytes(PortNo),
    /// Frames received on a port and dropped, for any reason other than normal operation
    /// ([`Drop::is_ordinary`](axon_node::Drop::is_ordinary)).
    Dropped(PortNo),
    /// 1 if the port has carrier, else 0.
    PortUp(PortNo),
    /// Frames that matched an entry since it was set.
    EntryFrames(EntryName),
    /// Bytes of frames that matched an entry, as received, without FCS.
    EntryBytes(EntryName),
    /// Frames per second that a port may send to the control program; writable.
    CpuRate(PortNo),
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Register::QueueBytes(port) => write!(f, "OUTPUT_QUEUE_BYTES_PORT{}", port.0),
            Register::QueueFrames(port) => write!(f, "OUTPUT_QUEUE_FRAMES_PORT{}", port.0),
            Register::RxFrames(port) => write!(f, "RX_FRAMES_PORT{}", port.0),
            Register::RxBytes(port) => write!(f, "RX_BYTES_PORT{}", port.0),
            Register::TxFrames(port) => write!(f, "TX_FRAMES_PORT{}", port.0),
            Register::TxBytes(port) => write!(f, "TX_BYTES_PORT{}", port.0),
            Register::Dropped(port) => write!(f, "DROPPED_PORT{}", port.0),
            Register::PortUp(port) => write!(f, "PORT_UP_PORT{}", port.0),
            Register::CpuRate(port) => write!(f, "CPU_RATE_PORT{}", port.0),
            Register::EntryFrames(entry) => write!(f, "ENTRY_FRAMES {entry}"),
            Register::EntryBytes(entry) => write!(f, "ENTRY_BYTES {entry}"),
        }
    }
}

impl Register {
    /// Returns the register of a port by its name, in the format of [`Display`](fmt::Display) and
    /// of the paper; `None` if there is none of that name.
    pub fn of_port(name: &str) -> Option<Register> {
        let (what, port) = name.rsplit_once("_PORT")?;
        let port = PortNo(port.parse().ok()?);
        Some(match what {
            "OUTPUT_QUEUE_BYTES" => Register::QueueBytes(port),
            "OUTPUT_QUEUE_FRAMES" => Register::QueueFrames(port),
            "RX_FRAMES" => Register::RxFrames(port),
            "RX_BYTES" => Register::RxBytes(port),
            "TX_FRAMES" => Register::TxFrames(port),
            "TX_BYTES" => Register::TxBytes(port),
            "DROPPED" => Register::Dropped(port),
            "PORT_UP" => Register::PortUp(port),
            "CPU_RATE" => Register::CpuRate(port),
            _ => return None,
        })
    }
}

/// Errors in reading or writing a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegisterError {
    /// The switch has no such port.
    #[error("there is no port {0}")]
    NoSuchPort(PortNo),
    /// There is no such entry.
    #[error("there is no entry {0}")]
    NoSuchEntry(EntryName),
    /// The register is read-only.
    #[error("{0} can only be read")]
    ReadOnly(Register),
    /// The value is out of range.
    #[error("{value} is out of range: expected 0 to {max}")]
    Range {
        /// The value to be written.
        value: u64,
        /// The highest value.
        max: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_of_a_port_is_found_by_the_name_that_it_prints() {
        let port = PortNo(7);
        for register in [
            Register::QueueBytes(port),
            Register::QueueFrames(port),
            Register::RxFrames(port),
            Register::RxBytes(port),
            Register::TxFrames(port),
            Register::TxBytes(port),
            Register::Dropped(port),
            Register::PortUp(port),
            Register::CpuRate(port),
        ] {
            assert_eq!(Register::of_port(&alloc::format!("{register}")), Some(register));
        }
        assert_eq!(
            Register::of_port("OUTPUT_QUEUE_BYTES_PORT0"),
            Some(Register::QueueBytes(PortNo(0)))
        );
        assert_eq!(Register::of_port("OUTPUT_QUEUE_BYTES_PORT65536"), None);
        assert_eq!(Register::of_port("NOTHING_PORT0"), None);
    }
}
