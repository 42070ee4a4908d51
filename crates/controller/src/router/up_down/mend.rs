//! Repairs an order after a failure, so that no route in use violates it.
//!
//! A switch that has lost its last link up has only links that lead down. If one of these is
//! reversed, so that it leads up, the switch has a path up again. All turns at that switch stay
//! allowed. Frames that came up to it and went down now go on up over the reversed link, or come
//! down over it. At the other end of the link, frames that came up to it and went on up now come up
//! and go down, and frames that came down from the switch now come up from it. So every earlier
//! route whose links are up follows the new order too. Old and new routes together have no cycle of
//! buffers, and no route has to be drained or changed.
//!
//! The other end must have another path up that does not lead through the switch, because otherwise
//! the links up would form a cycle. If its only path up was via the switch itself, it has none now
//! and is repaired in the same way, and so on along the chain. (Link reversal: E. M. Gafni and D.
//! P. Bertsekas, IEEE Transactions on Communications 29(1), 1981.) If the repair fails, a new order
//! is made ([`Order::renew`]).

use super::order::Order;
use crate::topology::{Graph, SwitchIndex};
use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

/// Maximum number of links reversed in a chain for one switch.
const CHAIN_MAX: usize = 8;

/// Reverses links so that in each component of the graph only one switch has no link up, as
/// required by [`Order::serves`]. Returns `None` if that is impossible. Every switch must have a
/// rank.
pub(super) fn mend(order: &Order, graph: &Graph) -> Option<Order> {
    let mut order = order.clone();
    loop {
        let tops = order.rival_tops(graph);
        if tops.is_empty() {
            return Some(order);
        }
        // Any of these may stay the root, which leaves one less to repair.
        let mut lowered =
            tops.into_iter().map(|top| lower(&order, graph, top, &mut vec![top], CHAIN_MAX));
        order = lowered.find_map(|order| order)?;
    }
}

/// Gives `top` a path up by reversing one link or a chain of links. The switches in `done` were
/// lowered earlier.
fn lower(
    order: &Order,
    graph: &Graph,
    top: SwitchIndex,
    done: &mut Vec<SwitchIndex>,
    left: usize,
) -> Option<Order> {
    let mut others: Vec<SwitchIndex> = graph.edges(top).iter().map(|edge| edge.to).collect();
    others.sort_unstable_by_key(|&other| order.rank(other));
    others.dedup();
    if let Some(&other) = others.iter().find(|&&other| leads_elsewhere(order, graph, other, top)) {
        return Some(turned(order, graph, top, other));
    }
    for other in others {
        let only = ups(order, graph, other).all(|up| up == top);
        if left > 0 && only && !done.contains(&other) {
            done.push(other);
            let turned = turned(order, graph, top, other);
            if let Some(order) = lower(&turned, graph, other, done, left - 1) {
                return Some(order);
            }
        }
    }
    None
}

/// Returns the far ends of the links that lead up from a switch.
fn ups<'a>(
    order: &'a Order,
    graph: &'a Graph,
    at: SwitchIndex,
) -> impl Iterator<Item = SwitchIndex> + 'a {
    graph.edges(at).iter().map(|edge| edge.to).filter(move |&to| order.is_up(at, to))
}

/// Returns whether a switch has a path up other than via `top`, and none of these paths leads to
/// `top`.
fn leads_elsewhere(order: &Order, graph: &Graph, from: SwitchIndex, top: SwitchIndex) -> bool {
    let mut ahead: Vec<SwitchIndex> = ups(order, graph, from).filter(|&up| up != top).collect();
    let mut seen: BTreeSet<SwitchIndex> = ahead.iter().copied().collect();
    if ahead.is_empty() {
        return false;
    }
    while let Some(at) = ahead.pop() {
        for up in ups(order, graph, at) {
            if up == top {
                return false;
            }
            if seen.insert(up) {
                ahead.push(up);
            }
        }
    }
    true
}

/// Returns the order in which the link from `top`, which has no link up, to `other` leads up. All
/// other links keep their direction. Switches are renumbered from the top. Among several
/// candidates, the one with the lowest old rank is next.
fn turned(order: &Order, graph: &Graph, top: SwitchIndex, other: SwitchIndex) -> Order {
    let is_up = |from, to| match (from, to) {
        _ if (from, to) == (top, other) => true,
        _ if (from, to) == (other, top) => false,
        _ => order.is_up(from, to),
    };
    let all = || (0..graph.len() as u32).map(SwitchIndex);
    let mut left: Vec<usize> =
        all().map(|at| graph.edges(at).iter().filter(|edge| is_up(at, edge.to)).count()).collect();
    let mut next: BTreeSet<(u32, SwitchIndex)> =
        all().filter(|at| left[at.index()] == 0).map(|at| (order.rank(at), at)).collect();
    let mut sorted = Vec::with_capacity(graph.len());
    while let Some((_, at)) = next.pop_first() {
        sorted.push(at);
        for edge in graph.edges(at).iter().filter(|edge| is_up(edge.to, at)) {
            left[edge.to.index()] -= 1;
            if left[edge.to.index()] == 0 {
                next.insert((order.rank(edge.to), edge.to));
            }
        }
    }
    Order::from_top(&sorted)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{connected, ring, tell, torus};
    use super::*;
    use proptest::prelude::*;

    fn graph(count: u64, version: u64, pairs: &[(u64, u64)]) -> Graph {
        let mut graph = Graph::default();
        tell(&mut graph, version, count, pairs);
        graph
    }

    /// Returns the turns that an order allows at each switch, as the switches before, at and after
    /// the turn.
    fn allowed(order: &Order, graph: &Graph) -> Vec<[SwitchIndex; 3]> {
        let mut turns = Vec::new();
        for at in (0..graph.len() as u32).map(SwitchIndex) {
            for from in graph.edges(at) {
                for to in graph.edges(at).iter().filter(|to| to.to != from.to) {
                    if order.is_up(from.to, at) || !order.is_up(at, to.to) {
                        turns.push([from.to, at, to.to]);
                    }
                }
            }
        }
        turns
    }

    #[test]
    fn a_ring_that_loses_a_link_of_its_root_turns_the_links_behind_it() {
        let whole = graph(6, 1, &ring(6));
        let mut order = Order::default();
        order.renew(&whole, false);
        let left: Vec<_> = ring(6).into_iter().filter(|&pair| pair != (0, 1)).collect();
        let cut = graph(6, 1, &left);
        assert!(!order.serves(&cut));
        let mut mended = mend(&order, &cut).expect("a line has no cycle");
        assert!(mended.serves(&cut));
        let before = allowed(&order, &cut);
        assert!(before.iter().all(|turn| allowed(&mended, &cut).contains(turn)));
    }

    #[test]
    fn in_a_torus_the_failure_of_each_link_leaves_every_turn_allowed() {
        let pairs = torus(5, 5);
        let mut order = Order::default();
        order.renew(&graph(25, 1, &pairs), false);
        let mut turned = 0;
        for &failed in &pairs {
            let left: Vec<_> = pairs.iter().copied().filter(|&pair| pair != failed).collect();
            let cut = graph(25, 1, &left);
            if order.serves(&cut) {
                continue;
            }
            let mut mended = mend(&order, &cut).expect("a way up");
            assert!(mended.serves(&cut));
            let now = allowed(&mended, &cut);
            assert!(allowed(&order, &cut).iter().all(|turn| now.contains(turn)), "{failed:?}");
            turned += 1;
        }
        assert_eq!(turned, 6, "those after which a switch has no way up");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn a_mended_order_serves_and_allows_whatever_was_allowed(
            (count, pairs) in connected(),
            failed in any::<prop::sample::Index>(),
        ) {
            let mut order = Order::default();
            order.renew(&graph(count, 1, &pairs), false);
            let failed = pairs[failed.index(pairs.len())];
            let left: Vec<_> = pairs.iter().copied().filter(|&pair| pair != failed).collect();
            let cut = graph(count, 1, &left);
            if let Some(mut mended) = mend(&order, &cut) {
                prop_assert!(mended.serves(&cut));
                let now = allowed(&mended, &cut);
                prop_assert!(allowed(&order, &cut).iter().all(|turn| now.contains(turn)));
            }
        }
    }
}
