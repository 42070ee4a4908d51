//! Changes to table entries.

use crate::action::PyAction;
use crate::arguments::{Ipv4, Ipv4Prefix, Mac, Octets, field, frame_type};
use crate::name::PyEntryName;
use axon_pipeline::{
    Change, Group, Interface, MacKey, PortOptions, TcamEntry, Tunnel, Udlk, UdlkId,
};
use axon_wire::PortNo;
use pyo3::prelude::*;

/// Change to one table entry.
#[pyclass(name = "Change", module = "axon", frozen, eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyChange(pub(crate) Change);

type MaybeAction<'py> = Option<PyRef<'py, PyAction>>;

fn inner(action: MaybeAction<'_>) -> Option<axon_pipeline::Action> {
    action.map(|action| action.0.clone())
}

#[pymethods]
impl PyChange {
    /// Sets a lookup key (SetUDLK) for frames of one type, or of all types.
    #[staticmethod]
    #[pyo3(signature = (id, fields, frame_type = None))]
    fn udlk(id: u8, fields: Vec<String>, frame_type: Option<&str>) -> PyResult<PyChange> {
        let fields = fields.iter().map(|text| field(text)).collect::<PyResult<Vec<_>>>()?;
        let frame_type = frame_type.map(self::frame_type).transpose()?;
        Ok(PyChange(Change::Udlk(UdlkId(id), Some(Udlk { frame_type, fields }))))
    }

    /// Sets an interface (SetVifTable).
    #[staticmethod]
    #[pyo3(signature = (number, port, destination = None, source = None))]
    fn interface(
        number: u16,
        port: u16,
        destination: Option<Mac>,
        source: Option<Mac>,
    ) -> PyChange {
        let port = PortNo(port);
        let destination = destination.map(|mac| mac.0);
        let source = source.map(|mac| mac.0);
        PyChange(Change::Interface(number, Some(Interface { port, destination, source })))
    }

    /// Sets a group of interfaces, which are given by number.
    #[staticmethod]
    fn group(number: u16, interfaces: Vec<u16>) -> PyChange {
        PyChange(Change::Group(number, Some(Group { interfaces })))
    }

    /// Sets a tunnel.
    #[staticmethod]
    fn tunnel(
        number: u16,
        source: Ipv4,
        destination: Ipv4,
        protocol: u8,
        ttl: u8,
        shim: Vec<u8>,
    ) -> PyChange {
        let (source, destination) = (source.0, destination.0);
        let tunnel = Tunnel { source, destination, protocol, ttl, shim };
        PyChange(Change::Tunnel(number, Some(tunnel)))
    }

    /// Sets a TCAM entry. Without a mask, all bits are compared.
    #[staticmethod]
    #[pyo3(signature = (index, udlk, value, mask, action))]
    fn tcam(
        index: u16,
        udlk: u8,
        value: Octets,
        mask: Option<Octets>,
        action: PyRef<'_, PyAction>,
    ) -> PyChange {
        let value = value.0;
        let mask = mask.map_or_else(|| vec![0xff; value.len()], |mask| mask.0);
        let entry = TcamEntry { udlk: UdlkId(udlk), value, mask, action: action.0.clone() };
        PyChange(Change::Tcam(index, Some(entry)))
    }

    /// Sets an entry in the MAC table. Without an action, removes it.
    #[staticmethod]
    #[pyo3(signature = (mac, action, bridge = 0))]
    fn mac(mac: Mac, action: MaybeAction<'_>, bridge: u16) -> PyChange {
        PyChange(Change::Mac(MacKey { bridge, mac: mac.0 }, inner(action)))
    }

    /// Sets an entry in the IPv4 table. Without an action, removes it.
    #[staticmethod]
    #[pyo3(signature = (address, action))]
    fn ipv4(address: Ipv4, action: MaybeAction<'_>) -> PyChange {
        PyChange(Change::Ipv4(address.0, inner(action)))
    }

    /// Sets an entry in the MPLS table. Without an action, removes it.
    #[staticmethod]
    #[pyo3(signature = (label, action))]
    fn mpls(label: u32, action: MaybeAction<'_>) -> PyChange {
        PyChange(Change::Mpls(label, inner(action)))
    }

    /// Sets an entry in the prefix table. Without an action, removes it.
    #[staticmethod]
    #[pyo3(signature = (prefix, action))]
    fn prefix(prefix: Ipv4Prefix, action: MaybeAction<'_>) -> PyChange {
        PyChange(Change::Prefix(prefix.0, inner(action)))
    }

    /// Sets the action for frames that match no entry. Without one, they are dropped as `no_route`.
    #[staticmethod]
    #[pyo3(signature = (action))]
    fn miss(action: MaybeAction<'_>) -> PyChange {
        PyChange(Change::Miss(inner(action)))
    }

    /// Sets the lookup options of a port.
    #[staticmethod]
    #[pyo3(signature = (port, bridge, routed, learn, axon = false))]
    fn port(port: u16, bridge: u16, routed: bool, learn: bool, axon: bool) -> PyChange {
        let options = PortOptions { bridge, routed, learn, axon };
        PyChange(Change::Port(PortNo(port), Some(options)))
    }

    /// Removes an entry. It is no error if the entry does not exist.
    #[staticmethod]
    fn remove(entry: &PyEntryName) -> PyChange {
        PyChange(entry.0.removal())
    }

    /// Name of the entry that the change sets or removes.
    #[getter]
    fn entry(&self) -> PyEntryName {
        PyEntryName(self.0.entry())
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
