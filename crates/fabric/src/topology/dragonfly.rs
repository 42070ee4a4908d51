//! A dragonfly (J. Kim, W. J. Dally, S. Scott, D. Abts, ISCA 2008, section 3).

use super::plan::{Plan, SWITCHES_MAX, in_range};
use crate::error::Problem;
use crate::file::Dragonfly;

/// Groups of `a` switches, all linked to each other; each switch has `h` places for links to other
/// groups. A group's places are numbered switch by switch. With g groups, place i of a group leads
/// to the group 1 + i mod (g - 1) further on, modulo g, in rounds: each round gives each pair of
/// groups one link. Places that do not suffice for a further round stay empty. With the maximum of
/// a * h + 1 groups, there is one round.
pub(super) fn plan(dragonfly: &Dragonfly, seed: u64) -> Result<Plan, Problem> {
    const KEY: &str = "topology.dragonfly";
    let &Dragonfly { a, h, .. } = dragonfly;
    in_range(&format!("{KEY}.a"), a, 1, 1000)?;
    in_range(&format!("{KEY}.h"), h, 1, 1000)?;
    let most = (a * h + 1).min(SWITCHES_MAX / a);
    let groups = dragonfly.groups.unwrap_or(a * h + 1);
    in_range(&format!("{KEY}.groups"), groups, 2, most)?;
    let mut plan = Plan::with_switches(KEY, a * groups, 2)?;
    let hosts = (dragonfly.p, a.div_ceil(2), &dragonfly.hosts);
    plan.place_hosts([KEY, "p"], hosts, seed, 0..a * groups)?;
    for group in 0..groups {
        for one in 0..a {
            for other in one + 1..a {
                plan.link(KEY, group * a + one, group * a + other);
            }
        }
    }
    let others = groups - 1;
    for round in 0..a * h / others {
        for group in 0..groups {
            for further in 1..=others {
                let far = (group + further) % groups;
                // Seen from the far group, this one is the remaining number of groups further on.
                let here = round * others + further - 1;
                let there = round * others + groups - further - 1;
                if group < far {
                    plan.link(KEY, group * a + here / h, far * a + there / h);
                }
            }
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    fn parse(text: &str) -> crate::model::Fabric {
        crate::parse("a.yaml".as_ref(), &format!("name: a\ntopology: {text}")).unwrap()
    }

    #[test]
    fn the_largest_dragonfly_has_one_link_between_any_two_groups() {
        let fabric = parse("{dragonfly: {a: 4, p: 2, h: 2}}");
        assert_eq!((fabric.switches.len(), fabric.hosts.len()), (36, 72));
        let mut between = BTreeMap::new();
        for link in &fabric.links {
            let groups = (link.a.switch / 4, link.b.switch / 4);
            *between.entry((groups.0.min(groups.1), groups.0.max(groups.1))).or_insert(0) += 1;
        }
        for one in 0..9 {
            assert_eq!(between[&(one, one)], 6, "all to all inside");
            assert!((one + 1..9).all(|other| between[&(one, other)] == 1));
        }
        // Two hosts, three links inside and two to other groups; s1 also has the controller.
        assert!(fabric.switches[1..].iter().all(|switch| switch.ports == 7));
    }

    #[test]
    fn with_fewer_groups_each_pair_has_more_links() {
        let fabric = parse("{dragonfly: {a: 4, h: 2, groups: 3}}");
        assert_eq!(fabric.links.len(), 3 * 6 + 3 * 4);
        assert!(fabric.switches[1..].iter().all(|switch| switch.ports == 7));
    }
}
