//! Congestion message of a full output (thesis 000 §3.2.1).

use axon_wire::congestion::Congestion;
use axon_wire::header::{self, HeaderView, HopWidth, PacketType};
use axon_wire::{Bytes, FrameBuf, Hops, MacAddr, PortNo};

/// Description of the output that had no room for a packet.
pub(crate) struct Full {
    pub egress: PortNo,
    pub queued: Bytes,
    /// MAC of the switch.
    pub switch: MacAddr,
}

/// Returns the message about a refused packet: an Axon packet, to be sent by this control plane.
///
/// The reverse list is the way back; its last hop is the edge port of the packet's sender, and is
/// replaced by the control plane there. `ingress` precedes the list if the packet has not taken its
/// hop yet. Only frames of hosts are answered: control packets have their own recovery, and
/// messages about messages would never end.
pub(crate) fn message(
    packet: &[u8],
    width: HopWidth,
    ingress: Option<PortNo>,
    full: &Full,
) -> Option<FrameBuf> {
    let view = HeaderView::parse(packet, width).ok()?;
    if view.packet_type() != PacketType::Ethernet {
        return None;
    }
    let mut hops = way_back(&view, ingress)?;
    let last = hops.0.last_mut()?;
    let host_port = core::mem::replace(last, PortNo::CONTROL);
    let congestion = Congestion {
        egress: full.egress,
        host_port,
        queued: full.queued,
        switch: full.switch,
        destination: MacAddr::destination_of(view.payload())?,
        source: MacAddr::source_of(view.payload())?,
    };
    let length = width.header_bytes(hops.len());
    let mut frame = FrameBuf::with_headroom(length, &congestion.emit());
    frame.push_front(length).ok()?;
    header::emit(frame.bytes_mut(), width, PacketType::Congestion, &hops, &[]).ok()?;
    Some(frame)
}

/// Returns the way back to the host that sent a packet: the reverse list, behind `ingress` if the
/// packet has not taken its hop yet. Its last hop is the port of the host; `None` for a packet of a
/// control plane.
pub(crate) fn way_back(view: &HeaderView<'_>, ingress: Option<PortNo>) -> Option<Hops> {
    let reverse = view.reverse();
    let hops: Hops = ingress.into_iter().chain(reverse.iter().copied()).collect();
    hops.last().is_some_and(|last| *last != PortNo::CONTROL).then_some(hops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use axon_wire::FrameBuf;

    const WIDTH: HopWidth = HopWidth::Eight;

    fn packet(packet_type: PacketType, reverse: &Hops) -> Vec<u8> {
        let mut bytes = vec![0; WIDTH.header_bytes(1 + reverse.len())];
        header::emit(&mut bytes, WIDTH, packet_type, &[PortNo(9)], reverse).unwrap();
        bytes.extend_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        bytes
    }

    fn answer(packet: &[u8], ingress: Option<PortNo>) -> Option<FrameBuf> {
        let full = Full { egress: PortNo(9), queued: Bytes(7), switch: MacAddr([2; 6]) };
        message(packet, WIDTH, ingress, &full)
    }

    #[test]
    fn the_message_goes_back_to_the_edge_and_names_the_host_port() {
        let bytes = packet(PacketType::Ethernet, &Hops::from([4, 5, 6]));
        for (ingress, expected) in [
            (None, Hops::from([4, 5, PortNo::CONTROL.0])),
            (Some(PortNo(3)), Hops::from([3, 4, 5, PortNo::CONTROL.0])),
        ] {
            let frame = answer(&bytes, ingress).unwrap();
            let view = HeaderView::parse(frame.bytes(), WIDTH).unwrap();
            assert_eq!(view.packet_type(), PacketType::Congestion);
            assert_eq!((view.forward(), view.reverse_count()), (expected, 0));
            assert!(frame.bytes().len() >= 60);
            let message = Congestion::parse(view.payload()).unwrap();
            assert_eq!((message.host_port, message.egress), (PortNo(6), PortNo(9)));
            assert_eq!(message.destination, MacAddr([2, 0, 0, 0, 0, 1]));
        }
    }

    #[test]
    fn only_frames_of_hosts_are_answered() {
        for packet_type in [PacketType::Control, PacketType::Probe, PacketType::Congestion] {
            assert_eq!(answer(&packet(packet_type, &Hops::from([4])), None), None);
        }
        let of_control = packet(PacketType::Ethernet, &Hops::from([4, PortNo::CONTROL.0]));
        assert_eq!(answer(&of_control, None), None, "no host sent it");
        assert_eq!(answer(&packet(PacketType::Ethernet, &Hops::default()), None), None);
        let short = &packet(PacketType::Ethernet, &Hops::from([4]))[..12];
        assert_eq!(answer(short, None), None);
    }
}
