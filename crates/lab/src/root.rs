//! Directory that holds the state of all labs of a user, and its lock.
//!
//! `down` ends and removes every lab that it finds here. So no other user may write to the
//! directory, and one that is not private to this user is refused. The lock is on the directory
//! itself, so that no file is left behind. The kernel releases it when its holder dies.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Environment variable that sets the directory of labs. The default is the user's runtime
/// directory.
pub const STATE_VARIABLE: &str = "AXON_STATE_DIR";

/// Lock that is held while labs are listed, created or removed, but never while waiting for a lab.
#[derive(Debug)]
pub(super) struct RootLock {
    _file: File,
}

#[cfg(test)]
impl RootLock {
    /// Returns a lock for tests with private labs.
    pub(super) fn for_test() -> RootLock {
        RootLock { _file: File::open("/dev/null").expect("every Linux has it") }
    }
}

/// Returns the path of the directory, whether it exists or not.
pub(super) fn path() -> PathBuf {
    if let Some(path) = std::env::var_os(STATE_VARIABLE) {
        // Without a working directory, the path stays relative and is then not found.
        return std::path::absolute(&path).unwrap_or(path.into());
    }
    let user = nix::unistd::geteuid();
    match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if user.is_root() => "/run/axon".into(),
        Some(path) => PathBuf::from(path).join("axon"),
        None => std::env::temp_dir().join(format!("axon-{user}")),
    }
}

/// Refuses anything other than a private directory of this user: a link, another owner, or a mode
/// other than 0700.
pub(super) fn check_private(path: &Path) -> Result<()> {
    let found =
        fs::symlink_metadata(path).with_context(|| format!("cannot look at {}", path.display()))?;
    let (path, user) = (path.display(), nix::unistd::geteuid());
    if !found.is_dir() {
        bail!("{path} is not a directory of labs; Axon leaves it alone");
    }
    if found.uid() != user.as_raw() {
        bail!("{path} belongs to user {}, not to this one", found.uid());
    }
    let mode = found.permissions().mode() & 0o777;
    if mode != 0o700 {
        bail!("{path} is open to others (mode {mode:o}); `chmod 700 {path}` if it is for labs");
    }
    Ok(())
}

/// Waits for the lock. Creates the directory if it is missing.
pub(super) fn lock() -> Result<RootLock> {
    let path = path();
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700).recursive(true);
    builder.create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    check_private(&path)?;
    let file = File::open(&path)?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(RootLock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn only_a_directory_of_this_user_alone_is_trusted() {
        let path = std::env::temp_dir().join(format!("axon-root-{}", std::process::id()));
        let link = path.with_extension("link");
        fs::create_dir(&path).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        assert!(check_private(&path).unwrap_err().to_string().contains("chmod 700"));
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        check_private(&path).unwrap();
        assert!(check_private(&link).is_err());
        fs::remove_file(&link).unwrap();
        fs::remove_dir(&path).unwrap();
        assert!(check_private(&path).is_err());
    }
}
