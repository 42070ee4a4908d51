//! Ping replies of the fabric's own address at the edge, for checking a host's link and its switch
//! without another host.
//!
//! Each port has a rate limit; requests above it are not answered.

use super::context::Cx;
use super::outcome::Outcome;
use crate::effect::Effect;
use alloc::collections::BTreeMap;
use axon_link::bucket::{Bucket, Rate};
use axon_node::Drop;
use axon_wire::{PortNo, Span, echo};

/// Rate of answers to the hosts of one port.
const ANSWERS: Rate = Rate { every: Span::from_millis(10), burst: 100 };

/// Echo replies to hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Ping {
    /// Bucket for the answers to the hosts of each port.
    of: BTreeMap<PortNo, Bucket>,
}

impl Ping {
    /// Answers a frame to the server's MAC address if it is an echo request to the server's IP
    /// address.
    pub(super) fn answer(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        frame: &[u8],
    ) -> Result<Outcome, Drop> {
        let own = (cx.settings.server.mac, cx.settings.server.ip);
        let frame = echo::reply(frame, own).ok_or(Drop::Refused)?;
        let answers = self.of.entry(port).or_default();
        if !answers.has(cx.now, ANSWERS) {
            cx.counters.pings_limited += 1;
            return Err(Drop::Refused);
        }
        answers.take(cx.now, ANSWERS);
        cx.counters.pings += 1;
        cx.out.push(Effect::Host { port, frame });
        Ok(Outcome::Served)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use axon_wire::echo;

    #[test]
    fn the_fabrics_own_address_answers_ping_without_a_controller() {
        let mut bench = Bench::new();
        bench.controller(None);
        let own = (SERVER.mac, SERVER.ip);
        let request = echo::request((mac(1), ip(1)), own, (3, 4), b"hello");
        let effects = bench.frame(1, &request);
        let frame = echo::reply(&request, own).unwrap();
        assert_eq!(effects.last(), Some(&Effect::Host { port: PortNo(1), frame }));
        assert_eq!(bench.edge.counters().pings, 1);
        let elsewhere = echo::request((mac(1), ip(1)), (SERVER.mac, ip(9)), (3, 4), b"hello");
        assert_eq!(bench.frame(1, &elsewhere), []);
        assert_eq!(bench.last_drop(), Some(Drop::Refused));
    }

    #[test]
    fn a_port_that_pings_too_often_has_a_part_answered_and_another_port_all() {
        let mut bench = Bench::new();
        let own = (SERVER.mac, SERVER.ip);
        let answered = |bench: &mut Bench, port, host: u8| {
            let request = echo::request((mac(host), ip(host)), own, (1, 1), b"");
            let answers = |effect: &Effect| matches!(effect, Effect::Host { .. });
            bench.frame(port, &request).iter().filter(|effect| answers(effect)).count()
        };
        let flood: usize = (0..1_000).map(|_| answered(&mut bench, 0, 1)).sum();
        assert_eq!(flood as u64, ANSWERS.burst);
        assert_eq!(answered(&mut bench, 1, 2), 1);
        let counters = bench.edge.counters();
        assert_eq!((counters.pings, counters.pings_limited), (101, 900));
    }
}
