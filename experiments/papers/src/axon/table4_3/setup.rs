//! Set-ups between the two ends of a line, with every call into a node timed.
//!
//! A simulated world boots the fabric until every host is known. Then its nodes are taken out and
//! joined by wires without length: a transmitted frame is the next node's input at once. One host
//! asks, the other answers, and the time of each node is charged to the current phase of the
//! set-up.

use crate::axon::line::Line;
use anyhow::{Context, Result, ensure};
use axon_fabric::model::Fabric;
use axon_node::{Action, Input, Node};
use axon_sim::station::StationNode;
use axon_sim::{SwitchPlane, World};
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::host_frame::{self, ArpOperation, Kind};
use axon_wire::{FrameBuf, MacAddr, PortNo, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Instant;

/// Phases of Axon-ARP.
pub(crate) const PHASES: usize = 4;
/// Steps of one set-up, each in one call: the switch sends its request, the controller decides, the
/// target switch requests its host, the target switch answers, the source switch answers.
const STEPS: usize = 5;

/// Median times of a set-up's phases.
#[derive(Clone, Debug)]
pub struct Phases {
    /// Median time by phase in us.
    pub us: [f64; PHASES],
    /// The controller's part of the first.
    pub controller_us: f64,
}

enum Station {
    Switch(Box<SwitchNode<SwitchPlane>>),
    Controller(Box<ControllerNode<SwitchPlane>>),
}

/// Nodes of a line, and their wiring.
pub struct Bench {
    fabric: Fabric,
    /// The switches in order, then the controller.
    stations: Vec<Station>,
    wires: BTreeMap<(usize, PortNo), (usize, PortNo)>,
    addresses: Vec<Ipv4Addr>,
    now: Time,
    out: Vec<Action>,
}

impl Bench {
    /// Builds a line of `switches` switches with `hosts` hosts at each, all known.
    ///
    /// # Errors
    /// The fabric cannot be built, or not every host gets its address.
    pub(crate) fn build(switches: usize, hosts: usize, seed: u64) -> Result<Bench> {
        let fabric = Line { switches, hosts_per_switch: hosts, ..Line::default() }.fabric()?;
        let mut world = World::new(&fabric, seed);
        let booted = world.run_until_true(Time::ZERO + Span::from_secs(30), |world| {
            let known =
                world.controller().map_or(0, |node| node.controller().hosts().iter().count());
            world.all_have_addresses() && known >= fabric.hosts.len()
        });
        ensure!(booted, "not every host has been heard of");
        world.run_for(Span::from_secs(1));
        let address = |host| world.address(host).context("every host has its address");
        let addresses = (0..fabric.hosts.len()).map(address).collect::<Result<_>>()?;
        let mut wires = BTreeMap::new();
        let mut join = |a: (usize, PortNo), b: (usize, PortNo)| {
            wires.insert(a, b);
            wires.insert(b, a);
        };
        for link in &fabric.links {
            join((link.a.switch, link.a.port), (link.b.switch, link.b.port));
        }
        let at = fabric.controller.at;
        join((fabric.switches.len(), PortNo(0)), (at.switch, at.port));
        let mut stations = Vec::new();
        for number in 0..=fabric.switches.len() {
            let station = world.engine_mut().station_mut(number);
            stations.push(match std::mem::replace(&mut station.node, StationNode::Off) {
                StationNode::Switch(node) => Station::Switch(node),
                StationNode::Controller(node) => Station::Controller(node),
                _ => anyhow::bail!("{} has no power", station.name()),
            });
        }
        let now = world.now();
        let mut bench = Bench { fabric, stations, wires, addresses, now, out: Vec::new() };
        bench.free_all_wires();
        Ok(bench)
    }

    /// Completes a transmission that the world may still have owed; its frames belong to no set-up.
    fn free_all_wires(&mut self) {
        let mut out = Vec::new();
        for station in 0..self.stations.len() {
            let switch = self.fabric.switches.get(station);
            for port in (0..switch.map_or(1, |switch| switch.ports)).map(PortNo) {
                self.call(station, Input::TxDone { port }, &mut out);
                while !out.is_empty() {
                    out.clear();
                    self.call(station, Input::TxDone { port }, &mut out);
                }
            }
        }
    }

    /// Measures set-ups between all pairs of a host at the first switch and one at the last.
    ///
    /// # Errors
    /// A set-up does not go through its five steps.
    pub(crate) fn measure(&mut self) -> Result<Phases> {
        let last = self.fabric.switches.len() - 1;
        let at = |switch: usize| -> Vec<usize> {
            let hosts = self.fabric.hosts.iter().enumerate();
            hosts.filter(|(_, host)| host.switch == switch).map(|(index, _)| index).collect()
        };
        let (sources, targets) = (at(0), at(last));
        let mut steps: [Vec<f64>; STEPS] = Default::default();
        for (round, &source) in sources.iter().enumerate() {
            for &target in &targets {
                let took = self.set_up(source, target)?;
                // The first host's set-ups warm up caches and tables.
                if round > 0 || sources.len() == 1 {
                    steps.iter_mut().zip(took).for_each(|(all, us)| all.push(us));
                }
            }
        }
        let [ask, decide, two, three, four] = steps.map(median);
        Ok(Phases { us: [ask + decide, two, three, four], controller_us: decide })
    }

    /// Runs one set-up; returns the time of each step in us.
    fn set_up(&mut self, source: usize, target: usize) -> Result<[f64; STEPS]> {
        let port_of = |host: usize| (self.fabric.hosts[host].switch, self.fabric.hosts[host].port);
        let (asks, answers) = (port_of(source), port_of(target));
        let mac = |host: usize| self.fabric.hosts[host].mac;
        let (source_mac, target_mac) = (mac(source), mac(target));
        let (source_ip, target_ip) = (self.addresses[source], self.addresses[target]);
        let request = host_frame::request(source_mac, source_ip, MacAddr::BROADCAST, target_ip);
        let mut took = [0.0; STEPS];
        let mut step = 0;
        // The controller's book-keeping may send more than the set-up's own messages.
        let mut ahead = VecDeque::from([(asks, FrameBuf::new(&request))]);
        self.now += Span::from_micros(10);
        while let Some((to, frame)) = ahead.pop_front() {
            let (us, sent) = self.hand(to, frame);
            let to_port = |port: (usize, PortNo)| sent.iter().any(|(from, _)| *from == port);
            let done = match step {
                0 => to == asks,
                1 => to.0 == self.stations.len() - 1,
                2 => to_port(answers),
                3 => to == answers,
                4 => to_port(asks),
                _ => false,
            };
            if done {
                took[step] = us;
                step += 1;
            }
            for (from, frame) in sent {
                if let Some(&next) = self.wires.get(&from) {
                    ahead.push_back((next, frame));
                } else if from == answers && asks_for(frame.bytes(), target_ip) {
                    let reply = host_frame::reply(target_mac, target_ip, source_mac, source_ip);
                    ahead.push_back((answers, FrameBuf::new(&reply)));
                }
            }
        }
        let hosts = (&self.fabric.hosts[source].name, &self.fabric.hosts[target].name);
        ensure!(step == STEPS, "the set-up {hosts:?} stopped after step {step} of {STEPS}");
        Ok(took)
    }

    /// Hands a frame to a node; returns the time, and the frames sent with their ports.
    #[expect(clippy::type_complexity)]
    fn hand(
        &mut self,
        (station, port): (usize, PortNo),
        frame: FrameBuf,
    ) -> (f64, Vec<((usize, PortNo), FrameBuf)>) {
        let now = self.now;
        let mut out = std::mem::take(&mut self.out);
        let input = Input::Frame { port, frame, complete_at: now, intact: true };
        let started = Instant::now();
        self.call(station, input, &mut out);
        let us = started.elapsed().as_secs_f64() * 1e6;
        let mut sent = Vec::new();
        // The wire is free again at once; that may let go more.
        while !out.is_empty() {
            for action in std::mem::take(&mut out) {
                if let Action::Transmit { port, frame, .. } = action {
                    sent.push(((station, port), frame));
                    self.call(station, Input::TxDone { port }, &mut out);
                }
            }
        }
        self.out = out;
        (us, sent)
    }

    fn call(&mut self, station: usize, input: Input, out: &mut Vec<Action>) {
        match &mut self.stations[station] {
            Station::Switch(node) => node.handle(self.now, input, out),
            Station::Controller(node) => node.handle(self.now, input, out),
        }
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns whether the frame is an ARP request for `ip`.
fn asks_for(frame: &[u8], ip: Ipv4Addr) -> bool {
    let Kind::Arp(arp) = host_frame::classify(frame) else { return false };
    arp.operation == ArpOperation::Request && arp.target_ip == ip
}
