//! Deadlock at one instant, which is a cycle of blocked buffers that wait for each other.

use super::cycle::Cycle;
use super::dependencies::{Buffer, Dependencies};
use super::verdict::Verdict;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// A lossless buffer whose sender is paused, and the buffers for which its frames wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedBuffer {
    /// The buffer.
    pub buffer: Buffer,
    /// One entry for each queue that holds frames of this buffer. It lists the buffers at the other
    /// end of that queue's link on whose behalf the queue is paused. A queue with an empty entry
    /// may send.
    pub waits: Vec<Vec<Buffer>>,
}

/// Finds a cycle of blocked buffers that cannot drain. Returns `None` if all can drain.
///
/// A buffer is *stuck* if it has frames in some queue, and each of its queues is paused on behalf
/// of a buffer that is stuck as well. That is a greatest fixed point. Initially, all blocked
/// buffers count as stuck. A buffer is removed if one of its queues may send, or is paused only on
/// behalf of buffers that are not stuck. This is repeated until nothing changes. Each remaining
/// buffer waits for another one, so there is a cycle, and a shortest one is returned. The `routes`
/// of its waits count queues, and flows are not known.
///
/// The result holds for one instant. The buffers can drain again only if a pause expires without a
/// refresh, a watchdog drops frames, a link goes down, or a threshold that depends on free memory
/// rises because other buffers drain.
///
/// **Cost.** Each round visits all waits once and removes at least one buffer. Memory grows with
/// the number of waits.
pub fn deadlock(blocked: &[BlockedBuffer]) -> Option<Cycle> {
    let mut stuck: BTreeSet<Buffer> = blocked.iter().map(|all| all.buffer).collect();
    loop {
        let before = stuck.len();
        for BlockedBuffer { buffer, waits } in blocked {
            let holds = |on: &Vec<Buffer>| on.iter().any(|on| stuck.contains(on));
            if waits.is_empty() || !waits.iter().all(holds) {
                stuck.remove(buffer);
            }
        }
        if stuck.len() == before {
            break;
        }
    }
    let mut dependencies = Dependencies::default();
    for BlockedBuffer { buffer, waits } in blocked.iter().filter(|all| stuck.contains(&all.buffer))
    {
        for &on in waits.iter().flatten().filter(|on| stuck.contains(on)) {
            dependencies.add_wait(*buffer, on);
        }
    }
    match dependencies.verdict() {
        Verdict::Cycle(cycle) => Some(cycle),
        Verdict::Free(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_node::SwitchIndex;
    use axon_wire::{PortNo, Priority};

    fn buffer(number: u32) -> Buffer {
        Buffer { from: SwitchIndex(number), egress: PortNo(1), priority: Priority::ZERO }
    }

    fn blocked(number: u32, waits: &[&[u32]]) -> BlockedBuffer {
        let queue = |stops: &&[u32]| stops.iter().map(|&on| buffer(on)).collect();
        BlockedBuffer { buffer: buffer(number), waits: waits.iter().map(queue).collect() }
    }

    fn cycle(all: &[BlockedBuffer]) -> Option<Vec<u32>> {
        Some(deadlock(all)?.waits.iter().map(|wait| wait.buffer.from.0).collect())
    }

    #[test]
    fn buffers_that_wait_for_each_other_alone_are_a_deadlock_with_all_that_wait_for_them() {
        let ring = [blocked(0, &[&[1]]), blocked(1, &[&[2]]), blocked(2, &[&[0]])];
        assert_eq!(cycle(&ring), Some(alloc::vec![0, 1, 2]));
        let led = [blocked(7, &[&[2], &[0]])];
        assert_eq!(cycle(&[&led, &ring[..]].concat()), Some(alloc::vec![0, 1, 2]));
    }

    #[test]
    fn one_way_out_of_the_cycle_is_enough() {
        let ring = [blocked(0, &[&[1], &[]]), blocked(1, &[&[2]]), blocked(2, &[&[0]])];
        assert_eq!(cycle(&ring), None, "a queue of 0 may send");
        let ring = [blocked(0, &[&[1], &[9]]), blocked(1, &[&[2]]), blocked(2, &[&[0]])];
        assert_eq!(cycle(&ring), None, "9 is not blocked: it drains");
        assert_eq!(cycle(&ring[1..]), None);
        assert_eq!(cycle(&[blocked(0, &[])]), None, "nothing waits in it");
        assert_eq!(cycle(&[]), None);
    }

    #[test]
    fn a_queue_that_two_buffers_stop_waits_for_both() {
        let drains = blocked(3, &[&[]]);
        let ring = [blocked(0, &[&[3, 1]]), blocked(1, &[&[0]]), drains];
        assert_eq!(cycle(&ring), Some(alloc::vec![0, 1]), "3 goes on, 1 holds 0 all the same");
    }
}
