//! External tests of labs; `runner` describes how they run.

mod agent;
mod attached;
mod behind;
mod conflicts;
mod dataplanes;
mod deadlock;
mod dual_stack;
mod groups;
mod hostile;
mod lab;
mod masquerading;
mod moves;
#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
mod overload;
mod programs;
mod replay;
mod restart;
mod rtl;
#[path = "../../../linux/tests/all/runner/mod.rs"]
mod runner;
mod services;
mod silent;
mod static_mode;
mod support;
mod tenants;
mod torus;
mod uplinks;
mod vlans;

use axon_lab::STATE_VARIABLE;
use runner::{Labs, Module, Tests};
use std::process::ExitCode;

static TESTS: Tests = Tests {
    modules: &[
        // The longest first, so that the last one to end is short.
        Module::new("torus", needs::lab, torus::TESTS),
        Module::new("tenants", needs::lab, tenants::TESTS),
        Module::new("groups", needs::lab, groups::TESTS),
        Module::new("uplinks", needs::lab, uplinks::TESTS),
        Module::new("dual_stack", needs::lab, dual_stack::TESTS),
        Module::new("lab", needs::lab, lab::TESTS),
        Module::new("restart", needs::lab, restart::TESTS).with_part(restart::run_part),
        Module::new("behind", needs::lab, behind::TESTS),
        Module::new("attached", needs::lab, attached::TESTS).with_part(attached::run_part),
        Module::new("conflicts", needs::lab, conflicts::TESTS),
        Module::new("replay", needs::lab, replay::TESTS),
        Module::new("services", needs::lab, services::TESTS),
        Module::new("deadlock", needs::lab, deadlock::TESTS).with_part(deadlock::run_part),
        Module::new("overload", needs::lab, overload::TESTS).with_part(overload::run_part),
        Module::new("hostile", needs::lab, hostile::TESTS).with_part(hostile::run_part),
        Module::new("silent", needs::lab, silent::TESTS),
        Module::new("agent", needs::lab, agent::TESTS).with_part(agent::run_part),
        Module::new("dataplanes", needs::lab, dataplanes::TESTS).with_part(dataplanes::run_part),
        Module::new("masquerading", needs::lab, masquerading::TESTS)
            .with_part(masquerading::run_part),
        Module::new("moves", needs::lab, moves::TESTS),
        Module::new("rtl", needs::lab, rtl::TESTS),
        Module::new("programs", needs::lab, programs::TESTS),
        Module::new("static_mode", needs::lab, static_mode::TESTS),
        Module::new("vlans", needs::lab, vlans::TESTS),
    ],
    labs: Some(Labs { state_variable: STATE_VARIABLE, end: support::end_labs }),
    exclusive: &[],
    ignored: &[("agent::cost", "it measures, and asserts nothing")],
};

fn main() -> ExitCode {
    // First, since the lab starts its parts from the program that calls it.
    axon_lab::part().unwrap_or_else(|| TESTS.main())
}
