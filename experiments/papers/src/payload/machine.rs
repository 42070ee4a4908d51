//! Machines of the paper, for the model and the simulation.

use anyhow::Result;
use axon_model::forwarder::{Plan, run};
use axon_model::hardware::{Bus, HOST_AGENT_US, HOST_MODEL_US, Nic, Overheads};
use axon_model::lanai::Forwarder;

/// Returns the name of a NIC in the paper.
pub fn name(nic: Nic) -> &'static str {
    match nic {
        Nic::Lanai4 => "LANai 4",
        Nic::Lanai7 => "LANai 7",
        Nic::Lanai9 => "LANai 9",
    }
}

/// Returns `on` or `off`.
pub fn on_off(is_caching: bool) -> &'static str {
    if is_caching { "on" } else { "off" }
}

/// Returns the machine of the paper's model: a host of 20 us, and no cost of setting up a DMA.
pub(crate) fn modelled(nic: Nic, bus: Bus, is_caching: bool) -> Forwarder {
    Forwarder { nic, bus, is_caching, host_us: HOST_MODEL_US, overheads: Overheads::NONE }
}

/// Returns the machine that the paper measured: an agent of 4 us, and the fitted cost of setting up
/// a DMA.
pub(crate) fn measured(nic: Nic, bus: Bus, is_caching: bool) -> Forwarder {
    Forwarder { nic, bus, is_caching, host_us: HOST_AGENT_US, overheads: Overheads::FITTED }
}

/// Returns the bandwidth of the simulated machine at saturation, in MB/s.
///
/// # Errors
/// The packet size is not simulated.
pub(crate) fn saturated(forwarder: Forwarder, bytes: u64) -> Result<f64> {
    Ok(run(&Plan::saturated(forwarder, bytes))?.mb_s)
}
