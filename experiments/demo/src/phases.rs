//! Steps of the demo within one lab.

use super::cut::{Cut, Stream};
use super::gap::{self, Outage};
use super::iperf::{self, Load};
use super::part;
use super::process::Process;
use super::report::Tables;
use super::world::World;
use crate::table1::{FLOWS, HOSTS, PAIRS, Transport};
use anyhow::{Context, Result, bail};
use std::time::Duration;

/// Number of pings that run at the same time.
const PINGS: usize = 10;
/// Delay of the cut after the first probe.
const CUT_AFTER: Duration = Duration::from_secs(2);
/// Additional time for which receivers run, before the first probe and after the last together.
const PROBES_AROUND: Duration = Duration::from_millis(1_500);
/// Time limit for a daemon or a program on a host.
const ANSWER: Duration = Duration::from_secs(15);

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Pings between all ordered pairs of hosts, three times each. Returns the number of pairs with an
/// answer.
///
/// # Errors
/// ping is missing, or the user stops the run.
pub(crate) fn ping_all(world: &World<'_>, name: &str) -> Result<usize> {
    let pairs = (1..=HOSTS).flat_map(|from| (1..=HOSTS).map(move |to| (from, to)));
    let pairs: Vec<_> = pairs.filter(|(from, to)| from != to).collect();
    debug_assert_eq!(pairs.len(), PAIRS);
    let mut reachable = 0;
    for some in pairs.chunks(PINGS) {
        let start = |&(from, to): &(usize, usize)| ping(world, from, to, &format!("{name}-to{to}"));
        let running = some.iter().map(start).collect::<Result<Vec<_>>>()?;
        for process in running {
            let (status, _) = process.finish(ANSWER, world.stop())?;
            match status.code() {
                Some(0) => reachable += 1,
                // The exit status of ping(8) is 1 for no answer, and 2 for another error.
                Some(1) => {}
                _ => bail!("ping ended with {status}; its output is in {:?}", world.folder()),
            }
        }
    }
    Ok(reachable)
}

fn ping(world: &World<'_>, from: usize, to: usize, name: &str) -> Result<Process> {
    let command = format!("ping -n -c 3 -i 0.2 -W 1 {}", world.address(to));
    world.start(from, &words(&command), name)
}

/// Lets only h1 and h3 communicate, and reads the tables at s2, which their frames pass, and at s1
/// and s3. The world must be a fresh line.
///
/// # Errors
/// They cannot reach each other, or a switch does not answer.
pub(crate) fn transit_state(world: &World<'_>) -> Result<Tables> {
    ping(world, 1, 3, "transit")?.succeed(ANSWER, world.stop()).context("h1 cannot ping h3")?;
    let entries = world.table_entries()?;
    let sum = |switch: usize| entries[switch].iter().map(|(_, count)| count).sum::<u64>();
    Ok(Tables { transit_entries: sum(1), edge_entries: sum(0) + sum(2), axon_port_entries: 0 })
}

/// Returns the number of entries on ports that lead to other switches. It is expected to be zero.
///
/// # Errors
/// A switch does not answer.
pub(crate) fn axon_port_entries(world: &World<'_>) -> Result<u64> {
    let entries = world.table_entries()?;
    let axon = entries.iter().flatten().filter(|(is_host, _)| !is_host);
    Ok(axon.map(|(_, count)| count).sum())
}

/// Load with its running servers and clients.
struct Running {
    servers: Vec<Process>,
    clients: Vec<Process>,
}

/// Starts all six flows.
fn start(world: &World<'_>, load: &Load, congestion: &str, name: &str) -> Result<Running> {
    let server = |host| world.start(host, &load.server(), &format!("{name}-server"));
    let servers = (1..=HOSTS).map(server).collect::<Result<Vec<_>>>()?;
    (1..=HOSTS).try_for_each(|host| wait_listening(world, host))?;
    let client = |flow: &crate::table1::Flow| {
        let command = load.client(world.address(flow.to), congestion);
        world.start(flow.from, &command, &format!("{name}-client"))
    };
    let clients = FLOWS.iter().map(client).collect::<Result<Vec<_>>>()?;
    Ok(Running { servers, clients })
}

/// Waits until iperf3 listens, which it does not report.
fn wait_listening(world: &World<'_>, host: usize) -> Result<()> {
    for _ in 0..100 {
        let sockets = world.start(host, &words("ss -H -l -t -n"), "ss")?;
        let sockets = sockets.succeed(ANSWER, world.stop())?;
        if sockets.split_whitespace().any(|word| word.ends_with(&format!(":{}", iperf::PORT))) {
            return Ok(());
        }
        world.stop().sleep(Duration::from_millis(20))?;
    }
    bail!("iperf3 does not listen on h{host}")
}

/// Waits for the end of a load. Returns the goodput of each flow in Mb/s between the two times.
fn collect(world: &World<'_>, running: Running, from: f64, until: f64) -> Result<[f64; 6]> {
    let limit = Duration::from_secs_f64(until) + ANSWER;
    for (client, flow) in running.clients.into_iter().zip(FLOWS) {
        let (status, output) = client.finish(limit, world.stop())?;
        if !status.success() {
            let why = iperf::client_error(&output).unwrap_or_else(|| status.to_string());
            bail!("iperf3 {}: {why}", flow.label());
        }
    }
    let mut outputs = Vec::new();
    for server in running.servers {
        outputs.push(server.finish(ANSWER, world.stop())?.1);
    }
    let mut mbps = [0.0; 6];
    for (mbps, flow) in mbps.iter_mut().zip(FLOWS) {
        let received = iperf::parse_server(&outputs[flow.to - 1], from, until);
        *mbps = received.with_context(|| format!("the flow {}", flow.label()))?.mbps;
    }
    Ok(mbps)
}

/// Runs all six flows at once. Returns the goodput of each flow in Mb/s, in the order of the table.
///
/// # Errors
/// iperf3 fails on a host.
pub fn load(world: &World<'_>, load: &Load, congestion: &str, name: &str) -> Result<[f64; 6]> {
    let running = start(world, load, congestion, name)?;
    collect(world, running, load.warm_up, f64::from(load.seconds) - load.cool_down)
}

/// Plan for a link cut.
#[derive(Clone, Copy, Debug)]
pub struct CutPlan {
    /// Duration of the six flows in seconds, from before the first probe until after the last.
    pub load_s: u32,
    /// Duration for which probes are sent.
    pub probes: Duration,
    /// True if frames follow a spanning tree whose root is the first switch, so that all traffic of
    /// the second switch crosses the link. Otherwise, each flow takes the shortest path.
    pub is_tree: bool,
}

impl CutPlan {
    /// Returns whether a flow between hosts at these two switches crosses the link between the
    /// first two switches.
    fn is_crossed_by(&self, axons: (usize, usize)) -> bool {
        let (from, to) = axons;
        if self.is_tree { from == 1 || to == 1 } else { matches!(axons, (0, 1) | (1, 0)) }
    }
}

/// Cuts the link between the first two switches while all six flows run over TCP, each accompanied
/// by a stream of probes.
///
/// # Errors
/// A program fails, or the link cannot be cut.
pub(crate) fn cut(
    world: &World<'_>,
    plan: &CutPlan,
    link_bits_per_second: u64,
    congestion: &str,
) -> Result<Cut> {
    let load = Load {
        transport: Transport::Tcp,
        seconds: plan.load_s,
        warm_up: 0.0,
        cool_down: 0.0,
        link_bits_per_second,
    };
    let program = std::env::current_exe()?;
    let running = start(world, &load, congestion, "cut")?;
    let receive = part::receive(&program, plan.probes + PROBES_AROUND);
    let receivers = FLOWS.iter().map(|flow| world.start(flow.to, &receive, "probes"));
    let receivers = receivers.collect::<Result<Vec<_>>>()?;
    let send = |flow: &crate::table1::Flow| {
        let argv = part::send(&program, world.address(flow.to), plan.probes);
        world.start(flow.from, &argv, "probe-send")
    };
    let senders = FLOWS.iter().map(send).collect::<Result<Vec<_>>>()?;
    world.stop().sleep(CUT_AFTER)?;
    let cut_at = gap::now_nanos()?;
    let port = world.cut()?;
    let limit = plan.probes + ANSWER;
    for sender in senders {
        sender.succeed(limit, world.stop())?;
    }
    let count = (plan.probes.as_nanos() / gap::INTERVAL.as_nanos()) as u32;
    let mut streams = Vec::new();
    for (receiver, flow) in receivers.into_iter().zip(FLOWS) {
        let arrivals = gap::parse(&receiver.succeed(limit, world.stop())?)?;
        let outage: Outage = gap::outage(&arrivals, cut_at, count);
        streams.push(Stream { flow, crossed: plan.is_crossed_by(flow.axons()), outage });
    }
    // The last second of the load, up to half a second before its end, is long after the cut.
    let end = f64::from(load.seconds);
    let tcp_after_mbps = collect(world, running, end - 1.5, end - 0.5)?.iter().sum();
    Ok(Cut { port, streams, tcp_after_mbps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_tree_all_flows_of_the_second_switch_cross_the_link_to_the_root() {
        let plan = |is_tree| CutPlan { load_s: 9, probes: Duration::from_secs(6), is_tree };
        let crossing = |is_tree| {
            let plan = plan(is_tree);
            FLOWS.map(|flow| plan.is_crossed_by(flow.axons()))
        };
        assert_eq!(crossing(false), [true, false, false, false, false, true]);
        assert_eq!(crossing(true), [true, true, false, false, true, true]);
    }
}
