//! ARP replies at the edge (RFC 826), which programs send on behalf of hosts that they know.

use alloc::vec::Vec;
use axon_wire::MacAddr;
use axon_wire::host_frame::{Arp, ArpOperation, Kind, classify, reply};

/// Returns the reply to an ARP request in `frame`. `mac_of` maps the target address to the MAC
/// address in the reply. A host that probes its own address (RFC 5227) gets no reply.
pub fn answer(
    frame: &[u8],
    mac_of: impl FnOnce(core::net::Ipv4Addr) -> Option<MacAddr>,
) -> Option<Vec<u8>> {
    let Kind::Arp(arp) = classify(frame) else { return None };
    let Arp { operation: ArpOperation::Request, sender_mac, sender_ip, target_ip, .. } = arp else {
        return None;
    };
    if sender_ip == target_ip || sender_ip.is_unspecified() {
        return None;
    }
    Some(reply(mac_of(target_ip)?, target_ip, sender_mac, sender_ip))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::host_frame::request;
    use core::net::Ipv4Addr;

    #[test]
    fn a_request_for_a_known_address_is_answered_and_nothing_else() {
        let (host, other) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let (own, known) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 3));
        let mac_of = |ip: Ipv4Addr| (ip == known).then_some(other);
        let ask = |ip| request(host, own, MacAddr::BROADCAST, ip);
        let answered = answer(&ask(known), mac_of).unwrap();
        assert_eq!(answered, reply(other, known, host, own));
        assert_eq!(answer(&ask(Ipv4Addr::new(10, 0, 0, 9)), mac_of), None);
        assert_eq!(answer(&ask(own), |_| Some(other)), None, "it asks for itself");
        assert_eq!(answer(&answered, |_| Some(other)), None, "a reply");
    }
}
