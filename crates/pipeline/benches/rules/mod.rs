//! Synthetic rule sets in the style of ClassBench (D. Taylor, J. Turner, INFOCOM 2005): the
//! structure of access lists, firewalls and IP chains, and packets that match their rules.
//!
//! A set draws its addresses from a small tree of nested prefixes, as administrators do, and its
//! ports from the classes that ClassBench counts: any, exact, unprivileged, an arbitrary range.
//! Every rule is expanded into TCAM entries; the set ends with the last rule that fits.

use crate::Random;
use axon_pipeline::expand::{Pattern, combine, range};
use axon_pipeline::{Field, KEY_BYTES, KeyBytes, Udlk};

/// Kind of rule set: the distribution of its rules.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    /// Rules with any source address, in sixteenths.
    any_source: usize,
    /// Rules with any destination address, in sixteenths.
    any_destination: usize,
    /// Shortest length of the other prefixes, in bits.
    length_min: usize,
    /// Rules with any source port, in sixteenths.
    any_source_port: usize,
    /// Rules with any, an exact and unprivileged destination ports, in sixteenths; the rest are
    /// ranges.
    destination_ports: [usize; 3],
}

pub const KINDS: [Kind; 3] = [
    // Long prefixes of servers, exact ports.
    Kind {
        name: "access list",
        any_source: 4,
        any_destination: 1,
        length_min: 20,
        any_source_port: 16,
        destination_ports: [4, 9, 1],
    },
    // Many wildcards, ranges at both ends.
    Kind {
        name: "firewall",
        any_source: 9,
        any_destination: 6,
        length_min: 12,
        any_source_port: 12,
        destination_ports: [5, 6, 3],
    },
    // Mix of both.
    Kind {
        name: "ip chain",
        any_source: 4,
        any_destination: 4,
        length_min: 16,
        any_source_port: 14,
        destination_ports: [7, 6, 2],
    },
];

/// TCAM entry at its index: value and mask, placed as in a key.
pub type Row = (KeyBytes, KeyBytes);

/// Lookup key: source and destination address, source and destination port: 12 bytes, three blocks.
pub fn key() -> Udlk {
    Udlk::new([Field::Bytes { first: 26, last: 37 }])
}

impl Kind {
    /// Returns the entries by index. Of overlapping entries the more specific mostly has the higher
    /// index, which wins.
    pub fn rows(self, count: usize, random: &mut Random) -> Vec<Pattern> {
        let nets: Vec<u32> =
            (0..count.div_ceil(16)).map(|_| random.below(1 << 31) as u32).collect();
        let mut rules: Vec<Vec<Pattern>> = Vec::new();
        let mut rows = 0;
        loop {
            let rule = self.rule(&nets, random);
            rows += rule.len();
            if rows > count {
                break;
            }
            rules.push(rule);
        }
        let bits = |rule: &Vec<Pattern>| -> u32 {
            rule[0].mask.iter().map(|byte| byte.count_ones()).sum()
        };
        rules.sort_by_key(|rule| bits(rule) / 8);
        rules.into_iter().flatten().collect()
    }

    fn rule(self, nets: &[u32], random: &mut Random) -> Vec<Pattern> {
        let source = self.address(self.any_source, nets, random);
        let destination = self.address(self.any_destination, nets, random);
        let from = match random.below(16) < self.any_source_port {
            true => vec![Pattern::any(2)],
            false => ports(random.below(3) + 1, random),
        };
        let mut drawn = random.below(16);
        let class = self.destination_ports.iter().position(|&share| {
            let is_here = drawn < share;
            drawn = drawn.saturating_sub(share);
            is_here
        });
        let to = ports(class.unwrap_or(3), random);
        combine(&[vec![source], vec![destination], from, to], usize::MAX).expect("room")
    }

    fn address(self, any: usize, nets: &[u32], random: &mut Random) -> Pattern {
        if random.below(16) < any {
            return Pattern::any(4);
        }
        // Below one of the nets. Lengths of whole bytes and of hosts are the most common.
        let lengths =
            [self.length_min, 24, 32, 32, self.length_min + random.below(33 - self.length_min)];
        let length = lengths[random.below(lengths.len())];
        let net = nets[random.below(nets.len())];
        let address = net ^ random.below(1 << 12) as u32;
        let mask = u32::MAX << (32 - length);
        Pattern::prefix(&(address & mask).to_be_bytes(), length).expect("a prefix")
    }
}

/// Index source routing (004 section 3.2.1). Returns one entry for each of `digits` places of a
/// path and each of `ports` values there, which compares the index and the byte at that index.
pub fn index_routing(ports: u8, digits: u8) -> Vec<Pattern> {
    let entry = |index: u8, port: u8| {
        let mut pattern = Pattern::exact(&[index]).then(&Pattern::any(11));
        let at = usize::from(index) + 1;
        (pattern.value[at], pattern.mask[at]) = (port, 0xff);
        pattern
    };
    (0..digits).flat_map(|index| (0..ports).map(move |port| entry(index, port))).collect()
}

/// Returns any, exact, unprivileged ports, or a range.
fn ports(class: usize, random: &mut Random) -> Vec<Pattern> {
    const KNOWN: [u32; 12] = [20, 21, 22, 23, 25, 53, 80, 110, 123, 161, 443, 8080];
    let (first, last) = match class {
        0 => (0, 65_535),
        1 => {
            let port = KNOWN[random.below(KNOWN.len())];
            (port, port)
        }
        2 => (1024, 65_535),
        _ => {
            let first = 1024 + random.below(30_000) as u32;
            (first, first + 1 + random.below(4000) as u32)
        }
    };
    range(first, last, 2).expect("a range of ports")
}

/// Returns keys of packets: most match a rule drawn uniformly, every eighth is random.
pub fn keys(rows: &[Pattern], count: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let key = |index: usize| -> Vec<u8> {
        let row = &rows[random.below(rows.len())];
        let mut byte = |value: u8, mask: u8| value | random.below(256) as u8 & !mask;
        let met = row.value.iter().zip(&row.mask);
        met.map(|(&value, &mask)| if index % 8 == 7 { byte(0, 0) } else { byte(value, mask) })
            .collect()
    };
    (0..count).map(key).collect()
}

/// Returns the bytes of a value or key at their places in a key.
pub fn at_its_place(bytes: &[u8]) -> KeyBytes {
    let mut key = [0; KEY_BYTES];
    key[..bytes.len()].copy_from_slice(bytes);
    key
}
