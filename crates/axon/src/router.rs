//! `--router NAME`: another router than the file's.

use axon_fabric::model::RouterKind;

/// The router of this name, or a text with those that there are.
pub fn named(name: &str) -> Result<RouterKind, String> {
    RouterKind::named(name).ok_or_else(|| {
        let names = RouterKind::ALL.map(RouterKind::name).join(", ");
        format!("there is no such router; expected one of {names}")
    })
}
