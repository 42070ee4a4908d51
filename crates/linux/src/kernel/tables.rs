//! Interface to the kernel's tables, which lets tests replace them.

use super::{Kernel, KernelError, KernelSettings, Traffic};
use axon_node::PortKind;
use axon_wire::{MacAddr, PortNo, Route};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Tables that the kernel uses for forwarding. After an error, they are unchanged.
pub trait Tables {
    /// Returns the settings of the tables.
    fn settings(&self) -> &KernelSettings;

    /// Sets the kind of the peer of a port, and the ifindex of its device. Ifindex 0 means no
    /// carrier.
    ///
    /// # Errors
    /// No such port, or the kernel's error.
    fn set_port(&mut self, port: PortNo, ifindex: u32, kind: PortKind) -> Result<(), KernelError>;

    /// Returns the ifindex of a port's device and the kind of its peer, as last set.
    ///
    /// # Errors
    /// No such port, or the kernel's error.
    fn port(&self, port: PortNo) -> Result<(u32, PortKind), KernelError>;

    /// Installs the route of a flow, replacing any earlier one.
    ///
    /// # Errors
    /// There is no such port, the table is full, the route is too long for the programs, or the
    /// kernel reports an error.
    fn set_route(
        &mut self,
        port: PortNo,
        destination: MacAddr,
        route: &Route,
    ) -> Result<(), KernelError>;

    /// Removes a route. Returns whether it existed.
    ///
    /// # Errors
    /// No such port, or the kernel's error.
    fn remove_route(&mut self, port: PortNo, destination: MacAddr) -> Result<bool, KernelError>;

    /// Returns whether a frame has used the route since the last call.
    ///
    /// # Errors
    /// The kernel's error.
    fn take_used(&mut self, port: PortNo, destination: MacAddr) -> Result<bool, KernelError>;

    /// Returns the traffic of a port since its tables were created.
    ///
    /// # Errors
    /// No such port, or the kernel's error.
    fn traffic(&self, port: PortNo) -> Result<Traffic, KernelError>;

    /// Returns the frames and super-packets dropped at the egress queues of device `ifindex`, by
    /// ingress port.
    ///
    /// # Errors
    /// The kernel's error.
    fn queue_drops(&self, ifindex: u32) -> Result<Vec<(PortNo, u64)>, KernelError>;

    /// Returns the frames that were lost because a queue to the node was full.
    fn node_drops(&self) -> u64;

    /// Returns all routes, in no particular order.
    ///
    /// # Errors
    /// The kernel's error.
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

    fn node_drops(&self) -> u64 {
        Kernel::node_drops(self)
    }

    fn routes(&self) -> Result<Vec<(PortNo, MacAddr, Route)>, KernelError> {
        Kernel::routes(self).collect()
    }
}

/// Ifindex of the device of each port. The runtime sets it when it opens a device, before it
/// reports that the port has carrier.
#[derive(Clone, Debug)]
pub struct Devices(Arc<[AtomicU32]>);

impl Devices {
    /// Creates the list for this many ports, without devices.
    pub(crate) fn new(ports: u16) -> Devices {
        Devices((0..ports).map(|_| AtomicU32::new(0)).collect())
    }

    /// Sets the ifindex of a port's device. 0 means no device.
    pub(crate) fn set(&self, port: PortNo, ifindex: u32) {
        if let Some(device) = self.0.get(port.index()) {
            device.store(ifindex, Ordering::Relaxed);
        }
    }

    /// Returns the ifindex of a port's device, or 0 if it has none.
    pub(crate) fn get(&self, port: PortNo) -> u32 {
        self.0.get(port.index()).map_or(0, |device| device.load(Ordering::Relaxed))
    }
}
