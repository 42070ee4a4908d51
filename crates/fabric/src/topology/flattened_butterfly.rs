//! A flattened butterfly (J. Kim, W. J. Dally, D. Abts, ISCA 2007, section 2).

use super::plan::{Plan, in_range, largest};
use crate::error::Problem;
use crate::file::FlattenedButterfly;

/// A k-ary n-fly with each row of routers merged into one: k^(n-1) switches with k hosts each.
/// Write a switch's number with n - 1 digits in base k; it is linked to every switch whose number
/// differs in exactly one digit. So each has (n - 1)(k - 1) links, and two switches are at most n -
/// 1 hops apart.
pub(super) fn plan(flat: &FlattenedButterfly, seed: u64) -> Result<Plan, Problem> {
    const KEY: &str = "topology.flattened_butterfly";
    in_range(&format!("{KEY}.k"), flat.k, 2, 1000)?;
    let switches = |n: usize| flat.k.checked_pow(n as u32 - 1);
    in_range(&format!("{KEY}.n"), flat.n, 2, largest(2, 15, switches))?;
    let switches = switches(flat.n).unwrap_or(usize::MAX);
    let mut plan = Plan::with_switches(KEY, switches, 2)?;
    let hosts = (flat.hosts_per_switch, flat.k, &flat.hosts);
    plan.place_hosts([KEY, "hosts_per_switch"], hosts, seed, 0..switches)?;
    for switch in 0..switches {
        let mut place = 1;
        while place < switches {
            let digit = switch / place % flat.k;
            for other in digit + 1..flat.k {
                plan.link(KEY, switch, switch + (other - digit) * place);
            }
            place *= flat.k;
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_switch_is_linked_to_all_that_differ_in_one_digit() {
        // The 4-ary 2-flat and 4-ary 3-flat: 3 links a dimension and 4 hosts at each switch.
        for (n, switches) in [(2, 4), (3, 16)] {
            let fabric =
                crate::samples::sample(&format!("flattened_butterfly: {{ k: 4, n: {n} }}"));
            assert_eq!(fabric.switches.len(), switches);
            assert_eq!(fabric.hosts.len(), 4 * switches);
            assert_eq!(fabric.links.len(), switches * 3 * (n - 1) / 2);
            assert!(fabric.switches[1..].iter().all(|s| usize::from(s.ports) == 4 + 3 * (n - 1)));
            for link in &fabric.links {
                let (a, b) = (link.a.switch, link.b.switch);
                let differing = [1, 4].iter().filter(|&place| a / place % 4 != b / place % 4);
                assert_eq!(differing.count(), 1, "{a} {b}");
            }
        }
    }
}
