//! Clients and servers of figure 10: requests with IDs, and replies.

use anyhow::{Result, ensure};
use axon_agents::node::{AgentPortConfig, PORT};
use axon_agents::packet::{Ends, Ipv4, udp};
use axon_agents::{Agent, AgentNode, InNetworkCache, InNetworkCacheConfig};
use axon_fabric::model::Fabric;
use axon_node::{Action, Input, Node, Shortcuts};
use axon_sim::World;
use axon_sim::agents::reports;
use axon_sim::station::StationNode;
use axon_wire::{FrameBuf, MacAddr, PortNo, Span, Time};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Length of a request and of a reply in bytes without FCS. The paper's requests have 128 bytes.
const REQUEST_BYTES: usize = 124;
const REPLY_BYTES: usize = 1514;
/// Length of the headers before an ID in bytes.
const HEADERS: usize = 42;
/// Requests per second on each link.
const RATE: u64 = 79_000;
/// Duration of the requests.
const RUN: Span = Span::from_millis(200);
const REQUESTS: u64 = RATE / 5;
/// Number of hot IDs, which are requested repeatedly; the first round precedes the measurement.
const HOT: u64 = 64;
/// UDP ports of the servers and of the clients.
const SERVER_PORT: u16 = 5000;
const CLIENT_PORT: u16 = 4000;
/// Number of links to each side.
const LINKS: usize = 2;

const FABRIC: &str = "name: cache\nprogram: bridge\nlinks: {rate: 1Gbps}\n\
    topology: {listed: {switches: [s1], hosts: {h1: s1, h2: s1, h3: s1, h4: s1}, links: []}}\n\
    agents: [{at: s1, cache: {bytes: 256MiB}, \
    select: [{protocol: udp, destination_port: 5000}, {protocol: udp, source_port: 5000}]}]\n";

/// Returns the `number`th ID of a client's requests, of which `share` per cent are hot.
fn id(client: u64, number: u64, share: u64) -> u64 {
    let hot = |count: u64| count * share / 100;
    if hot(number + 1) > hot(number) { number % HOT } else { (client + 1) << 32 | number }
}

fn request(ends: &Ends, id: u64) -> Vec<u8> {
    udp(ends, &[&id.to_be_bytes(), &[0; REQUEST_BYTES - HEADERS - 8]])
}

/// Returns a server's reply to an ID.
fn reply(ends: &Ends, id: u64) -> Vec<u8> {
    udp(ends, &[&id.to_be_bytes(), &[id as u8 ^ 0x5a; REPLY_BYTES - HEADERS - 8]])
}

/// Parses the ends and the ID of a datagram to this port.
fn parse(frame: &[u8], to: u16) -> Option<(Ends, u64)> {
    let ip = Ipv4::parse(frame)?;
    let ends = Ends::of(frame, &ip).filter(|ends| ends.ports.1 == to)?;
    let id = frame.get(HEADERS..)?.first_chunk()?;
    Some((ends, u64::from_be_bytes(*id)))
}

/// Replies received by a client.
#[derive(Debug, Default)]
struct Answers {
    asked: u64,
    answered: u64,
    bytes: u64,
}

/// Client that sends requests at a steady pace.
struct Client {
    number: u64,
    ends: Ends,
    share: u64,
    next: u64,
    next_at: Time,
    open: VecDeque<u64>,
    answers: Arc<Mutex<Answers>>,
}

impl Client {
    /// Returns the next ID: first every hot one.
    fn next_id(&self) -> Option<u64> {
        match self.next.checked_sub(HOT) {
            None => Some(self.next),
            Some(number) if number < REQUESTS => Some(id(self.number, number, self.share)),
            Some(_) => None,
        }
    }
}

impl Node for Client {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match input {
            Input::Frame { frame, .. } => {
                let reply_to = parse(frame.bytes(), CLIENT_PORT);
                let own = reply_to.filter(|(ends, _)| ends.macs.1 == self.ends.macs.0);
                let Some((ends, id)) = own else { return };
                // Replies may overtake each other: a hit is faster than a miss.
                let Some(at) = self.open.iter().position(|open| *open == id) else { return };
                if frame.bytes() == reply(&ends, id) {
                    self.open.remove(at);
                    let counts = u64::from(self.next > HOT);
                    answers.answered += counts;
                    answers.bytes += counts * frame.bytes().len() as u64;
                }
            }
            Input::Timeout if now >= self.next_at => {
                let Some(id) = self.next_id() else { return };
                answers.asked += u64::from(self.next >= HOT);
                self.next += 1;
                // A pause after the hot IDs, so that their replies arrive before the measurement.
                let pause = if self.next == HOT { Span::from_millis(1) } else { Span::ZERO };
                self.next_at = now + Span::from_nanos(1_000_000_000 / RATE) + pause;
                self.open.push_back(id);
                let (port, frame) = (PortNo(0), FrameBuf::new(&request(&self.ends, id)));
                out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.next_id().map(|_| self.next_at)
    }
}

impl Shortcuts for Client {}

/// Server that answers requests in order.
struct Server {
    mac: MacAddr,
    queue: VecDeque<Vec<u8>>,
    is_busy: bool,
    /// Bytes of replies to requests after the hot IDs.
    bytes: Arc<Mutex<u64>>,
    seen: u64,
}

impl Node for Server {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Frame { frame, .. } => {
                // A bridge floods frames to an address that it has not learned yet.
                let request = parse(frame.bytes(), SERVER_PORT);
                let own = request.filter(|(ends, _)| ends.macs.1 == self.mac);
                let Some((ends, id)) = own else { return };
                self.queue.push_back(reply(&ends.reversed(), id));
                self.seen += 1;
            }
            Input::TxDone { .. } => self.is_busy = false,
            _ => return,
        }
        if self.is_busy {
            return;
        }
        if let Some(reply) = self.queue.pop_front() {
            self.is_busy = true;
            if self.seen > HOT {
                *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) += reply.len() as u64;
            }
            let (port, frame) = (PortNo(0), FrameBuf::new(&reply));
            out.push(Action::Transmit { port, frame, complete_at: now, intact: true });
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl Shortcuts for Server {}

/// Results of a run, after every hot ID was requested once.
#[derive(Debug)]
pub struct Requests {
    /// Number of requests sent.
    pub asked: u64,
    /// Number of requests with a matching reply.
    pub answered: u64,
    /// Number of requests answered by the agent.
    pub hits: u64,
    /// Number of requests forwarded by the agent.
    pub misses: u64,
    /// Bytes of replies sent by the servers, on all links.
    pub server_bytes: u64,
    /// Bytes of replies received by the clients, on all links.
    pub client_bytes: u64,
}

impl Requests {
    /// Runs the requests, of which `share` per cent are repeated.
    ///
    /// # Errors
    /// The fabric cannot be built, or there is no agent.
    pub fn run(share: u64, seed: u64) -> Result<Requests> {
        let fabric = axon_fabric::parse("cache.yaml".as_ref(), FABRIC)?;
        let mut world = World::new(&fabric, seed);
        // A bridge forwards after a while.
        let start = Time::ZERO + Span::from_secs(6);
        let bytes = Arc::new(Mutex::new(0));
        let mut clients = Vec::new();
        for link in 0..LINKS {
            let server = Server {
                mac: world.fabric().hosts[LINKS + link].mac,
                queue: VecDeque::new(),
                is_busy: false,
                bytes: bytes.clone(),
                seen: 0,
            };
            let station = world.layout().host_station(LINKS + link);
            world.engine_mut().power_on(station, StationNode::Other(Box::new(server)));
            let answers = Arc::new(Mutex::new(Answers::default()));
            let ends = ends(world.fabric(), link);
            let client = Client {
                number: link as u64,
                ends,
                share,
                next: 0,
                next_at: start,
                open: VecDeque::new(),
                answers: answers.clone(),
            };
            let station = world.layout().host_station(link);
            world.engine_mut().power_on(station, StationNode::Other(Box::new(client)));
            clients.push(answers);
        }
        // Each client first requests every hot ID, from its own server.
        let interval = Span::from_nanos(1_000_000_000 / RATE);
        world.run_until(start + interval * HOT + Span::from_micros(900));
        let before = counts(&world)?;
        ensure!(before.1 == LINKS as u64 * HOT, "{} hot IDs were asked for", before.1);
        world.run_for(RUN + Span::from_millis(50));
        let after = counts(&world)?;
        let mut seen = Requests {
            asked: 0,
            answered: 0,
            hits: after.0 - before.0,
            misses: after.1 - before.1,
            server_bytes: *bytes.lock().unwrap_or_else(PoisonError::into_inner),
            client_bytes: 0,
        };
        for answers in &clients {
            let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            seen.asked += answers.asked;
            seen.answered += answers.answered;
            seen.client_bytes += answers.bytes;
        }
        Ok(seen)
    }

    /// Converts bytes of replies to Mb/s on each link.
    pub(crate) fn mbps(&self, bytes: u64) -> f64 {
        let seconds = RUN.ticks() as f64 / Span::from_secs(1).ticks() as f64;
        8.0 * bytes as f64 / LINKS as f64 / seconds / 1e6
    }
}

/// Returns the ends from the client of a link to its server.
fn ends(fabric: &Fabric, link: usize) -> Ends {
    let [client, server] = [link, LINKS + link].map(|host| &fabric.hosts[host]);
    let address = |host: &axon_fabric::model::Host| host.ip.unwrap_or([0, 0, 0, 0].into());
    Ends {
        macs: (client.mac, server.mac),
        addresses: (address(client), address(server)),
        ports: (CLIENT_PORT, SERVER_PORT),
    }
}

/// Returns hits and misses of the agent.
fn counts(world: &World) -> Result<(u64, u64)> {
    let reports = reports(world);
    let Some(report) = reports.first() else { anyhow::bail!("there is no agent") };
    let count = |name| report.counters.get(name).copied().unwrap_or(0);
    Ok((count("hits"), count("misses")))
}

/// CPU cost of the agent on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Nanoseconds per request, including its reply if it is a miss.
    pub nanos: f64,
}

/// Requests of a cost measurement.
const MEASURED: u64 = 20_000;

impl Load {
    /// Hands the agent requests, and the replies to those that it does not answer, in memory.
    ///
    /// # Errors
    /// The agent did not send exactly one packet for each.
    pub(crate) fn measure(share: u64) -> Result<Load> {
        let config = InNetworkCacheConfig::ID;
        let mut port = AgentPortConfig::default();
        port.cache.head_bytes = config.head_bytes();
        let mut node = AgentNode::new(port, Box::new(InNetworkCache::new(config)))?;
        let link = Input::Link { port: PORT, up: true };
        node.handle(Time::ZERO, link, &mut Vec::new());
        let fabric = axon_fabric::parse("cache.yaml".as_ref(), FABRIC)?;
        let mut fixed = fabric.clone();
        axon_fabric::program::fix_addresses(&mut fixed);
        let ends = ends(&fixed, 0);
        let back = ends.reversed();
        for id in 0..HOT {
            give(&mut node, &request(&ends, id))?;
            give(&mut node, &reply(&back, id))?;
        }
        let frames: Vec<_> = (0..MEASURED)
            .map(|number| id(0, number, share))
            .map(|id| (request(&ends, id), reply(&back, id), id < HOT))
            .collect();
        let started = Instant::now();
        for (request, reply, is_hot) in &frames {
            let bytes = give(&mut node, request)?;
            if !is_hot {
                give(&mut node, reply)?;
            }
            let expected = if *is_hot { REPLY_BYTES } else { REQUEST_BYTES };
            ensure!(bytes == expected, "{bytes} bytes where {expected} were expected");
        }
        let nanos = started.elapsed().as_nanos() as f64 / MEASURED as f64;
        let hits = node.agent().counters()["hits"];
        ensure!(hits == frames.iter().filter(|frame| frame.2).count() as u64, "{hits} hits");
        Ok(Load { nanos })
    }

    /// Returns the load of a core at the rate of all links, per cent.
    pub(crate) fn core_percent(&self) -> f64 {
        100.0 * self.nanos * (LINKS as u64 * RATE) as f64 / 1e9
    }
}

/// Hands the agent a frame; returns the bytes of the frame that it sends.
fn give(node: &mut AgentNode<InNetworkCache>, frame: &[u8]) -> Result<usize> {
    let (port, frame) = (PORT, FrameBuf::new(frame));
    let mut out = Vec::with_capacity(2);
    let input = Input::Frame { port, frame, complete_at: Time::ZERO, intact: true };
    node.handle(Time::ZERO, input, &mut out);
    let sent = out.iter().filter_map(|action| match action {
        Action::Transmit { frame, .. } => Some(frame.bytes().len()),
        _ => None,
    });
    let sent: Vec<usize> = sent.collect();
    node.handle(Time::ZERO, Input::TxDone { port }, &mut out);
    ensure!(sent.len() == 1, "{} frames were sent", sent.len());
    Ok(sent[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_hot_ids_is_what_was_asked_for_and_spread() {
        for share in [0, 1, 10, 33, 50, 99, 100] {
            let hot = (0..10_000).filter(|&number| id(0, number, share) < HOT).count() as u64;
            assert_eq!(hot, share * 100);
            let first = (0..1000).filter(|&number| id(0, number, share) < HOT).count() as u64;
            assert_eq!(first, share * 10, "evenly");
        }
    }

    #[test]
    fn what_the_cache_answers_the_servers_do_not_send() {
        for share in [0, 30, 100] {
            let seen = Requests::run(share, 1).unwrap();
            let asked = LINKS as u64 * REQUESTS;
            assert_eq!((seen.asked, seen.answered), (asked, asked), "{share} %");
            assert_eq!(
                (seen.hits, seen.misses),
                (asked * share / 100, asked * (100 - share) / 100)
            );
            assert_eq!(seen.server_bytes, seen.misses * REPLY_BYTES as u64);
            assert_eq!(seen.client_bytes, asked * REPLY_BYTES as u64);
            let load = Load::measure(share).unwrap();
            assert!(load.nanos > 0.0 && load.core_percent() > 0.0);
        }
    }
}
