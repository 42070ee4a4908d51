//! Choice among several equal ports for a flow.

use axon_wire::constants::ethertype;
use axon_wire::link::ETHERNET_BYTES;

/// IPv4 protocols with ports in their first four bytes: TCP and UDP.
const WITH_PORTS: [u8; 2] = [6, 17];

/// Returns a number that is the same for all frames of a flow, and otherwise evenly distributed.
///
/// Frames of a flow have the same MAC addresses and EtherType, for IPv4 also the same addresses and
/// protocol, and for unfragmented TCP and UDP datagrams also the same ports. `seed` makes the
/// number differ between switches; otherwise every switch would choose alike and leave some paths
/// unused.
pub fn flow_hash(seed: u64, frame: &[u8]) -> u64 {
    let mut hash = seed;
    for (index, chunk) in frame[..frame.len().min(ETHERNET_BYTES)].chunks(8).enumerate() {
        hash = mix(hash ^ word(chunk) ^ index as u64);
    }
    if frame.get(12..14) != Some(&ethertype::IPV4.to_be_bytes()) {
        return hash;
    }
    let Some(packet) = frame.get(ETHERNET_BYTES..) else {
        return hash;
    };
    let (Some(addresses), Some(&protocol)) = (packet.get(12..20), packet.get(9)) else {
        return hash;
    };
    hash = mix(hash ^ word(addresses));
    hash = mix(hash ^ u64::from(protocol));
    // A fragment has no ports, and all fragments of a datagram should take the same path.
    let whole = packet[6] & 0x3f == 0 && packet[7] == 0;
    let header_bytes = usize::from(packet[0] & 0x0f) * 4;
    match packet.get(header_bytes..header_bytes + 4) {
        Some(ports) if whole && WITH_PORTS.contains(&protocol) => mix(hash ^ word(ports)),
        _ => hash,
    }
}

/// Returns one element of `all` that `usable` admits, evenly by `hash`; `None` if there is none.
pub fn choose<T: Copy>(hash: u64, all: &[T], usable: impl Fn(T) -> bool) -> Option<T> {
    let count = all.iter().filter(|&&one| usable(one)).count();
    let index = (u128::from(hash) * count as u128) >> 64;
    all.iter().copied().filter(|&one| usable(one)).nth(index as usize)
}

/// Returns at most eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use axon_wire::PortNo;

    /// Returns a UDP datagram between two addresses that end in `a` and `b`, from port `from`.
    fn datagram(a: u8, b: u8, from: u16) -> Vec<u8> {
        let mut frame = alloc::vec![0; 60];
        (frame[5], frame[11]) = (b, a);
        frame[12..14].copy_from_slice(&ethertype::IPV4.to_be_bytes());
        (frame[14], frame[23], frame[29], frame[33]) = (0x45, 17, a, b);
        frame[34..36].copy_from_slice(&from.to_be_bytes());
        frame
    }

    #[test]
    fn flows_spread_evenly_and_each_stays_on_its_port() {
        let ports: Vec<PortNo> = (0..4).map(PortNo).collect();
        let mut used = [0; 4];
        for from in 0..4000 {
            let mut frame = datagram(1, 2, from);
            let hash = flow_hash(7, &frame);
            frame[50] = 9;
            assert_eq!(hash, flow_hash(7, &frame), "the payload does not matter");
            used[choose(hash, &ports, |_| true).unwrap().index()] += 1;
        }
        assert!(used.iter().all(|&flows| (900..1100).contains(&flows)), "{used:?}");
        assert_ne!(flow_hash(7, &datagram(1, 2, 3)), flow_hash(8, &datagram(1, 2, 3)));
    }

    #[test]
    fn fragments_of_a_datagram_stay_together() {
        let fragment = |from| {
            let mut frame = datagram(1, 2, from);
            frame[20] = 0x20;
            flow_hash(1, &frame)
        };
        assert_eq!(fragment(5), fragment(6));
    }

    #[test]
    fn only_usable_ports_are_chosen_and_short_frames_do_no_harm() {
        let ports = [PortNo(3), PortNo(5), PortNo(8)];
        for hash in [0, 1 << 62, 1 << 63, u64::MAX] {
            let chosen = choose(hash, &ports, |port| port != PortNo(5)).unwrap();
            assert_ne!(chosen, PortNo(5));
            assert_eq!(choose(hash, &ports, |_| false), None);
        }
        for bytes in 0..60 {
            flow_hash(1, &datagram(1, 2, 3)[..bytes]);
        }
    }
}
