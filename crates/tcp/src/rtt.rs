//! Round-trip times and the retransmission timeout (RFC 6298).

use crate::config::Config;
use axon_wire::{Span, Time};

/// Maximum age of the minimum round trip (Linux: `tcp_min_rtt_wlen`).
const MIN_AGE: Span = Span::from_secs(300);

/// Round-trip estimator of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    /// Smoothed round-trip time (SRTT), once there is a sample.
    pub(crate) smoothed: Option<Span>,
    variation: Span,
    /// Minimum round trip and the time of its sample.
    shortest: Option<(Span, Time)>,
    /// Consecutive timeouts, each of which doubles the timeout (§5.5).
    pub(crate) backoff: u8,
}

impl Rtt {
    /// Records the round trip of a segment that was sent once (§3, Karn's algorithm).
    pub(crate) fn sample(&mut self, now: Time, rtt: Span) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = Span::from_ticks(rtt.ticks() / 2);
            }
            Some(smoothed) => {
                let (s, r) = (u128::from(smoothed.ticks()), u128::from(rtt.ticks()));
                let variation = (3 * u128::from(self.variation.ticks()) + s.abs_diff(r)) / 4;
                self.variation = Span::from_ticks(variation as u64);
                self.smoothed = Some(Span::from_ticks(((7 * s + r) / 8) as u64));
            }
        }
        let believed = |&(shortest, at): &(Span, Time)| shortest < rtt && now.since(at) < MIN_AGE;
        if self.shortest.filter(believed).is_none() {
            self.shortest = Some((rtt, now));
        }
    }

    /// Returns the minimum round trip.
    pub(crate) fn shortest(&self) -> Option<Span> {
        self.shortest.map(|(rtt, _)| rtt)
    }

    /// Returns the current retransmission timeout (§2, §5.5).
    pub(crate) fn timeout(&self, config: &Config) -> Span {
        let base = match self.smoothed {
            None => config.rto_initial,
            Some(smoothed) => {
                let variation = self.variation.ticks().saturating_mul(4);
                Span::from_ticks(smoothed.ticks().saturating_add(variation)).max(config.rto_min)
            }
        };
        let doubled = base.ticks().saturating_mul(1 << self.backoff.min(32));
        Span::from_ticks(doubled).min(config.rto_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_rfc_6298() {
        let config = Config { rto_min: Span::ZERO, ..Config::default() };
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(&config), Span::from_secs(1), "2.1");
        rtt.sample(Time::ZERO, Span::from_millis(100));
        assert_eq!(rtt.timeout(&config), Span::from_millis(300), "2.2: R + 4 * R / 2");
        rtt.sample(Time::ZERO, Span::from_millis(200));
        // 2.3: RTTVAR = 3/4 * 50 + 1/4 * 100 = 62.5, SRTT = 7/8 * 100 + 1/8 * 200 = 112.5.
        assert_eq!(rtt.timeout(&config), Span::from_micros(362_500));
        assert_eq!(
            rtt.timeout(&Config { rto_min: Span::from_secs(1), ..config }).as_millis(),
            1000
        );
        rtt.backoff = 2;
        assert_eq!(rtt.timeout(&config), Span::from_millis(1450), "5.5");
        rtt.backoff = 255;
        assert_eq!(rtt.timeout(&config), config.rto_max);
    }

    #[test]
    fn the_shortest_is_forgotten_after_a_while() {
        let mut rtt = Rtt::default();
        let millis = Span::from_millis;
        rtt.sample(Time::ZERO, millis(9));
        rtt.sample(Time::ZERO, millis(5));
        rtt.sample(Time::ZERO + Span::from_secs(299), millis(7));
        assert_eq!(rtt.shortest(), Some(millis(5)));
        rtt.sample(Time::ZERO + Span::from_secs(301), millis(8));
        assert_eq!(rtt.shortest(), Some(millis(8)));
    }
}
