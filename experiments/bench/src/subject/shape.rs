//! Topology that is the same for all subjects.

/// Line of switches, with hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of switches in the line, 1 or more.
    pub switches: usize,
    /// Switch of each host, as a number from 0.
    pub hosts: Vec<usize>,
    /// Rate that is enforced on the link between the first two switches in Mb/s, if any.
    pub rate_mbps: Option<u32>,
}

impl Shape {
    /// Returns a line with one host at each end.
    pub(crate) fn line(switches: u32) -> Shape {
        let switches = switches as usize;
        Shape { switches, hosts: vec![0, switches - 1], rate_mbps: None }
    }

    /// Returns a topology in which two hosts send to a third one over a single link with this rate.
    pub fn shares(rate_mbps: u32) -> Shape {
        Shape { switches: 2, hosts: vec![0, 0, 1], rate_mbps: Some(rate_mbps) }
    }
}
