//! Table 1 of the paper (001 §5.1; thesis 000 §4.3.2, table 4.1): six flows over three Axons with
//! two hosts each, as a line and as a ring.
//!
//! The ratio shows the value of the redundant link. In the line, the four directions of two links
//! carry six flows, two of which use two links. So the fair share of a flow is half a link, which
//! makes three links' worth in total. In the ring, each of the six directions carries one flow.

use serde::Serialize;

/// Number of hosts in the experiment, two at each of three Axons.
pub const HOSTS: usize = 6;
/// Number of ordered pairs of different hosts.
pub(crate) const PAIRS: usize = HOSTS * (HOSTS - 1);
/// Axon (0 to 2 for the paper's A, B, C) of each host, starting with host 1.
pub(crate) const AXON_OF_HOST: [usize; HOSTS] = [0, 1, 2, 0, 1, 2];

/// A one-way flow between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// The sending host, counted from 1 as in the paper.
    pub from: usize,
    /// The receiving host, counted from 1 as in the paper.
    pub to: usize,
}

impl Flow {
    /// Returns the label of the flow, such as `h1 -> h2`.
    pub fn label(self) -> String {
        format!("h{} -> h{}", self.from, self.to)
    }

    /// Returns the Axons (0 to 2) at which the flow enters and leaves the fabric.
    pub(crate) const fn axons(self) -> (usize, usize) {
        (AXON_OF_HOST[self.from - 1], AXON_OF_HOST[self.to - 1])
    }
}

/// The six flows, in the order of the table. Flows 1 to 3 run one way round, and flows 4 to 6 the
/// other.
pub const FLOWS: [Flow; 6] = [
    Flow { from: 1, to: 2 },
    Flow { from: 2, to: 3 },
    Flow { from: 3, to: 1 },
    Flow { from: 4, to: 6 },
    Flow { from: 6, to: 5 },
    Flow { from: 5, to: 4 },
];

/// Transport of the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Sends at the rate of the host's link, regardless of loss.
    Udp,
    /// Adapts to the available rate.
    Tcp,
}

impl Transport {
    /// Both transports, in the order of the table.
    pub(crate) const ALL: [Transport; 2] = [Transport::Udp, Transport::Tcp];

    /// Returns the name of the transport: `UDP` or `TCP`.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP",
        }
    }

    /// Returns the paper's measurements with netperf over links of 1 Gb/s.
    pub const fn paper(self) -> Comparison {
        match self {
            Transport::Udp => Comparison {
                line: [481.0, 483.0, 476.0, 481.0, 476.0, 509.0],
                ring: [952.0, 952.0, 930.0, 952.0, 952.0, 952.0],
            },
            Transport::Tcp => Comparison {
                line: [566.0, 598.0, 243.0, 244.0, 397.0, 377.0],
                ring: [752.0, 792.0, 815.0, 524.0, 493.0, 575.0],
            },
        }
    }

    /// Returns the aggregates as the paper prints them, for the line and the ring, in Mb/s. They
    /// come from unrounded flows, so the sums of the printed flows may differ in the last digit.
    pub const fn paper_aggregate(self) -> (f64, f64) {
        match self {
            Transport::Udp => (2906.0, 5690.0),
            Transport::Tcp => (2425.0, 3951.0),
        }
    }
}

/// Results for one transport over both topologies. They are the goodput of each flow in Mb/s (10^6
/// bits of application data per second, as received), in the order of [`FLOWS`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Goodput of each flow over the line.
    pub line: [f64; 6],
    /// Goodput of each flow over the ring.
    pub ring: [f64; 6],
}

impl Comparison {
    /// Returns the total goodput over the line, in Mb/s.
    pub fn line_mbps(&self) -> f64 {
        self.line.iter().sum()
    }

    /// Returns the total goodput over the ring, in Mb/s.
    pub fn ring_mbps(&self) -> f64 {
        self.ring.iter().sum()
    }

    /// Returns the gain of the ring over the line as a fraction, where 0.96 is +96 %. It is zero if
    /// the line carried nothing, so that a failed run never passes for a gain.
    pub fn gain(&self) -> f64 {
        gain(self.line_mbps(), self.ring_mbps())
    }
}

/// Returns `ring / line - 1`, or zero if the line carried nothing.
pub(crate) fn gain(line_mbps: f64, ring_mbps: f64) -> f64 {
    if line_mbps > 0.0 { ring_mbps / line_mbps - 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flows_of_the_paper_add_up_to_its_aggregates() {
        for transport in Transport::ALL {
            let (line, ring) = transport.paper_aggregate();
            let paper = transport.paper();
            assert!((paper.line_mbps() - line).abs() <= 1.0, "{transport:?}");
            assert!((paper.ring_mbps() - ring).abs() <= 1.0, "{transport:?}");
        }
    }

    #[test]
    fn the_gains_of_the_paper_are_96_and_63_percent() {
        let percent = |t: Transport| (t.paper().gain() * 100.0).round();
        assert_eq!(percent(Transport::Udp), 96.0);
        assert_eq!(percent(Transport::Tcp), 63.0);
    }

    #[test]
    fn in_the_ring_each_direction_of_each_link_has_exactly_one_flow() {
        let mut directions: Vec<_> = FLOWS.iter().map(|flow| flow.axons()).collect();
        directions.sort_unstable();
        assert_eq!(directions, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
    }

    #[test]
    fn every_host_sends_one_flow_and_receives_one() {
        for host in 1..=HOSTS {
            assert_eq!(FLOWS.iter().filter(|flow| flow.from == host).count(), 1);
            assert_eq!(FLOWS.iter().filter(|flow| flow.to == host).count(), 1);
        }
    }

    #[test]
    fn a_line_that_carried_nothing_is_no_gain() {
        assert_eq!(gain(0.0, 100.0), 0.0);
        assert_eq!(gain(50.0, 100.0), 1.0);
    }
}
