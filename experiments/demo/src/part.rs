//! Processes that the demo runs on its hosts, all started from its own program.

use crate::gap;
use anyhow::{Context, Result, bail};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// First argument of such a process.
const PART: &str = "demo-part";

/// Runs the part of the demo that this process was started for, if any. Call it first in `main`,
/// like [`axon_lab::part`].
pub fn part() -> Option<ExitCode> {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [PART, rest @ ..] = &words[..] else { return None };
    Some(run(rest).map_or_else(
        |error| {
            eprintln!("axon: {error:#}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    ))
}

fn run(words: &[&str]) -> Result<()> {
    let time = |millis: &str| -> Result<Duration> {
        Ok(Duration::from_millis(millis.parse().context("no number of milliseconds")?))
    };
    match words {
        ["probe-send", to, millis] => {
            gap::send(to.parse::<Ipv4Addr>().context("no address")?, time(millis)?)
        }
        ["probe-receive", millis] => {
            print!("{}", gap::receive(time(millis)?)?);
            Ok(())
        }
        _ => bail!("{PART} is for the demo's own processes"),
    }
}

/// Returns the command for a host to send a probe each millisecond to `receiver` for `time`.
pub(crate) fn send(program: &Path, receiver: Ipv4Addr, time: Duration) -> Vec<String> {
    command(program, &["probe-send", &receiver.to_string(), &time.as_millis().to_string()])
}

/// Returns the command for a host to receive probes for `time` and print their arrivals.
pub(crate) fn receive(program: &Path, time: Duration) -> Vec<String> {
    command(program, &["probe-receive", &time.as_millis().to_string()])
}

fn command(program: &Path, words: &[&str]) -> Vec<String> {
    let program = program.display().to_string();
    let words = [PART].iter().chain(words).map(|word| (*word).to_owned());
    std::iter::once(program).chain(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_on_a_host_is_understood_there_and_nothing_else() {
        let sent = send(Path::new("/axon"), [10, 0, 0, 2].into(), Duration::from_secs(6));
        assert_eq!(sent, ["/axon", PART, "probe-send", "10.0.0.2", "6000"]);
        for (words, why) in [
            (&["probe-send", "h2", "6000"][..], "no address"),
            (&["probe-receive", "soon"], "no number of milliseconds"),
            (&["probe"], "own processes"),
        ] {
            let error = format!("{:#}", run(words).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(part(), None, "a test is no part of a demo");
    }
}
