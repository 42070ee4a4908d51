//! The names of entries.

use crate::arguments::{Ipv4, Ipv4Prefix, Mac};
use axon_pipeline::{EntryName, MacKey, Register, UdlkId};
use axon_wire::PortNo;
use pyo3::prelude::*;

/// The name of one entry of the tables.
#[pyclass(name = "EntryName", module = "axon", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyEntryName(pub(crate) EntryName);

impl PyEntryName {
    /// The registers of its frames and of their bytes.
    pub(crate) fn registers(self) -> [Register; 2] {
        [Register::EntryFrames(self.0), Register::EntryBytes(self.0)]
    }
}

#[pymethods]
impl PyEntryName {
    /// A lookup key.
    #[staticmethod]
    fn udlk(id: u8) -> PyEntryName {
        PyEntryName(EntryName::Udlk(UdlkId(id)))
    }

    /// An interface.
    #[staticmethod]
    fn interface(number: u16) -> PyEntryName {
        PyEntryName(EntryName::Interface(number))
    }

    /// A group.
    #[staticmethod]
    fn group(number: u16) -> PyEntryName {
        PyEntryName(EntryName::Group(number))
    }

    /// A tunnel.
    #[staticmethod]
    fn tunnel(number: u16) -> PyEntryName {
        PyEntryName(EntryName::Tunnel(number))
    }

    /// An entry of the TCAM.
    #[staticmethod]
    fn tcam(index: u16) -> PyEntryName {
        PyEntryName(EntryName::Tcam(index))
    }

    /// An entry of the MAC table.
    #[staticmethod]
    #[pyo3(signature = (mac, bridge = 0))]
    fn mac(mac: Mac, bridge: u16) -> PyEntryName {
        PyEntryName(EntryName::Mac(MacKey { bridge, mac: mac.0 }))
    }

    /// An entry of the IPv4 table.
    #[staticmethod]
    fn ipv4(address: Ipv4) -> PyEntryName {
        PyEntryName(EntryName::Ipv4(address.0))
    }

    /// An entry of the MPLS table.
    #[staticmethod]
    fn mpls(label: u32) -> PyEntryName {
        PyEntryName(EntryName::Mpls(label))
    }

    /// A prefix.
    #[staticmethod]
    fn prefix(prefix: Ipv4Prefix) -> PyEntryName {
        PyEntryName(EntryName::Prefix(prefix.0))
    }

    /// The action without a match.
    #[staticmethod]
    fn miss() -> PyEntryName {
        PyEntryName(EntryName::Miss)
    }

    /// The options of a port.
    #[staticmethod]
    fn port(port: u16) -> PyEntryName {
        PyEntryName(EntryName::Port(PortNo(port)))
    }

    /// The name of its table; `None` for what is in none.
    #[getter]
    fn table(&self) -> Option<&'static str> {
        self.0.table().map(|table| table.name())
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<EntryName {}>", self.0)
    }
}
