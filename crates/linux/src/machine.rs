//! Probes whether this machine supports the kernel's data planes.

use crate::kernel::ports::KernelPorts;
use crate::kernel::{Hook, KernelError, KernelSettings};
use anyhow::{Context, Result, anyhow};
use axon_wire::{HopWidth, PortNo, Rate};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Usual mount point of BPF file systems.
const BPF: &str = "/sys/fs/bpf";
/// Mount point of the trial's BPF file system, in a private mount namespace.
const TRIAL: &str = "/run";

/// Reasons for which the kernel cannot carry the frames of a switch here; `None` for a supported
/// data plane. The default supports none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Reason against programs at tc.
    pub no_tc: Option<String>,
    /// Reason against programs in drivers (XDP).
    pub no_xdp: Option<String>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::without("nobody has tried the kernel's data planes on this machine")
    }
}

impl Machine {
    /// Machine that supports both data planes.
    pub const ABLE: Machine = Machine { no_tc: None, no_xdp: None };

    /// Returns a machine that supports neither data plane, for this reason.
    pub fn without(why: &str) -> Machine {
        Machine { no_tc: Some(why.to_owned()), no_xdp: Some(why.to_owned()) }
    }

    /// Probes both data planes, in network and mount namespaces of a separate thread and without
    /// side effects. Each probe loads and attaches programs, sets up the queues of an egress, and
    /// creates the node's queues.
    pub fn tried() -> Machine {
        let no = |hook| std::thread::spawn(move || try_hook(hook)).join();
        let why = |hook| match no(hook) {
            Ok(tried) => tried.err().map(|why| format!("{why:#}")),
            Err(_) => Some("the trial of it has failed".to_owned()),
        };
        Machine { no_tc: why(Hook::Tc), no_xdp: why(Hook::Xdp) }
    }

    /// Returns the support for a switch whose frames are captured.
    pub fn captured(&self) -> Machine {
        let no_xdp = "no capture (--capture) sees what a driver forwards".to_owned();
        Machine { no_xdp: Some(no_xdp), ..self.clone() }
    }

    /// Returns the reason against a data plane, or `None` if this machine supports it.
    pub(crate) fn lacks(&self, hook: Hook) -> Option<&str> {
        match hook {
            Hook::Tc => self.no_tc.as_deref(),
            Hook::Xdp => self.no_xdp.as_deref(),
        }
    }
}

fn try_hook(hook: Hook) -> Result<()> {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)
        .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
        .and_then(|()| mount(Some("bpf"), TRIAL, Some("bpf"), MsFlags::empty(), none))
        .map_err(|_| KernelError::NotPermitted)?;
    let settings = KernelSettings {
        hook,
        hop_width: HopWidth::Eight,
        ports: 1,
        routes_per_port_max: 1,
        route_bytes_max: 60,
        frame_bytes_max: 1514,
        // A limit other than 0 makes the verifier check the code that enforces it.
        node_frames_per_ms: 1,
    };
    crate::sys::set_device_up("lo", true)?;
    let mut ports = KernelPorts::open(&Path::new(TRIAL).join("trial"), "trial", settings)?;
    ports.open_port(PortNo(0), "lo", Some(Rate::mbps(1)))?;
    Ok(())
}

/// Returns the folder in which a switch pins its programs on a machine without a lab. Mounts a BPF
/// file system at the usual mount point if there is none.
///
/// # Errors
/// The file system cannot be mounted.
pub(crate) fn pins(fabric: &str, switch: &str) -> Result<PathBuf> {
    if !has_bpf() {
        mount_bpf(Path::new(BPF))?;
    }
    Ok(place(fabric, switch))
}

/// Returns the folder in which a switch pins its programs, if it exists.
pub(crate) fn pins_there(fabric: &str, switch: &str) -> Option<PathBuf> {
    Some(place(fabric, switch)).filter(|place| has_bpf() && place.exists())
}

fn has_bpf() -> bool {
    statfs(BPF).is_ok_and(|is| is.filesystem_type() == BPF_FS_MAGIC)
}

fn place(fabric: &str, switch: &str) -> PathBuf {
    // A name may contain characters that a BPF file system refuses.
    let plain = |name: &str| name.replace('.', "_");
    Path::new(BPF).join("axon").join(plain(fabric)).join(plain(switch))
}

/// Mounts a BPF file system.
///
/// # Errors
/// EPERM without root, and ENODEV if the kernel does not support this file system.
pub fn mount_bpf(at: &Path) -> Result<()> {
    let none: Option<&str> = None;
    fs::create_dir_all(at).with_context(|| format!("cannot make {}", at.display()))?;
    mount(Some("bpf"), at, Some("bpf"), MsFlags::empty(), none)
        .map_err(|error| anyhow!("cannot mount a BPF file system at {}: {error}", at.display()))
}
