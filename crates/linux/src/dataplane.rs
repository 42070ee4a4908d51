//! What the software plane can do on real ports.

use axon_fabric::model::Fabric;
use axon_fabric::needs::{self, Lacking, Runtime};
use axon_node::{Capabilities, Feature};
use axon_plane::{PlaneConfig, axon};
use axon_wire::HopWidth;

/// The software plane on packet sockets and TAP devices, with hops of this width. The kernel hands
/// frames over when they are whole, so none leaves before its last byte has come, and timestamps
/// are those of the run loop.
pub fn capabilities(hop_width: HopWidth) -> Capabilities {
    let features = axon::FEATURES.without(Feature::CutThrough).without(Feature::ProbeTimestamps);
    PlaneConfig::largest(hop_width).capabilities("software", features)
}

/// Refuses a fabric that needs more of its switches.
///
/// # Errors
/// All that the data plane lacks.
pub fn check(fabric: &Fabric) -> Result<(), Lacking> {
    needs::check(fabric, Runtime::Ports, &capabilities(fabric.hop_width), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
