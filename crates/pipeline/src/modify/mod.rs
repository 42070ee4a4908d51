//! Modifications of frames by actions of entries.

mod ip;
mod layout;
mod mpls;
mod tunnel;

use crate::action::{Interface, Modify, Tunnel};
use crate::frame_type::{FrameType, Parsed};
use axon_node::Drop;
use axon_plane::routes;
use axon_wire::header::{self, HOPS_MAX, HeaderFields, HopWidth, PacketType};
use axon_wire::{FrameBuf, MacAddr, PortNo};
use layout::ip_header;

/// Byte offsets of destination and source MAC in a frame.
const DESTINATION: usize = 0;
const SOURCE: usize = 6;

/// Inputs of modifications beside the frame.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) ingress: PortNo,
    pub(crate) hop_width: HopWidth,
    pub(crate) tunnel: &'a dyn Fn(u16) -> Option<&'a Tunnel>,
}

/// Applies one modification and updates `parsed`.
///
/// # Errors
/// The drop reason of the frame; earlier modifications are kept.
pub(crate) fn modify(
    frame: &mut FrameBuf,
    parsed: &mut Parsed,
    change: &Modify,
    context: Context<'_>,
) -> Result<(), Drop> {
    match change {
        Modify::DecrementTtl => ip::decrement_ttl(ip_header(frame, parsed)?),
        Modify::SetDscp(dscp) => ip::set_dscp(ip_header(frame, parsed)?, *dscp),
        Modify::MplsPush(label) => mpls::push(frame, parsed, *label),
        Modify::MplsSwap(label) => mpls::swap(frame, parsed, *label),
        Modify::MplsPop => mpls::pop(frame, parsed),
        Modify::TunnelPush(number) => {
            let tunnel = (context.tunnel)(*number).ok_or(Drop::Malformed)?;
            tunnel::push(frame, parsed, tunnel)
        }
        Modify::TunnelPop { shim_bytes } => tunnel::pop(frame, parsed, usize::from(*shim_bytes)),
        Modify::SetDestination(mac) => set_mac(frame, parsed, DESTINATION, *mac),
        Modify::SetSource(mac) => set_mac(frame, parsed, SOURCE, *mac),
        Modify::AxonPush(route) => {
            ethernet_only(parsed)?;
            let header = routes::header_of(route, context.hop_width);
            let header = header.map_err(|_| Drop::NoHeadroom)?;
            frame.push_front(header.len()).map_err(|_| Drop::NoHeadroom)?;
            frame.bytes_mut()[..header.len()].copy_from_slice(&header);
            *parsed = Parsed::axon();
            Ok(())
        }
        Modify::AxonHop => {
            let fields = axon_header(frame, parsed, context.hop_width)?;
            if fields.forward_count == 0 || fields.reverse_count == HOPS_MAX {
                return Err(Drop::Malformed);
            }
            header::advance(frame.bytes_mut(), context.hop_width, context.ingress);
            Ok(())
        }
        Modify::AxonError => {
            axon_header(frame, parsed, context.hop_width)?;
            header::set_type(frame.bytes_mut(), PacketType::Error);
            Ok(())
        }
        Modify::AxonStrip => {
            let fields = axon_header(frame, parsed, context.hop_width)?;
            frame.pop_front(fields.header_bytes);
            *parsed = Parsed::ethernet(frame.bytes());
            Ok(())
        }
    }
}

/// Writes the addresses of the egress interface to a frame.
///
/// # Errors
/// `malformed` for an Axon packet, which has no addresses, if the interface has some.
#[inline]
pub(crate) fn rewrite(
    frame: &mut FrameBuf,
    parsed: &mut Parsed,
    interface: &Interface,
) -> Result<(), Drop> {
    if let Some(mac) = interface.destination {
        set_mac(frame, parsed, DESTINATION, mac)?;
    }
    if let Some(mac) = interface.source {
        set_mac(frame, parsed, SOURCE, mac)?;
    }
    Ok(())
}

fn set_mac(frame: &mut FrameBuf, parsed: &mut Parsed, at: usize, mac: MacAddr) -> Result<(), Drop> {
    ethernet_only(parsed)?;
    let place = frame.bytes_mut().get_mut(at..at + 6).ok_or(Drop::Malformed)?;
    place.copy_from_slice(&mac.0);
    if at == DESTINATION {
        parsed.destination = Some(mac);
    } else {
        parsed.source = Some(mac);
    }
    Ok(())
}

fn ethernet_only(parsed: &Parsed) -> Result<(), Drop> {
    if parsed.frame_type == FrameType::Axon { Err(Drop::Malformed) } else { Ok(()) }
}

fn axon_header(frame: &FrameBuf, parsed: &Parsed, width: HopWidth) -> Result<HeaderFields, Drop> {
    if parsed.frame_type != FrameType::Axon {
        return Err(Drop::Malformed);
    }
    HeaderFields::parse(frame.bytes(), width).map_err(|_| Drop::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::{FrameBuf, Route};

    #[test]
    fn an_axon_header_is_pushed_advanced_made_an_error_and_stripped() {
        for hop_width in [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen] {
            let plain: alloc::vec::Vec<u8> = (0..60).collect();
            let mut frame = FrameBuf::new(&plain);
            let mut parsed = Parsed::ethernet(frame.bytes());
            let context = Context { ingress: PortNo(7), hop_width, tunnel: &|_| None };
            let mut make =
                |change, frame: &mut FrameBuf| modify(frame, &mut parsed, &change, context);
            let refused = Err(Drop::Malformed);
            for change in [Modify::AxonHop, Modify::AxonError, Modify::AxonStrip] {
                assert_eq!(make(change, &mut frame), refused, "there is no header");
            }
            assert_eq!(make(Modify::AxonPush(Route::from([3, 4])), &mut frame), Ok(()));
            assert_eq!(make(Modify::AxonPush(Route::from([3])), &mut frame), refused);
            for change in [Modify::AxonHop, Modify::AxonError] {
                assert_eq!(make(change, &mut frame), Ok(()));
            }
            let mut expected = plain.clone();
            expected.splice(0..0, core::iter::repeat_n(0, hop_width.header_bytes(2)));
            header::emit(&mut expected, hop_width, PacketType::Error, &[PortNo(4)], &[PortNo(7)])
                .unwrap();
            assert_eq!(frame.bytes(), expected);
            assert_eq!(make(Modify::AxonHop, &mut frame), Ok(()));
            assert_eq!(make(Modify::AxonHop, &mut frame), refused, "no hop is left");
            assert_eq!(make(Modify::AxonStrip, &mut frame), Ok(()));
            assert_eq!(frame.bytes(), plain);
            assert_eq!(parsed, Parsed::ethernet(&plain));
        }
    }
}
