//! Network namespaces without a name. Each is removed together with its last file and process.

use anyhow::{Context, Result};
use axon_linux::sys;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;

/// Path to the network namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// Open file of a network namespace.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Creates a namespace with its loopback device up and IPv6 off, so that no device sends
    /// anything by itself.
    ///
    /// # Errors
    /// The kernel does not allow namespaces to this user.
    pub(crate) fn new() -> Result<Namespace> {
        let home = Home::remember()?;
        unshare(CloneFlags::CLONE_NEWNET)
            .context("cannot make a network namespace: `axon bench` needs root")?;
        let namespace = File::open(OWN).context("cannot hold a network namespace");
        let prepared = namespace.and_then(|namespace| {
            for which in ["all", "default"] {
                write_setting(&format!("ipv6/conf/{which}/disable_ipv6"), "1")?;
            }
            sys::set_device_up("lo", true)?;
            Ok(namespace)
        });
        home.back()?;
        Ok(Namespace(prepared?))
    }

    /// Returns a path to the namespace that is valid while this process runs. `ip` accepts it in
    /// place of a name.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Calls `inside` with the calling thread in this namespace. Processes started by `inside` stay
    /// there.
    ///
    /// # Errors
    /// The error from `inside`, or the namespace cannot be entered.
    pub(crate) fn within<T>(&self, inside: impl FnOnce() -> Result<T>) -> Result<T> {
        let home = Home::remember()?;
        setns(&self.0, CloneFlags::CLONE_NEWNET).context("cannot enter a network namespace")?;
        let answer = inside();
        home.back()?;
        answer
    }
}

/// Writes a network setting below /proc/sys/net for the namespace of the calling thread, if the
/// kernel has that setting.
///
/// # Errors
/// The setting cannot be written.
pub(crate) fn write_setting(name: &str, value: &str) -> Result<()> {
    let path = Path::new("/proc/sys/net").join(name);
    if !path.exists() {
        return Ok(());
    }
    fs::write(&path, value).with_context(|| format!("cannot write {}", path.display()))
}

/// Namespace in which the thread was before.
struct Home(File);

impl Home {
    fn remember() -> Result<Home> {
        Ok(Home(File::open(OWN).context("cannot see this thread's network namespace")?))
    }

    fn back(self) -> Result<()> {
        setns(self.0, CloneFlags::CLONE_NEWNET).context("cannot leave a network namespace")
    }
}
