//! `axon ping`: reachability between hosts of a running lab.

mod show;

use crate::cli::lab::Choice;
use crate::cli::say;
use anyhow::{Context, Result, bail, ensure};
use axon_fabric::assemble::host_index;
use axon_fabric::model::Fabric;
use axon_lab::{Family, Ping};
use axon_node::random::Random;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

/// Ping between hosts of a running lab, all pairs by default; print round trip times
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 all pairs answered; 1 a pair did not, or a host has no \
    address; 2 it could not be tried, or wrong usage")]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Ping between these hosts only, such as h1 h3; with one, between it and all others
    hosts: Vec<String>,
    /// Seconds to wait for a reply of each host, 1 to 3600; requests are sent every second until it
    /// comes
    #[arg(long, value_name = "SECONDS", default_value_t = 5,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Ping only this number of the pairs, drawn at random
    #[arg(long, value_name = "PAIRS", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// Seed of the draw for --sample; equal seeds draw equal pairs
    #[arg(long, default_value_t = 1, requires = "sample")]
    seed: u64,
    /// Use IPv4 only; by default both where the file has `ipv6` or an `ip6`, else IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6 only; hosts have it where the file has `ipv6` or an `ip6`
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Print the result as JSON, times in nanoseconds
    #[arg(long)]
    json: bool,
}

/// Pings; the exit status shows whether every pair answered.
///
/// # Errors
/// There is no lab or no such host, or the controller does not answer.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let lab = arguments.lab.open()?;
    let fabric = lab.fabric()?;
    let mut pairs = pairs(&fabric, &arguments.hosts)?;
    if let Some(count) = arguments.sample {
        pairs = sample(pairs, count as usize, arguments.seed);
    }
    let families: &[Family] = match (arguments.ipv4, arguments.ipv6) {
        (_, true) => &[Family::V6],
        (false, false) if axon_fabric::ipv6::is_dual_stack(&fabric) => &[Family::V4, Family::V6],
        _ => &[Family::V4],
    };
    let bar = ProgressBar::new((pairs.len() * families.len()) as u64);
    let style = ProgressStyle::with_template("pinging [{bar:24}] {pos} of {len} pairs")?;
    bar.set_style(style.progress_chars("=> "));
    let limit = Duration::from_secs(arguments.timeout);
    let ping = |&family: &Family| -> Result<(Family, Vec<Ping>)> {
        let pings = lab.ping_over(family, &fabric, &pairs, limit, || bar.inc(1))?;
        Ok((family, pings))
    };
    let rounds: Result<Vec<(Family, Vec<Ping>)>> = families.iter().map(ping).collect();
    bar.finish_and_clear();
    let rounds = rounds?;
    if arguments.json {
        let output = Output::of(&fabric, &rounds);
        say::print(&crate::cli::output::json(&output)?)?;
    } else {
        for (family, pings) in &rounds {
            if families != [Family::V4] {
                say::print(&format!("IPv{}\n", family.number()))?;
            }
            say::print(&show::text(&fabric, pings))?;
        }
    }
    let mut pings = rounds.iter().flat_map(|(_, pings)| pings);
    Ok(say::answer(pings.all(|ping| ping.rtt_ns.is_some())))
}

/// Returns both directions of each pair of these hosts; of one, the pairs of it and all others; of
/// none, all pairs.
fn pairs(fabric: &Fabric, names: &[String]) -> Result<Vec<(usize, usize)>> {
    let hosts = fabric.hosts.len();
    ensure!(hosts >= 2, "{} has {hosts} hosts; expected two or more", fabric.name);
    let index = |name: &String| {
        host_index(fabric, name).with_context(|| {
            let all: Vec<&str> = fabric.hosts.iter().map(|host| host.name.as_str()).collect();
            format!("{} has no host {name}; it has {}", fabric.name, all.join(" "))
        })
    };
    if let Some(joined) = names.iter().find(|name| name.contains(',')) {
        bail!("{joined}: expected one host a word: `axon ping {}`", joined.replace(',', " "));
    }
    let mut named = names.iter().map(index).collect::<Result<Vec<usize>>>()?;
    named.sort_unstable();
    named.dedup();
    // Hosts behind a real device answer pings, and send none for the lab.
    let devices = fabric.uplinks.iter().filter(|uplink| uplink.device.is_some());
    let outside: Vec<usize> = devices.map(|uplink| uplink.host).collect();
    let wanted = |a: usize, b: usize| match named[..] {
        [] => true,
        [one] => a == one || b == one,
        _ => named.contains(&a) && named.contains(&b),
    };
    let all = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
    Ok(all.filter(|&(a, b)| a != b && !outside.contains(&a) && wanted(a, b)).collect())
}

/// Draws this number of the pairs, in order; all if there are no more.
fn sample<T>(mut pairs: Vec<T>, count: usize, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    let (mut left, mut wanted) = (pairs.len() as u64, count as u64);
    // Each pair is taken with the probability that makes every choice equally likely.
    pairs.retain(|_| {
        let is_taken = random.next_u64() % left < wanted;
        left -= 1;
        wanted -= u64::from(is_taken);
        is_taken
    });
    pairs
}

/// JSON output of `axon ping --json`.
#[derive(Serialize)]
struct Output<'a> {
    /// Name of the fabric in its file.
    fabric: &'a str,
    /// Number of ordered pairs of hosts that were pinged, times the address families used.
    pairs: usize,
    /// Number of these that answered.
    answered: usize,
    /// Results of the pairs.
    pings: Vec<OnePing<'a>>,
}

/// One direction of a pair.
#[derive(Serialize)]
struct OnePing<'a> {
    /// Host that sends requests.
    from: &'a str,
    /// Host that answers the requests.
    to: &'a str,
    /// Address family: 4 or 6.
    family: u8,
    /// Address of `to`; null if it has none.
    address: Option<IpAddr>,
    /// Number of echo requests sent.
    requests: u32,
    /// Time from the request that was answered to its reply; null without an answer.
    rtt_ns: Option<u64>,
}

impl<'a> Output<'a> {
    fn of(fabric: &'a Fabric, rounds: &[(Family, Vec<Ping>)]) -> Output<'a> {
        let pings =
            rounds.iter().flat_map(|(family, pings)| pings.iter().map(move |one| (*family, one)));
        let one = |(family, ping): (Family, &Ping)| OnePing {
            from: &fabric.hosts[ping.from].name,
            to: &fabric.hosts[ping.to].name,
            family: family.number(),
            address: ping.address,
            requests: ping.requests,
            rtt_ns: ping.rtt_ns,
        };
        Output {
            fabric: &fabric.name,
            pairs: pings.clone().count(),
            answered: pings.clone().filter(|(_, ping)| ping.rtt_ns.is_some()).count(),
            pings: pings.map(one).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_size_and_follows_from_its_seed() {
        let all: Vec<u32> = (0..1_000).collect();
        let drawn = |count, seed| sample(all.clone(), count, seed);
        assert_eq!(drawn(10, 1).len(), 10);
        assert_eq!(drawn(10, 1), drawn(10, 1));
        assert_ne!(drawn(10, 1), drawn(10, 2));
        assert_eq!(drawn(5_000, 1), all);
        let mean = drawn(500, 3).iter().sum::<u32>() / 500;
        assert!((450..550).contains(&mean), "from all of them: {mean}");
    }

    #[test]
    fn one_name_means_its_pairs_and_several_mean_those_among_them() {
        let text = "name: a\ntopology: {line: {switches: 2, hosts_per_switch: 2}}\n";
        let fabric = axon_fabric::parse("a.yaml".as_ref(), text).unwrap();
        let pairs = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            pairs(&fabric, &names).map_err(|error| error.to_string())
        };
        assert_eq!(pairs(&[]).unwrap().len(), 12);
        assert_eq!(pairs(&["h2"]).unwrap(), [(0, 1), (1, 0), (1, 2), (1, 3), (2, 1), (3, 1)]);
        assert_eq!(pairs(&["h3", "h1", "h3"]).unwrap(), [(0, 2), (2, 0)]);
        let apart = "h1,h3: expected one host a word: `axon ping h1 h3`";
        assert_eq!(pairs(&["h1,h3"]).unwrap_err(), apart);
        assert_eq!(pairs(&["h9"]).unwrap_err(), "a has no host h9; it has h1 h2 h3 h4");
    }

    #[test]
    fn what_is_behind_a_real_device_is_pinged_and_does_not_ping() {
        let up = "uplinks: [{name: up1, at: s1, gateway: 10.0.0.254";
        let pairs = |device: &str| {
            let text = format!("name: a\ntopology: {{line: {{switches: 2}}}}\n{up}{device}}}]\n");
            pairs(&axon_fabric::parse("a.yaml".as_ref(), &text).unwrap(), &[]).unwrap()
        };
        assert_eq!(pairs(", device: eth1"), [(0, 1), (0, 2), (1, 0), (1, 2)]);
        assert_eq!(pairs("").len(), 6);
    }
}
