//! Handles Ctrl-C while a lab is being started, so that partial state is removed.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Blocks SIGINT, SIGTERM and SIGHUP in the calling thread until dropped. In a process with several
/// threads, another thread may still receive them.
pub(super) struct Interrupts {
    signals: SignalFd,
    before: SigSet,
}

impl Interrupts {
    pub(super) fn hold() -> io::Result<Interrupts> {
        let mut mask = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            mask.add(signal);
        }
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let before = mask.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Interrupts { signals, before })
    }

    /// Returns the descriptor to poll for readability.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    /// Returns whether a signal has arrived, and consumes it.
    pub(super) fn has_come(&self) -> bool {
        matches!(self.signals.read_signal(), Ok(Some(_)))
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // Restoring the mask cannot fail.
        let _ = self.before.thread_set_mask();
    }
}
