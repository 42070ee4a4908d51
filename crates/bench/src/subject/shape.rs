//! The topology that every subject is measured in.

/// A line of switches with hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Switches in the line, 1 or more.
    pub switches: usize,
    /// The switch of each host, by its number from 0.
    pub hosts: Vec<usize>,
    /// The rate of the link between the first two switches, in Mb/s, if it is to be held.
    pub rate_mbps: Option<u32>,
}

impl Shape {
    /// A host at each end of a line.
    pub fn line(switches: u32) -> Shape {
        let switches = switches as usize;
        Shape { switches, hosts: vec![0, switches - 1], rate_mbps: None }
    }

    /// Two hosts that send to a third, over one link with a rate.
    pub fn shares(rate_mbps: u32) -> Shape {
        Shape { switches: 2, hosts: vec![0, 0, 1], rate_mbps: Some(rate_mbps) }
    }
}
