//! Frame descriptor: a frame between its ingress and its egress, with its parsed fields.
//!
//! It is made once at ingress, and every later stage reads it: none parses a header again to
//! forward the frame, and the priority is stored nowhere else. Messages back to a frame's sender (a
//! congestion message, a CNM) read the reverse list, which it does not contain.

use axon_wire::header::{HeaderFields, PacketType};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::priority::Priority;
use axon_wire::{FrameBuf, MacAddr, PortNo, Time, mac_control, vlan};

/// Kind of the first header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// An Ethernet header, of none of the other kinds.
    Ethernet,
    /// An Ethernet header with a link-local address, not forwarded by this switch.
    LinkLocal,
    /// A MAC control frame, never forwarded, to any destination (IEEE 802.3 clause 31.3).
    MacControl,
    /// An Ethernet header of a probe that the probe units of this switch serve.
    EtherProbe,
    /// An Axon header of a packet of this type.
    Axon(PacketType),
}

impl HeaderKind {
    /// Returns the kind of a frame that begins with an Ethernet header, by its destination and its
    /// EtherType; never `EtherProbe`, since probes are ordinary frames where no probe unit serves
    /// them. A frame too short for a header is `LinkLocal` if its destination is.
    #[inline]
    pub fn of_ethernet(frame: &[u8]) -> HeaderKind {
        if mac_control::is_mac_control(frame) {
            HeaderKind::MacControl
        } else if MacAddr::destination_of(frame).is_some_and(MacAddr::is_link_local) {
            HeaderKind::LinkLocal
        } else {
            HeaderKind::Ethernet
        }
    }

    /// Returns whether the frame is for this link alone.
    #[inline]
    pub(crate) const fn is_link_local(self) -> bool {
        matches!(self, HeaderKind::LinkLocal | HeaderKind::MacControl)
    }

    /// Returns whether probe units append records to the frame.
    #[inline]
    pub(crate) const fn is_probe(self) -> bool {
        matches!(self, HeaderKind::EtherProbe | HeaderKind::Axon(PacketType::Probe))
    }
}

/// Frame descriptor, on the way through a switch.
#[derive(Clone, Debug)]
pub struct FrameMeta {
    /// The frame.
    pub frame: FrameBuf,
    /// Arrival time of the frame's last byte.
    pub complete_at: Time,
    /// The ingress port.
    pub ingress: PortNo,
    /// Received length in bytes, at most 65,535. The shared memory counts this length: a route that
    /// the edge prepends is in the route memory already.
    pub came_bytes: u16,
    /// Length of the Axon header in bytes; 0 without one.
    pub header_bytes: u16,
    /// Kind of the first header.
    pub kind: HeaderKind,
    /// Priority (IEEE 802.1Q clause 6.9): that of the Axon header, of the tag where the frame
    /// begins with an Ethernet header, or the one configured for the control plane's own frames.
    pub priority: Priority,
    /// True if the FCS is correct; not valid before `complete_at`.
    pub intact: bool,
}

impl FrameMeta {
    /// Returns the descriptor of an unparsed frame received on `ingress`: an Ethernet frame of
    /// priority 0. The other fields are as in [`Input::Frame`](axon_node::Input).
    #[inline]
    pub fn new(frame: FrameBuf, ingress: PortNo, complete_at: Time, intact: bool) -> FrameMeta {
        FrameMeta {
            came_bytes: u16::try_from(frame.length()).unwrap_or(u16::MAX),
            frame,
            complete_at,
            ingress,
            header_bytes: 0,
            kind: HeaderKind::Ethernet,
            priority: Priority::ZERO,
            intact,
        }
    }

    /// Returns the descriptor of a frame that begins with an Ethernet header, with its kind and the
    /// priority of its tag.
    #[inline]
    pub fn ethernet(
        frame: FrameBuf,
        ingress: PortNo,
        complete_at: Time,
        intact: bool,
    ) -> FrameMeta {
        let kind = HeaderKind::of_ethernet(frame.bytes());
        let priority = vlan::priority_of(frame.bytes());
        FrameMeta { kind, priority, ..FrameMeta::new(frame, ingress, complete_at, intact) }
    }

    /// Returns the descriptor of a frame of the control plane, complete and correct.
    #[inline]
    pub(crate) fn from_control(frame: FrameBuf, now: Time) -> FrameMeta {
        FrameMeta::new(frame, PortNo::CONTROL, now, true)
    }
}

impl FrameMeta {
    /// Moves the descriptor to another place in memory. Rare paths take such a copy, so that the
    /// descriptor on the fast path needs no address.
    #[inline(always)]
    pub(crate) fn elsewhere(self) -> FrameMeta {
        let FrameMeta { complete_at, ingress, came_bytes, header_bytes, .. } = self;
        let FrameMeta { frame, kind, priority, intact, .. } = self;
        FrameMeta { frame, complete_at, ingress, came_bytes, header_bytes, kind, priority, intact }
    }

    /// Sets the fields of an Axon header at the start of the frame.
    #[inline]
    pub(crate) fn set_header(&mut self, header: &HeaderFields) {
        self.kind = HeaderKind::Axon(header.packet_type);
        self.priority = header.priority;
        // A header of 16-bit hops is at most 16,386 bytes long.
        self.header_bytes = header.header_bytes as u16;
    }

    /// Returns the byte offset of the head of a probe in the frame; `None` if it is not a probe.
    #[inline]
    pub(crate) fn probe_at(&self) -> Option<usize> {
        match self.kind {
            HeaderKind::EtherProbe => Some(ETHERNET_BYTES),
            HeaderKind::Axon(PacketType::Probe) => Some(self.header_bytes.into()),
            _ => None,
        }
    }

    /// Returns whether the frame is complete and its FCS is wrong.
    #[inline]
    pub(crate) fn is_known_bad(&self, now: Time) -> bool {
        !self.intact && self.complete_at <= now
    }

    /// Marks the frame as broken if it was still arriving by `port`.
    pub(crate) fn break_off(&mut self, now: Time, port: PortNo) {
        if self.ingress == port && self.complete_at > now {
            self.intact = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::FrameBuf;

    fn kind(destination: [u8; 6], ethertype: u16) -> HeaderKind {
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&destination);
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        HeaderKind::of_ethernet(&frame)
    }

    #[test]
    fn the_kind_of_an_ethernet_frame_follows_from_its_destination_and_its_ethertype() {
        let (host, reserved) = ([2, 0, 0, 0, 0, 1], [1, 0x80, 0xc2, 0, 0, 0x0e]);
        assert_eq!(kind(host, 0x0800), HeaderKind::Ethernet);
        assert_eq!(kind(host, mac_control::ETHERTYPE), HeaderKind::MacControl);
        assert_eq!(kind(reserved, mac_control::ETHERTYPE), HeaderKind::MacControl);
        assert_eq!(kind(reserved, 0x88cc), HeaderKind::LinkLocal);
        assert_eq!(HeaderKind::of_ethernet(&reserved), HeaderKind::LinkLocal, "too short");
        assert_eq!(HeaderKind::of_ethernet(&[]), HeaderKind::Ethernet);
    }

    #[test]
    fn the_priority_of_an_ethernet_frame_is_that_of_its_tag() {
        let mut frame = [0; 60];
        frame[12..15].copy_from_slice(&[0x81, 0, 5 << 5]);
        let meta = FrameMeta::ethernet(FrameBuf::new(&frame), PortNo(0), Time::ZERO, true);
        assert_eq!((meta.priority.value(), meta.kind), (5, HeaderKind::Ethernet));
        assert_eq!((meta.came_bytes, meta.header_bytes, meta.probe_at()), (60, 0, None));
    }
}
