//! Proofs as JSON, with the content of the text output.

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

/// JSON output of `axon prove --json`.
#[derive(Serialize)]
pub(super) struct ProofJson<'a> {
    /// Name of the fabric in its file.
    fabric: &'a str,
    /// True if everything that was checked is proved.
    proved: bool,
    /// Algorithm that chooses paths, as in `controller.router` of the fabric file.
    router: &'static str,
    /// Routes that were checked.
    routes: RoutesJson,
    /// Layers of routes; empty if there is one.
    layers: Vec<LayerJson>,
    /// Links between switches that a route uses, each direction counted separately.
    links_in_use: usize,
    /// Pairs of buffers of which the first may wait for the second.
    dependencies: u64,
    /// Verdict on cycles of buffers that wait for each other.
    deadlock: VerdictJson<'a>,
    /// Description of the backup routes; null if the file wants none.
    backups: Option<String>,
    /// Effect of the failure of the links in `--fail`; null without.
    after_failure: Option<FailureJson<'a>>,
    /// Results of single failures, with `--fail each-link` or `--fail each-switch`; omitted
    /// without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailuresJson<'a>>,
    /// Pairs of hosts without a route: from, to.
    unreachable: Vec<[&'a str; 2]>,
    /// Check of the headroom; null for a fabric without DCB.
    headroom: Option<HeadroomJson<'a>>,
    /// PFC watchdog; null without one.
    watchdog: Option<WatchdogJson>,
    /// Permitted settings that may cost losses or a deadlock.
    warnings: Vec<&'static str>,
    /// Links whose two ends differ in their configuration.
    disagreements: Vec<String>,
    /// Ports at which lossless priorities have no PFC in force.
    without_pfc: Vec<WithoutPfcJson>,
    /// Assumptions of the proof.
    assumptions: Vec<&'static str>,
}

/// Routes that were checked.
#[derive(Serialize)]
struct RoutesJson {
    /// Number of checked routes: two for each pair of hosts.
    looked_at: usize,
    /// Number of routes in the fabric.
    all: u64,
    /// True if all routes were checked.
    complete: bool,
    /// True if the router always chooses the same route for a pair.
    fixed: bool,
    /// Seed with which pairs and routes were drawn.
    seed: u64,
    /// Description of the routes in words.
    says: String,
}

/// A layer of routes.
#[derive(Serialize)]
struct LayerJson {
    /// Priorities of the layer, 0 to 7.
    priorities: Vec<u8>,
    /// Number of routes that use the layer.
    routes: u64,
}

/// Verdict whether buffers may wait for each other in a cycle.
#[derive(Serialize)]
struct VerdictJson<'a> {
    /// True if there is no cycle.
    free: bool,
    /// Without a cycle, ingress ports along a longest chain of buffers that wait for each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_chain: Option<Vec<String>>,
    /// The cycle that was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycle: Option<CycleJson<'a>>,
}

/// A cycle of buffers that may wait for each other.
#[derive(Serialize)]
struct CycleJson<'a> {
    /// Ingress ports of the buffers, the first repeated at the end.
    ports: Vec<String>,
    /// Buffers of the cycle, each with the reason that it waits for the next.
    waits: Vec<WaitJson<'a>>,
    /// True if no cycle is shorter; false if the search ended before that was established.
    is_shortest: bool,
    /// Buffers on a cycle, or on a path from one cycle to another.
    entangled_buffers: usize,
}

/// A buffer that may wait for the next.
#[derive(Serialize)]
struct WaitJson<'a> {
    /// Ingress port that has the buffer.
    ingress: String,
    /// Port that fills the buffer.
    filled_from: String,
    /// Number of routes that continue from the buffer to the next.
    routes: u32,
    /// Some of these routes, each from a host to a host.
    flows: Vec<[&'a str; 2]>,
}

/// Effect of failed links on the routes.
#[derive(Serialize)]
struct FailureJson<'a> {
    /// Two ports of each failed link.
    failed: Vec<[String; 2]>,
    /// Number of routes that move.
    routes_moved: u64,
    /// Verdict for old and new routes together, as during the change.
    transition: VerdictJson<'a>,
}

/// Check of the buffers for frames that arrive after XOFF.
#[derive(Serialize)]
struct HeadroomJson<'a> {
    /// True if the headroom of all ports suffices.
    suffices: bool,
    /// Ports with headroom, by kind.
    kinds: Vec<PortsJson<'a>>,
}

/// Ports whose headroom is computed from the same figures.
#[derive(Serialize)]
struct PortsJson<'a> {
    /// Names of the ports, `s1-p0`.
    ports: &'a [String],
    /// True if the ports lead to hosts.
    to_host: bool,
    /// Rate of the links, in bits per second.
    rate_bps: u64,
    /// Lowest rate that the links ever have, in bits per second.
    slowest_bps: u64,
    /// One-way delay of the cable.
    cable_ns: u64,
    /// Terms whose sum is the needed headroom.
    terms: Vec<TermJson<'a>>,
    /// Headroom that each of the ports needs, in bytes.
    needed_bytes: u64,
    /// Headroom that is configured for each of the ports, in bytes.
    configured_bytes: u64,
    /// Maximum that a search for bad timings has found to arrive after XOFF, in bytes.
    found_bytes: u64,
    /// Number of timings that the search has tried.
    searched_runs: u64,
    /// True if the other end honours pauses for long enough.
    honours_pause: bool,
    /// Quanta that a pause needs, of 512 bit times each.
    quanta_needed: u64,
    /// Quanta in a pause frame.
    quanta: u64,
}

/// A term of the needed headroom.
#[derive(Serialize)]
struct TermJson<'a> {
    /// Name of the term.
    name: &'a str,
    /// Factor of the term.
    times: u64,
    /// Length of the term, in bits, counted once.
    bits: u64,
}

/// A port without PFC.
#[derive(Serialize)]
struct WithoutPfcJson {
    /// Name of the port, `s1-p0`.
    port: String,
    /// Lossless priorities without PFC at the port, 0 to 7.
    priorities: Vec<u8>,
}

/// Converts a proof to JSON.
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
