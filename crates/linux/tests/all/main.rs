//! External tests of ports, labs, daemons and agents; `runner` describes how they run.

mod agent;
mod agent_port;
mod alone;
mod attached;
mod behind;
mod conflicts;
mod dataplanes;
mod deadlock;
mod dual_stack;
mod groups;
mod hostile;
mod kernel;
mod lab;
mod lldp_peers;
mod masquerading;
mod moves;
#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
mod overload;
mod ports;
mod programs;
mod replay;
mod restart;
mod runner;
mod services;
mod silent;
mod static_mode;
mod store;
mod support;
mod tenants;
mod torus;
mod uplinks;
mod vlans;

use nix::sched::CloneFlags;
use runner::{Module, Part, Place, Test, Tests};
use std::process::ExitCode;

const fn module(name: &'static str, place: Place, tests: &'static [Test]) -> Module {
    Module { name, place, tests, part: None }
}

const fn with_part(part: Part, module: Module) -> Module {
    Module { part: Some(part), ..module }
}

/// Private mounts and System V objects of other programs' daemons.
const NEW_MOUNTS: CloneFlags = CloneFlags::CLONE_NEWNS;
const NEW_IPC: CloneFlags = CloneFlags::CLONE_NEWIPC;

static TESTS: Tests = Tests {
    modules: &[
        // The longest first, so that the last one to end is short.
        module("torus", Place::Lab, torus::TESTS),
        module("tenants", Place::Lab, tenants::TESTS),
        module("groups", Place::Lab, groups::TESTS),
        module("uplinks", Place::Lab, uplinks::TESTS),
        module("dual_stack", Place::Lab, dual_stack::TESTS),
        module("lab", Place::Lab, lab::TESTS),
        with_part(store::run_part, module("store", Place::Plain, store::TESTS)),
        with_part(restart::run_part, module("restart", Place::Lab, restart::TESTS)),
        module("behind", Place::Lab, behind::TESTS),
        with_part(attached::run_part, module("attached", Place::Lab, attached::TESTS)),
        module("conflicts", Place::Lab, conflicts::TESTS),
        module("replay", Place::Lab, replay::TESTS),
        module("services", Place::Lab, services::TESTS),
        with_part(deadlock::run_part, module("deadlock", Place::Lab, deadlock::TESTS)),
        with_part(overload::run_part, module("overload", Place::Lab, overload::TESTS)),
        with_part(hostile::run_part, module("hostile", Place::Lab, hostile::TESTS)),
        module("silent", Place::Lab, silent::TESTS),
        with_part(agent::run_part, module("agent", Place::Lab, agent::TESTS)),
        module("agent_port", Place::Plain, agent_port::TESTS),
        with_part(dataplanes::run_part, module("dataplanes", Place::Lab, dataplanes::TESTS)),
        with_part(kernel::run_part, module("kernel", Place::Alone(NEW_MOUNTS), kernel::TESTS)),
        module("lldp_peers", Place::Alone(NEW_MOUNTS.union(NEW_IPC)), lldp_peers::TESTS),
        with_part(masquerading::run_part, module("masquerading", Place::Lab, masquerading::TESTS)),
        module("moves", Place::Lab, moves::TESTS),
        module("ports", Place::Alone(CloneFlags::empty()), ports::TESTS),
        module("programs", Place::Lab, programs::TESTS),
        module("static_mode", Place::Lab, static_mode::TESTS),
        module("vlans", Place::Lab, vlans::TESTS),
    ],
    exclusive: &[],
    ignored: &[("agent::cost", "it measures, and asserts nothing")],
};

fn main() -> ExitCode {
    // First, since the lab starts its parts from the program that calls it.
    axon_linux::lab::part().unwrap_or_else(|| TESTS.main())
}
