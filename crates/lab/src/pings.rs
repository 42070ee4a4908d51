//! Pings between the hosts of a running lab.

use super::options::PART;
use super::ping::Outcome;
use super::plan::HostPlan;
use super::running::Lab;
use super::view::directory::Directory;
use anyhow::{Context, Result, bail};
use axon_fabric::model::{Fabric, Host, Network};
use axon_linux::status::NodeStatus;
use axon_wire::nd;
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

/// Maximum number of hosts that send in parallel, each from its own process.
const SENDERS_MAX: usize = 4;

/// Result of the echo requests from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ping {
    /// Sending host, by its index in the fabric.
    pub from: usize,
    /// Target host, by its index in the fabric.
    pub to: usize,
    /// Address of the target. `None` if it has none, so that no request was sent.
    pub address: Option<IpAddr>,
    /// Requests sent, one per second.
    pub requests: u32,
    /// Round-trip time of the answered request, in nanoseconds. `None` if there was no reply.
    pub rtt_ns: Option<u64>,
}

impl Lab {
    /// Pings each of these pairs of hosts over IPv4, given by their indices in `fabric`, until a
    /// reply comes or `limit` is over. Returns the results in the order of `pairs`. `on_done` is
    /// called after each result.
    ///
    /// # Errors
    /// The controller does not answer, or a host cannot be entered.
    pub fn ping(
        &self,
        fabric: &Fabric,
        pairs: &[(usize, usize)],
        limit: Duration,
        on_done: impl FnMut(),
    ) -> Result<Vec<Ping>> {
        self.ping_over(Family::V4, fabric, pairs, limit, on_done)
    }

    /// Pings each of these pairs of hosts over this address family; see [`Lab::ping`].
    ///
    /// # Errors
    /// The controller does not answer, or a host cannot be entered.
    pub fn ping_over(
        &self,
        family: Family,
        fabric: &Fabric,
        pairs: &[(usize, usize)],
        limit: Duration,
        mut on_done: impl FnMut(),
    ) -> Result<Vec<Ping>> {
        let addresses = self.addresses(family, fabric)?;
        let mut pings = Vec::new();
        let mut senders: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, &(from, to)) in pairs.iter().enumerate() {
            let address = addresses[to];
            pings.push(Ping { from, to, address, requests: 0, rtt_ns: None });
            match address {
                Some(_) => senders.entry(from).or_default().push(index),
                None => on_done(),
            }
        }
        let queue: Mutex<VecDeque<(usize, Vec<usize>)>> = Mutex::new(senders.into_iter().collect());
        let (sender, outcomes) = mpsc::channel();
        std::thread::scope(|scope| {
            for sender in vec![sender; SENDERS_MAX] {
                let (queue, pings) = (&queue, pings.clone());
                scope.spawn(move || {
                    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    while let Some((from, indices)) = next() {
                        let to: Vec<IpAddr> =
                            indices.iter().filter_map(|&index| pings[index].address).collect();
                        let name = &fabric.hosts[from].name;
                        let sent = self.ping_from(name, &to, limit, |outcome| {
                            // The receiver is dropped only after an error.
                            let _ = sender.send(Ok((indices[outcome.target], outcome)));
                        });
                        if let Err(error) = sent {
                            let _ = sender.send(Err(error));
                        }
                    }
                });
            }
            for outcome in outcomes {
                let (index, outcome) = outcome?;
                pings[index].requests = outcome.requests;
                pings[index].rtt_ns = outcome.rtt_ns;
                on_done();
            }
            Ok(pings)
        })
    }

    /// Sends pings from one host. `on_outcome` gets the result for each target.
    fn ping_from(
        &self,
        host: &str,
        to: &[IpAddr],
        limit: Duration,
        mut on_outcome: impl FnMut(Outcome),
    ) -> Result<()> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([PART, "ping"])
            .arg(self.state().path())
            .args([host, &limit.as_millis().to_string()])
            .args(to.iter().map(IpAddr::to_string))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a process that pings")?;
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let outcome: Outcome = serde_json::from_str(&line?)?;
            if outcome.target < to.len() {
                on_outcome(outcome);
            }
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{host} cannot ping: {}", said.trim().trim_start_matches("axon: "));
        }
        Ok(())
    }

    /// Returns an address of each host: the newest one that the controller knows. A link-local
    /// address is returned only if there is no other. A host that the controller does not know,
    /// such as one without carrier, has the address assigned when the lab started, or the one
    /// derived from its MAC address. Without a controller, each switch knows its own hosts.
    /// Programmable switches know no hosts, so those have the addresses from the start.
    fn addresses(&self, family: Family, fabric: &Fabric) -> Result<Vec<Option<IpAddr>>> {
        let plan = self.state().load_plan()?;
        let planned = plan.hosts.iter().map(|host| (host.name.as_str(), host));
        let planned: BTreeMap<&str, &HostPlan> = planned.collect();
        let given = |host: &Host| {
            match (family, planned.get(host.name.as_str())) {
                // The host is behind a device of the machine.
                (Family::V4, None) => host.ip.map(IpAddr::V4),
                (Family::V6, None) => None,
                (Family::V4, Some(plan)) => plan.address.map(|(ip, _)| IpAddr::V4(ip)),
                (Family::V6, Some(plan)) if !plan.has_ipv6 => None,
                (Family::V6, Some(_)) => {
                    let ip = axon_fabric::ipv6::address(fabric, host)
                        .unwrap_or_else(|| nd::link_local(host.mac));
                    Some(IpAddr::V6(ip))
                }
            }
        };
        let given: Vec<Option<IpAddr>> = fabric.hosts.iter().map(given).collect();
        if fabric.network == Network::Program {
            return Ok(given);
        }
        let mut status = Vec::new();
        for name in plan.knowing() {
            let one = NodeStatus::ask(name, &self.state().socket(name), 0);
            if !plan.is_static && one.node().is_none() {
                bail!("{name} does not answer: see {}", self.state().log(name).display());
            }
            status.push(one);
        }
        let hosts = Directory::new(fabric, &status).known().to_vec();
        let known = |(host, given): (&Host, Option<IpAddr>)| {
            let entered = hosts.iter().filter(|entry| entry.mac == host.mac);
            let ips = entered.flat_map(|entry| entry.ips.iter().rev());
            let mut known = ips.copied().filter(|ip| family.has(*ip));
            known.next().or(given)
        };
        Ok(fabric.hosts.iter().zip(given).map(known).collect())
    }
}

/// Address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Returns the version number: 4 or 6.
    pub const fn number(self) -> u8 {
        match self {
            Family::V4 => 4,
            Family::V6 => 6,
        }
    }

    /// Returns whether an address belongs to this family and is not link-local.
    fn has(self, ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(_) => self == Family::V4,
            IpAddr::V6(ip) => self == Family::V6 && !ip.is_unicast_link_local(),
        }
    }
}
