//! Fabrics of one generator with defaults throughout, for tests and benchmarks.

use crate::model::Fabric;

/// Returns a fabric with this entry of `topology` (`star: { switches: 4 }`) and defaults otherwise.
///
/// # Panics
/// If the file would be refused: for tests and benchmarks, not for input.
pub(crate) fn sample(topology: &str) -> Fabric {
    let text = format!("name: sample\ntopology: {{ {topology} }}\n");
    match crate::parse("sample".as_ref(), &text) {
        Ok(fabric) => fabric,
        Err(error) => panic!("{error}"),
    }
}

/// Returns a line of switches with defaults throughout. Panics like `sample()`.
pub fn line(switches: usize, hosts_per_switch: usize) -> Fabric {
    sample(&format!("line: {{ switches: {switches}, hosts_per_switch: {hosts_per_switch} }}"))
}

/// Returns a ring of switches with defaults throughout. Panics like `sample()`.
pub fn ring(switches: usize, hosts_per_switch: usize) -> Fabric {
    sample(&format!("ring: {{ switches: {switches}, hosts_per_switch: {hosts_per_switch} }}"))
}

/// Returns a fat tree of `k`-port switches with defaults throughout. Panics like `sample()`.
pub fn fat_tree(k: usize) -> Fabric {
    sample(&format!("fat_tree: {{ k: {k} }}"))
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
