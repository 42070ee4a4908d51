//! What was proved, as JSON.

use super::buffers::Buffers;
use super::names::name;
use super::proof::Proof;
use super::show::{assumptions, layers, scope};
use axon_fabric::cycle::{ends, ingress_ports};
use axon_prove::{Cycle, Verdict};
use serde_json::{Value, json};

/// The same as the text says.
pub(super) fn value(proof: &Proof<'_>) -> Value {
    let Proof { fabric, asked, dependencies, .. } = proof;
    let failed = asked.failed.iter().map(|&link| {
        let link = &fabric.links[link];
        [name(fabric, link.a), name(fabric, link.b)]
    });
    let host = |host: usize| fabric.hosts[host].name.as_str();
    let unreachable = proof.unreachable.iter().map(|&(from, to)| [host(from), host(to)]);
    let after_failure = proof.mixed.as_ref().map(|mixed| {
        json!({
            "failed": failed.collect::<Vec<_>>(),
            "routes_moved": proof.moved,
            "transition": verdict(proof, mixed),
        })
    });
    let layers = layers(proof).map(|(priorities, routes)| {
        let priorities = priorities.iter().map(|priority| priority.value()).collect::<Vec<_>>();
        json!({ "priorities": priorities, "routes": routes })
    });
    json!({
        "fabric": fabric.name,
        "proved": proof.is_proved(),
        "router": fabric.controller.router.name(),
        "routes": {
            "looked_at": asked.pairs.len() * 2,
            "all": asked.all * 2,
            "complete": asked.is_all(),
            "fixed": fabric.controller.router.is_fixed(),
            "seed": asked.seed,
            "says": scope(proof),
        },
        "layers": layers.collect::<Vec<_>>(),
        "links_in_use": dependencies.links(),
        "dependencies": dependencies.count(),
        "deadlock": verdict(proof, &proof.verdict),
        "after_failure": after_failure,
        "unreachable": unreachable.collect::<Vec<_>>(),
        "headroom": proof.buffers.as_ref().map(headroom),
        "watchdog": proof.watchdog.as_ref().map(|watchdog| watchdog.json(fabric)),
        "warnings": super::watchdog::warning(fabric).into_iter().collect::<Vec<_>>(),
        "disagreements": proof.disagreements.iter()
            .map(|(link, mismatch)| super::neighbours::text(fabric, *link, mismatch))
            .collect::<Vec<_>>(),
        "without_pfc": proof.without_pfc.iter()
            .map(|&(port, priorities)| {
                let priorities = priorities.iter().map(|one| one.value()).collect::<Vec<_>>();
                json!({ "port": name(fabric, port), "priorities": priorities })
            })
            .collect::<Vec<_>>(),
        "assumptions": assumptions(proof).collect::<Vec<_>>(),
    })
}

fn headroom(buffers: &Buffers) -> Value {
    let kinds = match buffers {
        Buffers::Lossy => &[][..],
        Buffers::Lossless(kinds) => kinds,
    };
    let kinds = kinds.iter().map(|kind| {
        let terms = kind
            .formula
            .terms()
            .map(|term| json!({ "name": term.name, "times": term.times, "bits": term.bits }));
        json!({
            "ports": kind.ports,
            "to_host": kind.is_host,
            "rate_bps": kind.formula.rate.bits_per_second(),
            "slowest_bps": kind.formula.slowest.bits_per_second(),
            "cable_ns": kind.formula.cable.as_nanos(),
            "terms": terms,
            "needed_bytes": kind.needed.0,
            "configured_bytes": kind.configured.0,
            "found_bytes": kind.searched.most.0,
            "searched_runs": kind.searched.runs,
            "honours_pause": kind.honours_pause,
            "quanta_needed": kind.quanta.0,
            "quanta": kind.quanta.1,
        })
    });
    json!({ "suffices": buffers.suffice(), "kinds": kinds.collect::<Vec<_>>() })
}

fn verdict(proof: &Proof<'_>, verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Free(chain) => {
            let chain: Vec<String> =
                chain.iter().map(|&buffer| ends(proof.fabric, buffer).0).collect();
            json!({ "free": true, "longest_chain": chain })
        }
        Verdict::Cycle(found) => json!({ "free": false, "cycle": cycle(proof, found) }),
    }
}

fn cycle(proof: &Proof<'_>, cycle: &Cycle) -> Value {
    let host = |host: usize| proof.fabric.hosts[host].name.as_str();
    let waits = cycle.waits.iter().map(|wait| {
        let (ingress, from) = ends(proof.fabric, wait.buffer);
        let flows = wait.flows.iter().map(|&flow| {
            let (from, to) = proof.asked.hosts(flow);
            [host(from), host(to)]
        });
        json!({
            "ingress": ingress,
            "filled_from": from,
            "routes": wait.routes,
            "flows": flows.collect::<Vec<_>>(),
        })
    });
    json!({
        "ports": ingress_ports(proof.fabric, cycle),
        "waits": waits.collect::<Vec<_>>(),
        "is_shortest": cycle.is_shortest,
        "entangled_buffers": cycle.entangled,
    })
}
