//! Keeper of devices: a process outside the lab's PID namespace, in the network namespace of `axon
//! up`.
//!
//! The launcher starts the keeper before the supervisor, with one end of a socket pair. The keeper
//! moves devices when the supervisor requests it. When the supervisor ends, in any way, its end
//! closes. The keeper then returns the remaining devices and ends. Its log lists devices that it
//! could not return.

use super::device::Taken;
use super::requests::{self, Answer, Request};
use crate::options::PART;
use crate::state::{ProcessId, StateDir};
use anyhow::{Context, Result};
use axon_linux::log;
use axon_linux::namespace::Namespace;
use nix::sys::signal::{SigSet, Signal};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for the processes of a lab to end.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Polling interval while these processes end.
const LOOK: Duration = Duration::from_millis(5);

/// Starts the keeper of the lab in the network namespace of the calling process. Returns the
/// supervisor's end of the socket pair.
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

/// Holds devices for the supervisor at the other end of standard input. Ends only with the lab,
/// because signals that request an end also reach the supervisor.
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
    // The daemons of the lab use the devices until they end with the supervisor. The supervisor
    // closes its end earlier.
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
