//! Five topologies of 001 §5, for a number of hosts.

use anyhow::Result;
use axon_fabric::model::Fabric;

/// Hosts at each switch of a torus and of a random graph.
const HOSTS_PER_SWITCH: usize = 10;

/// Topology of a measured network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Rings of up to 100, as many as needed.
    Torus,
    /// Three stages of k-port switches, non-blocking.
    FatTree,
    /// A k-ary 3-flat, non-blocking.
    FlattenedButterfly,
    /// A random graph with as many switches as the torus, and four links each on average.
    RandomLow,
    /// A random graph with as many switches as the flattened butterfly, and as many links each on
    /// average.
    RandomHigh,
}

impl Shape {
    /// All five topologies.
    pub(crate) const ALL: [Shape; 5] = [
        Shape::Torus,
        Shape::FatTree,
        Shape::FlattenedButterfly,
        Shape::RandomLow,
        Shape::RandomHigh,
    ];

    /// Returns the paper's name.
    pub const fn name(self) -> &'static str {
        match self {
            Shape::Torus => "torus",
            Shape::FatTree => "fat tree",
            Shape::FlattenedButterfly => "FBFLY",
            Shape::RandomLow => "random-low",
            Shape::RandomHigh => "random-high",
        }
    }

    /// Builds a fabric of this shape for `hosts` hosts, evenly placed, with as few switches as
    /// possible; `seed` draws the random ones.
    ///
    /// # Errors
    /// There is none of this size: see `axon_fabric`.
    pub(crate) fn fabric(self, hosts: usize, seed: u64) -> Result<Fabric> {
        let few = hosts.div_ceil(HOSTS_PER_SWITCH);
        let k = (2..).find(|k: &usize| k.pow(3) >= hosts).unwrap_or(2);
        let random = |switches, degree| {
            format!("random_links: {{ switches: {switches}, average_degree: {degree}, seed: {seed}")
        };
        let topology = match self {
            Shape::Torus => {
                let (rows, cols) = rings(hosts);
                format!("torus: {{ rows: {rows}, cols: {cols}")
            }
            Shape::FatTree => {
                let k = (2..).step_by(2).find(|k: &usize| k.pow(3) / 4 >= hosts).unwrap_or(2);
                format!("fat_tree: {{ k: {k}")
            }
            Shape::FlattenedButterfly => format!("flattened_butterfly: {{ k: {k}, n: 3"),
            Shape::RandomLow => random(few, 4),
            Shape::RandomHigh => random(k * k, 2 * (k - 1)),
        };
        // The papers have no backup routes, which cost messages of the controller.
        let text = format!(
            "name: scale\nseed: {seed}\nfailover: {{ backup: false }}\n\
             topology: {{ {topology}, hosts: {{ count: {hosts} }} }} }}\n"
        );
        Ok(axon_fabric::parse("scale".as_ref(), &text)?)
    }
}

/// Returns rows and columns of the torus for a number of hosts: rings of 100 if there are switches
/// enough for ten, nearly square below.
pub(crate) fn rings(hosts: usize) -> (usize, usize) {
    let switches = hosts.div_ceil(HOSTS_PER_SWITCH);
    if switches >= 1000 {
        return (switches.div_ceil(100), 100);
    }
    let rows = (2..).take_while(|rows| rows * rows <= switches).last().unwrap_or(2);
    (rows, switches.div_ceil(rows).max(2))
}

/// Returns the mean number of links between two random switches of that torus, by a shortest path.
pub(crate) fn torus_hops((rows, cols): (usize, usize)) -> f64 {
    let ring = |count: usize| (count * count / 4) as f64 / count as f64;
    ring(rows) + ring(cols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_across_a_torus_are_a_quarter_of_both_rings() {
        assert_eq!(torus_hops(rings(50_000)), 37.5);
        assert_eq!(torus_hops(rings(1_000)), 5.0);
        assert_eq!(rings(5_000), (22, 23));
        // Distances in a ring of five: 0, 1, 2, 2, 1.
        assert_eq!(torus_hops((5, 1)), 1.2);
    }

    #[test]
    fn the_largest_is_the_papers() {
        let fabric = Shape::Torus.fabric(50_000, 1).unwrap();
        assert_eq!((fabric.switches.len(), fabric.links.len()), (5_000, 10_000));
        assert_eq!(fabric.hosts.len(), 50_000);
    }

    #[test]
    fn every_shape_holds_the_hosts_with_as_few_switches_as_it_can() {
        let sizes = Shape::ALL.map(|shape| {
            let fabric = shape.fabric(1_000, 7).unwrap();
            assert_eq!(fabric.hosts.len(), 1_000, "{}", shape.name());
            (fabric.switches.len(), fabric.links.len())
        });
        // The fat tree of 16-port switches holds 1,024 hosts; the 10-ary 3-flat 1,000.
        assert_eq!(sizes, [(100, 200), (320, 2048), (100, 900), (100, 200), (100, 900)]);
    }
}
