//! Self-congestion pause (thesis 000 §3.3.3).
//!
//! The edge lengthens every frame of a host by its Axon header, so a host that sends at line rate
//! fills the output buffer of an otherwise idle switch. After a host port has caused a maximum
//! frame's worth of header bytes, its hosts are paused for the time of one maximum frame, and the
//! buffer drains by that amount.

use axon_wire::mac_control::Quanta;

/// Bytes of one pause quantum, 512 bit times at any rate.
const QUANTUM_BYTES: usize = 64;
/// Bytes of preamble, FCS and the gap between frames.
const OVERHEAD_BYTES: usize = 8 + 4 + 12;

/// Returns the time of one frame of `frame_bytes_max` bytes (without FCS), rounded up.
pub fn quanta_for(frame_bytes_max: usize) -> Quanta {
    let quanta = (frame_bytes_max + OVERHEAD_BYTES).div_ceil(QUANTUM_BYTES);
    Quanta(u16::try_from(quanta).unwrap_or(u16::MAX))
}

/// Header bytes that one host port has caused since it was last paused.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelfCongestion {
    header_bytes: usize,
}

impl SelfCongestion {
    /// Adds `header_bytes`; returns whether the hosts are to be paused.
    pub(crate) fn add(&mut self, header_bytes: usize, frame_bytes_max: usize) -> bool {
        self.header_bytes += header_bytes;
        let due = self.header_bytes >= frame_bytes_max;
        if due {
            self.header_bytes -= frame_bytes_max;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_one_maximum_frame() {
        // 1538 byte times of a full frame with its overhead are 24.03 quanta.
        assert_eq!(quanta_for(1514), Quanta(25));
        assert_eq!(quanta_for(usize::MAX / 2), Quanta::MAX);
    }

    #[test]
    fn a_host_is_paused_once_per_maximum_frame_of_header_bytes() {
        let mut load = SelfCongestion::default();
        let pauses = (0..1514).filter(|_| load.add(9, 1514)).count();
        assert_eq!(pauses, 9);
    }
}
