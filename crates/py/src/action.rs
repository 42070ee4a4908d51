//! Actions of table entries, built step by step.

use crate::arguments::Mac;
use axon_pipeline::{Action, Label, Mirror, Modify, Target};
use axon_wire::{Layer, PortNo, Route};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Action of a table entry: the target of a frame, its modifications and an optional mirror copy.
#[pyclass(name = "Action", module = "axon", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyAction(pub(crate) Action);

impl PyAction {
    fn to(target: Target) -> PyAction {
        PyAction(Action::from(target))
    }

    fn with(&self, modify: Modify) -> PyAction {
        PyAction(self.0.clone().with(modify))
    }
}

#[pymethods]
impl PyAction {
    /// Drops the frame, which is counted as `denied`.
    #[staticmethod]
    fn drop() -> PyAction {
        PyAction::to(Target::Drop)
    }

    /// Sends the frame to the control program.
    #[staticmethod]
    fn cpu() -> PyAction {
        PyAction::to(Target::Cpu)
    }

    /// Sends the frame out of a port.
    #[staticmethod]
    fn port(port: u16) -> PyAction {
        PyAction::to(Target::Port(PortNo(port)))
    }

    /// Sends the frame out of the port of an interface, with the interface's MACs.
    #[staticmethod]
    fn interface(number: u16) -> PyAction {
        PyAction::to(Target::Interface(number))
    }

    /// Sends a copy to every member of a group, except those on the ingress port or without
    /// carrier.
    #[staticmethod]
    fn group(number: u16) -> PyAction {
        PyAction::to(Target::Group(number))
    }

    /// Sends the frame to one member of a group that has carrier, selected by the flow hash.
    #[staticmethod]
    fn spread(number: u16) -> PyAction {
        PyAction::to(Target::Spread(number))
    }

    /// Leaves the target to lower TCAM entries and the other tables. For TCAM entries that only
    /// mirror or count frames.
    #[staticmethod]
    fn tables() -> PyAction {
        PyAction::to(Target::Tables)
    }

    /// Decrements the IPv4 TTL or the IPv6 hop limit.
    fn decrement_ttl(&self) -> PyAction {
        self.with(Modify::DecrementTtl)
    }

    /// Sets the DSCP, 0 to 63.
    fn set_dscp(&self, dscp: u8) -> PyAction {
        self.with(Modify::SetDscp(dscp))
    }

    /// Pushes an MPLS label.
    fn mpls_push(&self, label: u32) -> PyAction {
        self.with(Modify::MplsPush(Label(label)))
    }

    /// Replaces the top MPLS label.
    fn mpls_swap(&self, label: u32) -> PyAction {
        self.with(Modify::MplsSwap(Label(label)))
    }

    /// Pops the top MPLS label.
    fn mpls_pop(&self) -> PyAction {
        self.with(Modify::MplsPop)
    }

    /// Prepends the headers of a tunnel to the IP header.
    fn tunnel_push(&self, number: u16) -> PyAction {
        self.with(Modify::TunnelPush(number))
    }

    /// Removes the outer IPv4 header and the `shim_bytes` bytes after it.
    #[pyo3(signature = (shim_bytes = 0))]
    fn tunnel_pop(&self, shim_bytes: u8) -> PyAction {
        self.with(Modify::TunnelPop { shim_bytes })
    }

    /// Replaces the destination MAC.
    fn set_destination(&self, mac: Mac) -> PyAction {
        self.with(Modify::SetDestination(mac.0))
    }

    /// Replaces the source MAC.
    fn set_source(&self, mac: Mac) -> PyAction {
        self.with(Modify::SetSource(mac.0))
    }

    /// Prepends the Axon header of a route to the frame. `hops` are the egress ports in order, and
    /// `layer` is 0 to 7.
    #[pyo3(signature = (hops, layer = 0))]
    fn axon_push(&self, hops: Vec<u16>, layer: u8) -> PyResult<PyAction> {
        let expected = || PyValueError::new_err(format!("no layer {layer}: expected 0 to 7"));
        let layer = Layer::new(layer).ok_or_else(expected)?;
        let hops = hops.into_iter().map(PortNo).collect();
        Ok(self.with(Modify::AxonPush(Route { hops, layer, tagged: false })))
    }

    /// Consumes the next hop of an Axon packet.
    fn axon_hop(&self) -> PyAction {
        self.with(Modify::AxonHop)
    }

    /// Changes the type of an Axon packet that could not be forwarded to Error.
    fn axon_error(&self) -> PyAction {
        self.with(Modify::AxonError)
    }

    /// Removes the Axon header.
    fn axon_strip(&self) -> PyAction {
        self.with(Modify::AxonStrip)
    }

    /// Sends a copy of the frame, as received, to the control program.
    fn mirror_to_cpu(&self) -> PyAction {
        PyAction(self.0.clone().mirrored(Mirror::Cpu))
    }

    /// Sends a copy of the frame, as received, out of a port.
    fn mirror_to(&self, port: u16) -> PyAction {
        PyAction(self.0.clone().mirrored(Mirror::Port(PortNo(port))))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
