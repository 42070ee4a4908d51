//! What the wrapper of a data plane needs of the kernel's tables, so that tests have their own.

use super::{Kernel, KernelError, KernelSettings, Traffic};
use axon_node::PortKind;
use axon_wire::{MacAddr, PortNo, Route};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The tables that the kernel forwards by. After an error they are as before.
pub trait Tables {
    /// What they were made for.
    fn settings(&self) -> &KernelSettings;

    /// Sets what is plugged into a port, and the ifindex of its device; 0: no carrier.
    ///
    /// # Errors
    /// No such port, or what the kernel returned.
    fn set_port(&mut self, port: PortNo, ifindex: u32, kind: PortKind) -> Result<(), KernelError>;

    /// Both, as last set.
    ///
    /// # Errors
    /// No such port, or what the kernel returned.
    fn port(&self, port: PortNo) -> Result<(u32, PortKind), KernelError>;

    /// Makes this the route of the flow, replacing any before it.
    ///
    /// # Errors
    /// No such port, a full table, a route that is too long for the programs, or what the kernel
    /// returned.
    fn set_route(
        &mut self,
        port: PortNo,
        destination: MacAddr,
        route: &Route,
    ) -> Result<(), KernelError>;

    /// Forgets a route; says whether there was one.
    ///
    /// # Errors
    /// No such port, or what the kernel returned.
    fn remove_route(&mut self, port: PortNo, destination: MacAddr) -> Result<bool, KernelError>;

    /// Whether a frame has taken the route since the last call of this.
    ///
    /// # Errors
    /// What the kernel returned.
    fn take_used(&mut self, port: PortNo, destination: MacAddr) -> Result<bool, KernelError>;

    /// What a port has carried since its tables were made.
    ///
    /// # Errors
    /// No such port, or what the kernel returned.
    fn traffic(&self, port: PortNo) -> Result<Traffic, KernelError>;

    /// What the queues of the egress by device `ifindex` have dropped: ingress ports, and how many
    /// frames or super-packets of each.
    ///
    /// # Errors
    /// What the kernel returned.
    fn queue_drops(&self, ifindex: u32) -> Result<Vec<(PortNo, u64)>, KernelError>;

    /// All routes, in no order.
    ///
    /// # Errors
    /// What the kernel returned.
    fn routes(&self) -> Result<Vec<(PortNo, MacAddr, Route)>, KernelError>;
}

impl Tables for Kernel {
    fn settings(&self) -> &KernelSettings {
        Kernel::settings(self)
    }

    fn set_port(&mut self, port: PortNo, ifindex: u32, kind: PortKind) -> Result<(), KernelError> {
        Kernel::set_port(self, port, ifindex, kind)
    }

    fn port(&self, port: PortNo) -> Result<(u32, PortKind), KernelError> {
        Kernel::port(self, port)
    }

    fn set_route(
        &mut self,
        port: PortNo,
        destination: MacAddr,
        route: &Route,
    ) -> Result<(), KernelError> {
        Kernel::set_route(self, port, destination, route)
    }

    fn remove_route(&mut self, port: PortNo, destination: MacAddr) -> Result<bool, KernelError> {
        Kernel::remove_route(self, port, destination)
    }

    fn take_used(&mut self, port: PortNo, destination: MacAddr) -> Result<bool, KernelError> {
        Kernel::take_used(self, port, destination)
    }

    fn traffic(&self, port: PortNo) -> Result<Traffic, KernelError> {
        Kernel::traffic(self, port)
    }

    fn queue_drops(&self, ifindex: u32) -> Result<Vec<(PortNo, u64)>, KernelError> {
        Kernel::queue_drops(self, ifindex)
    }

    fn routes(&self) -> Result<Vec<(PortNo, MacAddr, Route)>, KernelError> {
        Kernel::routes(self).collect()
    }
}

/// The device of each port, by its ifindex: the runtime that opens devices sets them, before it
/// reports the carrier of the port.
#[derive(Clone, Debug)]
pub struct Devices(Arc<[AtomicU32]>);

impl Devices {
    /// Of this many ports, none of which has a device.
    pub fn new(ports: u16) -> Devices {
        Devices((0..ports).map(|_| AtomicU32::new(0)).collect())
    }

    /// Sets the device of a port; 0: none.
    pub fn set(&self, port: PortNo, ifindex: u32) {
        if let Some(device) = self.0.get(port.index()) {
            device.store(ifindex, Ordering::Relaxed);
        }
    }

    /// The device of a port; 0: none.
    pub fn get(&self, port: PortNo) -> u32 {
        self.0.get(port.index()).map_or(0, |device| device.load(Ordering::Relaxed))
    }
}
