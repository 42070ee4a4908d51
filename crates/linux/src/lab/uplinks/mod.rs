//! Real network devices as ports of switches: uplinks of the fabric file that name a device.
//!
//! In plain English: the lab moves the device from the network namespace of `axon up` into that of
//! its switch, under the name of the port, and moves it back at the end. A network namespace that
//! ends destroys virtual devices and leaves others in the first namespace of the machine. So two
//! processes hold both namespaces, each by descriptors of its own: the supervisor, and a keeper
//! outside of the lab's PID namespace. The survivor of the two moves the device back, however the
//! other one has ended.

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
/// Polling interval for their return.
const LOOK: Duration = Duration::from_millis(5);

/// Checks that the devices of these uplinks can be ports, before anything is created.
///
/// # Errors
/// The reason for which a device cannot.
pub(super) fn check(uplinks: &[UplinkPlan]) -> Result<()> {
    if let Some(UplinkPlan { name, device, .. }) = uplinks.first() {
        let is_root = nix::unistd::geteuid().is_root();
        ensure!(is_root, "uplink {name} has device {device}, which only root can make a port");
    }
    uplinks.iter().try_for_each(|uplink| look(uplink).map(drop))
}

/// Waits until the keeper of a lab, whose supervisor has ended, has returned its devices. Returns a
/// description of failures.
///
/// # Errors
/// Timeout.
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
