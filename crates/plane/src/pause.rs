//! Self-congestion pause (thesis 000 §3.3.3).
//!
//! The edge makes every frame of a host longer by its Axon header, so a host that sends at
//! line rate fills the output buffer of an otherwise quiet switch. After a host port has
//! caused a maximum frame's worth of header bytes, its hosts are told to pause for as long
//! as one maximum frame takes, and the buffer drains what was added.

use crate::flow_control::Told;
use axon_wire::MacAddr;
use axon_wire::priority::{PRIORITIES, PrioritySet};

/// 01-80-C2-00-00-01, where MAC control frames go (IEEE 802.3 annex 31B).
pub const DESTINATION: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);
/// EtherType of MAC control (IEEE 802.3 clause 31.4.1).
pub const ETHERTYPE: u16 = 0x8808;
/// Bytes of a PAUSE frame without FCS.
pub const PAUSE_BYTES: usize = 60;
/// Opcode of PAUSE (IEEE 802.3 annex 31B.2).
const OPCODE: u16 = 0x0001;
/// Opcode of PFC (IEEE 802.3 annex 31D).
const PFC_OPCODE: u16 = 0x0101;
/// One pause quantum is 512 bit times at any rate: 64 bytes.
const QUANTUM_BYTES: usize = 64;
/// Preamble, FCS and the gap between frames.
const OVERHEAD_BYTES: usize = 8 + 4 + 12;

/// The time of one frame of `frame_bytes_max` bytes (without FCS), in quanta, rounded up.
pub fn quanta_for(frame_bytes_max: usize) -> u16 {
    let quanta = (frame_bytes_max + OVERHEAD_BYTES).div_ceil(QUANTUM_BYTES);
    u16::try_from(quanta).unwrap_or(u16::MAX)
}

/// A PAUSE frame without FCS.
pub fn emit(source: MacAddr, quanta: u16) -> [u8; PAUSE_BYTES] {
    let mut frame = [0; PAUSE_BYTES];
    frame[..6].copy_from_slice(&DESTINATION.0);
    frame[6..12].copy_from_slice(&source.0);
    frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
    frame[14..16].copy_from_slice(&OPCODE.to_be_bytes());
    frame[16..18].copy_from_slice(&quanta.to_be_bytes());
    frame
}

/// A PFC frame without FCS (IEEE 802.3 annex 31D).
pub fn emit_pfc(source: MacAddr, told: &Told) -> [u8; PAUSE_BYTES] {
    let mut frame = emit(source, 0);
    frame[14..16].copy_from_slice(&PFC_OPCODE.to_be_bytes());
    frame[17] = told.priorities.bits();
    for priority in told.priorities.iter() {
        let at = 18 + 2 * priority.index();
        frame[at..at + 2].copy_from_slice(&told.quanta[priority.index()].to_be_bytes());
    }
    frame
}

/// What a MAC control frame says of priorities: a PFC frame of those it names, a PAUSE frame of
/// all. `None` for what is neither.
pub fn parse_pfc(frame: &[u8]) -> Option<Told> {
    let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..at + 2)?.first_chunk()?));
    if MacAddr::destination_of(frame) != Some(DESTINATION) || word(12) != Some(ETHERTYPE) {
        return None;
    }
    match word(14)? {
        OPCODE => Some(Told { priorities: PrioritySet::ALL, quanta: [word(16)?; PRIORITIES] }),
        PFC_OPCODE => {
            let mut told = Told::default();
            told.priorities = PrioritySet::from_bits(word(16)? as u8);
            for (index, quanta) in told.quanta.iter_mut().enumerate() {
                *quanta = word(18 + 2 * index)?;
            }
            Some(told)
        }
        _ => None,
    }
}

/// Whether an Ethernet frame is MAC control: PAUSE, PFC and their kin.
pub fn is_mac_control(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&ETHERTYPE.to_be_bytes())
}

/// Counts the header bytes that one host port has caused since it was last paused.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelfCongestion {
    header_bytes: usize,
}

impl SelfCongestion {
    /// Adds `header_bytes`; says whether it is time to pause the hosts.
    pub fn add(&mut self, header_bytes: usize, frame_bytes_max: usize) -> bool {
        self.header_bytes += header_bytes;
        let due = self.header_bytes >= frame_bytes_max;
        if due {
            self.header_bytes -= frame_bytes_max;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_one_maximum_frame() {
        // 1538 byte times of a full frame with its overhead are 24.03 quanta.
        assert_eq!(quanta_for(1514), 25);
        assert_eq!(quanta_for(usize::MAX / 2), u16::MAX);
        let frame = emit(MacAddr([2; 6]), 25);
        assert!(is_mac_control(&frame));
        assert_eq!(frame[..6], DESTINATION.0);
        assert_eq!(frame[12..20], [0x88, 0x08, 0, 1, 0, 25, 0, 0]);
        assert!(!is_mac_control(&frame[..13]));
    }

    #[test]
    fn a_host_is_paused_once_per_maximum_frame_of_header_bytes() {
        let mut load = SelfCongestion::default();
        let pauses = (0..1514).filter(|_| load.add(9, 1514)).count();
        assert_eq!(pauses, 9);
    }
}
