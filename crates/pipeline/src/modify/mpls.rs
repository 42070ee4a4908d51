//! Push, swap and pop of labels (RFC 3032), with the TTL of the uniform model (RFC 3443).

use super::layout::{expose_ip, insert, ip_header, remove, set_ethertype};
use crate::action::Label;
use crate::frame_type::{FrameType, Parsed};
use axon_node::Drop;
use axon_wire::FrameBuf;
use axon_wire::constants::ethertype;

/// Bytes of a label.
const LABEL: usize = 4;

/// One entry of the label stack.
#[derive(Clone, Copy)]
struct StackEntry(u32);

impl StackEntry {
    const fn new(label: Label, traffic_class: u32, is_bottom: bool, ttl: u8) -> StackEntry {
        StackEntry(label.0 << 12 | traffic_class << 9 | (is_bottom as u32) << 8 | ttl as u32)
    }

    const fn traffic_class(self) -> u32 {
        self.0 >> 9 & 7
    }

    const fn is_bottom(self) -> bool {
        self.0 >> 8 & 1 != 0
    }

    const fn ttl(self) -> u8 {
        self.0 as u8
    }

    const fn with_ttl(self, ttl: u8) -> StackEntry {
        StackEntry(self.0 & !0xff | ttl as u32)
    }
}

/// Returns the entry at the top of the stack.
fn top(frame: &FrameBuf, parsed: &Parsed) -> Result<StackEntry, Drop> {
    if parsed.inner != FrameType::Mpls {
        return Err(Drop::Malformed);
    }
    let rest = frame.bytes().get(usize::from(parsed.network_at)..);
    let label = rest.and_then(|rest| rest.first_chunk()).ok_or(Drop::Malformed)?;
    Ok(StackEntry(u32::from_be_bytes(*label)))
}

fn write(frame: &mut FrameBuf, parsed: &Parsed, entry: StackEntry) {
    let at = usize::from(parsed.network_at);
    if let Some(place) = frame.bytes_mut().get_mut(at..at + LABEL) {
        place.copy_from_slice(&entry.0.to_be_bytes());
    }
}

/// Pushes a label on the stack, or starts one.
pub(super) fn push(frame: &mut FrameBuf, parsed: &mut Parsed, label: Label) -> Result<(), Drop> {
    let entry = match parsed.inner {
        FrameType::Mpls => {
            let below = top(frame, parsed)?;
            StackEntry::new(label, below.traffic_class(), false, below.ttl())
        }
        _ => {
            let header = ip_header(frame, parsed)?;
            StackEntry::new(label, 0, true, header.ttl())
        }
    };
    insert(frame, parsed, LABEL)?;
    write(frame, parsed, entry);
    set_ethertype(frame, parsed, ethertype::MPLS);
    Ok(())
}

/// Replaces the top label.
pub(super) fn swap(frame: &mut FrameBuf, parsed: &mut Parsed, label: Label) -> Result<(), Drop> {
    let before = top(frame, parsed)?;
    let ttl = before.ttl().checked_sub(1).filter(|&ttl| ttl > 0).ok_or(Drop::TtlExpired)?;
    let entry = StackEntry::new(label, before.traffic_class(), before.is_bottom(), ttl);
    write(frame, parsed, entry);
    parsed.label = Some(label.0);
    Ok(())
}

/// Pops the top label.
pub(super) fn pop(frame: &mut FrameBuf, parsed: &mut Parsed) -> Result<(), Drop> {
    let before = top(frame, parsed)?;
    let ttl = before.ttl().checked_sub(1).filter(|&ttl| ttl > 0).ok_or(Drop::TtlExpired)?;
    remove(frame, parsed, LABEL)?;
    if !before.is_bottom() {
        *parsed = Parsed::ethernet(frame.bytes());
        let below = top(frame, parsed)?;
        write(frame, parsed, below.with_ttl(ttl));
        return Ok(());
    }
    expose_ip(frame, parsed)?;
    ip_header(frame, parsed)?.set_ttl(ttl);
    Ok(())
}
