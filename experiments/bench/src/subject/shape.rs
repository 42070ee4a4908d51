//! Topology of all subjects.

/// Line of switches with hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Switches in the line, 1 or more.
    pub switches: usize,
    /// The switch of each host, by its number from 0.
    pub hosts: Vec<usize>,
    /// Enforced rate of the link between the first two switches in Mb/s, if any.
    pub rate_mbps: Option<u32>,
}

impl Shape {
    /// Returns a line with a host at each end.
    pub fn line(switches: u32) -> Shape {
        let switches = switches as usize;
        Shape { switches, hosts: vec![0, switches - 1], rate_mbps: None }
    }

    /// Returns two hosts that send to a third, over one link with a rate.
    pub fn shares(rate_mbps: u32) -> Shape {
        Shape { switches: 2, hosts: vec![0, 0, 1], rate_mbps: Some(rate_mbps) }
    }
}
