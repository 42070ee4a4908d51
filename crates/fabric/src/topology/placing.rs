//! Placement of hosts: a number at each switch, or a total, spread evenly or at random.

use super::plan::{HOSTS_MAX, Plan, PlanEnd, PlanHost, WireChange, in_range};
use crate::error::Problem;
use crate::file::{Placed, Placement};
use oorandom::Rand64;

/// Separates a placement's random numbers from those of a graph with the same seed.
const STREAM: u128 = 0x686f_7374;

/// Host settings of a generator in the file.
pub(super) struct Asked<'a> {
    /// Key of the generator: `topology.ring`.
    pub topology: &'static str,
    /// Key of `per_switch` in it: `hosts_per_switch`.
    pub key: &'static str,
    /// Hosts at each switch, if given.
    pub per_switch: Option<usize>,
    /// Default number of hosts at each switch.
    pub default: usize,
    /// Total number of hosts and their placement, if given.
    pub placed: &'a Option<Placed>,
    /// Seed of the fabric.
    pub seed: u64,
}

impl Plan {
    /// Attaches hosts to `switches`, switch by switch: `h1` is at the first that has one.
    pub(super) fn place_hosts(
        &mut self,
        asked: &Asked<'_>,
        switches: std::ops::Range<usize>,
    ) -> Result<(), Problem> {
        let key = format!("{}.{}", asked.topology, asked.key);
        let Some(placed) = asked.placed else {
            let most = HOSTS_MAX / switches.len().max(1);
            let count = asked.per_switch.unwrap_or(asked.default);
            if asked.per_switch.is_none() && count > most {
                // The key is not in the file, so its value cannot be out of range.
                let what = format!("{count} hosts at each switch, the default, are too many");
                let expected = format!("{}: 0 to {most}", asked.key);
                return Err(Problem::new(asked.topology, what, expected));
            }
            in_range(&key, count, 0, most)?;
            self.attach_hosts(&key, switches, |_| count);
            return Ok(());
        };
        let hosts_key = format!("{}.hosts", asked.topology);
        if asked.per_switch.is_some() {
            let what = format!("there is {} too", asked.key);
            let expected = format!("either hosts or {}", asked.key);
            return Err(Problem::new(hosts_key, what, expected));
        }
        in_range(&format!("{hosts_key}.count"), placed.count, 0, HOSTS_MAX)?;
        let at = match placed.placement {
            Placement::Even => even(placed.count, switches.len()),
            Placement::Random => {
                random(placed.count, switches.len(), placed.seed.unwrap_or(asked.seed))
            }
        };
        let first = switches.start;
        self.attach_hosts(&hosts_key, switches, |switch| at[switch - first]);
        Ok(())
    }

    fn attach_hosts(
        &mut self,
        key: &str,
        switches: std::ops::Range<usize>,
        count: impl Fn(usize) -> usize,
    ) {
        for switch in switches {
            for _ in 0..count(switch) {
                self.hosts.push(PlanHost {
                    name: format!("h{}", self.hosts.len() + 1),
                    at: PlanEnd { switch, port: None },
                    ip: None,
                    ip6: None,
                    mac: None,
                    wire: WireChange::default(),
                    key: key.into(),
                });
            }
        }
    }
}

/// Distributes `count` hosts over `switches` so that numbers differ by one at most, with the larger
/// numbers spread over the whole row.
fn even(count: usize, switches: usize) -> Vec<usize> {
    (0..switches).map(|at| (at + 1) * count / switches - at * count / switches).collect()
}

/// Distributes `count` hosts over `switches`, each host at random.
fn random(count: usize, switches: usize, seed: u64) -> Vec<usize> {
    let mut dice = Rand64::new(STREAM << 64 | u128::from(seed));
    let mut at = vec![0; switches];
    for _ in 0..count {
        at[dice.rand_range(0..switches as u64) as usize] += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_means_no_two_more_than_another() {
        assert_eq!(even(5, 3), [1, 2, 2]);
        assert_eq!(even(6, 3), [2, 2, 2]);
        assert_eq!(even(1, 3), [0, 0, 1]);
        for count in 0..50 {
            let at = even(count, 7);
            assert_eq!(at.iter().sum::<usize>(), count);
            assert!(at.iter().all(|&n| n == count / 7 || n == count / 7 + 1), "{at:?}");
        }
    }

    #[test]
    fn a_random_placement_follows_its_seed_and_forgets_nobody() {
        let at = random(1000, 10, 5);
        assert_eq!(at, random(1000, 10, 5));
        assert_ne!(at, random(1000, 10, 6));
        assert_eq!(at.iter().sum::<usize>(), 1000);
        // The average is 100, with a standard deviation of 9.5.
        assert!(at.iter().all(|&n| (50..150).contains(&n)), "{at:?}");
    }

    #[test]
    fn a_count_of_hosts_takes_the_place_of_hosts_per_switch() {
        let text = "name: a\ntopology: {star: {switches: 4, hosts: {count: 7}}}";
        let fabric = crate::parse("a.yaml".as_ref(), text).unwrap();
        let at: Vec<usize> = fabric.hosts.iter().map(|host| host.switch).collect();
        assert_eq!(at, [1, 1, 2, 2, 3, 3, 3]);
    }
}
