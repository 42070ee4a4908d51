//! Link disorder, which a control plane must tolerate although good links do not cause it: frames
//! that are duplicated, delayed behind later ones, or corrupted with a good FCS.
//!
//! Any frame may be duplicated or delayed. Only control plane messages are corrupted, and only
//! after the headers: a corrupted route would misdirect a frame on any fabric, and only the FCS
//! protects against that.

use axon_wire::header::{HeaderView, PacketType};
use axon_wire::{HopWidth, Span, link};
use oorandom::Rand64;

/// Disorder rates of a link, per million frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Rate of frames that arrive twice.
    pub duplicate_ppm: u32,
    /// Rate of frames that arrive up to `late_max` late, behind frames sent after them.
    pub late_ppm: u32,
    /// Maximum delay of a late frame.
    pub late_max: Span,
    /// Rate of control messages, with hops of `hop_width`, in which a bit flips under a good FCS.
    pub forge_ppm: u32,
    /// Width of a hop in this fabric, in bits.
    pub hop_width: HopWidth,
}

/// Disorder that affects a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Odd {
    /// The frame arrives twice.
    Twice,
    /// The frame arrives this much later.
    Late(Span),
    /// The frame arrives with this bit flipped and a good FCS.
    Forged(u64),
}

impl Disorder {
    /// Returns whether any rate is nonzero.
    pub(crate) fn is_on(&self) -> bool {
        self.duplicate_ppm > 0 || self.late_ppm > 0 || self.forge_ppm > 0
    }

    /// Draws the disorder of the next frame. The rates add up to at most a million.
    pub(crate) fn draw(&self, random: &mut Rand64, frame: &[u8]) -> Option<Odd> {
        if !self.is_on() {
            return None;
        }
        let dice = random.rand_range(0..1_000_000);
        let twice = u64::from(self.duplicate_ppm);
        let late = twice + u64::from(self.late_ppm);
        let forged = late + u64::from(self.forge_ppm);
        if dice < twice {
            Some(Odd::Twice)
        } else if dice < late {
            let late = random.rand_range(0..self.late_max.as_nanos().max(1));
            Some(Odd::Late(Span::from_nanos(late)))
        } else if dice < forged {
            let sealed = sealed_bytes(frame, self.hop_width)?;
            let first = (frame.len() - sealed) as u64 * 8;
            Some(Odd::Forged(random.rand_range(first..frame.len() as u64 * 8)))
        } else {
            None
        }
    }
}

/// Returns the length in bytes of the sealed end of a control message, padding included.
fn sealed_bytes(frame: &[u8], width: HopWidth) -> Option<usize> {
    if let Some(payload) = link::parse(frame) {
        return Some(payload.len()).filter(|&bytes| bytes > 0);
    }
    let view = HeaderView::parse(frame, width).ok()?;
    let control = view.packet_type() == PacketType::Control && !view.payload().is_empty();
    control.then(|| view.payload().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::MacAddr;

    fn drawn(disorder: Disorder, frame: &[u8]) -> Vec<Odd> {
        let mut random = Rand64::new(3);
        (0..10_000).filter_map(|_| disorder.draw(&mut random, frame)).collect()
    }

    #[test]
    fn each_oddity_strikes_as_often_as_it_should() {
        let frame = link::emit(MacAddr([2, 0, 0, 0, 0, 1]), &[7; 60]);
        let disorder = Disorder {
            duplicate_ppm: 100_000,
            late_ppm: 200_000,
            late_max: Span::from_micros(5),
            forge_ppm: 300_000,
            hop_width: HopWidth::Eight,
        };
        let drawn = drawn(disorder, &frame);
        let count = |odd: fn(&Odd) -> bool| drawn.iter().filter(|&one| odd(one)).count();
        let twice = count(|odd| matches!(odd, Odd::Twice));
        let late = count(|odd| matches!(odd, Odd::Late(span) if *span < Span::from_micros(5)));
        let behind = |bit: u64| bit >= (frame.len() as u64 - 60) * 8;
        let forged = drawn.iter().filter(|odd| matches!(odd, Odd::Forged(bit) if behind(*bit)));
        let forged = forged.count();
        assert!((900..1_100).contains(&twice), "{twice} twice");
        assert!((1_850..2_150).contains(&late), "{late} late");
        assert!((2_800..3_200).contains(&forged), "{forged} forged");
        assert_eq!(twice + late + forged, drawn.len());
    }

    #[test]
    fn the_frames_of_hosts_are_not_forged() {
        let disorder = Disorder { forge_ppm: 1_000_000, ..Disorder::default() };
        assert_eq!(drawn(disorder, &[2; 64]), []);
    }
}
