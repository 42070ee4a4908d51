//! What no good link does, and what a control plane must bear all the same: frames that come out
//! twice, later than those behind them, or altered with a good FCS.
//!
//! Any frame may be duplicated or late. Only messages of the control plane are altered, and only
//! behind the headers: an altered route would lead a frame astray on any fabric, and against that
//! there is nothing but the FCS.

use axon_wire::header::{HeaderView, PacketType};
use axon_wire::{HopWidth, Span, link};
use oorandom::Rand64;

/// How often a link disturbs frames, per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Frames that come out twice.
    pub duplicate_ppm: u32,
    /// Frames that come out up to `late_max` later, behind others that were sent after them.
    pub late_ppm: u32,
    /// The most by which a frame is late.
    pub late_max: Span,
    /// Control messages, with hops of `hop_width`, in which a bit flips under a good FCS.
    pub forge_ppm: u32,
    /// Bits of a hop in this fabric.
    pub hop_width: HopWidth,
}

/// In which odd way a frame comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Odd {
    /// Two times.
    Twice,
    /// So much later.
    Late(Span),
    /// With this bit flipped, and a good FCS.
    Forged(u64),
}

impl Disorder {
    /// Whether anything is disturbed.
    pub(crate) fn is_on(&self) -> bool {
        self.duplicate_ppm > 0 || self.late_ppm > 0 || self.forge_ppm > 0
    }

    /// What becomes of the next frame. The shares add up to no more than a million.
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

/// The bytes at the end of a control message that are its envelope, padding included.
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
