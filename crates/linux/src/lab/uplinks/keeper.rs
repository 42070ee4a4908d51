//! The keeper of devices: a process outside of the lab's PID namespace, in the network namespace
//! that `axon up` was run in.
//!
//! In plain English: the launcher starts it before the supervisor, with one end of a pair of
//! sockets. It takes devices when the supervisor asks for them, and when that end closes, because
//! the supervisor has ended in whatever way, it gives back what is not back yet, and ends. Its log
//! says what it could not give back.

use super::device::Taken;
use super::requests::{self, Answer, Request};
use crate::lab::options::PART;
use crate::lab::state::{ProcessId, StateDir};
use crate::log;
use crate::namespace::Namespace;
use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the processes of a lab may take to end.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks at whether they have.
const LOOK: Duration = Duration::from_millis(5);

/// Starts the keeper of the lab in the network namespace of the calling process. Returns the
/// supervisor's end of the pair of sockets.
pub(in super::super) fn start(state: &StateDir) -> Result<OwnedFd> {
    let (own, supervisors) = requests::pair()?;
    let log = log::open(&state.log(StateDir::KEEPER))?;
    let child = Command::new(std::env::current_exe()?)
        .args([PART, "keeper"])
        .arg(state.path())
        .stdin(own)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .context("cannot start the keeper of devices")?;
    let process = ProcessId::of(child.id() as i32).context("the keeper ended at once")?;
    state.write_keeper(process)?;
    Ok(supervisors)
}

/// Keeps devices for the supervisor at the other end of standard input. It ends with the lab only:
/// signals that ask for an end reach the supervisor, too.
pub(in super::super) fn keep(state: &StateDir) -> Result<()> {
    let mut ends = SigSet::empty();
    ends.extend([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGPIPE]);
    ends.thread_block()?;
    let home = Namespace::here()?;
    let stdin = std::io::stdin();
    let mut held: Vec<(Taken, Namespace)> = Vec::new();
    loop {
        let (Request(uplink), switch) = match requests::receive(stdin.as_fd()) {
            Ok(Some(request)) => request,
            Ok(None) => break,
            Err(error) => {
                log::line(format_args!("{error:#}"));
                break;
            }
        };
        let taken = Taken::take(&uplink, &switch, &home);
        let answer = Answer(taken.as_ref().map(Clone::clone).map_err(|error| format!("{error:#}")));
        held.extend(taken.ok().map(|taken| (taken, switch)));
        if requests::send(stdin.as_fd(), &answer, &home).is_err() {
            break;
        }
    }
    // The daemons of the lab end with the supervisor, and use the devices until then. It closes its
    // end before that.
    let closed = Instant::now();
    while state.has_supervisor_process() && closed.elapsed() < END_LIMIT {
        std::thread::sleep(LOOK);
    }
    for (taken, switch) in &held {
        if let Err(error) = taken.give_back(switch, &home) {
            log::line(format_args!("{error:#}"));
        }
    }
    Ok(())
}
