//! Frames of the tester, built byte by byte from the layouts of the standards.
//!
//! The module does not use the codecs of `axon-wire`, because a mistake there would then go
//! unnoticed.

use crate::rig::Stream;
use axon_wire::MacAddr;
use axon_wire::priority::PRIORITIES;

/// EtherType of MAC control (IEEE 802.3 annex 31A).
pub(crate) const MAC_CONTROL_TYPE: u16 = 0x8808;
/// EtherType of LLDP (IEEE 802.1AB clause 7.3).
pub(crate) const LLDP_TYPE: u16 = 0x88cc;
/// EtherType of congestion notification messages (IEEE 802.1Q table 30-2, as recalled).
pub(crate) const CNM_TYPE: u16 = 0x22e7;
/// EtherType of CN-TAGs.
pub(crate) const CN_TAG_TYPE: u16 = 0x22e9;
/// EtherType of customer tags.
pub(crate) const TAG_TYPE: u16 = 0x8100;
/// EtherType of service tags.
pub(crate) const SERVICE_TAG_TYPE: u16 = 0x88a8;
/// EtherType of the tester's traffic: local experimental EtherType 1 of IEEE 802.
pub(crate) const TRAFFIC_TYPE: u16 = 0x88b5;
/// Destination address of MAC control frames.
pub(crate) const MAC_CONTROL_GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x01];
/// Destination address of LLDP frames: the nearest bridge.
pub const NEAREST_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
/// Destination address of LLDP frames beyond the nearest bridge: the nearest customer bridge.
pub(crate) const CUSTOMER_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x00];
/// Opcode of PAUSE.
pub const PAUSE: u16 = 0x0001;
/// Opcode of PFC.
pub const PFC: u16 = 0x0101;
/// Length of the shortest frame, in bytes, without FCS.
pub(crate) const SHORTEST: usize = 60;
/// Magic number at the start of the tester's payload.
const MAGIC: [u8; 4] = *b"axcf";

/// Returns the locally administered address of a tester port.
pub(crate) fn mac(port: usize) -> MacAddr {
    MacAddr([0x02, b'c', b'f', 0, 0, port as u8 + 1])
}

/// Group address that cannot be a source. It is the address of port 0 with the group bit set.
pub(crate) const GROUP: MacAddr = MacAddr([0x03, b'c', b'f', 0, 0, 1]);

/// Returns the IPv4 address of a tester port.
pub(crate) fn ip(port: usize) -> [u8; 4] {
    [10, 0, 0, 200 + port as u8]
}

/// Returns the 16-bit big-endian word at offset `at`, or `None` beyond the end.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Formats bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns an Ethernet frame, padded to the minimum length.
pub(crate) fn ethernet(to: [u8; 6], from: MacAddr, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(SHORTEST.max(14 + payload.len()));
    frame.extend(to);
    frame.extend(from.0);
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame.resize(SHORTEST.max(frame.len()), 0);
    frame
}

/// Returns a MAC control frame, addressed to the group, with this opcode and these parameters.
pub(crate) fn mac_control(from: MacAddr, opcode: u16, words: &[u16]) -> Vec<u8> {
    let payload: Vec<u8> =
        [opcode].iter().chain(words).flat_map(|word| word.to_be_bytes()).collect();
    ethernet(MAC_CONTROL_GROUP, from, MAC_CONTROL_TYPE, &payload)
}

/// Returns a PAUSE frame with this time in quanta (annex 31B).
pub fn pause(from: MacAddr, quanta: u16) -> Vec<u8> {
    mac_control(from, PAUSE, &[quanta])
}

/// Returns a PFC frame with this enable vector, including its reserved high octet, and these times
/// (annex 31D).
pub fn pfc(from: MacAddr, vector: u16, times: [u16; PRIORITIES]) -> Vec<u8> {
    let words: Vec<u16> = core::iter::once(vector).chain(times).collect();
    mac_control(from, PFC, &words)
}

/// Returns a PFC frame with the same time for all priorities in the vector, and zero for the
/// others.
pub(crate) fn pfc_for(from: MacAddr, vector: u8, quanta: u16) -> Vec<u8> {
    let time = |priority: usize| if vector & 1 << priority != 0 { quanta } else { 0 };
    pfc(from, vector.into(), core::array::from_fn(time))
}

/// Parses the low octet of the vector, and the times, in a PFC frame.
pub(crate) fn pfc_of(frame: &[u8]) -> Option<(u8, [u16; PRIORITIES])> {
    let is = word(frame, 12)? == MAC_CONTROL_TYPE && word(frame, 14)? == PFC;
    let mut times = [0; PRIORITIES];
    for (priority, time) in times.iter_mut().enumerate() {
        *time = word(frame, 18 + 2 * priority)?;
    }
    is.then_some((*frame.get(17)?, times))
}

/// Parses the time in a PAUSE frame.
pub(crate) fn pause_of(frame: &[u8]) -> Option<u16> {
    let is = word(frame, 12)? == MAC_CONTROL_TYPE && word(frame, 14)? == PAUSE;
    word(frame, 16).filter(|_| is)
}

/// Reason why a station does not act on a frame as flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFlowControl {
    /// Shorter than the minimum frame.
    Short,
    /// Not MAC control.
    Ethertype,
    /// Group source address.
    Source,
    /// Different opcode.
    Opcode,
    /// Different destination. PAUSE may be addressed to the station itself, but PFC only to the
    /// group.
    Destination,
}

/// Parsed flow control: the affected priorities and their quanta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// PAUSE for all priorities (802.3 annex 31B).
    Pause(u16),
    /// PFC for the priorities in the vector, each with its own time (annex 31D).
    Pfc(u8, [u16; PRIORITIES]),
}

/// Parses flow control in the same way as a station with the address `own` that acts on it.
///
/// # Errors
/// The frame is not flow control, or the station must not act on it.
pub fn flow_control_of(own: MacAddr, frame: &[u8]) -> Result<FlowControl, NoFlowControl> {
    if frame.len() < SHORTEST {
        return Err(NoFlowControl::Short);
    }
    if !is_mac_control(frame) {
        return Err(NoFlowControl::Ethertype);
    }
    if frame[6] & 1 != 0 {
        return Err(NoFlowControl::Source);
    }
    let to_group = frame[..6] == MAC_CONTROL_GROUP;
    if let Some(time) = pause_of(frame) {
        let ours = to_group || frame[..6] == own.0;
        return if ours { Ok(FlowControl::Pause(time)) } else { Err(NoFlowControl::Destination) };
    }
    let (vector, times) = pfc_of(frame).ok_or(NoFlowControl::Opcode)?;
    if to_group { Ok(FlowControl::Pfc(vector, times)) } else { Err(NoFlowControl::Destination) }
}

/// Returns the priority in the outermost tag (0 if untagged), the EtherType after at most one
/// service tag and one customer tag, and the offset of that EtherType.
pub fn tags_of(frame: &[u8]) -> Option<(u8, u16, usize)> {
    let mut at = 12;
    for tag in [SERVICE_TAG_TYPE, TAG_TYPE] {
        at += if word(frame, at)? == tag { 4 } else { 0 };
    }
    let priority = if at > 12 { *frame.get(14)? >> 5 } else { 0 };
    Some((priority, word(frame, at)?, at))
}

/// Returns the EtherType behind the tags of a frame, and the offset of the payload.
pub(crate) fn ethertype(frame: &[u8]) -> Option<(u16, usize)> {
    tags_of(frame).map(|(_, kind, at)| (kind, at + 2))
}

/// Returns whether a frame is a MAC control frame.
pub(crate) fn is_mac_control(frame: &[u8]) -> bool {
    word(frame, 12) == Some(MAC_CONTROL_TYPE)
}

/// Returns whether a frame is a CNM, possibly behind tags.
pub(crate) fn is_cnm(frame: &[u8]) -> bool {
    let Some((kind, at)) = ethertype(frame) else { return false };
    kind == CNM_TYPE || kind == CN_TAG_TYPE && word(frame, at + 2) == Some(CNM_TYPE)
}

/// Returns the bytes with which all stream frames begin, behind their tags.
pub(crate) fn beginning() -> [u8; 6] {
    let ([t, p], [a, b, c, d]) = (TRAFFIC_TYPE.to_be_bytes(), MAGIC);
    [t, p, a, b, c, d]
}

/// Returns the frame with the number `number` in a stream.
pub(crate) fn traffic(stream: &Stream, id: u16, number: u32) -> Vec<u8> {
    let mut frame = Vec::with_capacity(stream.bytes);
    frame.extend(mac(stream.to).0);
    frame.extend(mac(stream.from).0);
    frame.extend(TAG_TYPE.to_be_bytes());
    frame.extend([stream.priority.value() << 5, 0]);
    if let Some(flow) = stream.flow {
        frame.extend(CN_TAG_TYPE.to_be_bytes());
        frame.extend(flow.to_be_bytes());
    }
    frame.extend(beginning());
    frame.extend(id.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.resize(stream.bytes.max(frame.len()), 0);
    frame
}

/// Frame of the tester's traffic, as parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Number of the stream.
    pub id: u16,
    /// Number of the frame within the stream, counted from 0.
    pub number: u32,
    /// Priority in the tag, or `None` if the device has removed the tag.
    pub priority: Option<u8>,
}

/// Parses a frame of the tester's traffic, with or without a tag.
pub(crate) fn traffic_of(frame: &[u8]) -> Option<Traffic> {
    let priority = (word(frame, 12)? == TAG_TYPE).then(|| frame[14] >> 5);
    let (mut kind, mut at) = ethertype(frame)?;
    if kind == CN_TAG_TYPE {
        (kind, at) = (word(frame, at + 2)?, at + 4);
    }
    let said = frame.get(at..at + 10)?;
    let (magic, rest) = said.split_at(4);
    let number = u32::from_be_bytes([rest[2], rest[3], rest[4], rest[5]]);
    let is = kind == TRAFFIC_TYPE && magic == MAGIC;
    is.then(|| Traffic { id: u16::from_be_bytes([rest[0], rest[1]]), number, priority })
}

/// Returns the flow in a frame's CN-TAG, with or without a VLAN tag before it.
pub(crate) fn flow_of(frame: &[u8]) -> Option<u16> {
    let (kind, at) = ethertype(frame)?;
    word(frame, at).filter(|_| kind == CN_TAG_TYPE)
}

/// Returns an ARP packet (RFC 826) for Ethernet and IPv4.
fn arp(to: [u8; 6], operation: u16, sender: usize, target: ([u8; 6], [u8; 4])) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4];
    packet.extend(operation.to_be_bytes());
    packet.extend(mac(sender).0);
    packet.extend(ip(sender));
    packet.extend(target.0);
    packet.extend(target.1);
    ethernet(to, mac(sender), 0x0806, &packet)
}

/// Returns an ARP request from port `sender` for `target`. If both are the same, it is an
/// announcement (RFC 5227 clause 2.3).
pub(crate) fn arp_request(sender: usize, target: usize) -> Vec<u8> {
    arp([0xff; 6], 1, sender, ([0; 6], ip(target)))
}

/// Returns the ARP reply from port `port` to a request for it.
pub(crate) fn arp_answer(port: usize, frame: &[u8]) -> Option<Vec<u8>> {
    let asks = word(frame, 12)? == 0x0806 && word(frame, 20)? == 1;
    let sender: [u8; 6] = frame.get(22..28)?.try_into().ok()?;
    let sender_ip: [u8; 4] = frame.get(28..32)?.try_into().ok()?;
    let wanted = frame.get(38..42)? == ip(port);
    (asks && wanted && sender != mac(port).0).then(|| arp(sender, 2, port, (sender, sender_ip)))
}

/// Returns whether this frame is an ARP reply for `target`.
pub(crate) fn is_arp_answer(frame: &[u8], target: usize) -> bool {
    let said = (word(frame, 12), word(frame, 20), frame.get(28..32));
    said == (Some(0x0806), Some(2), Some(&ip(target)[..]))
}

/// Returns an LLDP TLV (IEEE 802.1AB clause 8.4), with seven bits of type and nine bits of length.
pub(crate) fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
    let head = u16::from(kind) << 9 | value.len() as u16 & 0x1ff;
    head.to_be_bytes().into_iter().chain(value.iter().copied()).collect()
}

/// Returns an organisationally specific TLV.
pub(crate) fn tlv_of(organisation: [u8; 3], subtype: u8, information: &[u8]) -> Vec<u8> {
    let mut value = organisation.to_vec();
    value.push(subtype);
    value.extend(information);
    tlv(127, &value)
}

/// Returns an LLDP frame with this source, time to live in seconds, and further TLVs.
pub(crate) fn lldp(from: MacAddr, ttl: u16, others: &[Vec<u8>]) -> Vec<u8> {
    let id = |subtype: u8| [&[subtype][..], &from.0].concat();
    let mut said = [tlv(1, &id(4)), tlv(2, &id(3)), tlv(3, &ttl.to_be_bytes())].concat();
    others.iter().for_each(|tlv| said.extend(tlv));
    said.extend(tlv(0, &[]));
    ethernet(NEAREST_BRIDGE, from, LLDP_TYPE, &said)
}

/// Returns the type and value of each TLV in an LLDP frame, up to the end TLV.
pub(crate) fn tlvs_of(frame: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    if word(frame, 12)? != LLDP_TYPE {
        return None;
    }
    let (mut at, mut all) = (14, Vec::new());
    while let Some(head) = word(frame, at).filter(|&head| head != 0) {
        let length = usize::from(head & 0x1ff);
        all.push(((head >> 9) as u8, frame.get(at + 2..at + 2 + length)?));
        at += 2 + length;
    }
    Some(all)
}

/// Returns the information in each organisationally specific TLV with this subtype.
pub(crate) fn said_by(frame: &[u8], organisation: [u8; 3], subtype: u8) -> Vec<&[u8]> {
    let tlvs = tlvs_of(frame).unwrap_or_default();
    let head = [organisation[0], organisation[1], organisation[2], subtype];
    let own = |(kind, value): (u8, _)| (kind == 127).then_some(value);
    tlvs.into_iter().filter_map(own).filter_map(|value: &[u8]| value.strip_prefix(&head)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Span;
    use axon_wire::Time;
    use axon_wire::priority::Priority;

    #[test]
    fn pause_and_pfc_are_those_that_tshark_was_shown() {
        let from = MacAddr([2, 0, 0, 0, 0, 1]);
        let frame = pause(from, 0xffff);
        assert_eq!(hex(&frame[..18]), "0180c200000102000000000188080001ffff");
        let frame = pfc(from, 9, [1, 2, 3, 4, 5, 6, 7, 8]);
        let wanted = "0180c20000010200000000018808010100090001000200030004000500060007";
        assert_eq!((hex(&frame[..32]).as_str(), frame.len()), (wanted, SHORTEST));
        assert_eq!(pfc_of(&frame), Some((9, [1, 2, 3, 4, 5, 6, 7, 8])));
        assert_eq!(pfc_of(&pause(from, 1)), None);
    }

    #[test]
    fn traffic_is_known_again_with_tags_and_without() {
        let priority = Priority::new(5).unwrap();
        let mut stream = Stream {
            from: 1,
            to: 0,
            priority,
            bytes: 100,
            interval: Span::ZERO,
            begin: Time::ZERO,
            end: Time::ZERO,
            honours: true,
            flow: None,
        };
        let frame = traffic(&stream, 7, 70_000);
        let known = Traffic { id: 7, number: 70_000, priority: Some(5) };
        assert_eq!((frame.len(), traffic_of(&frame)), (100, Some(known)));
        stream.flow = Some(3);
        assert_eq!(traffic_of(&traffic(&stream, 7, 70_000)), Some(known));
        assert_eq!((flow_of(&frame), flow_of(&traffic(&stream, 7, 1))), (None, Some(3)));
        let untagged = [&frame[..12], &frame[16..]].concat();
        assert_eq!(traffic_of(&untagged), Some(Traffic { priority: None, ..known }));
    }

    #[test]
    fn tlvs_come_back_and_a_cut_one_does_not() {
        let from = mac(0);
        let said = tlv_of([0, 0x80, 0xc2], 11, &[0xc8, 0x09]);
        let frame = lldp(from, 120, &[said]);
        assert_eq!(said_by(&frame, [0, 0x80, 0xc2], 11), [&[0xc8, 0x09]]);
        assert_eq!(tlvs_of(&frame).unwrap().len(), 4);
        assert!(tlvs_of(&frame[..20]).is_none());
        assert_eq!(arp_answer(1, &arp_request(0, 1)).map(|a| is_arp_answer(&a, 1)), Some(true));
        assert_eq!(arp_answer(2, &arp_request(0, 1)), None);
    }
}
