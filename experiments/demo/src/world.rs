//! Environment of the demo: a lab that is up, with the addresses and processes of its hosts.

use super::capture::{self, Capture, Captured, Take};
use super::dhcp::{self, Client, Lease};
use super::fabric::{carrier, scenario};
use super::process::{Process, Stop};
use super::report::Leased;
use crate::table1::{AXON_OF_HOST, HOSTS};
use anyhow::{Context, Result, bail, ensure};
use axon_fabric::assemble::port_name;
use axon_fabric::model::Fabric;
use axon_lab::{Lab, StateDir, UpOptions};
use axon_linux::dataplane_choice::DataplaneChoice;
use axon_linux::machine::Machine;
use axon_linux::status::NodeStatus;
use axon_node::telemetry::NodeTelemetry;
use axon_wire::{MacAddr, PortNo};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time limit for switches to find the controller, in ms.
const UP_LIMIT_MS: u64 = 15_000;
/// Time limit for a DHCP client to get a lease.
const LEASE_LIMIT: Duration = Duration::from_secs(20);

/// Setup of a lab.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Name of the lab.
    pub name: &'a str,
    /// Fabric file: [`LINE`](super::fabric::LINE) or [`RING`](super::fabric::RING).
    pub topology: &'a str,
    /// Capabilities of this machine.
    pub machine: &'a Machine,
    /// True if the ports of all switches are captured.
    pub capture_switches: bool,
    /// True if Linux bridges take the place of switches. Hosts then have fixed addresses.
    pub bridges: bool,
}

/// Running lab. Dropping it ends the lab.
pub struct World<'a> {
    // Fields are dropped in order, so processes end before the lab does.
    clients: Vec<Process>,
    captures: Vec<Capture>,
    addresses: Vec<Ipv4Addr>,
    fabric: Fabric,
    folder: PathBuf,
    stop: &'a Stop,
    lab: Lab,
}

impl<'a> World<'a> {
    /// Starts a lab. A lab left by a killed demo is ended first. All files go to `folder`.
    ///
    /// # Errors
    /// The lab does not come up, or it is not that of the experiment, which has six hosts at three
    /// switches.
    pub fn up(setup: &Setup<'_>, folder: &Path, stop: &'a Stop) -> Result<World<'a>> {
        let Setup { name, topology, machine, capture_switches, bridges } = *setup;
        let folder = folder.join(name);
        fs::create_dir_all(&folder)?;
        let path = folder.join("fabric.yaml");
        fs::write(&path, scenario(topology, name, carrier(machine)))?;
        let fabric = axon_fabric::load(&path)?;
        let placed = fabric.hosts.iter().map(|host| host.switch);
        ensure!(placed.eq(AXON_OF_HOST), "{name} has not the hosts of the experiment");
        if StateDir::of(name)?.exists() {
            axon_lab::down(Some(name)).context("a demo that was killed has left a lab")?;
        }
        stop.check()?;
        let switches = fabric.switches.iter().map(|switch| switch.name.clone());
        let options = UpOptions {
            timeout_ms: UP_LIMIT_MS,
            capture: if capture_switches { switches.collect() } else { Vec::new() },
            // Every host runs a DHCP client, but no bridge would answer it.
            bare: !bridges,
            machine: Some(machine.clone()),
            bridges,
            ..UpOptions::default()
        };
        let addresses =
            if bridges { axon_fabric::addresses::of_hosts(&fabric) } else { Vec::new() };
        let (lab, report) = axon_lab::up(&path, &options, |_| {})?;
        let world = World {
            clients: Vec::new(),
            captures: Vec::new(),
            addresses: addresses.into_iter().flatten().collect(),
            fabric,
            folder,
            stop,
            lab,
        };
        stop.check()?;
        ensure!(report.missing.is_empty(), "no way to the controller from {:?}", report.missing);
        Ok(world)
    }

    /// Returns the fabric as loaded.
    pub(crate) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the user's stop request.
    pub(crate) fn stop(&self) -> &'a Stop {
        self.stop
    }

    /// Returns the folder for the files of this lab.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the address of host number `host`, counted from 1.
    pub(crate) fn address(&self, host: usize) -> Ipv4Addr {
        self.addresses[host - 1]
    }

    /// Returns the MAC address of the host with this name.
    pub(crate) fn mac(&self, host: &str) -> MacAddr {
        let named = self.fabric.hosts.iter().find(|one| one.name == host);
        named.map_or(MacAddr([0; 6]), |host| host.mac)
    }

    /// Starts a command on host number `host`. `name` names its output files.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(&self, host: usize, argv: &[String], name: &str) -> Result<Process> {
        self.start_on(&self.fabric.hosts[host - 1].name, argv, name)
    }

    /// Starts a command on the node with the name `node`. `name` names its output files.
    ///
    /// # Errors
    /// The command cannot be started.
    pub(crate) fn start_on(&self, node: &str, argv: &[String], name: &str) -> Result<Process> {
        let command = self.lab.command(node, argv)?;
        Process::start(command, &self.folder, &format!("{name}-{node}"))
    }

    /// Captures the ports of all hosts, from now until [`World::end_captures`].
    ///
    /// # Errors
    /// dumpcap does not start.
    pub(crate) fn start_captures(&mut self) -> Result<()> {
        for host in &self.fabric.hosts {
            let port = port_name(&host.name, PortNo(0));
            for take in Take::ALL {
                let file = self.folder.join(format!("{port}-{}.pcap", take.name()));
                let argv = capture::command(take, &port, &file);
                let command = self.lab.command(&host.name, &argv)?;
                self.captures.push(Capture::start(command, take, &host.name, file, &self.folder)?);
            }
        }
        self.captures.iter_mut().try_for_each(|capture| capture.wait_open(self.stop))
    }

    /// Ends all captures.
    ///
    /// # Errors
    /// A capture does not end properly.
    pub(crate) fn end_captures(&mut self) -> Result<Vec<Captured>> {
        self.captures.drain(..).map(Capture::end).collect()
    }

    /// Starts a DHCP client on each host, and waits until all hosts have an address.
    ///
    /// # Errors
    /// A client ends, a lease does not arrive in time or is not what the fabric file promises, or
    /// two hosts get the same address.
    pub(crate) fn get_addresses(&mut self) -> Result<Vec<Leased>> {
        dhcp::write_scripts(&self.folder)?;
        for host in 1..=HOSTS {
            let name = &self.fabric.hosts[host - 1].name;
            let client = Client::of_host(host);
            let argv = client.command(&self.folder, name, &port_name(name, PortNo(0)));
            let process = self.start(host, &argv, "dhcp")?;
            self.clients.push(process);
        }
        let end = Instant::now() + LEASE_LIMIT;
        let mut leases = Vec::new();
        for host in 1..=HOSTS {
            let name = self.fabric.hosts[host - 1].name.clone();
            let file = dhcp::lease_file(&self.folder, &port_name(&name, PortNo(0)));
            let client = &mut self.clients[host - 1];
            while !file.exists() {
                if !client.is_running() || Instant::now() > end {
                    bail!("{name} got no address: {}", client.complaint().trim());
                }
                self.stop.sleep(Duration::from_millis(20))?;
            }
            let lease = Lease::parse(&fs::read_to_string(file)?)
                .and_then(|lease| lease.check(&self.fabric.dhcp).map(|()| lease))
                .with_context(|| format!("the lease of {name}"))?;
            ensure!(
                !self.addresses.contains(&lease.address),
                "{name} was given {}, which another host has",
                lease.address
            );
            self.addresses.push(lease.address);
            leases.push(Leased { host: name, client: Client::of_host(host), lease });
        }
        Ok(leases)
    }

    /// Cuts the link between the first two switches, at the end of the first one. Returns the port.
    ///
    /// # Errors
    /// There is no such link, or the port cannot be set down.
    pub(crate) fn cut(&self) -> Result<String> {
        let link = self.fabric.links.iter().find_map(|link| match (link.a.switch, link.b.switch) {
            (0, 1) => Some(link.a),
            (1, 0) => Some(link.b),
            _ => None,
        });
        let end = link.context("no link between the first two switches")?;
        let port = port_name(&self.fabric.switches[end.switch].name, end.port);
        self.lab.set_port(&port, false)?;
        Ok(port)
    }

    /// Returns the data plane of each switch, with the reason, as the switches report it.
    ///
    /// # Errors
    /// A switch does not answer.
    pub(crate) fn dataplanes(&self) -> Result<Vec<(String, DataplaneChoice)>> {
        let status = self.lab.status()?;
        let of = |node: &NodeStatus| {
            let choice = node.status().and_then(|status| status.dataplane.clone());
            let choice = choice.with_context(|| format!("{} does not answer", node.name()))?;
            Ok((node.name().to_owned(), choice))
        };
        // The controller answers first.
        status.iter().skip(1).map(of).collect()
    }

    /// Returns the number of entries in each port's table, switch by switch, and whether the port
    /// is a host port.
    ///
    /// # Errors
    /// A switch does not answer.
    pub(crate) fn table_entries(&self) -> Result<Vec<Vec<(bool, u64)>>> {
        // The controller answers first.
        let status = self.lab.status()?;
        ensure!(status.len() == self.fabric.switches.len() + 1, "not all daemons answer");
        status.iter().skip(1).enumerate().map(|(index, of)| self.entries(index, of)).collect()
    }

    fn entries(&self, switch: usize, status: &NodeStatus) -> Result<Vec<(bool, u64)>> {
        let plane = status.node().and_then(NodeTelemetry::plane);
        let plane = plane.with_context(|| format!("{} does not answer", status.name()))?;
        let is_host = |port: usize| {
            self.fabric.hosts.iter().any(|host| host.switch == switch && host.port.index() == port)
        };
        let ports = plane.ports.iter().enumerate();
        Ok(ports.map(|(number, port)| (is_host(number), port.routes)).collect())
    }

    /// Ends the lab. Returns the captures from the switches, one file each, which are complete once
    /// the lab has ended.
    ///
    /// # Errors
    /// A capture is missing, or the lab does not end.
    pub(crate) fn down_with_switch_captures(self) -> Result<Vec<PathBuf>> {
        let names: Vec<String> =
            self.fabric.switches.iter().map(|switch| switch.name.clone()).collect();
        let state = self.lab.state().clone();
        let folder = self.folder.clone();
        // Open files remain readable after the lab's directory is gone.
        let files = names.iter().map(|name| {
            let path = state.capture(name);
            fs::File::open(&path).with_context(|| format!("no capture at {}", path.display()))
        });
        let files = files.collect::<Result<Vec<_>>>()?;
        drop(self);
        let copy = |(name, mut file): (&String, fs::File)| {
            let path = folder.join(format!("{name}.pcapng"));
            std::io::copy(&mut file, &mut fs::File::create(&path)?)?;
            Ok(path)
        };
        names.iter().zip(files).map(copy).collect()
    }
}

impl std::ops::Drop for World<'_> {
    fn drop(&mut self) {
        self.captures.clear();
        self.clients.clear();
        if let Err(error) = axon_lab::down(Some(self.lab.name())) {
            eprintln!("axon: cannot end lab {}: {error:#}", self.lab.name());
        }
    }
}
