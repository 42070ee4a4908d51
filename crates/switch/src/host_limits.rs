//! Limits of the hosts of each port of a switch: their priorities and the control traffic that they
//! cause.
//!
//! The data plane limits the number of frames of a port that reach the control plane. The bytes of
//! control messages that result depend on the frame: an ARP request causes a short message, and a
//! DHCP message goes to the controller whole. So each port has a token bucket of bytes. The
//! messages caused by a frame are charged to its ingress port, and while the bucket is overdrawn,
//! the port's frames are dropped unread.

use super::effect::SwitchEffect;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_edge::Effect;
use axon_edge::config::EdgeConfig;
use axon_edge::config::{ByteLimit, PortPolicy};
use axon_node::PortVlans;
use axon_wire::message::Message;
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::{PortNo, Span, Time};

/// Bytes charged for a message in addition to the host's data: route, envelope, fields, and
/// overhead on the wire.
const MESSAGE_BYTES: u64 = 128;

/// Limits of all host ports of a switch.
pub(super) struct HostLimits {
    policies: Vec<PortPolicy>,
    /// Cost of one byte in ticks, and the burst.
    byte_ticks: u64,
    burst: Span,
    /// Time at which each port's bytes would have been sent at the limit.
    spent: BTreeMap<PortNo, Time>,
}

impl HostLimits {
    pub(crate) fn new(config: &EdgeConfig) -> HostLimits {
        let ByteLimit { bytes_per_second, burst } = config.host_control;
        let byte_ticks = Span::from_secs(1).ticks().div_ceil(bytes_per_second.max(1));
        HostLimits {
            policies: config.ports.clone(),
            byte_ticks,
            burst: Span::from_ticks(byte_ticks.saturating_mul(burst)),
            spent: BTreeMap::new(),
        }
    }

    /// Returns the ports pinned to hosts.
    pub(crate) fn pinned(&self) -> impl Iterator<Item = PortNo> {
        let pinned = self.policies.iter().enumerate().filter(|(_, policy)| policy.hosts_only);
        pinned.map(|(port, _)| PortNo(port as u16))
    }

    /// Returns the VLANs of hosts at a port; `None` in a fabric without VLANs.
    pub(crate) fn vlans(&self, port: PortNo) -> Option<&PortVlans> {
        self.policies.get(port.index())?.vlans.as_deref()
    }

    /// Returns the priority regeneration table of a port, if its hosts may not use all priorities.
    pub(crate) fn regeneration(&self, port: PortNo) -> Option<&[Priority; PRIORITIES]> {
        self.policies.get(port.index())?.regeneration.as_deref()
    }

    /// Returns whether a frame of this port may cause control traffic now.
    pub(crate) fn admits(&self, now: Time, port: PortNo) -> bool {
        self.spent.get(&port).is_none_or(|&spent| spent <= now + self.burst)
    }

    /// Charges a port for the messages that a frame of its hosts has caused.
    pub(crate) fn charge(&mut self, now: Time, port: PortNo, effects: &[SwitchEffect]) {
        let bytes: u64 = effects.iter().map(bytes_of).sum();
        if bytes > 0 {
            let spent = self.spent.entry(port).or_insert(now);
            *spent = (*spent).max(now) + Span::from_ticks(self.byte_ticks.saturating_mul(bytes));
        }
    }
}

/// Returns the bytes that an effect sends to another node.
fn bytes_of(effect: &SwitchEffect) -> u64 {
    let SwitchEffect::Edge(_, effect) = effect else { return 0 };
    match effect {
        Effect::ToController(message) | Effect::Routed { message, .. } => match message {
            Message::DhcpRelay(relay) => MESSAGE_BYTES + relay.frame.len() as u64,
            _ => MESSAGE_BYTES,
        },
        Effect::Report(_) => MESSAGE_BYTES,
        Effect::Host { .. } | Effect::Release { .. } | Effect::Abandon { .. } => 0,
        Effect::Spread { .. } | Effect::Route { .. } | Effect::Resynchronise => 0,
        Effect::LinkLost { .. } | Effect::Note(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::message::HostFrame;
    use axon_wire::vlan::VlanId;

    const PORT: PortNo = PortNo(3);

    fn limits() -> HostLimits {
        HostLimits {
            policies: Vec::new(),
            byte_ticks: Span::from_micros(1).ticks(),
            burst: Span::from_micros(2000),
            spent: BTreeMap::new(),
        }
    }

    fn relay(bytes: usize) -> SwitchEffect {
        let frame = alloc::vec![0; bytes];
        let relay = Message::DhcpRelay(HostFrame { port: PORT, frame });
        (VlanId::NONE, Effect::ToController(relay)).into()
    }

    #[test]
    fn a_port_that_has_spent_its_bytes_waits_and_others_do_not() {
        let (mut limits, start) = (limits(), Time::ZERO);
        let mut passed = 0;
        while limits.admits(start, PORT) {
            limits.charge(start, PORT, &[relay(872)]);
            passed += 1;
        }
        assert_eq!(passed, 3, "a burst of 2000 bytes, and the frame that overdraws it");
        assert!(limits.admits(start, PortNo(4)));
        assert!(!limits.admits(start + Span::from_micros(999), PORT));
        assert!(limits.admits(start + Span::from_micros(1000), PORT));
    }

    #[test]
    fn only_what_leaves_for_another_node_is_charged() {
        let mut limits = limits();
        let host = Effect::Host { port: PORT, frame: alloc::vec![0; 9000] };
        let host = (VlanId::NONE, host).into();
        (0..100).for_each(|_| limits.charge(Time::ZERO, PORT, core::slice::from_ref(&host)));
        assert!(limits.admits(Time::ZERO, PORT) && limits.spent.is_empty());
    }
}
