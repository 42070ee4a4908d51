//! Switch side for simulations. It waits for its program, and simulated time advances only after
//! the answer.

use crate::channel::ChannelError;
use crate::limits::{Limits, Overtime};
use crate::message::{Call, FromProgram, Place, ToProgram};
use crate::process::{END, Peer};
use crate::serve::{Work, serve};
use axon_pipeline::{Control, Program, Received};
use axon_programs::Site;
use axon_wire::{PortNo, Span, Time};
use std::time::{Duration, Instant};

/// Minimum delay until a program's next timeout, which prevents endless calls.
pub(crate) const SOONEST: Span = Span::from_micros(1);

/// Program that its switch waits for.
#[derive(Debug)]
pub struct Waiting {
    peer: Peer,
    place: Option<Box<Place>>,
    limits: Limits,
    deadline: Option<Time>,
    is_ready: bool,
    failure: Option<String>,
    /// Name of the node.
    name: String,
    overtime: Overtime,
}

/// Returns the reason for ending a program that exceeds its time.
pub(crate) fn late(limit: Duration) -> String {
    format!("it did not answer within {limit:?}")
}

/// Result of a call.
struct Done {
    deadline: Option<Time>,
    is_ready: bool,
}

/// Returns the encoded place of a program in its network.
pub(crate) fn place(site: &Site) -> Box<Place> {
    Box::new(Place { plan: (*site.plan).clone(), node: site.node, seed: site.seed })
}

impl Waiting {
    /// Creates the switch side of the program at the other end of `peer`, for this place in a
    /// network.
    pub fn new(peer: Peer, site: &Site, limits: Limits) -> Waiting {
        let place = Some(place(site));
        Waiting {
            peer,
            place,
            limits,
            deadline: None,
            is_ready: false,
            failure: None,
            name: site.own().name.clone(),
            overtime: Overtime::default(),
        }
    }

    /// Makes `overtime` record a program that exceeds its time.
    #[must_use]
    pub fn with_overtime(self, overtime: Overtime) -> Waiting {
        Waiting { overtime, ..self }
    }

    /// Returns a program that has failed before its start.
    pub(crate) fn failed(why: String) -> Waiting {
        Waiting {
            peer: Peer::none(),
            place: None,
            limits: Limits::default(),
            deadline: None,
            is_ready: false,
            failure: Some(why),
            name: String::new(),
            overtime: Overtime::default(),
        }
    }

    fn call(&mut self, now: Time, call: Call, limit: Duration, control: &mut dyn Control) {
        if self.failure.is_some() {
            return;
        }
        match self.exchange(now, call, limit, control) {
            Ok(Done { deadline, is_ready }) => {
                self.deadline = deadline.map(|deadline| deadline.max(now + SOONEST));
                self.is_ready = is_ready;
            }
            Err(reason) => {
                self.peer.close(END);
                self.failure = Some(reason);
            }
        }
    }

    /// Sends a call and serves the program's requests until it is done.
    fn exchange(
        &mut self,
        now: Time,
        call: Call,
        limit: Duration,
        control: &mut dyn Control,
    ) -> Result<Done, String> {
        let end = Instant::now() + limit;
        let mut work = Work::default();
        let mut answer = Some(ToProgram::Call { now, call });
        loop {
            let next = self.next(answer.take(), end);
            match next.map_err(|error| self.end(&error, limit))? {
                FromProgram::Request(request) => {
                    work.count(&request, &self.limits)?;
                    answer = serve(request, control).map(ToProgram::Reply);
                }
                FromProgram::Done { deadline, is_ready } => return Ok(Done { deadline, is_ready }),
                FromProgram::Failed(why) => return Err(why),
            }
        }
    }

    fn end(&mut self, error: &ChannelError, limit: Duration) -> String {
        match error {
            ChannelError::Late => {
                self.peer.close(Duration::ZERO);
                let why = late(limit);
                self.overtime.set(format!("the program of {}: {why}", self.name));
                why
            }
            error => self.peer.end(error, END),
        }
    }

    /// Sends a reply, if any, and waits for the program's next message.
    fn next(
        &mut self,
        answer: Option<ToProgram>,
        end: Instant,
    ) -> Result<FromProgram, ChannelError> {
        let channel = self.peer.channel.as_mut().ok_or(ChannelError::Closed)?;
        if let Some(answer) = answer {
            channel.put(&answer)?;
            channel.send(Some(end))?;
        }
        channel.receive(Some(end))
    }
}

impl Program for Waiting {
    fn start(&mut self, now: Time, control: &mut dyn Control) {
        let Limits { load, call, .. } = self.limits;
        if let Some(place) = self.place.take() {
            self.call(now, Call::Load(place), load, control);
        }
        self.call(now, Call::Start, call, control);
    }

    fn link(&mut self, now: Time, port: PortNo, up: bool, control: &mut dyn Control) {
        self.call(now, Call::Link { port, up }, self.limits.call, control);
    }

    fn receive_packet(&mut self, now: Time, received: Received<'_>, control: &mut dyn Control) {
        let call = Call::Packet { ingress: received.ingress, frame: received.frame.to_vec() };
        self.call(now, call, self.limits.call, control);
    }

    fn timeout(&mut self, now: Time, control: &mut dyn Control) {
        self.call(now, Call::Timeout, self.limits.call, control);
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline.filter(|_| self.failure.is_none())
    }

    /// A program that has ended counts as ready.
    fn is_ready(&self) -> bool {
        self.is_ready || self.failure.is_some()
    }

    fn takes_packets(&self) -> bool {
        self.failure.is_none()
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}
