//! Fabric files for real ports: simulator-only keys are refused or reported in a warning.

use crate::error::{LoadError, Problem};
use crate::keys::{Keys, Position};
use crate::load;
use crate::model::{Fabric, Network};
use std::collections::BTreeMap;
use std::path::Path;

/// Sections that only the simulator reads.
const SECTIONS: [&str; 3] = ["device", "faults", "traffic"];
/// Properties of a link that only the simulator implements.
const PROPERTIES: [&str; 3] = ["bit_error_rate", "latency", "loss_ppm"];

/// Reads a fabric file for switches with real ports. Also returns warnings: one for each kind of
/// key that only the simulator acts on, and one for each renamed key.
///
/// # Errors
/// As for [`load`](crate::load), and if its switches are not Axons: the others are in the simulator
/// only.
pub fn load_real(path: &Path) -> Result<(Fabric, Vec<String>), LoadError> {
    let text = load::text(path)?;
    let mut fabric = crate::parse(path, &text)?;
    let keys = Keys::of(&text);
    if !matches!(fabric.network, Network::Axon | Network::Program) {
        let key = "network";
        let expected = "axon, or program in place of network";
        let problem = Problem::new(key, "this network runs in the simulator only", expected);
        let position = Some(keys.position(key));
        return Err(LoadError { file: path.into(), position, problem });
    }
    crate::program::fix_addresses(&mut fabric);
    let mut warnings = load::warnings(path, &keys);
    warnings.extend(simulator_only(&keys).into_iter().map(|(_, (key, (line, column), more))| {
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        let file = path.display();
        format!("{file}:{line}:{column}: {key}: ignored in the lab (simulator only){more}")
    }));
    Ok((fabric, warnings))
}

/// Returns the keys that only the simulator acts on. By kind: the first key in the text, its
/// position, and the number of further ones.
fn simulator_only(keys: &Keys) -> BTreeMap<&'static str, (&str, Position, usize)> {
    let mut found: BTreeMap<&'static str, (&str, Position, usize)> = BTreeMap::new();
    for (path, position) in keys.paths() {
        let section = path.split(['.', '[']).next().unwrap_or(path);
        let last = path.rsplit('.').next().unwrap_or(path);
        let kind = match SECTIONS.iter().find(|name| **name == section) {
            Some(name) if path == section => name,
            Some(_) => continue,
            None => match PROPERTIES.iter().find(|name| **name == last) {
                Some(name) => name,
                None => continue,
            },
        };
        let seen = found.entry(kind).and_modify(|(_, _, more)| *more += 1);
        let (first, at, _) = seen.or_insert((path, position, 0));
        if position < *at {
            (*first, *at) = (path, position);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_key_that_real_ports_ignore_is_named_once_with_its_place() {
        let text = "name: a\ntopology: {ring: {switches: 3}}\nlinks: {latency: 2us}\n\
                    overrides:\n  - {between: [s1, s2], latency: 3us, rate: 1Gbps}\n\
                    device: {cut_through: true, from_switch: [{name: latency}]}\n\
                    faults:\n  - {at: 1s, loss_ppm: 5, between: [s1, s2]}\n";
        let keys = Keys::of(text);
        let found: Vec<_> = simulator_only(&keys).into_values().collect();
        let faults = ("faults", keys.position("faults"), 0);
        let wanted = [("device", (6, 9), 0), faults, ("links.latency", (3, 18), 1)];
        assert_eq!(found, wanted);
    }
}
