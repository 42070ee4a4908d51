//! Pins of the device: steps the model, cycle by cycle, with frames on its ports and requests on
//! its register bus.

use crate::driver::Bus;
use crate::gmii::{self, Carrier, Damage, Receiver, Sender};
use crate::model::{Inputs, Model, Outputs, Size};
use axon_wire::PortNo;
use std::collections::VecDeque;

/// A symbol with this bit is the end of a frame; its lowest bit is 1 if the frame is bad.
pub const SYMBOL_END: u16 = 1 << 8;
/// Cycles without a byte at any pin after which frames in the device are at rest: more than from a
/// byte at an ingress to its decision, and from there to an output.
const QUIET_CYCLES: u64 = 64;
/// Bytes before a punted frame: its ingress port, and the reason.
const PUNT_DESCRIPTION: usize = 2;

/// A frame that has left the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// By a port.
    Sent {
        /// The port.
        port: PortNo,
        /// The frame with its padding, without FCS.
        frame: Vec<u8>,
        /// True if its FCS is correct.
        intact: bool,
        /// True if its preamble and the gap before it were whole.
        well_spaced: bool,
        /// Cycle of the first byte of its preamble, if that was whole.
        began: u64,
    },
    /// To the CPU.
    Punted {
        /// Number of the ingress port.
        ingress: u8,
        /// Number of the reason, as [`Punt::ALL`](axon_node::Punt::ALL).
        reason: u8,
        /// The frame, with an Axon header unless it is link-local.
        frame: Vec<u8>,
    },
}

/// A device with its pins.
#[derive(Debug)]
pub struct Pins {
    model: Model,
    inputs: Inputs,
    /// Cycles since the reset.
    cycle: u64,
    /// Cycles without a byte at any pin.
    quiet: u64,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// Symbols to inject.
    inject: VecDeque<u16>,
    /// Bytes of the frame that is being punted.
    punt: Vec<u8>,
    left: VecDeque<Left>,
}

impl Pins {
    /// Returns the pins of a device, without carrier and without frames.
    pub fn new(model: Model) -> Pins {
        let ports = model.size().ports as usize;
        Pins {
            model,
            inputs: Inputs { punt_ready: 1, ..Inputs::default() },
            cycle: 0,
            quiet: QUIET_CYCLES,
            senders: vec![Sender::default(); ports],
            receivers: vec![Receiver::default(); ports],
            inject: VecDeque::new(),
            punt: Vec::new(),
            left: VecDeque::new(),
        }
    }

    /// Returns the size of the device.
    pub const fn size(&self) -> Size {
        self.model.size()
    }

    /// Returns the number of clock cycles since the reset.
    pub const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Reads registers of a device at rest, in cycles that do not count.
    pub fn aside<T>(&mut self, read: impl FnOnce(&mut Pins) -> T) -> T {
        let cycle = self.cycle;
        let result = read(self);
        self.cycle = cycle;
        result
    }

    /// Returns whether no byte has been at any pin for so long that no frame is on its way to or
    /// from a buffer. Frames may still be in buffers.
    pub fn is_quiet(&self) -> bool {
        self.quiet >= QUIET_CYCLES && self.is_silent()
    }

    /// Sets the carrier of a port. Without carrier the frame on its wire is cut off; removes those
    /// behind it, and returns them.
    pub fn set_link(&mut self, port: PortNo, is_up: bool) -> VecDeque<Carrier> {
        self.inputs.link_up[port.index()] = u8::from(is_up);
        self.quiet = 0;
        if is_up { VecDeque::new() } else { self.senders[port.index()].cut() }
    }

    /// Puts a frame on the wire to a port, behind those that are there.
    pub fn feed(&mut self, port: PortNo, frame: &[u8], damage: Option<Damage>) {
        self.feed_carrier(port, Carrier::of(frame, damage));
    }

    /// Puts bytes on the wire to a port, behind those that are there.
    pub fn feed_carrier(&mut self, port: PortNo, carrier: Carrier) {
        self.senders[port.index()].push(carrier);
        self.quiet = 0;
    }

    /// Returns the bytes on the wire to a port that have not arrived.
    pub fn backlog(&self, port: PortNo) -> usize {
        self.senders.get(port.index()).map_or(0, Sender::backlog)
    }

    /// Injects a frame of the CPU for an output port, behind those before it.
    pub fn inject(&mut self, port: PortNo, frame: &[u8]) {
        let bytes = [port.0 as u8].into_iter().chain(frame.iter().copied());
        self.inject.extend(bytes.map(u16::from).chain([SYMBOL_END]));
        self.quiet = 0;
    }

    /// Returns whether a frame is being injected.
    pub fn is_injecting(&self) -> bool {
        !self.inject.is_empty()
    }

    /// Takes the first of the frames that have left.
    pub fn take_left(&mut self) -> Option<Left> {
        self.left.pop_front()
    }

    /// Runs the device until this many cycles since the reset, or until it becomes quiet.
    pub fn run(&mut self, until: u64) {
        let was_quiet = self.is_quiet();
        while self.cycle < until && (was_quiet || !self.is_quiet()) {
            // A byte at a pin: another one follows, or a gap does.
            if self.quiet <= 1 || !self.is_silent() {
                self.step();
                continue;
            }
            let mut most = until - self.cycle;
            if !was_quiet {
                most = most.min(QUIET_CYCLES.saturating_sub(self.quiet).max(1));
            }
            let (done, outputs) = self.model.step_many(&self.inputs, most);
            self.cycle += done;
            self.quiet += done;
            self.receivers.iter_mut().for_each(|receiver| receiver.idle(done - 1));
            self.sample(&outputs);
        }
    }

    /// Returns whether no byte is on its way to a pin, and none was at an output.
    fn is_silent(&self) -> bool {
        self.inject.is_empty()
            && self.punt.is_empty()
            && self.senders.iter().all(Sender::is_idle)
            && self.receivers.iter().all(Receiver::is_idle)
    }

    fn step(&mut self) -> Outputs {
        let mut inputs = self.inputs;
        let busy = self.senders.iter_mut().enumerate().filter(|(_, sender)| !sender.is_idle());
        for (port, sender) in busy {
            let Some((byte, is_error)) = sender.step() else { continue };
            inputs.rxd[port] = byte;
            inputs.rx_dv[port] = 1;
            inputs.rx_er[port] = u8::from(is_error);
            self.quiet = 0;
        }
        if let Some(&symbol) = self.inject.front() {
            (inputs.inject_valid, inputs.inject_symbol) = (1, symbol);
            self.quiet = 0;
        }
        let outputs = self.model.step(&inputs);
        if inputs.inject_valid == 1 && outputs.inject_ready == 1 {
            self.inject.pop_front();
        }
        self.cycle += 1;
        self.quiet += 1;
        self.sample(&outputs);
        outputs
    }

    /// Takes the bytes at the output pins in one cycle.
    #[inline]
    fn sample(&mut self, outputs: &Outputs) {
        for (port, receiver) in self.receivers.iter_mut().enumerate() {
            let is_sending = outputs.tx_en[port] == 1;
            let byte = is_sending.then(|| (outputs.txd[port], outputs.tx_er[port] == 1));
            if let Some(received) = receiver.step(byte) {
                let ended = self.cycle - 1;
                self.left.push_back(Left::Sent {
                    port: PortNo(port as u16),
                    began: ended.saturating_sub(gmii::wire_bytes(received.frame.len()) as u64),
                    frame: received.frame,
                    intact: received.intact,
                    well_spaced: received.well_spaced,
                });
            }
            if is_sending {
                self.quiet = 0;
            }
        }
        if outputs.punt_valid == 1 {
            self.quiet = 0;
            self.punted(outputs.punt_symbol);
        }
    }

    /// Takes a symbol of a punted frame. The device punts whole and good frames only.
    fn punted(&mut self, symbol: u16) {
        if symbol & SYMBOL_END == 0 {
            return self.punt.push(symbol as u8);
        }
        let mut bytes = std::mem::take(&mut self.punt);
        if let &[ingress, reason, ..] = &bytes[..] {
            let frame = bytes.split_off(PUNT_DESCRIPTION);
            self.left.push_back(Left::Punted { ingress, reason, frame });
        }
    }
}

impl Bus for Pins {
    /// Takes three cycles.
    fn read(&mut self, address: u16) -> u32 {
        (self.inputs.reg_read, self.inputs.reg_address) = (1, address);
        self.step();
        self.inputs.reg_read = 0;
        self.step();
        self.step().reg_read_data
    }

    /// Takes one cycle.
    fn write(&mut self, address: u16, value: u32) {
        self.inputs.reg_write = 1;
        (self.inputs.reg_address, self.inputs.reg_write_data) = (address, value);
        self.step();
        self.inputs.reg_write = 0;
    }

    fn wait(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }
}
