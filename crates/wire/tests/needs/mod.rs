//! What a test needs of the machine: programs, and what only root may do.
//!
//! A test that lacks something is skipped, aloud, on a machine of a developer. Where the
//! environment variable `CI` is set it fails: nobody reads the output of a run that passed.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Where programs of root are, which others need not have in their path.
const PLACES_OF_ROOT: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Beginning of the line that a skipped test prints.
pub const SKIPPED: &str = "SKIP ";

/// Says what is missing, in a sentence without its full stop; the caller returns after it.
///
/// # Panics
/// The environment variable `CI` is set and not empty.
pub fn skip(missing: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!in_ci, "{missing}: with CI set, a test that cannot be run has failed");
    // Written directly, because the test runner captures the output of a passing test.
    let _ = writeln!(std::io::stderr(), "{SKIPPED}{missing}");
}

/// True if all of these programs are installed; says which is not.
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

/// True if this runs as root; says what that is needed for if not.
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

/// True if this machine can run a lab of network namespaces; says what is missing if not.
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

/// True if the kernel has this device; says so if not.
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
