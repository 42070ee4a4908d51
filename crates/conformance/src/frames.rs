//! The tester's frames, byte by byte from the layouts of the standards.
//!
//! Nothing here uses the codecs of `axon-wire`: a mistake there would otherwise be made by
//! the tester, too, and not be seen.

use crate::rig::Stream;
use axon_wire::MacAddr;
use axon_wire::priority::PRIORITIES;

/// Of MAC control (IEEE 802.3 annex 31A).
pub const MAC_CONTROL_TYPE: u16 = 0x8808;
/// Of LLDP (IEEE 802.1AB clause 7.3).
pub const LLDP_TYPE: u16 = 0x88cc;
/// Of a congestion notification message (IEEE 802.1Q table 30-2, as recalled).
pub const CNM_TYPE: u16 = 0x22e7;
/// Of a CN-TAG.
pub const CN_TAG_TYPE: u16 = 0x22e9;
/// Of a customer tag.
pub const TAG_TYPE: u16 = 0x8100;
/// Of a service tag.
pub const SERVICE_TAG_TYPE: u16 = 0x88a8;
/// Of the tester's own traffic: IEEE 802's local experimental EtherType 1.
pub const TRAFFIC_TYPE: u16 = 0x88b5;
/// Where MAC control goes.
pub const MAC_CONTROL_GROUP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x01];
/// Where LLDP goes: the nearest bridge.
pub const NEAREST_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
/// Where LLDP for others goes: the nearest customer bridge.
pub const CUSTOMER_BRIDGE: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x00];
/// The opcodes of PAUSE and PFC.
pub const PAUSE: u16 = 0x0001;
/// See [`PAUSE`].
pub const PFC: u16 = 0x0101;
/// Bytes of a shortest frame, without FCS.
pub const SHORTEST: usize = 60;
/// At the beginning of the tester's own payload.
const MAGIC: [u8; 4] = *b"axcf";

/// The address of a port of the tester: locally administered.
pub fn mac(port: usize) -> MacAddr {
    MacAddr([0x02, b'c', b'f', 0, 0, port as u8 + 1])
}

/// The address of a group, which can be no frame's source: that of port 0 with the group bit.
pub const GROUP: MacAddr = MacAddr([0x03, b'c', b'f', 0, 0, 1]);

/// The IPv4 address by which a port of the tester is known to the device.
pub fn ip(port: usize) -> [u8; 4] {
    [10, 0, 0, 200 + port as u8]
}

/// The 16 bits at `at`, big-endian; `None` beyond the end.
pub fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Bytes as a person reads them.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An Ethernet frame, padded to the shortest.
pub fn ethernet(to: [u8; 6], from: MacAddr, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(SHORTEST.max(14 + payload.len()));
    frame.extend(to);
    frame.extend(from.0);
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame.resize(SHORTEST.max(frame.len()), 0);
    frame
}

/// A MAC control frame to the group address, with this opcode and these parameters.
pub fn mac_control(from: MacAddr, opcode: u16, words: &[u16]) -> Vec<u8> {
    let payload: Vec<u8> =
        [opcode].iter().chain(words).flat_map(|word| word.to_be_bytes()).collect();
    ethernet(MAC_CONTROL_GROUP, from, MAC_CONTROL_TYPE, &payload)
}

/// PAUSE for so many quanta (annex 31B).
pub fn pause(from: MacAddr, quanta: u16) -> Vec<u8> {
    mac_control(from, PAUSE, &[quanta])
}

/// PFC with this enable vector, its reserved high octet included, and these times (annex 31D).
pub fn pfc(from: MacAddr, vector: u16, times: [u16; PRIORITIES]) -> Vec<u8> {
    let words: Vec<u16> = core::iter::once(vector).chain(times).collect();
    mac_control(from, PFC, &words)
}

/// PFC that says the same time for each priority of the vector, and zero for the others.
pub fn pfc_for(from: MacAddr, vector: u8, quanta: u16) -> Vec<u8> {
    let time = |priority: usize| if vector & 1 << priority != 0 { quanta } else { 0 };
    pfc(from, vector.into(), core::array::from_fn(time))
}

/// The low octet of the vector, and the times, of a frame that is PFC.
pub fn pfc_of(frame: &[u8]) -> Option<(u8, [u16; PRIORITIES])> {
    let is = word(frame, 12)? == MAC_CONTROL_TYPE && word(frame, 14)? == PFC;
    let mut times = [0; PRIORITIES];
    for (priority, time) in times.iter_mut().enumerate() {
        *time = word(frame, 18 + 2 * priority)?;
    }
    is.then_some((*frame.get(17)?, times))
}

/// The time of a frame that is PAUSE.
pub fn pause_of(frame: &[u8]) -> Option<u16> {
    let is = word(frame, 12)? == MAC_CONTROL_TYPE && word(frame, 14)? == PAUSE;
    word(frame, 16).filter(|_| is)
}

/// Why a frame is no flow control that a station acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFlowControl {
    /// It is shorter than the shortest frame.
    Short,
    /// It is no MAC control.
    Ethertype,
    /// It comes from a group.
    Source,
    /// Its opcode is another.
    Opcode,
    /// It goes to another address: PAUSE may go to the station itself, PFC to the group only.
    Destination,
}

/// For whom flow control stops a station, and for how many quanta each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowControl {
    /// All alike (802.3 annex 31B).
    Pause(u16),
    /// The priorities of the vector, each for its own time (annex 31D).
    Pfc(u8, [u16; PRIORITIES]),
}

/// Reads flow control as a station of the address `own` does that acts on it.
///
/// # Errors
/// It is none, or none to act on.
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

/// The priority in the outermost tag of a frame, 0 without, then the EtherType behind at most a
/// service and a customer tag, and where that stands.
pub fn tags_of(frame: &[u8]) -> Option<(u8, u16, usize)> {
    let mut at = 12;
    for tag in [SERVICE_TAG_TYPE, TAG_TYPE] {
        at += if word(frame, at)? == tag { 4 } else { 0 };
    }
    let priority = if at > 12 { *frame.get(14)? >> 5 } else { 0 };
    Some((priority, word(frame, at)?, at))
}

/// The EtherType of a frame behind its tags, and where what it says begins.
pub fn ethertype(frame: &[u8]) -> Option<(u16, usize)> {
    tags_of(frame).map(|(_, kind, at)| (kind, at + 2))
}

/// Whether it is a MAC control frame.
pub fn is_mac_control(frame: &[u8]) -> bool {
    word(frame, 12) == Some(MAC_CONTROL_TYPE)
}

/// Whether it is a CNM, behind any tags.
pub fn is_cnm(frame: &[u8]) -> bool {
    let Some((kind, at)) = ethertype(frame) else { return false };
    kind == CNM_TYPE || kind == CN_TAG_TYPE && word(frame, at + 2) == Some(CNM_TYPE)
}

/// What all frames of streams begin with behind their tags.
pub fn beginning() -> [u8; 6] {
    let ([t, p], [a, b, c, d]) = (TRAFFIC_TYPE.to_be_bytes(), MAGIC);
    [t, p, a, b, c, d]
}

/// Frame `number` of a stream.
pub fn traffic(stream: &Stream, id: u16, number: u32) -> Vec<u8> {
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

/// What is known of a frame of the tester's own traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Of its stream.
    pub id: u16,
    /// Of the frame in the stream, from 0.
    pub number: u32,
    /// In its tag; `None` if the device has taken that off.
    pub priority: Option<u8>,
}

/// Reads a frame of the tester's own traffic, with or without tags.
pub fn traffic_of(frame: &[u8]) -> Option<Traffic> {
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

/// The flow that the CN-TAG of a frame names, with or without a VLAN tag before it.
pub fn flow_of(frame: &[u8]) -> Option<u16> {
    let (kind, at) = ethertype(frame)?;
    word(frame, at).filter(|_| kind == CN_TAG_TYPE)
}

/// An ARP packet (RFC 826) for Ethernet and IPv4.
fn arp(to: [u8; 6], operation: u16, sender: usize, target: ([u8; 6], [u8; 4])) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4];
    packet.extend(operation.to_be_bytes());
    packet.extend(mac(sender).0);
    packet.extend(ip(sender));
    packet.extend(target.0);
    packet.extend(target.1);
    ethernet(to, mac(sender), 0x0806, &packet)
}

/// Port `sender` asks who has the address of `target`; of itself, to make itself known (RFC 5227
/// clause 2.3).
pub fn arp_request(sender: usize, target: usize) -> Vec<u8> {
    arp([0xff; 6], 1, sender, ([0; 6], ip(target)))
}

/// The answer of port `port` to a frame that asks for it.
pub fn arp_answer(port: usize, frame: &[u8]) -> Option<Vec<u8>> {
    let asks = word(frame, 12)? == 0x0806 && word(frame, 20)? == 1;
    let sender: [u8; 6] = frame.get(22..28)?.try_into().ok()?;
    let sender_ip: [u8; 4] = frame.get(28..32)?.try_into().ok()?;
    let wanted = frame.get(38..42)? == ip(port);
    (asks && wanted && sender != mac(port).0).then(|| arp(sender, 2, port, (sender, sender_ip)))
}

/// Whether this frame answers the request of port `port` for `target`.
pub fn is_arp_answer(frame: &[u8], target: usize) -> bool {
    let said = (word(frame, 12), word(frame, 20), frame.get(28..32));
    said == (Some(0x0806), Some(2), Some(&ip(target)[..]))
}

/// A TLV of LLDP (IEEE 802.1AB clause 8.4): seven bits of type, nine of length.
pub fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
    let head = u16::from(kind) << 9 | value.len() as u16 & 0x1ff;
    head.to_be_bytes().into_iter().chain(value.iter().copied()).collect()
}

/// An organisation's TLV.
pub fn tlv_of(organisation: [u8; 3], subtype: u8, information: &[u8]) -> Vec<u8> {
    let mut value = organisation.to_vec();
    value.push(subtype);
    value.extend(information);
    tlv(127, &value)
}

/// An LLDP frame: who sends it, for how many seconds it holds, and what else it says.
pub fn lldp(from: MacAddr, ttl: u16, others: &[Vec<u8>]) -> Vec<u8> {
    let id = |subtype: u8| [&[subtype][..], &from.0].concat();
    let mut said = [tlv(1, &id(4)), tlv(2, &id(3)), tlv(3, &ttl.to_be_bytes())].concat();
    others.iter().for_each(|tlv| said.extend(tlv));
    said.extend(tlv(0, &[]));
    ethernet(NEAREST_BRIDGE, from, LLDP_TYPE, &said)
}

/// The TLVs of an LLDP frame, type and value, up to its end.
pub fn tlvs_of(frame: &[u8]) -> Option<Vec<(u8, &[u8])>> {
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

/// What an LLDP frame says in an organisation's TLV of this subtype; each of them.
pub fn said_by(frame: &[u8], organisation: [u8; 3], subtype: u8) -> Vec<&[u8]> {
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
