//! A host's NIC with Data Center Bridging: a queue for each priority, scheduling of traffic
//! classes, PAUSE and PFC in both directions.
//!
//! Transmit: a frame gets the priority of the TCP or UDP port at either of its ends (which DCBX
//! advertises as an application priority, IEEE 802.1Q clause D.2.11), an echo that of the remote
//! host, anything else 0, and is queued by priority. When the wire is free, flow control frames go
//! first; then the scheduled class sends the oldest frame of its priorities that are not paused. A
//! frame of a priority other than 0 leaves with a priority tag (clause 9.6).
//!
//! A datagram socket may have a limited number of frames here. It is then blocked until one has
//! left, like a full socket buffer in a kernel: paused traffic is sent later, not lost. TCP is
//! limited by its window.
//!
//! A priority under congestion notification has a queue for each flow, and its frames also carry a
//! CN-TAG (`flows.rs`).
//!
//! Receive: MAC control frames and CNMs end here and take effect at once. Priority tags and CN-TAGs
//! are removed. If the reader is slow, the receive ring (`rx_ring.rs`) determines when to send
//! XOFF. LLDP ends here if the NIC has an LLDP agent (`lldp_state.rs`).

mod classify;
mod config;
mod flows;
mod lldp_state;
mod queues;
mod sockets;

pub use config::{HostCn, HostDcb, HostFlowControl, RingLimits};

use classify::{Class, Classifier};
use flows::{Head, Waiting};
use lldp_state::LldpState;
use queues::Queues;
use sockets::Sockets;

use axon_node::Drop;
use axon_plane::flow_control::{PauseRequests, PauseState};
use axon_plane::schedule::{ClassSet, Schedule};
use axon_wire::cn::{self, CnTag, CnmFormat, CnmFrame};
use axon_wire::constants::length::ETHERNET_ADDRESSES;
use axon_wire::mac_control::{self, MacControl, MacControlError, Pfc};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::vlan::{TAG_BYTES, VlanTag};
use axon_wire::{FrameBuf, MacAddr, Time, lldp};
use std::net::Ipv4Addr;

/// NIC with Data Center Bridging.
#[derive(Debug)]
pub struct DcbNic {
    config: HostDcb,
    mac: MacAddr,
    classifier: Classifier,
    queues: Queues,
    sockets: Sockets,
    /// Number of CNMs that have slowed a flow down.
    cnms: u64,
    pauses: PauseState,
    requests: PauseRequests,
    schedule: Schedule,
    /// LLDP agent, which advertises the reaction points.
    lldp: Option<LldpState>,
    /// Time at which a frame may be sent or an XOFF is to be refreshed.
    due: Option<Time>,
    /// True if the NIC waits for the wire.
    waits: bool,
}

impl DcbNic {
    /// Returns a NIC in its initial state.
    ///
    /// # Panics
    /// If the schedule is invalid ([`axon_plane::schedule::ScheduleFault`]), or the reaction points
    /// are invalid ([`axon_plane::qcn::RpError`]).
    pub(crate) fn new(config: HostDcb, mac: MacAddr) -> DcbNic {
        if let Some(cn) = &config.cn {
            cn.config.check().expect("valid reaction points");
        }
        let schedule = Schedule::new(&config.schedule).expect("a valid schedule");
        let advertised = config.cn.and_then(|cn| Some((cn.lldp?, cn.cnpvs)));
        let lldp = advertised.map(|(lldp, cnpvs)| LldpState::new(lldp, mac, cnpvs));
        DcbNic {
            config,
            mac,
            classifier: Classifier::default(),
            queues: Queues::default(),
            sockets: Sockets::default(),
            cnms: 0,
            pauses: PauseState::default(),
            requests: PauseRequests::default(),
            schedule,
            lldp,
            due: None,
            waits: false,
        }
    }

    /// Sets the priority of frames with this TCP or UDP port at either end.
    pub fn set_priority(&mut self, port: u16, priority: Priority) {
        self.classifier.set_port(port, priority);
    }

    /// Sets the priority of echo requests and replies to this host.
    pub fn set_echo_priority(&mut self, target: Ipv4Addr, priority: Priority) {
        self.classifier.set_echo(target, priority);
    }

    /// Sets the limit of queued frames per datagram socket, at least 1 and 128 by default (Linux:
    /// `SO_SNDBUF`). A source at its limit is blocked, and its interval to the next datagram begins
    /// when it may send again.
    pub fn set_socket_frames(&mut self, frames: u32) {
        self.sockets.set_limit(frames);
    }

    /// Returns the number of queued frames.
    pub(crate) fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Returns the numbers of flow control frames for a priority, sent (requests) and received
    /// (indications). A sent PAUSE counts for priority 0, a received one for all.
    pub fn counts(&self, priority: Priority) -> (u64, u64) {
        let index = priority.index();
        (self.requests.requests[index], self.pauses.indications[index])
    }

    /// Returns the number of CNMs that have slowed a flow down.
    pub fn cnms(&self) -> u64 {
        self.cnms
    }

    /// Returns the priorities that are currently paused.
    pub fn paused(&self, now: Time) -> PrioritySet {
        self.pauses.paused(now)
    }

    /// Returns whether the datagram socket of this port may send. A refused socket tries again
    /// after [`DcbNic::has_news`].
    pub(crate) fn has_room(&mut self, socket: u16) -> bool {
        self.sockets.has_room(socket)
    }

    /// Returns once whether refused sockets should try again.
    pub(crate) fn has_news(&mut self) -> bool {
        self.sockets.has_news()
    }

    /// Queues a frame by its priority, or by its flow.
    pub(crate) fn put(&mut self, frame: FrameBuf) {
        let Class { priority, ports, is_datagram } = self.classifier.classify(frame.bytes());
        let socket = ports.filter(|_| is_datagram).map(|(source, _)| source);
        if let Some(socket) = socket {
            self.sockets.queued(socket);
        }
        let cn = self.config.cn.as_ref().filter(|cn| cn.cnpvs.contains(priority));
        let has_tag = VlanTag::of_frame(frame.bytes()).is_some();
        let tags = usize::from(priority != Priority::ZERO && !has_tag) + usize::from(cn.is_some());
        let bytes = (frame.length() + tags * TAG_BYTES) as u32;
        let key = flows::key(MacAddr::destination_of(frame.bytes()), ports);
        self.queues.put(priority, (frame, bytes, socket), cn.map(|cn| (key, cn)));
    }

    /// Takes the next frame to send, with its tags, if any may leave. The wire must be free.
    pub(crate) fn next(&mut self, now: Time) -> Option<FrameBuf> {
        let stopped = self.pauses.paused(now);
        let (mut waiting, mut ready) = (ClassSet::EMPTY, ClassSet::EMPTY);
        let mut first: [Option<(Head, Priority)>; PRIORITIES] = [None; PRIORITIES];
        for priority in Priority::ALL {
            let Some(head) = self.queues.head(now, priority) else { continue };
            let class = self.config.prio_tc[priority.index()];
            waiting.insert(class);
            let Some(head) = head.filter(|_| !stopped.contains(priority)) else {
                continue;
            };
            ready.insert(class);
            let first = &mut first[class.index()];
            if first.is_none_or(|(other, _)| head.number < other.number) {
                *first = Some((head, priority));
            }
        }
        let head_bytes =
            |class: TrafficClass| first[class.index()].map_or(0, |(head, _)| head.bytes);
        let class = self.schedule.next(waiting, waiting.difference(ready), head_bytes)?;
        let (head, priority) = first[class.index()]?;
        let (Waiting { socket, mut frame, bytes, .. }, flow) =
            self.queues.pop(now, priority, head)?;
        if let Some(socket) = socket {
            self.sockets.left(socket);
        }
        if let Some(flow) = flow {
            insert(&mut frame, CnTag { flow }.emit());
        }
        if priority != Priority::ZERO && VlanTag::of_frame(frame.bytes()).is_none() {
            insert(&mut frame, VlanTag::of_priority(priority).emit());
        }
        self.schedule.sent(class, bytes);
        Some(frame)
    }

    /// Returns a due frame of the NIC's own, if any. The wire must be free.
    pub(crate) fn request(&mut self, now: Time) -> Option<FrameBuf> {
        if !self.requests.is_due(now) {
            // PAUSE permits only MAC control (IEEE 802.3 clause 31B.1).
            let pauses = self.config.flow_control == HostFlowControl::Pause;
            let held = pauses && !self.pauses.paused(now).is_empty();
            return self.lldp.as_mut().filter(|_| !held).and_then(LldpState::next_frame);
        }
        let pfc = self.requests.next_pfc(now, self.config.rate, self.config.quanta);
        let frame = match self.config.flow_control {
            HostFlowControl::Pause => MacControl::Pause(pfc.times[0]),
            HostFlowControl::None | HostFlowControl::Pfc(_) => MacControl::Pfc(pfc),
        };
        Some(FrameBuf::new(&frame.emit(self.mac)))
    }

    /// Recomputes the deadline and the wait for the wire, after all work at `now`.
    pub(crate) fn plan(&mut self, now: Time, busy: bool) {
        let says = self.lldp.as_ref().is_some_and(LldpState::has_frames);
        // A refused socket also tries again after the last frame has left.
        let waiting = self.queues.waiting() > 0;
        let refused = self.sockets.has_refused();
        self.waits = waiting || refused || self.requests.is_due(now) || says;
        let lldp = self.lldp.as_ref().and_then(LldpState::deadline);
        let again = self.requests.next().into_iter().chain(lldp).filter(|&at| at > now).min();
        self.due = again;
        if !busy && (waiting || says) {
            let limited = self.queues.next_ready(now);
            let resumes = self.pauses.next_end(now);
            self.due = [resumes, limited, again].into_iter().flatten().min();
        }
    }

    /// Handles a change of carrier.
    pub(crate) fn link(&mut self, now: Time, up: bool) {
        if let Some(lldp) = &mut self.lldp {
            lldp.link(now, up);
        }
    }

    /// Runs the LLDP agent's due timers.
    pub(crate) fn timeout(&mut self, now: Time) {
        if let Some(lldp) = &mut self.lldp {
            lldp.timeout(now);
        }
    }

    /// Returns the next deadline, as computed by [`DcbNic::plan`].
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.due
    }

    /// Returns whether the NIC waits for the wire, as computed by [`DcbNic::plan`].
    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    /// Processes a received frame before the host. Removes a priority tag and returns the frame's
    /// priority.
    ///
    /// # Errors
    /// The frame ends here: it was for the NIC alone, or it is dropped for a reason.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        frame: &mut FrameBuf,
    ) -> Result<Priority, Option<Drop>> {
        if mac_control::is_mac_control(frame.bytes()) {
            return Err(self.receive_mac_control(now, frame.bytes()));
        }
        if let Some(lldp) = self.lldp.as_mut().filter(|_| lldp::is_lldp(frame.bytes())) {
            lldp.receive(now, frame.bytes());
            return Err(None);
        }
        if let Some(HostCn { format, .. }) = self.config.cn {
            if cn::is_cnm(frame.bytes()) {
                return Err(self.receive_cnm(now, frame.bytes(), &format));
            }
            cn::untag(frame);
        }
        let Some(tag) = VlanTag::of_frame(frame.bytes()) else {
            return Ok(Priority::ZERO);
        };
        if tag.vid == 0 {
            frame.bytes_mut().copy_within(..ETHERNET_ADDRESSES, TAG_BYTES);
            frame.pop_front(TAG_BYTES);
        }
        Ok(tag.pcp)
    }

    /// Applies a CNM to its flow, if that still exists. Returns the drop reason of a malformed CNM.
    fn receive_cnm(&mut self, now: Time, frame: &[u8], format: &CnmFormat) -> Option<Drop> {
        let Ok(received) = CnmFrame::parse(frame, format) else { return Some(Drop::Malformed) };
        if let Some(CnTag { flow }) = received.cn {
            let (flow, feedback) = ((received.cnm.priority, flow), received.cnm.feedback);
            self.cnms += u64::from(self.queues.notified(now, flow, feedback));
        }
        None
    }

    /// Applies flow control frames of the mode in use, and ignores others. Returns the drop reason
    /// of a malformed frame.
    fn receive_mac_control(&mut self, now: Time, frame: &[u8]) -> Option<Drop> {
        let enabled = self.config.flow_control.priorities();
        let read = MacControl::parse_as(frame, self.mac, self.config.pfc_reserved);
        let pfc = match (read, self.config.flow_control) {
            (Ok(MacControl::Pfc(pfc)), HostFlowControl::Pfc(_)) => pfc,
            (Ok(MacControl::Pause(time)), HostFlowControl::Pause) => Pfc::of(enabled, time),
            // Modes not in use, and unknown opcodes.
            (Ok(_) | Err(MacControlError::Opcode(_)), _) => return None,
            (Err(_), _) => return Some(Drop::Malformed),
        };
        self.pauses.receive(now, &pfc, self.config.rate, enabled);
        None
    }

    /// Requests XOFF or XON for a group of priorities. Repeated requests have no effect.
    pub(crate) fn ask(&mut self, group: Priority, stop: bool) {
        if self.requests.paused().contains(group) != stop {
            self.requests.set(group, stop);
        }
    }

    /// Returns the group of priorities that is paused together with `priority`, named by one of
    /// them, or `None` without flow control for it.
    pub(crate) fn group(&self, priority: Priority) -> Option<Priority> {
        match self.config.flow_control {
            HostFlowControl::None => None,
            HostFlowControl::Pause => Some(Priority::ZERO),
            HostFlowControl::Pfc(enabled) => enabled.contains(priority).then_some(priority),
        }
    }

    /// Resets the NIC after a link change: empties the queues and ends all pauses in both
    /// directions. Returns the queued frames.
    pub(crate) fn reset(&mut self) -> Vec<FrameBuf> {
        self.sockets.clear();
        self.pauses.clear();
        self.requests.resend();
        self.queues.clear()
    }
}

/// Inserts a tag after the addresses of a frame.
fn insert(frame: &mut FrameBuf, tag: [u8; TAG_BYTES]) {
    if frame.push_front(TAG_BYTES).is_err() {
        *frame = FrameBuf::new(&frame.contents().whole());
        frame.push_front(TAG_BYTES).expect("a new frame has headroom");
    }
    let bytes = frame.bytes_mut();
    bytes.copy_within(TAG_BYTES..TAG_BYTES + ETHERNET_ADDRESSES, 0);
    bytes[ETHERNET_ADDRESSES..ETHERNET_ADDRESSES + TAG_BYTES].copy_from_slice(&tag);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::{self, Addresses};
    use axon_dcbx::lldp::LldpConfig;
    use axon_plane::qcn::RpConfig;
    use axon_plane::schedule::{Algorithm, ScheduleConfig};
    use axon_wire::cn::{Cnm, Tagged};
    use axon_wire::mac_control::Quanta;
    use axon_wire::{Bytes, Rate, Span};

    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    fn priority(number: u8) -> Priority {
        Priority::new(number).unwrap()
    }

    fn nic(flow_control: HostFlowControl) -> DcbNic {
        let mut nic =
            DcbNic::new(HostDcb::new(Rate::gbps(10), flow_control, Span::ZERO, 1518), MAC);
        (1..8).for_each(|number| nic.set_priority(5000 + u16::from(number), priority(number)));
        nic
    }

    /// Returns a datagram to `port`, from port 40,000 above it.
    fn datagram(port: u16) -> FrameBuf {
        let ip = Ipv4Addr::new(10, 0, 0, 1);
        let ends = Addresses { source: (MAC, ip, 40_000 + port), target: (MAC, ip, port) };
        let mut frame = vec![0; 100];
        datagram::emit(&mut frame, ends, |payload| payload.fill(1));
        FrameBuf::new(&frame)
    }

    fn sent(nic: &mut DcbNic, now: Time) -> Option<u8> {
        nic.next(now).map(|frame| axon_wire::vlan::priority_of(frame.bytes()).value())
    }

    fn receive(nic: &mut DcbNic, control: MacControl) {
        let mut frame = FrameBuf::new(&control.emit(MacAddr([2, 0, 0, 0, 0, 9])));
        assert_eq!(nic.receive(Time::ZERO, &mut frame), Err(None), "it ends in the nic");
    }

    #[test]
    fn the_tag_of_a_priority_goes_on_and_comes_off_again() {
        let mut nic = nic(HostFlowControl::None);
        for port in [5003, 80, 5007] {
            let plain = datagram(port);
            nic.put(plain.clone());
            let mut frame = nic.next(Time::ZERO).unwrap();
            let number = if port == 80 { 0 } else { (port - 5000) as u8 };
            let tag = VlanTag::of_frame(frame.bytes());
            assert_eq!(tag, (number > 0).then(|| VlanTag::of_priority(priority(number))));
            assert_eq!(nic.receive(Time::ZERO, &mut frame), Ok(priority(number)));
            assert_eq!(frame.bytes(), plain.bytes());
        }
        // A tagged frame keeps its tag, regardless of its ports.
        let mut tagged = datagram(5003);
        insert(&mut tagged, VlanTag::of_priority(priority(6)).emit());
        nic.put(tagged.clone());
        assert_eq!(nic.next(Time::ZERO).unwrap().bytes(), tagged.bytes());
    }

    #[test]
    fn a_stopped_priority_waits_and_the_others_go_on() {
        let mut nic = nic(HostFlowControl::Pfc(PrioritySet::only(priority(3))));
        let stop = Pfc::of(PrioritySet::ALL, Quanta(1000));
        receive(&mut nic, MacControl::Pfc(stop));
        receive(&mut nic, MacControl::Pause(Quanta(1000)));
        [5003, 5005].into_iter().for_each(|port| nic.put(datagram(port)));
        assert_eq!(sent(&mut nic, Time::ZERO), Some(5), "5 has no flow control here");
        assert_eq!(sent(&mut nic, Time::ZERO), None);
        nic.plan(Time::ZERO, false);
        let end = Time::from_nanos(51_200);
        assert_eq!((nic.deadline(), nic.waits()), (Some(end), true));
        assert_eq!(sent(&mut nic, end), Some(3));
        nic.plan(end, false);
        assert_eq!((nic.deadline(), nic.waits()), (None, false));
    }

    #[test]
    fn a_pause_stops_all_and_a_request_names_what_it_must() {
        let mut nic = nic(HostFlowControl::Pause);
        receive(&mut nic, MacControl::Pfc(Pfc::of(PrioritySet::ALL, Quanta::MAX)));
        nic.put(datagram(5003));
        assert_eq!(sent(&mut nic, Time::ZERO), Some(3), "PFC is not in use");
        receive(&mut nic, MacControl::Pause(Quanta::MAX));
        nic.put(datagram(80));
        assert_eq!(sent(&mut nic, Time::ZERO), None);
        let group = nic.group(priority(5)).unwrap();
        nic.ask(group, true);
        let frame = nic.request(Time::ZERO).unwrap();
        let sent = MacControl::parse(frame.bytes(), MAC);
        assert_eq!(sent, Ok(MacControl::Pause(Quanta::MAX)), "a pause does not hold it up");
        assert!(nic.request(Time::ZERO).is_none());
    }

    #[test]
    fn what_lldp_says_waits_for_the_end_of_a_pause() {
        let rate = Rate::gbps(10);
        let (cnpvs, format) = (PrioritySet::only(priority(3)), CnmFormat::default());
        let lldp = Some(LldpConfig::default());
        let cn = HostCn { cnpvs, config: RpConfig::for_port(rate), format, seed: 1, lldp };
        let config = HostDcb::new(rate, HostFlowControl::Pause, Span::ZERO, 1518);
        let mut nic = DcbNic::new(HostDcb { cn: Some(cn), ..config }, MAC);
        nic.link(Time::ZERO, true);
        receive(&mut nic, MacControl::Pause(Quanta::MAX));
        nic.timeout(Time::ZERO);
        assert!(nic.request(Time::ZERO).is_none());
        nic.plan(Time::ZERO, false);
        let end = nic.deadline().unwrap();
        assert!(lldp::is_lldp(nic.request(end).unwrap().bytes()));
    }

    #[test]
    fn a_ring_that_says_stop_with_every_frame_says_once_that_all_may_go_on() {
        let three = PrioritySet::only(priority(3));
        let mut nic = nic(HostFlowControl::Pfc(three));
        let group = nic.group(priority(3)).unwrap();
        let mut sent = |stop| {
            nic.ask(group, stop);
            let frame = nic.request(Time::ZERO)?;
            match MacControl::parse(frame.bytes(), MAC) {
                Ok(MacControl::Pfc(pfc)) => Some((pfc.enabled, pfc.times[3])),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(sent(true), Some((three, Quanta::MAX)));
        assert_eq!([true; 9].map(&mut sent), [None; 9], "it is sent already");
        assert_eq!(sent(false), Some((three, Quanta::ZERO)));
        assert_eq!(sent(false), None);
    }

    #[test]
    fn priorities_of_one_class_leave_in_the_order_of_their_coming() {
        let mut config = HostDcb::new(Rate::gbps(10), HostFlowControl::None, Span::ZERO, 1518);
        config.prio_tc = [TrafficClass::ZERO; PRIORITIES];
        config.schedule = ScheduleConfig::of([Algorithm::Strict]);
        let mut nic = DcbNic::new(config, MAC);
        (1..8).for_each(|number| nic.set_priority(5000 + u16::from(number), priority(number)));
        let order = [5004, 5001, 5007, 5001, 80];
        order.into_iter().for_each(|port| nic.put(datagram(port)));
        let left: Vec<_> = std::iter::from_fn(|| sent(&mut nic, Time::ZERO)).collect();
        assert_eq!(left, [4, 1, 7, 1, 0]);
    }

    #[test]
    fn a_socket_blocks_when_it_has_its_share_of_frames_here_and_others_do_not() {
        let mut nic = nic(HostFlowControl::None);
        for _ in 0..sockets::SOCKET_FRAMES_MAX {
            assert!(nic.has_room(45_003));
            nic.put(datagram(5003));
        }
        assert!(!nic.has_news());
        assert!(!nic.has_room(45_003) && nic.has_room(45_004));
        assert!(nic.has_news() && !nic.has_news(), "said once");
        nic.next(Time::ZERO).unwrap();
        assert!(nic.has_room(45_003));
    }

    /// Returns a CNM of full feedback for the flow of a sent frame.
    fn cnm(sampled: &FrameBuf) -> FrameBuf {
        let format = CnmFormat::default();
        let cnm = Cnm { feedback: 63, cpid: 1, ..Cnm::default() };
        let sampled = Tagged::parse(sampled.bytes()).unwrap();
        let answer = CnmFrame::answer(&sampled, MAC, priority(6), cnm, 64, &format);
        FrameBuf::new(&answer.emit(&format))
    }

    #[test]
    fn a_cnm_slows_down_its_flow_and_no_other() {
        let rate = Rate::gbps(10);
        let mut config = HostDcb::new(rate, HostFlowControl::None, Span::ZERO, 1518);
        let (cnpvs, format) = (PrioritySet::only(priority(3)), CnmFormat::default());
        config.cn =
            Some(HostCn { cnpvs, config: RpConfig::for_port(rate), format, seed: 1, lldp: None });
        let mut nic = DcbNic::new(config, MAC);
        [5003, 5004].into_iter().for_each(|port| nic.set_priority(port, priority(3)));
        [5003, 5003, 5003, 5004].into_iter().for_each(|port| nic.put(datagram(port)));
        let mut now = Time::ZERO;
        let mut first = nic.next(now).unwrap();
        let tags = Tagged::parse(first.bytes()).unwrap();
        assert_eq!((tags.vlan.unwrap().pcp, tags.cn), (priority(3), Some(CnTag { flow: 1 })));
        assert_eq!(nic.receive(now, &mut cnm(&first)), Err(None), "it ends in the nic");
        assert_eq!(nic.cnms(), 1);
        nic.next(now).unwrap();
        let other = nic.next(now).unwrap();
        assert_eq!(Tagged::parse(other.bytes()).unwrap().cn, Some(CnTag { flow: 2 }));
        assert!(nic.next(now).is_none());
        nic.plan(now, false);
        let due = nic.deadline().unwrap();
        // The rate is reduced by 63/128, and a frame takes 108 bytes plus 24 of overhead.
        let left = Rate::from_bits_per_second(rate.bits_per_second() * 65 / 128).unwrap();
        assert_eq!(due, now + left.time_for(Bytes(108 + 24)));
        now = due;
        assert!(nic.next(now).is_some());
        // Its tags are removed again; a CNM for an unknown flow changes nothing.
        assert_eq!(nic.receive(now, &mut first), Ok(priority(3)));
        assert_eq!(first.bytes(), datagram(5003).bytes());
        assert_eq!(nic.receive(now, &mut cnm(&other)), Err(None));
        assert_eq!(nic.cnms(), 1);
        // A malformed CNM is dropped: wrong version, or truncated.
        let whole = cnm(&other);
        let at = whole.bytes().len() - 30;
        for end in [at, 22] {
            let mut short = FrameBuf::new(&whole.bytes()[..end]);
            assert_eq!(nic.receive(now, &mut short), Err(Some(Drop::Malformed)), "{end}");
        }
    }
}
