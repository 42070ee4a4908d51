//! A host's IP stack beside smoltcp, as used by applications.

use crate::datagram;
use crate::ipv4::Ipv4;
use crate::nic::Nic;
use crate::resolve::Neighbours;
use crate::tcp::Tcp;
use axon_wire::MacAddr;
use std::net::Ipv4Addr;

/// Parts of a stack. Those for datagrams, which bypass the rest, come first.
#[repr(C)]
pub(crate) struct Stack {
    pub(crate) ip: Ipv4,
    pub(crate) nic: Nic,
    pub(crate) neighbours: Neighbours,
    /// TCP connections.
    pub(crate) tcp: Tcp,
}

impl Stack {
    /// Returns this host's address and the MAC of `target` if both are known. Otherwise starts
    /// resolving the target.
    pub(crate) fn way_to(&mut self, target: Ipv4Addr) -> Option<(Ipv4Addr, MacAddr)> {
        let next = self.ip.next_hop(target.into());
        let known = self.neighbours.known(next);
        if known.is_none() {
            self.neighbours.want(next);
        }
        self.ip.address().zip(known)
    }

    /// Sends one datagram with `bytes` bytes of payload, written by `write`. Returns whether it was
    /// sent: the target's MAC is known and the NIC has room.
    pub(crate) fn send_datagram(
        &mut self,
        ports: (u16, u16),
        target: Ipv4Addr,
        bytes: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> bool {
        let Some((from, mac)) = self.way_to(target) else {
            return false;
        };
        if !self.nic.has_room() {
            return false;
        }
        let addresses = datagram::Addresses {
            source: (self.ip.mac(), from, ports.0),
            target: (mac, target, ports.1),
        };
        self.nic
            .build(datagram::HEADER_BYTES + bytes, |frame| datagram::emit(frame, addresses, write));
        true
    }
}
