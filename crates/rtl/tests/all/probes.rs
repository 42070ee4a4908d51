//! Records of probes in frames that have left a data plane.

use crate::fates::{Fate, PORTS};
use axon_wire::header::{HeaderFields, HopWidth};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::probe::{ProbeView, RECORD_BYTES, is_ether};

/// Bytes of a record from the number of queued bytes on, with the time.
const QUEUED_AT: usize = 4;

/// Returns the offset of the records in a frame; `None` if it is no probe.
pub fn records_at(frame: &[u8], width: HopWidth) -> Option<usize> {
    let head = match HeaderFields::parse(frame, width) {
        Ok(fields) => fields.header_bytes,
        Err(_) => Some(ETHERNET_BYTES).filter(|_| is_ether(frame))?,
    };
    let probe = ProbeView::parse(&frame[head..]).ok()?;
    Some(head + usize::from(probe.head().body_bytes))
}

/// Clears the queued bytes and times in the records that begin at `records`, which differ between
/// data planes.
pub fn clear_times(frame: &mut [u8], records: usize) {
    for record in frame[records..].chunks_exact_mut(RECORD_BYTES) {
        record[QUEUED_AT..].fill(0);
    }
}

/// Clears them in a frame that has left. Returns whether it has records.
pub fn clear_times_of(fate: &mut Fate, width: HopWidth) -> bool {
    let (Fate::Sent { frame, .. } | Fate::Punted { frame, .. }) = fate;
    let Some(records) = records_at(frame, width) else { return false };
    clear_times(frame, records);
    records < frame.len()
}

/// Clears them in what looks like records at the end of a frame: a header with wrong lengths may
/// put the head of a probe anywhere.
pub fn clear_last_times_of(fate: &mut Fate) {
    let (Fate::Sent { frame, .. } | Fate::Punted { frame, .. }) = fate;
    for record in frame.rchunks_exact_mut(RECORD_BYTES) {
        if !matches!(record[..4], [1 | 2, 0, 0, port] if u16::from(port) < PORTS) {
            return;
        }
        record[QUEUED_AT..].fill(0);
    }
}
