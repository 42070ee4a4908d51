//! Rules that give a host's frames their priorities: application priorities (IEEE 802.1Q clause
//! D.2.11).
//!
//! A tagged frame has the priority of its tag. Otherwise rules by TCP, UDP, SCTP or DCCP port are
//! tried first, then rules by DSCP, then rules by EtherType. The first matching rule of a kind
//! counts. A frame that matches no rule has the default priority. A port matches at either end of a
//! connection, so that replies have the priority of requests. Rules of a neighbour are tried after
//! all own rules, in the same order.
//!
//! Only the first fragment of an IP packet holds its ports, so fragments match no rule by port; nor
//! do packets with IP options or IPv6 extension headers. All of them have a DSCP.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use axon_wire::constants::ethertype::{IPV4, IPV6};
use axon_wire::dcbx::ieee::{Application, Selector};
use axon_wire::priority::Priority;
use axon_wire::vlan::{self, VlanTag};
use core::fmt;

/// Transports with ports, by IP protocol number: TCP and SCTP, then UDP and DCCP.
pub(crate) const TRANSPORTS: [u8; 4] = [6, 132, 17, 33];

/// Kinds of rules in text form, with their selectors.
const KINDS: [(&str, Selector); 5] = [
    ("tcp", Selector::STREAM_PORT),
    ("udp", Selector::DATAGRAM_PORT),
    ("port", Selector::PORT),
    ("dscp", Selector::DSCP),
    ("ethertype", Selector::ETHERTYPE),
];

/// Error: a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no rule: expected KIND:NUMBER=PRIORITY with tcp, udp, port, dscp (0 to 63) or \
     ethertype (0x600 and more), or default=PRIORITY, such as udp:4791=3"
)]
pub struct NoRule(pub String);

/// Parses a rule: `udp:4791=3`, `tcp:3260=4`, `port:2049=4`, `dscp:46=5`, `ethertype:0x8915=3`,
/// `default=1`.
///
/// # Errors
/// The text is not a rule.
pub fn parse(text: &str) -> Result<Application, NoRule> {
    read(text).ok_or_else(|| NoRule(text.to_string()))
}

fn read(text: &str) -> Option<Application> {
    let (what, priority) = text.split_once('=')?;
    let priority = Priority::new(priority.parse().ok()?)?;
    if what == "default" {
        return Some(Application { priority, selector: Selector::ETHERTYPE, protocol: 0 });
    }
    let (kind, number) = what.split_once(':')?;
    let (_, selector) = *KINDS.iter().find(|(name, _)| *name == kind)?;
    let protocol = match number.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    let rule = Application { priority, selector, protocol };
    is_possible(&rule).then_some(rule)
}

/// Returns whether a rule is of a known kind, with a number that frames can have.
fn is_possible(rule: &Application) -> bool {
    match rule.selector {
        Selector::DSCP => rule.protocol < 64,
        Selector::ETHERTYPE => rule.protocol >= 0x600,
        selector => rule.protocol > 0 && KINDS.iter().any(|(_, kind)| *kind == selector),
    }
}

/// Returns the IP protocols whose ports a selector matches; none if it matches no ports.
pub fn transports(selector: Selector) -> &'static [u8] {
    match selector {
        Selector::STREAM_PORT => &TRANSPORTS[..2],
        Selector::DATAGRAM_PORT => &TRANSPORTS[2..],
        Selector::PORT => &TRANSPORTS,
        _ => &[],
    }
}

/// Rules in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    ordered: Vec<Application>,
    default: Option<Priority>,
}

impl Rules {
    /// Creates the rules of an application priority table, which may be a neighbour's; entries that
    /// no frame can match are left out. Without an entry for it, the default is priority 0.
    pub fn new(table: &[Application]) -> Rules {
        let is_default =
            |rule: &&Application| rule.selector == Selector::ETHERTYPE && rule.protocol == 0;
        let rank = |rule: &Application| match rule.selector {
            Selector::STREAM_PORT | Selector::DATAGRAM_PORT | Selector::PORT => 0,
            Selector::DSCP => 1,
            _ => 2,
        };
        let mut ordered: Vec<Application> = table.iter().copied().filter(is_possible).collect();
        ordered.sort_by_key(rank);
        let default = table.iter().find(is_default).map(|rule| rule.priority);
        Rules { ordered, default }
    }

    /// Returns the application priority table of these rules.
    pub fn table(&self) -> Vec<Application> {
        let selector = Selector::ETHERTYPE;
        let default = self.default.map(|priority| Application { priority, selector, protocol: 0 });
        self.ordered.iter().copied().chain(default).collect()
    }

    /// Returns these rules followed by those of another table. The other default applies only if
    /// these rules have none.
    pub fn and(&self, table: &[Application]) -> Rules {
        let further = Rules::new(table);
        let ordered = [&self.ordered[..], &further.ordered].concat();
        Rules { ordered, default: self.default.or(further.default) }
    }

    /// Returns all rules but the default, in the order in which they are tried.
    pub fn ordered(&self) -> &[Application] {
        &self.ordered
    }

    /// Returns the priority of frames that match no rule.
    pub fn default_priority(&self) -> Priority {
        self.default.unwrap_or(Priority::ZERO)
    }

    /// Returns the priority of a host's frame.
    pub(crate) fn priority_of(&self, frame: &[u8]) -> Priority {
        if let Some(tag) = VlanTag::of_frame(frame) {
            return tag.pcp;
        }
        let facts = Facts::of(frame);
        let rule = self.ordered.iter().find(|rule| facts.fit(rule));
        rule.map_or(self.default_priority(), |rule| rule.priority)
    }
}

impl fmt::Display for Rules {
    /// Writes the rules in text form, separated by spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.ordered {
            let kind = KINDS.iter().find(|(_, kind)| *kind == rule.selector);
            let (name, _) = kind.ok_or(fmt::Error)?;
            write!(f, "{name}:{}={} ", rule.protocol, rule.priority)?;
        }
        write!(f, "default={}", self.default_priority())
    }
}

/// The fields of a frame that rules match.
#[derive(Default)]
struct Facts {
    ethertype: u16,
    dscp: Option<u8>,
    /// Protocol number, and the ports of both ends.
    transport: Option<(u8, [u16; 2])>,
}

impl Facts {
    fn of(frame: &[u8]) -> Facts {
        let Some((ethertype, at)) = vlan::ethertype_of(frame) else { return Facts::default() };
        let ip = &frame[at + 2..];
        let (dscp, transport) = match ethertype {
            IPV4 => (ip.get(1).map(|tos| tos >> 2), ipv4_transport(ip)),
            IPV6 => (ip.first_chunk().map(|&[a, b]| (a << 2 | b >> 6) & 63), ipv6_transport(ip)),
            _ => (None, None),
        };
        Facts { ethertype, dscp, transport }
    }

    fn fit(&self, rule: &Application) -> bool {
        match rule.selector {
            Selector::ETHERTYPE => self.ethertype == rule.protocol,
            Selector::DSCP => self.dscp.is_some_and(|dscp| u16::from(dscp) == rule.protocol),
            selector => self.transport.is_some_and(|(protocol, ports)| {
                transports(selector).contains(&protocol) && ports.contains(&rule.protocol)
            }),
        }
    }
}

fn ports(bytes: &[u8]) -> Option<[u16; 2]> {
    let &[a, b, c, d] = bytes.first_chunk()?;
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

/// Returns protocol and ports of an unfragmented IPv4 packet with a header of five words (RFC 791
/// section 3.1).
fn ipv4_transport(ip: &[u8]) -> Option<(u8, [u16; 2])> {
    let header: &[u8; 20] = ip.first_chunk()?;
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    (header[0] == 0x45 && !fragment).then(|| Some((header[9], ports(&ip[20..])?)))?
}

/// Returns protocol and ports of an IPv6 packet without extension headers (RFC 8200 section 3).
fn ipv6_transport(ip: &[u8]) -> Option<(u8, [u16; 2])> {
    let header: &[u8; 40] = ip.first_chunk()?;
    Some((header[6], ports(&ip[40..])?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn rules(table: &[&str]) -> Rules {
        let table: Vec<Application> = table.iter().map(|text| parse(text).unwrap()).collect();
        Rules::new(&table)
    }

    /// Returns an IPv4 packet of `protocol` with a DSCP, a fragment word and two ports.
    fn ipv4(protocol: u8, dscp: u8, fragment: u16, ports: [u16; 2]) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&IPV4.to_be_bytes());
        frame[14..16].copy_from_slice(&[0x45, dscp << 2 | 1]);
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        frame[23] = protocol;
        frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
        frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
        frame
    }

    fn ipv6(protocol: u8, dscp: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&IPV6.to_be_bytes());
        frame[14..16].copy_from_slice(&[0x60 | dscp >> 2, dscp << 6]);
        frame[20] = protocol;
        frame[54..56].copy_from_slice(&ports[0].to_be_bytes());
        frame[56..58].copy_from_slice(&ports[1].to_be_bytes());
        frame
    }

    #[test]
    fn ports_are_tried_before_dscp_and_dscp_before_the_ethertype() {
        let rules = rules(&["ethertype:0x0800=1", "dscp:46=5", "udp:4791=3", "default=2"]);
        let of = |frame: &[u8]| rules.priority_of(frame).value();
        assert_eq!(of(&ipv4(17, 46, 0, [9, 4791])), 3);
        assert_eq!(of(&ipv4(17, 46, 0, [4791, 9])), 3, "an answer");
        assert_eq!(of(&ipv4(6, 46, 0, [9, 4791])), 5, "TCP");
        assert_eq!(of(&ipv4(6, 0, 0, [9, 4791])), 1);
        assert_eq!(of(&ipv6(17, 0, [9, 4791])), 3);
        assert_eq!(of(&ipv6(17, 46, [9, 8])), 5);
        assert_eq!(of(&ipv6(17, 0, [9, 8])), 2, "the default");
        assert_eq!(of(&[0; 13]), 2);
        let written = "udp:4791=3 dscp:46=5 ethertype:2048=1 default=2";
        assert_eq!(alloc::format!("{rules}"), written);
    }

    #[test]
    fn fragments_and_options_match_by_dscp_only() {
        let rules = rules(&["port:4791=3", "dscp:10=4"]);
        let of = |frame: &[u8]| rules.priority_of(frame).value();
        for (fragment, priority) in [(0x4000, 3), (0x2000, 0), (0x0001, 0)] {
            assert_eq!(of(&ipv4(132, 0, fragment, [4791, 1])), priority, "{fragment:#x}");
        }
        let mut options = ipv4(33, 10, 0, [4791, 1]);
        assert_eq!(of(&options), 3);
        options[14] = 0x46;
        assert_eq!(of(&options), 4);
    }

    #[test]
    fn a_tag_of_the_hosts_own_has_the_say() {
        let mut frame = ipv4(17, 0, 0, [1, 4791]);
        frame.splice(12..12, [0x81, 0, 6 << 5, 9]);
        assert_eq!(rules(&["udp:4791=3"]).priority_of(&frame).value(), 6);
    }

    #[test]
    fn rules_of_a_neighbour_are_tried_after_all_own_rules() {
        let theirs = rules(&["ethertype:0x0800=1", "udp:4791=3", "default=2"]).table();
        let both = rules(&["ethertype:0x86dd=6", "dscp:46=5"]).and(&theirs);
        let of = |frame: &[u8]| both.priority_of(frame).value();
        assert_eq!(of(&ipv4(17, 46, 0, [9, 4791])), 5, "its own DSCP before a port that is theirs");
        assert_eq!(of(&ipv6(17, 0, [9, 4791])), 6, "and its own EtherType");
        assert_eq!(of(&ipv4(17, 0, 0, [9, 4791])), 3);
        assert_eq!((of(&ipv4(6, 0, 0, [9, 9])), of(&[0; 60])), (1, 2));
        let written = "dscp:46=5 ethertype:34525=6 udp:4791=3 ethertype:2048=1 default=2";
        assert_eq!(alloc::format!("{both}"), written);
        assert_eq!(rules(&["default=4"]).and(&theirs).default_priority().value(), 4);
    }

    #[test]
    fn a_neighbours_table_is_held_to_what_frames_can_have() {
        let rule =
            |selector, protocol| Application { priority: Priority::ALL[5], selector, protocol };
        let possible = [rule(Selector::DSCP, 63), rule(Selector::ETHERTYPE, 0x600)];
        let theirs = [
            rule(Selector::DSCP, 64),
            rule(Selector::ETHERTYPE, 3),
            rule(Selector::new(7).unwrap(), 9),
        ];
        let rules = Rules::default().and(&[&theirs[..], &possible].concat());
        assert_eq!(rules.ordered(), possible);
        assert_eq!(rules.default_priority(), Priority::ZERO);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in [
            "",
            "udp",
            "udp:4791",
            "udp:4791=8",
            "udp:0=1",
            "udp:70000=1",
            "x:1=1",
            "dscp:64=1",
            "ethertype:0x5ff=1",
            "default",
            "tcp:0xzz=1",
            "udp:-1=1",
            "default=9",
        ] {
            assert_eq!(parse(text), Err(NoRule(text.into())));
        }
        let unknown = Application {
            selector: Selector::new(7).unwrap(),
            protocol: 1,
            priority: Priority::MAX,
        };
        assert_eq!(Rules::new(&[unknown]), Rules::default());
    }
}
