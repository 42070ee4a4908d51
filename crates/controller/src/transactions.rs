//! Outstanding requests to an external DHCP server; see `relay` and `relay6`.

use super::hosts::Place;
use alloc::collections::{BTreeMap, BTreeSet};
use axon_link::bucket::{Bucket, Rate};
use axon_wire::{Span, Time};

/// Time for which an answer is awaited.
const WAIT: Span = Span::from_secs(10);
/// Maximum number of outstanding requests, from one port and in total.
const WAITING_PER_PORT_MAX: usize = 16;
const WAITING_MAX: usize = 4_096;
/// Rate of requests to the server.
const REQUESTS: Rate = Rate { every: Span::from_millis(1), burst: 1_000 };
/// Rate of requests to the server from one port.
const OF_PORT: Rate = Rate { every: Span::from_millis(50), burst: 32 };
/// Maximum number of ports whose rate is stored. Above it, ports with a full bucket are dropped.
const PORTS_MAX: usize = 4_096;

/// Outstanding requests, by client and transaction ID.
#[derive(Clone, Debug)]
pub(super) struct Transactions<K, R> {
    waiting: BTreeMap<K, Waiting<R>>,
    /// Expiry of each request.
    until: BTreeSet<(Time, K)>,
    by_port: BTreeMap<Place, OfPort>,
    requests: Bucket,
}

/// Request state of a port.
#[derive(Clone, Debug, Default)]
struct OfPort {
    /// Number of outstanding requests.
    waiting: usize,
    requests: Bucket,
}

/// Outstanding request.
#[derive(Clone, Debug)]
pub(super) struct Waiting<R> {
    until: Time,
    /// Port of the client.
    pub(super) place: Place,
    pub(super) request: R,
}

impl<K: Copy + Ord, R: Clone> Transactions<K, R> {
    pub(super) const fn new() -> Transactions<K, R> {
        Transactions {
            waiting: BTreeMap::new(),
            until: BTreeSet::new(),
            by_port: BTreeMap::new(),
            requests: Bucket::new(),
        }
    }

    /// Returns whether a message from a client at `place` may go to the server. A message that
    /// expects an answer is remembered with its request, under the key `of`. Returns `false` if
    /// there are too many messages.
    pub(super) fn admit(&mut self, now: Time, place: Place, of: K, answered: Option<R>) -> bool {
        while let Some(&(until, of)) = self.until.first()
            && until <= now
        {
            self.forget(of);
        }
        if self.by_port.len() >= PORTS_MAX {
            self.by_port.retain(|_, port| port.waiting > 0 || !port.requests.is_full(now));
        }
        if answered.is_some() {
            self.forget(of);
        }
        let port = self.by_port.entry(place).or_default();
        let full = port.waiting >= WAITING_PER_PORT_MAX || self.waiting.len() >= WAITING_MAX;
        let has = port.requests.has(now, OF_PORT) && self.requests.has(now, REQUESTS);
        if answered.is_some() && full || !has {
            return false;
        }
        port.requests.take(now, OF_PORT);
        self.requests.take(now, REQUESTS);
        if let Some(request) = answered {
            port.waiting += 1;
            let until = now + WAIT;
            self.until.insert((until, of));
            self.waiting.insert(of, Waiting { until, place, request });
        }
        true
    }

    /// Removes a request that has had its final answer.
    pub(super) fn forget(&mut self, of: K) {
        let Some(waiting) = self.waiting.remove(&of) else { return };
        self.until.remove(&(waiting.until, of));
        if let Some(port) = self.by_port.get_mut(&waiting.place) {
            port.waiting = port.waiting.saturating_sub(1);
        }
    }

    /// Returns the request that waits for an answer, if there is one.
    pub(super) fn waiting(&self, now: Time, of: K) -> Option<&Waiting<R>> {
        self.waiting.get(&of).filter(|waiting| now < waiting.until)
    }
}

#[cfg(test)]
mod tests {
    use super::super::topology::SwitchIndex;
    use super::*;
    use axon_wire::PortNo;

    fn port(number: u16) -> Place {
        Place { switch: SwitchIndex(0), port: PortNo(number) }
    }

    #[test]
    fn requests_without_an_answer_are_bounded_and_forgotten() {
        let (mut requests, now) = (Transactions::new(), Time::ZERO);
        let kept =
            |requests: &mut Transactions<u32, ()>, now, at: u16, numbers: core::ops::Range<u32>| {
                let mut admitted = |number: &u32| requests.admit(now, port(at), *number, Some(()));
                numbers.filter(|number| admitted(number)).count()
            };
        assert_eq!(kept(&mut requests, now, 0, 0..1_000), WAITING_PER_PORT_MAX);
        assert_eq!(kept(&mut requests, now, 0, 0..4), 4, "the same again");
        for at in 1..1_000_u32 {
            let later = now + Span::from_millis(u64::from(at) * 10);
            kept(&mut requests, later, at as u16, at * 100..at * 100 + 20);
            assert!(requests.waiting.len() <= WAITING_MAX);
        }
        assert_eq!(requests.waiting.len(), WAITING_MAX);
        let later = now + WAIT * 3;
        assert_eq!(kept(&mut requests, later, 0, 0..1), 1);
        assert_eq!((requests.waiting.len(), requests.until.len()), (1, 1));
        for at in 0..20_000_u32 {
            kept(&mut requests, later + WAIT * u64::from(at), at as u16, at..at + 1);
        }
        assert!(requests.by_port.len() <= PORTS_MAX);
    }

    #[test]
    fn one_port_spends_its_own_rate_and_not_that_of_others() {
        let (mut requests, now) = (Transactions::new(), Time::ZERO);
        // Repeats one transaction ID, which waits for one answer.
        let mut sent = |at: u16, now| {
            (0..1_000).filter(|_| requests.admit(now, port(at), at, Some(()))).count() as u64
        };
        assert_eq!(sent(1, now), OF_PORT.burst);
        assert_eq!(sent(2, now), OF_PORT.burst, "another port has its own");
        assert_eq!(sent(1, now + OF_PORT.every * 3), 3);
    }

    #[test]
    fn what_has_no_answer_takes_no_place() {
        let mut requests = Transactions::new();
        for number in 0..20 {
            assert!(requests.admit(Time::ZERO, port(1), number, None));
        }
        assert!(requests.admit(Time::ZERO, port(1), 99, Some(())), "none of them waits");
        assert_eq!(requests.waiting.len(), 1);
    }
}
