//! Answers status requests for an agent and ends it on a signal.

use super::board::Board;
use crate::status::StatusServer;
use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::AsFd;
use std::time::Duration;

/// Time limit for an agent to end. It is longer than the agent's timeout for a switch that does not
/// answer.
const END_MAX: Duration = Duration::from_secs(3);
/// Interval, in milliseconds, between checks whether the agent has ended.
const LOOK_MS: u16 = 100;

/// Opens a signal descriptor for SIGTERM and SIGINT, which end the agent.
pub(super) fn signals() -> Result<SignalFd> {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGTERM);
    mask.add(Signal::SIGINT);
    mask.thread_block().context("cannot hold signals back")?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    SignalFd::with_flags(&mask, flags).context("cannot wait for signals")
}

/// Answers status requests until the agent has ended. Ends the agent on a signal.
pub(super) fn serve(board: &Board, signals: &SignalFd, server: Option<&StatusServer>) {
    while !board.ends_within(Duration::ZERO) {
        let mut fds = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(server.map(|server| PollFd::new(server.fd(), PollFlags::POLLIN)));
        // After an interrupted wait, the loop only checks once more.
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
