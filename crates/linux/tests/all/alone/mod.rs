//! Helpers of tests in network namespaces of their own.

use axon_linux::link_watch::{LinkWatch, is_up};
use axon_linux::sys;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use std::os::fd::BorrowedFd;
use std::process::Command;

pub(crate) use crate::needs;

/// Moves this process, which has one thread, into a new network namespace and into new ones of
/// these kinds. Returns false, and prints why, if the kernel does not permit this user new
/// namespaces.
pub fn enter(kinds: CloneFlags) -> bool {
    enter_or_say(kinds).map_err(|missing| needs::skip(&missing)).is_ok()
}

fn enter_or_say(kinds: CloneFlags) -> Result<(), String> {
    let (user, kinds) = (nix::unistd::geteuid(), CloneFlags::CLONE_NEWNET | kinds);
    if !(user.is_root() && unshare(kinds).is_ok()) {
        unshare(CloneFlags::CLONE_NEWUSER | kinds)
            .map_err(|error| format!("no network namespace of its own ({error})"))?;
        let map = std::fs::write("/proc/self/uid_map", format!("0 {user} 1"));
        map.map_err(|error| format!("cannot be root of a user namespace ({error})"))?;
    }
    Ok(())
}

/// Runs `ip` with these words.
pub fn ip(line: &str) {
    let status = Command::new("ip").args(line.split(' ')).status().expect("iproute2 is there");
    assert!(status.success(), "ip {line}");
}

/// Creates a veth pair that is up at both ends; `va` sends no IPv6 frames of its own.
pub fn veth() {
    for which in ["all", "default"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
    ip("link add va index 101 mtu 1500 type veth peer name vb index 102 mtu 1500");
    sys::set_device_up("va", true).unwrap();
    sys::set_device_up("vb", true).unwrap();
    let mut watch = LinkWatch::open().unwrap();
    while !(is_up("va") && is_up("vb")) {
        wait(watch.fd());
        watch.read(&mut Vec::new());
    }
}

/// Waits for `fd`, five seconds at most.
pub fn wait(fd: BorrowedFd<'_>) {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(5000u16)).unwrap();
}
