//! `--memory-max` of a sweep: the memory that all of its processes may use together.
//!
//! The memory of this process is subtracted. The rest is divided among the jobs, as many as have
//! enough for the run that needs most before traffic begins. Runs that need more than their share
//! are repeated at the end, alone with all of the rest. So the number of jobs does not affect which
//! runs complete.

use crate::sim::{memory_used, size};
use anyhow::{Result, ensure};
use axon_wire::Bytes;

/// Number of concurrent runs, and the memory of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Number of concurrent runs.
    pub jobs: usize,
    /// Limit of each of them; `None` for no limit.
    pub each: Option<Bytes>,
    /// Limit of a run that is repeated alone.
    pub alone: Option<Bytes>,
}

/// Returns the shares of `jobs` concurrent runs, of which each needs this many bytes at least.
///
/// # Errors
/// This process alone uses more.
pub fn shares(most: Option<Bytes>, jobs: usize, least: &[u64]) -> Result<Shares> {
    let Some(Bytes(most)) = most else { return Ok(Shares { jobs, each: None, alone: None }) };
    let own = memory_used("VmRSS:").unwrap_or(0);
    ensure!(
        most > own,
        "--memory-max {}: the sweep itself uses {}; expected more than that",
        size(most),
        size(own)
    );
    Ok(divided(most - own, jobs, least))
}

/// Divides the memory left for runs among jobs.
fn divided(rest: u64, jobs: usize, least: &[u64]) -> Shares {
    // A run that needs more than there is alone does not reduce the number of jobs.
    let needed = least.iter().copied().filter(|&bytes| bytes <= rest).max().unwrap_or(0);
    let fit = rest.checked_div(needed).map_or(jobs, |fit| usize::try_from(fit).unwrap_or(jobs));
    let jobs = jobs.min(fit).max(1);
    Shares { jobs, each: Some(Bytes(rest / jobs as u64)), alone: Some(Bytes(rest)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_divided_among_as_many_jobs_as_have_enough() {
        let of = |jobs, least: &[u64]| {
            let shares = divided(1_000, jobs, least);
            assert_eq!(shares.alone, Some(Bytes(1_000)));
            (shares.jobs, shares.each.unwrap().0)
        };
        assert_eq!(of(4, &[10, 20]), (4, 250));
        assert_eq!(of(4, &[10, 400]), (2, 500));
        assert_eq!(of(4, &[10, 400, 9_999]), (2, 500), "one that cannot fit anyway");
        assert_eq!(of(4, &[600]), (1, 1_000));
        assert_eq!(of(4, &[]), (4, 250));
    }

    #[test]
    fn less_than_the_sweep_itself_uses_is_refused() {
        assert!(shares(Some(Bytes(1)), 1, &[]).is_err());
        assert_eq!(shares(None, 3, &[1]).unwrap().jobs, 3);
    }
}
