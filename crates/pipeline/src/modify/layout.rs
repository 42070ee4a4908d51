//! Header layout of a frame: insertion and removal before the network header, and its EtherType.

use super::ip;
use crate::frame_type::Parsed;
use axon_node::Drop;
use axon_wire::FrameBuf;
use axon_wire::constants::ethertype;
use axon_wire::link::ETHERNET_BYTES;

/// Returns the IP header of a frame and the bytes behind it.
pub(super) fn ip_header<'a>(
    frame: &'a mut FrameBuf,
    parsed: &Parsed,
) -> Result<ip::Header<'a>, Drop> {
    let rest =
        frame.bytes_mut().get_mut(usize::from(parsed.network_at)..).ok_or(Drop::Malformed)?;
    ip::Header::new(rest, parsed.inner)
}

/// Inserts `count` bytes before the network header; the bytes before it move forward.
pub(super) fn insert(frame: &mut FrameBuf, parsed: &Parsed, count: usize) -> Result<(), Drop> {
    frame.push_front(count).map_err(|_| Drop::NoHeadroom)?;
    let at = usize::from(parsed.network_at);
    frame.bytes_mut().copy_within(count..count + at, 0);
    Ok(())
}

/// Removes `count` bytes behind EtherType and tag.
pub(super) fn remove(frame: &mut FrameBuf, parsed: &Parsed, count: usize) -> Result<(), Drop> {
    let at = usize::from(parsed.network_at);
    if frame.bytes().len() < at + count {
        return Err(Drop::Malformed);
    }
    frame.bytes_mut().copy_within(0..at, count);
    frame.pop_front(count);
    Ok(())
}

/// Sets the EtherType before the network header, and parses the frame again.
pub(super) fn set_ethertype(frame: &mut FrameBuf, parsed: &mut Parsed, ethertype: u16) {
    let at = usize::from(parsed.network_at).max(ETHERNET_BYTES);
    if let Some(place) = frame.bytes_mut().get_mut(at - 2..at) {
        place.copy_from_slice(&ethertype.to_be_bytes());
    }
    *parsed = Parsed::ethernet(frame.bytes());
}

/// Sets the EtherType for the IP header now behind EtherType and tag, by its version.
pub(super) fn expose_ip(frame: &mut FrameBuf, parsed: &mut Parsed) -> Result<(), Drop> {
    let first = frame.bytes().get(usize::from(parsed.network_at));
    let ethertype = match first.map(|byte| byte >> 4) {
        Some(4) => ethertype::IPV4,
        Some(6) => ethertype::IPV6,
        _ => return Err(Drop::Malformed),
    };
    set_ethertype(frame, parsed, ethertype);
    Ok(())
}
