//! All cases, by family.

mod dcbx;
mod dcbx_does;
pub(crate) mod dcbx_takes;
mod ets;
mod lldp;
mod lldp_malformed;
mod pause;
mod pause_sends;
mod pfc;
mod pfc_sends;
mod qcn;
mod qcn_defence;
mod qcn_reacts;

use crate::case::Case;

/// Families of test cases, in the order in which they run.
pub const FAMILIES: [&str; 5] = ["pause", "pfc", "ets", "qcn", "dcbx"];

/// Returns all cases, by family and in a fixed order.
pub fn all() -> impl Iterator<Item = &'static Case> {
    let pauses = [pause::CASES, pause_sends::CASES, pfc::CASES, pfc_sends::CASES];
    let shares = [ets::CASES, qcn::CASES, qcn_defence::CASES, qcn_reacts::CASES];
    let dcbx = [lldp_malformed::CASES, dcbx::CASES, dcbx_takes::CASES, dcbx_does::CASES];
    pauses.into_iter().chain(shares).chain(dcbx).flatten()
}

/// Returns the cases in these families whose name contains one of `words`. An empty list selects
/// all.
pub fn select(families: &[String], words: &[String]) -> Vec<&'static Case> {
    let wanted = |case: &&Case| {
        let family = families.iter().any(|family| family == case.family());
        family && (words.is_empty() || words.iter().any(|word| case.name.contains(word)))
    };
    all().filter(wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_one_of_a_kind_and_every_case_says_what_is_asked_for() {
        let names: BTreeSet<&str> = all().map(|case| case.name).collect();
        assert_eq!(names.len(), all().count());
        for case in all() {
            assert!(FAMILIES.contains(&case.family()), "{}", case.name);
            assert!(!case.clause.is_empty() && case.says.ends_with('.'), "{}", case.name);
        }
    }

    #[test]
    fn families_and_words_choose() {
        let choose = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.into()).collect();
            select(&["pfc".into()], &words)
        };
        assert!(choose(&[]).iter().all(|case| case.family() == "pfc"));
        assert_eq!(choose(&["zero-resumes"])[0].name, "pfc/zero-resumes");
        assert!(choose(&["no such case"]).is_empty());
    }
}
