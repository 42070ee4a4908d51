//! SIGINT and SIGTERM for commands that end in order: the first is recorded, the second ends the
//! process at once.

use crate::cli::say::INTERRUPTED;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Handles both signals from then on. The first of them sets the flag.
///
/// # Errors
/// The system does not allow the handlers.
pub(crate) fn on_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = i32::from(INTERRUPTED);
        flag::register_conditional_shutdown(signal, code, Arc::clone(&stop))
            .and_then(|_| flag::register(signal, Arc::clone(&stop)))
            .context("cannot take signals")?;
    }
    Ok(stop)
}
