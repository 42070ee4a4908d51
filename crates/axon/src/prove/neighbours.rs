//! What the two ends of links will not agree on by DCBX.

use super::name;
use axon_control::dcbx::Mismatch;
use axon_fabric::model::Fabric;
use std::fmt::Write;

/// Disagreements that are told.
const SHOWN: usize = 10;

/// One disagreement in words.
pub(super) fn text(fabric: &Fabric, link: usize, mismatch: &Mismatch) -> String {
    let link = &fabric.links[link];
    let ends = [name(fabric, link.a), name(fabric, link.b)];
    let [a, b] = &ends;
    match mismatch {
        Mismatch::Pfc([one, other]) => {
            format!("PFC is for priorities {one} at {a} and {other} at {b}")
        }
        Mismatch::Classes(priorities) => format!(
            "priorities {priorities} share their class with others at {a} than at {b}, so a stop \
             holds up different traffic"
        ),
        Mismatch::Congestion([one, other]) => {
            format!("congestion notification is for {one} at {a} and {other} at {b}")
        }
        Mismatch::Application { selector, protocol, priorities: [one, other] } => {
            let (one, other) = (one.value(), other.value());
            format!("{selector:?} {protocol} has priority {one} at {a} and {other} at {b}")
        }
        Mismatch::Says(end, note) => {
            format!("{} towards {}: {note}", ends[*end], ends[1 - *end])
        }
        Mismatch::Unsettled => format!("{a} and {b} follow each other for ever"),
    }
}

/// All of them, or as many as anybody reads.
pub(super) fn write(
    fabric: &Fabric,
    found: &[(usize, Mismatch)],
    out: &mut String,
) -> std::fmt::Result {
    if found.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nneighbours do not agree")?;
    for (link, mismatch) in found.iter().take(SHOWN) {
        writeln!(out, "  {}", text(fabric, *link, mismatch))?;
    }
    if found.len() > SHOWN {
        writeln!(out, "  and {} more", found.len() - SHOWN)?;
    }
    Ok(())
}
