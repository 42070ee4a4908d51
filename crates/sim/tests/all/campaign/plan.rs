//! Contents of a seed: a fabric, its conditions, and scheduled events.

use super::bonds::Loss;
use crate::common::Builder;
use axon_fabric::model::{End, FaultKind};
use axon_sim::DataplaneKind;
use axon_sim::disorder::Disorder;
use axon_wire::{HopWidth, Span, Time};
use oorandom::Rand64;

/// Begin and end of failures, in milliseconds.
pub const FAILURES: (u64, u64) = (2_000, 8_000);
/// Ports of the largest switch that hops of 4 bits can name, with room for hostile hosts.
const NARROW_PORTS_MAX: u16 = 13;
/// Classes of the fabrics with Data Center Bridging.
const DCB: &str = "\
name: a
topology: {line: {switches: 1}}
dcb:
  classes:
    - {priorities: [0, 1, 2, 5, 6, 7], ets: 40}
    - {priorities: [3, 4], ets: 60, lossless: true}
  watchdog: {}
";

/// Events in a fabric besides those of the fabric file.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// A failure or recovery.
    Fault(FaultKind),
    /// A host is connected to another port.
    Move(usize, End),
    /// An event at a port of a host's bond.
    Bond(usize, usize, Loss),
}

impl Act {
    /// True if it affects the controller.
    pub fn is_controllers(&self) -> bool {
        use FaultKind::{ControllerDown, ControllerGoesOn, ControllerStopped, ControllerUp};
        let Act::Fault(fault) = self else { return false };
        matches!(fault, ControllerDown | ControllerUp | ControllerStopped | ControllerGoesOn)
    }
}

/// A hostile host: its position, and the maximum time between two of its frames.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    pub at: End,
    pub pause: Span,
}

/// The plan of a seed.
pub struct Plan {
    pub builder: Builder,
    /// Disturbances of frames by links.
    pub disorder: Option<Disorder>,
    /// Routes that the table of a port holds, if few.
    pub routes_per_port: Option<usize>,
    pub attacks: Vec<Attack>,
    /// True if hosts with fixed addresses send nothing until they are addressed.
    pub silent_hosts: bool,
    pub acts: Vec<(Time, Act)>,
}

/// Random numbers of a plan.
pub struct Dice(Rand64);

impl Dice {
    pub fn new(seed: u128) -> Dice {
        Dice(Rand64::new(seed))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0.rand_range(0..limit as u64) as usize
    }

    fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A connected graph of 4 to 12 switches, 1 to 3 hosts each, up to as many links again.
fn topology(dice: &mut Dice) -> Builder {
    let switches = dice.between(4, 12);
    let mut builder = Builder::new(switches);
    for switch in 1..switches {
        let other = dice.below(switch);
        builder.link(switch, other);
    }
    for _ in 0..dice.below(switches + 1) {
        let a = dice.below(switches);
        let b = (a + 1 + dice.below(switches - 1)) % switches;
        builder.link(a, b);
    }
    for switch in 0..switches {
        for _ in 0..dice.between(1, 3) {
            let fixed = dice.chance(30);
            builder.host(switch, fixed);
        }
    }
    let controller_at = dice.below(switches);
    builder.fabric.controller.at = builder.free_port(controller_at);
    builder.loss(dice.below(50_001) as u32);
    builder.fabric.timers.hello = Span::from_millis(50);
    builder.fabric.timers.heartbeat = Span::from_millis(50);
    builder.fabric.timers.retry = Span::from_millis(20);
    builder
}

/// Draws widths of hops, classes and leases that differ from the default.
fn conditions(dice: &mut Dice, builder: &mut Builder, dataplane: DataplaneKind) {
    let fabric = &mut builder.fabric;
    let ports = fabric.switches.iter().map(|switch| switch.ports).max().unwrap_or_default();
    fabric.hop_width = match dice.below(4) {
        0 if ports <= NARROW_PORTS_MAX => HopWidth::Four,
        1 => HopWidth::Sixteen,
        _ => HopWidth::Eight,
    };
    // The reference has no traffic classes.
    if dice.chance(30) && dataplane != DataplaneKind::Reference {
        fabric.dcb = crate::common::fabric(DCB).dcb;
    }
    if dice.chance(40) {
        fabric.dhcp.lease = Span::from_secs(dice.between(3, 6) as u64);
    }
}

fn disorder(dice: &mut Dice, hop_width: HopWidth) -> Disorder {
    let mut share = || dice.below(20_001) as u32;
    Disorder {
        duplicate_ppm: share(),
        late_ppm: share(),
        forge_ppm: share(),
        late_max: Span::from_millis(2),
        hop_width,
    }
}

/// The plan of a seed over a data plane.
pub fn plan(dataplane: DataplaneKind, seed: u64) -> Plan {
    let mut dice = Dice::new(u128::from(seed) + 1);
    let dice = &mut dice;
    let mut builder = topology(dice);
    let mut spare = builder.spare_ports();
    conditions(dice, &mut builder, dataplane);
    let disorder = dice.chance(40).then(|| disorder(dice, builder.fabric.hop_width));
    let routes_per_port = dice.chance(30).then(|| dice.between(2, 8));
    let attacks = if dice.chance(40) { dice.between(1, 2) } else { 0 };
    let attack = |_| {
        let at = spare.swap_remove(dice.below(spare.len()));
        Attack { at, pause: Span::from_micros(dice.between(200, 20_000) as u64) }
    };
    let attacks = (0..attacks).map(attack).collect();
    let acts = acts(dice, &builder, &mut spare);
    let silent_hosts = dice.chance(30);
    Plan { builder, disorder, routes_per_port, attacks, silent_hosts, acts }
}

/// Draws failures at random times; most are repaired, some stay. Those that the controller depends
/// on are repaired, except for a few.
fn acts(dice: &mut Dice, builder: &Builder, spare: &mut Vec<End>) -> Vec<(Time, Act)> {
    let fabric = &builder.fabric;
    let controller_restarts = dice.chance(40);
    let mut acts: Vec<(u64, Act)> = Vec::new();
    for _ in 0..dice.between(3, 16) {
        let at = moment(dice, FAILURES.0);
        let (down, up, stays) = match dice.below(12) {
            0..5 => link_failure(dice, builder),
            5..7 => {
                let switch = dice.below(fabric.switches.len());
                let vital = switch == fabric.controller.at.switch;
                let stays = dice.chance(if vital { 3 } else { 20 });
                (FaultKind::SwitchDown(switch), FaultKind::SwitchUp(switch), stays)
            }
            7 if controller_restarts => {
                (FaultKind::ControllerDown, FaultKind::ControllerUp, dice.chance(3))
            }
            8 if !spare.is_empty() => {
                let to = spare.swap_remove(dice.below(spare.len()));
                acts.push((at, Act::Move(dice.below(fabric.hosts.len()), to)));
                continue;
            }
            9..11 => {
                let (stop, go_on) = stop(dice, fabric.switches.len());
                // Short enough to be taken for slowness, or so long that its links are declared
                // down.
                let until = at + [1, 20, 90, 400][dice.below(4)];
                acts.push((at, Act::Fault(stop)));
                acts.push((until, Act::Fault(go_on)));
                continue;
            }
            _ => {
                let host = dice.below(fabric.hosts.len());
                (FaultKind::HostDown(host), FaultKind::HostUp(host), dice.chance(20))
            }
        };
        acts.push((at, Act::Fault(down)));
        if !stays {
            acts.push((moment(dice, at), Act::Fault(up)));
        }
    }
    acts.sort_by_key(|&(at, _)| at);
    acts.into_iter().map(|(at, act)| (Time::from_nanos(at * 1_000_000), act)).collect()
}

/// A time between `from` and the end of failures, in milliseconds.
fn moment(dice: &mut Dice, from: u64) -> u64 {
    from + dice.below((FAILURES.1 - from) as usize + 1) as u64
}

fn link_failure(dice: &mut Dice, builder: &Builder) -> (FaultKind, FaultKind, bool) {
    let links = &builder.fabric.links;
    let link = dice.below(links.len());
    let down = match dice.below(5) {
        0 => FaultKind::LinkSilent(link),
        1 => FaultKind::LinkSilentFrom(link, links[link].a),
        2 => FaultKind::LinkSilentFrom(link, links[link].b),
        _ => FaultKind::LinkDown(link),
    };
    (down, FaultKind::LinkUp(link), dice.chance(25))
}

fn stop(dice: &mut Dice, switches: usize) -> (FaultKind, FaultKind) {
    match dice.below(switches + 2) {
        switch if switch < switches => {
            (FaultKind::SwitchStopped(switch), FaultKind::SwitchGoesOn(switch))
        }
        _ => (FaultKind::ControllerStopped, FaultKind::ControllerGoesOn),
    }
}
