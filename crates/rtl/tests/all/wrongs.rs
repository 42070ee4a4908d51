//! Wrong events on a wire: bytes that are no frame, damaged frames, and frames that lie.

use crate::fates::FRAME_BYTES_MIN;
use crate::frames::Frames;
use axon_node::PortKind;
use axon_rtl::gmii::{Carrier, Damage};

const PREAMBLE: u8 = 0x55;
const PREAMBLE_BYTES: u64 = 7;
/// Shortest gap in front of a frame that the device takes, in cycles.
const GAP_MIN: usize = 4;

/// Kinds of events.
pub const WRONGS: [Wrong; 16] = [
    Wrong::NoStart,
    Wrong::ShortPreamble,
    Wrong::LongPreamble,
    Wrong::BrokenPreamble,
    Wrong::Noise,
    Wrong::Gap,
    Wrong::Runt,
    Wrong::Cut,
    Wrong::Fragments,
    Wrong::Oversized,
    Wrong::Giant,
    Wrong::Fcs,
    Wrong::Error,
    Wrong::Counts,
    Wrong::LongHeader,
    Wrong::Garbage,
];

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// Another byte in place of the start delimiter.
    NoStart,
    /// 0 to 6 bytes of preamble.
    ShortPreamble,
    /// More than 7 bytes of preamble.
    LongPreamble,
    /// Another byte in the preamble.
    BrokenPreamble,
    /// Random bytes.
    Noise,
    /// A gap that is too short behind a good frame, and a second frame behind it.
    Gap,
    /// Fewer than 64 bytes with FCS, which is right.
    Runt,
    /// The end is missing.
    Cut,
    /// Up to eight beginnings of frames, as close to each other as the device takes them.
    Fragments,
    /// Longer than a frame of hosts may be.
    Oversized,
    /// Longer than any frame that is let in.
    Giant,
    /// Wrong FCS.
    Fcs,
    /// One byte with `rx_er`.
    Error,
    /// Other counts of hops, or another length of the header, than the header has.
    Counts,
    /// A header that is longer than the frame.
    LongHeader,
    /// Random bytes with a right FCS.
    Garbage,
}

/// Limits on the length of a frame, as set in the registers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest frame of hosts.
    pub frame_bytes: usize,
    /// Longest frame that is let in.
    pub bytes: usize,
}

/// Returns one event for a port of this kind: bytes on its wire.
pub fn event(frames: &mut Frames, wrong: Wrong, kind: PortKind, limits: Limits) -> Vec<Carrier> {
    let frame = frames.frame(kind, limits.frame_bytes.min(300));
    let damaged = |damage| vec![Carrier::of(&frame, Some(damage))];
    let mut good = Carrier::of(&frame, None);
    match wrong {
        Wrong::NoStart => return damaged(Damage::Start),
        Wrong::ShortPreamble => {
            good.bytes.drain(..1 + frames.below(PREAMBLE_BYTES) as usize);
        }
        Wrong::LongPreamble => {
            let more = vec![PREAMBLE; 1 + frames.below(40) as usize];
            good.bytes.splice(..0, more);
        }
        Wrong::BrokenPreamble => {
            good.bytes[frames.below(PREAMBLE_BYTES) as usize] = frames.below(256) as u8;
        }
        Wrong::Noise => good.bytes = frames.bytes(1, 200),
        Wrong::Gap => {
            good.gap = 1 + frames.below(GAP_MIN as u64 - 1) as usize;
            let next = frames.frame(kind, limits.frame_bytes.min(300));
            return vec![good, Carrier::of(&next, None)];
        }
        Wrong::Runt => {
            let frame = &frame[..frames.below(FRAME_BYTES_MIN as u64) as usize];
            return vec![Carrier::of(frame, Some(Damage::Runt))];
        }
        Wrong::Cut => return damaged(Damage::Cut(frames.below(frame.len() as u64) as usize)),
        Wrong::Fragments => return fragments(frames, &good),
        Wrong::Oversized => {
            let least = limits.frame_bytes + 1;
            let more = frames.bytes(least - 60, limits.bytes - 60);
            return vec![Carrier::of(&[&frame[..60], &more[..]].concat(), None)];
        }
        Wrong::Giant => {
            let more = frames.bytes(limits.bytes + 1 - 60, limits.bytes + 100 - 60);
            return vec![Carrier::of(&[&frame[..60], &more[..]].concat(), None)];
        }
        Wrong::Fcs => return damaged(Damage::Fcs),
        Wrong::Error => good.error_at = Some(frames.below(good.bytes.len() as u64) as usize),
        Wrong::Counts => return vec![Carrier::of(&with_wrong_counts(frames, frame), None)],
        Wrong::LongHeader => return vec![Carrier::of(&with_long_header(frames, frame), None)],
        Wrong::Garbage => {
            let mut frame = frames.bytes(FRAME_BYTES_MIN, limits.bytes.min(300));
            frame[12..14].copy_from_slice(&[8, 0]);
            return vec![Carrier::of(&frame, None)];
        }
    }
    vec![good]
}

/// Returns up to eight beginnings of the bytes of `good`, as close as a receiver takes them.
fn fragments(frames: &mut Frames, good: &Carrier) -> Vec<Carrier> {
    let fragment = |frames: &mut Frames| {
        let mut cut = good.clone();
        cut.bytes.drain(..frames.below(PREAMBLE_BYTES) as usize);
        cut.bytes.truncate(1 + frames.below(24) as usize);
        cut.gap = GAP_MIN + frames.below(3) as usize;
        cut
    };
    let mut all: Vec<_> = (0..1 + frames.below(8)).map(|_| fragment(frames)).collect();
    all.last_mut().expect("one at least").gap = good.gap;
    all
}

/// Returns the frame with a length or numbers of hops that are not its own.
fn with_wrong_counts(frames: &mut Frames, mut frame: Vec<u8>) -> Vec<u8> {
    for (first, nibbles) in [(1, 4), (5, 3), (8, 3)] {
        if frames.one_in(2) {
            let value = nibbles_of(&frame, first, nibbles);
            let value = match frames.below(4) {
                0 => 0,
                1 => value + 1,
                2 => value.saturating_sub(1),
                _ => frames.below(4096),
            };
            set_nibbles(&mut frame, first, nibbles, value);
        }
    }
    frame
}

/// Returns the frame, short, with a header that claims to be longer.
fn with_long_header(frames: &mut Frames, mut frame: Vec<u8>) -> Vec<u8> {
    frame.truncate(60 + frames.below(20) as usize);
    let hops = frame.len() as u64 + frames.below(100);
    set_nibbles(&mut frame, 0, 1, 1);
    set_nibbles(&mut frame, 5, 3, hops);
    set_nibbles(&mut frame, 8, 3, 0);
    let header_bytes = frames.width().header_bytes(hops as usize);
    set_nibbles(&mut frame, 1, 4, header_bytes as u64);
    frame
}

/// Returns the number in the nibbles of a frame from `first` on.
fn nibbles_of(frame: &[u8], first: usize, nibbles: usize) -> u64 {
    let nibble = |at: usize| u64::from(frame[at / 2] >> (4 * (1 - at % 2)) & 0xf);
    (first..first + nibbles).fold(0, |value, at| value << 4 | nibble(at))
}

fn set_nibbles(frame: &mut [u8], first: usize, nibbles: usize, value: u64) {
    for (at, power) in (first..first + nibbles).rev().zip(0..) {
        let (shift, nibble) = (4 * (1 - at % 2), (value >> (4 * power) & 0xf) as u8);
        frame[at / 2] = frame[at / 2] & !(0xf << shift) | nibble << shift;
    }
}
