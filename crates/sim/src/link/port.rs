//! A port of a station: its cable end, and the counters of that half of the link.

use crate::engine::place::Place;
use crate::link::classes::ClassBytes;
use crate::link::disorder::Odd;
use crate::link::links::{Fates, LinkId, Loss};
use crate::link::noise::Noise;
use crate::link::timing::Way;
use axon_wire::{FrameBuf, PortNo, Time};

/// State of a station's port: everything that a passing frame needs, in two cache lines.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct PortState {
    /// Connected cable, if any.
    pub(crate) cable: Option<CableEnd>,
    /// End of the gap after the last frame.
    pub(crate) wire_free: Time,
    /// Time at which the far end last received a frame from here.
    pub(crate) handed_last: Time,
    /// True if another cable was connected before.
    pub(crate) reconnected: bool,
    /// True if an agent at the far end reads the queue lengths here.
    pub(crate) shows_queues: bool,
    /// Earliest time of the node's next frame; only to check that it is not sent sooner.
    #[cfg(debug_assertions)]
    pub(crate) free_at: Time,
}

impl PortState {
    /// Sets the earliest time of the node's next frame.
    #[inline]
    pub(crate) fn is_free_at(&mut self, _at: Time) {
        #[cfg(debug_assertions)]
        {
            self.free_at = _at;
        }
    }
}

#[cfg(not(debug_assertions))]
const _: () = assert!(
    size_of::<PortState>() == 128 && std::mem::offset_of!(CableEnd, peer_port) == 64,
    "a port is two cache lines"
);

/// One end of a cable. It counts the frames sent from here and those that arrive here. The fields
/// for arrivals are in the second of its cache lines, those for transmissions in both.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CableEnd {
    pub(crate) way: Way,
    pub(crate) peer: Place,
    pub(crate) peer_port: PortNo,
    pub(crate) silent: bool,
    pub(crate) noisy: bool,
    /// Number of the current carrier, never reused; 0 is none. A frame sent under another carrier
    /// is lost.
    pub(crate) carrier: u32,
    /// Number of frames sent from here.
    pub(crate) sent: u64,
    /// Number of frames that arrived here.
    pub(crate) delivered: u64,
    /// Bytes sent, by class, if counting is on.
    pub(crate) classes: Option<Box<ClassBytes>>,
    pub(crate) rare: Box<Rare>,
}

/// Rarely used part of a cable end.
#[derive(Debug)]
pub(crate) struct Rare {
    pub(crate) link: LinkId,
    pub(crate) side: usize,
    /// Number of frames sent from here and lost, by [`Loss`].
    pub(crate) lost: [u64; Loss::ALL.len()],
    /// Number of frames sent from here in which the link flipped a bit.
    pub(crate) corrupted: u64,
    /// Number of second copies that the link made of frames sent from here.
    pub(crate) duplicated: u64,
    /// Noise, present if the cable is `noisy`; `None` only if it never was.
    pub(crate) noise: Option<Box<Noise>>,
}

/// Fate of a frame, decided at transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The frame arrives.
    Passes,
    /// The frame arrives with this bit flipped.
    Flips(u64),
    /// The frame arrives with a disorder that no FCS shows.
    Odd(Odd),
    /// The frame is lost.
    Lost(Loss),
}

impl CableEnd {
    /// Counts a sent frame and returns its fate.
    #[inline(always)]
    pub(crate) fn send(&mut self, frame: &FrameBuf) -> Verdict {
        self.sent += 1;
        if self.noisy || self.silent || self.carrier == 0 || self.classes.is_some() {
            return self.send_closely(frame);
        }
        Verdict::Passes
    }

    /// Counts a sent frame and returns its fate, on a link with faults, noise or class counting.
    #[inline(never)]
    fn send_closely(&mut self, frame: &FrameBuf) -> Verdict {
        let noise = if self.noisy { self.draw(frame) } else { Verdict::Passes };
        let verdict = if self.carrier == 0 {
            Verdict::Lost(Loss::NoCarrier)
        } else if self.silent {
            Verdict::Lost(Loss::Silent)
        } else {
            noise
        };
        if let Some(classes) = &mut self.classes
            && self.carrier != 0
        {
            classes.count(frame);
        }
        match verdict {
            Verdict::Passes | Verdict::Odd(Odd::Late(_)) => {}
            Verdict::Flips(_) | Verdict::Odd(Odd::Forged(_)) => self.rare.corrupted += 1,
            Verdict::Odd(Odd::Twice) => self.rare.duplicated += 1,
            Verdict::Lost(loss) => self.rare.lost[loss as usize] += 1,
        }
        verdict
    }

    /// Draws the noise of a frame, regardless of the link's state, so that a fault does not shift
    /// the stream.
    #[cold]
    fn draw(&mut self, frame: &FrameBuf) -> Verdict {
        let noise = self.rare.noise.as_deref_mut().expect("a noisy cable has noise");
        let (taken, flipped) = (noise.takes(), noise.flips(frame.length()));
        let odd = noise.disturbs(&frame.contents().whole());
        match (flipped, odd) {
            _ if taken => Verdict::Lost(Loss::Noise),
            (Some(bit), _) => Verdict::Flips(bit),
            (None, Some(odd)) => Verdict::Odd(odd),
            (None, None) => Verdict::Passes,
        }
    }

    /// Returns this end's counters of the direction from here.
    pub(crate) fn fates_from_here(&self) -> Fates {
        let Rare { lost, corrupted, duplicated, .. } = *self.rare;
        Fates { sent: self.sent, lost, corrupted, duplicated, ..Fates::default() }
    }

    /// Returns this end's counters of the direction to here.
    pub(crate) fn fates_to_here(&self) -> Fates {
        Fates { delivered: self.delivered, ..Fates::default() }
    }
}
