//! Who asks for whom: the ARP generator's patterns (001 §5).
//!
//! **Random.** Every host asks for the same number of random hosts.
//!
//! **LBNL-like.** The paper takes its second pattern from traces of the Lawrence Berkeley
//! National Lab that can no longer be had as it used them. What is known of that network
//! (001 §5.3; Pang et al., IMC 2005): 22 subnets; most hosts talk to few others; a few
//! servers talk to very many; much stays in the subnet. So here, by integer tables:
//!
//! - a host asks for 1 to 30 others, 5.4 on average, nearly a third for one only ([`FAN_OUT`]);
//! - one host in 50 is a server, and 60 % of questions are for a server, the n-th most popular
//!   with a weight of 1/n (Zipf's law);
//! - 25 % of questions are for a host of the same subnet, of 22, drawn evenly;
//! - 15 % are for any host.
//!
//! A host asks for nobody twice and not for itself: only new flows count. Which of these hosts
//! stands at which switch is a random mapping, so that a subnet is spread over the fabric.

use oorandom::Rand64;

/// Of 100 hosts, how many ask for how many others.
const FAN_OUT: [(u32, usize); 9] =
    [(30, 1), (20, 2), (12, 3), (8, 4), (6, 5), (8, 8), (6, 12), (6, 20), (4, 30)];
/// Of 100 questions, how many are for a server.
const TO_SERVER: u64 = 60;
/// Of 100 questions, how many are for a host of the same subnet.
const TO_SUBNET: u64 = 25;
/// Subnets (001 §5.3).
const SUBNETS: u64 = 22;
/// Hosts for each server.
const HOSTS_PER_SERVER: u64 = 50;
/// The weight of the most popular server; the n-th has this over n.
const ZIPF_FIRST: u64 = 1 << 20;

/// Every host asks for `asks` random others.
pub fn random(hosts: usize, asks: usize, seed: u64) -> Vec<Vec<u32>> {
    let mut dice = Rand64::new(u128::from(seed) << 64 | 0x7261_6e64);
    let mut draw = |_: u32| dice.rand_range(0..hosts as u64) as u32;
    (0..hosts as u32).map(|host| others(host, asks.min(hosts - 1), || draw(host))).collect()
}

/// Hosts ask for one another as at LBNL. `placement` picks the mapping of hosts to places;
/// who asks for whom depends on `seed` alone.
pub fn lbnl(hosts: usize, seed: u64, placement: u64) -> Vec<Vec<u32>> {
    let mut dice = Rand64::new(u128::from(seed) << 64 | 0x6c62_6e6c);
    let count = hosts as u64;
    let servers = (count / HOSTS_PER_SERVER).max(1);
    let weights = (1..=servers).scan(0, |sum, rank| {
        *sum += ZIPF_FIRST / rank;
        Some(*sum)
    });
    let weights: Vec<u64> = weights.collect();
    let total = weights[weights.len() - 1];
    let mut asked = Vec::with_capacity(hosts);
    for host in 0..hosts as u32 {
        let fan_out = fan_out(dice.rand_range(0..100) as u32).min(hosts / 2);
        let draw = || match dice.rand_range(0..100) {
            kind if kind < TO_SERVER => {
                let at = dice.rand_range(0..total);
                weights.partition_point(|&sum| sum <= at) as u32
            }
            kind if kind < TO_SERVER + TO_SUBNET => in_subnet(host, count, &mut dice),
            _ => dice.rand_range(0..count) as u32,
        };
        asked.push(others(host, fan_out, draw));
    }
    placed(&asked, placement)
}

/// The number of hosts that a host asks for, by its place among 100.
fn fan_out(mut at: u32) -> usize {
    for (share, count) in FAN_OUT {
        if at < share {
            return count;
        }
        at -= share;
    }
    1
}

/// A host of the same subnet: host h is in subnet h modulo 22.
fn in_subnet(host: u32, hosts: u64, dice: &mut Rand64) -> u32 {
    let subnet = u64::from(host) % SUBNETS;
    let members = (hosts - subnet).div_ceil(SUBNETS);
    (subnet + SUBNETS * dice.rand_range(0..members)) as u32
}

/// `count` different hosts other than `host`, as they are drawn.
fn others(host: u32, count: usize, mut draw: impl FnMut() -> u32) -> Vec<u32> {
    let mut others = Vec::with_capacity(count);
    // A host whose subnet or servers are used up goes without the rest.
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

/// The same questions, with hosts at random places (a Fisher-Yates shuffle).
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
        assert!((9_500..12_500).contains(&questions), "{questions}");
        assert!(asked.iter().filter(|others| others.len() <= 3).count() > 1000);
        let mut times = vec![0_usize; 2000];
        asked.iter().flatten().for_each(|&other| times[other as usize] += 1);
        times.sort_unstable();
        let top: usize = times[1960..].iter().sum();
        assert!(top * 2 > questions, "the 40 servers get more than half: {top} of {questions}");
        assert!(times[1999] > 400, "the first of them is known to many: {}", times[1999]);
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
