//! Internal processes of the lab, all started from the program that calls [`up`](super::up).

use super::options::PART;
use super::state::StateDir;
use super::{attached, enter, links, moves, node, ping, supervisor, uplinks};
use anyhow::{Context, Result, bail};
use axon_linux::log;
use std::ffi::OsString;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the function for which the lab has started this process, if any. Call this first in `main`,
/// before any thread is started. The lab starts its supervisor, daemons and commands from the
/// program that calls [`up`](super::up).
pub fn part() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != PART {
        return None;
    }
    let rest: Vec<OsString> = arguments.collect();
    Some(run_part(&rest).unwrap_or_else(|error| {
        log::line(format_args!("axon: {error:#}"));
        ExitCode::FAILURE
    }))
}

fn run_part(arguments: &[OsString]) -> Result<ExitCode> {
    let text: Vec<&str> = arguments.iter().take(3).filter_map(|a| a.to_str()).collect();
    let done = |()| ExitCode::SUCCESS;
    match text[..] {
        ["launcher", state] => supervisor::launch(&StateDir::at(state), false).map(done),
        ["launcher", state, "devices"] => supervisor::launch(&StateDir::at(state), true).map(done),
        ["keeper", state] => uplinks::keep(&StateDir::at(state)).map(done),
        ["supervisor", state] => supervisor::supervise(&StateDir::at(state)).map(done),
        ["node", state, node] => node::run(&StateDir::at(state), node, arguments.get(3)).map(done),
        ["attached", state, agent] => attached::run(&StateDir::at(state), agent).map(done),
        ["enter", state, node] => enter::enter(&StateDir::at(state), node, &arguments[3..]),
        ["inside", node, ..] => enter::inside(node, &arguments[2..]),
        ["ping", state, node] => {
            let words = arguments[3..].iter().filter_map(|word| word.to_str());
            let [limit, to @ ..] = &words.collect::<Vec<&str>>()[..] else { bail!("no limit") };
            let to: Result<Vec<IpAddr>, _> = to.iter().map(|ip| ip.parse()).collect();
            ping::ping(&StateDir::at(state), node, Duration::from_millis(limit.parse()?), &to?)
                .map(done)
        }
        ["announce", state, host] => links::announce_host(&StateDir::at(state), host).map(done),
        ["move", state, from] => {
            let to = arguments.get(3).and_then(|to| to.to_str()).context("a port is missing")?;
            moves::hand_over(&StateDir::at(state), from, to).map(done)
        }
        ["device", state, node] => match arguments.get(3..).unwrap_or(&[]) {
            [device, direction] => {
                let device = device.to_str().context("a device name is plain text")?;
                enter::set_device(&StateDir::at(state), node, device, direction == "up").map(done)
            }
            _ => bail!("device and direction are missing"),
        },
        _ => bail!("{PART} is for the lab's own processes"),
    }
}
