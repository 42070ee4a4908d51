//! Control programs: what fills the tables, and the node that joins one with its pipeline.

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
    Action, Awaited, Command, CommandError, Done, Drop, Input, Node, NodeKind, Reply, Request,
};
use axon_wire::{FrameBuf, MacAddr, PortNo, Time};

/// A packet that the switch has sent to its control program (RecvPacket).
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The port that it came in by.
    pub ingress: PortNo,
    /// The frame, without FCS.
    pub frame: &'a [u8],
}

/// What a control program can do with its switch (paper 004 §3.3.2).
pub trait Control {
    /// Makes all changes of the tables, or none.
    ///
    /// # Errors
    /// The first change that cannot be made, and why.
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

    /// Sends a frame out of a port, past the tables (SendPacket). One that is no Ethernet or too
    /// long, or whose port is not there or has no carrier, is dropped and counted.
    fn send_packet(&mut self, port: PortNo, frame: &[u8]);

    /// Sends a frame where the tables say, as if it had come in by `port`, or by none.
    fn inject_packet(&mut self, port: Option<PortNo>, frame: &[u8]);

    /// How many ports there are; they are numbered from 0.
    fn ports(&self) -> u16;

    /// Whether a port has carrier.
    fn is_up(&self, port: PortNo) -> bool;

    /// The address of the switch.
    fn mac(&self) -> MacAddr;
}

/// The control program of one switch. Nothing here blocks or reads a clock.
pub trait Program: Send {
    /// The switch begins: its tables are empty, its ports are without carrier.
    fn start(&mut self, now: Time, control: &mut dyn Control);

    /// The carrier of a port came or went.
    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        let _ = (now, port, up, control);
    }

    /// The switch has sent a packet here.
    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control);

    /// An operator has removed these entries. A program that is to have them as before sets them
    /// again; what an operator sets is up to the operator.
    fn removed(&mut self, now: Time, entries: &[EntryName], control: &mut dyn Control) {
        let _ = (now, entries, control);
    }

    /// The deadline has passed, or may have.
    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        let _ = (now, control);
    }

    /// When to call [`Program::timeout`] next.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// Whether its switch can carry what hosts send, as far as it knows: a simulation waits for
    /// that before traffic begins.
    fn is_ready(&self) -> bool {
        true
    }

    /// Whether the program takes a packet now: what it does not take is dropped as `no_program`.
    fn takes_packets(&self) -> bool {
        self.failure().is_none()
    }

    /// Whether packets wait for the program after [`Program::receive_packet`]: each is counted only
    /// when it has ended ([`Program::take_ended`]).
    fn queues_packets(&self) -> bool {
        false
    }

    /// Packets that were queued and have ended since the last call: the port that each came in by,
    /// and whether the program took it. One that was lost with the program is counted as
    /// `no_program`.
    fn take_ended(&mut self) -> Vec<(PortNo, bool)> {
        Vec::new()
    }

    /// Why the program has ended, if it has: its switch goes on with the tables that it has. Such a
    /// program takes no packets.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Why the tables have refused what the program wants in them, as long as they lack it: it runs
    /// on, with the entries of before, and tries again.
    fn refusal(&self) -> Option<String> {
        None
    }
}

/// How often what a program sends may come back to it before anything else happens.
const ROUNDS_MAX: u32 = 8;

/// A switch: a pipeline and its control program.
pub struct ProgramNode {
    pipeline: Pipeline,
    program: Box<dyn Program>,
    /// What the pipeline has answered and is not handed on yet.
    actions: Vec<Action>,
    is_started: bool,
}

impl ProgramNode {
    /// A switch that has just been switched on; its program starts with the first input.
    pub fn new(config: PipelineConfig, program: Box<dyn Program>) -> ProgramNode {
        let pipeline = Pipeline::new(config);
        ProgramNode { pipeline, program, actions: Vec::new(), is_started: false }
    }

    /// The data plane.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The control program.
    pub fn program(&self) -> &dyn Program {
        &*self.program
    }

    /// What this switch reports of itself at `now`, as one that `program` controls.
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
                memory: ports.memory_telemetry(),
                ports: all.map(|port| ports.telemetry(now, port)).collect(),
            },
        }
    }

    /// Does what an operator asks of the tables; the program gets to know what is removed.
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

    /// Hands a packet to the program, if it takes one. Answers how the packet ends; the memory of
    /// one that is queued is free from now on, and it is counted later.
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
        self.pipeline.ports_mut().count_drop(ingress, reason);
        reason
    }

    /// Hands what is for the program to it, and the rest to the runtime. What it injects may come
    /// back to it, but not for ever: of the last round nothing does.
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

    #[inline]
    fn awaited(&mut self) -> Awaited {
        self.pipeline.ports_mut().awaited()
    }

    fn queue_bytes(&self, port: PortNo) -> Option<u64> {
        self.pipeline.read_register(Register::QueueBytes(port)).ok()
    }
}

/// The switch during one call of its program.
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
        self.pipeline.ports().is_up(port)
    }

    fn mac(&self) -> MacAddr {
        self.pipeline.config().mac
    }
}
