//! Sizes of route tables.

use crate::error::Problem;
use crate::file;
use axon_plane::PlaneConfig;

/// Tables of the host ports of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cam {
    /// Destinations in the table of each port; `None` for the default of the data plane.
    pub entries: Option<usize>,
    /// Destinations in the route memory of each port; 0 without masquerading.
    pub route_memory: usize,
}

const MOST: u32 = 65_536;

/// Checks and converts the `cam` section.
///
/// # Errors
/// A size is out of range, or is that of a route memory that is switched off.
pub(crate) fn resolve(cam: &file::Cam) -> Result<Cam, Problem> {
    let sizes = [("entries", cam.entries), ("route_memory", Some(cam.route_memory))];
    for (key, size) in sizes {
        if let Some(size) = size.filter(|size| !(1..=MOST).contains(size)) {
            let (key, what) = (format!("cam.{key}"), format!("{size} is out of range"));
            return Err(Problem::new(key, what, format!("1 to {MOST}")));
        }
    }
    let route_memory = if cam.masquerade { cam.route_memory as usize } else { 0 };
    Ok(Cam { entries: cam.entries.map(|entries| entries as usize), route_memory })
}

impl Cam {
    /// Sets the sizes in the configuration of a data plane. Where the file gives a size, tables are
    /// expected to be full everywhere, so only edges answer ARP: the other end may have learned
    /// another address.
    pub(crate) fn apply(self, plane: PlaneConfig) -> PlaneConfig {
        PlaneConfig {
            routes_per_port_max: self.entries.unwrap_or(plane.routes_per_port_max),
            masqueraded_per_port_max: self.route_memory,
            punts_resolution: self.entries.is_some() && self.route_memory > 0,
            ..plane
        }
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
