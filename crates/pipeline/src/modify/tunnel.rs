//! IPv4 tunnels with a shim (RFC 2003, without options).

use super::ip;
use super::layout::{expose_ip, insert, ip_header, remove, set_ethertype};
use crate::action::Tunnel;
use crate::frame_type::{FrameType, Parsed};
use axon_node::Drop;
use axon_wire::FrameBuf;
use axon_wire::constants::ethertype;

/// "Don't fragment": unfragmented packets need no identification (RFC 6864).
const DONT_FRAGMENT: u8 = 0x40;

/// Prepends the headers of a tunnel to the IP header. DSCP and ECN are copied to the outer header
/// (RFC 6040 section 4.1).
pub(super) fn push(frame: &mut FrameBuf, parsed: &mut Parsed, tunnel: &Tunnel) -> Result<(), Drop> {
    let tos = ip_header(frame, parsed)?.tos();
    let at = usize::from(parsed.network_at);
    let added = ip::IPV4_BYTES + tunnel.shim.len();
    let total = frame.bytes().len() - at + added;
    let total = u16::try_from(total).map_err(|_| Drop::Oversized)?;
    insert(frame, parsed, added)?;
    let mut header = [0; ip::IPV4_BYTES];
    header[0] = 0x45;
    header[1] = tos;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[6] = DONT_FRAGMENT;
    header[8] = tunnel.ttl;
    header[9] = tunnel.protocol;
    header[12..16].copy_from_slice(&tunnel.source.octets());
    header[16..].copy_from_slice(&tunnel.destination.octets());
    let checksum = ip::checksum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let place = &mut frame.bytes_mut()[at..at + added];
    place[..ip::IPV4_BYTES].copy_from_slice(&header);
    place[ip::IPV4_BYTES..].copy_from_slice(&tunnel.shim);
    set_ethertype(frame, parsed, ethertype::IPV4);
    Ok(())
}

/// Removes the outer IPv4 header and the shim behind it.
pub(super) fn pop(
    frame: &mut FrameBuf,
    parsed: &mut Parsed,
    shim_bytes: usize,
) -> Result<(), Drop> {
    if parsed.inner != FrameType::Ipv4 {
        return Err(Drop::Malformed);
    }
    let tos = ip_header(frame, parsed)?.tos();
    let first = frame.bytes().get(usize::from(parsed.network_at)).copied().unwrap_or(0);
    let header_bytes = usize::from(first & 0xf) * 4;
    if first >> 4 != 4 || header_bytes < ip::IPV4_BYTES {
        return Err(Drop::Malformed);
    }
    remove(frame, parsed, header_bytes + shim_bytes)?;
    expose_ip(frame, parsed)?;
    ip_header(frame, parsed)?.decapsulate_ecn(tos)
}
