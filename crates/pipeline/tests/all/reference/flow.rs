//! Choice of a group's member for a flow in the reference, in plain arithmetic modulo 2^64.

const MODULUS: u128 = 1 << 64;

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let modulo = |number: u128| (number % MODULUS) as u64;
    // Shifts right by `bits` bits, and adds without carry.
    let fold = |number: u64, bits: u32| number ^ (number / 2_u64.pow(bits));
    let times = |number: u64, factor: u64| modulo(u128::from(number) * u128::from(factor));
    let first = modulo(u128::from(value) + 0x9e37_79b9_7f4a_7c15);
    let second = times(fold(first, 30), 0xbf58_476d_1ce4_e5b9);
    let third = times(fold(second, 27), 0x94d0_49bb_1331_11eb);
    fold(third, 31)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number * 256 + u64::from(*byte))
}

/// Hash of a flow: of its MACs and EtherType; for IPv4 also of the addresses and the protocol; for
/// unfragmented TCP and UDP also of the ports. The frame has 14 bytes or more.
pub fn hash(seed: u64, frame: &[u8]) -> u64 {
    // The second piece differs from the first by its position.
    let mut pieces = vec![number(&frame[..8]), number(&frame[8..14]) ^ 1];
    let is_ipv4 = frame[12..14] == [0x08, 0x00] && frame.len() >= 34;
    if is_ipv4 {
        let protocol = frame[23];
        pieces.extend([number(&frame[26..34]), protocol.into()]);
        // More fragments, or an offset.
        let is_fragment = !frame[20].is_multiple_of(64) || frame[21] != 0;
        let ports = 14 + 4 * usize::from(frame[14] % 16);
        let has_ports = matches!(protocol, 6 | 17) && !is_fragment && frame.len() >= ports + 4;
        if has_ports {
            pieces.push(number(&frame[ports..ports + 4]));
        }
    }
    pieces.into_iter().fold(seed, |hash, piece| mix(hash ^ piece))
}

/// Index of the member that takes the flow: the range of the hash is divided into equal parts, one
/// for each member in order. `None` without members.
pub fn member(hash: u64, members: usize) -> Option<usize> {
    // Member m has the hashes from m/members to (m + 1)/members of the range.
    let end = |member: usize| MODULUS * (member as u128 + 1);
    (0..members).find(|&member| u128::from(hash) * (members as u128) < end(member))
}
