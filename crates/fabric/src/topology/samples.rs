//! Whole fabrics of one generator with every default, for tests and benchmarks.

use crate::file::{self, File, Topology};
use crate::model::Fabric;

fn with_defaults(name: &str, topology: Topology) -> Fabric {
    match crate::build(&File::new(name, topology)) {
        Ok(fabric) => fabric,
        Err(problem) => panic!("{problem}"),
    }
}

fn row(switches: usize, hosts_per_switch: usize) -> file::Row {
    file::Row { switches, hosts_per_switch: Some(hosts_per_switch), hosts: None }
}

/// A line of switches with every default.
///
/// # Panics
/// Like its fellows below, on sizes that a fabric file could not have: for tests and
/// benchmarks, not for input.
pub fn line(switches: usize, hosts_per_switch: usize) -> Fabric {
    with_defaults("line", Topology::Line(row(switches, hosts_per_switch)))
}

/// A ring of switches with every default. Panics like [`line()`].
pub fn ring(switches: usize, hosts_per_switch: usize) -> Fabric {
    with_defaults("ring", Topology::Ring(row(switches, hosts_per_switch)))
}

/// A star around `s1` with every default. Panics like [`line()`].
pub fn star(switches: usize, hosts_per_switch: usize) -> Fabric {
    with_defaults("star", Topology::Star(row(switches, hosts_per_switch)))
}

/// A torus with every default. Panics like [`line()`].
pub fn torus(rows: usize, cols: usize, hosts_per_switch: usize) -> Fabric {
    let hosts_per_switch = Some(hosts_per_switch);
    let torus = file::Torus { rows, cols, hosts_per_switch, hosts: None };
    with_defaults("torus", Topology::Torus(torus))
}

/// A fat tree of `k`-port switches with every default. Panics like [`line()`].
pub fn fat_tree(k: usize) -> Fabric {
    let tree = file::FatTree { k, hosts_per_edge: None, hosts: None };
    with_defaults("fat-tree", Topology::FatTree(tree))
}

/// A flattened butterfly, k hosts at each switch, with every default. Panics like [`line()`].
pub fn flattened_butterfly(k: usize, n: usize) -> Fabric {
    let flat = file::FlattenedButterfly { k, n, hosts_per_switch: None, hosts: None };
    with_defaults("flattened-butterfly", Topology::FlattenedButterfly(flat))
}

/// A connected random graph with every default. Panics like [`line()`].
pub fn random(switches: usize, degree: usize, hosts_per_switch: usize, seed: u64) -> Fabric {
    let hosts_per_switch = Some(hosts_per_switch);
    let seed = Some(seed);
    let random = file::Random { switches, degree, hosts_per_switch, hosts: None, seed };
    with_defaults("random", Topology::Random(random))
}

/// A random graph as paper 001 builds it, with every default. Panics like [`line()`].
pub fn random_links(
    switches: usize,
    average_degree: usize,
    hosts_per_switch: usize,
    seed: u64,
) -> Fabric {
    let random = file::RandomLinks {
        switches,
        average_degree,
        hosts_per_switch: Some(hosts_per_switch),
        hosts: None,
        seed: Some(seed),
    };
    with_defaults("random-links", Topology::RandomLinks(random))
}
