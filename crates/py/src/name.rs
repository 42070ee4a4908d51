//! Names of table entries.

use crate::arguments::{Ipv4, Ipv4Prefix, Mac};
use axon_pipeline::{EntryName, MacKey, Register, UdlkId};
use axon_wire::PortNo;
use pyo3::prelude::*;

/// Name of one table entry.
#[pyclass(name = "EntryName", module = "axon", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyEntryName(pub(crate) EntryName);

impl PyEntryName {
    /// Returns the frame and byte registers of the entry.
    pub(crate) fn registers(self) -> [Register; 2] {
        [Register::EntryFrames(self.0), Register::EntryBytes(self.0)]
    }
}

#[pymethods]
impl PyEntryName {
    /// Returns the name of a lookup key.
    #[staticmethod]
    fn udlk(id: u8) -> PyEntryName {
        PyEntryName(EntryName::Udlk(UdlkId(id)))
    }

    /// Returns the name of an interface.
    #[staticmethod]
    fn interface(number: u16) -> PyEntryName {
        PyEntryName(EntryName::Interface(number))
    }

    /// Returns the name of a group.
    #[staticmethod]
    fn group(number: u16) -> PyEntryName {
        PyEntryName(EntryName::Group(number))
    }

    /// Returns the name of a tunnel.
    #[staticmethod]
    fn tunnel(number: u16) -> PyEntryName {
        PyEntryName(EntryName::Tunnel(number))
    }

    /// Returns the name of a TCAM entry.
    #[staticmethod]
    fn tcam(index: u16) -> PyEntryName {
        PyEntryName(EntryName::Tcam(index))
    }

    /// Returns the name of an entry in the MAC table.
    #[staticmethod]
    #[pyo3(signature = (mac, bridge = 0))]
    fn mac(mac: Mac, bridge: u16) -> PyEntryName {
        PyEntryName(EntryName::Mac(MacKey { bridge, mac: mac.0 }))
    }

    /// Returns the name of an entry in the IPv4 table.
    #[staticmethod]
    fn ipv4(address: Ipv4) -> PyEntryName {
        PyEntryName(EntryName::Ipv4(address.0))
    }

    /// Returns the name of an entry in the MPLS table.
    #[staticmethod]
    fn mpls(label: u32) -> PyEntryName {
        PyEntryName(EntryName::Mpls(label))
    }

    /// Returns the name of an entry in the prefix table.
    #[staticmethod]
    fn prefix(prefix: Ipv4Prefix) -> PyEntryName {
        PyEntryName(EntryName::Prefix(prefix.0))
    }

    /// Returns the name of the action for frames that match no entry.
    #[staticmethod]
    fn miss() -> PyEntryName {
        PyEntryName(EntryName::Miss)
    }

    /// Returns the name of a port's lookup options.
    #[staticmethod]
    fn port(port: u16) -> PyEntryName {
        PyEntryName(EntryName::Port(PortNo(port)))
    }

    /// Name of the table that contains the entry; `None` if the entry is in no table.
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
