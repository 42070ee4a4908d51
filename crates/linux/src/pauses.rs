//! Derives the pause state from flow control frames of the plane, for a port whose far end is in
//! this process.
//!
//! No frame is lost in between, and the plane resumes everything that it has paused. The frames
//! therefore only set and clear priorities, and their pause times are ignored.

use axon_wire::mac_control::{MacControl, Quanta};
use axon_wire::{MacAddr, PrioritySet};

/// Returns the paused priorities after `frame`, given those before it in `paused`. Returns `None`
/// if `frame` is not a flow control frame (IEEE 802.1Q clause 36, IEEE 802.3 annex 31B).
pub(crate) fn after(paused: PrioritySet, frame: &[u8]) -> Option<PrioritySet> {
    let mut paused = paused;
    match MacControl::parse(frame, MacAddr::default()).ok()? {
        MacControl::Pfc(pfc) => {
            for priority in pfc.enabled.iter() {
                match pfc.times[priority.index()] {
                    Quanta::ZERO => paused.remove(priority),
                    _ => paused.insert(priority),
                }
            }
            Some(paused)
        }
        MacControl::Pause(Quanta::ZERO) => Some(PrioritySet::EMPTY),
        MacControl::Pause(_) => Some(PrioritySet::ALL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Priority;
    use axon_wire::mac_control::Pfc;

    #[test]
    fn priorities_are_paused_one_by_one_or_all_at_once_and_other_frames_change_nothing() {
        let of = |low: &[u8]| -> PrioritySet {
            low.iter().map(|&bits| Priority::from_low_bits(bits)).collect()
        };
        let pfc = |low: &[u8], time| MacControl::Pfc(Pfc::of(of(low), Quanta(time)));
        let frame = |control: MacControl| control.emit(MacAddr([2; 6]));
        let mut paused = PrioritySet::EMPTY;
        for (control, expected) in [
            (pfc(&[3, 5], 9), of(&[3, 5])),
            (pfc(&[3], 0), of(&[5])),
            (MacControl::Pause(Quanta(1)), PrioritySet::ALL),
            (pfc(&[0], 0), of(&[1, 2, 3, 4, 5, 6, 7])),
            (MacControl::Pause(Quanta::ZERO), PrioritySet::EMPTY),
        ] {
            paused = after(paused, &frame(control)).unwrap();
            assert_eq!(paused, expected, "{control:?}");
        }
        assert_eq!(after(paused, &[0; 60]), None);
    }
}
