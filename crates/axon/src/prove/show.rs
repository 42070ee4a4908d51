//! Proofs as text.

use super::buffers::{self, Buffers};
use super::names::name;
use super::proof::{Backups, Proof};
use super::{neighbours, watchdog};
use axon_fabric::cycle::{ends, ingress_ports};
use axon_fabric::model::{Fabric, FlowControl, RouterKind};
use axon_prove::{Buffer, Cycle, Verdict, Wait};
use axon_wire::Priority;
use std::fmt::Write;

/// Maximum number of listed pairs of hosts without a route.
const UNREACHABLE_SHOWN: usize = 10;

/// Assumptions of every proof.
const ASSUMPTIONS: [&str; 4] = [
    "hosts read what they receive: none pauses its switch for ever",
    "every switch sends, sooner or later, what its peer has room for",
    "a frame keeps its priority and its route",
    "all lossless priorities of hosts have the same routes, so what holds for one, or for several \
     in one class, holds for each",
];
/// Assumptions without a `dcb` section.
const WITHOUT_DCB: [&str; 2] = [
    "control messages and whatever else has no route here are in no lossless priority",
    "each (ingress port, priority) has a buffer of its own that is never overrun",
];
/// Assumptions of the headroom.
const WITH_DCB: [&str; 1] =
    ["peers pause within the reaction time, and frames are no longer than the file's mtu allows"];
/// Assumptions of the watchdog.
const WATCHDOG: [&str; 3] = [
    "no host pauses its switch for as long as the watchdog's detection",
    "strict classes and the gaps between frames leave the others next to all of a link, and \
     ingress ports have equal shares, as do layers in a queue to a host",
    "frames do not move to another path again and again just as that one is paused",
];
/// Assumption about PAUSE.
const PAUSE: &str = "no pause lasts as long as a link's heartbeats may fail, which PAUSE delays \
     too: after that the link is taken down with all frames queued for it";

/// Returns the assumptions of a proof.
pub(super) fn assumptions(proof: &Proof<'_>) -> impl Iterator<Item = &'static str> {
    let more: &[&str] = if proof.buffers.is_some() { &WITH_DCB } else { &WITHOUT_DCB };
    let dcb = proof.fabric.dcb.as_deref();
    let watchdog = proof.watchdog.as_ref().map_or(&[][..], |_| &WATCHDOG);
    let pause = dcb.is_some_and(|dcb| dcb.flow_control == FlowControl::Pause).then_some(PAUSE);
    ASSUMPTIONS.iter().chain(more).chain(watchdog).copied().chain(pause)
}

/// Returns the priorities of each layer, if there is more than one, and the number of routes on it.
pub(super) fn layers(proof: &Proof<'_>) -> impl Iterator<Item = (Vec<Priority>, u64)> {
    let groups = proof.fabric.dcb.iter().flat_map(|dcb| &dcb.layers);
    let groups: Vec<&Vec<Priority>> = groups.collect();
    let priorities = move |layer: usize| groups.iter().map(|group| group[layer]).collect();
    let several = proof.on_layer.iter().enumerate().filter(|_| proof.on_layer.len() > 1);
    several.map(move |(layer, &routes)| (priorities(layer), routes))
}

fn numbers(priorities: &[Priority]) -> String {
    let numbers = priorities.iter().map(|priority| priority.value().to_string());
    numbers.collect::<Vec<_>>().join(" and ")
}

/// Describes the checked routes in one line.
pub(super) fn scope(proof: &Proof<'_>) -> String {
    let asked = &proof.asked;
    let (routes, all) = (asked.pairs.len() * 2, asked.all * 2);
    let mut text = if asked.is_all() {
        format!("all {routes}, one for each ordered pair of hosts")
    } else {
        let drawn = asked.pairs.len() - asked.traffic;
        format!(
            "{routes} of {all}: {drawn} pairs of hosts drawn with seed {}, both ways, and {} more \
             of the traffic section; the others are not checked",
            asked.seed, asked.traffic
        )
    };
    if !proof.fabric.controller.router.is_fixed() {
        text += "; this router chooses by what was placed, measured or drawn before, so a run may \
                 have others";
    }
    text
}

/// Returns the whole text.
pub(super) fn text(proof: &Proof<'_>) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(proof, &mut out);
    out
}

fn write(proof: &Proof<'_>, out: &mut String) -> std::fmt::Result {
    let Proof { fabric, asked, dependencies, .. } = proof;
    let partly = if asked.is_all() { "" } else { ", for the routes that were checked" };
    writeln!(out, "{}: {}{partly}\n", fabric.name, headline(proof))?;
    writeln!(out, "router         {}", fabric.controller.router.name())?;
    writeln!(out, "routes         {}", scope(proof))?;
    let links = fabric.links.len() - asked.failed.len();
    writeln!(out, "links          {} of {} directions in use", dependencies.links(), links * 2)?;
    let on =
        layers(proof).map(|(of, routes)| format!("{routes} routes on priority {}", numbers(&of)));
    let on: Vec<String> = on.collect();
    if !on.is_empty() {
        writeln!(out, "layers         {}", on.join(", "))?;
    }
    writeln!(out, "dependencies   {}", dependencies.count())?;
    if !asked.failed.is_empty() {
        let failed = asked.failed.iter().map(|&link| name(fabric, fabric.links[link].a));
        let failed: Vec<String> = failed.collect();
        writeln!(out, "failed         {}; {} routes moved", failed.join(", "), proof.moved)?;
    }
    if let Verdict::Free(chain) = &proof.verdict {
        writeln!(out, "longest chain  {}", chain_text(fabric, chain))?;
    }
    if let Some(Verdict::Free(_)) = &proof.mixed {
        writeln!(out, "transition     old and new routes together have no cycle either")?;
    }
    write_backups(proof, out)?;
    proof.failures.iter().try_for_each(|failures| failures.write(out))?;
    let lost = proof.unreachable.len();
    writeln!(out, "headroom       {}", buffers::headline(proof.buffers.as_ref()))?;
    if let Some(watchdog) = &proof.watchdog {
        writeln!(out, "watchdog       {}", watchdog.headline(fabric))?;
    }
    if let Some(warning) = watchdog::warning(fabric) {
        writeln!(out, "warning        {warning}")?;
    }
    writeln!(out, "without route  {lost} of {} ordered pairs of hosts", asked.pairs.len() * 2)?;
    if let Verdict::Cycle(cycle) = &proof.verdict {
        write_cycle(proof, cycle, "the routes", out)?;
    }
    if let Some(Verdict::Cycle(cycle)) = &proof.mixed {
        let which = "old and new routes, while both are in flight after the failure,";
        write_cycle(proof, cycle, which, out)?;
    }
    if let Backups::Proved(_, Verdict::Cycle(cycle)) = &proof.backups {
        write_cycle(proof, cycle, "the routes and their backups", out)?;
    }
    write_unreachable(proof, out)?;
    if let Some(Buffers::Lossless(kinds)) = &proof.buffers {
        buffers::write(kinds, out)?;
    }
    neighbours::write(fabric, &proof.disagreements, out)?;
    neighbours::write_without_pfc(fabric, &proof.without_pfc, out)?;
    ways_out(proof, out)?;
    writeln!(out, "\nassuming that")?;
    assumptions(proof).try_for_each(|line| writeln!(out, "- {line}"))
}

/// Describes the backups in one line.
pub(super) fn backups(proof: &Proof<'_>) -> Option<String> {
    Some(match &proof.backups {
        Backups::Off => return None,
        Backups::NoOrder => "none: the router has no order that keeps them free of cycles".into(),
        Backups::Lossy => "not checked: no priority is lossless".into(),
        Backups::Proved(count, Verdict::Free(_)) => {
            format!("{count} beside the routes; with them there is no cycle either")
        }
        Backups::Proved(count, Verdict::Cycle(_)) => {
            format!("{count} beside the routes; with them there is a cycle")
        }
    })
}

fn write_backups(proof: &Proof<'_>, out: &mut String) -> std::fmt::Result {
    backups(proof).map_or(Ok(()), |line| writeln!(out, "backups        {line}"))
}

/// Writes the remedies in the fabric file, one for each violation.
fn ways_out(proof: &Proof<'_>, out: &mut String) -> std::fmt::Result {
    let fabric = proof.fabric;
    if let Verdict::Cycle(_) = proof.verdict
        && !matches!(fabric.controller.router, RouterKind::UpDown | RouterKind::Layered)
    {
        writeln!(out, "\nway out: controller.router: up_down, or layered with dcb.layers")?;
    }
    if !proof.without_pfc.is_empty() {
        writeln!(
            out,
            "\nway out: no dcb.dcbx.overrides.pfc, which gives PFC to all that is lossless"
        )?;
    }
    if proof.buffers.as_ref().is_some_and(|buffers| !buffers.suffice()) {
        writeln!(
            out,
            "\nway out: no dcb.buffers.headroom and no dcb.quanta, which gives each port what it \
             needs"
        )?;
    }
    if let Some(way) = proof.watchdog.as_ref().and_then(watchdog::Watched::way_out) {
        writeln!(out, "\nway out: {way}")?;
    }
    Ok(())
}

fn headline(proof: &Proof<'_>) -> &'static str {
    let suffice = proof.buffers.as_ref().map(Buffers::suffice);
    match (&proof.verdict, &proof.mixed) {
        _ if proof.is_proved() && matches!(proof.buffers, Some(Buffers::Lossless(_))) => {
            "proved lossless and free of deadlock"
        }
        _ if proof.is_proved() => "proved free of deadlock",
        (Verdict::Free(_), None | Some(Verdict::Free(_))) if !proof.disagreements.is_empty() => {
            "NOT PROVED lossless: neighbours do not agree"
        }
        (Verdict::Free(_), None | Some(Verdict::Free(_))) if !proof.without_pfc.is_empty() => {
            "NOT PROVED lossless: free of deadlock, but senders are never paused"
        }
        (Verdict::Free(_), None | Some(Verdict::Free(_))) if suffice == Some(false) => {
            "NOT PROVED lossless: free of deadlock, but senders are not paused in time"
        }
        (Verdict::Free(_), None | Some(Verdict::Free(_)))
            if proof.watchdog.as_ref().is_some_and(|watchdog| !watchdog.suffices()) =>
        {
            "NOT PROVED lossless: free of deadlock, but the watchdog may take congestion for a \
             storm"
        }
        (Verdict::Cycle(_), _) => "NOT PROVED free of deadlock",
        _ if matches!(proof.backups, Backups::Proved(_, Verdict::Cycle(_))) => {
            "NOT PROVED free of deadlock on backup routes"
        }
        (_, Some(Verdict::Cycle(_))) => "NOT PROVED free of deadlock while routes change",
        _ if proof.unreachable.is_empty() => "NOT PROVED free of deadlock after each failure",
        _ => "NOT PROVED: free of deadlock, but there are hosts without a route to others",
    }
}

/// Describes the length and the two ends of a chain.
fn chain_text(fabric: &Fabric, chain: &[Buffer]) -> String {
    match chain {
        [] => "no buffer waits".into(),
        [only] => format!("1 buffer, {}", ends(fabric, *only).0),
        [first, .., last] => {
            let (first, last) = (ends(fabric, *first).0, ends(fabric, *last).0);
            format!("{} buffers, {first} to {last}", chain.len())
        }
    }
}

fn write_cycle(
    proof: &Proof<'_>,
    cycle: &Cycle,
    which: &str,
    out: &mut String,
) -> std::fmt::Result {
    let fabric = proof.fabric;
    let shortest = if cycle.is_shortest { "no cycle is shorter" } else { "a shorter may exist" };
    let (count, entangled) = (cycle.waits.len(), cycle.entangled);
    let of = match &cycle.waits[..] {
        [wait, ..] if fabric.layers() > 1 => {
            format!(" of priority {}", wait.buffer.priority.value())
        }
        _ => String::new(),
    };
    writeln!(out, "\n{which} let {count} buffers{of} wait for each other in a cycle:\n")?;
    writeln!(out, "  {}\n", ingress_ports(fabric, cycle).join(" -> "))?;
    let next = cycle.waits.iter().cycle().skip(1);
    for (wait, on) in cycle.waits.iter().zip(next) {
        let ((at, from), (then, by)) = (ends(fabric, wait.buffer), ends(fabric, on.buffer));
        let flows = flows(proof, wait);
        writeln!(out, "  {at}, filled from {from}, waits over {by} for {then}: {flows}")?;
    }
    writeln!(
        out,
        "\n{shortest}; {entangled} buffers are on cycles or between them. If these fill up at the \
         same time,\nthey stay full; the proof does not say whether traffic ever does that."
    )
}

fn flows(proof: &Proof<'_>, wait: &Wait) -> String {
    let name = |host: usize| &proof.fabric.hosts[host].name;
    let flow = |&flow: &u32| {
        let (from, to) = proof.asked.hosts(flow);
        format!("{} to {}", name(from), name(to))
    };
    let named: Vec<String> = wait.flows.iter().map(flow).collect();
    let more = wait.routes as usize - named.len();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    named.join(", ") + &more
}

fn write_unreachable(proof: &Proof<'_>, out: &mut String) -> std::fmt::Result {
    let name = |host: usize| &proof.fabric.hosts[host].name;
    let count = proof.unreachable.len();
    if count > 0 {
        writeln!(out, "\nno route leads from")?;
    }
    for &(from, to) in proof.unreachable.iter().take(UNREACHABLE_SHOWN) {
        writeln!(out, "  {} to {}", name(from), name(to))?;
    }
    if count > UNREACHABLE_SHOWN {
        writeln!(out, "  and {} more", count - UNREACHABLE_SHOWN)?;
    }
    Ok(())
}
