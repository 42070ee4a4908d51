//! Gateway function of a host: answers for addresses outside the fabric.

use crate::host::config::HostConfig;
use axon_wire::{MacAddr, echo, host_frame};
use smoltcp::wire::Ipv4Cidr;
use std::net::IpAddr;

/// Returns the answer to a ping to an outside address, from that address. Returns `None` for other
/// frames and for hosts that are not a gateway.
pub(crate) fn answer(frame: &[u8], config: &HostConfig) -> Option<Vec<u8>> {
    let (ip, prefix_len) = config.fixed.filter(|_| config.is_gateway)?;
    if MacAddr::destination_of(frame) != Some(config.mac) {
        return None;
    }
    let Some(IpAddr::V4(to)) = host_frame::destination_ip(frame) else { return None };
    let outside = !Ipv4Cidr::new(ip, prefix_len).contains_addr(&to);
    outside.then(|| echo::reply(frame, (config.mac, to))).flatten()
}
