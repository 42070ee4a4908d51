//! Queues that block unmodified programs at their own interface.
//!
//! Data that a program has sent is queued in the kernel in front of the interface, charged to its
//! socket. A datagram socket with a full buffer blocks the program, and TCP stops when about two
//! milliseconds' worth of data is queued. Nothing is lost as long as blocked data stays in that
//! queue:
//!
//! ```text
//!                        rules
//!   programs -> HTB 1: -+-> 1:10 -> TBF, priority 0 -+
//!              (the     |                            +-> the interface -> the agent
//!           link's rate)+-> 1:13 -> TBF, priority 3 -+
//! ```
//!
//! HTB limits the interface to the rate of its link and gives the priorities equal shares. The TBF
//! behind each priority is its shaper. It is either faster than any link or so slow that a frame
//! passes in 25 minutes. The shaper must be a TBF, because HTB does not re-evaluate a slowed class
//! until the slow rate allows a frame, while TBF starts with new tokens at each configuration.

use crate::pacer::WIRE_OVERHEAD_BYTES;
use axon_switch::agent::Rules;
use axon_switch::agent::rules::transports;
use axon_wire::constants::ethertype::{IPV4, IPV6};
use axon_wire::dcbx::ieee::{Application, Selector};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::priority::{PRIORITIES, Priority};
use axon_wire::vlan::TAG_BYTES;
use axon_wire::{Rate, Span};
use std::fmt::Write;

/// Capacity of one queue, in bytes: more than the sockets of a host can queue. Nothing is allocated
/// for it.
pub(super) const LIMIT_BYTES: u32 = 1 << 26;
/// Rate of a priority that is not paused, in bytes per second (34 Gb/s).
pub(super) const OPEN: u32 = u32::MAX;
/// Preference of the default rule, which the kernel tries after all others.
const LAST: u16 = u16::MAX;
/// Burst size of the interface, as time on the wire.
const BURST: Span = Span::from_millis(1);
/// Number of frames that the ring between the queues and the agent can hold. It is enough for
/// minimum-size frames at 100 Mb/s while the agent does not run for 25 ms.
const RING_FRAMES: u32 = 4096;

/// Settings for the queues of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostQueues {
    /// Link rate of the host.
    pub rate: Rate,
    /// Rules that map frames to priorities. The agent uses the same rules.
    pub rules: Rules,
    /// MTU of the interface, in bytes.
    pub mtu: usize,
}

/// Returns the number of the class and of the qdisc of a priority. They range from 1:10 to 1:17 and
/// from 10: to 17:, in `tc` notation.
pub(super) fn number(priority: Priority) -> u32 {
    0x10 + u32::from(priority.value())
}

impl HostQueues {
    /// Returns the length of the longest frame, in bytes. A resumed shaper must let it pass.
    pub(super) fn burst_bytes(&self) -> usize {
        self.mtu + ETHERNET_BYTES + TAG_BYTES
    }

    /// Returns the arguments for `ip` that set up the interface.
    pub(super) fn link(&self, device: &str) -> String {
        format!("link set dev {device} mtu {} txqueuelen {RING_FRAMES} up", self.mtu)
    }

    /// Returns lines for `tc -batch` that create the queues on an interface without any. There is
    /// one queue for each priority, because rules may change while frames are queued.
    pub(super) fn batch(&self, device: &str) -> String {
        let rate = self.rate.bits_per_second();
        let part = (rate / PRIORITIES as u64).max(8);
        let burst = self.rate.bytes_in(BURST).0.max(2 * self.burst_bytes() as u64);
        let bucket = format!("burst {burst} cburst {burst} overhead {WIRE_OVERHEAD_BYTES}");
        let quantum = self.burst_bytes();
        let mut text = format!(
            "qdisc add dev {device} root handle 1: htb default {:x}\n\
             class add dev {device} parent 1: classid 1:1 htb rate {rate}bit {bucket} \
             quantum {quantum}\n",
            number(Priority::ZERO)
        );
        for priority in Priority::ALL {
            let number = number(priority);
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "class add dev {device} parent 1:1 classid 1:{number:x} htb rate {part}bit \
                 ceil {rate}bit {bucket} quantum {quantum}\n\
                 qdisc add dev {device} parent 1:{number:x} handle {number:x}: tbf rate {}bps \
                 burst {quantum} limit {LIMIT_BYTES}",
                OPEN
            );
        }
        text + &self.filters(device)
    }

    /// Returns lines for `tc -batch` that create the rules on an interface that has queues only.
    pub(super) fn filters(&self, device: &str) -> String {
        let mut text = String::new();
        for (place, rule) in self.rules.ordered().iter().enumerate() {
            for (ethertype, keys) in keys(rule) {
                let _ = writeln!(
                    text,
                    "filter add dev {device} parent 1: protocol {ethertype:#06x} prio {} \
                     u32 {keys} flowid 1:{:x}",
                    // All filters of one preference must have the same EtherType.
                    3 * place + 1 + usize::from(ethertype == IPV6),
                    number(rule.priority)
                );
            }
        }
        let default = number(self.rules.default_priority());
        let _ = writeln!(
            text,
            "filter add dev {device} parent 1: protocol all prio {LAST} u32 match u32 0 0 at 0 \
             flowid 1:{default:x}"
        );
        text
    }
}

/// Returns the u32 keys of a rule: EtherTypes, and packet words with their masks. They express as
/// masks the matching that the agent itself does ([`axon_switch::agent::rules`]).
fn keys(rule: &Application) -> Vec<(u16, String)> {
    let number = u32::from(rule.protocol);
    let word = |value: u32, mask: u32, at: usize| format!("match u32 {value:#x} {mask:#x} at {at}");
    match rule.selector {
        Selector::ETHERTYPE => vec![(rule.protocol, word(0, 0, 0))],
        Selector::DSCP => vec![
            (IPV4, word(number << 18, 0x00fc_0000, 0)),
            (IPV6, word(number << 22, 0x0fc0_0000, 0)),
        ],
        selector => {
            let mut filters = Vec::new();
            for &protocol in transports(selector) {
                let protocol = u32::from(protocol);
                for (value, mask) in [(number << 16, 0xffff_0000), (number, 0xffff)] {
                    let ports = |at| word(value, mask, at);
                    // The IPv4 header has no options, and the packet is not a fragment.
                    let header = word(0x4500_0000, 0xff00_0000, 0);
                    let header = format!("{header} {}", word(0, 0x3fff, 4));
                    let transport = word(protocol << 16, 0x00ff_0000, 8);
                    filters.push((IPV4, format!("{header} {transport} {}", ports(20))));
                    let transport = word(protocol << 8, 0xff00, 4);
                    filters.push((IPV6, format!("{transport} {}", ports(40))));
                }
            }
            filters
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_switch::agent::rules::parse;

    #[test]
    fn filters_are_asked_in_the_order_of_the_rules() {
        let [own, received] = ["dscp:46=5", "udp:4791=3"].map(|text| parse(text).unwrap());
        let rules = Rules::new(&[own]).and(&[received]);
        let text = HostQueues { rate: Rate::mbps(100), rules, mtu: 1500 }.filters("h1");
        let ranks = |class: &str| -> Vec<u16> {
            let lines = text.lines().filter(|line| line.ends_with(class));
            let rank = |line: &str| line.split(" prio ").nth(1)?.split(' ').next()?.parse().ok();
            lines.map(|line| rank(line).unwrap()).collect()
        };
        let (own, received) = (ranks("flowid 1:15"), ranks("flowid 1:13"));
        assert_eq!((own.len(), received.len()), (2, 8), "{text}");
        assert!(own.iter().max() < received.iter().min(), "{text}");
    }

    #[test]
    fn every_priority_has_a_class_and_every_rule_its_filters() {
        let table = ["udp:4791=3", "dscp:46=5", "default=1"].map(|text| parse(text).unwrap());
        let rules = Rules::new(&table);
        let queues = HostQueues { rate: Rate::mbps(100), rules, mtu: 1500 };
        let text = queues.batch("h1");
        let count = |part: &str| text.matches(part).count();
        assert_eq!((count("class add"), count(" tbf "), count("filter add")), (9, 8, 11));
        assert!(text.ends_with("match u32 0 0 at 0 flowid 1:11\n"), "{text}");
        assert!(text.contains("ceil 100000000bit burst 12500 cburst 12500 overhead 24"), "{text}");
        assert_eq!(count("match u32 0x12b70000 0xffff0000 at 20"), 2);
        assert_eq!(count("match u32 0x110000 0xff0000 at 8"), 2, "UDP");
        assert_eq!(count("match u32 0xb80000 0xfc0000 at 0"), 1, "the DSCP");
        assert!(text.lines().filter(|line| line.contains("at 40")).all(|l| l.contains("0x86dd")));
    }
}
