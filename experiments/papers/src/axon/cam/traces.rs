//! Synthetic traces with stated statistics, in place of NLANR's, which are no longer available.
//!
//! A trace is a mix of flows: at any moment `active` of them run, each packet belongs to one
//! of these, any with the same chance, and a flow that ends is followed by a new one. Where a
//! flow goes is drawn by Zipf's law with exponent 1 (the n-th most popular destination is
//! chosen in proportion to 1/n), how many packets it has by Pareto's with exponent 1 between a
//! shortest and a longest (with a shortest of m, a share of m/n of the flows has n packets or
//! more). Both are what measurements of Internet and data center traffic are commonly
//! summarised by; the numbers below are ours. All draws are integers, so a trace is the same
//! on every machine.

use oorandom::Rand64;

/// Weight of the most popular destination.
const WEIGHT: u64 = 1 << 40;

/// Statistics of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Name of the trace, as in the rows.
    pub name: &'static str,
    /// Number of distinct destinations.
    pub destinations: u64,
    /// Number of concurrent flows.
    pub active: u64,
    /// Packets of the shortest flow.
    pub flow_packets_min: u64,
    /// Packets of the longest flow.
    pub flow_packets_max: u64,
    /// Total number of packets.
    pub packets: u64,
}

/// Port at the edge, through which all external traffic passes (the place of CESCA-I, paper 001
/// §5.3): destinations in the whole Internet, thousands of flows at a time, half of them of one
/// packet (scans, name servers).
pub(crate) const EDGE: Statistics = Statistics {
    name: "edge",
    destinations: 200_000,
    active: 2_000,
    flow_packets_min: 1,
    flow_packets_max: 10_000,
    packets: 4_000_000,
};

/// Edge port without the short flows, for which the paper's 4,000 entries suffice.
pub(crate) const EDGE_LONG: Statistics =
    Statistics { name: "edge, flows of 6 packets or more", flow_packets_min: 6, ..EDGE };

/// Port between two parts of a data center (the place of LBNL): thousands of servers, hundreds of
/// flows at a time, longer ones.
pub(crate) const DATA_CENTER: Statistics = Statistics {
    name: "data center, flows of 6 packets or more",
    destinations: 8_000,
    active: 300,
    flow_packets_min: 6,
    flow_packets_max: 100_000,
    packets: 4_000_000,
};

/// Sequence of the destinations of a trace's packets, as numbers.
#[derive(Clone, Debug)]
pub struct Trace {
    statistics: Statistics,
    dice: Rand64,
    /// Cumulative weights of all destinations.
    sums: Vec<u64>,
    flows: Vec<Flow>,
    begun: u64,
    left: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    to: u64,
    left: u64,
}

impl Trace {
    /// Creates a trace, different for every seed.
    pub(crate) fn new(statistics: Statistics, seed: u64) -> Trace {
        let weights = (1..=statistics.destinations).map(|rank| WEIGHT / rank);
        let sums = weights.scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        let mut trace = Trace {
            statistics,
            dice: Rand64::new(u128::from(seed)),
            sums: sums.collect(),
            flows: Vec::new(),
            begun: 0,
            left: statistics.packets,
        };
        for _ in 0..statistics.active {
            let mut flow = trace.flow();
            // Flows that run at the start are already partly sent.
            flow.left = trace.dice.rand_range(0..flow.left) + 1;
            trace.flows.push(flow);
        }
        trace
    }

    /// Returns the number of flows begun so far, including those before the first packet.
    pub(crate) fn flows(&self) -> u64 {
        self.begun
    }

    fn flow(&mut self) -> Flow {
        self.begun += 1;
        let all = self.sums.last().copied().unwrap_or(1);
        let draw = self.dice.rand_range(0..all);
        let to = self.sums.partition_point(|&sum| sum <= draw) as u64;
        let Statistics { flow_packets_min: least, flow_packets_max: most, .. } = self.statistics;
        let left = (least * most / (self.dice.rand_range(0..most) + 1)).clamp(least, most);
        Flow { to, left }
    }
}

impl Iterator for Trace {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let which = self.dice.rand_range(0..self.flows.len() as u64) as usize;
        let to = self.flows[which].to;
        self.flows[which].left -= 1;
        if self.flows[which].left == 0 {
            self.flows[which] = self.flow();
        }
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Statistics = Statistics {
        name: "small",
        destinations: 100,
        active: 10,
        flow_packets_min: 1,
        flow_packets_max: 1_000,
        packets: 200_000,
    };

    #[test]
    fn flows_go_where_zipf_and_last_as_pareto_say() {
        let mut trace = Trace::new(SMALL, 3);
        let flows: Vec<Flow> = (0..200_000).map(|_| trace.flow()).collect();
        let share = |fits: &dyn Fn(&&Flow) -> bool| {
            flows.iter().filter(fits).count() as f64 / flows.len() as f64
        };
        // The harmonic number of 100 is 5.187.
        for (rank, expected) in [(1, 1.0 / 5.187), (2, 0.5 / 5.187), (10, 0.1 / 5.187)] {
            let got = share(&|flow| flow.to == rank - 1);
            assert!((got / expected - 1.0).abs() < 0.1, "rank {rank}: {got}, not {expected}");
        }
        for packets in [2, 10, 100] {
            let got = share(&|flow| flow.left >= packets) * packets as f64;
            assert!((got - 1.0).abs() < 0.1, "{packets} packets: {got}");
        }
        let mut longer = Trace::new(Statistics { flow_packets_min: 6, ..SMALL }, 3);
        let flows: Vec<Flow> = (0..100_000).map(|_| longer.flow()).collect();
        assert!(flows.iter().all(|flow| (6..=1000).contains(&flow.left)));
        let got = flows.iter().filter(|flow| flow.left >= 60).count() as f64 / 10_000.0;
        assert!((got - 1.0).abs() < 0.1, "a tenth has ten times the least: {got}");
        assert!(flows.iter().all(|flow| (1..=1000).contains(&flow.left) && flow.to < 100));
    }

    #[test]
    fn a_trace_counts_its_flows() {
        let mut trace = Trace::new(SMALL, 2);
        assert_eq!(trace.flows(), SMALL.active);
        trace.by_ref().for_each(drop);
        // With a shortest of 1 and a longest of 1,000 the mean is about ln 1000 + 1.
        let mean = SMALL.packets as f64 / trace.flows() as f64;
        assert!((6.5..9.5).contains(&mean), "{mean}");
    }

    #[test]
    fn a_trace_has_its_packets_and_its_seed_makes_it() {
        let of = |seed| Trace::new(SMALL, seed).collect::<Vec<_>>();
        assert_eq!(of(1).len(), 200_000);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
