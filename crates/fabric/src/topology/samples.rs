//! Fabrics of one generator with defaults throughout, for tests and benchmarks.

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

/// Returns a line of switches with defaults throughout.
///
/// # Panics
/// If the size is not valid in a fabric file: for tests and benchmarks, not for input.
pub fn line(switches: usize, hosts_per_switch: usize) -> Fabric {
    with_defaults("line", Topology::Line(row(switches, hosts_per_switch)))
}

/// Returns a ring of switches with defaults throughout. Panics like [`line()`].
pub fn ring(switches: usize, hosts_per_switch: usize) -> Fabric {
    with_defaults("ring", Topology::Ring(row(switches, hosts_per_switch)))
}

/// Returns a star around `s1` with defaults throughout. Panics like [`line()`].
pub fn star(switches: usize, hosts_per_switch: usize) -> Fabric {
    with_defaults("star", Topology::Star(row(switches, hosts_per_switch)))
}

/// Returns a torus with defaults throughout. Panics like [`line()`].
pub fn torus(rows: usize, cols: usize, hosts_per_switch: usize) -> Fabric {
    let hosts_per_switch = Some(hosts_per_switch);
    let torus = file::Torus { rows, cols, hosts_per_switch, hosts: None };
    with_defaults("torus", Topology::Torus(torus))
}

/// Returns a fat tree of `k`-port switches with defaults throughout. Panics like [`line()`].
pub fn fat_tree(k: usize) -> Fabric {
    let tree = file::FatTree { k, hosts_per_edge: None, hosts: None };
    with_defaults("fat-tree", Topology::FatTree(tree))
}

/// Returns a flattened butterfly, k hosts at each switch, with defaults throughout. Panics like
/// [`line()`].
pub fn flattened_butterfly(k: usize, n: usize) -> Fabric {
    let flat = file::FlattenedButterfly { k, n, hosts_per_switch: None, hosts: None };
    with_defaults("flattened-butterfly", Topology::FlattenedButterfly(flat))
}

/// Returns a connected random graph with defaults throughout. Panics like [`line()`].
pub fn random(switches: usize, degree: usize, hosts_per_switch: usize, seed: u64) -> Fabric {
    let hosts_per_switch = Some(hosts_per_switch);
    let seed = Some(seed);
    let random = file::Random { switches, degree, hosts_per_switch, hosts: None, seed };
    with_defaults("random", Topology::Random(random))
}

/// Returns a random graph as in paper 001, with defaults throughout. Panics like [`line()`].
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

/// Returns the `topology` section of a connected fabric of 6 to 25 switches with a host each: a
/// ring through all switches in random order, and as many links again between random switches.
pub fn ring_with_chords(seed: u64) -> String {
    let mut random = axon_node::random::Random::new(seed);
    let count = 6 + random.next_u64() % 20;
    let mut order: Vec<u64> = (0..count).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, (random.next_u64() % (at as u64 + 1)) as usize);
    }
    let next = order.iter().cycle().skip(1);
    let mut pairs: Vec<(u64, u64)> = order.iter().copied().zip(next.copied()).collect();
    for _ in 0..count {
        let pair = (random.next_u64() % count, random.next_u64() % count);
        let known = pairs.iter().any(|&(a, b)| (a, b) == pair || (b, a) == pair);
        if pair.0 != pair.1 && !known {
            pairs.push(pair);
        }
    }
    let each = |item: &dyn Fn(u64) -> String| (1..=count).map(item).collect::<Vec<_>>().join(", ");
    let links: Vec<String> =
        pairs.iter().map(|(a, b)| format!("[s{}, s{}]", a + 1, b + 1)).collect();
    format!(
        "topology:\n  listed:\n    switches: [{}]\n    links: [{}]\n    hosts: {{ {} }}\n",
        each(&|at| format!("s{at}")),
        links.join(", "),
        each(&|at| format!("h{at}: {{ at: s{at} }}")),
    )
}
