//! Blocked buffers: priority groups whose sender is paused, and the queues of their frames.

use super::core::Ports;
use crate::qos::admission::QueueChange;
use alloc::vec::Vec;
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{PortNo, Time};

/// Priority group of a port whose sender is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The queues that frames of the group wait in; none if nothing waits.
    pub waits: Vec<WaitingQueue>,
    /// Frames of the group that have left their queue since the start.
    pub left: u64,
    /// Time of the last change: a frame of the group joined a queue or left it.
    pub since: Time,
}

/// Queue with waiting frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingQueue {
    /// The egress port of the queue.
    pub egress: PortNo,
    /// Priorities for which the peer has paused the queue; if there are none, the queue may send.
    pub paused: PrioritySet,
}

impl Blocked {
    /// Returns the state of the priority group of `ingress` and `priority`, if its sender is paused
    /// because the group has used up its memory.
    pub fn of(ports: &Ports, now: Time, ingress: PortNo, priority: Priority) -> Option<Blocked> {
        let (dcb, queues) = (ports.dcb()?, ports.queues());
        let QueueChange { left, last } = dcb.blocked(ingress, priority)?;
        let mut waits = Vec::new();
        for egress in (0..ports.wires().count()).map(PortNo) {
            for class in queues.waiting_of(egress, (ingress, priority)) {
                let paused = dcb.paused_in_class(now, egress, class);
                waits.push(WaitingQueue { egress, paused });
            }
        }
        Some(Blocked { waits, left, since: last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::FrameMeta;
    use crate::qos::dcb::DcbConfig;
    use alloc::vec;
    use axon_wire::mac_control::{MacControl, Pfc, Quanta};
    use axon_wire::{Bytes, FrameBuf, MacAddr, Rate};

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const THREE: Priority = Priority::ALL[3];

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    /// Returns three ports with carrier; priority 3 is lossless, and sends XOFF from 200 bytes on.
    fn ports() -> Ports {
        let pfc = PrioritySet::only(THREE);
        let mut config = DcbConfig { pfc, ..DcbConfig::lossy(vec![Rate::gbps(10); 3], MAC) };
        config.memory.lossless = pfc;
        for port in &mut config.memory.groups {
            (port[3].reserved, port[3].headroom) = (Bytes(200), Bytes(10_000));
        }
        let mut ports = Ports::new(3, Bytes(10_000));
        ports.set_dcb(config, Priority::MAX).unwrap();
        (0..3).for_each(|port| ports.link(at(0), PortNo(port), true, &mut Vec::new()));
        ports
    }

    fn receive_pause(ports: &mut Ports, now: Time, egress: u16, time: Quanta) {
        let pfc = MacControl::Pfc(Pfc::of(PrioritySet::only(THREE), time)).emit(MAC);
        let pfc = FrameMeta::new(FrameBuf::new(&pfc), PortNo(egress), now, true);
        ports.mac_control(now, pfc, &mut Vec::new());
    }

    /// Delivers a frame of 100 bytes with priority 3.
    fn deliver(ports: &mut Ports, now: Time, ingress: u16, egress: u16) {
        let mut bytes = [0; 100];
        bytes[12..15].copy_from_slice(&[0x81, 0, 3 << 5]);
        let meta = FrameMeta::ethernet(FrameBuf::new(&bytes), PortNo(ingress), now, true);
        ports.deliver(now, meta, PortNo(egress), None, &mut Vec::new());
    }

    #[test]
    fn a_buffer_is_blocked_from_its_last_change_until_its_sender_may_go_on() {
        let mut ports = ports();
        receive_pause(&mut ports, at(0), 2, Quanta::MAX);
        for nanos in [10, 20] {
            deliver(&mut ports, at(nanos), 0, 2);
        }
        assert_eq!(Blocked::of(&ports, at(20), PortNo(0), THREE), None, "it may take more");
        deliver(&mut ports, at(30), 0, 2);
        let held = WaitingQueue { egress: PortNo(2), paused: PrioritySet::only(THREE) };
        let blocked = Blocked { waits: vec![held], left: 0, since: at(30) };
        assert_eq!(Blocked::of(&ports, at(40), PortNo(0), THREE), Some(blocked.clone()));
        assert_eq!(Blocked::of(&ports, at(40), PortNo(0), Priority::ZERO), None);
        assert_eq!(Blocked::of(&ports, at(40), PortNo(9), THREE), None);
        // One leaves, two more arrive: the change shows in the frames that have left only.
        receive_pause(&mut ports, at(50), 2, Quanta::ZERO);
        receive_pause(&mut ports, at(51), 2, Quanta::MAX);
        deliver(&mut ports, at(60), 0, 2);
        let moved = Blocked { left: 1, since: at(60), ..blocked };
        assert_eq!(Blocked::of(&ports, at(70), PortNo(0), THREE), Some(moved));
        receive_pause(&mut ports, at(80), 2, Quanta::ZERO);
        (0..3).for_each(|_| ports.tx_done(at(90), PortNo(2), &mut Vec::new()));
        assert_eq!(Blocked::of(&ports, at(90), PortNo(0), THREE), None, "it is empty");
    }

    #[test]
    fn a_queue_that_may_send_is_named_with_no_stop() {
        let mut ports = ports();
        receive_pause(&mut ports, at(0), 2, Quanta::MAX);
        // The first takes the wire of port 1.
        for egress in [1, 1, 2, 2] {
            deliver(&mut ports, at(1), 0, egress);
        }
        let stopped = [PrioritySet::EMPTY, PrioritySet::only(THREE)];
        let queue = |(egress, paused)| WaitingQueue { egress: PortNo(egress), paused };
        let waits = [1, 2].into_iter().zip(stopped).map(queue).collect::<Vec<_>>();
        assert_eq!(Blocked::of(&ports, at(1), PortNo(0), THREE).unwrap().waits, waits);
    }
}
