//! ARP requests and neighbour solicitations of hosts, and the answers to them.

use super::context::Cx;
use super::settings::Advertise;
use crate::effect::Effect;
use axon_wire::{MacAddr, PortNo, host_frame, nd};
use core::net::IpAddr;

/// A host that waits for an ARP reply or an advertisement. For an ARP probe (RFC 5227 §1.1) or
/// duplicate address detection (RFC 4862 §5.4) the host has no address of its own yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requester {
    pub(super) mac: MacAddr,
    pub(super) ip: IpAddr,
}

/// A host's ARP packet or neighbour message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressMessage {
    /// Sender, with its own address if it has one.
    pub(super) sender: Requester,
    pub(super) content: Content,
}

/// Content of an ARP packet or neighbour message besides its sender's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Request for the MAC address of this IP address.
    Request(IpAddr),
    /// Reply with the sender's address.
    Reply,
    /// Announcement of the sender's address.
    Announcement,
    /// A request for an address that no host can have.
    Refused,
}

/// Sends an ARP reply or neighbour advertisement with `ip` at `mac`. A host gets none for its own
/// address.
pub(super) fn answer(cx: &mut Cx, port: PortNo, requester: Requester, mac: MacAddr, ip: IpAddr) {
    answer_with(cx, port, requester, (mac, ip), nd::advertisement);
}

/// Sends an ARP reply, or a neighbour advertisement built by `advertise` from a MAC address, its IP
/// address and the requesting host's addresses.
pub(super) fn answer_with(
    cx: &mut Cx,
    port: PortNo,
    requester: Requester,
    (mac, ip): (MacAddr, IpAddr),
    advertisement: Advertise,
) {
    if requester.mac == mac {
        return;
    }
    let frame = match (ip, requester.ip) {
        (IpAddr::V4(ip), IpAddr::V4(to)) => host_frame::reply(mac, ip, requester.mac, to),
        (IpAddr::V6(ip), IpAddr::V6(to)) => {
            let to = (!to.is_unspecified()).then_some((requester.mac, to));
            advertisement(mac, ip, to)
        }
        _ => return,
    };
    cx.out.push(Effect::Host { port, frame });
}
