//! Program side of the socket pair, which receives calls and sends requests to its switch.

use crate::channel::{Channel, ChannelError};
use crate::message::{Call, FromProgram, Reply, Request, ToProgram};
use axon_pipeline::{Change, ChangeError, Register, RegisterError};
use axon_wire::{PortNo, Time};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// Program side of the socket pair.
#[derive(Debug)]
pub struct Session {
    channel: Channel,
}

impl Session {
    /// Creates the program side on `stream`.
    pub fn new(stream: UnixStream) -> Session {
        Session { channel: Channel::new(stream) }
    }

    /// Creates the program side on standard input, which is the socket of a started process.
    ///
    /// # Errors
    /// Standard input is closed.
    pub fn of_stdin() -> std::io::Result<Session> {
        let own = std::io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Session::new(UnixStream::from(own)))
    }

    /// Waits for the next call. Returns `None` if the switch is gone.
    ///
    /// # Errors
    /// The other end sends a message that is not a call.
    pub fn next_call(&mut self) -> Result<Option<(Time, Call)>, ChannelError> {
        self.channel.send(None)?;
        match self.channel.receive(None) {
            Ok(ToProgram::Call { now, call }) => Ok(Some((now, call))),
            Ok(ToProgram::Reply(_)) => Err(ChannelError::Malformed),
            Err(ChannelError::Closed) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes either all of these table changes or none.
    ///
    /// # Errors
    /// The channel fails. The inner error is the first change that fails.
    pub fn commit(
        &mut self,
        changes: Vec<Change>,
    ) -> Result<Result<(), ChangeError>, ChannelError> {
        match self.ask(Request::Commit(changes))? {
            Reply::Commit(result) => Ok(result),
            _ => Err(ChannelError::Malformed),
        }
    }

    /// Reads a register.
    ///
    /// # Errors
    /// The channel fails. The inner error is that of the register.
    pub fn read_register(
        &mut self,
        register: Register,
    ) -> Result<Result<u64, RegisterError>, ChannelError> {
        match self.ask(Request::Read(register))? {
            Reply::Read(result) => Ok(result),
            _ => Err(ChannelError::Malformed),
        }
    }

    /// Writes a register.
    ///
    /// # Errors
    /// The channel fails. The inner error is that of the register.
    pub fn write_register(
        &mut self,
        register: Register,
        value: u64,
    ) -> Result<Result<(), RegisterError>, ChannelError> {
        match self.ask(Request::Write(register, value))? {
            Reply::Write(result) => Ok(result),
            _ => Err(ChannelError::Malformed),
        }
    }

    /// Returns whether a port has carrier.
    ///
    /// # Errors
    /// The channel fails.
    pub fn is_up(&mut self, port: PortNo) -> Result<bool, ChannelError> {
        match self.ask(Request::IsUp(port))? {
            Reply::IsUp(up) => Ok(up),
            _ => Err(ChannelError::Malformed),
        }
    }

    /// Sends a frame out of a port, bypassing the tables.
    ///
    /// # Errors
    /// The channel fails.
    pub fn send_packet(&mut self, port: PortNo, frame: Vec<u8>) -> Result<(), ChannelError> {
        self.put(Request::Send { port, frame })
    }

    /// Forwards a frame according to the tables, as if it was received at `port`. If `port` is
    /// `None`, it has no ingress port.
    ///
    /// # Errors
    /// The channel fails.
    pub fn inject_packet(
        &mut self,
        port: Option<PortNo>,
        frame: Vec<u8>,
    ) -> Result<(), ChannelError> {
        self.put(Request::Inject { port, frame })
    }

    /// Completes a call.
    ///
    /// # Errors
    /// The channel fails.
    pub fn done(&mut self, deadline: Option<Time>, is_ready: bool) -> Result<(), ChannelError> {
        self.channel.put(&FromProgram::Done { deadline, is_ready })?;
        self.channel.send(None)
    }

    /// Reports that the program has ended because of its own error.
    ///
    /// # Errors
    /// The channel fails.
    pub fn failed(&mut self, why: &str) -> Result<(), ChannelError> {
        self.channel.put(&FromProgram::Failed(why.to_owned()))?;
        self.channel.send(None)
    }

    fn put(&mut self, request: Request) -> Result<(), ChannelError> {
        self.channel.put(&FromProgram::Request(request))?;
        if self.channel.is_heavy() { self.channel.send(None) } else { Ok(()) }
    }

    fn ask(&mut self, request: Request) -> Result<Reply, ChannelError> {
        self.channel.put(&FromProgram::Request(request))?;
        self.channel.send(None)?;
        match self.channel.receive(None)? {
            ToProgram::Reply(reply) => Ok(reply),
            ToProgram::Call { .. } => Err(ChannelError::Malformed),
        }
    }
}
