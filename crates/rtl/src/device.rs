//! The device as a data plane.
//!
//! **Time.** A clock cycle of the model is 8 ns. Every input advances the model to its time, and so
//! does the deadline, which comes every 16 cycles while frames are in the device. A device at rest
//! does not change, so its cycles are not run: it continues at the time of the next input.
//!
//! No machine simulates 125 million cycles in a second. Where the time outside is real, cycles are
//! therefore untied from it ([`RtlDataplane::with_own_clock`]): each input and each deadline, which
//! is then due at once, runs the model for a few hundred cycles. Time in the device passes slower
//! than outside, and with it go pauses of its ports; nothing else changes. A port whose wire holds
//! more than `BACKLOG_BYTES` takes no frame before the device has run on, so the frames of a fast
//! sender wait in the runtime's ports.
//!
//! **Frames.** A frame is on the GMII pins of its port from the time of its input on, one byte in a
//! cycle, as soon as the frame before it and the gap allow: for a sender of 1 Gb/s at once. The
//! gates forward it cut-through. A runtime takes whole frames, though, so `Transmit` follows when
//! the last byte has left the pins: to a runtime, this is a data plane that stores frames. The
//! order, the bytes and the fate of every frame are those of the gates. Frames are padded to 60
//! bytes, as on any wire.
//!
//! **A wire that is busy.** The gates send at 1 Gb/s and know no `TxDone`. A frame that leaves the
//! pins before the runtime has sent the one before it waits outside of the gates, in `Wire`: one
//! queue for each output, in order. So on a link slower than 1 Gb/s that queue decides on drops,
//! whose ingress is then not known: they count for the control plane as a source.
//!
//! **Frames of the control plane.** Their first step is taken here, with the control plane as
//! ingress; the gates queue them and send them before all others. Each port has one in the gates at
//! a time, since its buffer for them is small and no register says how full it is.
//!
//! **Probes.** The probe units of the gates have the time of the inputs: it is set when a device at
//! rest gets a frame, and with a clock of its own at each input, so that stamps are of the time
//! outside, in which the machine simulates the gates. Delays of the runtime around the data plane
//! (`PlaneConfig::probe_units`) are not in them.
//!
//! **Counters.** Frames that come and go are counted here, drops in gates are read from the
//! registers, whenever the device is at rest and every `LOOK_CYCLES` cycles otherwise. The bytes
//! of a frame that is dropped in gates are gone: its `Dropped` has an empty frame.

mod clock;
mod control;
mod dataplane;
mod outgoing;
mod registers;
mod wire;

pub use dataplane::capabilities;

use crate::driver::Driver;
use crate::gmii::Damage;
use crate::model::{Model, ModelError};
use crate::pins::{Left, Pins};
use axon_node::telemetry::RegisterTelemetry;
use axon_node::{Action, Counters, Drop, Input, Node, NodeKind, PortEvent, PortKind, Punt};
use axon_plane::{OnFull, PlaneConfig};
use axon_wire::header::HeaderFields;
use axon_wire::{FrameBuf, PortNo, Time};
use clock::Clock;
use outgoing::Outgoing;
use std::cell::RefCell;
use wire::Wire;

/// Cycles in which a frame of the control plane waits for its turn.
const BATCH_CYCLES: u64 = 16;
/// Bytes on the wire to a port from which on it takes no frames, with a clock of its own.
const BACKLOG_BYTES: usize = 4096;
/// Cycles after which the drops of a busy device are read: 100 us.
const LOOK_CYCLES: u64 = 12_500;
/// Bytes of a buffer in gates that no frame can use, its end included.
const BUFFER_MARGIN_BYTES: usize = 64;

/// The device in gates as a data plane; see [the module](self).
#[derive(Debug)]
pub struct RtlDataplane {
    config: PlaneConfig,
    /// In a cell: a report of the state reads registers over the bus.
    pins: RefCell<Pins>,
    driver: Driver,
    clock: Clock,
    /// The wires of the ports.
    wires: Vec<Wire>,
    outgoing: Outgoing,
    counters: Counters,
    /// Frames in the gates.
    inside: u64,
    /// Cycle of the next look at the drops.
    look_at: u64,
    /// Registers at the last look of a busy device.
    registers: RegisterTelemetry,
    /// True if no frame is in the gates.
    is_idle: bool,
}

impl RtlDataplane {
    /// Returns a data plane whose ports are all of unknown kind and without carrier, and whose
    /// tables are empty.
    ///
    /// # Errors
    /// The model is missing; see [`Model::load`].
    ///
    /// # Panics
    /// As [`RtlDataplane::with_model`].
    pub fn new(config: PlaneConfig) -> Result<RtlDataplane, ModelError> {
        RtlDataplane::with_model(Model::load(config.hop_width)?, config)
    }

    /// Returns a data plane with this device, which has been reset.
    ///
    /// # Errors
    /// The device has registers of another version.
    ///
    /// # Panics
    /// If the configuration contains features that the device does not have: traffic classes,
    /// refused frames ([`OnFull`]), pauses against self-congestion; more ports, or frames longer
    /// than its buffers.
    pub fn with_model(model: Model, config: PlaneConfig) -> Result<RtlDataplane, ModelError> {
        let size = model.size();
        assert!(config.dcb.is_none(), "the device has no traffic classes");
        assert!(config.on_full == OnFull::Drop, "the device keeps and reports no refused frame");
        assert!(!config.self_congestion_pause, "the device pauses no hosts by itself");
        assert!(u32::from(config.ports) <= size.ports, "the device has {} ports", size.ports);
        let frame_bytes = config.frame_bytes_max + config.route_bytes_max + BUFFER_MARGIN_BYTES;
        assert!(frame_bytes <= size.buffer_bytes as usize, "frames longer than the buffers");
        let mut pins = Pins::new(model);
        if !Driver::is_known(&mut pins) {
            return Err(ModelError::Registers);
        }
        let driver = Driver::new(&mut pins, size, &config);
        Ok(RtlDataplane {
            clock: Clock::new(pins.cycle()),
            registers: pins.aside(registers::read),
            look_at: pins.cycle() + LOOK_CYCLES,
            pins: RefCell::new(pins),
            driver,
            wires: (0..config.ports).map(|_| Wire::new(&config)).collect(),
            outgoing: Outgoing::new(config.ports),
            counters: Counters::new(config.ports),
            inside: 0,
            is_idle: true,
            config,
        })
    }

    /// Unties the clock of the device from the time of its inputs; see [the module](self).
    #[must_use]
    pub const fn with_own_clock(mut self) -> RtlDataplane {
        self.clock.untie();
        self
    }

    /// Returns the number of frames in the gates.
    pub const fn inside(&self) -> u64 {
        self.inside
    }

    /// Returns the registers: those of now if no frame is in the gates, or else at the last look. A
    /// read takes cycles, which must not delay frames; to a device at rest they do not count.
    fn read_registers(&self) -> RegisterTelemetry {
        if !self.is_idle {
            return self.registers.clone();
        }
        self.pins.borrow_mut().aside(registers::read)
    }

    /// Returns the driver, and the bus with which it reads and writes registers.
    pub fn registers(&mut self) -> (&Driver, &mut Pins) {
        (&self.driver, self.pins.get_mut())
    }

    /// Runs the model until `now`, or for some cycles, or until the device is at rest.
    fn advance(&mut self, now: Time, out: &mut Vec<Action>) {
        if self.clock.is_own() && !self.is_idle {
            self.set_time(now);
        }
        let until = self.clock.run_until(self.pins.get_mut().cycle(), now);
        while !self.is_idle && self.pins.get_mut().cycle() < until {
            self.inside += self.outgoing.give(self.pins.get_mut());
            let batch = if self.outgoing.is_waiting() { BATCH_CYCLES } else { LOOK_CYCLES };
            let pins = self.pins.get_mut();
            pins.run(until.min(pins.cycle() + batch));
            self.take_left(now, out);
            let is_quiet = self.pins.get_mut().is_quiet();
            if is_quiet && self.inside > 0 || self.pins.get_mut().cycle() >= self.look_at {
                self.look(out);
            }
            if is_quiet && self.inside == 0 {
                self.outgoing.all_left();
                self.is_idle = !self.outgoing.is_waiting();
            }
        }
        self.take_left(now, out);
        self.clock.reached(self.pins.get_mut().cycle(), now, self.is_idle);
    }

    /// Sets the time of the probe units to `now`, unless they are ahead of it. The cycles that this
    /// takes do not count.
    fn set_time(&mut self, now: Time) {
        let pins = self.pins.get_mut();
        let time = self.clock.time_of_units(pins.cycle(), now);
        Driver::set_time(pins, time);
        self.clock.units_set(pins.cycle(), now, time);
    }

    /// Reads the drops of the gates, and reports each; the bytes of those frames are gone.
    fn look(&mut self, out: &mut Vec<Action>) {
        let pins = self.pins.get_mut();
        if pins.cycle() >= self.look_at {
            self.registers = registers::read(pins);
            self.look_at = pins.cycle() + LOOK_CYCLES;
        }
        for (ingress, reason, count) in self.driver.take_drops(self.pins.get_mut()) {
            self.leave(count);
            let reason = reason.unwrap_or(Drop::BadFcs);
            self.lose(count, (ingress, reason), out);
            if ingress == PortNo::CONTROL {
                self.outgoing.all_left();
            }
        }
    }

    /// Passes on the frames that have left the gates.
    fn take_left(&mut self, now: Time, out: &mut Vec<Action>) {
        while let Some(left) = self.pins.get_mut().take_left() {
            self.leave(1);
            match left {
                Left::Sent { port, frame, intact, well_spaced, .. } => {
                    self.outgoing.left(port, &frame);
                    let frame = FrameBuf::new(&frame);
                    // No receiver takes a frame that follows too closely.
                    match self.wires[port.index()].push(frame, intact && well_spaced) {
                        Ok(()) => self.send_next(now, port, out),
                        Err((reason, frame)) => self.end(PortNo::CONTROL, reason, frame, out),
                    }
                }
                Left::Punted { ingress, reason, frame } => {
                    let ingress = PortNo(ingress.into());
                    let reason = Punt::ALL.get(usize::from(reason));
                    let punt = reason.copied().unwrap_or(Punt::Error);
                    self.punted(now, (ingress, punt), FrameBuf::new(&frame), out);
                }
            }
        }
    }

    /// Passes a punted frame to the control plane, within the limits of its port.
    fn punted(
        &mut self,
        now: Time,
        (ingress, mut punt): (PortNo, Punt),
        mut frame: FrameBuf,
        out: &mut Vec<Action>,
    ) {
        let wire = self.wires.get_mut(ingress.index());
        if !wire.is_none_or(|wire| wire.admit(now, punt)) {
            return self.end(ingress, Drop::PuntLimit, frame, out);
        }
        let fields = HeaderFields::parse(frame.bytes(), self.config.hop_width).ok();
        let mut header_bytes = match punt {
            Punt::LinkLocal => 0,
            _ => fields.map_or(0, |fields| fields.header_bytes),
        };
        // The gates put the default header in front of ether probes too.
        if punt == Punt::Miss && axon_wire::probe::is_ether(&frame.bytes()[header_bytes..]) {
            frame.pop_front(header_bytes);
            (punt, header_bytes) = (Punt::EtherProbe, 0);
        }
        self.counters.count(ingress, PortEvent::Punt(punt));
        out.push(Action::Punt { ingress, frame, punt, header_bytes: header_bytes as u16 });
    }

    /// Gives the first waiting frame to the wire of `port`, if that is free.
    fn send_next(&mut self, now: Time, port: PortNo, out: &mut Vec<Action>) {
        if let Some((frame, intact)) = self.wires[port.index()].next() {
            self.counters.sent(port, frame.length());
            out.push(Action::Transmit { port, frame, complete_at: now, intact });
        }
    }

    /// Receives a frame from the wire of a port.
    fn receive(
        &mut self,
        now: Time,
        port: PortNo,
        (mut frame, intact): (FrameBuf, bool),
        out: &mut Vec<Action>,
    ) {
        self.counters.received(port, frame.length());
        if self.driver.kind(port).is_none() {
            return self.end(port, Drop::NoSuchPort, frame, out);
        }
        frame.make_whole();
        self.wake(now);
        self.pins.get_mut().feed(port, frame.bytes(), (!intact).then_some(Damage::Fcs));
        self.inside += 1;
    }

    /// Lets a device that is at rest run from `now` on.
    fn wake(&mut self, now: Time) {
        if self.is_idle {
            self.set_time(now);
            self.is_idle = false;
        }
    }

    /// Counts frames that have left the gates, each of which was counted when it went in.
    fn leave(&mut self, count: u64) {
        debug_assert!(count <= self.inside, "one end for each frame in the gates");
        self.inside = self.inside.saturating_sub(count);
    }

    /// Sets the carrier of a port. The frame on a wire that is cut is bad, and those behind it are
    /// lost.
    fn link(&mut self, now: Time, port: PortNo, is_up: bool, out: &mut Vec<Action>) {
        let Some(wire) = self.wires.get_mut(port.index()) else { return };
        let left = wire.set_link(is_up);
        self.wake(now);
        let removed = self.pins.get_mut().set_link(port, is_up);
        self.leave(removed.len() as u64);
        for carrier in removed {
            self.end(port, Drop::PortDown, FrameBuf::new(carrier.frame()), out);
        }
        let waiting = if is_up { Default::default() } else { self.outgoing.clear(port) };
        for frame in left.into_iter().chain(waiting) {
            self.end(PortNo::CONTROL, Drop::PortDown, frame, out);
        }
    }

    /// Returns the kind of `port`; `None` if there is no such port.
    fn kind_of(&self, port: PortNo) -> Option<PortKind> {
        self.driver.kind(port)
    }

    /// Counts and reports frames that ended in the gates or on a wire; their bytes are gone.
    fn lose(&mut self, count: u64, (ingress, reason): (PortNo, Drop), out: &mut Vec<Action>) {
        for _ in 0..count {
            self.end(ingress, reason, FrameBuf::new(&[]), out);
        }
    }

    fn end(&mut self, ingress: PortNo, reason: Drop, frame: FrameBuf, out: &mut Vec<Action>) {
        self.counters.count(ingress, PortEvent::Drop(reason));
        out.push(Action::Dropped { ingress, reason, frame });
    }
}

impl Node for RtlDataplane {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.advance(now, out);
        match input {
            Input::Frame { port, frame, intact, .. } => {
                while self.clock.is_own() && self.pins.get_mut().backlog(port) > BACKLOG_BYTES {
                    self.advance(now, out);
                }
                self.receive(now, port, (frame, intact), out);
            }
            Input::TxDone { port } => {
                if let Some(wire) = self.wires.get_mut(port.index()) {
                    wire.done();
                    self.send_next(now, port, out);
                }
            }
            Input::Link { port, up } => self.link(now, port, up, out),
            Input::Timeout => {}
            Input::Command(command) => {
                out.push(Action::Reply(command.unsupported_by(NodeKind::Switch)));
            }
        }
    }

    /// Returns the end of the next batch of cycles; `None` while the device is at rest.
    fn deadline(&self) -> Option<Time> {
        (!self.is_idle).then(|| self.clock.deadline(self.pins.borrow().cycle()))
    }
}
