//! External tests of ports, the kernel, stores and agents; `runner` describes how they run.

mod agent_port;
mod alone;
mod kernel;
mod lldp_peers;
#[path = "../../../wire/tests/needs/mod.rs"]
mod needs;
mod ports;
mod runner;
mod store;

use nix::sched::CloneFlags;
use runner::{Module, Tests};
use std::process::ExitCode;

/// Private mounts and System V objects of other programs' daemons.
const NEW_MOUNTS: CloneFlags = CloneFlags::CLONE_NEWNS;
const NEW_IPC: CloneFlags = CloneFlags::CLONE_NEWIPC;

static TESTS: Tests = Tests {
    modules: &[
        // The longest first, so that the last one to end is short.
        Module::new("store", || true, store::TESTS).with_part(store::run_part),
        Module::new("agent_port", || true, agent_port::TESTS),
        Module::new("kernel", || alone::enter(NEW_MOUNTS), kernel::TESTS)
            .with_part(kernel::run_part),
        Module::new("lldp_peers", || alone::enter(NEW_MOUNTS.union(NEW_IPC)), lldp_peers::TESTS),
        Module::new("ports", || alone::enter(CloneFlags::empty()), ports::TESTS),
    ],
    labs: None,
    exclusive: &[],
    ignored: &[],
};

fn main() -> ExitCode {
    TESTS.main()
}
