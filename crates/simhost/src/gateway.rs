//! Gateway function of a host: answers for addresses outside the fabric.

use axon_wire::{MacAddr, echo, host_frame};
use smoltcp::wire::Ipv4Cidr;
use std::net::IpAddr;

/// Returns the answer of a gateway to a ping to an address outside its subnet, from that address;
/// `None` to other frames.
pub(crate) fn answer(frame: &[u8], mac: MacAddr, subnet: Ipv4Cidr) -> Option<Vec<u8>> {
    if MacAddr::destination_of(frame) != Some(mac) {
        return None;
    }
    let Some(IpAddr::V4(to)) = host_frame::destination_ip(frame) else { return None };
    let outside = !subnet.contains_addr(&to);
    outside.then(|| echo::reply(frame, (mac, to))).flatten()
}
