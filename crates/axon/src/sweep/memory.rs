//! `--memory-max` of a sweep: what all of its processes may use together.
//!
//! What this process uses comes off. The rest is divided among the jobs, of which there are as many
//! as have enough for the run that needs most before anything is sent. What needs more than its
//! share is run again at the end, by itself with all of the rest. So the number of jobs decides
//! nothing about which runs come to their end.

use crate::sim::{memory_used, size};
use anyhow::{Result, ensure};
use axon_wire::Bytes;

/// How many runs at a time, and what each may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Runs at a time.
    pub jobs: usize,
    /// Of each of them; no limit without.
    pub each: Option<Bytes>,
    /// Of a run by itself.
    pub alone: Option<Bytes>,
}

/// The shares of `jobs` runs at a time, of which each needs so many bytes at least.
///
/// # Errors
/// This process uses more by itself.
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

/// The same for what is left for runs.
fn divided(rest: u64, jobs: usize, least: &[u64]) -> Shares {
    // Who needs more than there is by itself lessens nothing.
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
