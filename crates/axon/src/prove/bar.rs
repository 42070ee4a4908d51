//! A bar for what takes long.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, if that is a terminal: what is done, and how many of what.
pub(super) fn bar(length: u64, what: &'static str, of: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:24}] {pos} of {len} {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.with_prefix(what).with_message(of)
}
