//! A world around one plane that holds it to its promises at every step. The property tests
//! and the fuzzer both drive it.

use axon_plane::contract::{Action, Drop};
use axon_plane::{OnFull, Plane, PlaneConfig, PortKind, PuntLimit};
use axon_wire::{Bytes, Frame, FrameBuf, HopWidth, Hops, MacAddr, PortNo, Span, Time};

/// Ports of the plane under test.
pub const PORTS: u16 = 4;
/// Bound of each of its buffers, in bytes.
pub const QUEUE_BYTES_MAX: u64 = 3000;
/// What one input keeps of refused frames, in bytes.
pub const NACK_BYTES_MAX: u64 = 1000;

/// Something that happens to a plane.
#[derive(Clone, Debug)]
pub enum Event {
    /// The head of a frame comes in, with so many bytes of room in front; its tail comes so
    /// much later, and its FCS fits or not.
    Receive { port: PortNo, headroom: usize, tail: Span, intact: bool, frame: Vec<u8> },
    /// The wire of a port says it is free, rightly or not.
    TxDone(PortNo),
    /// Carrier comes or goes.
    Link { port: PortNo, up: bool },
    /// The control plane sends an Axon packet.
    Inject(Vec<u8>),
    /// The control plane sends an Ethernet frame.
    SendRaw { port: PortNo, frame: Vec<u8> },
    /// A port changes kind.
    Kind { port: PortNo, kind: PortKind },
    /// A route is set.
    Route { port: PortNo, destination: MacAddr, hops: Hops },
    /// Time passes.
    Wait(Span),
}

/// One plane and what it has on its wires.
pub struct World {
    pub plane: Plane<FrameBuf>,
    now: Time,
    on_wire: Vec<bool>,
    frames_in: u64,
    frames_out: u64,
}

impl World {
    /// A plane whose ports are up, the even ones with hosts, the odd ones with Axons.
    pub fn new(hop_width: HopWidth, on_full: OnFull) -> World {
        let mut plane = Plane::new(PlaneConfig {
            hop_width,
            queue_bytes_max: Bytes(QUEUE_BYTES_MAX),
            routes_per_port_max: 8,
            punt: PuntLimit { frames_per_second: 1000, burst: 20 },
            self_congestion_pause: true,
            on_full,
            nack_bytes_max: Bytes(NACK_BYTES_MAX),
            congestion: PuntLimit { frames_per_second: 1000, burst: 5 },
            frame_bytes_max: 200,
            ..PlaneConfig::with_ports(PORTS, MacAddr([2, 0, 0, 0, 0, 1]))
        });
        for port in (0..PORTS).map(PortNo) {
            plane.link(Time::ZERO, port, true, &mut Vec::new());
            plane.set_kind(port, [PortKind::Host, PortKind::Axon][port.index() % 2]);
        }
        let on_wire = vec![false; usize::from(PORTS)];
        World { plane, now: Time::ZERO, on_wire, frames_in: 0, frames_out: 0 }
    }

    /// Lets `event` happen, checks everything, and returns what the plane asked for.
    pub fn apply(&mut self, event: Event) -> Vec<Action<FrameBuf>> {
        let mut out = Vec::new();
        let made = |plane: &Plane<FrameBuf>| {
            let total = plane.counters().total();
            total.pauses + total.congestion_messages
        };
        let before = made(&self.plane);
        self.plane.timeout(self.now, &mut out);
        match event {
            Event::Receive { port, headroom, tail, intact, frame } => {
                self.frames_in += 1;
                let frame = FrameBuf::with_headroom(headroom, &frame);
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
                self.frames_in += 1;
                self.plane.inject(self.now, FrameBuf::new(&frame), &mut out);
            }
            Event::SendRaw { port, frame } => {
                self.frames_in += 1;
                self.plane.send_raw(self.now, port, FrameBuf::new(&frame), &mut out);
            }
            Event::Kind { port, kind } => self.plane.set_kind(port, kind),
            Event::Route { port, destination, hops } => {
                let _ = self.plane.tables_mut().install(port, destination, &hops);
            }
            Event::Wait(span) => self.now += span,
        }
        self.frames_in += made(&self.plane) - before;
        self.check(&out);
        out
    }

    fn check(&mut self, out: &[Action<FrameBuf>]) {
        for action in out {
            self.frames_out += 1;
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
        let queued: u64 = (0..PORTS).map(|port| self.plane.queued_frames(PortNo(port))).sum();
        let held = self.plane.held_frames();
        assert_eq!(held > 0, self.plane.deadline().is_some(), "what is held has a deadline");
        let queued = queued + held;
        assert_eq!(self.frames_in, self.frames_out + queued, "no frame is lost or made up");
        for port in (0..PORTS).map(PortNo) {
            let bytes = self.plane.queued_bytes(port);
            assert!(bytes.0 <= u64::from(PORTS + 1) * QUEUE_BYTES_MAX, "buffers are bounded");
            assert!(self.plane.nacked_bytes(port).0 <= NACK_BYTES_MAX, "inputs are bounded");
            let idle = !self.on_wire[port.index()];
            assert!(!idle || bytes.0 == 0, "no frame waits for a free wire");
            assert_eq!(self.plane.waits_for(port), bytes.0 > 0);
        }
        let total = self.plane.counters().total();
        assert_eq!(total.rx_frames, self.frames_in);
        let drops: u64 = Drop::ALL.iter().map(|&reason| total.dropped(reason)).sum();
        let punts: u64 = axon_plane::Punt::ALL.iter().map(|&punt| total.punted(punt)).sum();
        assert_eq!(total.rx_frames, total.tx_frames + drops + punts + queued, "conservation");
    }
}
