//! Changes of a port's classes and of its flow control while frames are queued, by DCBX or an
//! operator.
//!
//! *Classes*: a frame waits in the class of its priority, so when the mapping of priorities changes
//! each queued frame moves to its new class at once. Frames of one priority and one ingress move
//! from one old queue to one new queue, so their order is kept; none is dropped, left in a class
//! that is no longer served, or overtaken by later ones. Scheduling, congestion points and
//! watermarks start afresh. *Flow control*: a priority that loses it is no longer paused by the
//! peer, and the peer gets XON for it; for a priority that gets it, XOFF is sent at once where its
//! group already fills its headroom.

use super::Ports;
use crate::qos::schedule::{Schedule, ScheduleConfig, ScheduleFault};
use alloc::vec::Vec;
use axon_node::{Action, Drop, PortKind};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{PortNo, Time};

impl Ports {
    /// Sets the kind of `port`. Frames queued there that do not suit the new kind are dropped as
    /// [`Drop::KindChanged`] when they are scheduled. Hosts may have to be paused at once for all
    /// layers of a priority: [`Ports::timeout`] is due then, or the wire is awaited.
    pub fn set_kind(&mut self, port: PortNo, kind: PortKind) {
        if !self.wires.set_kind(port, kind) {
            return;
        }
        let (is_up, is_free) = (self.wires.is_up(port), self.wires.is_free(port));
        let Some(dcb) = self.dcb.as_deref_mut() else { return };
        if dcb.set_hosts(port, kind == PortKind::Host, is_free) && is_up && !is_free {
            self.wires.wait_for(port);
        }
    }

    /// Maps the priorities of `port` to classes with this schedule, from now on. Has no effect at a
    /// port without traffic classes.
    ///
    /// # Errors
    /// An invalid schedule, or the class of a priority that it does not serve; then nothing has
    /// changed.
    pub fn set_classes(
        &mut self,
        now: Time,
        port: PortNo,
        prio_tc: [TrafficClass; PRIORITIES],
        schedule: &ScheduleConfig,
        out: &mut Vec<Action>,
    ) -> Result<(), ScheduleFault> {
        schedule.serves(&prio_tc)?;
        let schedule = Schedule::new(schedule)?;
        let Some(dcb) = self.dcb.as_deref_mut() else { return Ok(()) };
        if !dcb.set_classes(now, port, prio_tc, schedule) {
            return Ok(());
        }
        self.wires.watch(port, dcb.is_watched(port));
        // Each frame queued for the port moves to the class of its priority.
        let mut refused = Vec::new();
        for (before, item) in self.queues.drain(port) {
            let frame = (item.group, item.bytes.into());
            let class = dcb.reclass(now, &item.meta, (port, before), frame);
            // The frame was admitted on arrival, so its room is not checked again.
            refused.extend(self.queues.push(item, (port, class), false).err());
        }
        self.signal_senders(now, out);
        for item in refused {
            self.discard(item.meta, Drop::QueueFull, out);
        }
        self.check_storms(now, port, out);
        self.resume(now, port, out);
        Ok(())
    }

    /// Enables PFC for these priorities of `port`, and for no others, from now on.
    pub fn set_pfc(&mut self, now: Time, port: PortNo, pfc: PrioritySet, out: &mut Vec<Action>) {
        let Some(dcb) = self.dcb.as_deref_mut() else { return };
        let Some(due) = dcb.set_pfc(now, port, pfc) else { return };
        self.check_storms(now, port, out);
        if due && self.wires.is_busy(port) {
            self.wires.wait_for(port);
        }
        self.resume(now, port, out);
    }

    /// Prevents frames of `priority` from starting at `port` before `until`, regardless of its
    /// peer, because the reaction point allows no more.
    pub fn hold_back(
        &mut self,
        now: Time,
        port: PortNo,
        priority: Priority,
        until: Time,
        out: &mut Vec<Action>,
    ) {
        let Some(dcb) = self.dcb.as_deref_mut() else { return };
        if dcb.hold_back(now, port, priority, until) {
            self.resume(now, port, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::FrameMeta;
    use crate::qos::dcb::DcbConfig;
    use crate::qos::schedule::{Algorithm, Weights};
    use alloc::vec;
    use axon_wire::mac_control::{MacControl, Pfc, Quanta};
    use axon_wire::{Bytes, FrameBuf, MacAddr, Rate, Span};
    use proptest::prelude::*;

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const OUT: PortNo = PortNo(2);
    const NOW: Time = Time::ZERO;

    fn class(number: u8) -> TrafficClass {
        TrafficClass::new(number).unwrap()
    }

    fn set(priorities: &[usize]) -> PrioritySet {
        priorities.iter().map(|&priority| Priority::ALL[priority]).collect()
    }

    /// Returns three ports with carrier; priority 3 is lossless, 200 bytes reserved and headroom.
    fn ports(pfc: PrioritySet) -> Ports {
        let mut config = DcbConfig { pfc, ..DcbConfig::lossy(vec![Rate::gbps(10); 3], MAC) };
        config.memory.lossless = set(&[3]);
        for port in &mut config.memory.groups {
            (port[3].reserved, port[3].headroom) = (Bytes(200), Bytes(10_000));
        }
        let mut ports = Ports::new(3, Bytes(10_000));
        ports.set_dcb(config, Priority::MAX).unwrap();
        (0..3).for_each(|port| ports.link(NOW, PortNo(port), true, &mut Vec::new()));
        ports
    }

    /// Returns a tagged frame of 100 bytes that contains a number.
    fn frame(priority: u8, number: u8) -> FrameBuf {
        let mut bytes = [0; 100];
        bytes[12..15].copy_from_slice(&[0x81, 0, priority << 5]);
        bytes[20] = number;
        FrameBuf::new(&bytes)
    }

    fn deliver(ports: &mut Ports, ingress: u16, frame: FrameBuf) -> Vec<Action> {
        let mut out = Vec::new();
        let meta = FrameMeta::ethernet(frame, PortNo(ingress), NOW, true);
        ports.deliver(NOW, meta, OUT, None, &mut out);
        out
    }

    /// Returns priority and number of the frames that leave.
    fn left(out: &[Action]) -> Vec<(u8, u8)> {
        let frame = |action: &Action| match action {
            Action::Transmit { port: OUT, frame, .. } => {
                Some((frame.bytes()[14] >> 5, frame.bytes()[20]))
            }
            Action::Transmit { .. } => None,
            other => panic!("{other:?}"),
        };
        out.iter().filter_map(frame).collect()
    }

    /// Returns the PFC frames that a port sends.
    fn pfc_sent(out: &[Action], by: PortNo) -> Vec<Pfc> {
        let pfc = |action: &Action| match action {
            Action::Transmit { port, frame, .. } if *port == by => {
                match MacControl::parse(frame.bytes(), MAC) {
                    Ok(MacControl::Pfc(pfc)) => Some(pfc),
                    _ => None,
                }
            }
            _ => None,
        };
        out.iter().filter_map(pfc).collect()
    }

    fn receive_pause(ports: &mut Ports, stop: PrioritySet) -> Vec<Action> {
        let bytes = MacControl::Pfc(Pfc::of(stop, Quanta::MAX)).emit(MAC);
        let mut out = Vec::new();
        ports.mac_control(NOW, FrameMeta::new(FrameBuf::new(&bytes), OUT, NOW, true), &mut out);
        out.retain(|action| !matches!(action, Action::Dropped { reason: Drop::MacControl, .. }));
        out
    }

    fn strict(classes: usize) -> ScheduleConfig {
        ScheduleConfig::of(vec![Algorithm::Strict; classes])
    }

    #[test]
    fn frames_that_wait_go_to_the_class_of_their_priority_at_once() {
        let mut ports = ports(PrioritySet::EMPTY);
        for priority in [0, 7, 5, 1, 5] {
            deliver(&mut ports, 0, frame(priority, 0));
        }
        // Priority 0 is on the wire. Reversed: 5 becomes class 2, 7 class 0, 1 class 6.
        let upside_down = core::array::from_fn(|priority| class(7 - priority as u8));
        let mut out = Vec::new();
        ports.set_classes(NOW, OUT, upside_down, &strict(8), &mut out).unwrap();
        assert_eq!(left(&out), [], "the wire is taken");
        let memory = ports.dcb().unwrap().memory();
        assert_eq!([0, 2, 6].map(|n| memory.queued(OUT, class(n)).0), [100, 200, 100]);
        (0..5).for_each(|_| ports.tx_done(NOW, OUT, &mut out));
        assert_eq!(left(&out).iter().map(|one| one.0).collect::<Vec<_>>(), [1, 5, 5, 7]);
        assert_eq!(ports.dcb().unwrap().memory().used(), Bytes(0));
    }

    #[test]
    fn a_stop_holds_the_new_class_of_its_priority_and_lets_go_the_old() {
        let mut ports = ports(set(&[3]));
        let mut together = TrafficClass::ALL;
        together[4] = class(3);
        ports.set_classes(NOW, OUT, together, &strict(8), &mut Vec::new()).unwrap();
        assert_eq!(left(&receive_pause(&mut ports, set(&[3]))), []);
        assert_eq!(left(&deliver(&mut ports, 0, frame(4, 1))), [], "it shares a class with 3");
        let mut out = Vec::new();
        ports.set_classes(NOW, OUT, TrafficClass::ALL, &strict(8), &mut out).unwrap();
        assert_eq!(left(&out), [(4, 1)], "by itself again");
        ports.tx_done(NOW, OUT, &mut out);
        assert_eq!(left(&deliver(&mut ports, 0, frame(3, 2))), [], "3 is still stopped");
    }

    #[test]
    fn classes_that_nobody_serves_are_refused_and_nothing_changes() {
        let mut ports = ports(PrioritySet::EMPTY);
        let mut try_it =
            |schedule| ports.set_classes(NOW, OUT, TrafficClass::ALL, &schedule, &mut Vec::new());
        assert_eq!(try_it(strict(5)), Err(ScheduleFault::Unserved(class(5))));
        let half = ScheduleConfig::of([Algorithm::Ets { percent: 50 }; 8]);
        assert_eq!(try_it(half), Err(ScheduleFault::EtsSum(400)));
        let dcb = ports.dcb().unwrap();
        assert_eq!(Priority::ALL.map(|of| dcb.class_of(OUT, of).unwrap()), TrafficClass::ALL);
        assert_eq!(dcb.class_of(PortNo(9), Priority::ZERO), None);
        let config =
            DcbConfig { schedule: strict(5), ..DcbConfig::lossy(vec![Rate::gbps(10)], MAC) };
        let set = Ports::new(1, Bytes(0)).set_dcb(config, Priority::MAX);
        assert_eq!(set, Err(ScheduleFault::Unserved(class(5)).into()));
    }

    #[test]
    fn weights_follow_the_traffic_from_the_carrier_and_from_a_new_schedule_on() {
        let window = Span::from_millis(10);
        let weights = Weights::ByteFair { window, size_added_bytes: 4 };
        let shares = ScheduleConfig::of([Algorithm::Ets { percent: 50 }; 2]);
        let (schedule, prio_tc) = (ScheduleConfig { weights, ..shares }, [class(1); PRIORITIES]);
        let config = DcbConfig::lossy(vec![Rate::gbps(10)], MAC);
        let config = DcbConfig { schedule: schedule.clone(), prio_tc, ..config };
        let mut ports = Ports::new(1, Bytes(0));
        ports.set_dcb(config, Priority::MAX).unwrap();
        assert_eq!(ports.deadline(), None);
        let mut out = Vec::new();
        ports.link(NOW, PortNo(0), true, &mut out);
        assert_eq!(ports.deadline(), Some(NOW + window));
        let later = NOW + Span::from_millis(7);
        ports.set_classes(later, PortNo(0), prio_tc, &schedule, &mut out).unwrap();
        assert_eq!(ports.deadline(), Some(later + window));
    }

    #[test]
    fn flow_control_for_a_priority_without_it_is_counted_once_for_each() {
        let mut ports = ports(set(&[3]));
        receive_pause(&mut ports, set(&[1, 3, 7]));
        assert_eq!(ports.counters().port(OUT).pfc_ignored, 2);
        assert_eq!(ports.dcb().unwrap().pauses(OUT).unwrap().paused(NOW), set(&[3]));
        receive_pause(&mut ports, set(&[3]));
        assert_eq!(ports.counters().port(OUT).pfc_ignored, 2);
    }

    #[test]
    fn a_priority_that_loses_flow_control_goes_on_here_and_at_the_peer() {
        let mut ports = ports(set(&[3]));
        receive_pause(&mut ports, set(&[3]));
        for number in 0..4 {
            let out = deliver(&mut ports, 0, frame(3, number));
            // From the third on the priority group is in its headroom.
            assert_eq!(pfc_sent(&out, PortNo(0)).len(), usize::from(number == 2), "{number}");
        }
        ports.tx_done(NOW, PortNo(0), &mut Vec::new());
        let mut out = Vec::new();
        ports.set_pfc(NOW, PortNo(0), PrioritySet::EMPTY, &mut out);
        assert_eq!(pfc_sent(&out, PortNo(0)), [Pfc::of(set(&[3]), Quanta::ZERO)]);
        out.clear();
        ports.set_pfc(NOW, OUT, PrioritySet::EMPTY, &mut out);
        assert_eq!(left(&out), [(3, 0)], "no longer stopped");
        assert_eq!(ports.dcb().unwrap().pauses(OUT).unwrap().paused(NOW), PrioritySet::EMPTY);
    }

    #[test]
    fn a_priority_that_gets_flow_control_while_its_headroom_fills_is_stopped_at_once() {
        let mut ports = ports(PrioritySet::EMPTY);
        for number in 0..5 {
            assert_eq!(pfc_sent(&deliver(&mut ports, 0, frame(3, number)), PortNo(0)), []);
        }
        let mut out = Vec::new();
        ports.set_pfc(NOW, PortNo(0), set(&[3, 4]), &mut out);
        assert_eq!(pfc_sent(&out, PortNo(0)), [Pfc::of(set(&[3]), Quanta::MAX)]);
        assert_eq!(ports.dcb().unwrap().pfc(PortNo(0)), set(&[3, 4]));
        assert_eq!(
            [1, 9].map(|port| ports.dcb().unwrap().pfc(PortNo(port))),
            [PrioritySet::EMPTY; 2]
        );
    }

    proptest! {
        /// For any mapping of classes while frames come and go: each frame leaves, those of one
        /// ingress and priority in order of arrival, and all room is released.
        #[test]
        fn no_frame_is_lost_stuck_or_overtaken(
            steps in prop::collection::vec((0..2_u16, 0..8_u8, 0..4_u8), 1..120),
            maps in prop::collection::vec(prop::array::uniform8(0..8_u8), 4),
        ) {
            let mut ports = ports(PrioritySet::EMPTY);
            let (mut out, mut maps) = (Vec::new(), maps.into_iter().cycle());
            let mut sent: [[Vec<u8>; 8]; 2] = Default::default();
            for (number, (ingress, priority, what)) in steps.into_iter().enumerate() {
                match what {
                    0 => ports.tx_done(NOW, OUT, &mut out),
                    1 => {
                        let map = maps.next().unwrap();
                        let classes = *map.iter().max().unwrap();
                        let schedule = strict(usize::from(classes) + 1);
                        ports.set_classes(NOW, OUT, map.map(class), &schedule, &mut out).unwrap();
                    }
                    _ => {
                        // The number names the ingress, too.
                        let number = number as u8 & 0x7f | (ingress as u8) << 7;
                        sent[usize::from(ingress)][usize::from(priority)].push(number);
                        out.extend(deliver(&mut ports, ingress, frame(priority, number)));
                    }
                }
            }
            while ports.queues().frames(OUT) > 0 {
                ports.tx_done(NOW, OUT, &mut out);
            }
            let mut come: [[Vec<u8>; 8]; 2] = Default::default();
            for (priority, number) in left(&out) {
                come[usize::from(number >> 7)][usize::from(priority)].push(number);
            }
            prop_assert_eq!(come, sent);
            prop_assert_eq!(ports.dcb().unwrap().memory().used(), Bytes(0));
            for class in TrafficClass::ALL {
                prop_assert_eq!(ports.dcb().unwrap().memory().queued(OUT, class), Bytes(0));
            }
        }
    }
}
