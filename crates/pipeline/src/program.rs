//! Control programs, which fill the tables, and the node that combines one with its pipeline.

use crate::change::{Change, ChangeError, EntryName};
use crate::pipeline::{Pipeline, PipelineConfig};
use crate::register::{Register, RegisterError};
use crate::request;
use crate::tables::EntryCount;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use axon_node::telemetry::{PlaneTelemetry, ProgrammableTelemetry, TableCount};
use axon_node::{
    Action, Awaited, Command, CommandError, Done, Drop, Input, Node, NodeKind, PortEvent, Reply,
    Request, Shortcuts,
};
use axon_plane::ports::telemetry;
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};

/// Packet from the switch to its control program (RecvPacket).
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The ingress port.
    pub ingress: PortNo,
    /// The frame, without FCS.
    pub frame: &'a [u8],
}

/// Operations of a control program on its switch (paper 004 §3.3.2).
pub trait Control {
    /// Makes all changes of the tables, or none.
    ///
    /// # Errors
    /// The first change that cannot be made, and the reason.
    fn commit(&mut self, changes: &[Change]) -> Result<(), ChangeError>;

    /// Reads a register.
    ///
    /// # Errors
    /// No such port, or no such entry.
    fn read_register(&self, register: Register) -> Result<u64, RegisterError>;

    /// Writes a register.
    ///
    /// # Errors
    /// No such port, a value out of range, or a register that can only be read.
    fn write_register(&mut self, register: Register, value: u64) -> Result<(), RegisterError>;

    /// Sends a frame out of a port, bypassing the tables (SendPacket). The frame is dropped and
    /// counted if it is not valid Ethernet or too long, or if its port does not exist or has no
    /// carrier.
    fn send_packet(&mut self, port: PortNo, frame: &[u8]);

    /// Forwards a frame by the tables, as if received on `port`, or on none.
    fn inject_packet(&mut self, port: Option<PortNo>, frame: &[u8]);

    /// Returns the number of ports, which are numbered from 0.
    fn ports(&self) -> u16;

    /// Returns whether a port has carrier.
    fn is_up(&self, port: PortNo) -> bool;

    /// Returns the MAC address of the switch.
    fn mac(&self) -> MacAddr;
}

/// Control program of one switch. Its functions do not block or read a clock.
pub trait Program: Send {
    /// Called at the start of the switch: its tables are empty, its ports are without carrier.
    fn start(&mut self, now: Time, control: &mut dyn Control);

    /// Called when the carrier of a port changes.
    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        let _ = (now, port, up, control);
    }

    /// Called with a packet that the switch has sent to the program.
    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control);

    /// Called when an operator has removed these entries. A program that needs them sets them
    /// again; entries set by an operator are the operator's concern.
    fn removed(&mut self, now: Time, entries: &[EntryName], control: &mut dyn Control) {
        let _ = (now, entries, control);
    }

    /// Called when the deadline has passed, or may have.
    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        let _ = (now, control);
    }

    /// Returns the time of the next call of [`Program::timeout`].
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// Returns whether the switch can carry traffic of hosts, as far as the program can determine:
    /// a simulation waits for that before traffic begins.
    fn is_ready(&self) -> bool {
        true
    }

    /// Returns whether the program accepts packets now: others are dropped as `no_program`.
    fn takes_packets(&self) -> bool {
        self.failure().is_none()
    }

    /// Returns whether packets are queued for the program after [`Program::receive_packet`]: each
    /// is then counted only when it is processed or lost ([`Program::take_ended`]).
    fn queues_packets(&self) -> bool {
        false
    }

    /// Returns the queued packets that were processed or lost since the last call: the ingress port
    /// of each, and whether the program accepted it. A packet lost with the program is counted as
    /// `no_program`.
    fn take_ended(&mut self) -> Vec<(PortNo, bool)> {
        Vec::new()
    }

    /// Returns the reason for which the program has ended; `None` while it runs. Its switch
    /// continues with the current tables. Such a program accepts no packets.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Returns the reason for which the tables refuse entries of the program, as long as they are
    /// missing: it continues with the previous entries, and tries again.
    fn refusal(&self) -> Option<String> {
        None
    }
}

/// Maximum number of times that frames injected by a program may return to it within one input.
const ROUNDS_MAX: u32 = 8;

/// Switch node: a pipeline and its control program.
pub struct ProgramNode {
    pipeline: Pipeline,
    program: Box<dyn Program>,
    /// Actions of the pipeline that are not processed yet.
    actions: Vec<Action>,
    is_started: bool,
}

impl ProgramNode {
    /// Returns a switch whose program starts with the first input.
    pub fn new(config: PipelineConfig, program: Box<dyn Program>) -> ProgramNode {
        let pipeline = Pipeline::new(config);
        ProgramNode { pipeline, program, actions: Vec::new(), is_started: false }
    }

    /// Returns the data plane.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Returns the control program.
    pub fn program(&self) -> &dyn Program {
        &*self.program
    }

    /// Returns the telemetry at `now`, with `program` as the name of the control program.
    pub fn telemetry(&self, now: Time, program: &str) -> ProgrammableTelemetry {
        let count = |count: EntryCount| TableCount {
            table: count.table.name().into(),
            entries: count.entries,
            size: count.size,
        };
        let ports = self.pipeline.ports();
        let all = (0..self.pipeline.config().ports).map(PortNo);
        ProgrammableTelemetry {
            program: program.into(),
            ready: self.is_started && self.program.is_ready(),
            failure: self.program.failure(),
            refusal: self.program.refusal(),
            tables: self.pipeline.tables().counts().into_iter().map(count).collect(),
            plane: PlaneTelemetry {
                total: ports.counters().total(),
                memory: telemetry::of_memory(ports),
                ports: all.map(|port| telemetry::of_port(ports, now, port)).collect(),
                registers: None,
            },
        }
    }

    /// Executes an operator's command on the tables and calls the program for removed entries.
    fn answer(&mut self, now: Time, command: &Command) -> Reply {
        let Request::Tables(request) = &command.request else {
            return command.unsupported_by(NodeKind::Programmable);
        };
        let result = match request::serve(&mut self.pipeline, request) {
            Ok((answer, removed)) => {
                if !removed.is_empty() {
                    self.act(now, |program, control| program.removed(now, &removed, control));
                }
                Ok(Done::Tables(answer))
            }
            Err(error) => Err(CommandError::Tables(error.to_string())),
        };
        Reply { id: command.id, result }
    }

    fn act(&mut self, now: Time, call: impl FnOnce(&mut dyn Program, &mut dyn Control)) {
        let ProgramNode { pipeline, program, actions, .. } = self;
        call(&mut **program, &mut Session { pipeline, now, actions });
    }

    /// Passes a packet to the program, if it accepts one, and returns how it ends. The memory of a
    /// queued packet is free from then on, and the packet is counted later.
    fn hand_over(&mut self, now: Time, ingress: PortNo, frame: &FrameBuf) -> Drop {
        if !self.program.takes_packets() {
            return self.count(ingress, Drop::NoProgram);
        }
        let received = Received { ingress, frame: frame.bytes() };
        self.act(now, |program, control| program.receive_packet(now, received, control));
        if self.program.queues_packets() {
            Drop::Consumed
        } else if self.program.takes_packets() {
            self.count(ingress, Drop::Consumed)
        } else {
            self.count(ingress, Drop::NoProgram)
        }
    }

    fn count(&mut self, ingress: PortNo, reason: Drop) -> Drop {
        self.pipeline.ports_mut().count(ingress, PortEvent::Drop(reason));
        reason
    }

    /// Passes punted frames to the program, and other actions to the runtime. Frames that the
    /// program injects may return to it, at most [`ROUNDS_MAX`] times.
    fn settle(&mut self, now: Time, out: &mut Vec<Action>) {
        let mut rounds = 0;
        while !self.actions.is_empty() {
            rounds += 1;
            for action in core::mem::take(&mut self.actions) {
                let Action::Punt { ingress, frame, .. } = action else {
                    out.push(action);
                    continue;
                };
                let reason = if rounds > ROUNDS_MAX {
                    self.count(ingress, Drop::PuntLimit)
                } else {
                    self.hand_over(now, ingress, &frame)
                };
                out.push(Action::Dropped { ingress, reason, frame });
            }
        }
        for (ingress, taken) in self.program.take_ended() {
            self.count(ingress, if taken { Drop::Consumed } else { Drop::NoProgram });
        }
    }
}

impl Node for ProgramNode {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        if !core::mem::replace(&mut self.is_started, true) {
            self.act(now, |program, control| program.start(now, control));
        }
        match input {
            Input::Command(command) => out.push(Action::Reply(self.answer(now, &command))),
            Input::Link { port, up } => {
                Node::handle(&mut self.pipeline, now, Input::Link { port, up }, &mut self.actions);
                self.act(now, |program, control| program.link(now, port, up, control));
            }
            input => Node::handle(&mut self.pipeline, now, input, &mut self.actions),
        }
        self.pipeline.ports_mut().timeout(now, &mut self.actions);
        if self.program.deadline().is_some_and(|deadline| deadline <= now) {
            self.act(now, |program, control| program.timeout(now, control));
        }
        self.settle(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        if !self.is_started {
            return Some(Time::ZERO);
        }
        [self.pipeline.ports().deadline(), self.program.deadline()].into_iter().flatten().min()
    }

    fn queue_bytes(&self, port: PortNo) -> Option<u64> {
        self.pipeline.read_register(Register::QueueBytes(port)).ok()
    }
}

impl Shortcuts for ProgramNode {
    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.pipeline.ports_mut().awaited()
    }
}

/// Access to the switch during one call of its program.
struct Session<'a> {
    pipeline: &'a mut Pipeline,
    now: Time,
    actions: &'a mut Vec<Action>,
}

impl Control for Session<'_> {
    fn commit(&mut self, changes: &[Change]) -> Result<(), ChangeError> {
        self.pipeline.commit(changes)
    }

    fn read_register(&self, register: Register) -> Result<u64, RegisterError> {
        self.pipeline.read_register(register)
    }

    fn write_register(&mut self, register: Register, value: u64) -> Result<(), RegisterError> {
        self.pipeline.write_register(register, value)
    }

    fn send_packet(&mut self, port: PortNo, frame: &[u8]) {
        self.pipeline.send(self.now, port, frame, self.actions);
    }

    fn inject_packet(&mut self, port: Option<PortNo>, frame: &[u8]) {
        self.pipeline.inject(self.now, port, frame, self.actions);
    }

    fn ports(&self) -> u16 {
        self.pipeline.config().ports
    }

    fn is_up(&self, port: PortNo) -> bool {
        self.pipeline.ports().wires().is_up(port)
    }

    fn mac(&self) -> MacAddr {
        self.pipeline.config().mac
    }
}
