//! A port of a station: the cable end there, and what that half of the link counts.

use crate::engine::place::Place;
use crate::link::classes::ClassBytes;
use crate::link::disorder::Odd;
use crate::link::links::{Fates, LinkId, Loss};
use crate::link::noise::Noise;
use crate::link::timing::Way;
use axon_wire::{FrameBuf, PortNo, Time};

/// The state of a port of a station: all that a frame needs to pass, in two cache lines.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct PortState {
    /// The cable that is connected, if any.
    pub(crate) cable: Option<CableEnd>,
    /// The end of the gap after the last frame.
    pub(crate) wire_free: Time,
    /// When the far end was last handed a frame from here.
    pub(crate) handed_last: Time,
    /// Another cable was connected before.
    pub(crate) reconnected: bool,
    /// At the far end is an agent that reads the lengths of queues here.
    pub(crate) shows_queues: bool,
    /// When the node may hand over the next frame: only to see that it does not sooner.
    #[cfg(debug_assertions)]
    pub(crate) free_at: Time,
}

impl PortState {
    /// The node may hand over the next frame then.
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

/// One end of a cable. It counts what this end sends, and what comes out here. The fields for what
/// comes in are in the second of its cache lines, those for what goes out in both.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct CableEnd {
    pub(crate) way: Way,
    pub(crate) peer: Place,
    pub(crate) peer_port: PortNo,
    pub(crate) silent: bool,
    pub(crate) noisy: bool,
    /// Which carrier there is, by a number that never comes back; 0 is none. A frame that
    /// was sent under another carrier is lost.
    pub(crate) carrier: u32,
    /// Frames sent from here.
    pub(crate) sent: u64,
    /// Frames that came out here.
    pub(crate) delivered: u64,
    /// Bytes sent, by class, once counting has been switched on.
    pub(crate) classes: Option<Box<ClassBytes>>,
    pub(crate) rare: Box<Rare>,
}

/// The part of a cable end that few frames need.
#[derive(Debug)]
pub(crate) struct Rare {
    pub(crate) link: LinkId,
    pub(crate) side: usize,
    /// Frames sent from here that were lost, by [`Loss`].
    pub(crate) lost: [u64; Loss::ALL.len()],
    /// Frames sent from here in which the link flipped a bit.
    pub(crate) corrupted: u64,
    /// Second copies that the link made of frames sent from here.
    pub(crate) duplicated: u64,
    /// None only if it was never on; there if the cable is `noisy`.
    pub(crate) noise: Option<Box<Noise>>,
}

/// What a link does with a frame at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It will come out.
    Passes,
    /// It will come out with this bit flipped.
    Flips(u64),
    /// It will come out in a way that no FCS shows.
    Odd(Odd),
    /// It will not.
    Lost(Loss),
}

impl CableEnd {
    /// Counts a frame of `bytes` bytes that is sent, and says what becomes of it.
    #[inline(always)]
    pub(crate) fn send(&mut self, frame: &FrameBuf) -> Verdict {
        self.sent += 1;
        if self.noisy || self.silent || self.carrier == 0 || self.classes.is_some() {
            return self.send_closely(frame);
        }
        Verdict::Passes
    }

    /// The same where something may happen to the frame, or its bytes are counted.
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

    /// Drawn whatever the state of the link, so that a fault does not shift the stream.
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

    /// What this end knows of the direction from here.
    pub(crate) fn fates_from_here(&self) -> Fates {
        let Rare { lost, corrupted, duplicated, .. } = *self.rare;
        Fates { sent: self.sent, lost, corrupted, duplicated, ..Fates::default() }
    }

    /// What this end knows of the direction to here.
    pub(crate) fn fates_to_here(&self) -> Fates {
        Fates { delivered: self.delivered, ..Fates::default() }
    }
}
