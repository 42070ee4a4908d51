//! Query about all paths of a flow, and the choice among them.

use super::cube::Nha;
use super::paths::Path;
use alloc::vec::Vec;
use axon_wire::Time;

/// Path about whose bandwidth a query was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) path: Path,
    pub(super) answer: Answer,
}

/// State of a queried path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// No answer has arrived yet.
    Pending,
    /// Available bandwidth along the path, in bits per second.
    Available(u64),
    /// A hop of the path has failed.
    Failed,
}

/// Query about all paths of a flow.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    /// Number of the request for the first path. Those for other paths follow.
    pub(super) first_id: u32,
    pub(super) sent_at: Time,
    /// Number of times that the requests have been sent.
    pub(super) tries: u8,
    pub(super) paths: Vec<Asked>,
}

impl Probe {
    /// Returns the path of a request.
    pub(super) fn asked(&mut self, id: u32) -> Option<&mut Asked> {
        self.paths.get_mut(id.wrapping_sub(self.first_id) as usize)
    }

    /// Returns whether all requests have been answered.
    pub(super) fn is_settled(&self) -> bool {
        self.paths.iter().all(|asked| asked.answer != Answer::Pending)
    }

    /// Returns whether a path can be chosen.
    pub(super) fn has_answer(&self) -> bool {
        self.paths.iter().any(|asked| matches!(asked.answer, Answer::Available(_)))
    }
}

/// Input to the choice in addition to the answers.
pub(super) struct Situation<'a> {
    /// Current path of the flow, if it has one.
    pub(super) current: Option<&'a [Nha]>,
    /// Rate of the flow on that path in bits per second. The flow would free it by moving.
    pub(super) own_rate: u64,
    /// Returns the number of other flows to the same server that were put on a path so recently
    /// that the answers do not reflect them.
    pub(super) unseen: &'a dyn Fn(&[Nha]) -> u64,
}

/// Returns the best path with an answer. The bandwidth of a path is shared with the flows that the
/// answers do not reflect yet. Differences below a tenth are ignored. Among equals the shortest
/// path wins, then the one with the fewest flows. A flow moves only if it gains a quarter.
pub(super) fn choose(paths: &[Asked], situation: &Situation<'_>) -> Option<usize> {
    let is_current = |path: &[Nha]| situation.current == Some(path);
    let score = |asked: &Asked| {
        let Answer::Available(left) = asked.answer else { return None };
        let own = if is_current(&asked.path) { situation.own_rate } else { 0 };
        Some(left.saturating_add(own) / (1 + (situation.unseen)(&asked.path)))
    };
    let scores: Vec<Option<u64>> = paths.iter().map(score).collect();
    let best = scores.iter().flatten().copied().max()?;
    let current = paths.iter().position(|asked| is_current(&asked.path));
    if let Some(place) = current
        && let Some(now) = scores[place]
        && u128::from(best) * 4 <= u128::from(now) * 5
    {
        return Some(place);
    }
    let near = |score: &Option<u64>| {
        score.is_some_and(|score| u128::from(score) * 10 >= u128::from(best) * 9)
    };
    let equals = (0..paths.len()).filter(|&place| near(&scores[place]));
    equals.min_by_key(|&place| {
        let path = &paths[place].path;
        (path.len(), (situation.unseen)(path), place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GBPS: u64 = 1_000_000_000;

    fn asked(hops: &[u8], answer: Answer) -> Asked {
        Asked { path: hops.iter().map(|&nha| Nha(nha)).collect(), answer }
    }

    fn left(hops: &[u8], bits: u64) -> Asked {
        asked(hops, Answer::Available(bits))
    }

    fn chosen(paths: &[Asked], current: Option<usize>, own_rate: u64) -> Option<usize> {
        let current = current.map(|place| &paths[place].path[..]);
        choose(paths, &Situation { current, own_rate, unseen: &|_| 0 })
    }

    #[test]
    fn the_most_bandwidth_wins_and_among_equals_the_shortest() {
        let paths = [left(&[1, 2, 3], GBPS), left(&[4], GBPS - GBPS / 20), left(&[5], GBPS / 2)];
        assert_eq!(chosen(&paths, None, 0), Some(1));
        let busy = [left(&[1, 2, 3], GBPS), left(&[4], GBPS / 2)];
        assert_eq!(chosen(&busy, None, 0), Some(0));
        let failed = [asked(&[1], Answer::Failed), asked(&[2], Answer::Pending)];
        assert_eq!(chosen(&failed, None, 0), None);
        let one = [asked(&[1], Answer::Failed), left(&[2, 3, 4], 0)];
        assert_eq!(chosen(&one, Some(0), GBPS), Some(1), "its own path has failed");
    }

    #[test]
    fn flows_that_start_together_spread_over_equal_paths() {
        let paths = [left(&[1, 2], GBPS), left(&[3, 4], GBPS)];
        let unseen = |path: &[Nha]| u64::from(path[0] == Nha(1));
        let situation = Situation { current: None, own_rate: 0, unseen: &unseen };
        assert_eq!(choose(&paths, &situation), Some(1));
    }

    #[test]
    fn a_flow_moves_only_for_a_quarter_more_than_it_would_have_where_it_is() {
        let paths = [left(&[1, 2], 0), left(&[3, 4], GBPS)];
        assert_eq!(chosen(&paths, Some(0), GBPS), Some(0), "it fills its path alone");
        assert_eq!(chosen(&paths, Some(0), GBPS / 2), Some(1), "it shares its path");
        assert_eq!(chosen(&paths, Some(0), GBPS * 4 / 5), Some(0));
    }
}
