//! ARP workload: resolves MAC addresses one after another at a fixed interval, like a host with
//! many peers.
//!
//! An address in the host's ARP cache is not requested again and counts as answered at once. An
//! unanswered request is repeated at the host's own interval until it is answered or the
//! application is stopped.

use super::{App, FlowStats};
use crate::stack::Stack;
use axon_wire::{Span, Time};
use std::net::Ipv4Addr;

/// Addresses to resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArpPlan {
    /// Addresses to resolve, in order.
    pub targets: Vec<Ipv4Addr>,
    /// Interval between addresses.
    pub interval: Span,
}

/// Running ARP plan.
pub(crate) struct Asker {
    plan: ArpPlan,
    asked: usize,
    next: Option<Time>,
    open: Vec<(Ipv4Addr, Time)>,
    stats: FlowStats,
}

impl Asker {
    pub(crate) fn new(plan: ArpPlan, now: Time) -> Asker {
        let next = (!plan.targets.is_empty()).then_some(now);
        Asker { plan, asked: 0, next, open: Vec::new(), stats: FlowStats::default() }
    }
}

impl App for Asker {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        let mut more = false;
        while let Some(next) = self.next.filter(|&next| next <= now) {
            let target = self.plan.targets[self.asked];
            self.asked += 1;
            self.stats.count_sent(now, 0);
            self.open.push((target, now));
            stack.neighbours.want(target);
            let left = self.asked < self.plan.targets.len();
            self.next = left.then_some(next + self.plan.interval.max(Span::from_ticks(1)));
            more = true;
        }
        let stats = &mut self.stats;
        self.open.retain(|&(target, asked)| {
            let known = stack.neighbours.known(target).is_some();
            if known {
                stats.completed += 1;
                stats.received.count(now, 0);
                stats.times.add(now.since(asked));
            }
            !known
        });
        if self.next.is_none() && self.open.is_empty() {
            stats.done.get_or_insert(now);
        }
        more
    }

    fn deadline(&self) -> Option<Time> {
        self.next
    }

    fn stop(&mut self, now: Time, _stack: &mut Stack) {
        self.next = None;
        self.stats.failed += self.open.len() as u64;
        self.open.clear();
        self.stats.done.get_or_insert(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }
}
