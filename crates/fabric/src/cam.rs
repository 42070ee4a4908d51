//! Sizes of route tables.

use crate::error::Problem;
use axon_plane::PlaneConfig;
use schemars::JsonSchema;
use serde::Deserialize;

/// Tables of host ports: their sizes, and masquerading for destinations beyond them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cam {
    /// Destinations in the table of each host port, 1 to 65,536; 4096 by default.
    #[schemars(range(min = 1, max = 65_536))]
    pub entries: Option<u32>,
    /// True if hosts get masqueraded MACs for destinations that do not fit in the table; true by
    /// default. Otherwise the switch's processor forwards as much as it can.
    pub masquerade: bool,
    /// Destinations in the route memory of each host port, by masqueraded MAC: 1 to 65,536; 4096 by
    /// default.
    #[schemars(range(min = 1, max = 65_536))]
    pub route_memory: u32,
}

impl Default for Cam {
    fn default() -> Cam {
        Cam { entries: None, masquerade: true, route_memory: 4096 }
    }
}

const MOST: u32 = 65_536;

impl Cam {
    /// Checks the sizes.
    ///
    /// # Errors
    /// A size is out of range.
    pub(crate) fn check(self) -> Result<Cam, Problem> {
        let sizes = [("entries", self.entries), ("route_memory", Some(self.route_memory))];
        for (key, size) in sizes {
            if let Some(size) = size.filter(|size| !(1..=MOST).contains(size)) {
                return Err(Problem::range(format!("cam.{key}"), size, format!("1 to {MOST}")));
            }
        }
        Ok(self)
    }

    /// Sets the sizes in the configuration of a data plane. Where the file gives a size, tables are
    /// expected to be full everywhere, so only edges answer ARP: the other end may have learned
    /// another address.
    pub(crate) fn apply(self, plane: PlaneConfig) -> PlaneConfig {
        PlaneConfig {
            routes_per_port_max: self
                .entries
                .map_or(plane.routes_per_port_max, |entries| entries as usize),
            masqueraded_per_port_max: if self.masquerade { self.route_memory as usize } else { 0 },
            punts_resolution: self.punts_resolution(),
            ..plane
        }
    }

    /// Returns whether only edges answer ARP.
    pub(crate) const fn punts_resolution(self) -> bool {
        self.entries.is_some() && self.masquerade
    }
}

#[cfg(test)]
mod tests {
    use crate::assemble::switch_config;

    #[test]
    fn what_the_file_says_of_tables_reaches_the_data_plane() {
        let sizes = |cam: &str| {
            let text = format!("name: a\ntopology: {{ring: {{switches: 3}}}}\n{cam}");
            let fabric = crate::parse("a.yaml".as_ref(), &text).unwrap();
            let plane = switch_config(&fabric, 0, 1, 7).plane;
            let sizes = (plane.routes_per_port_max, plane.masqueraded_per_port_max);
            (sizes, plane.punts_resolution)
        };
        assert_eq!(sizes(""), ((4096, 4096), false));
        assert_eq!(sizes("cam: {entries: 4}"), ((4, 4096), true));
        assert_eq!(sizes("cam: {entries: 4, masquerade: false}"), ((4, 0), false));
        assert_eq!(sizes("cam: {route_memory: 9}"), ((4096, 9), false));
    }
}
