//! Random seeds for nodes and for their state.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::Read;

/// Returns 64 random bits. At boot, this blocks until the kernel has enough entropy.
pub(crate) fn seed() -> Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/random")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/random")?;
    Ok(u64::from_ne_bytes(bytes))
}
