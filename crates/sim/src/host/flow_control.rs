//! Priorities and flow control of a host: NIC configuration and counters.

use crate::host::dcb_nic::DcbNic;
use crate::host::node::Host;
use axon_wire::Time;
use axon_wire::priority::{Priority, PrioritySet};
use std::net::Ipv4Addr;

impl Host {
    /// Sets the priority of frames with this TCP or UDP port at either end. Has no effect in a host
    /// without Data Center Bridging.
    pub fn set_priority(&mut self, port: u16, priority: Priority) {
        if let Some(nic) = self.dcb_nic_mut() {
            nic.set_priority(port, priority);
        }
    }

    /// Sets the priority of echo requests and replies to this host. Has no effect in a host without
    /// Data Center Bridging.
    pub fn set_echo_priority(&mut self, target: Ipv4Addr, priority: Priority) {
        if let Some(nic) = self.dcb_nic_mut() {
            nic.set_echo_priority(target, priority);
        }
    }

    /// Sets the limit of queued frames per datagram socket, at least 1 and 128 by default (Linux:
    /// `SO_SNDBUF`). A source at its limit is blocked, and its interval to the next datagram begins
    /// when it may send again. Has no effect in a host without Data Center Bridging.
    pub fn set_socket_frames(&mut self, frames: u32) {
        if let Some(nic) = self.dcb_nic_mut() {
            nic.set_socket_frames(frames);
        }
    }

    /// Sets the size of the receive ring without flow control, in frames; 512 by default. It
    /// matters only to a host that reads slowly ([`Host::set_receive_rate`]).
    pub fn set_ring_frames(&mut self, frames: usize) {
        self.rx.set_frames(frames);
    }

    /// Returns the priorities that the peer has paused.
    pub fn paused(&self, now: Time) -> PrioritySet {
        self.dcb_nic().map_or(PrioritySet::EMPTY, |nic| nic.paused(now))
    }

    /// Returns the number of CNMs that have slowed down a flow of this host.
    pub fn cnms_applied(&self) -> u64 {
        self.dcb_nic().map_or(0, DcbNic::cnms)
    }

    /// Returns the numbers of flow control frames for a priority, sent (requests) and received
    /// (indications). A sent PAUSE counts for priority 0, a received one for all.
    pub fn flow_control_counts(&self, priority: Priority) -> (u64, u64) {
        self.dcb_nic().map_or((0, 0), |nic| nic.counts(priority))
    }
}
