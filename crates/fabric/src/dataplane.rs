//! Configured data plane of each switch, and the key that sets it.

use crate::error::Problem;
use crate::file::{self, DataplaneKind, File};
use crate::model::{Dataplanes, Fabric};
use crate::names::switch_index;
use std::collections::BTreeMap;

/// Key of the setting for all switches.
const KEY: &str = "dataplane";

/// Returns the configured data plane of a switch, by its index, and the key that sets it.
pub fn of_switch(fabric: &Fabric, switch: usize) -> (DataplaneKind, &str) {
    let Dataplanes { common, overrides } = &fabric.dataplanes;
    overrides.get(&switch).map_or((*common, KEY), |(name, key)| (*name, key))
}

/// Reads `dataplane` and the overrides of switches, once the switches have their names.
pub(crate) fn resolve(fabric: &Fabric, file: &File) -> Result<Dataplanes, Problem> {
    let mut overrides = BTreeMap::new();
    for (number, one) in file.overrides.iter().enumerate() {
        let key = format!("overrides[{number}]");
        let Some(switches) = switches(one, &key)? else { continue };
        let dataplane = one.common.dataplane.ok_or_else(|| {
            Problem::new(&key, "it changes nothing", "a `dataplane` for these switches")
        })?;
        for (index, name) in switches.iter().enumerate() {
            let switch = switch_index(fabric, name).ok_or_else(|| {
                let what = format!("there is no switch {name}");
                Problem::new(format!("{key}.switches[{index}]"), what, "the name of a switch")
            })?;
            overrides.insert(switch, (dataplane, format!("{key}.dataplane")));
        }
    }
    Ok(Dataplanes { common: file.dataplane, overrides })
}

/// Returns the switches of an override; `None` if it is for a link.
fn switches<'a>(one: &'a file::Override, key: &str) -> Result<Option<&'a [String]>, Problem> {
    let of_links = "rate, latency, loss_ppm and bit_error_rate";
    match (&one.common.between, &one.common.switches) {
        (Some(_), None) if one.common.dataplane.is_none() => Ok(None),
        (Some(_), None) => {
            let what = "a link has no data plane";
            Err(Problem::new(format!("{key}.dataplane"), what, "it with `switches`"))
        }
        (None, Some(_)) if !one.kinds.is_empty() => {
            let what = format!("{of_links} are of links");
            Err(Problem::new(key, what, "`between`, or `dataplane` alone"))
        }
        (None, Some(switches)) => Ok(Some(switches)),
        (between, _) => {
            let what = if between.is_some() { "both a link and switches" } else { "nothing" };
            let expected = "exactly one of between (a link) and switches";
            Err(Problem::new(key, format!("it is for {what}"), expected))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_has_the_data_plane_of_its_last_override_or_that_of_the_fabric() {
        let fabric = |more: &str| {
            let text = format!("name: a\ntopology: {{ring: {{switches: 3}}}}\n{more}");
            crate::parse("a.yaml".as_ref(), &text).unwrap()
        };
        assert_eq!(of_switch(&fabric(""), 0), (DataplaneKind::Auto, "dataplane"));
        let mixed = fabric(
            "dataplane: xdp\noverrides:\n- {between: [s1, s2], rate: 1Mbps}\n\
             - {switches: [s2, s3], dataplane: full}\n- {switches: [s3], dataplane: tc}\n",
        );
        assert_eq!(of_switch(&mixed, 0), (DataplaneKind::Xdp, "dataplane"));
        assert_eq!(of_switch(&mixed, 1), (DataplaneKind::Software, "overrides[1].dataplane"));
        assert_eq!(of_switch(&mixed, 2), (DataplaneKind::Tc, "overrides[2].dataplane"));
    }
}
