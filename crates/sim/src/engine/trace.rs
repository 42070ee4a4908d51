//! The trace: everything that happened, folded into one hash.
//!
//! Each station folds its own occurrences, in order, into a hash. The hash of the world combines
//! the hashes of all stations, in the order of stations. It is as conclusive as a hash over the one
//! order of events, since the behaviour of a station depends on what reached it and when. Yet it
//! does not depend on the number of threads.
//!
//! An event is hashed by time, port, kind and detail. A frame is hashed by its length and by XXH3
//! (64 bits) of its bytes. At hosts and other ends, a frame that is sent, lost or dropped is hashed
//! by its first 64 bytes and, separately, by the rest, so that a rest that is only described is
//! hashed once. A frame that arrives there is hashed by its first 64 bytes only. So is a frame that
//! a switch or a controller sends, loses or drops, since only the head changes in transit. A frame
//! that arrives at a switch is hashed by its length alone: its bytes are those sent. A bit flipped
//! by a link is hashed by its position. The same fabric and seed give the same hash on every
//! machine.
//!
//! On request the same events are also written as lines of text, ordered by time, then station,
//! then occurrence at the station. A line shows XXH3 of all bytes of a frame.

use crate::link::links::Loss;
use axon_fabric::model::FaultKind;
use axon_node::{Drop, Note};
use axon_wire::{Contents, Filling, PortNo, Time};
use std::fmt::Write as _;
use std::io::Write;
use xxhash_rust::xxh3::xxh3_64;

/// Leading bytes of each sent frame that a line of text shows, and that are hashed in transit.
const HEAD_BYTES: usize = 64;
/// Station number of the world itself in lines; sorts last at its instant.
const WORLD: u32 = u32::MAX;
/// Odd constants without a pattern, for mixing.
const MIX: [u64; 3] = [0xa0c4_3e6d_9b17_f25d, 0xd6e8_feb8_6659_fd93, 0x8f3b_51c2_e07d_4a69];

/// Occurrence at a station.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// The station sent a frame.
    Sent(Contents<'a>),
    /// A frame arrived.
    Received(Contents<'a>),
    /// The link lost a frame sent from or to the station.
    Lost(Loss, Contents<'a>),
    /// The link flips a bit of the last sent frame; the bit's position counts from the first bit.
    Flipped(u64),
    /// The station dropped a frame.
    Dropped(Drop, Contents<'a>),
    /// Carrier was gained or lost.
    Carrier(bool),
    /// An incarnation started, or the station lost power.
    Power(Option<u64>),
    /// The node left a note.
    Note(&'a Note),
    /// A planned fault or repair.
    Fault(FaultKind),
}

/// Hash of the occurrences at one station.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct StationTrace {
    hash: u64,
    events: u64,
    /// If set, frames that are sent, lost or dropped are hashed with all their bytes. Caches the
    /// filling of the last light frame and its hash.
    whole: Option<Box<(Filling, u64)>>,
}

impl StationTrace {
    /// Sets whether frames are hashed with all their bytes.
    pub(crate) fn set_whole(&mut self, whole: bool) {
        self.whole = whole.then(Box::default);
    }

    /// Adds one event. `port` is [`PortNo::CONTROL`] if the event has no port.
    #[inline]
    pub(crate) fn add(&mut self, time: Time, port: PortNo, what: What<'_>) {
        let (kind, detail, length) = match what {
            What::Sent(frame) => return self.sent(time, port, frame),
            What::Received(frame) => return self.received(time, port, frame),
            What::Lost(loss, frame) => {
                (3 + 256 * loss as u64, self.frame_hash(frame), frame.length())
            }
            What::Dropped(reason, frame) => {
                (4 + 256 * reason as u64, self.frame_hash(frame), frame.length())
            }
            What::Carrier(up) => (5, u64::from(up), 0),
            What::Power(incarnation) => {
                (6, incarnation.map_or(0, |incarnation| incarnation.wrapping_add(1)), 0)
            }
            What::Note(note) => (7, xxh3_64(format!("{note:?}").as_bytes()), 0),
            What::Fault(fault) => (8, xxh3_64(format!("{fault:?}").as_bytes()), 0),
            What::Flipped(bit) => (9, bit, 0),
        };
        self.fold_in(time, port, (kind, detail, length));
    }

    /// Adds a sent frame.
    #[inline]
    pub(crate) fn sent(&mut self, time: Time, port: PortNo, frame: Contents<'_>) {
        let detail = self.frame_hash(frame);
        self.fold_in(time, port, (1, detail, frame.length()));
    }

    /// Adds a received frame.
    #[inline]
    pub(crate) fn received(&mut self, time: Time, port: PortNo, frame: Contents<'_>) {
        let detail = if self.whole.is_some() { head_hash(frame.stored) } else { 0 };
        self.fold_in(time, port, (2, detail, frame.length()));
    }

    #[inline]
    fn fold_in(&mut self, time: Time, port: PortNo, what: (u64, u64, usize)) {
        let (kind, detail, length) = what;
        let place = kind << 48 | u64::from(port.0) << 32 | length as u64;
        let what = place.wrapping_mul(MIX[2]) ^ detail;
        self.hash =
            fold(self.hash ^ time.ticks() ^ MIX[0], what ^ MIX[1]).wrapping_add(self.events);
        self.events += 1;
    }

    #[inline]
    fn frame_hash(&mut self, frame: Contents<'_>) -> u64 {
        let head = head_hash(frame.stored);
        match &mut self.whole {
            Some(filled) => fold(head ^ MIX[1], rest_hash(filled, frame) ^ MIX[2]),
            None => head,
        }
    }

    /// Prefetch hint for hashing a frame with all its bytes.
    #[inline]
    pub(crate) fn prefetch(&self) -> u64 {
        self.whole.as_ref().map_or(0, |filled| filled.1)
    }

    /// Returns the number of events in the hash.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}

/// Returns the hash of the bytes after the head, or 0 if there are none. Caches the hash of the
/// last filling.
#[inline(never)]
fn rest_hash(filled: &mut (Filling, u64), frame: Contents<'_>) -> u64 {
    let rest = frame.stored.get(HEAD_BYTES..).unwrap_or_default();
    let Filling { byte, count } = frame.filling;
    if count == 0 {
        return if rest.is_empty() { 0 } else { xxh3_64(rest) };
    }
    if rest.iter().any(|&stored| stored != byte) {
        return xxh3_64(&frame.whole()[HEAD_BYTES..]);
    }
    let all = Filling { byte, count: count + rest.len() as u16 };
    if filled.0 != all {
        *filled = (all, xxh3_64(&vec![byte; all.count.into()]));
    }
    filled.1
}

#[inline]
fn head_hash(frame: &[u8]) -> u64 {
    xxh3_64(&frame[..frame.len().min(HEAD_BYTES)])
}

/// Returns both halves of the product, folded: each bit of either number affects all.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Combines the hashes of stations, in order, into that of the world.
pub(crate) fn combine<'a>(stations: impl Iterator<Item = &'a StationTrace>) -> u64 {
    let words = stations.flat_map(|trace| [trace.hash, trace.events]);
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    xxh3_64(&bytes)
}

/// Line of trace text.
#[derive(Debug)]
pub(crate) struct Line {
    time: Time,
    station: u32,
    text: String,
}

impl Line {
    /// Describes an occurrence at a station.
    pub(crate) fn new(time: Time, station: u32, name: &str, port: PortNo, what: What<'_>) -> Line {
        let mut text = format!("{time} {name}");
        let _ = match port {
            PortNo::CONTROL => Ok(()),
            port => write!(text, "-{port}"),
        };
        let _ = match what {
            What::Sent(frame) => {
                let (length, hash) = (frame.length(), xxh3_64(&frame.whole()));
                write!(text, " sent {length} B {hash:016x} {}", head(frame.stored))
            }
            What::Received(frame) => {
                write!(text, " received {} B {:016x}", frame.length(), xxh3_64(&frame.whole()))
            }
            What::Lost(loss, frame) => {
                let hash = xxh3_64(&frame.whole());
                write!(text, " lost {} {} B {hash:016x}", loss.name(), frame.length())
            }
            What::Dropped(reason, frame) => {
                let hash = xxh3_64(&frame.whole());
                write!(text, " dropped {} {} B {hash:016x}", reason.name(), frame.length())
            }
            What::Flipped(bit) => write!(text, " flipped bit {bit}"),
            What::Carrier(up) => write!(text, " carrier {}", if up { "up" } else { "down" }),
            What::Power(Some(incarnation)) => write!(text, " power on, incarnation {incarnation}"),
            What::Power(None) => write!(text, " power off"),
            What::Note(note) => write!(text, " note {note:?}"),
            What::Fault(fault) => write!(text, " fault {fault:?}"),
        };
        Line { time, station, text }
    }

    /// Describes an occurrence in the world itself.
    pub(crate) fn of_world(time: Time, what: What<'_>) -> Line {
        Line::new(time, WORLD, "world", PortNo::CONTROL, what)
    }
}

/// Returns the first bytes of a frame in hex, enough to show an ARP packet in a short route.
fn head(frame: &[u8]) -> String {
    let mut text = String::with_capacity(2 * HEAD_BYTES);
    for byte in frame.iter().take(HEAD_BYTES) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Output of the trace text.
pub struct Trace {
    out: Option<Box<dyn Write>>,
    failure: Option<std::io::Error>,
}

impl Trace {
    /// Returns a trace that writes its lines to `out`, if given.
    pub(crate) fn new(out: Option<Box<dyn Write>>) -> Trace {
        Trace { out, failure: None }
    }

    /// Returns whether lines are written.
    pub(crate) fn is_written(&self) -> bool {
        self.out.is_some()
    }

    /// Returns the error that stopped writing, if any.
    pub(crate) fn failure(&self) -> Option<&std::io::Error> {
        self.failure.as_ref()
    }

    /// Flushes buffered text.
    pub fn flush(&mut self) {
        if let Some(Err(error)) = self.out.as_mut().map(|out| out.flush()) {
            self.failure = Some(error);
        }
    }

    /// Writes lines in order. Lines of one station at one instant keep their order.
    pub(crate) fn write(&mut self, mut lines: Vec<Line>) {
        lines.sort_by_key(|line| (line.time, line.station));
        let Some(out) = &mut self.out else { return };
        for line in &lines {
            if let Err(error) = writeln!(out, "{}", line.text) {
                self.failure = Some(error);
                self.out = None;
                return;
            }
        }
    }
}

/// Takes the `lines` before `time`, keeping the order of the others.
pub(crate) fn take_before(lines: &mut Vec<Line>, time: Time) -> Vec<Line> {
    let (before, after) = std::mem::take(lines).into_iter().partition(|line| line.time < time);
    *lines = after;
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Page(Rc<RefCell<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn trace(events: &[(u64, u16, What<'_>)], whole: bool) -> StationTrace {
        let mut trace = StationTrace::default();
        trace.set_whole(whole);
        for &(nanos, port, what) in events {
            trace.add(Time::from_nanos(nanos), PortNo(port), what);
        }
        trace
    }

    fn all(bytes: &[u8]) -> Contents<'_> {
        bytes.into()
    }

    #[test]
    fn a_light_frame_enters_as_a_whole_one_does() {
        for (stored, count) in [(64, 1), (64, 1000), (68, 1000), (100, 500)] {
            for byte in [0x61, 0x62] {
                let stored = vec![0x61; stored];
                let light = Contents { stored: &stored, filling: Filling { byte, count } };
                let whole = light.whole();
                for what in [What::Sent, What::Received, |frame| What::Lost(Loss::Cut, frame)] {
                    let [light, whole] = [light, all(&whole)].map(what);
                    let light = trace(&[(5, 1, light), (6, 1, light)], true);
                    assert_eq!(light.hash, trace(&[(5, 1, whole), (6, 1, whole)], true).hash);
                }
            }
        }
    }

    #[test]
    fn every_part_of_an_event_enters_the_hash() {
        let (frame, mut other, mut tail) = ([7; 100], [7; 100], [7; 100]);
        (other[3], tail[99]) = (8, 8);
        let hash = |event| combine([trace(&[event], true)].iter());
        let base = hash((5, 1, What::Sent(all(&frame))));
        assert_eq!(base, hash((5, 1, What::Sent(all(&frame)))));
        for event in [
            (6, 1, What::Sent(all(&frame))),
            (5, 2, What::Sent(all(&frame))),
            (5, 1, What::Received(all(&frame))),
            (5, 1, What::Sent(all(&frame[..99]))),
            (5, 1, What::Sent(all(&other))),
            (5, 1, What::Sent(all(&tail))),
            (5, 1, What::Dropped(Drop::QueueFull, all(&frame))),
            (5, 1, What::Dropped(Drop::PortDown, all(&frame))),
            (5, 1, What::Lost(Loss::Cut, all(&frame))),
            (5, 1, What::Flipped(9)),
        ] {
            assert_ne!(base, hash(event), "{event:?}");
        }
        let transit = |frame| trace(&[(5, 1, What::Sent(all(frame)))], false);
        assert_eq!(transit(&frame), transit(&tail), "in transit the head stands for the frame");
        assert_ne!(transit(&frame), transit(&other));
    }

    #[test]
    fn the_order_of_events_and_of_stations_matters() {
        let (one, two) = ((5, 1, What::Carrier(true)), (5, 2, What::Carrier(true)));
        let (forth, back) = (trace(&[one, two], false), trace(&[two, one], false));
        assert_ne!(forth, back);
        assert_ne!(combine([&forth, &back].into_iter()), combine([&back, &forth].into_iter()));
    }

    #[test]
    fn lines_stand_by_time_and_station_and_then_as_they_were_made() {
        let page = Page::default();
        let mut trace = Trace::new(Some(Box::new(page.clone())));
        let line = |nanos, station: u32, what| {
            let name = format!("s{station}");
            Line::new(Time::from_nanos(nanos), station, &name, PortNo(2), what)
        };
        let mut lines = vec![
            line(9, 1, What::Power(None)),
            Line::of_world(Time::from_nanos(5), What::Fault(FaultKind::ControllerUp)),
            line(5, 2, What::Sent(all(&[1, 2, 3]))),
            line(5, 1, What::Carrier(true)),
            line(5, 1, What::Carrier(false)),
        ];
        let early = take_before(&mut lines, Time::from_nanos(9));
        trace.write(early);
        trace.write(lines);
        let text = String::from_utf8(page.0.borrow().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "0.000000005s s1-p2 carrier up");
        assert_eq!(lines[1], "0.000000005s s1-p2 carrier down");
        assert!(
            lines[2].starts_with("0.000000005s s2-p2 sent 3 B ") && lines[2].ends_with("010203")
        );
        assert_eq!(lines[3], "0.000000005s world fault ControllerUp");
        assert_eq!(lines[4], "0.000000009s s1-p2 power off");
    }
}
