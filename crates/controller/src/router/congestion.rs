//! Router that uses the measured load on links.

use super::search::{Bound, Search};
use super::{Flow, Router, ShortestPaths, Step};
use crate::topology::{Edge, Graph, SwitchIndex};
use alloc::vec::Vec;
use axon_wire::message::PortBytes;
use axon_wire::{PortNo, Span};

/// Interval between the reports of a switch, in heartbeats.
const REPORT_HEARTBEATS: u32 = 10;
/// Maximum number of links by which a path may be longer than a shortest one.
const DETOUR_MAX: u16 = 2;
/// Cost of an idle link. A link with the mean load costs four times this in addition.
const EMPTY: u64 = 1 << 10;

/// Steers flows around heavily loaded links.
///
/// Switches report the bytes that each of their ports has sent. Between reports, the load on a link
/// is estimated as its measured load, plus the flows placed on it since, and minus the flows
/// removed. The load of a single flow is not measured. A removed flow is estimated as the smallest
/// equal share among the links on its path, and a new one as a typical flow, which is the load on
/// all links divided by their flows. The next report corrects the estimate. For a link whose flows
/// changed in the meantime, it is the report after that.
///
/// A link's cost grows with the square of its load relative to the mean of all links. A flow takes
/// the cheapest path that has at most two links more than a shortest one. Reports are followed by a
/// round. In it, a flow moves if its busiest link carries more than 5/4 of the mean and the busiest
/// link of the new path would carry less than 7/8 of that, including the flow. Each move counts as
/// load at once, so that a round does not send all flows the same way. Loads are in bytes, not in
/// utilisation, because links are assumed to be equally fast.
#[derive(Clone, Debug, Default)]
pub struct CongestionAware {
    shortest: ShortestPaths,
    search: Search,
    links: Links,
    /// Estimated load of the flow removed last, in bytes per second. The flow placed next is
    /// assumed to be the same flow, after a move.
    in_hand: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// True if the link has ever carried a flow or been measured.
    known: bool,
    /// True if the link has ever been measured.
    reported: bool,
    /// True if the last report was ignored in favour of the estimate.
    reckoned: bool,
    /// Load in the last report, in bytes per second.
    measured: u64,
    /// Change of the estimated load since then, by flows added and removed, in bytes per second.
    change: i64,
    /// Number of flows over the link.
    flows: u32,
}

impl Link {
    fn load(&self) -> u64 {
        self.measured.saturating_add_signed(self.change)
    }
}

#[derive(Clone, Debug, Default)]
struct Links {
    /// Links by switch, then by egress port of the switch.
    links: Vec<Vec<Link>>,
    /// Totals over all links: bytes per second, number of flows over them, and number of known
    /// links.
    measured: u64,
    flows: u64,
    count: u64,
}

impl Links {
    fn at(&mut self, switch: SwitchIndex, egress: PortNo) -> &mut Link {
        let at = switch.index();
        if self.links.len() <= at {
            self.links.resize_with(at + 1, Vec::new);
        }
        let ports = &mut self.links[at];
        if ports.len() <= egress.index() {
            ports.resize(egress.index() + 1, Link::default());
        }
        let link = &mut ports[egress.index()];
        self.count += u64::from(!link.known);
        link.known = true;
        link
    }

    fn get(&self, switch: SwitchIndex, egress: PortNo) -> Link {
        let ports = self.links.get(switch.index());
        ports.and_then(|ports| ports.get(egress.index())).copied().unwrap_or_default()
    }

    /// Returns the estimated load of a new flow, in bytes per second. It is 1 before any
    /// measurement.
    fn typical(&self) -> u64 {
        (self.measured / self.flows.max(1)).max(1)
    }

    /// Returns the estimated load of a flow on this path.
    fn share(&self, path: &[Step]) -> u64 {
        let share = |step: &Step| {
            let link = self.get(step.switch, step.egress);
            link.load() / u64::from(link.flows.max(1))
        };
        path.iter().map(share).min().unwrap_or(0)
    }

    fn mean(&self) -> u64 {
        (self.measured.max(self.flows) / self.count.max(1)).max(1)
    }

    fn busiest(&self, path: &[Step]) -> u64 {
        path.iter().map(|step| self.get(step.switch, step.egress).load()).max().unwrap_or(0)
    }
}

impl Router for CongestionAware {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        let CongestionAware { shortest, search, links, .. } = self;
        let row = shortest.row(graph, flow.to);
        let links_max = row[flow.from.index()].saturating_add(DETOUR_MAX);
        let mean = links.mean();
        let cost = |at: SwitchIndex, edge: &Edge| {
            // The value 64 stands for the mean. The load saturates at a million times the mean.
            let share = links.get(at, edge.egress).load().saturating_mul(64) / mean;
            let share = share.min(64_000_000);
            EMPTY + share * share
        };
        let ends = (flow.from, flow.to);
        search.cheapest(graph, ends, Bound { row, links_max }, cost, path)
            || shortest.pick(graph, flow.from, flow.to, flow.hash, path)
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        &mut self.shortest
    }

    fn placed(&mut self, path: &[Step]) {
        let carries = self.in_hand.take().unwrap_or_else(|| self.links.typical()) as i64;
        for step in path {
            let link = self.links.at(step.switch, step.egress);
            link.flows += 1;
            link.change = link.change.saturating_add(carries);
        }
        self.links.flows += path.len() as u64;
    }

    fn removed(&mut self, path: &[Step]) {
        let carries = self.links.share(path);
        self.in_hand = Some(carries);
        for step in path {
            let link = self.links.at(step.switch, step.egress);
            debug_assert!(link.flows > 0, "{step:?}");
            link.flows = link.flows.saturating_sub(1);
            link.change = link.change.saturating_sub(carries as i64);
        }
        self.links.flows = self.links.flows.saturating_sub(path.len() as u64);
    }

    fn better(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        current: &[Step],
        path: &mut Vec<Step>,
    ) -> bool {
        let distance = self.shortest.distance(graph, flow.from, flow.to);
        let detour = current.len().saturating_sub(distance.unwrap_or(0));
        let own = self.in_hand.unwrap_or(0);
        let before = self.links.busiest(current) + own;
        let busy = before > self.links.mean().saturating_mul(5) / 4;
        if !busy && detour <= usize::from(DETOUR_MAX) || !self.path(graph, flow, path) {
            return false;
        }
        detour > usize::from(DETOUR_MAX) || self.links.busiest(path) + own < before - before / 8
    }

    fn improves(&self) -> bool {
        true
    }

    fn measures(&self) -> Option<u32> {
        Some(REPORT_HEARTBEATS)
    }

    fn measured(&mut self, graph: &Graph, switch: SwitchIndex, over: Span, sent: &[PortBytes]) {
        let edges = graph.edges(switch);
        let between_switches = |of: &PortBytes| edges.iter().any(|edge| edge.egress == of.port);
        for &PortBytes { port, bytes } in sent.iter().filter(|of| between_switches(of)) {
            let ticks = u128::from(over.ticks()).max(1);
            let second = u128::from(Span::from_secs(1).ticks());
            let rate = u128::from(bytes) * second / ticks;
            let rate = u64::try_from(rate).unwrap_or(u64::MAX).min(1 << 40);
            let link = self.links.at(switch, port);
            // A report over a time in which flows changed is partly outdated. So the estimate is
            // kept for one more report.
            link.reckoned = link.change != 0 && link.reported && !link.reckoned;
            let rate = if link.reckoned { link.load() } else { rate };
            let before = core::mem::replace(&mut link.measured, rate);
            (link.reported, link.change) = (true, 0);
            self.links.measured = self.links.measured - before + rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{improve, place, ring, tell};
    use super::*;

    fn report(router: &mut CongestionAware, graph: &Graph, switch: u32, port: u16, bytes: u64) {
        let sent = PortBytes { port: PortNo(port), bytes };
        router.measured(graph, SwitchIndex(switch), Span::from_millis(100), &[sent]);
    }

    #[test]
    fn a_new_flow_goes_round_a_busy_link_and_an_old_one_moves_off_it() {
        let mut graph = Graph::default();
        tell(&mut graph, 1, 4, &ring(4));
        let flow = Flow { from: SwitchIndex(0), to: SwitchIndex(1), hash: 5, towards: 0 };
        let mut router = CongestionAware::default();
        let flows = [flow; 2];
        let mut paths = place(&mut router, &graph, &flows[..1]);
        assert_eq!(paths[0].len(), 1);
        report(&mut router, &graph, 0, 1, 100_000_000);
        paths.extend(place(&mut router, &graph, &flows[1..]));
        assert_eq!(paths[1].len(), 3, "round the busy link");
        // Both flows are on the direct link. Half of its load moves, and after that no flow does.
        let direct = paths[0].clone();
        router.removed(&paths[1]);
        router.placed(&direct);
        paths[1] = direct;
        report(&mut router, &graph, 0, 1, 100_000_000);
        assert_eq!(improve(&mut router, &graph, &flows, &mut paths), 1);
        assert_eq!(paths.iter().map(Vec::len).sum::<usize>(), 4);
        for (switch, port) in [(0, 1), (0, 3), (3, 2), (2, 1)] {
            report(&mut router, &graph, switch, port, 50_000_000);
        }
        assert_eq!(paths.iter().map(|path| router.links.busiest(path)).max(), Some(500_000_000));
        assert_eq!(improve(&mut router, &graph, &flows, &mut paths), 0);
    }
}
