//! Control plane overhead by link, on networks of up to 50,000 hosts (001 §5.4): shared by figure 6
//! and by the start of a network.
//!
//! A [`Run`] goes from cold start through discovery (`Run::boot`), an idle time with only
//! heartbeats and refreshes (`Run::idle`), and questions of hosts ([`Run::ask`]). As in the
//! paper, the cost of the questions is then scaled to a rate. Bytes are whole frames with headers
//! and FCS, both directions of a link together.
//!
//! **The average link**, in all of figure 6 and of the start: the mean over the links between
//! switches. The paper counts those: "5,000 Axons and 10,000 links between Axons" (001 §5.4).
//! The mean over all links, the controller's and the hosts' included, stands beside it without
//! a bound ([`Spread::mean_of_all`]).
//!
//! **The worst link**: overheads are added link by link, then the greatest sum is taken.

pub mod memory;
pub mod pattern;
pub mod shape;

use crate::reproduce::Context;
use anyhow::{Result, bail};
use axon_controller::topology::SwitchIndex;
use axon_fabric::model::{Fabric, Network};
use axon_sim::arp_host::{ArpHost, ArpHosts, AskPlan, AskStats};
use axon_sim::baselines::Baseline;
use axon_sim::classes::Class;
use axon_sim::links::LinkId;
use axon_sim::{Setup, World};
use axon_wire::{Span, Time};

/// Questions per second of a host, in the stated figures.
pub(crate) const ASKS_PER_SECOND: f64 = 10.0;
/// Timeout of the start of a network.
const BOOT_MAX: Span = Span::from_secs(60);
/// Time for a bridged network to build its spanning tree.
const TREE: Span = Span::from_secs(8);
/// Length of the idle measurement: the interval in which switches refresh their state.
const IDLE: Span = Span::from_secs(3);
/// Time over which hosts begin their questions.
pub(crate) const ASKING: Span = Span::from_secs(5);
/// Default interval between questions of a host: back to back.
pub(crate) const AT_ONCE: Span = Span::from_millis(10);
/// An ARP request or reply on a plain Ethernet: padded, with FCS.
const ARP_BYTES: f64 = 64.0;

/// Distribution of a value over links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean over the links between switches.
    pub mean: f64,
    /// Mean over all links: between switches, the controller's and the hosts'.
    pub mean_of_all: f64,
    /// Maximum over the links.
    pub max: f64,
}

impl Spread {
    /// Returns the value in another unit.
    pub(crate) fn times(self, factor: f64) -> Spread {
        let Spread { mean, mean_of_all, max } = self;
        Spread { mean: mean * factor, mean_of_all: mean_of_all * factor, max: max * factor }
    }
}

/// Mean over links between switches, by class of frame.
pub type ByClass = [(Class, f64); 4];

/// Idle load of links: see `Run::idle`.
#[derive(Clone, Debug, Default)]
pub struct Idle {
    /// Bits per second, by link.
    links: Vec<f64>,
    /// Bits per second by direction of the controller's link.
    ways: [f64; 2],
    /// Mean bits per second over links between switches, by class of frame.
    classes: [f64; 4],
}

/// Start of a network.
#[derive(Clone, Copy, Debug)]
pub struct Boot {
    /// Time until the controller knew every link, and every switch its path to the controller.
    pub links_known: Span,
    /// Bytes that links had carried by `links_known`.
    pub links_bytes: Spread,
    /// Time until the controller knew every host too, and every report was acknowledged.
    pub hosts_known: Span,
    /// Bytes that links had carried by `hosts_known`.
    pub hosts_bytes: Spread,
    /// Mean of `hosts_bytes` over links between switches, by class of frame.
    pub hosts_by_class: ByClass,
}

/// Cost of the questions of hosts.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Outcomes of the questions.
    pub stats: AskStats,
    /// Mb/s at `ASKS_PER_SECOND` by every host.
    pub load: Spread,
    /// Load by class of frame.
    pub load_by_class: ByClass,
    /// Load plus idle load, added link by link.
    pub sum: Spread,
    /// Total load in the busier direction of the controller's link, in Mb/s.
    pub controller_mbps: f64,
}

/// Returns a remark if the controller's link could not carry the stated rate of questions.
/// Questions come more slowly in the run and are scaled, as in the paper, so the result has no
/// queueing or drops of the full rate.
pub(crate) fn beyond_the_link(fabric: &Fabric, hosts: usize, asked: &Asked) -> Option<String> {
    let rate = fabric.controller.wire.rate.bits_per_second() as f64 * 1e-6;
    let mbps = asked.controller_mbps;
    (mbps > rate).then(|| {
        format!(
            "At {hosts} hosts the stated rate of {ASKS_PER_SECOND} questions a second is more than \
             the controller's link can carry: {mbps:.0} Mb/s in its busier direction, where the \
             link has {rate:.0}. The figures are scaled from a slower run, as the paper scales its \
             own, and are what a faster link would carry there."
        )
    })
}

/// A network under measurement.
pub struct Run {
    /// Simulated world of the network.
    pub world: World,
    /// Maximum resident memory during the run, in bytes.
    pub memory_bytes: u64,
    /// True if hosts are silent until they send questions.
    cold: bool,
    idle: Idle,
}

impl Run {
    /// Creates a network that has just been switched on. Hosts announce themselves within the first
    /// second, or, if `cold`, never.
    pub(crate) fn new(context: &Context, fabric: &Fabric, seed: u64, cold: bool) -> Run {
        let announce_within = (!cold).then_some(Span::from_secs(1));
        let arp_hosts = Some(ArpHosts { announce_within, ..ArpHosts::default() });
        let mut world = World::begin(fabric, Setup { seed, arp_hosts, ..Setup::default() });
        world.engine_mut().set_threads(context.threads);
        world.count_classes();
        Run { world, memory_bytes: 0, cold, idle: Idle::default() }
    }

    fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.world.engine().links().len()).map(LinkId)
    }

    /// Returns the bytes so far by link.
    fn bytes(&self) -> Vec<f64> {
        self.links().map(|link| self.world.nodes().class_bytes(link).total() as f64).collect()
    }

    /// Returns the bytes so far by direction of the controller's link.
    fn ways(&self) -> [f64; 2] {
        let (engine, link) = (self.world.engine(), self.world.layout().controller_link());
        [0, 1].map(|side| engine.class_bytes(link, side).map_or(0.0, |bytes| bytes.total() as f64))
    }

    /// Returns the mean of the bytes so far over links between switches, in the order of
    /// [`Class::ALL`].
    fn classes(&self) -> [f64; 4] {
        Class::ALL.map(|class| {
            let bytes = |link| self.world.nodes().class_bytes(link).of(class) as f64;
            self.spread(&self.links().map(bytes).collect::<Vec<_>>()).mean
        })
    }

    /// Returns the distribution of a per-link figure.
    pub(crate) fn spread(&self, per_link: &[f64]) -> Spread {
        let cables = self.world.fabric().links.len();
        let controller = self.world.layout().controller_link().0;
        let managed = match self.world.fabric().network {
            Network::Axon | Network::PortLand => 1.0,
            Network::Ethernet | Network::Ecmp | Network::Program => 0.0,
        };
        let between: f64 = per_link[..cables].iter().sum();
        let hosts: f64 = per_link[cables..controller].iter().sum();
        let all = between + hosts + managed * per_link[controller];
        Spread {
            mean: between / cables as f64,
            mean_of_all: all / (controller as f64 + managed),
            max: per_link.iter().copied().fold(0.0, f64::max),
        }
    }

    /// Runs until the network has converged.
    ///
    /// # Errors
    /// The network does not converge within a minute of simulated time, or the user stops the run.
    pub(crate) fn boot(&mut self, context: &mut Context) -> Result<Boot> {
        if matches!(self.world.fabric().network, Network::Ethernet | Network::Ecmp) {
            self.go_on(context, TREE)?;
            let bytes = self.spread(&self.bytes());
            return Ok(Boot {
                links_known: TREE,
                links_bytes: bytes,
                hosts_known: TREE,
                hosts_bytes: bytes,
                hosts_by_class: Class::ALL.map(|class| (class, 0.0)),
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
        let hosts_by_class = named(self.classes());
        let hosts_known = self.clock();
        Ok(Boot { links_known, links_bytes, hosts_known, hosts_bytes, hosts_by_class })
    }

    fn clock(&self) -> Span {
        self.world.now().since(Time::ZERO)
    }

    /// Runs until `condition` holds, and returns the time.
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

    /// Runs the world for `span`, in steps.
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

    /// Measures the idle load in Mb/s.
    ///
    /// # Errors
    /// The user stops the run.
    pub(crate) fn idle(&mut self, context: &mut Context) -> Result<Spread> {
        let (before, ways, classes) = (self.bytes(), self.ways(), self.classes());
        self.go_on(context, IDLE)?;
        let seconds = IDLE.as_millis() as f64 / 1000.0;
        let rate = |(now, before): (f64, f64)| (now - before) * 8.0 / seconds;
        let (now, after) = (self.ways(), self.classes());
        self.idle = Idle {
            links: self.bytes().into_iter().zip(before).map(rate).collect(),
            ways: [0, 1].map(|side| rate((now[side], ways[side]))),
            classes: std::array::from_fn(|at| rate((after[at], classes[at]))),
        };
        Ok(self.spread(&self.idle.links).times(1e-6))
    }

    /// Returns the idle load of the average link between switches by class of frame, in Mb/s, as
    /// measured by [`Run::idle`].
    pub(crate) fn idle_by_class(&self) -> ByClass {
        named(self.idle.classes.map(|rate| rate * 1e-6))
    }

    /// Returns the idle measurement, for another run on the same fabric.
    pub(crate) fn into_idle(self) -> Idle {
        self.idle
    }

    /// Takes over the idle measurement of another run on the same fabric.
    pub(crate) fn take_idle(&mut self, idle: Idle) {
        self.idle = idle;
    }

    /// Lets hosts ask: host `h` for the hosts in `whom[h]`, one every `interval`, from a random
    /// time of the next `ASKING` on. The idle load is subtracted: call `Run::idle` before.
    ///
    /// # Errors
    /// A question is never answered, or the user stops the run.
    pub fn ask(
        &mut self,
        context: &mut Context,
        whom: &[Vec<u32>],
        interval: Span,
    ) -> Result<Asked> {
        let seed = context.seed;
        let (before, ways, started) = (self.bytes(), self.ways(), self.world.now());
        let classes = self.classes();
        let mut dice = oorandom::Rand64::new(u128::from(seed) << 64 | 0x6173_6b73);
        for (host, targets) in whom.iter().enumerate() {
            let targets = targets.iter().filter_map(|&host| self.world.address(host as usize));
            let first_at = started + Span::from_ticks(dice.rand_range(0..ASKING.ticks()));
            let plan = AskPlan { targets: targets.collect(), first_at, interval };
            if !self.world.nodes_mut().ask(host, plan) {
                bail!("host {host} is no ARP host");
            }
        }
        let questions_max = whom.iter().map(Vec::len).max().unwrap_or(0) as u64;
        let limit = started + ASKING + interval * questions_max + Span::from_secs(10);
        while !self.world.nodes().arp_hosts().all(ArpHost::is_done) {
            if self.world.now() > limit {
                bail!("questions stay open after {limit}");
            }
            self.go_on(context, Span::from_millis(250))?;
        }
        let stats = self.world.nodes().ask_stats();
        if stats.failed > 0 {
            bail!("{} of {} questions had no answer", stats.failed, stats.asked);
        }
        let seconds = self.world.now().since(started).as_millis() as f64 / 1000.0;
        let asked: usize = whom.iter().map(Vec::len).sum();
        let rate = ASKS_PER_SECOND * whom.len() as f64 / asked.max(1) as f64;
        let added = |now: f64, before: f64, idle: f64| {
            ((now - before) * 8.0 - idle * seconds).max(0.0) * rate
        };
        let idle = |link: usize| self.idle.links.get(link).copied().unwrap_or(0.0);
        let cost = self.bytes().into_iter().zip(before).enumerate();
        let bits: Vec<f64> = cost.map(|(at, (now, before))| added(now, before, idle(at))).collect();
        let sums: Vec<f64> = bits.iter().enumerate().map(|(at, bits)| bits + idle(at)).collect();
        let (now, quiet) = (self.ways(), self.idle.ways);
        let ways = [0, 1].map(|at| added(now[at], ways[at], quiet[at]) + quiet[at]);
        let (after, quiet) = (self.classes(), self.idle.classes);
        let of_class = |at| added(after[at], classes[at], quiet[at]) * 1e-6;
        Ok(Asked {
            stats,
            load: self.spread(&bits).times(1e-6),
            load_by_class: named(std::array::from_fn(of_class)),
            sum: self.spread(&sums).times(1e-6),
            controller_mbps: ways[0].max(ways[1]) * 1e-6,
        })
    }
}

/// Pairs each figure with its class.
fn named(figures: [f64; 4]) -> ByClass {
    std::array::from_fn(|at| (Class::ALL[at], figures[at]))
}

/// Returns the least load of one Ethernet link in Mb/s: every request of every host, since requests
/// are broadcast (001 §5.4).
pub(crate) fn ethernet_mbps(hosts: usize) -> f64 {
    hosts as f64 * ASKS_PER_SECOND * ARP_BYTES * 8.0 * 1e-6
}

/// Returns whether the controller knows every link and every switch its path to the controller.
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

/// Returns whether the controller knows every host too, and no report is in flight.
fn hosts_known(world: &World) -> bool {
    let hosts = world.fabric().hosts.len();
    if let Some(manager) = manager(world) {
        return manager.hosts().len() == hosts;
    }
    let known = world.controller().is_some_and(|node| node.controller().hosts().len() == hosts);
    let mut nodes = (0..world.fabric().switches.len()).filter_map(|at| world.switch(at));
    known && links_known(world) && nodes.all(|node| node.unacknowledged() == 0)
}

fn manager(world: &World) -> Option<&axon_baselines::portland::ManagerNode> {
    match world.nodes().baseline(world.layout().controller_station())? {
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
        let asked = run.ask(context, &pattern::random(HOSTS, 5, 1), AT_ONCE).unwrap();
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
        // The loads by class agree: heartbeats on the link, questions across the network.
        let [(_, link), (_, routed), ..] = asked.load_by_class;
        let classes: f64 = asked.load_by_class.iter().map(|(_, mbps)| mbps).sum();
        assert!((classes - asked.load.mean).abs() < 0.05 * asked.load.mean, "{asked:?}");
        assert!(routed > 0.9 * classes && link < 0.1 * classes, "{asked:?}");
        // Hosts' links carry no heartbeats.
        assert!(idle.mean_of_all < idle.mean / 2.0, "{idle:?}");
        // Two messages for each question pass the controller's link.
        let least = 2.0 * HOSTS as f64 * ASKS_PER_SECOND * 64.0 * 8.0 * 1e-6;
        assert!(asked.load.max > least, "{} {least}", asked.load.max);
        assert!(asked.load.mean < asked.load.max / 2.0);
        // The sum is taken link by link: its mean is that of both, its greatest at most theirs.
        let both = idle.mean + asked.load.mean;
        assert!((asked.sum.mean - both).abs() < 1e-9, "{} {both}", asked.sum.mean);
        assert!(asked.sum.max <= idle.max + asked.load.max && asked.sum.max >= asked.load.max);
        assert!(asked.controller_mbps <= asked.sum.max && asked.controller_mbps > least / 2.0);
    }

    #[test]
    fn portland_pays_for_hosts_that_it_does_not_know() {
        let (.., warm) = measured(Network::PortLand, false);
        let (.., cold) = measured(Network::PortLand, true);
        assert!(cold.load.mean > warm.load.mean);
        assert!(cold.load.mean_of_all > 2.0 * warm.load.mean_of_all);
    }

    #[test]
    fn bridges_carry_every_request_on_every_link_of_the_tree() {
        let (.., asked) = measured(Network::Ethernet, false);
        assert!(asked.load.max >= ethernet_mbps(HOSTS), "{}", asked.load.max);
    }
}
