//! What a plane counts: frames and bytes per port, drops by reason, punts by kind.
//!
//! Conservation, which the tests hold: summed over all ports and the control plane,
//! `rx_frames` + `copies` = `tx_frames` + drops before a punt + punts + frames in the queues +
//! punted frames that wait for their tail. In a whole node each punted frame ends as a drop
//! before the input that brought it is done with (consumed, mostly), so there
//! `rx_frames` + `copies` = `tx_frames` + drops + frames in the queues + held ones.

use crate::contract::{Drop, Punt};
use alloc::vec::Vec;
use axon_wire::PortNo;

/// The counters of one port, or of the control plane as a source of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames received; for the control plane: handed to the plane, PAUSE frames included.
    pub rx_frames: u64,
    /// Their bytes as they came, without FCS.
    pub rx_bytes: u64,
    /// Frames given to the wire.
    pub tx_frames: u64,
    /// Their bytes as they left, without FCS.
    pub tx_bytes: u64,
    /// Copies made of frames that came in by this port, to flood them.
    pub copies: u64,
    /// Probes that had no room for the record of this port's unit.
    pub unstamped: u64,
    /// Packets that an output refused and this port kept to offer them again.
    pub nacks: u64,
    /// Congestion messages caused by packets that came in by this port.
    pub congestion_messages: u64,
    /// PAUSE frames made for the hosts of this port.
    pub pauses: u64,
    drops: [u64; Drop::ALL.len()],
    punts: [u64; Punt::ALL.len()],
}

impl PortCounters {
    /// Frames that came in by this port and ended for `reason`.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.drops[reason as usize]
    }

    /// Frames that came in by this port and were handed to the control plane.
    pub fn punted(&self, punt: Punt) -> u64 {
        self.punts[punt as usize]
    }

    pub(crate) fn received(&mut self, bytes: usize) {
        self.rx_frames += 1;
        self.rx_bytes += bytes as u64;
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.tx_frames += 1;
        self.tx_bytes += bytes as u64;
    }

    pub(crate) fn drop_one(&mut self, reason: Drop) {
        self.drops[reason as usize] += 1;
    }

    pub(crate) fn punt_one(&mut self, punt: Punt) {
        self.punts[punt as usize] += 1;
    }

    fn add(&mut self, other: &PortCounters) {
        self.rx_frames += other.rx_frames;
        self.rx_bytes += other.rx_bytes;
        self.tx_frames += other.tx_frames;
        self.tx_bytes += other.tx_bytes;
        self.copies += other.copies;
        self.unstamped += other.unstamped;
        self.nacks += other.nacks;
        self.congestion_messages += other.congestion_messages;
        self.pauses += other.pauses;
        self.drops.iter_mut().zip(other.drops).for_each(|(sum, count)| *sum += count);
        self.punts.iter_mut().zip(other.punts).for_each(|(sum, count)| *sum += count);
    }
}

/// The counters of a whole plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// One for each port, then one for the control plane and ports that do not exist.
    ports: Vec<PortCounters>,
}

impl Counters {
    /// All zero.
    pub fn new(ports: u16) -> Counters {
        Counters { ports: alloc::vec![PortCounters::default(); usize::from(ports) + 1] }
    }

    /// How many ports there are, the control plane not counted.
    pub fn ports(&self) -> u16 {
        (self.ports.len() - 1) as u16
    }

    /// Those of one port. [`PortNo::CONTROL`], and any port that does not exist, stand for
    /// the control plane as a source.
    pub fn port(&self, port: PortNo) -> &PortCounters {
        &self.ports[port.index().min(self.ports.len() - 1)]
    }

    #[inline]
    pub(crate) fn port_mut(&mut self, port: PortNo) -> &mut PortCounters {
        let last = self.ports.len() - 1;
        &mut self.ports[port.index().min(last)]
    }

    /// The sum over all ports and the control plane.
    pub fn total(&self) -> PortCounters {
        let mut total = PortCounters::default();
        self.ports.iter().for_each(|port| total.add(port));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_sums_and_strangers_count_with_the_control_plane() {
        let mut counters = Counters::new(2);
        counters.port_mut(PortNo(1)).received(60);
        counters.port_mut(PortNo(9)).received(40);
        counters.port_mut(PortNo::CONTROL).drop_one(Drop::NoSuchPort);
        counters.port_mut(PortNo(0)).punt_one(Punt::Miss);
        assert_eq!(counters.port(PortNo::CONTROL).rx_bytes, 40);
        let total = counters.total();
        assert_eq!((total.rx_frames, total.rx_bytes), (2, 100));
        assert_eq!((total.dropped(Drop::NoSuchPort), total.punted(Punt::Miss)), (1, 1));
    }
}
