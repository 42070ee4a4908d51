//! Rate limit for the attachment of agents.
//!
//! Each connection and each attachment costs the switch system calls and memory. The port accepts
//! [`FREE`] connections per second without delay. After each further connection, and after each
//! protocol violation by an agent, it ignores its socket for a while. The first delay is [`FIRST`],
//! and each further delay is twice the previous one, up to a configured maximum. Later connections
//! stay in the queue of the socket. After a quiet second, the limit is reset.

use axon_wire::{Span, Time};

/// Connections in a [`WINDOW`] that are accepted without delay.
const FREE: u32 = 8;
/// Window in which connections are counted, and quiet time after which the limit is reset.
const WINDOW: Span = Span::from_secs(1);
/// First delay.
const FIRST: Span = Span::from_millis(10);

/// Rate limit for the attachment of agents at one port.
#[derive(Debug)]
pub(super) struct Backoff {
    longest: Span,
    /// Previous delay; zero after a quiet window.
    wait: Span,
    /// End of the last delay.
    until: Time,
    window_end: Time,
    connections: u32,
}

impl Backoff {
    /// Creates a limit with this longest delay. 0 disables the limit.
    pub(crate) fn new(longest: Span) -> Backoff {
        let (wait, until, window_end) = (Span::ZERO, Time::ZERO, Time::ZERO);
        Backoff { longest, wait, until, window_end, connections: 0 }
    }

    /// Records a connection and returns the delay that it causes.
    pub(crate) fn connected(&mut self, now: Time) -> Option<Span> {
        if now >= self.window_end {
            (self.window_end, self.connections) = (now + WINDOW, 0);
        }
        self.connections += 1;
        self.calm(now);
        if self.connections > FREE || self.wait > Span::ZERO { self.longer(now) } else { None }
    }

    /// Records a protocol violation and returns the delay that it causes.
    pub(crate) fn broken(&mut self, now: Time) -> Option<Span> {
        self.calm(now);
        self.longer(now)
    }

    fn calm(&mut self, now: Time) {
        if now >= self.until + WINDOW {
            self.wait = Span::ZERO;
        }
    }

    fn longer(&mut self, now: Time) -> Option<Span> {
        self.wait = (self.wait + self.wait).max(FIRST).min(self.longest);
        self.until = now + self.wait;
        (self.wait > Span::ZERO).then_some(self.wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(wait: Option<Span>) -> u64 {
        wait.map_or(0, |wait| wait.as_nanos() / 1_000_000)
    }

    #[test]
    fn a_few_connect_at_once_and_then_ever_fewer_up_to_one_in_the_longest_wait() {
        let mut backoff = Backoff::new(Span::from_secs(1));
        let mut now = Time::ZERO + Span::from_secs(5);
        let mut waits = Vec::new();
        for _ in 0..20 {
            let wait = backoff.connected(now);
            waits.push(millis(wait));
            now += wait.unwrap_or_default();
        }
        let grow = [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 1000, 1000];
        assert_eq!(waits, [[0; 8].as_slice(), &grow].concat());
        assert_eq!(millis(backoff.connected(now + Span::from_millis(999))), 1000);
        now += Span::from_millis(999 + 1000 + 1000);
        assert_eq!(millis(backoff.connected(now)), 0, "it was quiet");
    }

    #[test]
    fn who_breaks_the_protocol_makes_the_next_one_wait() {
        let mut backoff = Backoff::new(Span::from_millis(30));
        let now = Time::ZERO + Span::from_secs(5);
        assert_eq!(millis(backoff.connected(now)), 0);
        assert_eq!([0; 3].map(|_| millis(backoff.broken(now))), [10, 20, 30]);
        assert_eq!(millis(backoff.connected(now)), 30);
        assert_eq!(Backoff::new(Span::ZERO).broken(now), None);
    }
}
