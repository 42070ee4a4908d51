//! Handling of multicast frames by edges: `multicast:`.

use crate::error::Problem;
use crate::file::Multicast;
use crate::units::span_text;
use axon_edge::config::GroupConfig;

/// Returns the configuration of all edges.
///
/// # Errors
/// A value out of its range, by key.
pub(crate) fn resolve(asked: &Multicast) -> Result<GroupConfig, Problem> {
    let frames = asked.frames_per_second;
    if !(1..=1000).contains(&frames) {
        return Err(Problem::range("multicast.frames_per_second", frames, "1 to 1000"));
    }
    let copies = asked.copies_per_second;
    if !(512..=1_000_000).contains(&copies) {
        return Err(Problem::range("multicast.copies_per_second", copies, "512 to 1000000"));
    }
    let query = asked.query_interval.0;
    if !(1_000..=3_600_000).contains(&query.as_millis()) {
        return Err(Problem::range("multicast.query_interval", span_text(query), "1s to 1h"));
    }
    let Multicast { deliver: multicast, broadcast, .. } = *asked;
    Ok(GroupConfig {
        multicast,
        broadcast,
        frames_per_second: frames,
        copies_per_second: copies,
        query,
    })
}
