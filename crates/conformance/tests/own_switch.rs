//! Our own switch passes every case, so all of them are applicable to it; and with a fault in it, it
//! fails the one that is there to find that fault.

use axon_conformance::case::{Outcome, Verdict};
use axon_conformance::cases;
use axon_conformance::report::text;
use axon_conformance::simulated::Simulated;
use axon_conformance::simulated::plant::Plant;

const SEED: u64 = 1;

fn run(family: &str, plant: Option<Plant>) -> Vec<Outcome> {
    let run = |case: &&axon_conformance::case::Case| {
        let mut rig = Simulated::new(plant, SEED);
        let outcome = case.run(&mut rig);
        print!("{}", text::case(&outcome, false));
        outcome
    };
    let chosen = cases::select(&[family.into()], &[]);
    chosen.iter().map(run).collect()
}

fn passes(family: &str) {
    let outcomes = run(family, None);
    let bad = |outcome: &&Outcome| outcome.verdict != Verdict::Passed;
    let failed: Vec<&str> = outcomes.iter().filter(bad).map(|outcome| outcome.name).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(!outcomes.is_empty());
}

#[test]
fn our_switch_obeys_pause() {
    passes("pause");
}

#[test]
fn our_switch_obeys_and_says_pfc() {
    passes("pfc");
}

#[test]
fn our_switch_shares_as_configured() {
    passes("ets");
}

#[test]
fn our_switch_and_our_station_notify_congestion() {
    passes("qcn");
}

#[test]
fn our_switch_speaks_dcbx() {
    passes("dcbx");
}

#[test]
fn each_fault_is_found_by_the_case_that_is_there_to_find_it() {
    for plant in Plant::ALL {
        let name = plant.found_by();
        let case = cases::all().find(|case| case.name == name);
        let case = case.unwrap_or_else(|| panic!("no case is named {name}"));
        let outcome = case.run(&mut Simulated::new(Some(*plant), SEED));
        println!("{}: {}", plant.name(), text::case(&outcome, false));
        assert_eq!(outcome.verdict, Verdict::Failed, "{} by {name}", plant.name());
    }
}

#[test]
fn the_page_names_every_case_and_every_fault() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conformance.md");
    let page = std::fs::read_to_string(page).unwrap();
    for case in cases::all() {
        let row = format!("| `{}` | {} | {} |", case.name, case.clause, case.says);
        assert!(page.contains(&row), "{row}");
    }
    for plant in Plant::ALL {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", plant.name())));
        assert!(row.is_some_and(|row| row.contains(plant.found_by())), "{}", plant.name());
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, cases::all().count() + Plant::ALL.len(), "a case or fault that is gone");
}
