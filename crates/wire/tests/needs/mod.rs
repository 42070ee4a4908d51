//! Requirements of tests: installed programs, and root privileges.
//!
//! A test that lacks one of them is skipped, with a message, on a developer's machine. If the
//! environment variable `CI` is set, the test fails instead, because the output of a passing run is
//! not read.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Folders with programs for root, which may be missing from the path of other users.
const PLACES_OF_ROOT: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Beginning of the line that a skipped test prints.
pub const SKIPPED: &str = "SKIP ";

/// Prints what is missing, given as a sentence without its full stop. The caller returns after it.
///
/// # Panics
/// The environment variable `CI` is set and not empty.
pub fn skip(missing: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!in_ci, "{missing}: with CI set, a test that cannot be run has failed");
    // Written directly, because the test runner captures the output of a passing test.
    let _ = writeln!(std::io::stderr(), "{SKIPPED}{missing}");
}

/// Returns whether all of these programs are installed, and prints which one is not.
///
/// # Panics
/// As [`skip`].
pub fn programs(names: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<_> = std::env::split_paths(&path).collect();
    places.extend(PLACES_OF_ROOT.map(Into::into));
    let is_missing = |name: &&&str| !places.iter().any(|place| place.join(name).is_file());
    let missing = names.iter().find(is_missing);
    if let Some(name) = missing {
        skip(&format!("{name} is not installed"));
    }
    missing.is_none()
}

/// Returns whether this process runs as root, and prints the purpose if not.
///
/// # Panics
/// As [`skip`].
pub fn root(what_for: &str) -> bool {
    let root = is_root();
    if !root {
        skip(&format!("not root, who alone may {what_for}"));
    }
    root
}

/// Returns whether this process runs as root.
pub fn is_root() -> bool {
    let own = std::fs::metadata("/proc/self").expect("Linux has /proc");
    std::os::unix::fs::MetadataExt::uid(&own) == 0
}

/// Returns whether this machine can run a lab of network namespaces, and prints what is missing if
/// not.
///
/// # Panics
/// As [`skip`].
pub fn lab() -> bool {
    if !programs(&["ip", "tc", "ping", "unshare"]) {
        return false;
    }
    let namespaces = || Command::new("unshare").args(["-Urnpf", "--mount-proc", "true"]).status();
    let may = is_root() || namespaces().is_ok_and(|status| status.success());
    if !may {
        skip("not root, and the kernel allows no user namespaces here");
    }
    may
}

/// Returns whether the kernel has this device, and prints a message if not.
///
/// # Panics
/// As [`skip`].
pub fn device(path: &str) -> bool {
    let there = Path::new(path).exists();
    if !there {
        skip(&format!("the kernel has no {path}"));
    }
    there
}
