//! DCell header on the programmable plane. It consists of an outer IPv4 header with the address of
//! the destination, and a shim with the proxy flag, the purpose and the address of the proxy.

use crate::server::{AddressBlock, Outer, Packet};
use alloc::vec::Vec;
use axon_pipeline::Tunnel;
use axon_wire::MacAddr;
use core::net::Ipv4Addr;

/// IP protocol number, which is unassigned (IANA, 148 to 252).
pub(super) const IP_PROTOCOL: u8 = 201;
/// Length of the shim in bytes: flag, purpose, two zeros, the address of the proxy.
pub(super) const SHIM_BYTES: usize = 8;
/// TTL of each header, which exceeds the length of any path with a detour.
const TTL: u8 = 64;
/// Flag for a packet that is sent via a proxy.
pub(super) const BY_PROXY: u8 = 1;

/// Purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Packet from a host, with or without its DCell header.
    Data = 1,
    /// Announcement from a neighbour.
    Hello = 2,
}

fn shim(flag: u8, purpose: Purpose, proxy: Ipv4Addr) -> Vec<u8> {
    [&[flag, purpose as u8, 0, 0][..], &proxy.octets()].concat()
}

/// Returns the header for packets from a host.
pub(super) fn tunnel(source: u32, destination: (u32, u8)) -> Tunnel {
    let (server, slot) = destination;
    Tunnel {
        source: AddressBlock::DCELL.address(source, 0),
        destination: AddressBlock::DCELL.address(server, slot),
        protocol: IP_PROTOCOL,
        ttl: TTL,
        shim: shim(0, Purpose::Data, Ipv4Addr::UNSPECIFIED),
    }
}

/// Returns the additional header for packets that are sent via a proxy.
pub(super) fn by_proxy(source: u32, proxy: u32) -> Tunnel {
    let address = AddressBlock::DCELL.address(proxy, 0);
    Tunnel {
        source: AddressBlock::DCELL.address(source, 0),
        destination: address,
        protocol: IP_PROTOCOL,
        ttl: TTL,
        shim: shim(BY_PROXY, Purpose::Data, address),
    }
}

/// Returns the frame that carries an announcement.
pub(super) fn hello(source: u32, body: &[u8], mac: MacAddr) -> Vec<u8> {
    let outer = Outer {
        source: AddressBlock::DCELL.address(source, 0),
        destination: Ipv4Addr::BROADCAST,
        protocol: IP_PROTOCOL,
        ttl: 1,
    };
    let mut rest = shim(0, Purpose::Hello, Ipv4Addr::UNSPECIFIED);
    rest.extend_from_slice(body);
    Packet { outer, rest: &rest }.emit(MacAddr::BROADCAST, mac)
}

/// Returns the body of an announcement frame.
pub(super) fn parse_hello(frame: &[u8]) -> Option<&[u8]> {
    let packet = Packet::parse(frame, IP_PROTOCOL)?;
    let (shim, body) = packet.rest.split_first_chunk::<SHIM_BYTES>()?;
    (shim[1] == Purpose::Hello as u8).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_found_and_nothing_else_is() {
        let mac = MacAddr([2; 6]);
        let frame = hello(3, &[7; 12], mac);
        assert_eq!(parse_hello(&frame), Some(&[7; 12][..]));
        assert_eq!(frame[34..42], [0, 2, 0, 0, 0, 0, 0, 0]);
        let mut data = frame.clone();
        data[35] = Purpose::Data as u8;
        assert_eq!(parse_hello(&data), None);
        assert_eq!(parse_hello(&frame[..40]), None);
    }

    #[test]
    fn the_proxy_stands_in_the_shim_beside_its_flag() {
        let tunnel = by_proxy(3, 9);
        assert_eq!(tunnel.shim, [1, 1, 0, 0, 241, 0, 0, 0x90]);
        assert_eq!(super::tunnel(3, (9, 1)).shim, [0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(super::tunnel(3, (9, 1)).destination, Ipv4Addr::new(241, 0, 0, 0x91));
    }
}
