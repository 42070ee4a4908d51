//! Figure 10 (004 §6.1): in-network cache, and the traffic that it saves on the way to the servers.

use super::requests::{Load, Requests};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::Result;
use axon_plot::{Axis, Plot, Series};

/// Experiment `serverswitch/fig10`: a cache in the network: saving by hit ratio.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "serverswitch/fig10",
    file: file!(),
    title: "A cache in the network: saving by hit ratio",
    source: "004 §6.1, figure 10",
    setup: "One switch with the program `bridge`, links of 1 Gb/s. Two clients ask a server each, \
            79,000 requests of 128 bytes a second on each link (the paper's 85.8 Mb/s), and get \
            replies of 1514 bytes. A TCAM entry sends requests and replies to the agent at its \
            agent port (4 Gb/s), which answers from its cache or passes them on. The share of \
            requests for IDs that were asked for before is set from 0 to 100 per cent; 0.2 s \
            each.",
    run,
};

/// Shares of repeated requests, per cent.
const SHARES: [u64; 11] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/// Accepted difference of a saving from the hit ratio, in points of a per cent.
const POINTS: f64 = 1.0;
/// The paper's CPU load without any hit, per cent of its four cores.
const PAPER_CPU: f64 = 14.0;

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = [
        "asked before, %",
        "hit ratio, %",
        "saved on the links from B, %",
        "replies from B, Mb/s a link",
        "replies to A, Mb/s a link",
        "lost",
        "agent, ns a request",
    ];
    let mut table = Table::new("cache", &columns);
    let (mut savings, mut costs) = (Vec::new(), Vec::new());
    let mut base = None;
    for share in SHARES {
        context.step(format!("{share} %"))?;
        let seen = Requests::run(share, context.seed)?;
        let base = *base.get_or_insert(seen.server_bytes as f64);
        let saving = 100.0 * (1.0 - seen.server_bytes as f64 / base);
        let hit_ratio = 100.0 * seen.hits as f64 / (seen.hits + seen.misses) as f64;
        let name = format!("{share} %: hit ratio");
        let bound = (share as f64 - POINTS, share as f64 + POINTS);
        let row = Row::between(name, share as f64, hit_ratio, "%", bound);
        outcome.rows.push(row.by_construction());
        let name = format!("{share} %: saving less hit ratio");
        let bound = (-POINTS, POINTS);
        // Both are ratios of counts; differences below a billionth are rounding errors.
        let difference = ((saving - hit_ratio) * 1e9).round() / 1e9;
        let row = Row::between(name, 0.0, difference, "points", bound);
        outcome.rows.push(row.by_construction());
        let name = format!("{share} %: requests without their reply, or with another's");
        let lost = (seen.asked - seen.answered) as f64;
        outcome.rows.push(Row::within(name, "", lost, "", (0.0, 0.0)));
        let cost = Load::measure(share)?;
        savings.push((hit_ratio, saving));
        costs.push((hit_ratio, cost.core_percent()));
        table.push(vec![
            (share as f64).into(),
            hit_ratio.into(),
            saving.into(),
            seen.mbps(seen.server_bytes).into(),
            seen.mbps(seen.client_bytes).into(),
            lost.into(),
            cost.nanos.into(),
        ]);
    }
    let [none, all] =
        [costs.first(), costs.last()].map(|cost| cost.map_or(f64::NAN, |cost| cost.1));
    outcome.remark("CPU at 0 hits: theirs of four cores, ours of one", PAPER_CPU, none, "%");
    let (what, bound) = ("CPU at 100 % hits, of one core", format!("> {none:.0}"));
    let row = Row::holds(what, "more than at 0 hits", all, "%", bound, all > none);
    outcome.rows.push(row.effect());
    let y = Axis::linear("saving, and load of the agent", "%");
    let series = vec![
        Series::theirs("saving, paper", vec![(0.0, 0.0), (100.0, 100.0)]),
        Series::ours("saving", savings),
        Series::ours("agent, of one core", costs),
    ];
    let x = Axis::linear("hit ratio", "%");
    outcome.plots.push(Plot::lines("cache", "A cache in the network", x, y, series));
    outcome.tables.push(table);
    outcome.notes.extend(NOTES.map(str::to_owned));
    Ok(outcome)
}

const NOTES: [&str; 4] = [
    "By construction: the hit ratio is set, as IDs are asked for that were asked for before and \
     still are in the cache, and a server that is not asked sends nothing. These rows say that \
     the cache works, and nothing of the paper's figure; its effect that could have come out \
     otherwise is the load of the CPU.",
    "In the paper an exact-match table in the chip knows which IDs are cached, so that only those \
     requests go to the CPU. Here every request does, and the agent sends on what it does not \
     know.",
    "The paper's CPU load is of a driver and a kernel on four cores. Ours is the agent's own code \
     with its payload buffers, in memory on one core of this machine, at the packet rates above: \
     what moves packets between switch and agent is not in it. It falls with hits where the \
     paper's grows. We take the reason to be that all requests and replies come to our agent, \
     and the more hits, the fewer replies, while the paper's chip spares its CPU the requests \
     that miss.",
    "In the simulation the agent takes no time for a packet. So that nothing is lost says \
     something of its buffers and queues, and nothing of its CPU.",
];
