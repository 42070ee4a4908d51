//! Requests and answers, one after the other: netperf's TCP_RR and UDP_RR, and incast.
//!
//! A round asks all targets at once; it ends when all have answered, and that took its time.
//! After a pause the next begins. With one target this is request/response; with many that
//! answer much, the answers meet at the client's port: incast. Connections are open before
//! the first round begins, and stay so.

use super::caller::{Call, Caller, Progress};
use super::{App, FlowStats, Transport};
use crate::host::datagram::Datagram;
use crate::host::stack::Stack;
use axon_wire::{Span, Time};
use std::net::Ipv4Addr;

/// Rounds of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPlan {
    /// Whom to ask, all at once.
    pub targets: Vec<Ipv4Addr>,
    /// At which port.
    pub port: u16,
    /// The protocol of requests and answers.
    pub transport: Transport,
    /// Bytes of a request, at least 1.
    pub request: u32,
    /// Bytes of each answer, at least 1.
    pub response: u32,
    /// From the end of a round to the next.
    pub think: Span,
    /// How many rounds; until it is stopped without.
    pub count: Option<u64>,
    /// After which a request over UDP is sent again.
    pub timeout: Span,
}

/// A client at work.
pub(crate) struct Requester {
    plan: RequestPlan,
    callers: Vec<Caller>,
    udp_port: Option<u16>,
    /// When the current round began.
    began: Option<Time>,
    next: Option<Time>,
    /// A round is due, and begins as soon as every target can be asked.
    pending: bool,
    stats: FlowStats,
}

impl Requester {
    pub(crate) fn new(plan: RequestPlan, now: Time, stack: &mut Stack) -> Requester {
        let udp = plan.transport == Transport::Udp;
        let udp_port = udp.then(|| stack.ephemeral_port());
        let caller =
            |&target| Caller::new((target, plan.port), plan.transport, plan.timeout, udp_port);
        let callers = plan.targets.iter().map(caller).collect();
        let next = (plan.count != Some(0)).then_some(now);
        let stats = FlowStats::default();
        Requester { plan, callers, udp_port, began: None, next, pending: false, stats }
    }

    /// Begins a round if it is time and every target can be asked.
    fn begin(&mut self, now: Time, stack: &mut Stack) -> bool {
        if self.next.is_some_and(|next| next <= now) {
            (self.next, self.pending) = (None, true);
        }
        if !self.pending {
            return false;
        }
        let before = stack.sockets.iter().count();
        let callers = self.callers.iter_mut();
        if callers.filter_map(|caller| caller.is_ready(stack).then_some(())).count()
            < self.callers.len()
        {
            // A new socket has a SYN to send. Frames bring the rest.
            return stack.sockets.iter().count() > before;
        }
        self.pending = false;
        let call =
            Call { request: self.plan.request, response: self.plan.response, work: Span::ZERO };
        self.callers.iter_mut().for_each(|caller| caller.ask(now, call));
        self.began = Some(now);
        true
    }

    /// Ends the round if no request waits any more.
    fn end(&mut self, now: Time, failed: bool) -> bool {
        let waiting = self.callers.iter().any(Caller::is_waiting);
        let Some(began) = self.began.filter(|_| !waiting) else {
            return false;
        };
        self.began = None;
        if !failed {
            self.stats.times.add(now.since(began));
            self.stats.completed += 1;
        }
        let rounds = self.stats.completed + self.stats.failed;
        if self.stats.done.is_some() {
            return false;
        }
        if self.plan.count.is_some_and(|count| rounds >= count) {
            self.stats.done = Some(now);
            return false;
        }
        self.next = Some(now + self.plan.think);
        true
    }
}

impl App for Requester {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        let mut more = self.begin(now, stack);
        let mut failed = false;
        for caller in &mut self.callers {
            match caller.poll(now, stack, &mut self.stats) {
                Progress::None => {}
                Progress::More | Progress::Answered => more = true,
                Progress::Failed => failed = true,
            }
        }
        self.stats.failed += u64::from(failed);
        more | self.end(now, failed)
    }

    fn deadline(&self) -> Option<Time> {
        self.callers.iter().filter_map(Caller::deadline).chain(self.next).min()
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        (self.next, self.began, self.pending) = (None, None, false);
        self.callers.iter_mut().for_each(|caller| caller.close(stack));
        self.stats.done.get_or_insert(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }

    fn receive(&mut self, now: Time, datagram: &Datagram<'_>, stack: &mut Stack) -> bool {
        let mut heard = false;
        for caller in &mut self.callers {
            heard |= caller.receive(now, datagram, &mut self.stats);
        }
        heard && self.end(now, false) && self.poll(now, stack)
    }

    fn udp_port(&self) -> Option<u16> {
        self.udp_port
    }

    fn source_port(&self) -> Option<u16> {
        self.callers.first()?.local_port
    }

    fn count_retransmits(&mut self, local_port: u16, segments: u64) {
        if self.callers.iter().any(|caller| caller.local_port == Some(local_port)) {
            self.stats.retransmits += segments;
        }
    }
}
