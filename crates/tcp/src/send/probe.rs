//! Tail loss probes (RFC 8985 §7). No later segment can reveal the loss of the last segments of a
//! flight. After two round trips without an acknowledgement the sender therefore sends one more
//! segment, new data or the last segment again, and its acknowledgement reveals the missing data.

use crate::segment::{Segment, Seq};

/// Tail loss probe.
#[derive(Clone, Debug, Default)]
pub(super) struct TailProbe {
    /// Probe in flight: the next number to send when it was sent, and whether it was a
    /// retransmission.
    pub(super) in_flight: Option<(Seq, bool)>,
    /// True if a probe is due.
    pub(super) due: bool,
}

impl TailProbe {
    /// Processes an acknowledgement that may answer a probe (§7.4.2). `advanced` is whether it
    /// acknowledges new data, `duplicate` whether it reports a duplicate arrival. Returns whether
    /// the probe repaired an otherwise undetected loss.
    pub(super) fn answered(&mut self, segment: &Segment, advanced: bool, duplicate: bool) -> bool {
        let Some((end, again)) = self.in_flight.filter(|(end, _)| !segment.ack.is_before(*end))
        else {
            return false;
        };
        let beyond = segment.ack.is_after(end);
        let plain = !advanced && segment.options.sacks.is_empty() && segment.bytes == 0;
        if !again || duplicate || beyond || plain {
            self.in_flight = None;
        }
        again && !duplicate && beyond
    }
}
