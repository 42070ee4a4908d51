//! What the control plane costs, link by link, on networks of up to 50,000 hosts (001 §5.4):
//! shared by figure 6 and by the start of a network.
//!
//! A [`Run`] goes from cold start through discovery ([`Run::boot`]), a quiet time with
//! nothing but heartbeats and refreshes ([`Run::idle`]), and hosts that ask for one another
//! ([`Run::ask`]). As in the paper, what the questions have cost is then stated for a rate.
//! Bytes are whole frames with headers and FCS, both directions of a link together.

pub mod memory;
pub mod pattern;
pub mod shape;

use crate::reproduce::Context;
use anyhow::{Result, bail};
use axon_control::controller::topology::SwitchIndex;
use axon_fabric::model::{Fabric, Network};
use axon_sim::World;
use axon_sim::arp_host::{ArpHosts, AskPlan, AskStats};
use axon_sim::baseline::Baseline;
use axon_sim::links::LinkId;
use axon_wire::{Span, Time};

/// Questions that a host asks per second, in what the figures state.
pub const ASKS_PER_SECOND: f64 = 10.0;
/// How long a network may take to start.
const BOOT_MAX: Span = Span::from_secs(60);
/// How long a bridged network is given for its spanning tree.
const TREE: Span = Span::from_secs(8);
/// The quiet time that is measured: as long as switches take to refresh their state.
const IDLE: Span = Span::from_secs(3);
/// The time over which hosts begin to ask.
pub const ASKING: Span = Span::from_secs(5);
/// An ARP request or reply on a plain Ethernet: padded, with FCS.
const ARP_BYTES: f64 = 64.0;

/// Something per link: its mean over the links of the fabric, over these and those of the
/// hosts, and its greatest value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean over links between switches and the controller's.
    pub mean: f64,
    /// Mean over these and the hosts' links.
    pub mean_all: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// The same in another unit.
    pub fn times(self, factor: f64) -> Spread {
        let Spread { mean, mean_all, max } = self;
        Spread { mean: mean * factor, mean_all: mean_all * factor, max: max * factor }
    }
}

/// How a network started.
#[derive(Clone, Copy, Debug)]
pub struct Boot {
    /// Until the controller knew every link, and every switch its way to the controller.
    pub links_known: Span,
    /// Bytes that links had carried by then.
    pub links_bytes: Spread,
    /// Until it knew every host too, and every report was acknowledged.
    pub hosts_known: Span,
    /// Bytes that links had carried by then.
    pub hosts_bytes: Spread,
}

/// What questions have cost.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// What became of them.
    pub stats: AskStats,
    /// Mb/s at [`ASKS_PER_SECOND`] by every host.
    pub load: Spread,
}

/// A network under measurement.
pub struct Run {
    /// The world.
    pub world: World,
    /// Resident memory, in bytes: the most that was seen while it ran.
    pub memory_bytes: u64,
    /// Whether hosts keep silent until they ask.
    cold: bool,
    /// Bits per second while nobody asks, by link.
    idle: Vec<f64>,
}

impl Run {
    /// A network in which everything has just been switched on. Hosts announce themselves
    /// within the first second, or, `cold`, never.
    pub fn new(context: &Context, fabric: &Fabric, seed: u64, cold: bool) -> Run {
        let announce_within = (!cold).then_some(Span::from_secs(1));
        let hosts = ArpHosts { announce_within, ..ArpHosts::default() };
        let mut world = World::with_arp_hosts(fabric, seed, hosts);
        world.set_threads(context.threads);
        world.count_classes();
        Run { world, memory_bytes: 0, cold, idle: Vec::new() }
    }

    fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.world.engine().links().len()).map(LinkId)
    }

    /// Bytes so far, by link.
    fn bytes(&self) -> Vec<f64> {
        self.links().map(|link| self.world.class_bytes(link).total() as f64).collect()
    }

    /// Sums up a figure per link.
    pub fn spread(&self, per_link: &[f64]) -> Spread {
        let cables = self.world.fabric().links.len();
        let controller = self.world.controller_link().0;
        let managed = match self.world.fabric().network {
            Network::Axon | Network::PortLand => 1.0,
            Network::Ethernet | Network::Ecmp => 0.0,
        };
        let own = per_link[..cables].iter().sum::<f64>() + managed * per_link[controller];
        let hosts: f64 = per_link[cables..controller].iter().sum();
        let (own_count, hosts_count) = (cables as f64 + managed, (controller - cables) as f64);
        Spread {
            mean: own / own_count,
            mean_all: (own + hosts) / (own_count + hosts_count),
            max: per_link.iter().copied().fold(0.0, f64::max),
        }
    }

    /// Runs until the network has found itself.
    ///
    /// # Errors
    /// It does not within a minute of simulated time, or the user wants it to stop.
    pub fn boot(&mut self, context: &mut Context) -> Result<Boot> {
        if matches!(self.world.fabric().network, Network::Ethernet | Network::Ecmp) {
            self.go_on(context, TREE)?;
            let bytes = self.spread(&self.bytes());
            return Ok(Boot {
                links_known: TREE,
                links_bytes: bytes,
                hosts_known: TREE,
                hosts_bytes: bytes,
            });
        }
        let links_known = self.until(context, "links", Span::from_millis(1), links_known)?;
        let links_bytes = self.spread(&self.bytes());
        if self.cold {
            self.go_on(context, Span::from_secs(1))?;
        } else {
            self.until(context, "hosts", Span::from_millis(10), hosts_known)?;
        }
        let hosts_bytes = self.spread(&self.bytes());
        Ok(Boot { links_known, links_bytes, hosts_known: self.clock(), hosts_bytes })
    }

    fn clock(&self) -> Span {
        self.world.now().since(Time::ZERO)
    }

    /// Runs until `condition` holds, and says when that was.
    fn until(
        &mut self,
        context: &mut Context,
        what: &str,
        step: Span,
        condition: impl Fn(&World) -> bool,
    ) -> Result<Span> {
        while !condition(&self.world) {
            if self.clock() > BOOT_MAX {
                bail!("not all {what} are known after {BOOT_MAX}");
            }
            self.world.run_for(step);
            self.look(context)?;
        }
        Ok(self.clock())
    }

    /// Runs on for `span`.
    fn go_on(&mut self, context: &mut Context, span: Span) -> Result<()> {
        let end = self.world.now() + span;
        while self.world.now() < end {
            let next = (self.world.now() + Span::from_millis(100)).min(end);
            self.world.run_until(next);
            self.look(context)?;
        }
        Ok(())
    }

    fn look(&mut self, context: &Context) -> Result<()> {
        self.memory_bytes = self.memory_bytes.max(memory::resident_bytes());
        context.stop().check()
    }

    /// Measures what the network says when nobody asks anything: Mb/s.
    ///
    /// # Errors
    /// The user wants it to stop.
    pub fn idle(&mut self, context: &mut Context) -> Result<Spread> {
        let before = self.bytes();
        self.go_on(context, IDLE)?;
        let seconds = IDLE.as_millis() as f64 / 1000.0;
        let rates =
            self.bytes().into_iter().zip(before).map(|(now, before)| (now - before) / seconds);
        self.idle = rates.map(|rate| rate * 8.0).collect();
        Ok(self.spread(&self.idle).times(1e-6))
    }

    /// What [`Run::idle`] has measured, link by link, for another run on the same fabric.
    pub fn into_idle(self) -> Vec<f64> {
        self.idle
    }

    /// Takes over what another run on the same fabric has measured while nobody asked.
    pub fn take_idle(&mut self, idle: Vec<f64>) {
        self.idle = idle;
    }

    /// Lets hosts ask: host `h` for the hosts in `whom[h]`, one right after another, from a
    /// random moment of the next [`ASKING`] on. What the network says anyway is subtracted:
    /// call [`Run::idle`] before.
    ///
    /// # Errors
    /// A question stays open for good, or the user wants it to stop.
    pub fn ask(&mut self, context: &mut Context, whom: &[Vec<u32>], seed: u64) -> Result<Asked> {
        let (before, started) = (self.bytes(), self.world.now());
        let mut dice = oorandom::Rand64::new(u128::from(seed) << 64 | 0x6173_6b73);
        for (host, targets) in whom.iter().enumerate() {
            let targets = targets.iter().filter_map(|&host| self.world.address(host as usize));
            let first_at = started + Span::from_ticks(dice.rand_range(0..ASKING.ticks()));
            let interval = Span::from_millis(10);
            let plan = AskPlan { targets: targets.collect(), first_at, interval };
            if !self.world.ask(host, plan) {
                bail!("host {host} is no ARP host");
            }
        }
        let limit = started + ASKING + Span::from_secs(10);
        while !self.world.all_answered() {
            if self.world.now() > limit {
                bail!("questions stay open after {limit}");
            }
            self.go_on(context, Span::from_millis(250))?;
        }
        let stats = self.world.ask_stats();
        if stats.failed > 0 {
            bail!("{} of {} questions had no answer", stats.failed, stats.asked);
        }
        let seconds = self.world.now().since(started).as_millis() as f64 / 1000.0;
        let idle = |link: usize| self.idle.get(link).copied().unwrap_or(0.0) * seconds;
        let cost = self.bytes().into_iter().zip(before).enumerate();
        let bits: Vec<f64> =
            cost.map(|(at, (now, before))| ((now - before) * 8.0 - idle(at)).max(0.0)).collect();
        let asked: usize = whom.iter().map(Vec::len).sum();
        let rate = ASKS_PER_SECOND * whom.len() as f64 / asked.max(1) as f64;
        Ok(Asked { stats, load: self.spread(&bits).times(rate * 1e-6) })
    }
}

/// What one link of an Ethernet carries at least, in Mb/s: every request of every host, since
/// requests are broadcast (001 §5.4).
pub fn ethernet_mbps(hosts: usize) -> f64 {
    hosts as f64 * ASKS_PER_SECOND * ARP_BYTES * 8.0 * 1e-6
}

/// Whether the controller knows every link and every switch its way to the controller.
fn links_known(world: &World) -> bool {
    let fabric = world.fabric();
    let switches = fabric.switches.len();
    if let Some(manager) = manager(world) {
        return manager.switches() == switches;
    }
    let Some(controller) = world.controller() else { return false };
    let graph = controller.controller().graph();
    let ends = (0..graph.len() as u32).map(|at| graph.edges(SwitchIndex(at)).len()).sum::<usize>();
    let mut nodes = (0..switches).filter_map(|switch| world.switch(switch));
    ends == 2 * fabric.links.len() && nodes.all(|node| node.uplink().path().is_some())
}

/// Whether it knows every host too, and no report is on its way.
fn hosts_known(world: &World) -> bool {
    let hosts = world.fabric().hosts.len();
    if let Some(manager) = manager(world) {
        return manager.hosts().len() == hosts;
    }
    let known = world.controller().is_some_and(|node| node.controller().hosts().len() == hosts);
    let mut nodes = (0..world.fabric().switches.len()).filter_map(|at| world.switch(at));
    known && links_known(world) && nodes.all(|node| node.unacknowledged() == 0)
}

fn manager(world: &World) -> Option<&axon_control::portland::ManagerNode<axon_wire::FrameBuf>> {
    match world.baseline(world.controller_station())? {
        Baseline::Manager(node) => Some(node),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axon::live::process::Stop;
    use shape::Shape;

    const HOSTS: usize = 60;

    fn measured(network: Network, cold: bool) -> (Boot, Spread, Asked) {
        let context = &mut Context::new("test", "unused".into(), 1, 1, Stop::default());
        let mut fabric = Shape::Torus.fabric(HOSTS, 1).unwrap();
        fabric.network = network;
        let mut run = Run::new(context, &fabric, 1, cold);
        let boot = run.boot(context).unwrap();
        let idle = run.idle(context).unwrap();
        let asked = run.ask(context, &pattern::random(HOSTS, 5, 1), 1).unwrap();
        assert_eq!(run.world.engine().check_conservation(), Ok(()));
        (boot, idle, asked)
    }

    #[test]
    fn a_network_finds_itself_and_its_questions_cost_most_at_the_controller() {
        let (boot, idle, asked) = measured(Network::Axon, false);
        assert!(boot.links_known < boot.hosts_known);
        assert!(boot.links_bytes.mean < boot.hosts_bytes.mean);
        assert_eq!(asked.stats.answered, 5 * HOSTS as u64);
        // Ten heartbeats a second from each end, of 64 to 250 bytes.
        assert!(idle.mean * 1e6 > 20.0 * 64.0 * 8.0 && idle.mean * 1e6 < 20.0 * 250.0 * 8.0);
        // Two messages for each question pass the controller's link.
        let least = 2.0 * HOSTS as f64 * ASKS_PER_SECOND * 64.0 * 8.0 * 1e-6;
        assert!(asked.load.max > least, "{} {least}", asked.load.max);
        assert!(asked.load.mean < asked.load.max / 2.0);
    }

    #[test]
    fn portland_pays_for_hosts_that_it_does_not_know() {
        let (.., warm) = measured(Network::PortLand, false);
        let (.., cold) = measured(Network::PortLand, true);
        assert!(cold.load.mean_all > 2.0 * warm.load.mean_all);
    }

    #[test]
    fn bridges_carry_every_request_on_every_link_of_the_tree() {
        let (.., asked) = measured(Network::Ethernet, false);
        assert!(asked.load.max >= ethernet_mbps(HOSTS), "{}", asked.load.max);
    }
}
