//! Encoding of RST BPDUs (IEEE 802.1D-2004 clause 9.3.3).
//!
//! A BPDU is an IEEE 802.3 frame with a length, LLC 42-42-03 (clause 7.12.3), and 36 octets:
//!
//! | octets | field                              |
//! |--------|------------------------------------|
//! | 1-2    | protocol identifier, 0             |
//! | 3      | protocol version, 2                |
//! | 4      | BPDU type, 2                       |
//! | 5      | flags                              |
//! | 6-13   | root identifier                    |
//! | 14-17  | root path cost                     |
//! | 18-25  | bridge identifier                  |
//! | 26-27  | port identifier                    |
//! | 28-35  | message age, max age, hello, delay |
//! | 36     | version 1 length, 0                |

use super::vector::{BridgeId, PortId, Ticks, Times, Vector};
use alloc::vec::Vec;
use axon_wire::MacAddr;
/// 01-80-C2-00-00-00, the address of all bridges (clause 7.12.3).
pub use axon_wire::constants::address::NEAREST_CUSTOMER as DESTINATION;
use axon_wire::link::FRAME_BYTES_MIN;

/// LLC header: twice the spanning tree's address, and unnumbered information.
const LLC: [u8; 3] = [0x42, 0x42, 0x03];
/// Number of bytes before the BPDU: two addresses, the length and LLC.
const BEFORE_BYTES: usize = 14 + LLC.len();
/// Length of an RST BPDU in bytes.
const RST_BYTES: usize = 36;
/// Protocol version and BPDU type of RSTP.
const RST: u8 = 2;

const FLAG_TOPOLOGY_CHANGE: u8 = 1 << 0;
const FLAG_PROPOSAL: u8 = 1 << 1;
const ROLE_SHIFT: u8 = 2;
const ROLE_MASK: u8 = 0b11;
const FLAG_LEARNING: u8 = 1 << 4;
const FLAG_FORWARDING: u8 = 1 << 5;
const FLAG_AGREEMENT: u8 = 1 << 6;
const FLAG_ACKNOWLEDGMENT: u8 = 1 << 7;

/// Role of the port that sent a BPDU, in two bits (clause 9.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentRole {
    /// Value 0: the sender does not state its role.
    Unknown,
    /// Value 1: the port is an alternate or backup port.
    AlternateOrBackup,
    /// Value 2: the port is a root port.
    Root,
    /// Value 3: the port is a designated port.
    Designated,
}

/// An RST BPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bpdu {
    /// Priority vector.
    pub vector: Vector,
    /// Timer values.
    pub times: Times,
    /// Role of the sender's port.
    pub role: SentRole,
    /// Topology change flag, which requests that learned addresses be flushed.
    pub topology_change: bool,
    /// Proposal flag, with which the sender requests agreement to forward.
    pub proposal: bool,
    /// Agreement flag, which answers a proposal.
    pub agreement: bool,
    /// Learning flag of the sender's port.
    pub learning: bool,
    /// Forwarding flag of the sender's port.
    pub forwarding: bool,
    /// Topology change acknowledgement flag (never set by RSTP towards RSTP).
    pub acknowledgment: bool,
}

/// Reason for which a frame to the bridges' address is not an RST BPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BpduError {
    /// Not an IEEE 802.3 frame with the spanning tree's LLC.
    #[error("not an 802.3 frame with LLC 42-42-03")]
    NotBpdu,
    /// The length field is shorter than a BPDU, or longer than the frame.
    #[error("shorter than 36 octets of BPDU")]
    Short,
    /// A configuration or topology change notification BPDU of the old protocol, or an unknown
    /// BPDU.
    #[error("not version 2, type 2")]
    NotRst,
}

impl Bpdu {
    /// Returns the frame that carries the BPDU, padded to the Ethernet minimum, without FCS.
    pub fn emit(&self, source: MacAddr) -> Vec<u8> {
        let mut frame = Vec::with_capacity(FRAME_BYTES_MIN);
        frame.extend_from_slice(&DESTINATION.0);
        frame.extend_from_slice(&source.0);
        frame.extend_from_slice(&((LLC.len() + RST_BYTES) as u16).to_be_bytes());
        frame.extend_from_slice(&LLC);
        frame.extend_from_slice(&[0, 0, RST, RST, self.flags()]);
        let Vector { root, cost, bridge, port } = self.vector;
        push_bridge(&mut frame, root);
        frame.extend_from_slice(&cost.to_be_bytes());
        push_bridge(&mut frame, bridge);
        frame.extend_from_slice(&port.0.to_be_bytes());
        let Times { message_age, max_age, hello, forward_delay } = self.times;
        for Ticks(ticks) in [message_age, max_age, hello, forward_delay] {
            frame.extend_from_slice(&ticks.to_be_bytes());
        }
        frame.push(0);
        frame.resize(FRAME_BYTES_MIN, 0);
        frame
    }

    fn flags(&self) -> u8 {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        flag(self.topology_change, FLAG_TOPOLOGY_CHANGE)
            | flag(self.proposal, FLAG_PROPOSAL)
            | (self.role as u8) << ROLE_SHIFT
            | flag(self.learning, FLAG_LEARNING)
            | flag(self.forwarding, FLAG_FORWARDING)
            | flag(self.agreement, FLAG_AGREEMENT)
            | flag(self.acknowledgment, FLAG_ACKNOWLEDGMENT)
    }

    /// Parses the BPDU in an Ethernet frame. Later versions are accepted, and octets after the 36
    /// are ignored (clause 9.3.4).
    ///
    /// # Errors
    /// The reason for which the frame must be ignored.
    pub fn parse(frame: &[u8]) -> Result<Bpdu, BpduError> {
        let addressed = MacAddr::destination_of(frame) == Some(DESTINATION);
        if !addressed || frame.get(14..BEFORE_BYTES) != Some(&LLC) {
            return Err(BpduError::NotBpdu);
        }
        let length = usize::from(u16::from_be_bytes([frame[12], frame[13]]));
        let bpdu = length
            .checked_sub(LLC.len())
            .and_then(|bytes| frame.get(BEFORE_BYTES..BEFORE_BYTES + bytes))
            .ok_or(BpduError::Short)?;
        let &[protocol_high, protocol_low, version, kind, ..] = bpdu else {
            return Err(BpduError::Short);
        };
        if [protocol_high, protocol_low] != [0, 0] || version < RST || kind != RST {
            return Err(BpduError::NotRst);
        }
        let Some(bpdu) = bpdu.first_chunk::<RST_BYTES>() else {
            return Err(BpduError::Short);
        };
        let short = |at: usize| u16::from_be_bytes([bpdu[at], bpdu[at + 1]]);
        let bridge = |at: usize| BridgeId {
            priority: short(at),
            mac: MacAddr::destination_of(&bpdu[at + 2..]).unwrap_or_default(),
        };
        let flags = bpdu[4];
        Ok(Bpdu {
            vector: Vector {
                root: bridge(5),
                cost: u32::from(short(13)) << 16 | u32::from(short(15)),
                bridge: bridge(17),
                port: PortId(short(25)),
            },
            times: Times {
                message_age: Ticks(short(27)),
                max_age: Ticks(short(29)),
                hello: Ticks(short(31)),
                forward_delay: Ticks(short(33)),
            },
            role: match flags >> ROLE_SHIFT & ROLE_MASK {
                0 => SentRole::Unknown,
                1 => SentRole::AlternateOrBackup,
                2 => SentRole::Root,
                _ => SentRole::Designated,
            },
            topology_change: flags & FLAG_TOPOLOGY_CHANGE != 0,
            proposal: flags & FLAG_PROPOSAL != 0,
            agreement: flags & FLAG_AGREEMENT != 0,
            learning: flags & FLAG_LEARNING != 0,
            forwarding: flags & FLAG_FORWARDING != 0,
            acknowledgment: flags & FLAG_ACKNOWLEDGMENT != 0,
        })
    }
}

fn push_bridge(frame: &mut Vec<u8>, bridge: BridgeId) {
    frame.extend_from_slice(&bridge.priority.to_be_bytes());
    frame.extend_from_slice(&bridge.mac.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Bpdu {
        let mac = |last| MacAddr([2, 0x73, 0, 0, 0, last]);
        Bpdu {
            vector: Vector {
                root: BridgeId { priority: 0x8000, mac: mac(1) },
                cost: 20_000,
                bridge: BridgeId { priority: 0x8000, mac: mac(2) },
                port: PortId::from_index(2),
            },
            times: Times { message_age: Ticks::secs(1), ..Times::default() },
            role: SentRole::Designated,
            topology_change: true,
            proposal: true,
            agreement: false,
            learning: false,
            forwarding: false,
            acknowledgment: false,
        }
    }

    #[test]
    fn the_octets_are_where_the_standard_wants_them() {
        let frame = sample().emit(MacAddr([2, 0x73, 0, 0, 0, 2]));
        let expected = "0180c2000000 027300000002 0027 424203 0000 02 02 0f \
                        8000027300000001 00004e20 8000027300000002 8003 \
                        0100 1400 0200 0f00 00 00000000000000";
        let hex: alloc::string::String =
            frame.iter().map(|byte| alloc::format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.replace(' ', ""));
        assert_eq!(Bpdu::parse(&frame), Ok(sample()));
    }

    #[test]
    fn what_is_not_an_rst_bpdu_is_refused() {
        let good = sample().emit(MacAddr([2; 6]));
        let change = |at: usize, to: u8| {
            let mut frame = good.clone();
            frame[at] = to;
            Bpdu::parse(&frame)
        };
        assert_eq!(change(5, 1), Err(BpduError::NotBpdu));
        assert_eq!(change(14, 0xaa), Err(BpduError::NotBpdu));
        assert_eq!(change(13, 38), Err(BpduError::Short), "35 octets");
        assert_eq!(change(12, 1), Err(BpduError::Short), "longer than the frame");
        assert_eq!(change(13, 0), Err(BpduError::Short));
        assert_eq!(change(19, 0), Err(BpduError::NotRst), "the old protocol");
        assert_eq!(change(20, 0x80), Err(BpduError::NotRst), "a notification");
        assert!(change(19, 3).is_ok(), "a later version");
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_what_parses_is_emitted_again(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80),
            ours in any::<bool>(),
        ) {
            if ours && bytes.len() >= 21 {
                let head = sample().emit(MacAddr([2; 6]));
                bytes[..21].copy_from_slice(&head[..21]);
            }
            if let Ok(bpdu) = Bpdu::parse(&bytes) {
                prop_assert_eq!(Bpdu::parse(&bpdu.emit(MacAddr([2; 6]))), Ok(bpdu));
            }
        }
    }
}
