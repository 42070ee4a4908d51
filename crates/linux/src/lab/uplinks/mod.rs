//! Real network devices as ports of switches: the uplinks of the fabric file that name one.
//!
//! In plain English: the lab moves the device out of the network namespace that `axon up` runs in
//! into that of its switch, under the name of the port, and moves it back at the end. A network
//! namespace that ends destroys virtual devices and leaves others in the first namespace of the
//! machine. So two processes hold both namespaces, each by descriptors of its own: the supervisor,
//! and a keeper outside of the lab's PID namespace. Whichever of the two is left moves the device
//! back, however the other one has ended.

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

/// How long the kernel may take to move all devices back.
const BACK_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks at whether they are.
const LOOK: Duration = Duration::from_millis(5);

/// Whether the devices of these uplinks can be ports, before anything is made.
///
/// # Errors
/// Why one cannot.
pub(super) fn check(uplinks: &[UplinkPlan]) -> Result<()> {
    if let Some(UplinkPlan { name, device, .. }) = uplinks.first() {
        let is_root = nix::unistd::geteuid().is_root();
        ensure!(is_root, "uplink {name} has device {device}, which only root can make a port");
    }
    uplinks.iter().try_for_each(|uplink| look(uplink).map(drop))
}

/// Waits until the keeper of a lab, whose supervisor has ended, has given its devices back. Returns
/// what could not be put back.
///
/// # Errors
/// It takes too long.
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
