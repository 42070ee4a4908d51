//! Patterns of the ARP generator (001 §5).
//!
//! **Random.** Every host asks for the same number of random hosts.
//!
//! **LBNL-like.** The pattern of `axon sim`, [`axon_fabric::traffic::arp_questions`], which
//! documents its statistics, with a mean of `LBNL_ASKS` questions a host. Hosts are mapped to
//! switches at random, so that a subnet is spread over the fabric.
//!
//! A host never asks twice for a host, nor for itself: only new flows count.

use axon_fabric::traffic::{ArpPattern, arp_questions};
use oorandom::Rand64;

/// Questions of a host in the LBNL-like pattern: their mean, repeated ones included.
const LBNL_ASKS: u32 = 5;

/// Returns `asks` random questions for every host.
pub(crate) fn random(hosts: usize, asks: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut dice = Rand64::new(u128::from(seed) << 64 | 0x7261_6e64);
    let mut draw = |_: u32| dice.rand_range(0..hosts as u64) as u32;
    (0..hosts as u32).map(|host| others(host, asks.min(hosts - 1), || draw(host))).collect()
}

/// Returns LBNL-like questions. `placement` selects the mapping of hosts to places; the questions
/// depend on `seed` alone.
pub(crate) fn lbnl(hosts: usize, seed: u64, placement: u64) -> Vec<Vec<u32>> {
    let mut asked = Vec::with_capacity(hosts);
    for questions in arp_questions(ArpPattern::Lbnl, hosts, LBNL_ASKS, seed) {
        let mut others: Vec<u32> = Vec::with_capacity(questions.len());
        for other in questions.into_iter().map(|other| other as u32) {
            if !others.contains(&other) {
                others.push(other);
            }
        }
        asked.push(others);
    }
    placed(&asked, placement)
}

/// Returns `count` different hosts other than `host`, as they are drawn.
fn others(host: u32, count: usize, mut draw: impl FnMut() -> u32) -> Vec<u32> {
    let mut others = Vec::with_capacity(count);
    // A small network may have fewer other hosts.
    for _ in 0..100 * count {
        if others.len() == count {
            break;
        }
        let other = draw();
        if other != host && !others.contains(&other) {
            others.push(other);
        }
    }
    others
}

/// Returns the same questions, with hosts at random places (a Fisher-Yates shuffle).
fn placed(asked: &[Vec<u32>], placement: u64) -> Vec<Vec<u32>> {
    let mut dice = Rand64::new(u128::from(placement) << 64 | 0x706c_6163);
    let mut place: Vec<u32> = (0..asked.len() as u32).collect();
    for at in (1..place.len()).rev() {
        place.swap(at, dice.rand_range(0..at as u64 + 1) as usize);
    }
    let mut moved = vec![Vec::new(); asked.len()];
    for (host, others) in asked.iter().enumerate() {
        moved[place[host] as usize] = others.iter().map(|&other| place[other as usize]).collect();
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn no_host_asks_for_itself_or_twice(asked: &[Vec<u32>]) {
        for (host, others) in asked.iter().enumerate() {
            let set: BTreeSet<_> = others.iter().collect();
            assert_eq!(set.len(), others.len());
            assert!(!others.contains(&(host as u32)));
            assert!(others.iter().all(|&other| (other as usize) < asked.len()));
        }
    }

    #[test]
    fn random_hosts_are_asked_for_evenly() {
        let asked = random(1000, 5, 3);
        no_host_asks_for_itself_or_twice(&asked);
        assert!(asked.iter().all(|others| others.len() == 5));
        let mut times = vec![0; 1000];
        asked.iter().flatten().for_each(|&other| times[other as usize] += 1);
        assert!(times.iter().all(|&count| count < 25), "5 each on average");
    }

    #[test]
    fn at_lbnl_most_ask_for_few_and_few_are_asked_for_by_many() {
        let asked = lbnl(2000, 3, 1);
        no_host_asks_for_itself_or_twice(&asked);
        let questions: usize = asked.iter().map(Vec::len).sum();
        assert!((5_000..10_000).contains(&questions), "{questions}");
        assert!(asked.iter().filter(|others| others.len() <= 3).count() > 1000);
        let mut times = vec![0_usize; 2000];
        asked.iter().flatten().for_each(|&other| times[other as usize] += 1);
        times.sort_unstable();
        let top: usize = times[1900..].iter().sum();
        assert!(top * 2 > questions, "a twentieth gets more than half: {top} of {questions}");
    }

    #[test]
    fn a_placement_moves_hosts_and_changes_no_question() {
        let (one, two) = (lbnl(500, 3, 1), lbnl(500, 3, 2));
        assert_ne!(one, two);
        let counts = |asked: &[Vec<u32>]| {
            let mut counts: Vec<usize> = asked.iter().map(Vec::len).collect();
            counts.sort_unstable();
            counts
        };
        assert_eq!(counts(&one), counts(&two));
        assert_eq!(one, lbnl(500, 3, 1));
    }
}
