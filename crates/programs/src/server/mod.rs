//! Parts common to the forwarding-server fabrics (BCube, DCell): addresses and packet format,
//! neighbour liveness, ports to a server's own hosts, and the plain Ethernet switches between
//! servers.

mod address;
mod ethernet;
mod hello;
mod host_ports;
mod neighbours;
mod packet;
mod prefixes;

pub use address::AddressBlock;
pub(crate) use address::SERVERS_MAX;
pub(crate) use ethernet::EthernetSwitch;
pub(crate) use hello::Hello;
pub(crate) use host_ports::{HostPorts, hosts_fit};
pub(crate) use neighbours::{Event, Neighbours};
pub(crate) use packet::{Outer, Packet, ipv4_packet};
pub(crate) use prefixes::prefixes;
