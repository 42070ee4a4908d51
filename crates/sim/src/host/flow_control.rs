//! Priorities and flow control of a host: what its NIC is set to and what it has counted.

use crate::host::dcb_nic::DcbNic;
use crate::host::node::Host;
use axon_wire::Time;
use axon_wire::priority::{Priority, PrioritySet};
use std::net::Ipv4Addr;

impl Host {
    /// What has this TCP or UDP port at either end has this priority from now on. Nothing
    /// happens in a host without Data Center Bridging.
    pub fn set_priority(&mut self, port: u16, priority: Priority) {
        if let Some(nic) = self.dcb_nic_mut() {
            nic.set_priority(port, priority);
        }
    }

    /// Echo requests and replies to this host have this priority from now on; the same.
    pub fn set_echo_priority(&mut self, target: Ipv4Addr, priority: Priority) {
        if let Some(nic) = self.dcb_nic_mut() {
            nic.set_echo_priority(target, priority);
        }
    }

    /// So many frames of one datagram socket may wait in the NIC from now on, at least 1 and 128 by
    /// default (Linux: `SO_SNDBUF`): with more a source is blocked, and its interval to the next
    /// datagram begins when it may send again. Nothing happens in a host without Data Center
    /// Bridging.
    pub fn set_socket_frames(&mut self, frames: u32) {
        if let Some(nic) = self.dcb_nic_mut() {
            nic.set_socket_frames(frames);
        }
    }

    /// The ring of received frames holds so many frames without flow control from now on; 512 by
    /// default. It matters to a host that reads slowly only ([`Host::set_receive_rate`]).
    pub fn set_ring_frames(&mut self, frames: usize) {
        self.rx.set_frames(frames);
    }

    /// The priorities that its peer has paused now.
    pub fn paused(&self, now: Time) -> PrioritySet {
        self.dcb_nic().map_or(PrioritySet::EMPTY, |nic| nic.paused(now))
    }

    /// CNMs that have slowed down a flow of this host, as a count.
    pub fn cnms_applied(&self) -> u64 {
        self.dcb_nic().map_or(0, DcbNic::cnms)
    }

    /// Flow control frames that named a priority, sent (requests) and received (indications).
    /// A PAUSE that is sent counts for priority 0, one that is received for all.
    pub fn flow_control_counts(&self, priority: Priority) -> (u64, u64) {
        self.dcb_nic().map_or((0, 0), |nic| nic.counts(priority))
    }
}
