//! Samples of ports over time: bytes sent and bytes queued.

use crate::engine::station::StationNode;
use crate::world::World;
use axon_fabric::assemble::port_name;
use axon_fabric::model::{Cable, Fabric};
use axon_node::Dataplane;
use axon_wire::{PortNo, Span, Time};
use std::collections::BTreeMap;

/// Maximum number of samples. Beyond it, every second one is discarded and the sampling interval is
/// doubled.
const SAMPLES_MAX: usize = 2_000;

/// Samples of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSamples {
    /// Port name, such as `s1-p0`.
    pub name: String,
    /// Highest rate of its link in the run, in bits per second; zero without a link.
    pub rate_bps: u64,
    /// Bytes of frames, without FCS, whose transmission had begun, over all incarnations of the
    /// switch since its first sample. Bytes sent between its last sample and a loss of power are
    /// missing. `None` without power.
    pub tx_bytes: Vec<Option<u64>>,
    /// Queued bytes; `None` without power.
    pub queued_bytes: Vec<Option<u64>>,
}

/// Samples of one flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowSamples {
    /// Highest total rate of the receiving hosts' links in the run, in bits per second; zero if
    /// nothing is received.
    pub rate_bps: u64,
    /// Received payload bytes; `None` before the flow began, and without power at one of its hosts.
    pub received_bytes: Vec<Option<u64>>,
}

/// Samples of all ports of switches, at equal intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    /// Times of the samples.
    pub times: Vec<Time>,
    /// Ports, switch by switch.
    pub ports: Vec<PortSamples>,
    /// Flows, in the order of the report.
    pub flows: Vec<FlowSamples>,
    interval: Span,
    due: Time,
    /// For each port, the bytes sent in past incarnations and in the current one.
    counted: Vec<Counted>,
}

/// Accumulator of a port counter that restarts with each incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    incarnation: u64,
    before: u64,
    now: u64,
}

impl Counted {
    /// Returns the sum over all incarnations. `counter` is `None` without power.
    fn add(&mut self, incarnation: u64, counter: Option<u64>) -> u64 {
        let counter = counter.unwrap_or(0);
        if incarnation != self.incarnation || counter < self.now {
            self.before += self.now;
        }
        self.incarnation = incarnation;
        self.now = counter;
        self.before + counter
    }
}

impl Samples {
    /// Takes the first sample, now.
    pub(crate) fn begin(world: &World, interval: Span) -> Samples {
        let mut ports = Vec::new();
        let rates = port_rates(world.fabric());
        for (number, switch) in world.fabric().switches.iter().enumerate() {
            for port in (0..switch.ports).map(PortNo) {
                let (tx_bytes, queued_bytes) = (Vec::new(), Vec::new());
                let rate_bps = rates.get(&(number, port)).copied().unwrap_or(0);
                let name = port_name(&switch.name, port);
                ports.push(PortSamples { name, rate_bps, tx_bytes, queued_bytes });
            }
        }
        let interval = interval.max(Span::from_nanos(1));
        let (times, flows, due) = (Vec::new(), Vec::new(), world.now());
        let counted = vec![Counted::default(); ports.len()];
        let mut samples = Samples { times, ports, flows, interval, due, counted };
        samples.take(world);
        samples
    }

    /// Returns when the next sample is due.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Takes a sample if it is due.
    pub(crate) fn take(&mut self, world: &World) {
        if world.now() < self.due {
            return;
        }
        self.due = world.now() + self.interval;
        self.times.push(world.now());
        let mut ports = self.ports.iter_mut().zip(&mut self.counted);
        for (number, switch) in world.fabric().switches.iter().enumerate() {
            let station = world.engine().station(number);
            let incarnation = station.map_or(0, |station| station.adapter().ledger().incarnations);
            let node = station.map(|station| &station.node);
            for (port, (samples, counted)) in (0..switch.ports).map(PortNo).zip(&mut ports) {
                let (sent, queued) = match node {
                    Some(StationNode::Switch(node)) => {
                        let plane = node.plane();
                        let queued = plane.queue(port).bytes.0;
                        (Some(plane.counters().port(port).tx_bytes), Some(queued))
                    }
                    Some(StationNode::Baseline(node)) => {
                        let ports = node.ports();
                        let queued = ports.queues().bytes(port).0;
                        (Some(ports.counters().port(port).tx_bytes), Some(queued))
                    }
                    _ => (None, None),
                };
                let sum = counted.add(incarnation, sent);
                samples.tx_bytes.push(sent.map(|_| sum));
                samples.queued_bytes.push(queued);
            }
        }
        for (index, (bytes, receivers)) in world.flows().received().enumerate() {
            if index == self.flows.len() {
                let rate_bps =
                    receivers.map(|host| highest(world.fabric(), Cable::Host(host))).sum();
                let received_bytes = vec![None; self.times.len() - 1];
                self.flows.push(FlowSamples { rate_bps, received_bytes });
            }
            self.flows[index].received_bytes.push(bytes);
        }
        if self.times.len() > SAMPLES_MAX {
            self.thin();
        }
    }

    fn thin(&mut self) {
        fn halve<T>(all: &mut Vec<T>) {
            let mut index = 0;
            all.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        halve(&mut self.times);
        self.flows.iter_mut().for_each(|flow| halve(&mut flow.received_bytes));
        for port in &mut self.ports {
            halve(&mut port.tx_bytes);
            halve(&mut port.queued_bytes);
        }
        self.interval = self.interval * 2;
    }
}

/// Returns the highest rate of the link of each port of a switch that has one.
fn port_rates(fabric: &Fabric) -> BTreeMap<(usize, PortNo), u64> {
    let mut rates = BTreeMap::new();
    for (index, link) in fabric.links.iter().enumerate() {
        let rate = highest(fabric, Cable::Link(index));
        rates.extend([link.a, link.b].map(|end| ((end.switch, end.port), rate)));
    }
    for (index, host) in fabric.hosts.iter().enumerate() {
        rates.insert((host.switch, host.port), highest(fabric, Cable::Host(index)));
    }
    let at = fabric.controller.at;
    rates.insert((at.switch, at.port), highest(fabric, Cable::Controller));
    rates
}

/// Returns the highest rate of a cable in the run, in bits per second.
fn highest(fabric: &Fabric, cable: Cable) -> u64 {
    let [_, highest] = fabric.rates(cable);
    highest.bits_per_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_goes_on_over_a_crash_and_a_restart() {
        let mut counted = Counted::default();
        let seen = [(1, Some(5)), (1, Some(9)), (1, None), (1, None), (2, Some(3)), (3, Some(7))];
        let sums = seen.map(|(incarnation, counter)| counted.add(incarnation, counter));
        assert_eq!(sums, [5, 9, 9, 9, 12, 19]);
    }
}
