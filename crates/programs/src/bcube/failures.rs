//! Failed hops that other servers have reported.

use super::cube::{Cube, Nha};
use super::paths;
use alloc::collections::BTreeMap;
use axon_wire::{Span, Time};

/// Lifetime of a report. After that, the hop is tried again.
const HOLD: Span = Span::from_secs(10);
/// Maximum number of hops that are remembered.
const HOPS_MAX: usize = 1024;

/// Hops that are currently avoided.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    until: BTreeMap<(u32, Nha), Time>,
}

impl Failures {
    /// Records that `server` cannot use a hop.
    pub(super) fn report(&mut self, now: Time, server: u32, nha: Nha) {
        self.until.retain(|_, until| *until > now);
        if self.until.len() < HOPS_MAX {
            self.until.insert((server, nha), now + HOLD);
        }
    }

    /// Returns whether there is no failure report for a hop.
    pub(super) fn is_open(&self, now: Time, server: u32, nha: Nha) -> bool {
        self.until.get(&(server, nha)).is_none_or(|&until| until <= now)
    }

    /// Returns whether there is no failure report for any hop of a path.
    pub(super) fn is_path_open(&self, now: Time, cube: Cube, from: u32, path: &[Nha]) -> bool {
        let servers = paths::servers(cube, from, path);
        servers.into_iter().zip(path).all(|(server, &nha)| self.is_open(now, server, nha))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_closes_the_paths_of_its_hop_for_a_while() {
        let cube = Cube::new(4, 1).unwrap();
        let mut failures = Failures::default();
        failures.report(Time::ZERO, 0, Nha(5));
        let path = [Nha(0), Nha(5)];
        let soon = Time::ZERO + Span::from_secs(9);
        assert!(!failures.is_path_open(soon, cube, 1, &path), "01, 00, 10");
        assert!(failures.is_path_open(soon, cube, 2, &[Nha(5), Nha(0)]));
        assert!(failures.is_path_open(Time::ZERO + HOLD, cube, 1, &path));
    }
}
