//! Collective operations: hosts that send after they have received.
//!
//! Each host runs a list of steps. A step waits until certain peers have sent given numbers of
//! bytes, counted from the beginning, and then sends bytes to others. The end of the list completes
//! a round for this host; the next begins at once. Peers have one connection for each direction
//! used.
//!
//! Ring all-reduce of `S` bytes among `N` hosts: the data is cut into `N` parts. In each of `2 (N -
//! 1)` steps every host sends one part to its successor and waits for one from its predecessor.
//! Half of the steps sum up, half distribute the sums. Tree all-reduce: each host waits for its
//! children, sends its sum to its parent, waits for the parent's, and sends that to its children.

use super::tcp::TcpOptions;
use super::{App, AppId, FlowStats};
use crate::stack::Stack;
use crate::tcp::ConnectionId;
use axon_tcp::State;
use axon_wire::Time;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// One step of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Bytes that must have arrived in addition to those of earlier steps, by sender.
    pub wait: Vec<(Ipv4Addr, u64)>,
    /// Bytes to send afterwards, by receiver.
    pub send: Vec<(Ipv4Addr, u64)>,
}

/// Role of one host in a collective operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectivePlan {
    /// Port on which the host listens, as do peers not in `peer_ports`.
    pub port: u16,
    /// Ports of peers that listen on another one, as hosts may run several processes.
    pub peer_ports: BTreeMap<Ipv4Addr, u16>,
    /// TCP options of the connections.
    pub options: TcpOptions,
    /// Steps of a round.
    pub steps: Vec<Step>,
    /// Number of rounds.
    pub rounds: u64,
    /// Number of initial rounds that are neither timed nor counted. The first opens connections.
    pub unmeasured: u64,
}

impl CollectivePlan {
    /// Returns the steps of host `own` in a ring all-reduce among `ring`. Parts have `bytes / N`
    /// bytes; the first `bytes mod N` parts have one more.
    pub fn ring_steps(ring: &[Ipv4Addr], own: usize, bytes: u64) -> Vec<Step> {
        let count = ring.len();
        let part = |index: usize| {
            let (even, rest) = (bytes / count as u64, bytes % count as u64);
            even + u64::from(((index % count) as u64) < rest)
        };
        let (next, previous) = (ring[(own + 1) % count], ring[(own + count - 1) % count]);
        // In step k host i sends part i - k and receives part i - 1 - k.
        let number = |step: usize| own + 2 * count - step % count;
        let steps = 2 * (count - 1);
        let mut list: Vec<Step> = (0..=steps).map(|_| Step::default()).collect();
        for step in 0..steps {
            list[step].send.push((next, part(number(step))));
            list[step + 1].wait.push((previous, part(number(step) - 1)));
        }
        list
    }

    /// Returns the steps of host `own` in a tree all-reduce among `hosts`. The parent of host `i`
    /// is host `(i - 1) / 2`.
    pub fn tree_steps(hosts: &[Ipv4Addr], own: usize, bytes: u64) -> Vec<Step> {
        let children = [2 * own + 1, 2 * own + 2].into_iter().filter(|&child| child < hosts.len());
        let children: Vec<_> = children.map(|child| (hosts[child], bytes)).collect();
        if own == 0 {
            return vec![Step { wait: children.clone(), send: children }];
        }
        let parent = vec![(hosts[(own - 1) / 2], bytes)];
        vec![
            Step { wait: children.clone(), send: parent.clone() },
            Step { wait: parent, send: children },
        ]
    }
}

/// Connection to one peer.
#[derive(Debug, Default)]
struct Peer {
    connection: Option<ConnectionId>,
    /// True if there was a connection before.
    known: bool,
    owed: u64,
    /// True if a connection was aborted with data in flight, so that this round cannot end.
    lost: bool,
}

/// Running collective operation. A round's time runs from its first step until the last byte that
/// it waits for has arrived and its own are acknowledged.
pub(crate) struct Collective {
    id: AppId,
    plan: CollectivePlan,
    peers: BTreeMap<Ipv4Addr, Peer>,
    /// Bytes received and not yet consumed by a step, by sender.
    got: BTreeMap<Ipv4Addr, u64>,
    /// Index of the waiting step.
    step: usize,
    began: Option<Time>,
    /// Start time, until the operation has started.
    start: Option<Time>,
    stats: FlowStats,
}

impl Collective {
    pub(crate) fn new(id: AppId, plan: CollectivePlan, now: Time, stack: &mut Stack) -> Collective {
        stack.tcp.listen(plan.port, id, plan.options.config(stack.ip.mtu()));
        let targets = plan.steps.iter().flat_map(|step| &step.send).map(|(to, _)| *to);
        let peers: BTreeMap<_, _> = targets.map(|to| (to, Peer::default())).collect();
        Collective {
            id,
            plan,
            peers,
            got: BTreeMap::new(),
            step: 0,
            began: None,
            start: Some(now),
            stats: FlowStats::default(),
        }
    }

    /// Opens connections: each once, and another if it has closed and there is more to send.
    fn open(&mut self, now: Time, stack: &mut Stack) {
        let wants = |peer: &Peer| peer.connection.is_none() && (peer.owed > 0 || !peer.known);
        for (&to, peer) in self.peers.iter_mut().filter(|(_, peer)| wants(peer)) {
            let port = self.plan.peer_ports.get(&to).copied().unwrap_or(self.plan.port);
            let config = self.plan.options.config(stack.ip.mtu());
            let opened = stack.open_tcp(now, self.id, (to, port), config);
            peer.known |= opened.is_some();
            peer.connection = opened.map(|(connection, _)| connection);
        }
    }

    /// Reads the bytes that a peer has sent.
    fn read(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        let remote = stack.tcp.remote(id);
        let (Some(socket), Some((from, _))) = (stack.tcp.get(id), remote) else { return };
        let (bytes, _) = socket.skip(u64::MAX);
        if bytes > 0 {
            *self.got.entry(from).or_default() += bytes;
            self.stats.received.count(now, bytes as usize);
        }
        if socket.connection.state() == State::CloseWait {
            socket.connection.close();
        }
    }

    /// Executes the steps whose bytes have arrived.
    fn advance(&mut self, now: Time) -> bool {
        let mut more = false;
        while let Some(step) = self.plan.steps.get(self.step) {
            let here = |(from, bytes): &(Ipv4Addr, u64)| {
                self.got.get(from).copied().unwrap_or(0) >= *bytes
            };
            if !step.wait.iter().all(here) {
                break;
            }
            for (from, bytes) in &step.wait {
                if let Some(got) = self.got.get_mut(from) {
                    *got -= bytes;
                }
            }
            for (to, bytes) in &step.send {
                if let Some(peer) = self.peers.get_mut(to) {
                    peer.owed += bytes;
                }
            }
            self.began.get_or_insert(now);
            self.step += 1;
            more = true;
        }
        more
    }

    /// Sends pending bytes. Returns whether any were sent, and whether all are acknowledged.
    fn write(&mut self, now: Time, stack: &mut Stack) -> (bool, bool) {
        let (mut more, mut all) = (false, true);
        for peer in self.peers.values_mut() {
            let Some(id) = peer.connection else {
                all &= peer.owed == 0 && !peer.lost;
                continue;
            };
            let Some(socket) = stack.tcp.look(id) else { continue };
            let left = peer.owed > 0 || socket.connection.queued() > 0;
            if socket.connection.state() == State::Closed {
                // The connection was aborted: its data in flight is lost, and the round with it.
                peer.connection = None;
                peer.lost |= left;
                self.stats.failed += u64::from(left);
                (more, all) = (true, all && !peer.lost);
                continue;
            }
            all &= !left && !peer.lost;
            if peer.owed > 0
                && let Some(socket) = stack.tcp.get(id)
                && let wrote @ 1.. = socket.write(&[], peer.owed)
            {
                peer.owed -= wrote;
                self.stats.count_sent(now, wrote as usize);
                more = true;
            }
        }
        (more, all)
    }

    fn close(&mut self, stack: &mut Stack) {
        for id in self.peers.values_mut().filter_map(|peer| peer.connection.take()) {
            if let Some(socket) = stack.tcp.get(id) {
                socket.connection.close();
            }
        }
    }
}

impl App for Collective {
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        if self.stats.done.is_some() || self.start.is_some_and(|start| start > now) {
            return false;
        }
        self.start = None;
        self.open(now, stack);
        let stepped = self.advance(now);
        let (wrote, acknowledged) = self.write(now, stack);
        if self.step == self.plan.steps.len() && acknowledged {
            let began = self.began.take().unwrap_or(now);
            self.step = 0;
            if self.plan.unmeasured > 0 {
                self.plan.unmeasured -= 1;
                return true;
            }
            self.stats.times.add(now.since(began));
            self.stats.completed += 1;
            if self.stats.completed >= self.plan.rounds {
                self.stats.done = Some(now);
                self.close(stack);
            }
            return true;
        }
        stepped | wrote
    }

    fn connection(&mut self, now: Time, id: ConnectionId, stack: &mut Stack) {
        self.stats.retransmits += stack.tcp.new_retransmits(id);
        if !self.peers.values().any(|peer| peer.connection == Some(id)) {
            self.read(now, id, stack);
        }
        while self.poll(now, stack) {}
    }

    fn deadline(&self) -> Option<Time> {
        self.start
    }

    fn stop(&mut self, now: Time, stack: &mut Stack) {
        self.close(stack);
        stack.tcp.close_port(self.plan.port);
        self.stats.done.get_or_insert(now);
    }

    fn stats(&self) -> &FlowStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates the steps of all hosts. Returns the bytes sent by each if all complete.
    fn play(plans: &[(Ipv4Addr, Vec<Step>)]) -> Option<Vec<u64>> {
        let mut wires: BTreeMap<(Ipv4Addr, Ipv4Addr), u64> = BTreeMap::new();
        let (mut at, mut sent) = (vec![0; plans.len()], vec![0; plans.len()]);
        loop {
            let mut moved = false;
            for (host, (own, steps)) in plans.iter().enumerate() {
                let Some(step) = steps.get(at[host]) else { continue };
                let here = |(from, bytes): &(Ipv4Addr, u64)| {
                    wires.get(&(*from, *own)).copied().unwrap_or(0) >= *bytes
                };
                if !step.wait.iter().all(here) {
                    continue;
                }
                for (from, bytes) in &step.wait {
                    *wires.get_mut(&(*from, *own))? -= bytes;
                }
                for (to, bytes) in &step.send {
                    *wires.entry((*own, *to)).or_default() += bytes;
                    sent[host] += bytes;
                }
                at[host] += 1;
                moved = true;
            }
            if !moved {
                let ended = plans.iter().zip(&at).all(|((_, steps), &at)| at == steps.len());
                let empty = wires.values().all(|&bytes| bytes == 0);
                return (ended && empty).then_some(sent);
            }
        }
    }

    fn addresses(count: u8) -> Vec<Ipv4Addr> {
        (0..count).map(|host| Ipv4Addr::new(10, 0, 0, host + 1)).collect()
    }

    #[test]
    fn a_ring_moves_each_part_all_the_way_round_twice_but_for_a_step() {
        for count in 2..9 {
            let hosts = addresses(count);
            let plan = |own: usize| CollectivePlan::ring_steps(&hosts, own, 1003);
            let plans: Vec<_> = hosts.iter().copied().zip((0..hosts.len()).map(plan)).collect();
            let sent = play(&plans).unwrap_or_else(|| panic!("{count} hosts wait for ever"));
            let count = u64::from(count);
            assert_eq!(sent.iter().sum::<u64>(), 2 * (count - 1) * 1003, "{count} hosts");
        }
    }

    #[test]
    fn a_tree_carries_all_data_up_and_down_each_edge() {
        for count in 2..12 {
            let hosts = addresses(count);
            let plan = |own: usize| CollectivePlan::tree_steps(&hosts, own, 1000);
            let plans: Vec<_> = hosts.iter().copied().zip((0..hosts.len()).map(plan)).collect();
            let sent = play(&plans).unwrap_or_else(|| panic!("{count} hosts wait for ever"));
            assert_eq!(sent.iter().sum::<u64>(), 2 * (u64::from(count) - 1) * 1000);
        }
    }
}
