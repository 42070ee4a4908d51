//! Measured load of stations, used to balance shards.

/// Events before the first check. Each further check is due after twice as many.
const FIRST: u64 = 100_000;
/// Excess load of a shard over the mean that makes shards uneven, in percent.
const UNEVEN_PERCENT: u64 = 15;

/// Load of the stations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    /// Events of each station at the last check.
    before: Vec<u64>,
    /// Total events at which the next check is due.
    next: u64,
}

impl Load {
    /// Starts the measurement with the events of each station and their total.
    pub(crate) fn begin(events: Vec<u64>, total: u64) -> Load {
        Load { before: events, next: total + FIRST }
    }

    /// Returns whether a check is due after `events` events in total.
    pub(crate) fn is_due(&self, events: u64) -> bool {
        events >= self.next
    }

    /// Records a check after `total` events. Returns the load of each station since the last check.
    pub(crate) fn look(&mut self, events: Vec<u64>, total: u64) -> Vec<u64> {
        self.next = (2 * total).max(total + FIRST);
        let before = std::mem::replace(&mut self.before, events);
        let since = |(now, before): (&u64, u64)| now.saturating_sub(before);
        self.before.iter().zip(before.into_iter().chain(std::iter::repeat(0))).map(since).collect()
    }
}

/// Returns whether one of these shards has a much greater load than the others.
pub(crate) fn is_uneven(shards: &[u64]) -> bool {
    let (most, sum) = (shards.iter().max().copied().unwrap_or(0), shards.iter().sum::<u64>());
    most * shards.len() as u64 * 100 > sum * (100 + UNEVEN_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_what_was_done_since_the_last_look() {
        let mut load = Load::begin(vec![10, 20], 30);
        assert!(!load.is_due(30 + FIRST - 1) && load.is_due(30 + FIRST));
        assert_eq!(load.look(vec![110, FIRST], FIRST + 110), [100, FIRST - 20]);
        assert!(!load.is_due(2 * FIRST) && load.is_due(2 * (FIRST + 110)));
        assert_eq!(load.look(vec![115, FIRST, 7], 2 * (FIRST + 110)), [5, 0, 7], "one came later");
    }

    #[test]
    fn shards_are_uneven_by_more_than_a_seventh() {
        assert!(!is_uneven(&[100, 100, 100]) && !is_uneven(&[115, 85]) && !is_uneven(&[0, 0]));
        assert!(is_uneven(&[116, 84]) && is_uneven(&[100, 0]));
    }
}
