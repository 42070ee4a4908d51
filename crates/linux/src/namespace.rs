//! Network namespaces, held by file descriptor.

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Network namespace. It exists while this value, or a process or device in it, exists.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn here() -> Result<Namespace> {
        Ok(Namespace(File::open("/proc/thread-self/ns/net")?))
    }

    /// Moves the calling thread into this namespace.
    ///
    /// # Errors
    /// The thread lacks `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> Result<()> {
        setns(&self.0, CloneFlags::CLONE_NEWNET).context("cannot enter a network namespace")
    }

    /// Runs a function in this namespace and then moves the thread back to `home`.
    ///
    /// # Errors
    /// As [`Namespace::enter`], and those of the function.
    pub fn inside<T>(&self, home: &Namespace, what: impl FnOnce() -> Result<T>) -> Result<T> {
        self.enter()?;
        let done = what();
        home.enter()?;
        done
    }

    /// Returns the path that names the namespace to `ip`.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

impl From<OwnedFd> for Namespace {
    fn from(fd: OwnedFd) -> Namespace {
        Namespace(fd.into())
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
