//! The small models, to their end, and the planted faults. `make check-models` runs the large ones.

use axon_check::catalogue::{self, Entry, Size};
use axon_check::run::Outcome;

fn run(entry: &Entry) -> Outcome {
    let outcome = (entry.run)(2);
    println!("{outcome}");
    outcome
}

#[test]
fn every_state_of_the_small_models_holds() {
    for entry in catalogue::models(Size::Small) {
        let outcome = run(&entry);
        assert!(outcome.is_proved(), "{outcome}");
        assert!(outcome.states > 100, "{outcome}: that is no model");
    }
}

#[test]
fn every_planted_fault_is_found_with_the_steps_to_it() {
    for entry in catalogue::planted() {
        let outcome = run(&entry);
        assert!(outcome.broken.iter().any(|broken| !broken.steps.is_empty()), "{outcome}");
    }
}
