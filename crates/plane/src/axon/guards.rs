//! Limits on what the frames of one port may cost others: frames to the control plane, congestion
//! messages, CNMs, and the header bytes for which hosts are paused.

use super::cnm_meter::CnmMeter;
use super::meter::Pace;
use super::pause::SelfCongestion;
use crate::config::PlaneConfig;
use alloc::vec::Vec;
use axon_node::Punt;
use axon_wire::{PortNo, Time};

/// Limits of all ports of a switch. The control plane, which is no port, has none.
#[derive(Clone, Debug)]
pub(super) struct Guards {
    ports: Vec<Guard>,
    /// Limit of misses, link frames and errors, each by itself.
    punt: Pace,
    addressed: Pace,
    congestion: Pace,
}

/// State of the limits of one port.
#[derive(Clone, Debug, Default)]
struct Guard {
    /// Next send time of a sender exactly at the limit ([`Pace`]), by kind of frame. Misses and
    /// link frames have separate limits, so that a host that floods cannot block discovery.
    misses: Time,
    link_frames: Time,
    /// Next send times of packets from other control planes, and of packets in error.
    addressed: Time,
    errors: Time,
    /// Next send time of congestion messages caused by frames of the port.
    congestion: Time,
    /// Limit of CNMs to the hosts of the port.
    cnms: CnmMeter,
    load: SelfCongestion,
}

impl Guards {
    /// Returns limits that nothing has used yet.
    pub(super) fn new(config: &PlaneConfig) -> Guards {
        Guards {
            ports: alloc::vec![Guard::default(); usize::from(config.ports)],
            punt: Pace::new(config.punt),
            addressed: Pace::new(config.addressed),
            congestion: Pace::new(config.congestion),
        }
    }

    /// Returns whether a frame without a route, received on `port`, may be punted.
    pub(super) fn admit_miss(&mut self, now: Time, port: PortNo) -> bool {
        self.punt.admit(&mut self.ports[port.index()].misses, now)
    }

    /// Returns whether a link-local frame received on `port` may be punted.
    pub(super) fn admit_link_frame(&mut self, now: Time, port: PortNo) -> bool {
        self.punt.admit(&mut self.ports[port.index()].link_frames, now)
    }

    /// Returns whether a packet from `ingress` may be punted.
    pub(super) fn admit_packet(&mut self, now: Time, ingress: PortNo, punt: Punt) -> bool {
        let Some(guard) = self.ports.get_mut(ingress.index()) else { return true };
        match punt {
            Punt::Addressed => self.addressed.admit(&mut guard.addressed, now),
            _ => self.punt.admit(&mut guard.errors, now),
        }
    }

    /// Returns whether a frame from `ingress` may cause a congestion message; none of the control
    /// plane's own may.
    pub(super) fn admit_congestion(&mut self, now: Time, ingress: PortNo) -> bool {
        let guard = self.ports.get_mut(ingress.index());
        guard.is_some_and(|guard| self.congestion.admit(&mut guard.congestion, now))
    }

    /// Returns whether the hosts of `port`, which have sent `sent` bytes so far, may get a CNM of
    /// congestion points that sample by this base.
    pub(super) fn admit_cnm(&mut self, port: PortNo, sent: u64, sample_base: u64) -> bool {
        let guard = self.ports.get_mut(port.index());
        guard.is_none_or(|guard| guard.cnms.admit(sent, sample_base))
    }

    /// Charges header bytes to the hosts of `port`; returns whether they are to be paused for the
    /// time of a frame of `frame_bytes_max` bytes.
    pub(super) fn burden(
        &mut self,
        port: PortNo,
        header_bytes: usize,
        frame_bytes_max: usize,
    ) -> bool {
        self.ports[port.index()].load.add(header_bytes, frame_bytes_max)
    }

    /// Forgets the header bytes of the hosts of `port`, which has lost its carrier.
    pub(super) fn link_lost(&mut self, port: PortNo) {
        if let Some(guard) = self.ports.get_mut(port.index()) {
            guard.load = SelfCongestion::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PuntLimit;
    use axon_wire::MacAddr;

    #[test]
    fn a_port_that_has_used_one_limit_up_has_its_others_and_so_have_other_ports() {
        let once = PuntLimit { frames_per_second: 1, burst: 1 };
        let config = PlaneConfig::with_ports(2, MacAddr::default());
        let config = PlaneConfig { punt: once, addressed: once, congestion: once, ..config };
        let (mut guards, now) = (Guards::new(&config), Time::ZERO);
        for port in [PortNo(0), PortNo(1)] {
            let mut twice = |admit: fn(&mut Guards, Time, PortNo) -> bool| {
                assert_eq!([(); 2].map(|()| admit(&mut guards, now, port)), [true, false]);
            };
            twice(Guards::admit_miss);
            twice(Guards::admit_link_frame);
            twice(Guards::admit_congestion);
            twice(|guards, now, port| guards.admit_packet(now, port, Punt::Addressed));
            twice(|guards, now, port| guards.admit_packet(now, port, Punt::Error));
        }
        let control = PortNo::CONTROL;
        assert!((0..9).all(|_| guards.admit_packet(now, control, Punt::Error)));
        assert!(!guards.admit_congestion(now, control));
    }
}
