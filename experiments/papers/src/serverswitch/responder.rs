//! Bottleneck with a congestion point in software: a programmable switch mirrors the frames that
//! the source marks to its CPU port, where an agent reads the queue and answers (004 §5.2, figure
//! 7).

use super::bottleneck::{Bottleneck, PORTS, SINK, SOURCE, SWITCH, Source, buffers};
use super::marks::{MARK_AT, Marks};
use super::seen::Seen;
use anyhow::Result;
use axon_agents::{CongestionResponder, CpuPort, ResponderConfig};
use axon_node::{Action, Awaited, Input, Node, Shortcuts};
use axon_pipeline::{
    Action as Entry, Change, Field, MacKey, Mirror, PipelineConfig, ProgramNode, Target, TcamEntry,
    Udlk, UdlkId,
};
use axon_plane::notification::cpid;
use axon_plane::qcn::{CpConfig, RateLimiter, RpConfig};
use axon_wire::{Bytes, Priority, Rate, Span, Time, TrafficClass};
use std::sync::{Arc, Mutex, PoisonError};

/// Delay from the arrival of a marked frame to the CNM: the paper's (004 §6.3).
pub(crate) const DELAY: Span = Span::from_micros(23);
const MARKED: UdlkId = UdlkId(0);

impl Bottleneck {
    /// Creates a [`Bottleneck`] with the congestion point in software, which answers after
    /// [`DELAY`]; see [`Bottleneck::new`].
    ///
    /// # Errors
    /// A value of `rp` is out of range.
    pub(crate) fn with_responder(
        rp: RpConfig,
        (set_point, pool): (Bytes, Bytes),
        seed: u64,
    ) -> Result<Bottleneck> {
        let (mut world, seen) = Bottleneck::wired(rp.max_rate, seed);
        let point = CpConfig { set_point, ..CpConfig::default() };
        let node = switch(point, rp.max_rate, pool)?;
        let switch = Switch { node, last: Time::ZERO, seen: seen.clone() };
        let mut source = Source::new(RateLimiter::new(rp, Bytes(0), seed)?);
        source.marks = Some(Marks::new(point, seed, seen));
        world.start(Box::new(switch), Box::new(source));
        Ok(world)
    }
}

fn switch(point: CpConfig, rate: Rate, pool: Bytes) -> Result<ProgramNode> {
    let agent = CongestionResponder::new(ResponderConfig {
        mac: SWITCH,
        egress: PORTS[1],
        point,
        cnm_priority: Priority::from_low_bits(6),
        cpid: cpid(SWITCH, PORTS[1], TrafficClass::ALL[0]),
    })?;
    let ends = [(SOURCE, PORTS[0]), (SINK, PORTS[1])];
    let macs = ends
        .map(|(mac, port)| Change::Mac(MacKey { bridge: 0, mac }, Some(Target::Port(port).into())));
    let at = MARK_AT as u8;
    let key = Udlk::new([Field::Bytes { first: at, last: at }]);
    let action = Entry::from(Target::Tables).mirrored(Mirror::Cpu);
    let marked = TcamEntry { udlk: MARKED, value: vec![1], mask: vec![0xff], action };
    let mut entries = macs.to_vec();
    entries.extend([Change::Udlk(MARKED, Some(key)), Change::Tcam(0, Some(marked))]);
    let mut config = PipelineConfig::with_ports(PORTS.len() as u16, SWITCH);
    config.dcb = Some(Box::new(buffers(rate, pool)));
    let program = CpuPort::new(agent, entries, DELAY);
    Ok(ProgramNode::new(config, Box::new(program)))
}

/// Switch whose queue to the sink is measured.
struct Switch {
    node: ProgramNode,
    last: Time,
    seen: Arc<Mutex<Seen>>,
}

impl Switch {
    fn queued(&self) -> u64 {
        self.node.pipeline().ports().queues().bytes(PORTS[1]).0
    }
}

impl Node for Switch {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        let queued = self.queued();
        let span = now.since(std::mem::replace(&mut self.last, now));
        let start = out.len();
        self.node.handle(now, input, out);
        let left = self.queued();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.queue(queued, span, left);
        let lost = out[start..].iter().filter(|action| match action {
            Action::Dropped { reason, .. } => !reason.is_ordinary(),
            _ => false,
        });
        seen.lost += lost.count() as u64;
    }

    fn deadline(&self) -> Option<Time> {
        self.node.deadline()
    }
}

impl Shortcuts for Switch {
    fn awaited(&mut self) -> Awaited {
        self.node.awaited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_frames_are_answered_and_the_rate_follows_the_link() {
        let rp = RpConfig::scaled_for_port(Rate::gbps(1));
        let pool = (Bytes(50_000), Bytes(1 << 20));
        let mut world = Bottleneck::with_responder(rp, pool, 1).unwrap();
        let seen = world.look(Span::from_millis(500));
        assert!(seen.samples > 300 && seen.cnms == 0, "no queue: {seen:?}");
        world.set_rate(Rate::mbps(400));
        world.look(Span::from_secs(5));
        let seen = world.look(Span::from_secs(5));
        let used = seen.wire_bytes as f64 * 8.0 / 5.0 / 400e6;
        let queue = seen.queue_mean(Span::from_secs(5));
        assert!(seen.cnms > 0 && seen.cnms <= seen.samples && seen.lost == 0, "{seen:?}");
        assert!(used > 0.98, "{used}");
        assert!((30_000.0..70_000.0).contains(&queue), "{queue}");
    }
}
