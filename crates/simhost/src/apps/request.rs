//! Requests and answers in rounds: netperf's TCP_RR and UDP_RR, and incast.
//!
//! A round sends a request to all targets at once and ends when all have answered; this is the
//! round's time. The next round begins after a pause. With one target this is request/response.
//! With many large answers, the answers meet at the client's port: incast. Connections are opened
//! before the first round and stay open.

use super::caller::{Call, Caller, Progress};
use super::{App, AppId, FlowStats, Transport};
use crate::datagram::Datagram;
use crate::stack::Stack;
use crate::tcp::ConnectionId;
use axon_wire::{Span, Time};
use std::net::Ipv4Addr;

/// Rounds of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPlan {
    /// Addresses of the targets, requested all at once.
    pub targets: Vec<Ipv4Addr>,
    /// Target port.
    pub port: u16,
    /// Transport of requests and answers.
    pub transport: Transport,
    /// Request size in bytes, at least 1.
    pub request: u32,
    /// Size of each answer in bytes, at least 1.
    pub response: u32,
    /// Pause between rounds.
    pub think: Span,
    /// Number of rounds; `None` runs until stopped.
    pub count: Option<u64>,
    /// Retry timeout of a request over UDP, and of a connection that has closed.
    pub timeout: Span,
}

/// Running client.
pub(crate) struct Requester {
    plan: RequestPlan,
    callers: Vec<Caller>,
    udp_port: Option<u16>,
    /// Start time of the current round.
    began: Option<Time>,
    next: Option<Time>,
    /// True if a round is due and starts once every target can be reached.
    pending: bool,
    stats: FlowStats,
}

impl Requester {
    pub(crate) fn new(id: AppId, plan: RequestPlan, now: Time, stack: &mut Stack) -> Requester {
        let udp = plan.transport == Transport::Udp;
        let udp_port = udp.then(|| stack.ip.ephemeral_port());
        let port = plan.port;
        let caller =
            |&target| Caller::new(id, (target, port), plan.transport, plan.timeout, udp_port);
        let callers = plan.targets.iter().map(caller).collect();
        let next = (plan.count != Some(0)).then_some(now);
        let stats = FlowStats::default();
        Requester { plan, callers, udp_port, began: None, next, pending: false, stats }
    }

    /// Starts a round if it is due and every target can be reached.
    fn begin(&mut self, now: Time, stack: &mut Stack) -> bool {
        if self.next.is_some_and(|next| next <= now) {
            (self.next, self.pending) = (None, true);
        }
        if !self.pending {
            return false;
        }
        // Connections to all are opened, even if one is not ready.
        let ready = |ready: bool, caller: &mut Caller| caller.is_ready(now, stack) && ready;
        if !self.callers.iter_mut().fold(true, ready) {
            return false;
        }
        self.pending = false;
        let call =
            Call { request: self.plan.request, response: self.plan.response, work: Span::ZERO };
        self.callers.iter_mut().for_each(|caller| caller.ask(now, call));
        self.began = Some(now);
        true
    }

    /// Ends the round if no request is open.
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

    /// Begins a round if it is due, lets the callers with this connection proceed, or all, and ends
    /// the round. Returns whether there was progress.
    fn step(&mut self, now: Time, id: Option<ConnectionId>, stack: &mut Stack) -> bool {
        let mut more = self.begin(now, stack);
        let (all, mut failed) = (more, false);
        for caller in &mut self.callers {
            if !id.is_none_or(|id| caller.owns(now, id, stack)) && !all {
                continue;
            }
            match caller.poll(now, stack, &mut self.stats) {
                Progress::None => {}
                Progress::More | Progress::Answered => more = true,
                Progress::Failed => failed = true,
            }
        }
        self.stats.failed += u64::from(failed);
        more | self.end(now, failed)
    }
}

impl App for Requester {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        self.step(now, None, stack)
    }

    fn connection(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        self.stats.retransmits += stack.tcp.new_retransmits(id);
        while self.step(now, Some(id), stack) {}
    }

    fn deadline(&self) -> Option<Time> {
        let callers = self.callers.iter().filter_map(|caller| caller.deadline(self.pending));
        callers.chain(self.next).min()
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
        self.callers.first()?.local_port()
    }
}
