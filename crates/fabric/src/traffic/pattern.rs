//! Traffic patterns: the flows between a set of hosts.

use super::{ArpPattern, Sizes};
use oorandom::Rand64;

/// Number of subnets of the LBNL-like pattern; that of the routers in the traces.
const SUBNETS: usize = 22;
/// Number of hosts in a subnet per server; there is at least one server.
const HOSTS_PER_SERVER: usize = 20;
/// Percentage of requests that are for a server.
const SERVER_PERCENT: u64 = 70;
/// Percentage of requests that stay in the subnet.
const LOCAL_PERCENT: u64 = 80;
/// Maximum number of requests of one host, as a multiple of the mean.
const MEANS_MAX: u64 = 20;

/// Returns flows from each host to the next on one random cycle through all of them: Fisher and
/// Yates' shuffle.
pub(super) fn permutation(hosts: &[usize], seed: u64) -> Vec<(usize, usize)> {
    let mut random = Rand64::new(u128::from(seed));
    let mut order = hosts.to_vec();
    for last in (1..order.len()).rev() {
        order.swap(last, random.rand_range(0..last as u64 + 1) as usize);
    }
    let next = order.iter().cycle().skip(1);
    let mut flows: Vec<_> = order.iter().copied().zip(next.copied()).collect();
    flows.sort_unstable();
    flows
}

/// Returns flows from each host to every other: first from each to its next, then from each to the
/// one after that, and so on, so that each host is the first target of one other only.
pub(super) fn all_to_all(hosts: &[usize]) -> Vec<(usize, usize)> {
    let count = hosts.len();
    let shifts = 1..count;
    shifts
        .flat_map(|shift| (0..count).map(move |at| (at, (at + shift) % count)))
        .map(|(from, to)| (hosts[from], hosts[to]))
        .collect()
}

/// Returns flows from each host to another, drawn uniformly.
pub(super) fn random(hosts: &[usize], seed: u64) -> Vec<(usize, usize)> {
    let mut random = Rand64::new(u128::from(seed));
    let other = |(at, &from): (usize, &usize)| (from, hosts[another(&mut random, hosts.len(), at)]);
    hosts.iter().enumerate().map(other).collect()
}

/// Draws a number below `count` other than `at`.
fn another(random: &mut Rand64, count: usize, at: usize) -> usize {
    let drawn = random.rand_range(0..count as u64 - 1) as usize;
    drawn + usize::from(drawn >= at)
}

/// Returns the hosts that each of `hosts` requests, in order, by index in `0..hosts`.
///
/// `Random`: every host sends `per_host` requests, each for another host, drawn uniformly; the
/// pattern of paper 001 §5.4 for more hosts than its traces had.
///
/// `Lbnl` stands in for the traces of the Lawrence Berkeley National Laboratory that the paper
/// uses, which are not available. Its statistics are these: hosts are in 22 subnets, one after the
/// other, of nearly equal size. In each, one host of 20 is a server. The number of requests of a
/// host is exponential with mean `per_host`, at most 20 means. 80 of 100 requests stay in the
/// subnet; the others go to another, drawn uniformly. 70 of 100 are for a server, the `k`-th of the
/// subnet half as often as the one before it; the others are for any host there. No host requests
/// itself.
pub fn arp_questions(
    pattern: ArpPattern,
    hosts: usize,
    per_host: u32,
    seed: u64,
) -> Vec<Vec<usize>> {
    let mut random = Rand64::new(u128::from(seed));
    if hosts < 2 {
        return vec![Vec::new(); hosts];
    }
    let asks = (0..hosts).map(|host| match pattern {
        ArpPattern::Random => (0..per_host).map(|_| another(&mut random, hosts, host)).collect(),
        ArpPattern::Lbnl => lbnl(host, hosts, per_host, &mut random),
    });
    asks.collect()
}

fn lbnl(host: usize, hosts: usize, per_host: u32, random: &mut Rand64) -> Vec<usize> {
    let subnets = SUBNETS.min(hosts / 2).max(1);
    let start = |subnet: usize| subnet * hosts / subnets;
    let own = (0..subnets).rfind(|&subnet| start(subnet) <= host).unwrap_or(0);
    // In 256ths of a request, rounded to the nearest.
    let number = Sizes::Exponential { mean: u64::from(per_host) << 8 };
    let drawn = (number.draw(random.rand_u64() as u32) + 128) >> 8;
    let count = drawn.min(u64::from(per_host) * MEANS_MAX);
    let mut asked = Vec::new();
    while (asked.len() as u64) < count {
        let local = random.rand_range(0..100) < LOCAL_PERCENT || subnets == 1;
        let subnet = if local { own } else { another(random, subnets, own) };
        let (first, size) = (start(subnet), start(subnet + 1) - start(subnet));
        let server = random.rand_range(0..100) < SERVER_PERCENT;
        let target = if server {
            let servers = (size / HOSTS_PER_SERVER).max(1);
            let rank = random.rand_u64().trailing_ones() as usize;
            first + rank.min(servers - 1)
        } else {
            first + random.rand_range(0..size as u64) as usize
        };
        if target != host {
            asked.push(target);
        } else if size == 1 && subnets == 1 {
            break;
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: [usize; 7] = [3, 5, 6, 9, 10, 11, 20];

    #[test]
    fn a_permutation_gives_each_host_one_flow_each_way_and_none_to_itself() {
        for seed in 0..50 {
            let flows = permutation(&HOSTS, seed);
            assert!(flows.iter().all(|(from, to)| from != to), "seed {seed}: {flows:?}");
            let from: Vec<usize> = flows.iter().map(|flow| flow.0).collect();
            let mut to: Vec<usize> = flows.iter().map(|flow| flow.1).collect();
            to.sort_unstable();
            assert_eq!((&from[..], &to[..]), (&HOSTS[..], &HOSTS[..]), "seed {seed}");
        }
        assert_ne!(permutation(&HOSTS, 1), permutation(&HOSTS, 2));
    }

    #[test]
    fn all_to_all_has_every_pair_once() {
        let mut flows = all_to_all(&HOSTS);
        assert_eq!(flows.len(), 42);
        flows.sort_unstable();
        flows.dedup();
        assert_eq!(flows.len(), 42);
        assert!(flows.iter().all(|(from, to)| from != to));
        assert!(random(&HOSTS, 1).iter().all(|(from, to)| from != to));
    }

    #[test]
    fn the_lbnl_pattern_has_the_statistics_that_it_states() {
        let (hosts, per_host) = (8800, 5);
        let questions = arp_questions(ArpPattern::Lbnl, hosts, per_host, 3);
        let all: Vec<(usize, usize)> = questions
            .iter()
            .enumerate()
            .flat_map(|(host, asked)| asked.iter().map(move |&to| (host, to)))
            .collect();
        let count = all.len();
        let share = |wanted: &dyn Fn(&(usize, usize)) -> bool| {
            all.iter().filter(|pair| wanted(pair)).count() * 1000 / count
        };
        assert!((43_000..45_500).contains(&count), "{count} questions of 8800 hosts");
        let local = share(&|(from, to)| from / 400 == to / 400);
        assert!((790..=810).contains(&local), "{local} of 1000 are local");
        let server = share(&|(_, to)| to % 400 < 20);
        assert!((700..=730).contains(&server), "{server} of 1000 are for servers");
        assert!(share(&|(from, to)| from == to) == 0);
        let silent = questions.iter().filter(|asked| asked.is_empty()).count();
        assert!((700..1000).contains(&silent), "{silent} hosts ask nothing");
    }

    #[test]
    fn random_questions_are_as_many_as_asked_for() {
        let questions = arp_questions(ArpPattern::Random, 10, 5, 1);
        assert!(questions.iter().all(|asked| asked.len() == 5));
        let own = questions.iter().enumerate().any(|(host, asked)| asked.contains(&host));
        assert!(!own);
        assert_eq!(arp_questions(ArpPattern::Lbnl, 1, 5, 1), [Vec::<usize>::new()]);
    }
}
