//! Capabilities of the data planes on real ports.

use crate::kernel::Hook;
use crate::port::fabric_mtu;
use axon_fabric::model::Fabric;
use axon_fabric::needs::{self, Lacking, Runtime};
use axon_node::{Capabilities, Feature, FeatureSet};
use axon_plane::{PlaneConfig, axon};
use axon_programs::axon as program;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::{HopWidth, Rate};

/// Highest link rate of a port of this machine. At 100 Gb/s the longest frame of a fabric (9 KB)
/// takes 0.7 us, about the duration of one system call. A run loop that paces frames one by one
/// reaches its limit at a much lower rate.
pub(crate) const PORT_RATE_MAX: Rate = Rate::gbps(100);

/// Largest MTU of a veth device with an XDP program whose frames are not in fragments
/// (`veth_xdp_set`): a page of 4,096 bytes without headroom (256), the shared info of a socket
/// buffer (320) and the Ethernet header.
const XDP_MTU_MAX: usize = 4096 - 256 - 320 - ETHERNET_BYTES;

/// Returns the capabilities of the software plane on packet sockets and TAP devices, with this hop
/// width. The kernel delivers whole frames, so forwarding is store-and-forward. The run loop shapes
/// each port ([`Pacer`](crate::pacer::Pacer)).
pub fn capabilities(hop_width: HopWidth) -> Capabilities {
    let plane = axon::capabilities(&PlaneConfig::largest(hop_width));
    let features = plane.features.without(Feature::CutThrough).with(Feature::Shaping);
    Capabilities { port_rate_max: PORT_RATE_MAX, features, ..plane }
}

/// Returns the capabilities of a data plane at this hook that leaves the frames that it does not
/// handle to the software plane `software`. Frames that the process never sees have no traffic
/// classes and get no congestion notification. Only the software plane supports routes by source.
/// At tc, HTB enforces link rates. XDP has no queues, and a frame must fit in one page.
pub(crate) fn in_kernel(hook: Hook, software: Capabilities) -> Capabilities {
    let by_source = FeatureSet::EMPTY.with(Feature::RoutesBySource);
    let (name, features, frame_bytes_max) = match hook {
        Hook::Tc => ("tc", by_source.with(Feature::Shaping), software.frame_bytes_max),
        Hook::Xdp => ("xdp", by_source, XDP_MTU_MAX - fabric_mtu(0) + ETHERNET_BYTES),
    };
    Capabilities {
        name,
        features,
        frame_bytes_max: frame_bytes_max.min(software.frame_bytes_max),
        queues_per_port: 1,
        lossless_classes: 0,
        ..software
    }
}

/// Returns the capabilities of the software plane `software` if a pipeline does its lookups.
pub(crate) fn on_pipeline(hop_width: HopWidth, software: Capabilities) -> Capabilities {
    let program = program::capabilities(&PlaneConfig::largest(hop_width));
    Capabilities { name: program.name, ports: program.ports, ..software }
}

/// Returns the capabilities of the device in gates. The run loop shapes its ports, as those of the
/// software plane.
pub(crate) fn in_gates(hop_width: HopWidth) -> Capabilities {
    let device = axon_rtl::capabilities(&PlaneConfig::largest(hop_width));
    Capabilities { features: device.features.with(Feature::Shaping), ..device }
}

/// Checks that the software plane supports everything that a fabric needs from its switches.
///
/// # Errors
/// The error lists all missing capabilities.
pub fn check(fabric: &Fabric) -> Result<(), Lacking> {
    needs::check(fabric, Runtime::Ports, &capabilities(fabric.hop_width), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_has_no_queues_of_classes_and_holds_rates_at_tc_only() {
        let in_kernel = |hook| in_kernel(hook, capabilities(HopWidth::Eight));
        let (tc, xdp) = (in_kernel(Hook::Tc), in_kernel(Hook::Xdp));
        assert!(tc.features.iter().eq([Feature::Shaping, Feature::RoutesBySource]));
        let by_source = FeatureSet::EMPTY.with(Feature::RoutesBySource);
        assert_eq!((xdp.features, xdp.name), (by_source, "xdp"));
        assert_eq!((tc.queues_per_port, tc.lossless_classes, tc.name), (1, 0, "tc"));
        // A host's MTU of 2,862 is the largest with links of 3,506.
        assert_eq!((tc.frame_bytes_max > 9000, xdp.frame_bytes_max), (true, 2876));
    }

    #[test]
    fn what_the_lab_can_run_is_not_refused_and_what_it_cannot_do_is_not_claimed() {
        let text = "name: a\ntopology: {ring: {switches: 3}}\nmtu: 9000\ndevice: axon-netfpga\n\
                    links: {on_full: nack}\nself_congestion_pause: true";
        let fabric = axon_fabric::parse("a.yaml".as_ref(), text).unwrap();
        assert_eq!(check(&fabric), Ok(()), "no port acts on `device`");
        let has = capabilities(HopWidth::Eight);
        let cut_through = needs::needs(&fabric, Runtime::Simulator);
        assert_eq!(has.missing(&cut_through), ["cut-through (asked for by `device`)"]);
    }

    #[test]
    fn a_link_faster_than_any_run_loop_is_refused() {
        let with = |rate: &str| {
            let text = format!("name: a\ntopology: {{ring: {{switches: 3}}}}\nlinks: {rate}\n");
            check(&axon_fabric::parse("a.yaml".as_ref(), &text).unwrap())
        };
        assert_eq!(with("{rate: 100Gbps}"), Ok(()));
        let refused = with("{rate: 400Gbps}").unwrap_err();
        let says = "the data plane `software` lacks links of 400 Gb/s (asked for by `links.rate`; \
                    it has 100 Gb/s)";
        assert_eq!(refused.to_string(), says);
    }
}
