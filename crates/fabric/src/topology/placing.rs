//! Placement of hosts: a number at each switch, or a total, spread evenly or at random.

use super::plan::{HOSTS_MAX, Plan, PlanEnd, PlanHost, in_range};
use crate::error::Problem;
use crate::file::{Placed, Placement};
use oorandom::Rand64;

/// Separates a placement's random numbers from those of a graph with the same seed.
const STREAM: u128 = 0x686f_7374;

impl Plan {
    /// Attaches hosts to `switches`, switch by switch: `h1` is at the first that has one. The keys
    /// are that of the generator and that of the number at each switch; `per_switch` is that
    /// number, if given, or its `default`, where there is no total number.
    pub(super) fn place_hosts(
        &mut self,
        [generator, name]: [&'static str; 2],
        (per_switch, default, placed): (Option<usize>, usize, &Option<Placed>),
        seed: u64,
        switches: std::ops::Range<usize>,
    ) -> Result<(), Problem> {
        let key = format!("{generator}.{name}");
        let Some(placed) = placed else {
            let most = HOSTS_MAX / switches.len().max(1);
            let count = per_switch.unwrap_or(default);
            if per_switch.is_none() && count > most {
                // The key is not in the file, so its value cannot be out of range.
                let what = format!("{count} hosts at each switch, the default, are too many");
                return Err(Problem::new(generator, what, format!("{name}: 0 to {most}")));
            }
            in_range(&key, count, 0, most)?;
            self.attach_hosts(&key, switches, |_| count);
            return Ok(());
        };
        let key = format!("{generator}.hosts");
        if per_switch.is_some() {
            let what = format!("there is {name} too");
            return Err(Problem::new(key, what, format!("either hosts or {name}")));
        }
        in_range(&format!("{key}.count"), placed.count, 0, HOSTS_MAX)?;
        let at = match placed.placement {
            Placement::Even => even(placed.count, switches.len()),
            Placement::Random => random(placed.count, switches.len(), placed.seed.unwrap_or(seed)),
        };
        let first = switches.start;
        self.attach_hosts(&key, switches, |switch| at[switch - first]);
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
                    wire: Vec::new(),
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
