//! The small models, explored completely, and the planted faults. `make check-models` runs the
//! large ones.

use axon_check::budget::Budget;
use axon_check::catalogue::{self, Entry, Size};
use axon_check::fabric::{FabricModel, Fault, Start};
use axon_check::run::{self, Outcome};

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

#[test]
fn no_failure_or_restart_alone_shows_that_a_switch_keeps_lost_links_to_itself() {
    let holds = |budget| {
        let model = FabricModel::new(3, Start::Connected, budget).with_fault(Fault::KeepsNews);
        let outcome = run::run("a switch that keeps lost links", model, 2);
        println!("{outcome}");
        outcome.broken.iter().all(|broken| broken.steps.is_empty())
    };
    let one = Budget { losses: 1, duplicates: 1, ..Budget::default() };
    assert!(holds(Budget { cuts: 1, ..one }));
    assert!(holds(Budget { controllers: 1, ..one }));
    assert!(holds(Budget { restarts: 1, ..one }));
}
