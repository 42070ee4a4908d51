//! Subject that is up: hosts at the ends of a line of switches, with commands that run on the
//! hosts.

pub mod chain;
pub mod fabric;
pub mod namespace;
pub mod ovs;
pub mod redirect;
pub mod shape;

use crate::cpu;
use crate::selection::Subject;
use crate::traffic::inside;
use anyhow::{Context, Result, bail};
use axon_demo::process::{Process, Stop};
use axon_wire::MacAddr;
use chain::{Chain, Kind};
use fabric::FabricLab;
use shape::Shape;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for a short command on a host.
const ANSWER: Duration = Duration::from_secs(15);
/// Interval between polls for a server.
const LOOK: Duration = Duration::from_millis(10);

/// Line that the subject consists of.
enum Line {
    Chain(Chain),
    Lab(FabricLab),
}

/// Subject that is up. Dropping it removes it.
pub struct World<'a> {
    line: Line,
    folder: PathBuf,
    stop: &'a Stop,
}

impl<'a> World<'a> {
    /// Builds a subject. Its files go to `folder`.
    ///
    /// # Errors
    /// This machine lacks a required feature, or the subject does not come up.
    pub fn up(subject: Subject, shape: &Shape, folder: &Path, stop: &'a Stop) -> Result<World<'a>> {
        let chain = |kind| Chain::up(kind, shape, folder, stop).map(Line::Chain);
        let line = match subject {
            Subject::Bridges => chain(Kind::Bridge)?,
            Subject::Redirect => chain(Kind::Redirect)?,
            Subject::Ovs => chain(Kind::OpenVswitch)?,
            Subject::Full | Subject::Tc | Subject::Xdp | Subject::Program => {
                Line::Lab(FabricLab::up(subject.name(), shape, folder, stop)?)
            }
        };
        std::fs::create_dir_all(folder)?;
        let world = World { line, folder: folder.to_owned(), stop };
        // Subjects that learn addresses or routes learn them now.
        for from in 0..shape.hosts.len() - 1 {
            world.reach(from, shape.hosts.len() - 1)?;
        }
        Ok(world)
    }

    /// Returns the user's stop request.
    pub(crate) fn stop(&self) -> &'a Stop {
        self.stop
    }

    /// Returns the MAC address of a host, given its number from 0.
    pub(crate) fn mac(&self, host: usize) -> MacAddr {
        match &self.line {
            Line::Chain(_) => chain::host_mac(host),
            Line::Lab(lab) => lab.host(host).0,
        }
    }

    /// Returns the IPv4 address of a host.
    pub(crate) fn address(&self, host: usize) -> Ipv4Addr {
        match &self.line {
            Line::Chain(_) => chain::host_address(host),
            Line::Lab(lab) => lab.host(host).1,
        }
    }

    /// Returns the IPv6 address that a host has after [`World::add_ipv6`].
    pub(crate) fn ipv6(&self, host: usize) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host as u16 + 1)
    }

    /// Returns the device of a host.
    pub(crate) fn device(&self, host: usize) -> String {
        chain::host_device(host)
    }

    /// Starts a command on a host. `name` names its output files.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(&self, host: usize, argv: &[String], name: &str) -> Result<Process> {
        match &self.line {
            Line::Chain(chain) => chain.host(host).within(|| {
                Process::start(inside::command(argv)?, &self.folder, &format!("{name}-{host}"))
            }),
            Line::Lab(lab) => {
                let command = lab.lab().command(&format!("h{}", host + 1), argv)?;
                Process::start(command, &self.folder, &format!("{name}-{host}"))
            }
        }
    }

    /// Starts a subcommand of this program on a host, such as `packets-receive 9`.
    ///
    /// # Errors
    /// The command cannot be started.
    pub(crate) fn start_own(&self, host: usize, words: &str, name: &str) -> Result<Process> {
        self.start(host, &inside::own(words)?, name)
    }

    /// Runs a short command on a host and returns its output.
    ///
    /// # Errors
    /// The command fails.
    pub fn run(&self, host: usize, command: &str, name: &str) -> Result<String> {
        let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
        self.start(host, &argv, name)?.succeed(ANSWER, self.stop)
    }

    /// Waits until a host listens on this port. `kind` is `t` for TCP, or `u` for UDP.
    ///
    /// # Errors
    /// No process listens on the port in time.
    pub(crate) fn wait_listening(&self, host: usize, kind: char, port: u16) -> Result<()> {
        let end = format!(":{port}");
        for _ in 0..ANSWER.as_millis() / LOOK.as_millis() / 10 {
            let sockets = self.run(host, &format!("ss -H -l -n -{kind}"), "ss")?;
            if sockets.split_whitespace().any(|word| word.ends_with(&end)) {
                return Ok(());
            }
            self.stop.sleep(LOOK)?;
        }
        bail!("nothing listens on port {port} of host {}", host + 1)
    }

    /// Waits until one host reaches another, so that both addresses are learned.
    fn reach(&self, from: usize, to: usize) -> Result<()> {
        let address = self.address(to);
        for _ in 0..40 {
            self.stop.check()?;
            let words = format!("ping -n -c 1 -W 1 {address}");
            let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let ping = self.start(from, &argv, "reach")?;
            if ping.finish(ANSWER, self.stop)?.0.success() {
                return Ok(());
            }
        }
        bail!("host {} does not reach host {}", from + 1, to + 1)
    }

    /// Assigns IPv6 addresses and static neighbours to two hosts, so that only TCP uses the links.
    ///
    /// # Errors
    /// A host refuses an address or a neighbour.
    pub(crate) fn add_ipv6(&self, hosts: [usize; 2]) -> Result<()> {
        for (host, other) in [(hosts[0], hosts[1]), (hosts[1], hosts[0])] {
            let device = self.device(host);
            let script = format!(
                "echo 0 > /proc/sys/net/ipv6/conf/{device}/disable_ipv6 && \
                 ip -6 address replace {}/64 dev {device} nodad && \
                 ip -6 neighbour replace {} lladdr {} dev {device} nud permanent",
                self.ipv6(host),
                self.ipv6(other),
                self.mac(other)
            );
            let argv = ["sh".to_owned(), "-c".to_owned(), script];
            let process = self.start(host, &argv, "ipv6")?;
            process.succeed(ANSWER, self.stop).context("cannot give a host an IPv6 address")?;
        }
        Ok(())
    }

    /// Returns the processes that carry frames, with their descendants.
    pub(crate) fn switch_processes(&self) -> Vec<u32> {
        match &self.line {
            Line::Chain(chain) => chain.processes(),
            Line::Lab(lab) => cpu::descendants(lab.supervisor()),
        }
    }
}
