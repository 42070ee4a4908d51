//! GMII (IEEE 802.3 clause 35): frames as bytes on the pins, one in a clock cycle of 8 ns.
//!
//! On the wire a frame has 7 bytes of preamble and the start delimiter (SFD) in front, is padded to
//! 60 bytes, and ends in its FCS; then follows a gap of 12 bytes. All bits of a wrong FCS are
//! inverted.

use axon_wire::link::FRAME_BYTES_MIN;
use std::collections::VecDeque;

/// Bytes of preamble.
const PREAMBLE_BYTES: usize = 7;
const PREAMBLE: u8 = 0x55;
/// Start delimiter.
const SFD: u8 = 0xd5;
const FCS_BYTES: usize = 4;
/// Bytes between two frames.
pub const GAP_BYTES: usize = 12;
/// Generator polynomial of the FCS, reflected (clause 3.2.9).
const POLYNOMIAL: u32 = 0xedb8_8320;

/// Returns the FCS of a frame.
pub fn fcs(frame: &[u8]) -> [u8; FCS_BYTES] {
    let by_byte = |crc: u32, &byte: &u8| {
        let bits = crc ^ u32::from(byte);
        (0..8).fold(bits, |bits, _| bits >> 1 ^ if bits & 1 == 1 { POLYNOMIAL } else { 0 })
    };
    (!frame.iter().fold(!0, by_byte)).to_le_bytes()
}

/// Returns the bytes on the wire of a frame of this length, from its preamble to its FCS.
pub const fn wire_bytes(length: usize) -> usize {
    PREAMBLE_BYTES + 1 + length + FCS_BYTES
}

/// Way in which a frame is damaged on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// A wrong FCS.
    Fcs,
    /// An error at this byte of the frame.
    Error(usize),
    /// The wire ends with this byte of the frame, without FCS.
    Cut(usize),
    /// No padding: shorter than 64 bytes with FCS, if the frame is short.
    Runt,
    /// Another byte in place of the start delimiter.
    Start,
}

/// Bytes on the wire without a pause: a frame with preamble and FCS, or what is left of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// The bytes, at least one.
    pub bytes: Vec<u8>,
    /// Index of the byte with `rx_er`.
    pub error_at: Option<usize>,
    /// Cycles without a byte behind it, at least one.
    pub gap: usize,
}

impl Carrier {
    /// Returns a frame with preamble, padding and FCS, and the gap behind it.
    pub fn of(frame: &[u8], damage: Option<Damage>) -> Carrier {
        let mut padded = frame.to_vec();
        if damage != Some(Damage::Runt) {
            padded.resize(frame.len().max(FRAME_BYTES_MIN), 0);
        }
        let mut tail = fcs(&padded);
        if damage == Some(Damage::Fcs) {
            tail = tail.map(|byte| !byte);
        }
        let start = if damage == Some(Damage::Start) { PREAMBLE } else { SFD };
        let before = PREAMBLE_BYTES + 1;
        let mut bytes = [&[PREAMBLE; PREAMBLE_BYTES][..], &[start], &padded, &tail].concat();
        let mut error_at = None;
        match damage {
            Some(Damage::Error(at)) => error_at = Some(before + at.min(padded.len() - 1)),
            Some(Damage::Cut(at)) => bytes.truncate(before + at.min(padded.len())),
            Some(Damage::Fcs | Damage::Runt | Damage::Start) | None => {}
        }
        Carrier { bytes, error_at, gap: GAP_BYTES }
    }

    /// Returns the frame with its padding, if this is a whole one.
    pub fn frame(&self) -> &[u8] {
        let end = self.bytes.len().saturating_sub(FCS_BYTES);
        self.bytes.get(PREAMBLE_BYTES + 1..end).unwrap_or_default()
    }
}

/// Sending end of a wire: frames in order, as pins.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    waiting: VecDeque<Carrier>,
    /// Bytes of the first frame that have been sent.
    sent: usize,
    /// Bytes of the gap that are left.
    gap: usize,
}

impl Sender {
    /// Appends bytes, which follow those before them as soon as the gap allows.
    pub fn push(&mut self, carrier: Carrier) {
        self.waiting.push_back(carrier);
    }

    /// Returns whether nothing is to be sent, not even a gap.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.gap == 0
    }

    /// Returns the bytes that are to be sent, without gaps.
    pub fn backlog(&self) -> usize {
        self.waiting.iter().map(|carrier| carrier.bytes.len()).sum::<usize>() - self.sent
    }

    /// Cuts the wire: the bytes on it end here, but not before the first of a frame. Removes what
    /// has not begun, and returns it.
    pub fn cut(&mut self) -> VecDeque<Carrier> {
        let removed = self.waiting.split_off(usize::from(self.sent > 0));
        if let Some(carrier) = self.waiting.front_mut() {
            carrier.bytes.truncate(self.sent.max(PREAMBLE_BYTES + 2));
        }
        self.end_frame();
        removed
    }

    /// Returns the pins in the next cycle: the byte and whether it is in error; `None` in a gap.
    #[inline]
    pub fn step(&mut self) -> Option<(u8, bool)> {
        if self.gap > 0 {
            self.gap -= 1;
            return None;
        }
        let carrier = self.waiting.front()?;
        let byte = (carrier.bytes[self.sent], carrier.error_at == Some(self.sent));
        self.sent += 1;
        self.end_frame();
        Some(byte)
    }

    /// Begins the gap if the first frame has been sent.
    fn end_frame(&mut self) {
        let is_over = |carrier: &Carrier| self.sent >= carrier.bytes.len();
        if self.waiting.front().is_some_and(is_over)
            && let Some(carrier) = self.waiting.pop_front()
        {
            (self.sent, self.gap) = (0, carrier.gap);
        }
    }
}

/// A frame that was received from the pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The frame with its padding, without FCS.
    pub frame: Vec<u8>,
    /// True if its FCS is correct and no byte was in error.
    pub intact: bool,
    /// True if it began with a whole preamble and the gap before it was long enough.
    pub well_spaced: bool,
}

/// Receiving end of a wire.
#[derive(Clone, Debug)]
pub struct Receiver {
    bytes: Vec<u8>,
    has_error: bool,
    /// Bytes since the last frame, at most [`GAP_BYTES`].
    gap: usize,
}

impl Default for Receiver {
    fn default() -> Receiver {
        Receiver { bytes: Vec::new(), has_error: false, gap: GAP_BYTES }
    }
}

impl Receiver {
    /// Returns whether no frame is on the wire.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes this many cycles without a byte, while no frame is on the wire.
    pub fn idle(&mut self, cycles: u64) {
        self.gap = cycles.saturating_add(self.gap as u64).min(GAP_BYTES as u64) as usize;
    }

    /// Takes the pins of one cycle: a byte and whether it is in error, or `None` without. Returns
    /// the frame that has ended with this cycle.
    #[inline]
    pub fn step(&mut self, byte: Option<(u8, bool)>) -> Option<Received> {
        if let Some((byte, is_error)) = byte {
            self.bytes.push(byte);
            self.has_error |= is_error;
            return None;
        }
        if self.bytes.is_empty() {
            self.gap = (self.gap + 1).min(GAP_BYTES);
            return None;
        }
        let received = self.end();
        (self.has_error, self.gap) = (false, 1);
        self.bytes.clear();
        Some(received)
    }

    fn end(&self) -> Received {
        let start = self.bytes.iter().position(|&byte| byte != PREAMBLE).unwrap_or(0);
        let is_start = start == PREAMBLE_BYTES && self.bytes[start] == SFD;
        let body = &self.bytes[(start + 1).min(self.bytes.len())..];
        let (frame, tail) = body.split_at(body.len().saturating_sub(FCS_BYTES));
        Received {
            frame: frame.to_vec(),
            intact: tail == fcs(frame) && !self.has_error && is_start,
            well_spaced: is_start && self.gap >= GAP_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over_a_wire(sender: &mut Sender) -> Vec<Received> {
        let (mut receiver, mut all) = (Receiver::default(), Vec::new());
        while !sender.is_idle() || !receiver.is_idle() {
            all.extend(receiver.step(sender.step()));
        }
        all
    }

    #[test]
    fn the_fcs_is_that_of_the_standard() {
        // The check value of CRC-32: that of the digits 1 to 9.
        assert_eq!(fcs(b"123456789"), 0xcbf4_3926_u32.to_le_bytes());
    }

    #[test]
    fn frames_arrive_padded_and_in_order() {
        let mut sender = Sender::default();
        let long: Vec<u8> = (0..200).collect();
        sender.push(Carrier::of(&[1, 2, 3], None));
        sender.push(Carrier::of(&long, None));
        let all = over_a_wire(&mut sender);
        let mut short = vec![0; 60];
        short[..3].copy_from_slice(&[1, 2, 3]);
        let frames: Vec<_> = all.iter().map(|one| one.frame.clone()).collect();
        assert_eq!(frames, [short, long]);
        assert!(all.iter().all(|one| one.intact && one.well_spaced));
    }

    #[test]
    fn damage_is_noticed() {
        for damage in [Damage::Fcs, Damage::Error(5), Damage::Cut(30), Damage::Start] {
            let mut sender = Sender::default();
            sender.push(Carrier::of(&[7; 80], Some(damage)));
            assert!(over_a_wire(&mut sender).iter().all(|one| !one.intact), "{damage:?}");
        }
    }

    #[test]
    fn a_wire_that_is_cut_breaks_its_frame_and_loses_those_behind_it() {
        let mut sender = Sender::default();
        sender.push(Carrier::of(&[7; 80], None));
        sender.push(Carrier::of(&[8; 80], None));
        let mut receiver = Receiver::default();
        for _ in 0..40 {
            assert_eq!(receiver.step(sender.step()), None);
        }
        let removed = sender.cut();
        assert_eq!(removed.iter().map(Carrier::frame).collect::<Vec<_>>(), [[8; 80]]);
        let broken = receiver.step(sender.step()).expect("the wire is idle");
        assert!(!broken.intact);
        assert!(Sender::default().cut().is_empty());
    }
}
