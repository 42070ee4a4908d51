//! Backlog that each source would have if a queue were scheduled fairly.
//!
//! The queue itself sends in order of arrival; accounts run beside it. An arriving frame is added
//! to the account of its source. Bytes that leave the queue are subtracted from all accounts in
//! round robin, a quantum each, as a scheduler with one queue per source would have served them,
//! not from the account of their sender. So the accounts always add up to the queue. A source that
//! sends at most its max-min fair share has next to nothing in its account, regardless of other
//! sources and their frame lengths; the excess of other sources is in their accounts, byte by byte,
//! until it is worked off.
//!
//! A source is paused when the queue is at its watermark and its account is not below the mean of
//! the non-empty accounts. It gets XON when its account has fallen to its part of the low
//! watermark: its excess is then worked off, so it gets its share and no more. A source below its
//! share is never above the mean for longer than a burst.
//!
//! The work for each frame is constant: a frame has at most a few quanta.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Bytes subtracted from one account in a round: about a frame.
const QUANTUM: u64 = 1_600;

/// Accounts of the sources of one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxMin {
    /// Account of each source, in bytes.
    accounts: Vec<u64>,
    /// Sources with a non-empty account, each once; the first is being served.
    ring: VecDeque<usize>,
    /// Bytes subtracted from the first account in this round.
    taken: u64,
}

impl MaxMin {
    /// Adds a frame to the account of `source`.
    pub(super) fn join(&mut self, source: usize, bytes: u64) {
        if source >= self.accounts.len() {
            self.accounts.resize(source + 1, 0);
        }
        if self.accounts[source] == 0 && bytes > 0 {
            self.ring.push_back(source);
        }
        self.accounts[source] += bytes;
    }

    /// Subtracts bytes that have left the queue, of any source, from the accounts.
    pub(super) fn serve(&mut self, mut bytes: u64) {
        while bytes > 0 {
            let Some(&source) = self.ring.front() else { return };
            let account = &mut self.accounts[source];
            let part = bytes.min(*account).min(QUANTUM - self.taken);
            *account -= part;
            bytes -= part;
            self.taken += part;
            if *account == 0 {
                self.ring.pop_front();
                self.taken = 0;
            } else if self.taken == QUANTUM {
                self.ring.rotate_left(1);
                self.taken = 0;
            }
        }
    }

    /// Returns the account of a source, in bytes.
    pub(super) fn of(&self, source: usize) -> u64 {
        self.accounts.get(source).copied().unwrap_or(0)
    }

    /// Returns whether a source has at least the mean of a queue of `bytes` bytes.
    pub(super) fn is_large(&self, source: usize, bytes: u64) -> bool {
        self.of(source).saturating_mul(self.ring.len() as u64) >= bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn who_sends_less_than_its_share_has_no_backlog_however_small_its_frames() {
        let mut accounts = MaxMin::default();
        // In each round 3,000 bytes leave; the shares are 1,000 and the part that source 1 leaves.
        let mut bytes = 0;
        for _ in 0..100 {
            for (source, frame, count) in [(0, 1_000, 3), (1, 100, 5), (2, 250, 4)] {
                (0..count).for_each(|_| accounts.join(source, frame));
                bytes += frame * count;
            }
            accounts.serve(3_000);
            bytes -= 3_000;
        }
        assert_eq!(bytes, 150_000);
        assert!(accounts.of(0) >= bytes - 2 * QUANTUM, "{}", accounts.of(0));
        assert!(accounts.of(1) <= QUANTUM && accounts.of(2) <= QUANTUM);
        assert!(accounts.is_large(0, bytes) && !accounts.is_large(1, bytes));
    }

    #[test]
    fn equals_are_all_large_and_work_theirs_off_alike() {
        let mut accounts = MaxMin::default();
        (0..4).for_each(|source| accounts.join(source, 8_000));
        assert!((0..4).all(|source| accounts.is_large(source, 32_000)));
        accounts.serve(16_000);
        for source in 0..4 {
            assert!(accounts.of(source).abs_diff(4_000) <= QUANTUM, "{}", accounts.of(source));
        }
    }

    proptest! {
        #[test]
        fn accounts_add_up_to_the_queue(
            steps in prop::collection::vec((0usize..5, 1u64..9_000, any::<bool>()), 1..300),
        ) {
            let mut accounts = MaxMin::default();
            let mut queue = VecDeque::new();
            for (source, bytes, leaves) in steps {
                accounts.join(source, bytes);
                queue.push_back(bytes);
                if leaves {
                    accounts.serve(queue.pop_front().unwrap());
                }
                let sum: u64 = (0..5).map(|source| accounts.of(source)).sum();
                prop_assert_eq!(sum, queue.iter().sum::<u64>());
                let listed: Vec<u64> = accounts.ring.iter().map(|&at| accounts.of(at)).collect();
                prop_assert!(listed.iter().all(|&bytes| bytes > 0));
                prop_assert_eq!(listed.iter().sum::<u64>(), sum);
            }
        }
    }
}
