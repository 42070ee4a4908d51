//! Egress queues at tc. HTB enforces the link rate and divides it equally among the ingress ports.
//!
//! ```text
//! 1:        HTB
//! 1:fff0    the link, at its rate
//!   1:1     what came in by port 0, and so on: an equal share, and what others leave
//!   1:fffe  control packets, of the node and in transit: before all others
//!   1:ffff  hosts' frames that the node forwards
//! ```
//!
//! The tc programs store the class of a packet in its priority. HTB does not distinguish flows, so
//! each class is a tail-drop queue (bfifo).

use axon_wire::{Rate, Span};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Class of the whole link.
const LINK: u16 = 0xfff0;
/// Class of packets that the node sends.
const CONTROL: u16 = 0xfffe;
/// Class of frames from hosts that the node forwards.
const DATA: u16 = 0xffff;

/// Quantum of a class, in bytes. It is more than one super-packet, so that shares do not depend on
/// packet sizes.
const QUANTUM_BYTES: u64 = 70_000;
/// Minimum capacity of a class, in bytes: eight super-packets.
const QUEUE_BYTES_MIN: u64 = 8 * 65_536;
/// Capacity of a class, as time on the wire.
const QUEUE: Span = Span::from_millis(4);
/// Burst of the link, as time on the wire. It is at least one super-packet.
const BURST: Span = Span::from_millis(1);
const BURST_BYTES_MIN: u64 = 65_536 + 256;
/// Overhead of a frame on the wire, in bytes: FCS, preamble and gap.
const OVERHEAD: u64 = crate::pacer::WIRE_OVERHEAD_BYTES;

/// Rate from which on a veth has no queues. No measured veth reaches half of this rate, so nothing
/// would queue, and HTB costs each packet about 250 ns. A NIC has its queues at any rate.
const UNSHAPED: Rate = crate::dataplane::PORT_RATE_MAX;

/// Returns whether queues limit a veth to this rate, which they do below 100 Gb/s.
pub const fn is_shaped(rate: Rate) -> bool {
    rate.bits_per_second() < UNSHAPED.bits_per_second()
}

/// `SO_PRIORITY` of control packets that the node sends.
pub(crate) const CONTROL_PRIORITY: i32 = 1 << 16 | CONTROL as i32;
/// `SO_PRIORITY` of frames from hosts that the node forwards.
pub(crate) const DATA_PRIORITY: i32 = 1 << 16 | DATA as i32;

/// Queues of one egress device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Link rate.
    pub rate: Rate,
    /// Number of ingress ports of the switch.
    pub ports: u16,
}

impl Shares {
    /// Returns commands for `tc -batch` that create these queues at `device`. If `is_there`, the
    /// device already [has queues](with_queues), whose rates change and whose packets stay. If the
    /// rate is [not shaped](is_shaped), a veth has no queues, and existing ones are removed.
    pub(crate) fn batch(&self, device: &str, is_there: bool, is_veth: bool) -> String {
        if is_veth && !is_shaped(self.rate) {
            let remove = format!("qdisc del dev {device} root\n");
            return if is_there { remove } else { String::new() };
        }
        let bits = self.rate.bits_per_second();
        let burst = self.rate.bytes_in(BURST).0.max(BURST_BYTES_MIN);
        let queue = self.rate.bytes_in(QUEUE).0.max(QUEUE_BYTES_MIN);
        // The guaranteed rates of the classes add up to at most the rate of the link.
        let share = (bits / (u64::from(self.ports) + 2)).max(8);
        let mut text = String::new();
        let mut line = |class: u16, parent: String, rate: u64, priority: u8| {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "class replace dev {device} parent {parent} classid 1:{class:x} htb rate {rate}bit \
                 ceil {bits}bit burst {burst} cburst {burst} quantum {QUANTUM_BYTES} \
                 overhead {OVERHEAD} prio {priority}"
            );
            if class != LINK {
                let _ = writeln!(
                    text,
                    "qdisc replace dev {device} parent 1:{class:x} bfifo limit {queue}"
                );
            }
        };
        line(LINK, "1:".into(), bits, 0);
        line(CONTROL, format!("1:{LINK:x}"), share, 0);
        line(DATA, format!("1:{LINK:x}"), share, 1);
        for port in 0..self.ports {
            line(port + 1, format!("1:{LINK:x}"), share, 1);
        }
        if is_there {
            return text;
        }
        let root = format!("qdisc replace dev {device} root handle 1: htb default {CONTROL:x}\n");
        root + &text
    }
}

/// Returns the devices that have such queues, from the output of `tc -j qdisc show`.
pub(crate) fn with_queues(shown: &[u8]) -> BTreeSet<String> {
    let shown: Value = serde_json::from_slice(shown).unwrap_or_default();
    let is_ours = |qdisc: &&Value| qdisc["kind"] == "htb" && qdisc["handle"] == "1:";
    let ours = shown.as_array().into_iter().flatten().filter(is_ours);
    ours.filter_map(|qdisc| qdisc["dev"].as_str().map(str::to_owned)).collect()
}

/// Returns the ends of veth pairs, from the output of `ip -j link show type veth`.
pub(crate) fn veths(shown: &[u8]) -> BTreeSet<String> {
    let shown: Value = serde_json::from_slice(shown).unwrap_or_default();
    let all = shown.as_array().into_iter().flatten();
    all.filter_map(|link| link["ifname"].as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ingress_port_and_the_node_have_a_class_of_their_own() {
        let shares = Shares { rate: Rate::mbps(200), ports: 3 };
        let text = shares.batch("s1-p0", false, true);
        let count = |part: &str| text.matches(part).count();
        assert_eq!((count("class replace"), count("bfifo limit 524288")), (6, 5));
        assert!(text.starts_with("qdisc replace dev s1-p0 root handle 1: htb default fffe\n"));
        for class in ["1:1 ", "1:2 ", "1:3 ", "1:fffe ", "1:ffff "] {
            assert_eq!(count(&format!("parent 1:fff0 classid {class}htb rate 40000000bit")), 1);
        }
        assert_eq!(count("prio 0"), 2, "the link, and what the node says itself: {text}");
        assert!(!shares.batch("s1-p0", true, true).contains("root"));
    }

    #[test]
    fn a_veth_that_no_cpu_fills_has_no_queues() {
        let fast = Shares { rate: Rate::gbps(100), ports: 3 };
        assert_eq!(fast.batch("a", false, true), "");
        assert_eq!(fast.batch("a", true, true), "qdisc del dev a root\n");
        assert!(fast.batch("a", false, false).contains("htb rate 100000000000bit"), "a NIC");
        assert!(is_shaped(Rate::gbps(99)));
        let shown = br#"[{"ifname":"s1-p0","link_netnsid":1},{},{"ifname":"s1-p1"}]"#;
        assert_eq!(veths(shown), ["s1-p0".to_owned(), "s1-p1".to_owned()].into());
    }

    #[test]
    fn a_slow_link_with_many_ports_has_classes_that_htb_takes() {
        let text = Shares { rate: Rate::from_bits_per_second(1_000).unwrap(), ports: 255 };
        assert!(text.batch("a", false, true).contains("rate 8bit"));
    }

    #[test]
    fn devices_whose_queues_stand_are_known_by_them() {
        let shown = br#"[{"kind":"htb","handle":"1:","dev":"s1-p0","root":true},
            {"kind":"bfifo","handle":"8001:","dev":"s1-p1"},
            {"kind":"htb","handle":"2:","dev":"s1-p2"}]"#;
        assert_eq!(with_queues(shown), ["s1-p0".to_owned()].into());
        assert_eq!(with_queues(b"no JSON"), BTreeSet::new());
    }
}
