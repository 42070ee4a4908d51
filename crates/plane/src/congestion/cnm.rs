//! CNM from a congestion point to the source of a sampled packet (IEEE 802.1Q clauses 30.2 and 33),
//! on its way through the fabric.

use crate::congestion::message as congestion;
use crate::congestion::notification;
use crate::congestion::qcn::{CpConfig, Feedback};
use axon_wire::cn::{self, Cnm, CnmFrame, Tagged};
use axon_wire::header::{self, HeaderView, HopWidth, PacketType};
use axon_wire::priority::{Priority, TrafficClass};
use axon_wire::{FrameBuf, MacAddr, PortNo};

/// A congestion point and its feedback.
pub(crate) struct Sample<'a> {
    pub(crate) feedback: Feedback,
    /// The priority of the sampled packet.
    pub(crate) priority: Priority,
    /// MAC of the switch of the point, its port and its class.
    pub(crate) switch: MacAddr,
    pub(crate) egress: PortNo,
    pub(crate) class: TrafficClass,
    pub(crate) point: &'a CpConfig,
    pub(crate) cnm_priority: Priority,
}

/// Returns the CNM for a sampled packet: an Axon packet whose route is the way back to the port of
/// the host, where it leaves as a plain CNM. `ingress` precedes the list if the packet has not
/// taken its hop yet.
///
/// Between switches it has the priority of CNMs, regardless of its tag: that priority is lossy, so
/// a CNM never uses a buffer whose sender is paused, on a path that was not proved free of
/// deadlocks.
///
/// Sources that would not react get none: a control plane, a CNM, and a frame with a group address
/// as its source.
pub(crate) fn message(
    packet: &[u8],
    width: HopWidth,
    ingress: Option<PortNo>,
    sample: &Sample<'_>,
) -> Option<FrameBuf> {
    let view = HeaderView::parse(packet, width).ok()?;
    let hops = congestion::way_back(&view, ingress)?;
    let sampled = Tagged::parse(view.payload())?;
    if cn::is_cnm(view.payload()) || sampled.source.is_multicast() {
        return None;
    }
    let Feedback { qntz_fb: feedback, offset, delta } = sample.feedback;
    let cpid = notification::cpid(sample.switch, sample.egress, sample.class);
    let said = Cnm { feedback, cpid, offset, delta, ..Cnm::default() };
    let (format, octets) = (&sample.point.format, usize::from(sample.point.header_octets_min));
    let (point, priority) = (sample.switch, sample.cnm_priority);
    let mut answer = CnmFrame::answer(&sampled, point, priority, said, octets, format);
    answer.cnm.priority = sample.priority;
    let length = width.header_bytes(hops.len());
    let mut frame = FrameBuf::with_headroom(length, &answer.emit(format));
    frame.push_front(length).ok()?;
    header::emit(frame.bytes_mut(), width, PacketType::Ethernet, &hops, &[]).ok()?;
    header::set_priority(frame.bytes_mut(), width, priority);
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use axon_wire::{FrameBuf, Hops};

    const WIDTH: HopWidth = HopWidth::Eight;
    const SWITCH: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xc]);

    fn packet(reverse: &Hops, frame: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; WIDTH.header_bytes(1 + reverse.len())];
        header::emit(&mut bytes, WIDTH, PacketType::Ethernet, &[PortNo(9)], reverse).unwrap();
        bytes.extend_from_slice(frame);
        bytes
    }

    /// Priority 3, VLAN 5, flow 7, IPv4.
    const SAMPLED: [u8; 24] =
        [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x81, 0, 0x60, 5, 0x22, 0xe9, 0, 7, 8, 0, 0x45, 0];

    fn answer(packet: &[u8], ingress: Option<PortNo>) -> Option<FrameBuf> {
        answer_by(&CpConfig::default(), packet, ingress)
    }

    fn answer_by(point: &CpConfig, packet: &[u8], ingress: Option<PortNo>) -> Option<FrameBuf> {
        let sample = Sample {
            feedback: Feedback { qntz_fb: 30, offset: -5, delta: 6 },
            priority: Priority::ALL[3],
            switch: SWITCH,
            egress: PortNo(9),
            class: TrafficClass::ALL[3],
            point,
            cnm_priority: Priority::ALL[6],
        };
        message(packet, WIDTH, ingress, &sample)
    }

    #[test]
    fn the_answer_goes_back_to_the_host_as_a_cnm_of_its_flow() {
        let bytes = packet(&Hops::from([4, 5, 6]), &SAMPLED);
        let ways = [(None, Hops::from([4, 5, 6])), (Some(PortNo(3)), Hops::from([3, 4, 5, 6]))];
        for (ingress, expected) in ways {
            let frame = answer(&bytes, ingress).unwrap();
            let view = HeaderView::parse(frame.bytes(), WIDTH).unwrap();
            assert_eq!(view.packet_type(), PacketType::Ethernet);
            assert_eq!((view.forward(), view.reverse_count()), (expected, 0));
            assert_eq!(view.priority(), Priority::ALL[6]);
            let format = CpConfig::default().format;
            let answer = CnmFrame::parse(view.payload(), &format).unwrap();
            assert_eq!(answer.destination, MacAddr([2, 0, 0, 0, 0, 1]));
            assert_eq!((answer.source, answer.cn.unwrap().flow), (SWITCH, 7));
            let tag = answer.vlan.unwrap();
            assert_eq!((tag.pcp, tag.vid), (Priority::ALL[6], 5));
            assert_eq!((answer.cnm.feedback, answer.cnm.offset, answer.cnm.delta), (30, -5, 6));
            assert_eq!(answer.cnm.cpid, 0x0200_0000_000c_004b);
            assert_eq!(answer.cnm.priority, Priority::ALL[3]);
            assert!(view.payload().len() >= 60);
        }
    }

    #[test]
    fn a_tag_that_is_copied_changes_nothing_between_switches() {
        let mut point = CpConfig::default();
        point.format.copies_tag = true;
        let untagged = [&SAMPLED[..12], &SAMPLED[16..]].concat();
        for (sampled, pcp) in [(&SAMPLED[..], Some(Priority::ALL[3])), (&untagged, None)] {
            let frame = answer_by(&point, &packet(&Hops::from([4]), sampled), None).unwrap();
            let view = HeaderView::parse(frame.bytes(), WIDTH).unwrap();
            assert_eq!(view.priority(), Priority::ALL[6]);
            let answer = CnmFrame::parse(view.payload(), &point.format).unwrap();
            assert_eq!(answer.vlan.map(|tag| tag.pcp), pcp);
        }
    }

    #[test]
    fn who_would_not_listen_is_not_answered() {
        let way = Hops::from([4]);
        let of_control = packet(&Hops::from([4, PortNo::CONTROL.0]), &SAMPLED);
        assert_eq!(answer(&of_control, None), None);
        assert_eq!(answer(&packet(&Hops::default(), &SAMPLED), None), None);
        let mut group = SAMPLED;
        group[6] = 3;
        assert_eq!(answer(&packet(&way, &group), None), None);
        let cnm = answer(&packet(&way, &SAMPLED), None).unwrap();
        let view = HeaderView::parse(cnm.bytes(), WIDTH).unwrap();
        assert_eq!(answer(&packet(&way, view.payload()), None), None);
        let twice = [&SAMPLED[..16], &view.payload()[12..]].concat();
        assert_eq!(answer(&packet(&way, &twice), None), None, "behind two tags");
        for length in 0..14 {
            assert_eq!(answer(&packet(&way, &SAMPLED[..length]), None), None, "{length}");
        }
    }
}
