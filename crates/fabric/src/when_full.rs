//! Handling of packets whose buffer is full.

use crate::error::Problem;
use crate::file::{File, WhenFull};
use crate::model::{Network, OnFull};
use axon_wire::Bytes;

/// Default buffer for refused packets at each input port.
const NACK_QUEUE: Bytes = Bytes(128 * 1024);

/// Reads `links.on_full` and `links.nack_queue`: baselines only drop, and only `nack` has a queue
/// for refused packets.
pub(crate) fn resolve(file: &File) -> Result<(OnFull, Bytes), Problem> {
    let on_full = match file.links.on_full {
        WhenFull::Drop => OnFull::Drop,
        WhenFull::Nack => OnFull::Nack,
        WhenFull::CongestionMessage => OnFull::CongestionMessage,
    };
    if on_full != OnFull::Drop && (file.network != Network::Axon || file.program.is_some()) {
        let what = "only Axons refuse packets or send congestion messages";
        return Err(Problem::new("links.on_full", what, "drop, or a network of axon"));
    }
    let Some(queue) = file.links.nack_queue else { return Ok((on_full, NACK_QUEUE)) };
    let key = "links.nack_queue";
    if on_full != OnFull::Nack {
        return Err(Problem::new(
            key,
            "it has no effect without `on_full: nack`",
            "`on_full: nack`, or no nack_queue",
        ));
    }
    if !(2048..=1 << 32).contains(&queue.0.0) {
        return Err(Problem::range(key, queue.0, "2KiB to 4GiB"));
    }
    Ok((on_full, queue.0))
}
