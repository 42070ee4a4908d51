//! Host that honours congestion notification, a switch, and a link whose rate changes.

use super::marks::{MARK_AT, Marks};
use super::seen::Seen;
use axon_fabric::model::Wire;
use axon_node::{Action, Awaited, Input, Node, PortKind, Shortcuts};
use axon_plane::dcb::DcbConfig;
use axon_plane::notification::CnConfig;
use axon_plane::qcn::{RateLimiter, RpConfig, RpError};
use axon_plane::{Plane, PlaneConfig};
use axon_sim::Engine;
use axon_sim::links::{LinkChange, LinkId, WireEnd};
use axon_sim::station::StationNode;
use axon_wire::cn::{CnTag, CnmFormat, CnmFrame};
use axon_wire::constants::ethertype;
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::vlan::VlanTag;
use axon_wire::{Bytes, FrameBuf, MacAddr, PortNo, Rate, Route, Span, Time};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of each frame, without FCS.
const FRAME_BYTES: usize = 1_500;
/// Preamble, FCS and gap.
const OVERHEAD: u64 = 24;
const LATENCY: Span = Span::from_micros(1);
pub(super) const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 1, 1]);
pub(super) const SINK: MacAddr = MacAddr([2, 0, 0, 0, 1, 2]);
pub(super) const SWITCH: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
/// Ports of the switch to the source, and to the sink.
pub(super) const PORTS: [PortNo; 2] = [PortNo(0), PortNo(1)];
/// Priority with congestion notification.
const CNPV: Priority = Priority::from_low_bits(3);

/// World of the bottleneck.
pub struct Bottleneck {
    engine: Engine,
    link: LinkId,
    seen: Arc<Mutex<Seen>>,
}

impl Bottleneck {
    /// Creates a host that sends 1500-byte frames as fast as `rp` allows, a queue that is held at
    /// `set_point` and may use `pool`, and links of the host's rate.
    ///
    /// # Errors
    /// A value of `rp` is out of range.
    pub(crate) fn new(
        rp: RpConfig,
        (set_point, pool): (Bytes, Bytes),
        seed: u64,
    ) -> Result<Bottleneck, RpError> {
        let (mut world, seen) = Bottleneck::wired(rp.max_rate, seed);
        let plane = plane(rp.max_rate, set_point, pool);
        let switch = Switch { plane, last: Time::ZERO, cnms: 0, samples: 0, seen };
        let source = Source::new(RateLimiter::new(rp, Bytes(0), seed)?);
        world.start(Box::new(switch), Box::new(source));
        Ok(world)
    }

    /// Returns the links and the sink.
    pub(super) fn wired(rate: Rate, seed: u64) -> (Bottleneck, Arc<Mutex<Seen>>) {
        let mut engine = Engine::new(seed, None);
        ["switch", "source", "sink"].iter().for_each(|name| _ = engine.add_station(name));
        let mut connect = |port: PortNo, station| {
            let ends = [(0, port), (station, PortNo(0))];
            let [a, b] = ends.map(|(station, port)| WireEnd { station, port });
            let (loss_ppm, bit_errors_per_1e15, queue) = (0, 0, Bytes(1 << 40));
            let latency = LATENCY;
            engine.connect(a, b, Wire { rate, latency, loss_ppm, bit_errors_per_1e15, queue })
        };
        connect(PORTS[0], 1);
        let link = connect(PORTS[1], 2);
        let seen = Arc::new(Mutex::new(Seen::default()));
        engine.power_on(2, StationNode::Other(Box::new(Sink(seen.clone()))));
        (Bottleneck { engine, link, seen: seen.clone() }, seen)
    }

    /// Powers the switch on, and then the source.
    pub(super) fn start(
        &mut self,
        switch: Box<dyn Shortcuts + Send>,
        source: Box<dyn Shortcuts + Send>,
    ) {
        self.engine.power_on(0, StationNode::Other(switch));
        self.engine.power_on(1, StationNode::Other(source));
    }

    /// Sets the rate of the link behind the queue.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.engine.change_link(self.link, LinkChange::Rate(rate));
    }

    /// Runs for `span`; returns the events in it.
    pub(crate) fn look(&mut self, span: Span) -> Seen {
        let end = self.engine.now() + span;
        self.engine.run(end);
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the buffers of the switch: a queue may use `pool`.
pub(super) fn buffers(rate: Rate, pool: Bytes) -> DcbConfig {
    let mut dcb = DcbConfig::lossy(vec![rate; PORTS.len()], SWITCH);
    // A queue may take half of the memory, which must equal the pool.
    dcb.memory.lossy_pool = Bytes(2 * pool.0);
    dcb
}

fn plane(rate: Rate, set_point: Bytes, pool: Bytes) -> Plane {
    let mut cn = CnConfig::new(PORTS.len() as u16, PrioritySet::only(CNPV));
    cn.points.iter_mut().for_each(|point| point.set_point = set_point);
    let dcb = DcbConfig { cn: Some(cn), ..buffers(rate, pool) };
    let mut config = PlaneConfig::with_ports(PORTS.len() as u16, SWITCH);
    config.dcb = Some(Box::new(dcb));
    let mut plane = Plane::new(config);
    PORTS.iter().for_each(|&port| plane.set_kind(port, PortKind::Host));
    // The table holds more than one route.
    let _ = plane.install(PORTS[0], SINK, &Route::from([PORTS[1].0]));
    plane
}

/// Saturating source that honours CNMs.
pub(super) struct Source {
    /// Marking of frames, if enabled.
    pub(super) marks: Option<Marks>,
    limiter: RateLimiter,
    frame: Vec<u8>,
    up: bool,
    busy: bool,
    ready: Time,
}

impl Source {
    pub(super) fn new(limiter: RateLimiter) -> Source {
        let mut frame = [SINK.0, SOURCE.0].concat();
        frame.extend_from_slice(&VlanTag::of_priority(CNPV).emit());
        frame.extend_from_slice(&CnTag { flow: 1 }.emit());
        frame.extend_from_slice(&ethertype::PROBE.to_be_bytes());
        frame.resize(FRAME_BYTES, 0);
        Source { marks: None, limiter, frame, up: false, busy: false, ready: Time::ZERO }
    }
}

impl Node for Source {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { frame, .. } => {
                if let Ok(frame) = CnmFrame::parse(frame.bytes(), &CnmFormat::default()) {
                    self.limiter.notified(now, frame.cnm.feedback);
                    self.marks.iter_mut().for_each(|marks| marks.notified(frame.cnm.feedback));
                }
            }
            Input::TxDone { .. } => self.busy = false,
            Input::Link { up, .. } => self.up = up,
            Input::Timeout | Input::Command(_) => {}
        }
        self.ready = self.limiter.ready_at(now);
        if self.busy || !self.up || self.ready > now {
            return;
        }
        self.busy = true;
        self.limiter.sent(now, Bytes(FRAME_BYTES as u64));
        self.frame[MARK_AT] =
            self.marks.as_mut().is_some_and(|marks| marks.next(FRAME_BYTES)).into();
        let (port, frame) = (PortNo(0), FrameBuf::new(&self.frame));
        out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
    }

    fn deadline(&self) -> Option<Time> {
        let timer = self.limiter.deadline().unwrap_or(self.ready);
        (self.up && !self.busy).then_some(self.ready.min(timer))
    }
}

impl Shortcuts for Source {}

/// Data plane whose queue to the sink is measured.
struct Switch {
    plane: Plane,
    last: Time,
    cnms: u64,
    samples: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Node for Switch {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let queued = self.plane.ports().queues().bytes(PORTS[1]).0;
        let span = now.since(std::mem::replace(&mut self.last, now));
        let start = out.len();
        self.plane.handle(now, input, out);
        let lost = |action: &&Action| matches!(action, Action::Dropped { .. });
        let cnms = self.plane.counters().port(PORTS[1]).cnms;
        let samples = self.plane.ports().dcb().map_or(0, |dcb| dcb.congestion_samples(PORTS[1]));
        let left = self.plane.ports().queues().bytes(PORTS[1]).0;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.queue(queued, span, left);
        seen.lost += out[start..].iter().filter(lost).count() as u64;
        seen.cnms += cnms - std::mem::replace(&mut self.cnms, cnms);
        seen.samples += samples - std::mem::replace(&mut self.samples, samples);
    }

    fn deadline(&self) -> Option<Time> {
        self.plane.deadline()
    }
}

impl Shortcuts for Switch {
    fn awaited(&mut self) -> Awaited {
        self.plane.awaited()
    }
}

struct Sink(Arc<Mutex<Seen>>);

impl Node for Sink {
    fn handle(&mut self, _: Time, input: Input, _: &mut Vec<Action>) {
        if let Input::Frame { frame, .. } = input {
            let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            seen.wire_bytes += frame.bytes().len() as u64 + OVERHEAD;
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for Sink {}
