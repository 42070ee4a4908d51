//! Validity rules of Ethernet frames from and to hosts, and of Axon packets.

use alloc::vec::Vec;
use axon_node::Drop;
use axon_wire::cn::CnTag;
use axon_wire::constants::length::{ETHERNET_ADDRESSES, TAG};
use axon_wire::header::{HeaderView, HopWidth, PacketType};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::mac_control;
use axon_wire::vlan::{TagKind, VlanId, VlanTag};
use axon_wire::{FrameBuf, MacAddr};

/// Returns the reason why a host may not send or receive `frame`: it is too short for an Ethernet
/// header, or longer than `bytes_max` bytes (without FCS, VLAN tag and CN-TAG). `None` if it may.
pub(super) fn fault(frame: &[u8], bytes_max: usize) -> Option<Drop> {
    if frame.len() < ETHERNET_BYTES {
        return Some(Drop::Malformed);
    }
    let mut tail = &frame[ETHERNET_ADDRESSES..];
    let is_vlan = VlanTag::parse(tail).is_some();
    if is_vlan {
        tail = tail.get(TAG..).unwrap_or_default();
    }
    let has_cn_tag = CnTag::parse(tail).is_some();
    let tags_bytes = TAG * (usize::from(is_vlan) + usize::from(has_cn_tag));
    (frame.len() > bytes_max + tags_bytes).then_some(Drop::Oversized)
}

/// Returns the drop reason of a frame to a port of unknown kind.
pub(super) fn unknown_egress(up: bool) -> Drop {
    if up { Drop::EgressUnknown } else { Drop::PortDown }
}

/// Returns whether a frame is for the other end of its link only: link-local, or MAC control to any
/// address (IEEE 802.3 clause 31.3).
pub(super) fn is_link_local(frame: &[u8]) -> bool {
    let destination = MacAddr::destination_of(frame);
    destination.is_some_and(MacAddr::is_link_local) || mac_control::is_mac_control(frame)
}

/// Builds a new frame from one in a VLAN: the addresses, the egress tag, if any, and the rest. A
/// frame in no VLAN is unchanged. Returns `false` if there is no room.
pub(super) fn retag(frame: &mut FrameBuf, vlan: VlanId, tagged: bool) -> bool {
    if vlan.is_none() {
        return true;
    }
    let (addresses, rest) = frame.bytes().split_at(ETHERNET_ADDRESSES);
    let came = VlanTag::parse(rest);
    let rest = if came.is_some() { &rest[TAG..] } else { rest };
    let VlanTag { pcp, dei, .. } = came.unwrap_or_default();
    let vid = if tagged { vlan.value() } else { 0 };
    let tag = VlanTag { kind: TagKind::Customer, pcp, dei, vid };
    // A tag of all zeros is omitted.
    let tag = if tag == VlanTag::default() { Vec::new() } else { tag.emit().to_vec() };
    let new = [addresses, &tag, rest].concat();
    let longer = new.len().saturating_sub(frame.bytes().len());
    frame.pop_front(frame.bytes().len().saturating_sub(new.len()));
    if frame.push_front(longer).is_err() {
        return false;
    }
    frame.bytes_mut().copy_from_slice(&new);
    true
}

/// Returns the length of the Axon header of a packet, in bytes; 0 without a valid one.
pub(super) fn header_bytes(packet: &[u8], width: HopWidth) -> usize {
    HeaderView::parse(packet, width).map_or(0, |view| view.header_bytes())
}

/// Returns whether a packet is a control message.
pub(super) fn is_control(packet: &[u8], width: HopWidth) -> bool {
    let view = HeaderView::parse(packet, width);
    view.is_ok_and(|view| view.packet_type() == PacketType::Control)
}
