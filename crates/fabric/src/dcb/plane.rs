//! DCB configuration of a switch's data plane.

use super::headroom::{cable_ends, configured};
use super::{CableEnd, Dcb, FlowControl, congestion};
use crate::model::Fabric;
use axon_plane::dcb::DcbConfig;
use axon_plane::layers::Layers;
use axon_plane::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits};
use axon_plane::targeted::{Choice, Targeting, Watermarks};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};
use axon_wire::{Bytes, MacAddr, Rate};

/// Returns the DCB configuration of the data plane of a switch, by index.
pub(crate) fn config(fabric: &Fabric, dcb: &Dcb, switch: usize, mac: MacAddr) -> DcbConfig {
    let rate =
        |end: Option<CableEnd<'_>>| end.map_or(fabric.controller.wire.rate, |end| end.wire.rate);
    let rates: Vec<Rate> = cable_ends(fabric, switch).into_iter().map(rate).collect();
    let groups = configured(fabric, dcb, switch).into_iter().map(|bytes| groups(dcb, bytes));
    let overridden = dcb.dcbx.as_ref().and_then(|dcbx| dcbx.advertised(switch).pfc);
    let pfc = overridden.unwrap_or(dcb.lossless);
    DcbConfig {
        memory: MemoryConfig {
            lossless: dcb.lossless,
            lossless_pool: dcb.buffers.lossless_pool.0,
            lossy_pool: dcb.buffers.lossy_pool.0,
            groups: groups.collect(),
            queues: [QueueLimits { reserved: Bytes(0), share: dcb.buffers.queue_share.0 };
                PRIORITIES],
        },
        prio_tc: dcb.prio_tc,
        schedule: dcb.schedule.clone(),
        layers: Layers::of(dcb.layers.iter().map(Vec::as_slice)),
        pfc: if dcb.flow_control == FlowControl::Pfc { pfc } else { PrioritySet::EMPTY },
        pause: dcb.flow_control == FlowControl::Pause,
        pfc_quanta: dcb.quanta,
        pfc_reserved: dcb.pfc_reserved,
        watermarks: dcb.watermarks.map(|watermarks| seeded(watermarks, fabric.seed, switch)),
        watchdog: dcb.watchdog,
        cn: dcb.cn.as_ref().map(|cn| congestion::points(fabric, cn, switch, rates.len() as u16)),
        ecn: congestion::markers(fabric, dcb, &rates),
        ..DcbConfig::lossy(rates, mac)
    }
}

/// Seeds the random choice of watermarks for one switch.
fn seeded(mut watermarks: Watermarks, fabric_seed: u64, switch: usize) -> Watermarks {
    if let Some(Targeting { choice: Choice::Sampled { seed, .. }, .. }) = &mut watermarks.targeting
    {
        *seed = fabric_seed << 16 ^ switch as u64;
    }
    watermarks
}

/// Returns the memory limits of one port by priority.
fn groups(dcb: &Dcb, headroom: Bytes) -> [PriorityGroupLimits; PRIORITIES] {
    Priority::ALL.map(|priority| {
        let lossless = dcb.lossless.contains(priority);
        let buffers = &dcb.buffers;
        PriorityGroupLimits {
            reserved: buffers.reserved.0,
            share: if lossless { buffers.lossless_share.0 } else { buffers.lossy_share.0 },
            headroom: if lossless { headroom } else { Bytes(0) },
            xon_offset: if lossless { buffers.xon_offset() } else { Bytes(0) },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{controller_config, switch_config, switch_mac};
    use axon_plane::shared_buffer::Share;
    use axon_wire::PortNo;
    use axon_wire::mac_control::Reserved;

    const TEXT: &str = "name: a\ntopology: {ring: {switches: 3, hosts_per_switch: 1}}\n\
        links: {rate: 10Gbps, latency: 500ns}\noverrides: [{between: [s1, s2], latency: 5us}]\n\
        dcb:\n  classes:\n  - {priorities: [0, 1, 2, 5, 6], ets: 40}\n  \
        - {priorities: [3, 4], ets: 60, lossless: true}\n  - {priorities: [7]}\n";

    #[test]
    fn what_the_file_says_reaches_the_planes() {
        let fabric = crate::parse("a.yaml".as_ref(), TEXT).unwrap();
        let plane = switch_config(&fabric, 0, 1, 7).plane;
        let dcb = plane.dcb.unwrap();
        let [three, zero] = [3, 0].map(|value| Priority::new(value).unwrap());
        assert_eq!(dcb.pfc.iter().map(Priority::value).collect::<Vec<_>>(), [3, 4]);
        assert_eq!((dcb.prio_tc[7].value(), dcb.prio_tc[4].value()), (2, 1));
        assert_eq!((dcb.mac, dcb.pause), (switch_mac(0), false));
        assert_eq!(plane.control_priority.value(), 7);
        assert_eq!(plane.frame_bytes_max, 1518);
        let host = fabric.hosts[0].port.index();
        let group = dcb.memory.groups[host][three.index()];
        assert_eq!(group.share, Share::Dynamic { shift: -1 });
        assert_eq!(dcb.memory.groups[host][zero.index()].headroom, Bytes(0));
        let controller = controller_config(&fabric, 1, 7).plane;
        assert_eq!((controller.dcb, controller.control_priority.value()), (None, 7));
    }

    #[test]
    fn a_pause_is_honoured_later_than_pfc_and_reserved_bits_are_refused_if_so_said() {
        let pause = "name: a\ntopology: {line: {switches: 1}}\nlinks: {rate: 10Gbps}\ndcb:\n  \
                     flow_control: pause\n  pfc_reserved: refused\n  classes:\n  \
                     - {priorities: [0, 1, 2, 3, 4, 5, 6, 7], lossless: true}\n";
        let plane = |text: &str| {
            let fabric = crate::parse("a.yaml".as_ref(), text).unwrap();
            let port = fabric.hosts[0].port.index();
            let dcb = switch_config(&fabric, 0, 1, 7).plane.dcb.unwrap();
            (dcb.memory.groups[port][0].headroom.0, dcb.pfc_reserved)
        };
        let (said, reserved) = plane(&format!("{pause}  buffers: {{reaction: 614.4ns}}\n"));
        assert_eq!(reserved, Reserved::Refused);
        // 60 quanta of 64 bytes instead of 768 bytes, of which the memory stores 1518 in 1542.
        let more = plane(pause).0 - said;
        assert!((3_072 * 1518 / 1542..=3_072).contains(&more), "{more}");
    }

    #[test]
    fn watermarks_and_the_watchdog_reach_the_planes_with_a_seed_each() {
        let more = "  watermarks: {low: 20kB, target: 40kB, high: 80kB, choose: sampled}\n  \
                    watchdog: {detection: 10ms}\n";
        let text = TEXT.to_owned() + more;
        let fabric = crate::parse("a.yaml".as_ref(), &text).unwrap();
        let [one, two] = [0, 1].map(|switch| switch_config(&fabric, switch, 1, 7));
        let [one, two] = [one, two].map(|config| config.plane.dcb.unwrap());
        let watchdog = one.watchdog.unwrap();
        assert_eq!((watchdog.detection.as_millis(), watchdog.restoration.as_millis()), (10, 200));
        let watermarks = one.watermarks.unwrap();
        assert_eq!((watermarks.low, watermarks.high), (Some(Bytes(20_000)), Bytes(80_000)));
        let target = watermarks.targeting.unwrap();
        assert_eq!(target.target, Bytes(40_000));
        assert_ne!(target.choice, two.watermarks.unwrap().targeting.unwrap().choice);
    }

    #[test]
    fn headroom_that_is_not_said_is_what_each_port_needs() {
        let fabric = crate::parse("a.yaml".as_ref(), TEXT).unwrap();
        let plane = switch_config(&fabric, 0, 1, 7).plane;
        let at = |port: PortNo| plane.dcb.as_ref().unwrap().memory.groups[port.index()][3].headroom;
        // 1500 + 18: two such frames with 24 bytes around them, a PFC frame with 24 around it,
        // 614.4 ns and twice 500 ns at 10 Gb/s; of these the memory stores 1518 in 1542; and a
        // frame before them.
        let kept = |wire: u64, frame: u64| wire * frame / (frame + 24) + frame;
        let host = kept(2 * 1542 + 84 + 768 + 1250, 1518);
        assert_eq!(at(fabric.hosts[0].port), Bytes(host));
        let link = fabric.links.iter().find(|link| link.wire.latency.as_nanos() == 5000).unwrap();
        let port = if link.a.switch == 0 { link.a.port } else { link.b.port };
        let between = kept(2 * (1542 + 128) + 84 + 768 + 12_500, 1518 + 128);
        assert_eq!(at(port), Bytes(between));
        let fixed = format!("{TEXT}  buffers: {{headroom: 40kB}}\n");
        let fabric = crate::parse("a.yaml".as_ref(), &fixed).unwrap();
        let plane = switch_config(&fabric, 0, 1, 7).plane;
        let groups = plane.dcb.unwrap().memory.groups;
        assert!(groups.iter().all(|port| port[4].headroom == Bytes(40_000)));
    }
}
