//! Network plan as plain tuples, which `axon/plan.py` converts, and ARP answers.

use crate::arguments::Mac;
use axon_external::message::Place;
use axon_programs::{Neighbour, Plan, Shape};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;

/// Port: the peer node and its port, or the host, or neither, and the rate in bits per second.
type PlainPort = (Option<(u32, u16)>, Option<u32>, u64);
/// Name, MAC, ports.
type PlainNode = (String, String, Vec<PlainPort>);
/// Name, MAC, address, node, port.
type PlainHost = (String, String, String, u32, u16);
/// Topology name, then `n` and `k`, which are zero if the topology has none.
type PlainShape = (&'static str, u32, u32);
/// Shape, nodes, hosts, prefix length in bits, own node, seed.
pub(crate) type PlainPlace = (PlainShape, Vec<PlainNode>, Vec<PlainHost>, u8, u32, u64);

/// Converts the plan and the position of a program in it to plain tuples.
pub(crate) fn plain(place: &Place) -> PlainPlace {
    let Plan { shape, nodes, hosts, prefix_len } = &place.plan;
    let shape = match *shape {
        Shape::Other => ("other", 0, 0),
        Shape::FatTree { k } => ("fat_tree", 0, k),
        Shape::Bcube { n, k } => ("bcube", n, k),
        Shape::Dcell { n, k } => ("dcell", n, k),
    };
    let nodes = nodes.iter().map(|node| {
        let ports = node.ports.iter().map(|port| {
            let (there, host) = match port.neighbour {
                Neighbour::Nothing | Neighbour::Agent => (None, None),
                Neighbour::Node(node, port) => (Some((node, port.0)), None),
                Neighbour::Host(host) => (None, Some(host)),
            };
            (there, host, port.rate.bits_per_second())
        });
        (node.name.clone(), node.mac.to_string(), ports.collect())
    });
    let hosts = hosts.iter().map(|host| {
        (host.name.clone(), host.mac.to_string(), host.ip.to_string(), host.node, host.port.0)
    });
    (shape, nodes.collect(), hosts.collect(), *prefix_len, place.node, place.seed)
}

/// Returns the answer to a host's ARP request if `frame` is one and `macs` contains the requested
/// address.
#[pyfunction]
pub(crate) fn arp_answer<'py>(
    py: Python<'py>,
    frame: &[u8],
    macs: HashMap<String, Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let mut fault = None;
    let answer = axon_programs::arp::answer(frame, |ip| {
        let mac = macs.get(&ip.to_string())?.extract::<Mac>();
        mac.map_err(|error| fault = Some(error)).ok().map(|mac| mac.0)
    });
    match fault {
        Some(error) => Err(PyValueError::new_err(error.to_string())),
        None => Ok(answer.map(|answer| PyBytes::new(py, &answer))),
    }
}
