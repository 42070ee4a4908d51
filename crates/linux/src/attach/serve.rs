//! Answers for an agent, and ends it.

use super::board::Board;
use crate::status::StatusServer;
use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::AsFd;
use std::time::Duration;

/// How long an agent may take to end: longer than it waits for a switch that does not answer.
const END_MAX: Duration = Duration::from_secs(3);
/// Between looks at whether the agent has ended, in milliseconds.
const LOOK_MS: u16 = 100;

/// SIGTERM and SIGINT, which end the agent, as a file.
pub(super) fn signals() -> Result<SignalFd> {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGTERM);
    mask.add(Signal::SIGINT);
    mask.thread_block().context("cannot hold signals back")?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    SignalFd::with_flags(&mask, flags).context("cannot wait for signals")
}

/// Answers for an agent until it has ended, and ends it when a signal asks for that.
pub(super) fn serve(board: &Board, signals: &SignalFd, server: Option<&StatusServer>) {
    while !board.ends_within(Duration::ZERO) {
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(server.map(|server| PollFd::new(server.fd(), PollFlags::POLLIN)));
        // An interrupted wait is one more look.
        let _ = poll(&mut fds, PollTimeout::from(LOOK_MS));
        let woken: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        if woken[0] && signals.read_signal().is_ok_and(|signal| signal.is_some()) {
            board.ask_to_end();
            if !board.ends_within(END_MAX) {
                tracing::warn!("the agent does not end; what it has counted is lost");
                std::process::exit(0);
            }
            return;
        }
        if let Some(server) = server.filter(|_| woken.get(1) == Some(&true)) {
            server.answer(&board.ask());
        }
    }
}
