//! SIGINT and SIGTERM for commands that end in order: the first is noted, the second ends at once.

use crate::cli::say::INTERRUPTED;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Takes both signals from now on. The flag is set by the first of them.
///
/// # Errors
/// The system does not let them be taken.
pub fn on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = i32::from(INTERRUPTED);
        flag::register_conditional_shutdown(signal, code, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .context("cannot take signals")?;
    }
    Ok(stop)
}
