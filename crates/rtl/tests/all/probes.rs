//! Records of probes in frames that have left a data plane.

use axon_wire::header::{HeaderView, HopWidth};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::probe::{ProbeView, RECORD_BYTES, is_ether};

/// Bytes of a record from the number of queued bytes on, with the time.
const QUEUED_AT: usize = 4;

/// Returns the offset of the records in a frame; `None` if it is no probe.
pub fn records_at(frame: &[u8], width: HopWidth) -> Option<usize> {
    let head = match HeaderView::parse(frame, width) {
        Ok(view) => view.header_bytes(),
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
