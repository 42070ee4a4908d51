//! The switch's end that never waits: for real ports.
//!
//! One call is in flight at a time. Others are queued: packets up to a limit, beyond which they are
//! dropped, and of each port only the last change of its carrier. While a call is in flight the
//! switch looks for what the program sends whenever it handles anything, and besides after 20 us,
//! then 40 us, and so on up to 1 ms.

use crate::limits::Limits;
use crate::message::{Call, FromProgram, ToProgram};
use crate::process::Peer;
use crate::serve::{Work, serve};
use crate::waiting::{SOONEST, late, place};
use axon_pipeline::{Control, Program, Received};
use axon_programs::Site;
use axon_wire::{PortNo, Span, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// Between the first two looks at a call in flight.
const STEP: Span = Span::from_micros(20);
/// Between two looks at most.
const STEP_MAX: Span = Span::from_millis(1);
/// Between two looks whether a process without a call has ended.
const IDLE: Span = Span::from_secs(1);
/// How long a process that has closed its socket may take to end.
const PATIENCE: Duration = Duration::from_millis(20);
/// Messages that are taken in one look.
const MESSAGES_MAX: usize = 256;

/// A program that its switch never waits for.
#[derive(Debug)]
pub struct Queued {
    peer: Peer,
    limits: Limits,
    calls: VecDeque<Call>,
    packets: usize,
    packet_bytes: usize,
    in_flight: Option<InFlight>,
    /// When to look at the process next.
    look: Option<Time>,
    /// When the program wants its timeout.
    deadline: Option<Time>,
    is_ready: bool,
    failure: Option<String>,
}

/// The call that the program works on.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// When it is too late for an answer.
    end: Time,
    /// How long that is after its start.
    limit: Duration,
    step: Span,
    work: Work,
}

impl Queued {
    /// The program at the other end of `peer`, for this place of a network.
    ///
    /// # Errors
    /// The system's own: the socket cannot be set up.
    pub fn new(mut peer: Peer, site: &Site, limits: Limits) -> std::io::Result<Queued> {
        if let Some(channel) = &mut peer.channel {
            channel.set_nonblocking().map_err(std::io::Error::other)?;
        }
        Ok(Queued {
            peer,
            limits,
            calls: VecDeque::from([Call::Load(place(site)), Call::Start]),
            packets: 0,
            packet_bytes: 0,
            in_flight: None,
            look: None,
            deadline: None,
            is_ready: false,
            failure: None,
        })
    }

    /// Sends what can be sent, and takes what has come.
    fn advance(&mut self, now: Time, control: &mut dyn Control) {
        if self.failure.is_some() {
            return;
        }
        if let Err(reason) = self.try_advance(now, control) {
            let lost = self.packets;
            self.peer.close(Duration::ZERO);
            self.calls.clear();
            (self.packets, self.packet_bytes) = (0, 0);
            self.failure = Some(match lost {
                0 => reason,
                lost => format!("{reason}; {lost} packets that waited for it are lost"),
            });
        }
    }

    fn try_advance(&mut self, now: Time, control: &mut dyn Control) -> Result<(), String> {
        for _ in 0..MESSAGES_MAX {
            if self.in_flight.is_none() && !self.send_next(now)? {
                break;
            }
            let Some(message) = self.receive()? else { break };
            self.take(now, message, control)?;
        }
        self.flush()?;
        self.look = Some(match &mut self.in_flight {
            None => {
                // A program without a call sends nothing: what comes is its end.
                if let Some(message) = self.receive()? {
                    self.take(now, message, control)?;
                }
                now + IDLE
            }
            Some(call) if now > call.end => {
                return Err(late(call.limit));
            }
            Some(call) => {
                let step = call.step;
                call.step = (step * 2).min(STEP_MAX);
                now + step
            }
        });
        Ok(())
    }

    /// Begins the next call, if there is one.
    fn send_next(&mut self, now: Time) -> Result<bool, String> {
        let call = match self.calls.pop_front() {
            Some(call) => call,
            None if self.deadline.is_some_and(|deadline| deadline <= now) => Call::Timeout,
            None => return Ok(false),
        };
        if let Call::Packet { frame, .. } = &call {
            self.packets -= 1;
            self.packet_bytes -= frame.len();
        }
        if matches!(call, Call::Timeout) {
            self.deadline = None;
        }
        let limit = match call {
            Call::Load(_) => self.limits.load,
            _ => self.limits.call,
        };
        let end = now + Span::from_nanos(limit.as_nanos() as u64);
        self.in_flight = Some(InFlight { end, limit, step: STEP, work: Work::default() });
        self.put(&ToProgram::Call { now, call })?;
        Ok(true)
    }

    fn take(
        &mut self,
        now: Time,
        message: FromProgram,
        control: &mut dyn Control,
    ) -> Result<(), String> {
        match message {
            FromProgram::Request(request) => {
                let Some(call) = &mut self.in_flight else {
                    return Err("it sent a request without a call".to_owned());
                };
                call.step = STEP;
                call.work.count(&request, self.limits.frames_per_call)?;
                match serve(request, control) {
                    Some(reply) => self.put(&ToProgram::Reply(reply)),
                    None => Ok(()),
                }
            }
            FromProgram::Done { deadline, is_ready } => {
                if self.in_flight.take().is_none() {
                    return Err("it answered without a call".to_owned());
                }
                self.is_ready = is_ready;
                self.deadline = deadline.map(|deadline| deadline.max(now + SOONEST));
                Ok(())
            }
            FromProgram::Failed(why) => Err(why),
        }
    }

    fn put(&mut self, message: &ToProgram) -> Result<(), String> {
        let Some(channel) = &mut self.peer.channel else { return Err("it ended".to_owned()) };
        let sent = channel.put(message).and_then(|()| channel.send_some());
        sent.map_err(|error| self.peer.end(&error, PATIENCE))
    }

    fn flush(&mut self) -> Result<(), String> {
        let Some(channel) = &mut self.peer.channel else { return Err("it ended".to_owned()) };
        let sent = channel.send_some();
        sent.map_err(|error| self.peer.end(&error, PATIENCE))
    }

    fn receive(&mut self) -> Result<Option<FromProgram>, String> {
        let Some(channel) = &mut self.peer.channel else { return Err("it ended".to_owned()) };
        let received = channel.receive_some();
        received.map_err(|error| self.peer.end(&error, PATIENCE))
    }
}

impl Program for Queued {
    fn start(&mut self, now: Time, control: &mut dyn Control) {
        self.advance(now, control);
    }

    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        let same =
            |call: &&mut Call| matches!(call, Call::Link { port: other, .. } if *other == port);
        match self.calls.iter_mut().find(same) {
            Some(queued) => *queued = Call::Link { port, up },
            None => self.calls.push_back(Call::Link { port, up }),
        }
        self.advance(now, control);
    }

    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control) {
        self.packets += 1;
        self.packet_bytes += received.frame.len();
        let frame = received.frame.to_vec();
        self.calls.push_back(Call::Packet { ingress: received.ingress, frame });
        self.advance(now, control);
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        self.advance(now, control);
    }

    fn deadline(&self) -> Option<Time> {
        if self.failure.is_some() {
            return None;
        }
        let timeout = self.deadline.filter(|_| self.in_flight.is_none());
        [self.look, timeout].into_iter().flatten().min()
    }

    fn is_ready(&self) -> bool {
        self.is_ready || self.failure.is_some()
    }

    fn takes_packets(&self) -> bool {
        self.failure.is_none()
            && self.packets < self.limits.packets_queued
            && self.packet_bytes < self.limits.bytes_queued
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}
