//! What was proved, as JSON: the same as the text says.

use super::buffers::Buffers;
use super::each::{Failures, FailuresJson};
use super::names::name;
use super::proof::Proof;
use super::show::{assumptions, layers, scope};
use super::watchdog::WatchdogJson;
use axon_fabric::cycle::{ends, ingress_ports};
use axon_prove::{Cycle, Verdict};
use axon_wire::priority::Priority;
use serde::Serialize;

/// What `axon prove --json` writes.
#[derive(Serialize)]
pub(super) struct ProofJson<'a> {
    /// The name of the fabric in its file.
    fabric: &'a str,
    /// Whether all that was looked at is proved.
    proved: bool,
    /// How the controller chooses paths, as `controller.router` of the fabric file.
    router: &'static str,
    /// Which routes were looked at.
    routes: RoutesJson,
    /// The layers of routes; empty if there is one.
    layers: Vec<LayerJson>,
    /// Links between switches that a route takes, each direction for itself.
    links_in_use: usize,
    /// Pairs of buffers of which the first may wait for the second.
    dependencies: u64,
    /// Whether buffers may wait for each other in a cycle.
    deadlock: VerdictJson<'a>,
    /// What is known of the backup routes; null if the file wants none.
    backups: Option<String>,
    /// What the failure of the links of `--fail` changes; null without.
    after_failure: Option<FailureJson<'a>>,
    /// What becomes of each link or switch that fails by itself, with `--fail each-link` or
    /// `--fail each-switch`; left out without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailuresJson<'a>>,
    /// Hosts that have no route to another: from which, to which.
    unreachable: Vec<[&'a str; 2]>,
    /// Whether buffers are large enough; null for a fabric without DCB.
    headroom: Option<HeadroomJson<'a>>,
    /// The PFC watchdog; null without one.
    watchdog: Option<WatchdogJson>,
    /// What is allowed and may cost losses or a deadlock all the same.
    warnings: Vec<&'static str>,
    /// Links whose two ends differ in what is configured.
    disagreements: Vec<String>,
    /// Ports at which lossless priorities have no PFC in force.
    without_pfc: Vec<WithoutPfcJson>,
    /// What the proof takes for granted.
    assumptions: Vec<&'static str>,
}

/// Which routes were looked at.
#[derive(Serialize)]
struct RoutesJson {
    /// Routes looked at: two for each pair of hosts.
    looked_at: usize,
    /// Routes that the fabric has in all.
    all: u64,
    /// Whether these are all of them.
    complete: bool,
    /// Whether the router always chooses the same route for a pair.
    fixed: bool,
    /// The seed with which pairs and routes were drawn.
    seed: u64,
    /// The same in words.
    says: String,
}

/// A layer of routes.
#[derive(Serialize)]
struct LayerJson {
    /// Its priorities, 0 to 7.
    priorities: Vec<u8>,
    /// Routes that use the layer.
    routes: u64,
}

/// Whether buffers may wait for each other in a cycle.
#[derive(Serialize)]
struct VerdictJson<'a> {
    /// Whether there is no such cycle.
    free: bool,
    /// If so, ingress ports along a longest chain of buffers that wait for each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_chain: Option<Vec<String>>,
    /// If not, a cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycle: Option<CycleJson<'a>>,
}

/// Buffers that may wait for each other.
#[derive(Serialize)]
struct CycleJson<'a> {
    /// Their ingress ports, the first once more at the end.
    ports: Vec<String>,
    /// Each of them, and why it waits for the next.
    waits: Vec<WaitJson<'a>>,
    /// Whether no cycle is shorter; false if the search ended before that was known.
    is_shortest: bool,
    /// Buffers on a cycle, or on a path from one cycle to another.
    entangled_buffers: usize,
}

/// A buffer that may wait for the next.
#[derive(Serialize)]
struct WaitJson<'a> {
    /// The ingress port that has it.
    ingress: String,
    /// The port that fills it.
    filled_from: String,
    /// Routes that go on from it to the next.
    routes: u32,
    /// Some of these, each from a host to a host.
    flows: Vec<[&'a str; 2]>,
}

/// What becomes of the routes when links fail.
#[derive(Serialize)]
struct FailureJson<'a> {
    /// The two ports of each link that fails.
    failed: Vec<[String; 2]>,
    /// Routes that have to move.
    routes_moved: u64,
    /// Whether old and new routes together, as during the change, may wait for each other.
    transition: VerdictJson<'a>,
}

/// Whether the buffers for what is still to come after XOFF are large enough.
#[derive(Serialize)]
struct HeadroomJson<'a> {
    /// Whether all of them are.
    suffices: bool,
    /// Ports of one kind together.
    kinds: Vec<PortsJson<'a>>,
}

/// Ports whose headroom is computed from the same figures.
#[derive(Serialize)]
struct PortsJson<'a> {
    /// The names of the ports, `s1-p0`.
    ports: &'a [String],
    /// Whether they are ports to hosts.
    to_host: bool,
    /// The rate of their links, in bits per second.
    rate_bps: u64,
    /// The slowest rate that their links ever have, in bits per second.
    slowest_bps: u64,
    /// Delay of the cable, one way.
    cable_ns: u64,
    /// What the needed headroom is the sum of.
    terms: Vec<TermJson<'a>>,
    /// Headroom that each of the ports needs, in bytes.
    needed_bytes: u64,
    /// Headroom that is configured for each of the ports, in bytes.
    configured_bytes: u64,
    /// The most that a search for bad timings has found to come after XOFF.
    found_bytes: u64,
    /// Timings that the search has tried.
    searched_runs: u64,
    /// Whether what is at the other end honours pauses for long enough.
    honours_pause: bool,
    /// Quanta that a pause needs, of 512 bit times each.
    quanta_needed: u64,
    /// Quanta that a pause frame asks for.
    quanta: u64,
}

/// A term of the headroom.
#[derive(Serialize)]
struct TermJson<'a> {
    /// What it stands for.
    name: &'a str,
    /// How many times it counts.
    times: u64,
    /// The length of the term, in bits, counted once.
    bits: u64,
}

/// A port without PFC.
#[derive(Serialize)]
struct WithoutPfcJson {
    /// The name of the port, `s1-p0`.
    port: String,
    /// The lossless priorities that have no PFC there, 0 to 7.
    priorities: Vec<u8>,
}

/// The same as the text says.
pub(super) fn of<'a>(proof: &'a Proof<'_>) -> ProofJson<'a> {
    let Proof { fabric, asked, dependencies, .. } = proof;
    let failed = asked.failed.iter().map(|&link| {
        let link = &fabric.links[link];
        [name(fabric, link.a), name(fabric, link.b)]
    });
    let host = |host: usize| fabric.hosts[host].name.as_str();
    let unreachable = proof.unreachable.iter().map(|&(from, to)| [host(from), host(to)]);
    let after_failure = proof.mixed.as_ref().map(|mixed| FailureJson {
        failed: failed.collect(),
        routes_moved: proof.moved,
        transition: verdict(proof, mixed),
    });
    let layer = |(priorities, routes)| LayerJson { priorities: numbers(priorities), routes };
    let disagreements = proof.disagreements.iter();
    let without_pfc = proof.without_pfc.iter().map(|&(port, priorities)| WithoutPfcJson {
        port: name(fabric, port),
        priorities: numbers(priorities.iter()),
    });
    ProofJson {
        fabric: &fabric.name,
        proved: proof.is_proved(),
        router: fabric.controller.router.name(),
        routes: RoutesJson {
            looked_at: asked.pairs.len() * 2,
            all: asked.all * 2,
            complete: asked.is_all(),
            fixed: fabric.controller.router.is_fixed(),
            seed: asked.seed,
            says: scope(proof),
        },
        layers: layers(proof).map(layer).collect(),
        links_in_use: dependencies.links(),
        dependencies: dependencies.count(),
        deadlock: verdict(proof, &proof.verdict),
        backups: super::show::backups(proof),
        after_failure,
        failures: proof.failures.iter().map(Failures::json).collect(),
        unreachable: unreachable.collect(),
        headroom: proof.buffers.as_ref().map(headroom),
        watchdog: proof.watchdog.as_ref().map(|watchdog| watchdog.json(fabric)),
        warnings: super::watchdog::warning(fabric).into_iter().collect(),
        disagreements: disagreements
            .map(|(link, mismatch)| super::neighbours::text(fabric, *link, mismatch))
            .collect(),
        without_pfc: without_pfc.collect(),
        assumptions: assumptions(proof).collect(),
    }
}

fn numbers(priorities: impl IntoIterator<Item = Priority>) -> Vec<u8> {
    priorities.into_iter().map(Priority::value).collect()
}

fn headroom(buffers: &Buffers) -> HeadroomJson<'_> {
    let kinds = match buffers {
        Buffers::Lossy => &[][..],
        Buffers::Lossless(kinds) => kinds,
    };
    let kinds = kinds.iter().map(|kind| {
        let terms = kind.formula.terms().into_iter();
        PortsJson {
            ports: &kind.ports,
            to_host: kind.is_host,
            rate_bps: kind.formula.rate.bits_per_second(),
            slowest_bps: kind.formula.slowest.bits_per_second(),
            cable_ns: kind.formula.cable.as_nanos(),
            terms: terms
                .map(|term| TermJson { name: term.name, times: term.times, bits: term.bits })
                .collect(),
            needed_bytes: kind.needed.0,
            configured_bytes: kind.configured.0,
            found_bytes: kind.searched.most.0,
            searched_runs: kind.searched.runs,
            honours_pause: kind.honours_pause,
            quanta_needed: kind.quanta.0,
            quanta: kind.quanta.1,
        }
    });
    HeadroomJson { suffices: buffers.suffice(), kinds: kinds.collect() }
}

fn verdict<'a>(proof: &'a Proof<'_>, verdict: &'a Verdict) -> VerdictJson<'a> {
    match verdict {
        Verdict::Free(chain) => {
            let chain = chain.iter().map(|&buffer| ends(proof.fabric, buffer).0);
            VerdictJson { free: true, longest_chain: Some(chain.collect()), cycle: None }
        }
        Verdict::Cycle(found) => {
            VerdictJson { free: false, longest_chain: None, cycle: Some(cycle(proof, found)) }
        }
    }
}

fn cycle<'a>(proof: &'a Proof<'_>, cycle: &Cycle) -> CycleJson<'a> {
    let host = |host: usize| proof.fabric.hosts[host].name.as_str();
    let waits = cycle.waits.iter().map(|wait| {
        let (ingress, filled_from) = ends(proof.fabric, wait.buffer);
        let flows = wait.flows.iter().map(|&flow| {
            let (from, to) = proof.asked.hosts(flow);
            [host(from), host(to)]
        });
        WaitJson { ingress, filled_from, routes: wait.routes, flows: flows.collect() }
    });
    CycleJson {
        ports: ingress_ports(proof.fabric, cycle),
        waits: waits.collect(),
        is_shortest: cycle.is_shortest,
        entangled_buffers: cycle.entangled,
    }
}
