//! Ageing of unused routes, which frees their room at the edge and the controller.

use super::context::Cx;
use super::flows::Flows;
use axon_link::effect::Effect;
use axon_node::RouteKey;
use axon_wire::PortNo;
use axon_wire::message::Item;

impl Flows {
    /// Returns whether there are routes that may age.
    pub(super) fn has_any(&self) -> bool {
        !self.live.is_empty()
    }

    /// Removes these routes and reports that to the controller.
    pub(super) fn remove_idle(&mut self, cx: &mut Cx, idle: &[(PortNo, RouteKey)]) {
        for &key in idle {
            let Some(stamp) = self.get(key).map(|flow| flow.stamp) else {
                continue;
            };
            // The stamp is remembered, so that only a newer decision restores the route.
            self.remove(cx, key, None);
            let (port, RouteKey { destination, source, .. }) = key;
            cx.out.push(Effect::Report(Item::RemoveRoute { port, destination, source, stamp }));
            cx.counters.routes_aged += 1;
        }
        for port in (0..cx.ports.count()).map(PortNo) {
            self.promote(cx, port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::flows::ROUTE_LOOK;
    use super::super::testing::*;
    use super::*;
    use alloc::vec::Vec;
    use axon_wire::Span;
    use axon_wire::Time;
    use axon_wire::{MacAddr, Route};

    /// Runs one check, with only these destinations in use. Returns those reported as removed.
    fn look(bench: &mut Bench, used: &[u8]) -> Vec<MacAddr> {
        bench.now += ROUTE_LOOK;
        let is_used = |_, key| used.iter().any(|&host| key == mac(host).into());
        let idle = bench.edge.idle_flows(bench.now, is_used);
        let removed = |effect: &Effect| match effect {
            Effect::Report(Item::RemoveRoute { destination, .. }) => Some(*destination),
            _ => None,
        };
        bench.remove_idle(&idle).iter().filter_map(removed).collect()
    }

    #[test]
    fn a_route_that_no_frame_takes_is_removed_and_makes_room_for_one_in_software() {
        let mut bench = Bench::with(2, 1000, 4);
        bench.host(0, 1);
        for (number, host) in [(1, 7), (2, 8), (3, 9)] {
            bench.set_route(0, host, number, 1);
        }
        assert_eq!(bench.placed(0, 9), None, "the table has two places");
        bench.frame(0, &udp_frame(mac(9), mac(1), 0));
        assert_eq!(look(&mut bench, &[7]), [mac(8)], "software has sent a frame to host 9");
        assert_eq!(bench.placed(0, 9), Some(Route::from([1])));
        assert_eq!(look(&mut bench, &[7, 9]), []);
        assert_eq!(look(&mut bench, &[]), [mac(7), mac(9)]);
        assert!(!bench.edge.has_flows());
        assert_eq!(bench.edge.counters().routes_aged, 3);
        bench.set_route(0, 7, 1, 1);
        assert!(!bench.edge.has_flows(), "a late message of the old route");
        bench.set_route(0, 7, 4, 1);
        assert!(bench.edge.has_flows(), "a new decision");
    }

    #[test]
    fn a_route_that_was_set_since_the_last_look_stays_and_without_a_controller_all_do() {
        let mut bench = Bench::new();
        bench.host(0, 1);
        bench.set_route(0, 7, 1, 1);
        bench.now += Span::from_secs(1);
        bench.set_route(0, 8, 2, 1);
        bench.now = Time::from_ticks(bench.now.ticks() - Span::from_secs(1).ticks());
        assert_eq!(look(&mut bench, &[]), [mac(7)]);
        bench.controller(None);
        assert_eq!(look(&mut bench, &[]), []);
        bench.controller(Some(CONTROLLER));
        assert_eq!(look(&mut bench, &[]), [mac(8)]);
    }
}
