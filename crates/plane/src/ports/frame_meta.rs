//! The frame descriptor: a frame between its ingress and its egress, and what was parsed of it.
//!
//! It is made once, where the frame comes in, and every later stage reads it: none parses a header
//! again to forward the frame, and the priority stands nowhere else. A message back to a frame's
//! sender (a congestion message, a CNM) reads the reverse list, which is not in it.

use axon_wire::header::{HeaderFields, PacketType};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::priority::Priority;
use axon_wire::{FrameBuf, MacAddr, PortNo, Time, mac_control, vlan};

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// An Ethernet header, of none of the kinds below.
    Ethernet,
    /// An Ethernet header with a link-local address, which ends at this switch.
    LinkLocal,
    /// A MAC control frame, which ends where it comes in wherever it is sent to (IEEE 802.3
    /// clause 31.3).
    MacControl,
    /// An Ethernet header of a probe that the probe units of this switch serve.
    EtherProbe,
    /// An Axon header of a packet of this type.
    Axon(PacketType),
}

impl HeaderKind {
    /// The kind of a frame that begins with an Ethernet header, by its destination and its
    /// EtherType: never `EtherProbe`, for probes are frames like others where no probe unit
    /// serves them. A frame too short for a header is `LinkLocal` if its destination is.
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

    /// Whether the frame concerns this link alone.
    #[inline]
    pub const fn is_link_local(self) -> bool {
        matches!(self, HeaderKind::LinkLocal | HeaderKind::MacControl)
    }

    /// Whether probe units append records to the frame.
    #[inline]
    pub(crate) const fn is_probe(self) -> bool {
        matches!(self, HeaderKind::EtherProbe | HeaderKind::Axon(PacketType::Probe))
    }
}

/// The descriptor of a frame on its way through a switch.
#[derive(Clone, Debug)]
pub struct FrameMeta {
    /// The frame.
    pub frame: FrameBuf,
    /// When its last byte is here.
    pub complete_at: Time,
    /// The port it came in by.
    pub ingress: PortNo,
    /// Its length as it came in, in bytes; 65,535 for what is longer. That is what the shared
    /// memory counts: a route that the edge puts before it is in the route memory already.
    pub came_bytes: u16,
    /// The length of its Axon header, in bytes; 0 without one.
    pub header_bytes: u16,
    /// What it begins with.
    pub kind: HeaderKind,
    /// Its priority (IEEE 802.1Q clause 6.9): that of its Axon header, of its tag where it begins
    /// with an Ethernet header, or the one configured for the control plane's own frames.
    pub priority: Priority,
    /// Whether its FCS fits, which nobody may ask before `complete_at`.
    pub intact: bool,
}

impl FrameMeta {
    /// A frame that has come in by `ingress`, of which nothing is parsed yet: an Ethernet frame of
    /// priority 0. The rest as in [`Input::Frame`](axon_node::Input).
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

    /// The same of a frame that begins with an Ethernet header: its kind and the priority of its
    /// tag are parsed.
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

    /// A frame of the control plane, which is whole and sound.
    #[inline]
    pub fn from_control(frame: FrameBuf, now: Time) -> FrameMeta {
        FrameMeta::new(frame, PortNo::CONTROL, now, true)
    }
}

impl FrameMeta {
    /// The same descriptor at another place in memory. What is rare is handed one of these, so that
    /// the descriptor of a frame that simply passes has no address and stays in registers.
    #[inline(always)]
    pub(crate) fn elsewhere(self) -> FrameMeta {
        let FrameMeta { complete_at, ingress, came_bytes, header_bytes, .. } = self;
        let FrameMeta { frame, kind, priority, intact, .. } = self;
        FrameMeta { frame, complete_at, ingress, came_bytes, header_bytes, kind, priority, intact }
    }

    /// The frame begins with this Axon header.
    #[inline]
    pub fn set_header(&mut self, header: &HeaderFields) {
        self.kind = HeaderKind::Axon(header.packet_type);
        self.priority = header.priority;
        // A header of 16-bit hops is never longer than 16,386 bytes.
        self.header_bytes = header.header_bytes as u16;
    }

    /// Where the head of a probe begins in the frame, in bytes; `None` if it is no probe.
    #[inline]
    pub(crate) fn probe_at(&self) -> Option<usize> {
        match self.kind {
            HeaderKind::EtherProbe => Some(ETHERNET_BYTES),
            HeaderKind::Axon(PacketType::Probe) => Some(self.header_bytes.into()),
            _ => None,
        }
    }

    /// Whether all of it is here, and its FCS does not fit.
    #[inline]
    pub fn is_known_bad(&self, now: Time) -> bool {
        !self.intact && self.complete_at <= now
    }

    /// If it was still coming in by `port`, its tail never comes.
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
