//! Explicit congestion notification for IP (RFC 3168): marking decision and marking.
//!
//! A growing queue can signal congestion to ECN-capable sources, such as TCP, by two bits of the IP
//! header instead of losing a frame. [`Ecn`] selects the frames: all that find more than a
//! threshold queued, as in data-center TCP, or by random early detection (RED). `mark` sets the
//! bits in an Ethernet frame, behind two VLAN tags and a CN-TAG at most. Only frames of sources
//! that have declared themselves capable (ECT) are marked; for all others the signal can only be a
//! drop, and the caller's policy decides.
//!
//! For Axon packets the caller passes the host's frame, without the Axon header.

use axon_node::random::Random;
use axon_wire::constants::ethertype::{IPV4, IPV6};
use axon_wire::vlan::{self, TAG_BYTES};
use axon_wire::{Bytes, Span, Time, cn};

const IPV4_BYTES_MIN: usize = 20;
const IPV6_BYTES: usize = 40;
/// 1.0 in fixed point, for probabilities and decay with 32 fractional bits.
const ONE: u64 = 1 << 32;

/// ECN codepoint, two bits (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codepoint {
    /// 00: not ECN-capable.
    NotEct,
    /// 01: ECN-capable.
    Ect1,
    /// 10: ECN-capable.
    Ect0,
    /// 11: congestion was experienced.
    Ce,
}

/// Result of `mark`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// The frame was ECT and is now CE.
    Marked,
    /// The frame was CE before.
    Already,
    /// The source is not ECN-capable, or the frame is not IP; the frame is unchanged.
    NotCapable,
}

/// Version and offset of the IP header of a frame.
enum Ip {
    V4(usize),
    V6(usize),
}

fn ip(frame: &[u8]) -> Option<Ip> {
    let (mut ethertype, mut at) = vlan::ethertype_of(frame)?;
    if ethertype == cn::ETHERTYPE_TAG {
        at += TAG_BYTES;
        ethertype = u16::from_be_bytes(*frame.get(at..)?.first_chunk()?);
    }
    let header = at + 2;
    let first = *frame.get(header)?;
    if ethertype == IPV4 && first >> 4 == 4 {
        let bytes = usize::from(first & 0xf) * 4;
        let whole = bytes >= IPV4_BYTES_MIN && frame.len() >= header + bytes;
        return whole.then_some(Ip::V4(header));
    }
    let whole = ethertype == IPV6 && first >> 4 == 6 && frame.len() >= header + IPV6_BYTES;
    whole.then_some(Ip::V6(header))
}

/// Returns the ECN codepoint of `frame`, an Ethernet frame with or without tags; `None` if it is
/// not IP or its IP header is truncated.
pub fn codepoint(frame: &[u8]) -> Option<Codepoint> {
    let bits = match ip(frame)? {
        Ip::V4(header) => frame[header + 1] & 3,
        Ip::V6(header) => frame[header + 1] >> 4 & 3,
    };
    Some([Codepoint::NotEct, Codepoint::Ect1, Codepoint::Ect0, Codepoint::Ce][usize::from(bits)])
}

/// Marks `frame` as CE if its source is ECN-capable, and updates the checksum of IPv4 by the
/// difference (RFC 1624 equation 3), so a wrong checksum stays wrong. IPv6 has none.
pub(crate) fn mark(frame: &mut [u8]) -> Marking {
    match codepoint(frame) {
        None | Some(Codepoint::NotEct) => return Marking::NotCapable,
        Some(Codepoint::Ce) => return Marking::Already,
        Some(Codepoint::Ect0 | Codepoint::Ect1) => {}
    }
    match ip(frame) {
        Some(Ip::V4(header)) => {
            let packet = &mut frame[header..];
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            let new = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            packet[10..12].copy_from_slice(&adjusted(checksum, old, new).to_be_bytes());
        }
        Some(Ip::V6(header)) => frame[header + 1] |= 0x30,
        None => {}
    }
    Marking::Marked
}

/// Returns the checksum after one word that it covers has changed from `old` to `new`.
fn adjusted(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// Condition for signalling congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Every frame that finds more than this queued (RFC 8257 section 3.1).
    Threshold(Bytes),
    /// Random, with a probability that rises with the average queue length.
    Red(Red),
}

/// Random early detection (RFC 2309; Floyd and Jacobson, 1993).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red {
    /// Average queue length below which nothing is signalled.
    pub queue_min: Bytes,
    /// Average queue length from which every frame is signalled, with `gentle` from twice this on.
    pub queue_max: Bytes,
    /// Fraction of frames signalled just below `queue_max`, in thousandths, 1..=1000.
    pub permille_max: u16,
    /// Weight of each frame's queue length in the average: 2^-this, 0..=32.
    pub weight_log2: u8,
    /// True if the fraction rises gradually between `queue_max` and its double, without a jump.
    pub gentle: bool,
    /// True if frames are dropped where every frame is signalled, even if their source supports
    /// ECN: earlier signals have not slowed it down.
    pub drop_over_max: bool,
    /// Transmission time of a typical frame, not zero: an idle time counts as so many frames of an
    /// empty queue.
    pub frame_time: Span,
}

/// Errors in the configuration of RED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EcnError {
    /// The range of the average is empty.
    #[error("RED from {} to {} bytes", .0.0, .1.0)]
    Range(Bytes, Bytes),
    /// The fraction is outside 1..=1000.
    #[error("{0} thousandths of all frames, where 1 to 1000 was expected")]
    Permille(u16),
    /// The weight is so small that the average would never change.
    #[error("an average of weight 2^-{0}, where 2^-32 is the least")]
    Weight(u8),
    /// The frame time is zero.
    #[error("a frame that takes no time to leave")]
    FrameTime,
}

impl Profile {
    /// Checks the configuration.
    ///
    /// # Errors
    /// A value of RED outside its range.
    pub fn check(&self) -> Result<(), EcnError> {
        match self {
            Profile::Threshold(_) => Ok(()),
            Profile::Red(red) => red.check(),
        }
    }
}

impl Red {
    fn check(&self) -> Result<(), EcnError> {
        if self.queue_min >= self.queue_max {
            return Err(EcnError::Range(self.queue_min, self.queue_max));
        }
        if !(1..=1000).contains(&self.permille_max) {
            return Err(EcnError::Permille(self.permille_max));
        }
        if self.weight_log2 > 32 {
            return Err(EcnError::Weight(self.weight_log2));
        }
        if self.frame_time == Span::ZERO {
            return Err(EcnError::FrameTime);
        }
        Ok(())
    }

    /// Returns the fraction of signalled frames at an average of `average` bytes, in 1/[`ONE`].
    fn share(&self, average: u128) -> u64 {
        let (min, max) = (u128::from(self.queue_min.0), u128::from(self.queue_max.0));
        let one = u128::from(ONE);
        let most = one * u128::from(self.permille_max) / 1_000;
        let share = if average < min {
            0
        } else if average < max {
            most * (average - min) / (max - min)
        } else if self.gentle && average < 2 * max {
            most + (one - most) * (average - max) / max
        } else {
            one
        };
        share as u64
    }
}

/// Signal of the queue for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    None,
    /// A mark where possible.
    Soft,
    /// A drop.
    Hard,
}

/// Handling of a frame to be marked whose source does not support ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCapable {
    /// Drop it, as in RFC 3168 section 5.
    Drop,
    /// Pass it: for a class that must be lossless.
    Pass,
}

/// Decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Queue the frame unchanged.
    Pass,
    /// Queue the frame, which is CE, marked now or before.
    Marked,
    /// Drop the frame.
    Drop,
}

/// Average length of a queue, and the RED decision based on it.
///
/// The average has `weight_log2` fractional bits: the current length is added and the average
/// itself subtracted, without multiplication or loss of precision. A queue that was empty for a
/// while counts as so many frames that found it empty. The fraction of signalled frames rises from
/// `queue_min` to `queue_max`. So that signals are evenly spaced, and not bunched as independent
/// draws would be, the fraction is raised with every frame that passes: the gaps between signals
/// are then equally likely from one frame to the inverse of the fraction.
#[derive(Clone, Debug)]
struct Average {
    /// Average in bytes, with `weight_log2` fractional bits.
    scaled: u128,
    /// Frames passed since the last signal while the average required signals.
    passed: u64,
    idle_since: Option<Time>,
}

impl Average {
    fn update(&mut self, red: &Red, now: Time, queue: Bytes) {
        if let Some(since) = self.idle_since.take() {
            let frames = now.since(since).ticks() / red.frame_time.ticks();
            let kept = power(ONE - (ONE >> red.weight_log2), frames);
            self.scaled = scaled_down(self.scaled, kept);
        }
        self.scaled = self.scaled + u128::from(queue.0) - (self.scaled >> red.weight_log2);
    }

    fn signal(&mut self, red: &Red, random: &mut Random) -> Signal {
        let share = red.share(self.scaled >> red.weight_log2);
        let signalled = match share {
            0 => {
                self.passed = 0;
                return Signal::None;
            }
            ONE => true,
            share => {
                let left =
                    u128::from(ONE).saturating_sub(u128::from(self.passed) * u128::from(share));
                u128::from(random.next_u32()) * left < u128::from(share) << 32
            }
        };
        self.passed = if signalled { 0 } else { self.passed.saturating_add(1) };
        match (signalled, share) {
            (false, _) => Signal::None,
            (true, ONE) if red.drop_over_max => Signal::Hard,
            (true, _) => Signal::Soft,
        }
    }
}

/// Returns `base` to the power of `exponent`, both base and result in 1/[`ONE`], rounded down.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = scaled_down(result.into(), base) as u64;
        }
        base = scaled_down(base.into(), base) as u64;
        exponent >>= 1;
    }
    result
}

/// Returns `value * part`, with `part` in 1/[`ONE`], rounded down.
fn scaled_down(value: u128, part: u64) -> u128 {
    let part = u128::from(part);
    (value >> 32) * part + (((value & u128::from(u32::MAX)) * part) >> 32)
}

/// ECN marker of one queue.
#[derive(Clone, Debug)]
pub struct Ecn {
    profile: Profile,
    not_capable: NotCapable,
    average: Average,
    random: Random,
}

impl Ecn {
    /// Returns the marker of an empty queue; `seed` fixes the random numbers of RED.
    ///
    /// # Errors
    /// A value of RED outside its range.
    pub(crate) fn new(
        profile: Profile,
        not_capable: NotCapable,
        seed: u64,
    ) -> Result<Ecn, EcnError> {
        profile.check()?;
        let average = Average { scaled: 0, passed: 0, idle_since: None };
        Ok(Ecn { profile, not_capable, average, random: Random::new(seed) })
    }

    /// Decides about `frame`, an Ethernet frame that joins the queue at `now` with `queue` bytes in
    /// it, and marks it if required.
    pub(crate) fn arrives(&mut self, now: Time, queue: Bytes, frame: &mut [u8]) -> Verdict {
        match self.signal(now, queue) {
            Signal::None => Verdict::Pass,
            Signal::Hard => Verdict::Drop,
            Signal::Soft => match (mark(frame), self.not_capable) {
                (Marking::Marked | Marking::Already, _) => Verdict::Marked,
                (Marking::NotCapable, NotCapable::Drop) => Verdict::Drop,
                (Marking::NotCapable, NotCapable::Pass) => Verdict::Pass,
            },
        }
    }

    /// Records that the last frame has left the queue at `now`.
    pub(crate) fn emptied(&mut self, now: Time) {
        self.average.idle_since.get_or_insert(now);
    }

    /// Returns the average length of RED, rounded down; zero for a threshold, which has none.
    #[cfg(test)]
    pub(crate) fn average(&self) -> Bytes {
        match self.profile {
            Profile::Threshold(_) => Bytes(0),
            Profile::Red(red) => {
                let average = self.average.scaled >> red.weight_log2;
                Bytes(u64::try_from(average).unwrap_or(u64::MAX))
            }
        }
    }

    fn signal(&mut self, now: Time, queue: Bytes) -> Signal {
        match self.profile {
            Profile::Threshold(threshold) if queue > threshold => Signal::Soft,
            Profile::Threshold(_) => Signal::None,
            Profile::Red(red) => {
                self.average.update(&red, now, queue);
                self.average.signal(&red, &mut self.random)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const TAGGED: &[&[u8]] = &[
        &[],
        &[0x81, 0x00, 0x60, 0x64],
        &[0x88, 0xa8, 0x00, 0x05, 0x81, 0x00, 0x60, 0x64],
        &[0x81, 0x00, 0x60, 0x64, 0x22, 0xe9, 0x12, 0x34],
    ];

    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// Returns a frame with `tags`, an IPv4 header of `words` words and some payload.
    fn ipv4(tags: &[u8], words: u8, ecn: u8) -> Vec<u8> {
        let mut frame = alloc::vec![0xee; 12];
        frame.extend_from_slice(tags);
        frame.extend_from_slice(&IPV4.to_be_bytes());
        let header = frame.len();
        let bytes = usize::from(words) * 4;
        frame.extend((0..bytes as u8).map(|index| index.wrapping_mul(37)));
        frame[header] = 0x40 | words;
        frame[header + 1] = 0xa8 | ecn;
        frame[header + 10..header + 12].fill(0);
        let checksum = !sum(&frame[header..]);
        frame[header + 10..header + 12].copy_from_slice(&checksum.to_be_bytes());
        frame.extend_from_slice(&[0x55; 40]);
        frame
    }

    fn ipv6(tags: &[u8], ecn: u8) -> Vec<u8> {
        let mut frame = alloc::vec![0xee; 12];
        frame.extend_from_slice(tags);
        frame.extend_from_slice(&IPV6.to_be_bytes());
        frame.extend_from_slice(&[0x6a, 0x8f | ecn << 4]);
        frame.extend_from_slice(&[0x77; 60]);
        frame
    }

    #[test]
    fn a_capable_ipv4_frame_is_marked_behind_any_tags_and_its_checksum_holds() {
        for tags in TAGGED {
            for ecn in [1, 2] {
                let mut frame = ipv4(tags, 6, ecn);
                let before = frame.clone();
                assert_eq!(mark(&mut frame), Marking::Marked);
                assert_eq!(codepoint(&frame), Some(Codepoint::Ce));
                let header = 14 + tags.len();
                assert_eq!(sum(&frame[header..header + 24]), 0xffff);
                assert_eq!(frame[header + 1], 0xab, "the DSCP stays");
                let changed = (0..frame.len()).filter(|at| frame[*at] != before[*at]);
                assert!(changed.into_iter().all(|at| [1, 10, 11].contains(&(at - header))));
                assert_eq!(mark(&mut frame), Marking::Already);
            }
        }
    }

    #[test]
    fn a_capable_ipv6_frame_is_marked_in_its_traffic_class() {
        for tags in TAGGED {
            for ecn in [1, 2] {
                let mut frame = ipv6(tags, ecn);
                let mut expected = ipv6(tags, 3);
                assert_eq!(mark(&mut frame), Marking::Marked);
                assert_eq!(frame, expected);
                assert_eq!(mark(&mut expected), Marking::Already);
            }
        }
    }

    #[test]
    fn what_is_not_capable_or_not_whole_is_left_as_it_is() {
        let mut not_whole = ipv4(&[], 5, 2);
        not_whole.truncate(33);
        let mut other_version = ipv4(&[], 5, 2);
        other_version[14] = 0x65;
        let mut short_header = ipv4(&[], 5, 2);
        short_header[14] = 0x44;
        let mut arp = ipv4(&[], 5, 2);
        arp[13] = 0x06;
        let mut ipv6_cut = ipv6(&[], 2);
        ipv6_cut.truncate(53);
        let frames = [not_whole, other_version, short_header, arp, ipv6_cut];
        assert!(frames.iter().all(|frame| codepoint(frame).is_none()));
        for mut frame in frames.into_iter().chain([ipv4(&[], 5, 0), ipv6(&[], 0), Vec::new()]) {
            let before = frame.clone();
            assert_eq!(mark(&mut frame), Marking::NotCapable);
            assert_eq!(frame, before);
        }
    }

    fn red() -> Red {
        Red {
            queue_min: Bytes(50_000),
            queue_max: Bytes(150_000),
            permille_max: 100,
            weight_log2: 9,
            gentle: false,
            drop_over_max: false,
            frame_time: Span::from_nanos(1_200),
        }
    }

    fn marker(profile: Profile) -> Ecn {
        Ecn::new(profile, NotCapable::Drop, 1).unwrap()
    }

    fn verdict(ecn: &mut Ecn, queue: u64, codepoint: u8) -> Verdict {
        ecn.arrives(Time::ZERO, Bytes(queue), &mut ipv4(&[], 5, codepoint))
    }

    /// Returns the gaps between marks, in frames, of a queue with constant length `queue`.
    fn gaps(red: Red, queue: u64, frames: usize) -> Vec<usize> {
        let mut ecn = marker(Profile::Red(red));
        ecn.average.scaled = u128::from(queue) << red.weight_log2;
        let marked: Vec<usize> =
            (0..frames).filter(|_| ecn.signal(Time::ZERO, Bytes(queue)) != Signal::None).collect();
        marked.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn a_threshold_marks_whatever_meets_more_and_drops_what_cannot_be_marked() {
        let mut ecn = marker(Profile::Threshold(Bytes(30_000)));
        assert_eq!(verdict(&mut ecn, 30_000, 2), Verdict::Pass);
        assert_eq!(verdict(&mut ecn, 30_001, 2), Verdict::Marked);
        assert_eq!(verdict(&mut ecn, 30_001, 3), Verdict::Marked);
        assert_eq!(verdict(&mut ecn, 30_001, 0), Verdict::Drop);
        let threshold = Profile::Threshold(Bytes(30_000));
        let mut lossless = Ecn::new(threshold, NotCapable::Pass, 1).unwrap();
        assert_eq!(verdict(&mut lossless, 30_001, 0), Verdict::Pass);
    }

    #[test]
    fn red_marks_evenly_the_share_that_belongs_to_the_average() {
        assert!(gaps(red(), 49_999, 10_000).is_empty());
        let middle = gaps(red(), 100_000, 100_000);
        let mean = middle.iter().sum::<usize>() as u64 * 100 / middle.len() as u64;
        assert!((1_000..=1_100).contains(&mean), "{mean}: evenly from 1 to 20 frames");
        assert!(middle.iter().all(|gap| (1..=20).contains(gap)));
        assert!(gaps(red(), 150_000, 1_000).iter().all(|gap| *gap == 1));
    }

    #[test]
    fn a_gentle_red_goes_on_to_twice_the_maximum() {
        let gentle = Red { gentle: true, ..red() };
        let share = |average: u128| gentle.share(average) * 1_000 / ONE;
        assert_eq!([100_000, 150_000, 225_000, 300_000].map(share), [49, 99, 549, 1_000]);
        assert_eq!(red().share(150_000), ONE);
    }

    #[test]
    fn over_the_maximum_even_those_that_listen_are_dropped_if_so_configured() {
        for (drop_over_max, expected) in [(false, Verdict::Marked), (true, Verdict::Drop)] {
            let mut ecn = marker(Profile::Red(Red { drop_over_max, weight_log2: 0, ..red() }));
            assert_eq!(verdict(&mut ecn, 200_000, 2), expected);
        }
    }

    #[test]
    fn the_average_follows_slowly_and_arrives_exactly() {
        let mut ecn = marker(Profile::Red(red()));
        ecn.signal(Time::ZERO, Bytes(51_200));
        assert_eq!(ecn.average(), Bytes(100), "1/512 of the way");
        for (queue, arrived) in [(51_200, 51_200), (7, 7)] {
            for _ in 0..20_000 {
                ecn.signal(Time::ZERO, Bytes(queue));
            }
            assert_eq!(ecn.average(), Bytes(arrived));
        }
    }

    #[test]
    fn an_idle_time_counts_as_the_frames_that_it_had_room_for() {
        let (mut idle, mut busy) = (marker(Profile::Red(red())), marker(Profile::Red(red())));
        for ecn in [&mut idle, &mut busy] {
            ecn.average.scaled = 100_000 << 9;
        }
        idle.emptied(Time::ZERO);
        idle.emptied(Time::from_nanos(1_000_000));
        idle.signal(Time::from_nanos(1_200 * 700), Bytes(0));
        for _ in 0..701 {
            busy.signal(Time::ZERO, Bytes(0));
        }
        let (idle, busy) = (idle.average().0, busy.average().0);
        assert!((25_000..26_000).contains(&busy) && idle.abs_diff(busy) <= 1, "{idle} {busy}");
    }

    #[test]
    fn values_outside_their_ranges_are_refused() {
        let refused = |red| Ecn::new(Profile::Red(red), NotCapable::Drop, 0).unwrap_err();
        let (min, max) = (Bytes(50_000), Bytes(50_000));
        assert_eq!(refused(Red { queue_max: max, ..red() }), EcnError::Range(min, max));
        assert_eq!(refused(Red { permille_max: 0, ..red() }), EcnError::Permille(0));
        assert_eq!(refused(Red { permille_max: 1_001, ..red() }), EcnError::Permille(1_001));
        assert_eq!(refused(Red { weight_log2: 33, ..red() }), EcnError::Weight(33));
        assert_eq!(refused(Red { frame_time: Span::ZERO, ..red() }), EcnError::FrameTime);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_and_only_a_mark_changes_them(
            mut frame in prop::collection::vec(any::<u8>(), 0..80),
            tags in 0usize..4, ip in 0usize..3,
        ) {
            let kind = [IPV4, IPV6, 0x0806][ip].to_be_bytes();
            let start: Vec<u8> = [TAGGED[tags], &kind[..]].concat();
            for (at, byte) in start.iter().enumerate() {
                if let Some(place) = frame.get_mut(12 + at) {
                    *place = *byte;
                }
            }
            let before = frame.clone();
            let marking = mark(&mut frame);
            prop_assert_eq!(marking == Marking::Marked, frame != before);
            if marking == Marking::Marked {
                prop_assert_eq!(codepoint(&frame), Some(Codepoint::Ce));
            }
        }

        #[test]
        fn the_checksum_by_difference_is_the_checksum(
            words in 5u8..=15, fill: [u8; 60], ecn in 1u8..=2,
        ) {
            let mut frame = ipv4(&[], words, ecn);
            let bytes = usize::from(words) * 4;
            for at in (2..10).chain(12..bytes) {
                frame[14 + at] = fill[at];
            }
            frame[24..26].fill(0);
            let checksum = !sum(&frame[14..14 + bytes]);
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
            prop_assert_eq!(mark(&mut frame), Marking::Marked);
            prop_assert_eq!(sum(&frame[14..14 + bytes]), 0xffff);
        }

        #[test]
        fn any_queue_and_time_is_taken(
            queues in prop::collection::vec(any::<(u64, u64, bool)>(), 1..50),
            weight_log2 in 0u8..=32, gentle: bool, min in 0u64..u64::MAX, frame_ticks in 1u64..,
        ) {
            let red = Red {
                queue_min: Bytes(min), queue_max: Bytes(u64::MAX), weight_log2, gentle,
                frame_time: Span::from_ticks(frame_ticks), ..red()
            };
            let mut ecn = marker(Profile::Red(red));
            for (now, queue, empty) in queues {
                let now = Time::from_ticks(now);
                if empty {
                    ecn.emptied(now);
                }
                let old = ecn.average();
                ecn.signal(now, Bytes(queue));
                prop_assert!(ecn.average() <= old.max(Bytes(queue)) + Bytes(1));
            }
        }
    }
}
