//! Limit on the CNMs to the hosts of a port, by the bytes that they have sent.
//!
//! A congestion point samples one frame per `cpMinSampleBase` bytes, or per a tenth of that where
//! its queue is far too long, and a frame may pass two such points on its way. So hosts may get one
//! CNM per twentieth of the base that they have sent, and a burst after a pause. CNMs beyond that
//! limit were not caused by their frames. A forger could otherwise slow the hosts down to nothing;
//! with this limit, fewer bytes sent allow fewer CNMs, while the rate recovers by its own timer
//! (IEEE 802.1Q clause 30.4).

/// Fraction of the sample base that a CNM costs: one in this many.
const PART: u64 = 20;
/// Burst size, in CNMs.
const BURST: u64 = 64;

/// Token bucket that is filled by bytes instead of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CnmMeter {
    /// Bytes sent at which a port that receives CNMs at the limit would receive its next one.
    next: u64,
}

impl CnmMeter {
    /// Returns whether hosts that have sent `sent` bytes so far may get a CNM now, with congestion
    /// points that sample by this base. Only admitted CNMs are charged.
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
