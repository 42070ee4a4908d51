//! How many CNMs the hosts of a port get, by what they have sent.
//!
//! In plain English: a congestion point samples one frame in so many bytes (`cpMinSampleBase`), a
//! tenth of that where its queue is far too long, and a frame may pass two such points on its way.
//! So hosts that have sent a twentieth of the base since the last CNM may get another one, and
//! after a rest a burst of them. What goes beyond was not caused by their frames: whoever forged it
//! could slow them down to nothing, and by this rule the fewer bytes they still send, the fewer
//! CNMs they get, while their rate rises again by its own timer (IEEE 802.1Q clause 30.4).

/// The parts of the sample base that a CNM costs.
const PART: u64 = 20;
/// CNMs at once after a rest.
const BURST: u64 = 64;

/// A token bucket that is filled by bytes instead of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CnmMeter {
    /// How many bytes the hosts of a port that gets CNMs as fast as it may would have sent.
    next: u64,
}

impl CnmMeter {
    /// Whether hosts that have sent `sent` bytes so far may get a CNM now, where points sample by
    /// this base; it counts only if they may.
    pub(super) fn admit(&mut self, sent: u64, sample_base: u64) -> bool {
        let cost = (sample_base / PART).max(1);
        if self.next > sent.saturating_add(cost * (BURST - 1)) {
            return false;
        }
        self.next = self.next.max(sent) + cost;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_no_more_cnms_than_their_frames_may_have_caused() {
        let mut meter = CnmMeter::default();
        let admitted =
            |meter: &mut CnmMeter, sent| (0..1000).filter(|_| meter.admit(sent, 150_000)).count();
        assert_eq!(admitted(&mut meter, 0), 64, "a burst");
        assert_eq!(admitted(&mut meter, 7_499), 0);
        assert_eq!(admitted(&mut meter, 7_500), 1);
        assert_eq!(admitted(&mut meter, 22_500), 2);
        assert_eq!(admitted(&mut meter, 10_000_000), 64, "rested");
    }
}
