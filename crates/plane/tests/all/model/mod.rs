//! A world around one plane that checks its invariants at every step. The property tests and the
//! fuzzer both drive it.

pub mod classes;

use axon_node::{Action, Dataplane, Drop, PortKind, PortView, Shortcuts};
use axon_plane::dcb::DcbConfig;
use axon_plane::{Dcb, OnFull, Plane, PlaneConfig, PuntLimit};
use axon_wire::priority::{PrioritySet, TrafficClass};
use axon_wire::{Bytes, FrameBuf, HopWidth, Hops, MacAddr, PortNo, Span, Time};

/// Ports of the plane under test.
pub const PORTS: u16 = 4;
/// Bound of each buffer, in bytes.
pub const QUEUE_BYTES_MAX: u64 = 3000;
/// Bytes of refused frames that one input keeps.
pub const NACK_BYTES_MAX: u64 = 1000;

/// An event at a plane.
#[derive(Clone, Debug)]
pub enum Event {
    /// The head of a frame arrives, with `headroom` bytes in front; its tail arrives `tail` later,
    /// with a correct or wrong FCS.
    Receive { port: PortNo, headroom: usize, tail: Span, intact: bool, frame: Vec<u8> },
    /// A port reports that its wire is free, correctly or not.
    TxDone(PortNo),
    /// Carrier rises or falls.
    Link { port: PortNo, up: bool },
    /// The control plane sends an Axon packet.
    Inject(Vec<u8>),
    /// The control plane sends an Ethernet frame.
    SendRaw { port: PortNo, frame: Vec<u8> },
    /// A port changes kind.
    Kind { port: PortNo, kind: PortKind },
    /// A route is set.
    Route { port: PortNo, destination: MacAddr, hops: Hops },
    /// Time advances.
    Wait(Span),
    /// A port enables PFC for these priorities only.
    Pfc { port: PortNo, pfc: PrioritySet },
    /// A port maps priorities to other classes.
    Classes { port: PortNo, prio_tc: [TrafficClass; 8] },
}

/// One plane, and the frames on its wires.
pub struct World {
    pub plane: Plane,
    now: Time,
    on_wire: Vec<bool>,
    frames_in: u64,
    frames_out: u64,
}

impl World {
    /// A plane whose ports are up: even ones with hosts, odd ones with Axons; with traffic classes
    /// or without.
    pub fn new(hop_width: HopWidth, on_full: OnFull, dcb: Option<DcbConfig>) -> World {
        let mut plane = Plane::new(PlaneConfig {
            hop_width,
            queue_bytes_max: Bytes(QUEUE_BYTES_MAX),
            routes_per_port_max: 8,
            punt: PuntLimit { frames_per_second: 1000, burst: 20 },
            // Where hosts are paused for their headers, `pass` takes none of their frames.
            self_congestion_pause: dcb.is_none() && hop_width == HopWidth::Eight,
            on_full,
            nack_bytes_max: Bytes(NACK_BYTES_MAX),
            congestion: PuntLimit { frames_per_second: 1000, burst: 5 },
            frame_bytes_max: 200,
            dcb: dcb.map(Box::new),
            ..PlaneConfig::with_ports(PORTS, MacAddr([2, 0, 0, 0, 0, 1]))
        });
        for port in (0..PORTS).map(PortNo) {
            plane.link(Time::ZERO, port, true, &mut Vec::new());
            plane.set_kind(port, [PortKind::Host, PortKind::Axon][port.index() % 2]);
        }
        let on_wire = vec![false; usize::from(PORTS)];
        World { plane, now: Time::ZERO, on_wire, frames_in: 0, frames_out: 0 }
    }

    /// Applies `event`, checks all invariants, and returns the plane's actions.
    pub fn apply(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        // Frames received, and frames that the plane creates.
        let counted = |plane: &Plane| plane.counters().total().rx_frames;
        let before = counted(&self.plane);
        self.plane.timeout(self.now, &mut out);
        match event {
            Event::Receive { port, headroom, tail, intact, frame } => {
                let frame = FrameBuf::with_headroom(headroom, &frame);
                if intact {
                    self.check_passing(port, &frame, self.now + tail);
                }
                self.plane.receive(self.now, port, frame, self.now + tail, intact, &mut out);
            }
            Event::TxDone(port) => {
                if let Some(wire) = self.on_wire.get_mut(port.index()) {
                    *wire = false;
                }
                self.plane.tx_done(self.now, port, &mut out);
            }
            Event::Link { port, up } => {
                if let Some(wire) = self.on_wire.get_mut(port.index()) {
                    *wire &= up;
                }
                self.plane.link(self.now, port, up, &mut out);
            }
            Event::Inject(frame) => {
                self.plane.inject_packet(self.now, FrameBuf::new(&frame), &mut out);
            }
            Event::SendRaw { port, frame } => {
                self.plane.send_raw(self.now, port, FrameBuf::new(&frame), &mut out);
            }
            Event::Kind { port, kind } => self.plane.set_kind(port, kind),
            Event::Route { port, destination, hops } => {
                let _ = self.plane.install(port, destination, &hops.into());
            }
            Event::Wait(span) => self.now += span,
            Event::Pfc { port, pfc } => {
                self.plane.ports_mut().set_pfc(self.now, port, pfc, &mut out);
            }
            Event::Classes { port, prio_tc } => {
                let Some(dcb) = self.plane.config().dcb.clone() else { return out };
                let ports = self.plane.ports_mut();
                let set = ports.set_classes(self.now, port, prio_tc, &dcb.schedule, &mut out);
                set.expect("eight classes serve all");
            }
        }
        self.plane.timeout(self.now, &mut out);
        self.frames_in += counted(&self.plane) - before;
        self.check(&out);
        out
    }

    /// Asserts that passing a frame has the same result as receiving it, including the state; a
    /// frame that is not passed is unchanged and counted nowhere. This also holds where wires are
    /// free whose `TxDone` was not delivered.
    fn check_passing(&self, port: PortNo, came: &FrameBuf, complete_at: Time) {
        for free_at in [&[][..], &[self.now; PORTS as usize]] {
            self.check_passing_with(port, came, complete_at, free_at);
        }
    }

    fn check_passing_with(
        &self,
        port: PortNo,
        came: &FrameBuf,
        complete_at: Time,
        free_at: &[Time],
    ) {
        let (mut passing, mut frame) = (self.plane.clone(), came.clone());
        let Some(egress) = Shortcuts::pass(&mut passing, self.now, port, &mut frame, free_at)
        else {
            assert_eq!(frame.bytes(), came.bytes());
            assert_eq!(passing.counters(), self.plane.counters());
            return;
        };
        let (mut receiving, mut out) = (self.plane.clone(), Vec::new());
        if !free_at.is_empty() {
            receiving.tx_done(self.now, egress, &mut out);
            assert_eq!(out, [], "nobody waited for the wire");
        }
        receiving.receive(self.now, port, came.clone(), complete_at, true, &mut out);
        let [Action::Transmit { port: other, frame: received, complete_at: at, intact: true }] =
            &out[..]
        else {
            panic!("passed by {egress}, but received to {out:?}");
        };
        assert_eq!((egress, frame.bytes(), complete_at), (*other, received.bytes(), *at));
        assert_eq!(format!("{passing:?}"), format!("{receiving:?}"));
    }

    fn check(&mut self, out: &[Action]) {
        for action in out {
            self.frames_out += u64::from(!matches!(action, Action::Note(_)));
            let Action::Transmit { port, frame, complete_at, intact } = action else {
                continue;
            };
            let known_bad = !intact && *complete_at <= self.now;
            assert!(!known_bad, "what is known to be bad is not sent");
            assert!(self.plane.is_up(*port), "sent without carrier");
            assert!(!self.on_wire[port.index()], "sent while the wire was busy");
            self.on_wire[port.index()] = true;
            if self.plane.kind(*port) != Some(PortKind::Axon) {
                assert!((14..=204).contains(&frame.bytes().len()), "a host can take this frame");
            }
        }
        let queued: u64 = (0..PORTS).map(|port| self.plane.queue(PortNo(port)).frames).sum();
        let held = self.plane.held_frames();
        let deadline = self.plane.deadline();
        assert!(held == 0 || deadline.is_some(), "what is held has a deadline");
        assert!(deadline.is_none_or(|at| at > self.now), "nothing stays due");
        let queued = queued + held;
        assert_eq!(self.frames_in, self.frames_out + queued, "no frame is lost or made up");
        for port in (0..PORTS).map(PortNo) {
            self.check_port(port);
        }
        if let Some(memory) = self.plane.ports().dcb().map(Dcb::memory) {
            assert!(memory.used() <= memory.config().bytes(), "the memory is bounded");
            let empty = (0..PORTS).all(|port| self.plane.queue(PortNo(port)).frames == 0);
            assert!(!empty || memory.used() == Bytes(0), "what has left takes no memory");
        }
        let total = self.plane.counters().total();
        assert_eq!(total.rx_frames, self.frames_in);
        let drops: u64 = Drop::ALL.iter().map(|&reason| total.dropped(reason)).sum();
        let punts: u64 = axon_node::Punt::ALL.iter().map(|&punt| total.punted(punt)).sum();
        assert_eq!(total.rx_frames, total.tx_frames + drops + punts + queued, "conservation");
    }

    fn check_port(&self, port: PortNo) {
        let bytes = self.plane.queue(port).bytes;
        let idle = !self.on_wire[port.index()];
        let pauses = self.plane.ports().dcb().and_then(|dcb| dcb.pauses(port));
        let stopped = pauses.map_or(PrioritySet::EMPTY, |pauses| pauses.paused(self.now));
        if self.plane.config().dcb.is_some() {
            assert!(!idle || bytes.0 == 0 || !stopped.is_empty(), "no frame waits for a free wire");
            assert!(bytes.0 == 0 || self.plane.ports().wires().is_waiting(port));
            return;
        }
        assert!(bytes.0 <= u64::from(PORTS + 1) * QUEUE_BYTES_MAX, "buffers are bounded");
        assert!(self.plane.queue(port).refused_bytes.0 <= NACK_BYTES_MAX, "inputs are bounded");
        assert!(!idle || bytes.0 == 0, "no frame waits for a free wire");
        assert_eq!(self.plane.ports().wires().is_waiting(port), bytes.0 > 0);
    }
}
