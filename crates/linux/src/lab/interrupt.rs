//! Ctrl-C while a lab is started: what is half made must go again.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Holds SIGINT, SIGTERM and SIGHUP back from the calling thread until dropped. In a process
/// of more threads another one may still take them, as it would without this.
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

    /// What to poll for readability.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    /// Whether a signal has come; takes it.
    pub(super) fn has_come(&self) -> bool {
        matches!(self.signals.read_signal(), Ok(Some(_)))
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // Setting the mask to what it was cannot fail.
        let _ = self.before.thread_set_mask();
    }
}
