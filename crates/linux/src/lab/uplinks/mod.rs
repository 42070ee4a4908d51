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

use device::{Taken, look};
pub(super) use keeper::{keep, start};
pub(super) use requests::Keeper;

use super::plan::Offloads;
use super::state::StateDir;
use anyhow::{Result, ensure};
use axon_fabric::Problem;
use axon_fabric::assemble::port_name;
use axon_fabric::model::Fabric;
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// How long the kernel may take to move all devices back.
const BACK_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks at whether they are.
const LOOK: Duration = Duration::from_millis(5);

/// A device of the machine that is to be a port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkPlan {
    /// The name of the uplink: `up1`.
    pub name: String,
    /// The device in the network namespace that `axon up` runs in: `eth1`.
    pub device: String,
    /// The switch whose namespace it is moved into.
    pub switch: String,
    /// Its name there: `s3-p5`.
    pub port: String,
    /// The gateway behind it.
    pub gateway: Ipv4Addr,
    /// Of the port, in bytes.
    pub mtu: usize,
    /// What the device may leave unfinished of what it receives.
    pub offloads: Offloads,
}

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

/// The uplinks of a fabric that name a device.
///
/// # Errors
/// Bridges are to take the place of the switches.
pub(super) fn plan(
    fabric: &Fabric,
    offloads: Offloads,
    bridges: bool,
) -> std::result::Result<Vec<UplinkPlan>, Problem> {
    let mut plans = Vec::new();
    for (number, uplink) in fabric.uplinks.iter().enumerate() {
        let Some(device) = uplink.device.clone() else { continue };
        if bridges {
            let what =
                format!("a spanning tree of bridges would reach into what is behind {device}");
            let key = format!("uplinks[{number}].device");
            let expected = "switches of Axon, or an uplink without a device".to_owned();
            return Err(Problem { key, what, expected });
        }
        let host = &fabric.hosts[uplink.host];
        let switch = fabric.switches[host.switch].name.clone();
        plans.push(UplinkPlan {
            name: host.name.clone(),
            device,
            port: port_name(&switch, host.port),
            switch,
            gateway: uplink.gateway,
            mtu: usize::from(fabric.mtu),
            offloads,
        });
    }
    Ok(plans)
}
