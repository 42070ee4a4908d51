//! Configuration of the NICs of a fabric's hosts.

use axon_fabric::dcb::{self, Defence};
use axon_fabric::model::{Cable, Fabric, FlowControl};
use axon_plane::qcn::RpConfig;
use axon_plane::schedule::{ScheduleConfig, Weights};
use axon_simhost::dcb_nic::{HostCn, HostDcb, HostFlowControl, RingLimits};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::priority::Priority;
use axon_wire::vlan::TAG_BYTES;

/// Returns the DCB configuration of a host, by index; `None` in a fabric where all frames have
/// priority 0 and are in one class. Classes are scheduled as in switches, with constant weights.
pub(crate) fn host_dcb(fabric: &Fabric, host: usize) -> Option<HostDcb> {
    let wire = &fabric.hosts[host].wire;
    let frame_bytes_max = usize::from(fabric.mtu) + ETHERNET_BYTES + TAG_BYTES;
    let plain =
        |flow_control| HostDcb::new(wire.rate, flow_control, wire.latency, frame_bytes_max as u64);
    let Some(dcb) = fabric.dcb.as_deref() else {
        let has_priorities = fabric.traffic.iter().any(|entry| entry.priority != Priority::ZERO);
        return has_priorities.then(|| plain(HostFlowControl::None));
    };
    let plain = plain(match dcb.flow_control {
        _ if !dcb.hosts => HostFlowControl::None,
        FlowControl::Pfc => HostFlowControl::Pfc(dcb.lossless),
        FlowControl::Pause => HostFlowControl::Pause,
        FlowControl::None => HostFlowControl::None,
    });
    let rates = fabric.rates(Cable::Host(host));
    let peer = dcb::headroom(fabric, dcb, dcb::CableEnd { is_host: true, wire, rates });
    Some(HostDcb {
        quanta: dcb.quanta,
        pfc_reserved: dcb.pfc_reserved,
        prio_tc: dcb.prio_tc,
        schedule: ScheduleConfig { weights: Weights::Fixed, ..dcb.schedule.clone() },
        ring: RingLimits { headroom: dcb::needed(&peer), ..plain.ring },
        cn: dcb.cn.as_ref().and_then(|cn| host_cn(fabric, cn, host)),
        ..plain
    })
}

/// Returns the reaction points of a host in the domain, with the standard's variables scaled to the
/// rate of its link.
fn host_cn(fabric: &Fabric, cn: &dcb::Cn, host: usize) -> Option<HostCn> {
    let seed = fabric.seed << 16 ^ host as u64;
    let host = &fabric.hosts[host];
    let cnpvs = cn.reaction_points(&host.name);
    if cnpvs.is_empty() {
        return None;
    }
    let config =
        RpConfig { interpretations: cn.reaction, ..RpConfig::scaled_for_port(host.wire.rate) };
    // A host with defence `auto` advertises; for others the switch is configured.
    let auto = cn.defence.get(&host.name) == Some(&Defence::Auto);
    let dcbx = fabric.dcb.as_ref().and_then(|dcb| dcb.dcbx.as_ref());
    let lldp = dcbx.filter(|_| auto).map(|dcbx| dcbx.lldp);
    Some(HostCn { cnpvs, config, format: cn.point.format, seed, lldp })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::mac_control::Reserved;
    use axon_wire::priority::PrioritySet;
    use std::path::Path;

    #[test]
    fn hosts_in_the_domain_have_reaction_points_and_others_have_none() {
        let text = "name: a\ntopology: {ring: {switches: 3, hosts_per_switch: 1}}\n\
            links: {rate: 1Gbps}\ndcb:\n  classes: [{priorities: [0, 1, 2, 3, 4, 5, 6, 7]}]\n  \
            congestion_notification: {priorities: [3], defence: {h2: edge, h3: interior}}\n";
        let fabric = axon_fabric::parse(Path::new("a.yaml"), text).unwrap();
        let cn = |host| host_dcb(&fabric, host).unwrap().cn;
        let first = cn(0).unwrap();
        assert_eq!(first.cnpvs, PrioritySet::only(Priority::new(3).unwrap()));
        assert_eq!(first.config, RpConfig::scaled_for_port(fabric.hosts[0].wire.rate));
        assert_eq!(cn(1), None);
        assert_ne!(cn(2).unwrap().seed, first.seed);
    }

    #[test]
    fn hosts_read_what_sources_differ_on_as_the_file_says() {
        let read = |flow_control: &str, notification: &str| {
            let text = format!(
                "name: a\ntopology: {{line: {{switches: 1}}}}\ndcb:\n{flow_control}  \
                 classes: [{{priorities: [0, 1, 2, 3, 4, 5, 6, 7]}}]\n  \
                 congestion_notification: {{priorities: [3]{notification}}}\n"
            );
            let fabric = axon_fabric::parse(Path::new("a.yaml"), &text).unwrap();
            let host = host_dcb(&fabric, 0).unwrap();
            let cn = host.cn.unwrap();
            (host.pfc_reserved, cn.format.strict, cn.config.interpretations.reduction_log2)
        };
        assert_eq!(read("", ""), (Reserved::Ignored, false, 3));
        let other = ", cnm: {strict: true}, reaction: {target_falls_to: half}";
        assert_eq!(read("  pfc_reserved: refused\n", other), (Reserved::Refused, true, 1));
    }
}
