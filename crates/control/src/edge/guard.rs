//! Frames of hosts that configure other hosts: what comes from whoever should not send it ends here
//! and is counted.
//!
//! A host's broadcast goes nowhere, so such a frame reaches a victim by unicast alone, and that
//! only over a route which exists already: the data plane looks at MAC addresses. A first frame,
//! every broadcast and every multicast come here.

use super::context::Cx;
use super::state::{Edge, Fate};
use axon_node::Drop;
use axon_wire::router::{self, Router};
use axon_wire::{MacAddr, PortNo, host_frame};

impl Edge {
    /// Serves or refuses a frame of a host that has to do with the configuration of hosts. `None`
    /// if it is another frame, or of the host whose task it is.
    pub(super) fn configuration(
        &mut self,
        cx: &mut Cx,
        port: PortNo,
        source: MacAddr,
        frame: &[u8],
    ) -> Option<Result<Fate, Drop>> {
        if host_frame::is_dhcp_server(frame) && self.services.dhcp_server != Some(source) {
            self.counters.dhcp_servers_refused += 1;
            return Some(Err(refusal(frame)));
        }
        let ipv6 = self.services.ipv6.as_ref()?;
        match router::classify(frame)? {
            Router::Solicitation(asks) => Some(self.solicited(cx, port, (source, asks))),
            Router::BadSolicitation => Some(Err(Drop::Malformed)),
            Router::Advertisement if ipv6.router_host == Some(source) => None,
            Router::Advertisement => {
                self.counters.advertisements_refused += 1;
                Some(Err(refusal(frame)))
            }
        }
    }
}

/// Why a frame of a host that plays a server ends: one to many goes nowhere, whoever sends it.
fn refusal(frame: &[u8]) -> Drop {
    match MacAddr::destination_of(frame) {
        Some(to) if to.is_multicast() => Drop::Broadcast,
        _ => Drop::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ra::tests::{advertised, config};
    use super::super::testing::*;
    use super::*;
    use crate::config::EdgeServices;
    use crate::effect::Effect;
    use axon_wire::nd;

    #[test]
    fn only_the_dhcp_server_of_the_file_answers_clients() {
        let mut bench = Bench::new();
        let offer = |to, from| dhcp_frame(to, mac(from), (67, 68), b"offer");
        for (to, reason) in [(MacAddr::BROADCAST, Drop::Broadcast), (mac(9), Drop::Refused)] {
            let effects = bench.frame(0, &offer(to, 1));
            assert!(!effects.iter().any(|effect| matches!(effect, Effect::ToController(_))));
            assert_eq!(bench.last_drop(), Some(reason));
        }
        assert_eq!(bench.edge.counters().dhcp_servers_refused, 2);
        bench.edge.services.dhcp_server = Some(mac(2));
        bench.frame(1, &offer(mac(9), 2));
        assert_eq!(bench.edge.counters().dhcp_servers_refused, 2, "it is the server");
        bench.frame(0, &offer(mac(9), 1));
        assert_eq!(bench.edge.counters().dhcp_servers_refused, 3);
    }

    #[test]
    fn advertisements_of_hosts_that_are_no_router_are_refused_and_counted() {
        let mut bench = Bench::new();
        let forged = |from: u8, to| {
            let by = (mac(from), nd::link_local(mac(from)));
            config().advertisement.frame(by, to)
        };
        bench.frame(0, &forged(1, None));
        assert_eq!(bench.edge.counters().advertisements_refused, 0, "none are asked for");
        bench.edge.services =
            EdgeServices { ipv6: Some(config().into()), ..EdgeServices::default() };
        let victim = Some((mac(2), nd::link_local(mac(2))));
        for (to, reason) in [(None, Drop::Broadcast), (victim, Drop::Refused)] {
            let effects = bench.frame(0, &forged(1, to));
            assert!(advertised(&effects).is_empty());
            assert_eq!(bench.last_drop(), Some(reason));
        }
        assert_eq!(bench.edge.counters().advertisements_refused, 2);
        // The router's own are no business of the guard.
        bench.frame(1, &forged(7, None));
        assert_eq!(bench.edge.counters().advertisements_refused, 2);
    }
}
