//! MAC control frames: PAUSE (IEEE 802.3 annex 31B) and priority-based flow control, PFC
//! (IEEE 802.1Q clause 36, 802.3 annex 31D).
//!
//! ```text
//!  bytes  6                  6        2        2        2               26 or 42
//!       +------------------+--------+--------+--------+---------------+------------+
//!       | 01-80-C2-00-00-01 | source | 0x8808 | 0x0001 | time          | zero       |  PAUSE
//!       +------------------+--------+--------+--------+---------------+------------+
//!       |                                    | 0x0101 | enable, 8 x 2 | zero       |  PFC
//!       +------------------+--------+--------+--------+---------------+------------+
//! ```
//!
//! Times are counted in quanta of 512 bit times of the link. Such a frame always has the minimum
//! length, is never tagged and never forwarded. Bit n of the enable vector's low byte enables time
//! n: zero resumes priority n (XON), any other value pauses it for that long (XOFF) and replaces a
//! remaining pause. A time whose bit is clear is ignored.

use crate::addr::MacAddr;
pub use crate::constants::address::MAC_CONTROL as DESTINATION;
pub use crate::constants::ethertype::MAC_CONTROL as ETHERTYPE;
use crate::constants::length::ETHERNET_ADDRESSES;
pub use crate::constants::opcode::{PAUSE as OPCODE_PAUSE, PFC as OPCODE_PFC};
use crate::link::{ETHERNET_BYTES, FRAME_BYTES_MIN};
use crate::priority::{PRIORITIES, Priority, PrioritySet};
use crate::units::{Bytes, Rate, Span};

/// Bytes of a PAUSE or PFC frame, without its FCS.
pub(crate) const FRAME_BYTES: usize = FRAME_BYTES_MIN;
/// Bytes sent in one quantum of 512 bits.
const QUANTUM_BYTES: u64 = 64;
/// Offset of the fields behind the opcode.
const FIELDS_AT: usize = ETHERNET_BYTES + 2;

/// A pause, in quanta of 512 bit times: 0 to 65,535.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quanta(pub u16);

impl Quanta {
    /// No pause: resumes the link or priority.
    pub const ZERO: Quanta = Quanta(0);
    /// The longest pause: 3.36 ms at 10 Gb/s.
    pub const MAX: Quanta = Quanta(u16::MAX);

    /// Returns the duration on a link of `rate`, rounded up to a whole tick. It is exact at every
    /// Ethernet rate from 1 Gb/s to 800 Gb/s.
    pub const fn time_at(self, rate: Rate) -> Span {
        rate.time_for(Bytes(self.0 as u64 * QUANTUM_BYTES))
    }

    /// Returns the shortest pause of at least `span` on a link of `rate`, or [`Quanta::MAX`] if
    /// `span` is longer than that.
    #[cfg(test)]
    pub(crate) const fn at_least(span: Span, rate: Rate) -> Quanta {
        // Ticks of 10 ps and bits per second: a product of 10^11 is one bit.
        let bits_by_1e11 = span.ticks() as u128 * rate.bits_per_second() as u128;
        let quanta = bits_by_1e11.div_ceil(8 * QUANTUM_BYTES as u128 * 100_000_000_000);
        Quanta(if quanta > u16::MAX as u128 { u16::MAX } else { quanta as u16 })
    }
}

/// The content of a PFC frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pfc {
    /// Priorities whose times take effect.
    pub enabled: PrioritySet,
    /// Pause time of each priority, by its index. By convention, zero where the priority is not
    /// enabled.
    pub times: [Quanta; PRIORITIES],
}

impl Pfc {
    /// Returns a PFC frame that pauses these priorities for `time`. [`Quanta::ZERO`] resumes them
    /// (XON).
    pub fn of(priorities: PrioritySet, time: Quanta) -> Pfc {
        let mut pfc = Pfc::default();
        for priority in priorities.iter() {
            pfc.set(priority, time);
        }
        pfc
    }

    /// Enables one more priority, with this time.
    pub const fn set(&mut self, priority: Priority, time: Quanta) {
        self.enabled.insert(priority);
        self.times[priority.index()] = time;
    }

    /// Returns the longest time of all enabled priorities, or zero if none is paused.
    pub fn longest(&self) -> Quanta {
        self.enabled.iter().map(|priority| self.times[priority.index()]).max().unwrap_or_default()
    }

    /// Returns the time of `priority`, or `None` if its bit is clear.
    pub fn time(&self, priority: Priority) -> Option<Quanta> {
        self.enabled.contains(priority).then(|| self.times[priority.index()])
    }
}

/// Treatment of a PFC frame with bits set in the reserved high byte of its enable vector. Sources
/// differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reserved {
    /// The bits are ignored and the frame takes effect.
    #[default]
    Ignored,
    /// The frame is malformed.
    Refused,
}

/// Content of a MAC control frame, without its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MacControl {
    /// PAUSE: pauses the whole link for this long, or resumes it.
    Pause(Quanta),
    /// PFC: pauses or resumes single priorities.
    Pfc(Pfc),
}

/// Errors in parsing a MAC control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MacControlError {
    /// The frame is shorter than the shortest MAC control frame.
    #[error("{0} bytes, where at least {FRAME_BYTES} were expected")]
    Short(usize),
    /// The EtherType is another one, or that of a tag.
    #[error("EtherType {0:#06x}, where {ETHERTYPE:#06x} was expected")]
    EtherType(u16),
    /// The destination is neither the group address nor, for PAUSE, the port itself.
    #[error("sent to {0}")]
    Destination(MacAddr),
    /// The source is a group address.
    #[error("sent by {0}, which is a group")]
    Source(MacAddr),
    /// The opcode is neither that of PAUSE nor that of PFC.
    #[error("opcode {0:#06x}; {OPCODE_PAUSE:#06x} is PAUSE, {OPCODE_PFC:#06x} is PFC")]
    Opcode(u16),
    /// With [`Reserved::Refused`] only: bits of the enable vector's high byte are set.
    #[error("reserved bits {0:#04x} of the enable vector are set")]
    Reserved(u8),
}

/// Returns whether an Ethernet frame is a MAC control frame, valid or not. Such a frame is neither
/// forwarded nor delivered to a host.
#[inline]
pub fn is_mac_control(frame: &[u8]) -> bool {
    frame.get(ETHERNET_ADDRESSES..ETHERNET_BYTES) == Some(&ETHERTYPE.to_be_bytes())
}

impl MacControl {
    /// Parses a frame received on the port with address `own`. The high byte of the enable vector
    /// is reserved and ignored, as are bytes behind the fields. PAUSE may be sent to the group
    /// address or to `own` (clause 31B.1), PFC to the group address only.
    ///
    /// # Errors
    /// The frame is too short, has another EtherType or opcode, or has invalid addresses.
    pub fn parse(frame: &[u8], own: MacAddr) -> Result<MacControl, MacControlError> {
        MacControl::parse_as(frame, own, Reserved::Ignored)
    }

    /// Parses a frame like [`MacControl::parse`], but treats the high byte of the enable vector
    /// according to `reserved`.
    ///
    /// # Errors
    /// The errors of [`MacControl::parse`], and reserved bits that are set if they are refused.
    pub fn parse_as(
        frame: &[u8],
        own: MacAddr,
        reserved: Reserved,
    ) -> Result<MacControl, MacControlError> {
        let bytes: &[u8; FRAME_BYTES] =
            frame.first_chunk().ok_or(MacControlError::Short(frame.len()))?;
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        if word(ETHERNET_ADDRESSES) != ETHERTYPE {
            return Err(MacControlError::EtherType(word(ETHERNET_ADDRESSES)));
        }
        let opcode = word(ETHERNET_BYTES);
        if opcode != OPCODE_PAUSE && opcode != OPCODE_PFC {
            return Err(MacControlError::Opcode(opcode));
        }
        let [destination, source] = [0, 6].map(|at| {
            let mut mac = [0; 6];
            mac.copy_from_slice(&bytes[at..at + 6]);
            MacAddr(mac)
        });
        if destination != DESTINATION && (opcode == OPCODE_PFC || destination != own) {
            return Err(MacControlError::Destination(destination));
        }
        if source.is_multicast() {
            return Err(MacControlError::Source(source));
        }
        if opcode == OPCODE_PAUSE {
            return Ok(MacControl::Pause(Quanta(word(FIELDS_AT))));
        }
        if reserved == Reserved::Refused && bytes[FIELDS_AT] != 0 {
            return Err(MacControlError::Reserved(bytes[FIELDS_AT]));
        }
        Ok(MacControl::Pfc(Pfc {
            enabled: PrioritySet::from_bits(bytes[FIELDS_AT + 1]),
            times: core::array::from_fn(|n| Quanta(word(FIELDS_AT + 2 + 2 * n))),
        }))
    }

    /// Returns the frame, sent from the port with address `source`.
    pub fn emit(&self, source: MacAddr) -> [u8; FRAME_BYTES] {
        let mut frame = [0; FRAME_BYTES];
        self.write(&mut frame, source);
        frame
    }

    /// Writes all bytes of the frame into `out`.
    pub(crate) fn write(&self, out: &mut [u8; FRAME_BYTES], source: MacAddr) {
        out.fill(0);
        out[..6].copy_from_slice(&DESTINATION.0);
        out[6..12].copy_from_slice(&source.0);
        let mut word = |at: usize, value: u16| {
            out[at..at + 2].copy_from_slice(&value.to_be_bytes());
        };
        word(ETHERNET_ADDRESSES, ETHERTYPE);
        match self {
            MacControl::Pause(time) => {
                word(ETHERNET_BYTES, OPCODE_PAUSE);
                word(FIELDS_AT, time.0);
            }
            MacControl::Pfc(pfc) => {
                word(ETHERNET_BYTES, OPCODE_PFC);
                word(FIELDS_AT, pfc.enabled.bits().into());
                for (n, time) in pfc.times.iter().enumerate() {
                    word(FIELDS_AT + 2 + 2 * n, time.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
    const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

    /// Returns a frame with the head that tshark was given, then `fields`, then zeros.
    fn frame(fields: &[u8]) -> [u8; FRAME_BYTES] {
        let mut frame = [0; FRAME_BYTES];
        let head = [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08];
        frame[..14].copy_from_slice(&head);
        frame[14..14 + fields.len()].copy_from_slice(fields);
        frame
    }

    fn pfc_frame() -> [u8; FRAME_BYTES] {
        frame(&[1, 1, 0, 9, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8])
    }

    #[test]
    fn pause_and_pfc_are_byte_for_byte_what_others_dissect() {
        let mut dirty = [0xa5; FRAME_BYTES];
        let pause = MacControl::Pause(Quanta::MAX);
        pause.write(&mut dirty, PEER);
        assert_eq!(dirty, frame(&[0, 1, 0xff, 0xff]));
        assert_eq!(MacControl::parse(&dirty, OWN), Ok(pause));
        let mut dirty = [0x5a; FRAME_BYTES];
        let pfc =
            Pfc { enabled: PrioritySet::from_bits(9), times: [1, 2, 3, 4, 5, 6, 7, 8].map(Quanta) };
        MacControl::Pfc(pfc).write(&mut dirty, PEER);
        assert_eq!(dirty, pfc_frame());
        assert_eq!(MacControl::parse(&dirty, OWN), Ok(MacControl::Pfc(pfc)));
        assert_eq!(MacControl::Pfc(pfc).emit(PEER), dirty);
    }

    #[test]
    fn a_time_without_its_bit_means_nothing() {
        let Ok(MacControl::Pfc(pfc)) = MacControl::parse(&pfc_frame(), OWN) else { panic!() };
        let times = Priority::ALL.map(|priority| pfc.time(priority).map(|quanta| quanta.0));
        assert_eq!(times, [Some(1), None, None, Some(4), None, None, None, None]);
        let mut built = Pfc::of(PrioritySet::from_bits(0x18), Quanta(7));
        built.set(Priority::ALL[3], Quanta::ZERO);
        assert_eq!(built.time(Priority::ALL[3]), Some(Quanta::ZERO));
        assert_eq!(built.time(Priority::ALL[4]), Some(Quanta(7)));
    }

    #[test]
    fn the_high_byte_of_the_enable_vector_and_the_padding_are_ignored() {
        let mut bytes = pfc_frame();
        let clean = MacControl::parse(&bytes, OWN);
        bytes[16] = 0xff;
        bytes[34..].fill(0xee);
        assert_eq!(MacControl::parse(&bytes, OWN), clean);
        let strict = |bytes: &[u8]| MacControl::parse_as(bytes, OWN, Reserved::Refused);
        assert_eq!(strict(&bytes), Err(MacControlError::Reserved(0xff)));
        assert_eq!(strict(&pfc_frame()), clean);
        let pause = frame(&[0, 1, 0xff, 0]);
        assert_eq!(strict(&pause), MacControl::parse(&pause, OWN), "PAUSE has no such byte");
    }

    #[test]
    fn each_refusal_says_what_is_wrong() {
        let with = |at: usize, byte: u8| {
            let mut bytes = pfc_frame();
            bytes[at] = byte;
            MacControl::parse(&bytes, OWN)
        };
        for length in 0..FRAME_BYTES {
            let short = MacControl::parse(&pfc_frame()[..length], OWN);
            assert_eq!(short, Err(MacControlError::Short(length)));
        }
        let other = MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]);
        assert_eq!(with(5, 0x0e), Err(MacControlError::Destination(other)));
        assert_eq!(with(13, 0x09), Err(MacControlError::EtherType(0x8809)));
        assert_eq!(with(15, 2), Err(MacControlError::Opcode(0x0102)));
        let group = MacAddr([3, 0, 0, 0, 0, 1]);
        assert_eq!(with(6, 3), Err(MacControlError::Source(group)));
    }

    #[test]
    fn pause_may_come_to_the_ports_own_address_and_pfc_may_not() {
        for (fields, own_is_good) in [([0, 1, 0, 5], true), ([1, 1, 0, 5], false)] {
            let mut bytes = frame(&fields);
            bytes[..6].copy_from_slice(&OWN.0);
            assert_eq!(MacControl::parse(&bytes, OWN).is_ok(), own_is_good);
            let stranger = MacControl::parse(&bytes, PEER);
            assert_eq!(stranger, Err(MacControlError::Destination(OWN)));
        }
    }

    #[test]
    fn mac_control_is_known_by_its_ethertype_alone() {
        assert!(is_mac_control(&pfc_frame()));
        assert!(is_mac_control(&pfc_frame()[..14]));
        assert!(!is_mac_control(&pfc_frame()[..13]));
        assert!(!is_mac_control(&[0; 60]));
    }

    #[test]
    fn a_quantum_is_512_bit_times_on_every_ethernet() {
        for (gigabits, ticks) in [(1, 51_200), (10, 5_120), (40, 1_280), (100, 512), (800, 64)] {
            assert_eq!(Quanta(1).time_at(Rate::gbps(gigabits)).ticks(), ticks);
        }
        assert_eq!(Quanta::MAX.time_at(Rate::gbps(10)), Span::from_nanos(3_355_392));
        let hair = Span::from_ticks(5_121);
        assert_eq!(Quanta::at_least(hair, Rate::gbps(10)), Quanta(2));
        assert_eq!(Quanta::at_least(Span::ZERO, Rate::gbps(10)), Quanta::ZERO);
        assert_eq!(Quanta::at_least(Span::from_secs(1), Rate::gbps(10)), Quanta::MAX);
    }

    proptest! {
        #[test]
        fn a_span_in_quanta_is_never_shortened(ticks in 0_u64..1 << 40, mbps in 1_u64..1_000_000) {
            let (span, rate) = (Span::from_ticks(ticks), Rate::mbps(mbps));
            let quanta = Quanta::at_least(span, rate);
            if quanta < Quanta::MAX {
                prop_assert!(quanta.time_at(rate) >= span);
            }
            prop_assert!(quanta == Quanta::ZERO || Quanta(quanta.0 - 1).time_at(rate) <= span
                || quanta == Quanta::MAX);
        }

        #[test]
        fn what_is_parsed_is_emitted_to_the_same(mut bytes: [u8; 32]) {
            (bytes[0], bytes[1]) = (bytes[0] & 1, 1);
            let parsed = MacControl::parse(&frame(&bytes), OWN).unwrap();
            prop_assert_eq!(MacControl::parse(&parsed.emit(PEER), OWN), Ok(parsed));
        }
    }
}
