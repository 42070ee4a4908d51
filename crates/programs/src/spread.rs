//! Deterministic choices that all programs make in the same way.

use axon_node::random::Random;

/// Returns one of `all`, selected by the numbers of a node and of a host. All programs select the
/// same one, and the choices are evenly spread.
pub(crate) fn spread<T>(all: &[T], node: u32, host: u32) -> Option<&T> {
    let hash = Random::new(u64::from(node) << 32 | u64::from(host)).next_u64();
    all.get(((u128::from(hash) * all.len() as u128) >> 64) as usize)
}
