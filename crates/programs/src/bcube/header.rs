//! BCube header (paper 004, figure 5): an IPv4 header, eight next hops in reverse order, the BCube
//! protocol, and the number of valid next hops.
//!
//! The TTL is the index. A server that receives TTL t takes next hop NHA_(t-1), so a packet with
//! TTL 2 has one hop left, and a packet with TTL 1 has arrived. Standard hardware decrements the
//! TTL.

use super::cube::{Cube, NHAS_MAX, Nha};
use super::paths::{self, Path};
use crate::server::{AddressBlock, Outer, Packet};
use alloc::vec::Vec;
use axon_pipeline::Tunnel;
use axon_wire::MacAddr;

/// IP protocol number, which is unassigned (IANA, 148 to 252).
pub(super) const IP_PROTOCOL: u8 = 200;
/// Length in bytes of the shim that follows the IPv4 header: eight next hops, protocol, NH,
/// padding.
pub(super) const SHIM_BYTES: usize = 12;
/// Offset of the BCube protocol in the shim.
const PROTOCOL: usize = 8;
/// Offset of NH in the shim.
const COUNT: usize = 9;

/// Purpose of a packet (BCube protocol field).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Packet from a host.
    Data = 1,
    /// Neighbour discovery (ND).
    Discovery = 2,
    /// Query about available bandwidth (ABQ), its answer, and failure reports.
    Query = 3,
}

/// BCube packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BcubePacket<'a> {
    /// Number of the sending server.
    pub(super) source: u32,
    /// Destination server, and the slot of the host on it.
    pub(super) destination: (u32, u8),
    pub(super) purpose: Purpose,
    /// TTL: remaining hops, 0 to 7, plus one.
    pub(super) ttl: u8,
    /// Path from the sending to the receiving server.
    pub(super) path: Path,
    /// Payload that follows the header.
    pub(super) body: &'a [u8],
}

/// Returns the shim for a path.
fn shim(purpose: Purpose, path: &[Nha]) -> Vec<u8> {
    let mut shim = alloc::vec![0; SHIM_BYTES];
    for (place, nha) in shim.iter_mut().zip(path.iter().rev().take(NHAS_MAX)) {
        *place = nha.0;
    }
    shim[PROTOCOL] = purpose as u8;
    shim[COUNT] = path.len().min(NHAS_MAX) as u8;
    shim
}

/// Returns the tunnel header that carries a host's packets along a path from the source.
pub(super) fn tunnel(source: u32, destination: (u32, u8), path: &[Nha]) -> Tunnel {
    let (server, slot) = destination;
    Tunnel {
        source: AddressBlock::BCUBE.address(source, 0),
        destination: AddressBlock::BCUBE.address(server, slot),
        protocol: IP_PROTOCOL,
        ttl: path.len().min(NHAS_MAX) as u8,
        shim: shim(Purpose::Data, path),
    }
}

impl<'a> BcubePacket<'a> {
    /// Parses the BCube packet in a frame. Returns `None` if there is none.
    pub(super) fn parse(frame: &'a [u8]) -> Option<BcubePacket<'a>> {
        let packet = Packet::parse(frame, IP_PROTOCOL)?;
        let (shim, body) = packet.rest.split_first_chunk::<SHIM_BYTES>()?;
        let purpose = match shim[PROTOCOL] {
            1 => Purpose::Data,
            2 => Purpose::Discovery,
            3 => Purpose::Query,
            _ => return None,
        };
        let count = usize::from(shim[COUNT]);
        let path = shim[..NHAS_MAX].get(..count)?.iter().rev().map(|&nha| Nha(nha)).collect();
        let (source, _) = AddressBlock::BCUBE.parse(packet.outer.source)?;
        let destination = AddressBlock::BCUBE.parse(packet.outer.destination)?;
        Some(BcubePacket { source, destination, purpose, ttl: packet.outer.ttl, path, body })
    }

    /// Returns the frame that carries the packet between two neighbours.
    pub(super) fn emit(&self, destination: MacAddr, source: MacAddr) -> Vec<u8> {
        let (server, slot) = self.destination;
        let outer = Outer {
            source: AddressBlock::BCUBE.address(self.source, 0),
            destination: AddressBlock::BCUBE.address(server, slot),
            protocol: IP_PROTOCOL,
            ttl: self.ttl,
        };
        let mut rest = shim(self.purpose, &self.path);
        rest.extend_from_slice(self.body);
        Packet { outer, rest: &rest }.emit(destination, source)
    }

    /// Returns the next hop for a server that holds this packet.
    pub(super) fn next_hop(&self) -> Option<Nha> {
        let left = usize::from(self.ttl).checked_sub(1)?;
        let taken = self.path.len().checked_sub(left)?;
        self.path.get(taken).copied()
    }

    /// Returns the path from `own` back to the source, or `None` if the packet cannot have come
    /// here along its path.
    pub(super) fn way_back(&self, cube: Cube, own: u32) -> Option<Path> {
        let left = usize::from(self.ttl).checked_sub(1)?;
        let taken = self.path.get(..self.path.len().checked_sub(left)?)?;
        let servers = paths::servers(cube, self.source, taken);
        let is_here = servers.len() == taken.len() + 1 && servers.last() == Some(&own);
        let back = servers.iter().zip(taken).rev();
        is_here
            .then(|| back.map(|(&server, &nha)| cube.toward(server, cube.level_of(nha))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> BcubePacket<'static> {
        BcubePacket {
            source: 1,
            destination: (4, 0),
            purpose: Purpose::Query,
            ttl: 2,
            path: alloc::vec![Nha(0), Nha(5)],
            body: &[7; 20],
        }
    }

    #[test]
    fn the_header_is_that_of_figure_five() {
        let frame = packet().emit(MacAddr([2; 6]), MacAddr([4; 6]));
        assert_eq!((frame[22], frame[23]), (2, IP_PROTOCOL), "TTL and protocol");
        assert_eq!(frame[26..34], [240, 0, 0, 0x10, 240, 0, 0, 0x40], "addresses");
        assert_eq!(frame[34..42], [5, 0, 0, 0, 0, 0, 0, 0], "the last hop is NHA_1");
        assert_eq!(frame[42..46], [3, 2, 0, 0], "BCube protocol, NH, padding");
        assert_eq!(BcubePacket::parse(&frame), Some(packet()));
        let tunnel = tunnel(1, (4, 0), &packet().path);
        assert_eq!(tunnel.shim[..8], frame[34..42]);
        assert_eq!((tunnel.ttl, tunnel.shim[8]), (2, Purpose::Data as u8));
    }

    #[test]
    fn the_index_counts_down_to_the_last_hop_and_the_way_back_is_the_way_here() {
        let cube = Cube::new(4, 1).unwrap();
        let at = |ttl| BcubePacket { ttl, ..packet() };
        assert_eq!(at(3).next_hop(), Some(Nha(0)));
        assert_eq!(at(2).next_hop(), Some(Nha(5)));
        assert_eq!(at(1).next_hop(), None, "it has arrived");
        assert_eq!((at(0).next_hop(), at(4).next_hop()), (None, None));
        assert_eq!(at(2).way_back(cube, 0), Some(alloc::vec![Nha(1)]), "from 00 to 01");
        assert_eq!(at(1).way_back(cube, 4), Some(alloc::vec![Nha(4), Nha(1)]));
        assert_eq!(at(1).way_back(cube, 5), None, "the path does not lead there");
        assert_eq!(at(9).way_back(cube, 4), None);
    }

    #[test]
    fn what_is_no_header_is_not_parsed() {
        let frame = packet().emit(MacAddr([2; 6]), MacAddr([4; 6]));
        for (place, value) in [(42, 4), (43, 9)] {
            let mut wrong = frame.clone();
            wrong[place] = value;
            assert_eq!(BcubePacket::parse(&wrong), None, "byte {place}");
        }
        let rest = &[0; SHIM_BYTES - 1];
        let outer = Packet::parse(&frame, IP_PROTOCOL).unwrap().outer;
        let short = Packet { outer, rest }.emit(MacAddr([2; 6]), MacAddr([4; 6]));
        assert_eq!(BcubePacket::parse(&short), None);
    }
}
