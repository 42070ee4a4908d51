//! Real network devices as switch ports, for uplinks in the fabric file that name a device.
//!
//! The lab moves the device from the network namespace of `axon up` into that of its switch, gives
//! it the name of the port, and moves it back at the end. When a network namespace ends, the kernel
//! destroys the virtual devices in it, and leaves the others in the first namespace of the machine.
//! Therefore, two processes hold both namespaces, each with its own descriptors: the supervisor,
//! and a keeper outside the lab's PID namespace. If one of them ends, in any way, the other moves
//! the device back.

mod device;
mod keeper;
mod requests;

use device::look;
pub(super) use keeper::{keep, start};
pub(super) use requests::Keeper;

use super::plan::UplinkPlan;
use super::state::StateDir;
use anyhow::{Result, ensure};
use std::fs;
use std::time::{Duration, Instant};

/// Time limit for the kernel to move all devices back.
const BACK_LIMIT: Duration = Duration::from_secs(10);
/// Polling interval while the devices are moved back.
const LOOK: Duration = Duration::from_millis(5);

/// Checks that the devices of these uplinks can be ports, before anything is created.
///
/// # Errors
/// A device cannot be a port. The error names the reason.
pub(super) fn check(uplinks: &[UplinkPlan]) -> Result<()> {
    if let Some(UplinkPlan { name, device, .. }) = uplinks.first() {
        let is_root = nix::unistd::geteuid().is_root();
        ensure!(is_root, "uplink {name} has device {device}, which only root can make a port");
    }
    uplinks.iter().try_for_each(|uplink| look(uplink).map(drop))
}

/// Waits until the keeper of a lab whose supervisor has ended has returned its devices. Returns a
/// description of failures.
///
/// # Errors
/// The devices are not back within the time limit.
pub(super) fn given_back(state: &StateDir) -> Result<Option<String>> {
    let started = Instant::now();
    while let Some(keeper) = state.keeper() {
        ensure!(
            started.elapsed() < BACK_LIMIT,
            "process {} has not given the devices of the lab back yet; try again later",
            keeper.pid
        );
        std::thread::sleep(LOOK);
    }
    let log = fs::read_to_string(state.log(StateDir::KEEPER)).unwrap_or_default();
    let log = log.trim();
    Ok((!log.is_empty()).then(|| log.to_owned()))
}
