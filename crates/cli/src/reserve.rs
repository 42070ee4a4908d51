//! Checks that results can be written before anything runs, so that an error does not appear only
//! after hours. Existing files stay unchanged, and a refusal leaves nothing behind.

use anyhow::{Context, Result, bail};
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Files and folders that were created for later results. They are removed on drop, unless
/// [`Reserved::keep`] was called.
#[derive(Default)]
pub struct Reserved {
    made: Vec<PathBuf>,
}

impl Reserved {
    /// Creates a folder and its parents.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn folder(&mut self, path: &Path) -> Result<()> {
        let missing: Vec<&Path> =
            path.ancestors().take_while(|at| !at.as_os_str().is_empty() && !at.exists()).collect();
        for at in missing.into_iter().rev() {
            fs::create_dir(at).with_context(|| format!("cannot make {}", path.display()))?;
            self.made.push(at.to_owned());
        }
        let is_folder = fs::metadata(path).and_then(|_| fs::read_dir(path));
        is_folder.map(drop).with_context(|| path.display().to_string())
    }

    /// Creates a file, or checks that an existing one can be written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn file(&mut self, path: &Path) -> Result<()> {
        // After such a check, the reader of a pipe would see its end.
        if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            return Ok(());
        }
        let cannot = || format!("cannot write {}", path.display());
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(_) => self.made.push(path.to_owned()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                OpenOptions::new().append(true).create(true).open(path).with_context(cannot)?;
            }
            Err(error) => return Err(error).with_context(cannot),
        }
        Ok(())
    }

    /// Keeps everything that was created.
    pub fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        for path in self.made.iter().rev() {
            let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
    }
}

/// Refuses a file that two options write, or that the run also reads. Each file has its role, such
/// as `--json`. Devices and pipes may be written twice.
///
/// # Errors
/// Such a file exists. The error names both roles.
pub fn apart(inputs: &[(String, PathBuf)], outputs: &[(String, PathBuf)]) -> Result<()> {
    let mut known: Vec<(PathBuf, &str)> = Vec::new();
    let inputs = inputs.iter().map(|input| (input, false));
    for ((what, path), written) in inputs.chain(outputs.iter().map(|output| (output, true))) {
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            continue;
        }
        let place = place(path);
        let same = known.iter().find(|(other, _)| *other == place);
        if let (Some((_, other)), true) = (same, written) {
            bail!("{what} {}: that is also {other}; expected a file of its own", path.display());
        }
        known.push((place, what));
    }
    Ok(())
}

/// Returns the canonical path of a file, as far as the path exists, with the further part
/// unchanged.
fn place(path: &Path) -> PathBuf {
    if let Ok(there) = path.canonicalize() {
        return there;
    }
    let Some(name) = path.file_name() else { return path.to_owned() };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    place(parent.unwrap_or(Path::new("."))).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_goes_again_unless_it_is_kept() {
        let root = std::env::temp_dir().join(format!("axon-reserve-{}", std::process::id()));
        let (old, new) = (root.join("old"), root.join("a/b/new"));
        fs::create_dir_all(&root).unwrap();
        fs::write(&old, "results").unwrap();
        for keep in [false, true] {
            let mut reserved = Reserved::default();
            reserved.file(&old).unwrap();
            reserved.folder(&root.join("a/b")).unwrap();
            reserved.file(&new).unwrap();
            assert!(reserved.file(&root.join("c/d")).is_err());
            assert!(reserved.folder(&old).is_err());
            if keep {
                reserved.keep();
            } else {
                drop(reserved);
            }
            assert_eq!((new.exists(), root.join("a").exists()), (keep, keep));
            assert_eq!(fs::read_to_string(&old).unwrap(), "results");
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn one_file_by_two_names_is_one_file() {
        let input = [("the fabric file".to_owned(), PathBuf::from("Cargo.toml"))];
        let two = |a: &str, b: &str| {
            apart(&input, &[("--json".to_owned(), a.into()), ("--trace".to_owned(), b.into())])
        };
        assert!(two("a", "b").is_ok());
        assert!(two("a", "./src/../a").is_err());
        assert!(two("no/a", "./no/a").is_err());
        assert!(two("/dev/null", "/dev/null").is_ok());
        let said = two("a", "src/../Cargo.toml").unwrap_err().to_string();
        assert!(said.contains("--trace src/../Cargo.toml: that is also the fabric file"), "{said}");
    }
}
