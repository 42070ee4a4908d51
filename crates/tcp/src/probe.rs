//! Tail loss probes (RFC 8985 §7). No later segment can reveal the loss of the last segments of a
//! flight. After two round trips without an acknowledgement the sender therefore sends one more
//! segment, new data or the last segment again, and its acknowledgement reveals the missing data.

use crate::config::Config;
use crate::segment::Segment;
use crate::send::{Chunk, Probe, Recovery, Sender};
use axon_wire::{Span, Time};

impl Sender {
    /// Arms the probe timer where a probe is useful (§7.2).
    pub(crate) fn arm_probe(&mut self, now: Time, config: &Config) {
        let useful = self.sack
            && self.recovery == Recovery::Open
            && self.board.sacked() == 0
            && self.board.outstanding() > 0
            && self.probe.is_none()
            && config.probe_min < config.rto_max;
        self.probe_at = useful.then(|| {
            let after = match self.rtt.smoothed {
                None => Span::from_secs(1),
                Some(smoothed) => {
                    let twice = smoothed + smoothed;
                    let alone = self.board.outstanding() <= self.mss;
                    let delay = config.ack_delay.filter(|_| alone).unwrap_or(Span::ZERO);
                    (twice + delay).max(config.probe_min)
                }
            };
            let at = now + after;
            self.rto_at.map_or(at, |rto| at.min(rto))
        });
    }

    /// Sends the probe (§7.3).
    pub(crate) fn tail_probe(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        if self.board.outstanding() == 0 {
            return None;
        }
        let fresh = self.beyond(now, room, config);
        let again = fresh.is_none();
        let chunk = fresh.unwrap_or_else(|| {
            let end = self.board.end();
            let from = (end - room.min(self.board.outstanding())).max(self.board.start());
            self.again(from, end, now, config)
        });
        self.probe = Some(Probe { end: self.board.end(), again });
        self.probe_at = None;
        self.rto_at = Some(now + self.rtt.timeout(config));
        self.sent.probes += 1;
        Some(chunk)
    }

    /// Processes an acknowledgement that may answer a probe (§7.4.2). `advanced` is whether it
    /// acknowledges new data, `duplicate` whether it reports a duplicate arrival. Returns whether
    /// the probe repaired an otherwise undetected loss.
    pub(crate) fn probe_answered(
        &mut self,
        segment: &Segment,
        advanced: bool,
        duplicate: bool,
    ) -> bool {
        let Some(probe) = self.probe.filter(|probe| !segment.ack.is_before(probe.end)) else {
            return false;
        };
        let beyond = segment.ack.is_after(probe.end);
        let plain = !advanced && segment.options.sacks.is_empty() && segment.bytes == 0;
        if !probe.again || duplicate || beyond || plain {
            self.probe = None;
        }
        probe.again && !duplicate && beyond
    }
}
