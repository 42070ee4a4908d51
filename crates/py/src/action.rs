//! What an entry does with the frames that meet it, built step by step.

use crate::arguments::Mac;
use axon_pipeline::{Action, Label, Mirror, Modify, Target};
use axon_wire::{Layer, PortNo, Route};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The action of an entry: where frames go, what changes in them, and where a copy goes besides.
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
    /// Nowhere; counted as `denied`.
    #[staticmethod]
    fn drop() -> PyAction {
        PyAction::to(Target::Drop)
    }

    /// To the control program.
    #[staticmethod]
    fn cpu() -> PyAction {
        PyAction::to(Target::Cpu)
    }

    /// Out of a port.
    #[staticmethod]
    fn port(port: u16) -> PyAction {
        PyAction::to(Target::Port(PortNo(port)))
    }

    /// Out by an interface, with its addresses.
    #[staticmethod]
    fn interface(number: u16) -> PyAction {
        PyAction::to(Target::Interface(number))
    }

    /// To every member of a group but those at the ingress: a copy each.
    #[staticmethod]
    fn group(number: u16) -> PyAction {
        PyAction::to(Target::Group(number))
    }

    /// To one member of a group with carrier, by the hash of the flow.
    #[staticmethod]
    fn spread(number: u16) -> PyAction {
        PyAction::to(Target::Spread(number))
    }

    /// Where the other entries say: for an entry of the TCAM that mirrors or counts.
    #[staticmethod]
    fn tables() -> PyAction {
        PyAction::to(Target::Tables)
    }

    /// Takes one off TTL or hop limit.
    fn decrement_ttl(&self) -> PyAction {
        self.with(Modify::DecrementTtl)
    }

    /// Sets the DSCP: 0 to 63.
    fn set_dscp(&self, dscp: u8) -> PyAction {
        self.with(Modify::SetDscp(dscp))
    }

    /// Puts a label on top of the stack.
    fn mpls_push(&self, label: u32) -> PyAction {
        self.with(Modify::MplsPush(Label(label)))
    }

    /// Replaces the top label.
    fn mpls_swap(&self, label: u32) -> PyAction {
        self.with(Modify::MplsSwap(Label(label)))
    }

    /// Takes the top label off.
    fn mpls_pop(&self) -> PyAction {
        self.with(Modify::MplsPop)
    }

    /// Puts the headers of a tunnel before the IP header.
    fn tunnel_push(&self, number: u16) -> PyAction {
        self.with(Modify::TunnelPush(number))
    }

    /// Takes the outer IPv4 header off, and so many bytes behind it.
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

    /// Puts the Axon header of a route before the frame: the ports that it leaves by, and the layer
    /// that it travels on.
    #[pyo3(signature = (hops, layer = 0))]
    fn axon_push(&self, hops: Vec<u16>, layer: u8) -> PyResult<PyAction> {
        let expected = || PyValueError::new_err(format!("no layer {layer}: expected 0 to 7"));
        let layer = Layer::new(layer).ok_or_else(expected)?;
        let hops = hops.into_iter().map(PortNo).collect();
        Ok(self.with(Modify::AxonPush(Route { hops, layer, tagged: false })))
    }

    /// Takes the next hop of an Axon packet.
    fn axon_hop(&self) -> PyAction {
        self.with(Modify::AxonHop)
    }

    /// Makes an Axon packet one that could not be forwarded.
    fn axon_error(&self) -> PyAction {
        self.with(Modify::AxonError)
    }

    /// Takes the Axon header off.
    fn axon_strip(&self) -> PyAction {
        self.with(Modify::AxonStrip)
    }

    /// Sends a copy of the frame as it came in to the control program.
    fn mirror_to_cpu(&self) -> PyAction {
        PyAction(self.0.clone().mirrored(Mirror::Cpu))
    }

    /// Sends a copy of the frame as it came in out of a port.
    fn mirror_to(&self, port: u16) -> PyAction {
        PyAction(self.0.clone().mirrored(Mirror::Port(PortNo(port))))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
