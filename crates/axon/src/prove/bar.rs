//! Progress bar for long computations.

use indicatif::{ProgressBar, ProgressStyle};

/// Returns a bar on standard error, if that is a terminal: the activity, and the number and kind of
/// its steps.
pub(super) fn bar(length: u64, what: &'static str, of: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:24}] {pos} of {len} {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(what).with_message(of)
}
