//! Names of ports in a proof.

use axon_fabric::assemble::port_name;
use axon_fabric::model::{End, Fabric};

/// Returns the name of a port.
pub(super) fn name(fabric: &Fabric, end: End) -> String {
    port_name(&fabric.switches[end.switch].name, end.port)
}
