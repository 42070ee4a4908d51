//! Links whose ends do not agree by DCBX, and ports where lossless priorities have no PFC.

use super::names::name;
use axon_dcbx::Mismatch;
use axon_fabric::model::{End, Fabric};
use axon_wire::PrioritySet;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum number of disagreements that are listed.
const SHOWN: usize = 10;
/// Maximum number of ports that are named for one set of priorities.
const NAMED: usize = 3;

/// Returns one disagreement in words.
pub(super) fn text(fabric: &Fabric, link: usize, mismatch: &Mismatch) -> String {
    let link = &fabric.links[link];
    let ends = [name(fabric, link.a), name(fabric, link.b)];
    let [a, b] = &ends;
    match mismatch {
        Mismatch::Pfc([one, other]) => {
            format!("PFC is for priorities {one} at {a} and {other} at {b}")
        }
        Mismatch::Classes(priorities) => format!(
            "priorities {priorities} share their class with others at {a} than at {b}, so a \
             pause stops different traffic"
        ),
        Mismatch::Congestion([one, other]) => {
            format!("congestion notification is for {one} at {a} and {other} at {b}")
        }
        Mismatch::Application { selector, protocol, priorities: [one, other] } => {
            let (one, other) = (one.value(), other.value());
            format!("{selector:?} {protocol} has priority {one} at {a} and {other} at {b}")
        }
        Mismatch::Note(end, note) => {
            format!("{} towards {}: {note}", ends[*end], ends[1 - *end])
        }
        Mismatch::Unsettled => {
            format!("the DCBX exchange of {a} and {b} does not settle: each follows the other")
        }
    }
}

/// Writes the disagreements, ten at most.
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

/// Writes the ports where lossless priorities have no PFC in force, grouped by these priorities.
pub(super) fn write_without_pfc(
    fabric: &Fabric,
    found: &[(End, PrioritySet)],
    out: &mut String,
) -> std::fmt::Result {
    if found.is_empty() {
        return Ok(());
    }
    let mut by_priorities: BTreeMap<u8, Vec<End>> = BTreeMap::new();
    for (port, priorities) in found {
        by_priorities.entry(priorities.bits()).or_default().push(*port);
    }
    writeln!(out, "\nlossless, but without PFC in force: SENDERS ARE NEVER PAUSED")?;
    for (bits, ports) in by_priorities {
        let named: Vec<String> = ports.iter().take(NAMED).map(|&at| name(fabric, at)).collect();
        let more = ports.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let priorities = PrioritySet::from_bits(bits);
        writeln!(out, "  priority {priorities} at {}{more}", named.join(", "))?;
    }
    Ok(())
}
