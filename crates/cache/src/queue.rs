//! Queue of the buffers that the agent holds, by allocation time.
//!
//! It is a doubly linked list over buffer numbers. Expiry reads the first, and an agent may answer
//! any of them, so every operation takes constant time. All have the same maximum hold time, so the
//! first one is due first.

use crate::handle::BUFFERS_MAX;
use alloc::vec;
use alloc::vec::Vec;

/// Value that stands for no buffer.
const NONE: u16 = u16::MAX;
// No buffer has this number, so it can stand for no buffer.
const _: () = assert!(BUFFERS_MAX <= NONE as usize);

#[derive(Clone, Copy, Debug)]
struct Links {
    before: u16,
    after: u16,
}

/// Queue of numbers below a limit of at most [`BUFFERS_MAX`].
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    links: Vec<Links>,
    first: u16,
    last: u16,
}

impl Queue {
    /// Creates an empty queue of numbers below `limit`.
    pub(crate) fn new(limit: usize) -> Queue {
        Queue { links: vec![Links { before: NONE, after: NONE }; limit], first: NONE, last: NONE }
    }

    /// Returns the number that has been in the queue for longest.
    #[inline]
    pub(crate) fn first(&self) -> Option<usize> {
        (self.first != NONE).then_some(self.first as usize)
    }

    /// Appends a number. It must not be in the queue.
    #[inline]
    pub(crate) fn push(&mut self, number: usize) {
        let at = number as u16;
        self.links[number] = Links { before: self.last, after: NONE };
        match self.links.get_mut(self.last as usize) {
            Some(last) => last.after = at,
            None => self.first = at,
        }
        self.last = at;
    }

    /// Removes a number from any position. It must be in the queue.
    #[inline]
    pub(crate) fn remove(&mut self, number: usize) {
        let Links { before, after } = self.links[number];
        match self.links.get_mut(before as usize) {
            Some(links) => links.after = after,
            None => self.first = after,
        }
        match self.links.get_mut(after as usize) {
            Some(links) => links.before = before,
            None => self.last = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use axon_node::random::Random;

    #[test]
    fn the_first_is_that_of_a_plain_queue_from_which_any_may_leave() {
        for limit in [1, 2, 5, 300, BUFFERS_MAX] {
            let (mut queue, mut plain) = (Queue::new(limit), VecDeque::new());
            let mut random = Random::new(limit as u64);
            for _ in 0..3000 {
                let number = random.next_u64() as usize % limit;
                match plain.iter().position(|&other| other == number) {
                    Some(at) => {
                        plain.remove(at);
                        queue.remove(number);
                    }
                    None => {
                        plain.push_back(number);
                        queue.push(number);
                    }
                }
                assert_eq!(queue.first(), plain.front().copied(), "limit {limit}");
            }
            while let Some(first) = plain.pop_front() {
                queue.remove(first);
                assert_eq!(queue.first(), plain.front().copied());
            }
        }
    }
}
