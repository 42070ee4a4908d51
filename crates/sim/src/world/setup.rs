//! Initial settings of a world.

use crate::link::links::WireEnd;
use crate::world::python::PythonLoader;
use axon_fabric::model::DataplaneKind;
use axon_simhost::arp_host::ArpHosts;
use std::io::Write;

/// Initial settings of a world, in addition to its fabric.
#[derive(Default)]
pub struct Setup {
    /// Seed of noise and random numbers.
    pub seed: u64,
    /// Data plane of the controller, and of switches that the fabric does not run in gates.
    pub dataplane: DataplaneKind,
    /// Maximum number of routes in a port's table, if below the data plane's own.
    pub routes_per_port: Option<usize>,
    /// True if hosts with a fixed address do not announce it and stay silent until requested.
    pub silent_hosts: bool,
    /// Settings of hosts that implement ARP only; `None` for hosts with an IP stack. Each ARP host
    /// has its address from the fabric, or else the next free one of the pool.
    pub arp_hosts: Option<ArpHosts>,
    /// Loader of Python control programs, for fabrics that have one.
    pub python: Option<PythonLoader>,
    /// Receives the trace as lines of text, if given.
    pub trace: Option<Box<dyn Write>>,
    /// Ports to capture from the start.
    pub capture: Vec<WireEnd>,
}
