//! Start of a fabric's traffic.
//!
//! Each entry has a port of its own, so that data received by one entry's flows is never counted
//! for another's. First every server and sink listens, then every source and client gets its plan
//! and its start time.

use crate::world::builder::Builder;
use crate::world::bursts::bursts;
use crate::world::nodes::Nodes;
use crate::world::running::{Name, Running, Work, port_of};
use axon_fabric::capture::CapturedFrame;
use axon_fabric::model::{Fabric, Network, Traffic};
use axon_fabric::traffic::{self, App, FileService, Reduction, Rewrite, Tcp};
use axon_simhost::apps::{
    self, AppId, ArpPlan, CollectivePlan, Congestion, FilePlan, Likenesses, OnOffPlan, Plan,
    Protocol, ReplayPlan, RequestPlan, RespondPlan, TcpOptions, TcpPlan, Transport, UdpPlan,
};
use axon_simhost::arp_host::AskPlan;
use axon_simhost::dcb_nic::DcbNic;
use axon_simhost::ping::PingPlan;
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::priority::Priority;
use axon_wire::{MacAddr, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Retry timeout of a request over UDP.
const TIMEOUT: Span = Span::from_millis(10);
/// Size of an incast's requests, in bytes.
const INCAST_REQUEST: u32 = 64;

/// Entry that is being started.
struct Starting<'a> {
    number: usize,
    entry: &'a Traffic,
    port: u16,
    start: Time,
    stop: Option<Time>,
}

/// Starter of a fabric's traffic.
struct Starter<'a> {
    fabric: &'a Fabric,
    nodes: &'a mut Nodes,
    builder: &'a Builder,
    /// Flows started so far.
    running: Vec<Running>,
}

/// Starts the fabric's traffic. Start and stop times of its entries count from now. Call it when
/// every host has its address; a flow between hosts without one is not started. Returns all flows.
pub(crate) fn start(fabric: &Fabric, nodes: &mut Nodes, builder: &Builder) -> Vec<Running> {
    let now = nodes.engine().now();
    let mut starter = Starter { fabric, nodes, builder, running: Vec::new() };
    for (number, entry) in fabric.traffic.iter().enumerate() {
        starter.start(&Starting {
            number,
            entry,
            port: port_of(number),
            start: now + entry.start,
            stop: entry.stop.map(|stop| now + stop),
        });
    }
    starter.running
}

impl Starter<'_> {
    fn start(&mut self, starting: &Starting<'_>) {
        let entry = starting.entry;
        self.set_priorities(entry, starting.port);
        match &entry.app {
            App::Udp { .. } | App::Tcp { .. } | App::OnOff { .. } | App::Replay { .. } => {
                self.start_flows(starting);
            }
            App::RequestResponse { .. } | App::FileService(_) => self.start_clients(starting),
            App::Incast { .. } => self.start_incast(starting),
            App::AllReduce { .. } => self.start_all_reduce(starting),
            App::Arp { interval } => self.start_questions(starting, *interval),
            App::Ping { interval, count } => self.start_pings(starting, *interval, *count),
        }
    }

    /// Sets the priority of an entry's frames in both directions: those of its port, or the echoes
    /// between its hosts.
    fn set_priorities(&mut self, entry: &Traffic, port: u16) {
        if entry.priority == Priority::ZERO {
            return;
        }
        if let App::Ping { .. } = entry.app {
            for (from, to) in entry.flows.iter().flat_map(|&(a, b)| [(a, b), (b, a)]) {
                if let Some(target) = self.nodes.address(to) {
                    self.with_nic(from, |nic| nic.set_echo_priority(target, entry.priority));
                }
            }
            return;
        }
        for &host in &entry.hosts {
            self.with_nic(host, |nic| nic.set_priority(port, entry.priority));
        }
    }

    /// Configures the NIC of a host with priorities.
    fn with_nic(&mut self, host: usize, work: impl FnOnce(&mut DcbNic)) {
        self.nodes.with_host(host, |host, _| host.dcb_nic_mut().map(work));
    }

    fn run(
        &mut self,
        starting: &Starting<'_>,
        ends: (Name, Name),
        (host, app): (usize, Option<AppId>),
        sinks: Vec<(usize, AppId)>,
    ) {
        if let (Some(app), Some(stop)) = (app, starting.stop) {
            self.nodes.with_host(host, |host, _| host.stop_at(app, stop));
        }
        let work = app.map_or(Work::None, |app| Work::App(host, app));
        self.push(starting, ends, work, sinks);
    }

    fn push(
        &mut self,
        starting: &Starting<'_>,
        (from, to): (Name, Name),
        work: Work,
        sinks: Vec<(usize, AppId)>,
    ) {
        self.running.push(Running { entry: starting.number, from, to, work, sinks });
    }

    /// Returns the seed of a flow.
    fn flow_seed(&self, starting: &Starting<'_>, host: usize, flow: usize) -> u64 {
        let stream = (starting.number as u128) << 64 | flow as u128;
        let seed = self.builder.seed(self.nodes, self.nodes.layout().host_station(host));
        oorandom::Rand64::new_inc(u128::from(seed), stream).rand_u64()
    }

    /// Starts sources, and a sink at each receiving host.
    fn start_flows(&mut self, starting: &Starting<'_>) {
        let Starting { entry, port, .. } = *starting;
        let mut sinks: BTreeMap<usize, AppId> = BTreeMap::new();
        for &(_, to) in &entry.flows {
            if sinks.contains_key(&to) {
                continue;
            }
            let sink = match &entry.app {
                App::Tcp { tcp, .. } => self.nodes.with_host(to, |host, now| {
                    host.start(Plan::TcpSink { port, options: options(tcp) }, now)
                }),
                App::Replay { .. } => None,
                _ => self.nodes.with_host(to, |host, now| host.start(Plan::UdpSink { port }, now)),
            };
            sinks.extend(sink.map(|sink| (to, sink)));
        }
        let replayed = match &entry.app {
            App::Replay { frames, rewrite, .. } => {
                Some((Likenesses::of(frames, self.fabric.mtu), frames, *rewrite))
            }
            _ => None,
        };
        for (number, &(from, to)) in entry.flows.iter().enumerate() {
            let sinks = match &replayed {
                Some((likenesses, frames, rewrite)) => {
                    self.count_replay((from, to), likenesses, addressed(frames, *rewrite))
                }
                None => sinks.get(&to).map(|&sink| (to, sink)).into_iter().collect(),
            };
            let app = self.nodes.address(to).and_then(|target| {
                let seed = self.flow_seed(starting, from, number);
                self.start_source(starting, (from, target), seed)
            });
            self.run(starting, (Name::Host(from), Name::Host(to)), (from, app), sinks);
        }
    }

    /// Lets the hosts count received frames of a replay. A replay that replaces MACs goes to its
    /// target alone. Otherwise `addressed` are the destinations in the capture: each host counts
    /// frames for itself, and the target those for none of the hosts.
    fn count_replay(
        &mut self,
        (from, to): (usize, usize),
        frames: &Likenesses,
        addressed: Option<BTreeSet<MacAddr>>,
    ) -> Vec<(usize, AppId)> {
        let hosts = &self.fabric.hosts;
        // PortLand also replaces the sender's MAC.
        let known = addressed.is_none() && self.fabric.network != Network::PortLand;
        let sender = known.then(|| hosts[from].mac);
        let mut places = BTreeMap::from([(to, BTreeSet::from([hosts[to].mac]))]);
        if let Some(mut strangers) = addressed {
            for (host, mac) in hosts.iter().enumerate().map(|(host, at)| (host, at.mac)) {
                if strangers.remove(&mac) {
                    places.insert(host, BTreeSet::from([mac]));
                }
            }
            places.entry(to).or_default().extend(strangers);
        }
        let sinks = places.into_iter().filter_map(|(host, macs)| {
            let sink = Plan::ReplaySink { frames: frames.clone(), from: sender, to: macs };
            let sink = self.nodes.with_host(host, |host, now| host.start(sink, now))?;
            Some((host, sink))
        });
        sinks.collect()
    }

    fn start_source(
        &mut self,
        starting: &Starting<'_>,
        (from, target): (usize, Ipv4Addr),
        seed: u64,
    ) -> Option<AppId> {
        let Starting { port, start, .. } = *starting;
        self.nodes.with_host(from, |host, _| match starting.entry.app.clone() {
            App::Udp { payload, interval, count } => {
                let (payload, count) = (payload as usize, count.unwrap_or(u64::MAX));
                host.start(Plan::Udp(UdpPlan { target, port, payload, interval, count }), start)
            }
            App::Tcp { bytes, tcp } => {
                let (bytes, options) = (bytes.map(|bytes| bytes.0), options(&tcp));
                host.start(Plan::Tcp(TcpPlan { target, port, bytes, options }), start)
            }
            App::OnOff { payload, interval, on, off } => {
                let (payload, bursts) = (payload as usize, Box::new(bursts(on, off, seed)));
                host.start(
                    Plan::OnOff(OnOffPlan { target, port, payload, interval, bursts }),
                    start,
                )
            }
            App::Replay { frames, rewrite, .. } => {
                let rewrite = match rewrite {
                    Rewrite::Macs => apps::Rewrite::Macs,
                    Rewrite::Addresses => apps::Rewrite::Addresses,
                    Rewrite::Nothing => apps::Rewrite::Nothing,
                };
                host.start(Plan::Replay(ReplayPlan { target, frames, rewrite }), start)
            }
            other => unreachable!("{} is no source", other.name()),
        })
    }

    /// Starts clients, and a server at each answering host.
    fn start_clients(&mut self, starting: &Starting<'_>) {
        let Starting { entry, port, start, .. } = *starting;
        let plan = match &entry.app {
            App::RequestResponse { transport, request, response, service, .. } => {
                let (request, response) = (*request, *response);
                let protocol = Protocol::Fixed { request, response };
                server(port, *transport, protocol, *service)
            }
            App::FileService(files) => server(port, files.transport, Protocol::Files, files.server),
            _ => return,
        };
        let mut servers: Vec<usize> = entry.flows.iter().map(|flow| flow.1).collect();
        servers.sort_unstable();
        servers.dedup();
        for server in servers {
            self.nodes.with_host(server, |host, now| host.start(Plan::Respond(plan), now));
        }
        for (number, &(from, to)) in entry.flows.iter().enumerate() {
            let seed = self.flow_seed(starting, from, number);
            let app = self.nodes.address(to).and_then(|target| {
                self.nodes.with_host(from, |host, _| match &entry.app {
                    App::FileService(files) => {
                        host.start(Plan::Files(file_plan(files, (target, port), seed)), start)
                    }
                    app => host.start(Plan::Request(request_plan(app, vec![target], port)), start),
                })
            });
            self.run(starting, (Name::Host(from), Name::Host(to)), (from, app), Vec::new());
        }
    }

    /// Starts one client that sends requests to all others.
    fn start_incast(&mut self, starting: &Starting<'_>) {
        let Starting { entry, port, start, .. } = *starting;
        let App::Incast { transport, bytes, .. } = entry.app else { return };
        let Some(&(_, client)) = entry.flows.first() else { return };
        let protocol = Protocol::Fixed { request: INCAST_REQUEST, response: bytes };
        for &(from, _) in &entry.flows {
            self.nodes.with_host(from, |host, now| {
                host.start(Plan::Respond(server(port, transport, protocol, Span::ZERO)), now)
            });
        }
        let targets: Option<Vec<Ipv4Addr>> =
            entry.flows.iter().map(|&(from, _)| self.nodes.address(from)).collect();
        let app = targets.and_then(|targets| {
            let plan = request_plan(&entry.app, targets, port);
            self.nodes.with_host(client, |host, _| host.start(Plan::Request(plan), start))
        });
        self.run(starting, (Name::Several, Name::Host(client)), (client, app), Vec::new());
    }

    fn start_all_reduce(&mut self, starting: &Starting<'_>) {
        let Starting { entry, port, start, .. } = *starting;
        let App::AllReduce { reduction, bytes, rounds, tcp } = &entry.app else { return };
        let addresses: Option<Vec<Ipv4Addr>> =
            entry.hosts.iter().map(|&host| self.nodes.address(host)).collect();
        for (own, &host) in entry.hosts.iter().enumerate() {
            let app = addresses.as_ref().and_then(|addresses| {
                let steps = match reduction {
                    Reduction::Ring => CollectivePlan::ring_steps(addresses, own, bytes.0),
                    Reduction::Tree => CollectivePlan::tree_steps(addresses, own, bytes.0),
                };
                let plan = CollectivePlan {
                    port,
                    peer_ports: BTreeMap::new(),
                    options: options(tcp),
                    steps,
                    rounds: *rounds,
                    unmeasured: 0,
                };
                self.nodes.with_host(host, |host, _| host.start(Plan::Collective(plan), start))
            });
            self.run(starting, (Name::Host(host), Name::Several), (host, app), Vec::new());
        }
    }

    fn start_questions(&mut self, starting: &Starting<'_>, interval: Span) {
        let mut targets: BTreeMap<usize, Vec<Ipv4Addr>> = BTreeMap::new();
        for &(from, to) in &starting.entry.flows {
            targets.entry(from).or_default().extend(self.nodes.address(to));
        }
        for (from, targets) in targets {
            let ends = (Name::Host(from), Name::Several);
            if self.nodes.arp_host(from).is_some() {
                self.nodes.ask(from, AskPlan { targets, first_at: starting.start, interval });
                self.push(starting, ends, Work::ArpHost(from), Vec::new());
                continue;
            }
            let plan = ArpPlan { targets, interval };
            let app =
                self.nodes.with_host(from, |host, _| host.start(Plan::Arp(plan), starting.start));
            self.run(starting, ends, (from, app), Vec::new());
        }
    }

    fn start_pings(&mut self, starting: &Starting<'_>, interval: Span, count: u16) {
        let until = starting.stop.map(|stop| stop.since(starting.start));
        let most = until.map(|span| span.ticks().div_ceil(interval.ticks().max(1)));
        let count = most.map_or(count, |most| most.min(u64::from(count)) as u16);
        for &(from, to) in &starting.entry.flows {
            let id = self.nodes.address(to).and_then(|target| {
                let plan = PingPlan::steady(target, interval, count);
                self.nodes.ping(from, PingPlan { start: starting.start, ..plan })
            });
            let work = id.map_or(Work::None, Work::Ping);
            self.push(starting, (Name::Host(from), Name::Host(to)), work, Vec::new());
        }
    }
}

/// Returns the reason if the application is a replay none of whose frames can be sent.
pub(crate) fn unsendable(app: &App, mtu: u16) -> Option<String> {
    let App::Replay { frames, .. } = app else { return None };
    let none = frames.iter().all(|frame| apps::sent_bytes(frame, mtu).is_none());
    let most = ETHERNET_BYTES + usize::from(mtu);
    none.then(|| {
        format!(
            "none of the capture's frames ({} in all) has {ETHERNET_BYTES} to {most} bytes, as \
             the hosts' mtu of {mtu} allows",
            frames.len()
        )
    })
}

/// Returns the destinations of a capture's frames, if the rewrite keeps them.
fn addressed(frames: &[CapturedFrame], rewrite: Rewrite) -> Option<BTreeSet<MacAddr>> {
    let mac = |frame: &CapturedFrame| frame.bytes.first_chunk().map(|mac| MacAddr(*mac));
    (rewrite == Rewrite::Nothing).then(|| frames.iter().filter_map(mac).collect())
}

fn options(tcp: &Tcp) -> TcpOptions {
    TcpOptions {
        congestion: match tcp.congestion {
            traffic::Congestion::Reno => Congestion::Reno,
            traffic::Congestion::Cubic => Congestion::Cubic,
            traffic::Congestion::Dctcp => Congestion::Dctcp,
            traffic::Congestion::None => Congestion::None,
        },
        buffer_bytes: tcp.buffer.0 as usize,
        ..TcpOptions::default()
    }
}

fn transport(transport: traffic::Transport) -> Transport {
    match transport {
        traffic::Transport::Tcp(tcp) => Transport::Tcp(options(&tcp)),
        traffic::Transport::Udp => Transport::Udp,
    }
}

fn server(port: u16, how: traffic::Transport, protocol: Protocol, service: Span) -> RespondPlan {
    let options = match how {
        traffic::Transport::Tcp(tcp) => options(&tcp),
        traffic::Transport::Udp => TcpOptions::default(),
    };
    RespondPlan { port, options, protocol, service }
}

/// Returns the requests of request/response and of incast.
fn request_plan(app: &App, targets: Vec<Ipv4Addr>, port: u16) -> RequestPlan {
    let (how, request, response, think, count) = match *app {
        App::RequestResponse { transport, request, response, think, count, .. } => {
            (transport, request, response, think, count)
        }
        App::Incast { transport, bytes, think, rounds } => {
            (transport, INCAST_REQUEST, bytes, think, rounds)
        }
        ref other => unreachable!("{} asks nobody", other.name()),
    };
    let transport = transport(how);
    RequestPlan { targets, port, transport, request, response, think, count, timeout: TIMEOUT }
}

fn file_plan(files: &FileService, (target, port): (Ipv4Addr, u16), seed: u64) -> FilePlan {
    let bytes = |bytes: axon_wire::Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
    FilePlan {
        target,
        port,
        transport: transport(files.transport),
        timeout: TIMEOUT,
        files: files.files,
        transactions: files.transactions,
        size_min: bytes(files.size_min),
        size_max: bytes(files.size_max),
        block: bytes(files.block),
        read_bias: files.read_bias,
        create_bias: files.create_bias,
        client: files.client,
        seed,
    }
}
