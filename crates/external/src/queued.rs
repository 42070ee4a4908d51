//! Switch side for real ports, which never blocks.
//!
//! One call is in flight at a time. Others are queued: the last carrier change of each port, and
//! packets up to a limit, beyond which they are dropped. Carrier changes come first, then a due
//! timeout, then packets. If a packet is queued, it comes between two timeouts.
//!
//! While a call is in flight, the switch polls the program whenever it handles an event. It also
//! polls after 20 us, then after 40 us, and so on up to 1 ms. One poll does about a millisecond of
//! work.

use crate::limits::Limits;
use crate::message::{Call, FromProgram, ToProgram};
use crate::process::Peer;
use crate::serve::{Work, cost, serve};
use crate::waiting::{SOONEST, late, place};
use axon_pipeline::{Control, Program, Received};
use axon_programs::Site;
use axon_wire::{PortNo, Span, Time};
use std::collections::VecDeque;
use std::time::Duration;

/// Interval between the first two polls of a call in flight.
const STEP: Span = Span::from_micros(20);
/// Maximum interval between polls.
const STEP_MAX: Span = Span::from_millis(1);
/// Interval between checks whether a process that has no call has ended.
const IDLE: Span = Span::from_secs(1);
/// Grace period for a process that has closed its socket.
const PATIENCE: Duration = Duration::from_millis(20);
/// Work in one poll, as computed by [`cost`]: frames of 1 MiB in total, or a thousand changes.
const LOOK_COST: u64 = 1 << 20;
/// Interval without polls beyond which the switch itself was stalled. Its program then does not
/// count as late.
const STALL: Span = Span::from_secs(1);

/// Program that its switch never waits for.
#[derive(Debug)]
pub struct Queued {
    peer: Peer,
    limits: Limits,
    /// Queued calls that come before packets.
    calls: VecDeque<Call>,
    /// Queued packets with their ingress ports.
    packets: VecDeque<(PortNo, Vec<u8>)>,
    packet_bytes: usize,
    /// Ingress ports of completed packets, each with whether the program accepted the packet.
    ended: Vec<(PortNo, bool)>,
    in_flight: Option<InFlight>,
    /// Time of the next poll.
    look: Option<Time>,
    /// Time of the last poll.
    looked: Time,
    /// Time of the program's timeout.
    deadline: Option<Time>,
    /// Earliest time for the next timeout.
    earliest: Time,
    is_ready: bool,
    failure: Option<String>,
}

/// Call in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// Time at which the time limit for the answer ends.
    end: Time,
    /// Duration of the time limit.
    limit: Duration,
    step: Span,
    work: Work,
    kind: Kind,
}

/// Kind of a call in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Load or start of the program, or a carrier change.
    Other,
    /// Packet with its ingress port.
    Packet(PortNo),
    /// Timeout.
    Timeout,
}

impl Queued {
    /// Creates the switch side of the program at the other end of `peer`, for this place in a
    /// network.
    ///
    /// # Errors
    /// The socket cannot be set up.
    pub fn new(mut peer: Peer, site: &Site, limits: Limits) -> std::io::Result<Queued> {
        if let Some(channel) = &mut peer.channel {
            channel.set_nonblocking().map_err(std::io::Error::other)?;
        }
        Ok(Queued {
            peer,
            limits,
            calls: VecDeque::from([Call::Load(place(site)), Call::Start]),
            packets: VecDeque::new(),
            packet_bytes: 0,
            ended: Vec::new(),
            in_flight: None,
            look: None,
            looked: Time::ZERO,
            deadline: None,
            earliest: Time::ZERO,
            is_ready: false,
            failure: None,
        })
    }

    /// Sends pending bytes and processes received messages.
    fn advance(&mut self, now: Time, control: &mut dyn Control) {
        if self.failure.is_some() {
            return;
        }
        let gap = now.since(std::mem::replace(&mut self.looked, now));
        if let Some(call) = self.in_flight.as_mut().filter(|_| gap > STALL) {
            call.end += gap;
        }
        if let Err(reason) = self.try_advance(now, control) {
            self.peer.close(Duration::ZERO);
            self.fail(reason);
        }
    }

    /// Ends the program. All its packets are lost, including that of the call in flight.
    fn fail(&mut self, reason: String) {
        let in_flight = self.in_flight.take().and_then(|call| match call.kind {
            Kind::Packet(ingress) => Some(ingress),
            Kind::Other | Kind::Timeout => None,
        });
        let queued = std::mem::take(&mut self.packets).into_iter().map(|(ingress, _)| ingress);
        let lost: Vec<PortNo> = in_flight.into_iter().chain(queued).collect();
        self.failure = Some(match lost.len() {
            0 => reason,
            1 => format!("{reason}; 1 packet for it is lost"),
            count => format!("{reason}; {count} packets for it are lost"),
        });
        self.ended.extend(lost.into_iter().map(|ingress| (ingress, false)));
        self.calls.clear();
        self.packet_bytes = 0;
    }

    fn try_advance(&mut self, now: Time, control: &mut dyn Control) -> Result<(), String> {
        let mut done = 0;
        loop {
            if self.in_flight.is_none() && !self.send_next(now)? {
                break;
            }
            if done >= LOOK_COST {
                break;
            }
            let Some(message) = self.receive()? else { break };
            done += cost(&message);
            self.take(now, message, control)?;
        }
        self.flush()?;
        self.look = Some(match &mut self.in_flight {
            None => {
                // A program that has no call sends nothing, so any message ends it.
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
        let is_due = self.deadline.is_some_and(|deadline| deadline <= now);
        let (call, kind) = if let Some(call) = self.calls.pop_front() {
            (call, Kind::Other)
        } else if is_due {
            self.deadline = None;
            (Call::Timeout, Kind::Timeout)
        } else if let Some((ingress, frame)) = self.packets.pop_front() {
            self.packet_bytes -= frame.len();
            (Call::Packet { ingress, frame }, Kind::Packet(ingress))
        } else {
            return Ok(false);
        };
        let limit = match call {
            Call::Load(_) => self.limits.load,
            _ => self.limits.call,
        };
        let end = now + Span::from_nanos(limit.as_nanos() as u64);
        self.in_flight = Some(InFlight { end, limit, step: STEP, work: Work::default(), kind });
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
                call.work.count(&request, &self.limits)?;
                match serve(request, control) {
                    Some(reply) => self.put(&ToProgram::Reply(reply)),
                    None => Ok(()),
                }
            }
            FromProgram::Done { deadline, is_ready } => {
                let Some(call) = self.in_flight.take() else {
                    return Err("it answered without a call".to_owned());
                };
                match call.kind {
                    Kind::Packet(ingress) => self.ended.push((ingress, true)),
                    // A queued packet comes before the next timeout.
                    Kind::Timeout => self.earliest = now + SOONEST,
                    Kind::Other => {}
                }
                // A program that is only loaded has not filled any tables yet.
                let has_started = !self.calls.iter().any(|call| matches!(call, Call::Start));
                self.is_ready = is_ready && has_started;
                self.deadline = deadline.map(|deadline| deadline.max(self.earliest));
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
        self.packet_bytes += received.frame.len();
        self.packets.push_back((received.ingress, received.frame.to_vec()));
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
            && self.packets.len() < self.limits.packets_queued
            && self.packet_bytes < self.limits.bytes_queued
    }

    fn queues_packets(&self) -> bool {
        true
    }

    fn take_ended(&mut self) -> Vec<(PortNo, bool)> {
        std::mem::take(&mut self.ended)
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}
