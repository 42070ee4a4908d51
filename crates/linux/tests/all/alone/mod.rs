//! Tests in namespaces of their own, each in a process of its own: only a process of one thread
//! may change its user namespace.

#[path = "../../../../wire/tests/needs/mod.rs"]
pub mod needs;

use axon_linux::link_watch::{LinkWatch, is_up};
use axon_linux::sys;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use std::os::fd::BorrowedFd;
use std::process::{Command, ExitCode};

/// Runs each test in a new network namespace, and in new ones of these kinds: this program
/// starts itself once for each of them.
pub fn run(tests: &[(&str, fn())], also: CloneFlags) -> ExitCode {
    if let Some(wanted) =
        std::env::args().nth(1).and_then(|a| a.strip_prefix("only=").map(str::to_owned))
    {
        if let Err(why) = own_namespace(CloneFlags::CLONE_NEWNET | also) {
            needs::skip(&format!("{wanted}: {why}"));
            return ExitCode::SUCCESS;
        }
        tests.iter().filter(|(name, _)| *name == wanted).for_each(|(_, test)| test());
        println!("test {wanted} ... ok");
        return ExitCode::SUCCESS;
    }
    let program = std::env::current_exe().expect("a running program has a path");
    let fails = |name: &str| {
        let status = Command::new(&program).arg(format!("only={name}")).status();
        !status.is_ok_and(|status| status.success())
    };
    let failed: Vec<&str> =
        tests.iter().map(|(name, _)| *name).filter(|name| fails(name)).collect();
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("FAILED: {}", failed.join(" "));
    ExitCode::FAILURE
}

fn own_namespace(kinds: CloneFlags) -> Result<(), String> {
    let user = nix::unistd::geteuid();
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

/// A veth pair that is up at both ends, `va` without IPv6 chatter.
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

/// Waits for `fd`, at most five seconds.
pub fn wait(fd: BorrowedFd<'_>) {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::from(5000u16)).unwrap();
}
