//! Targeted flow control together with congestion notification (002 §7.6).

use super::watermarks::{
    BIN, FRAME_BYTES, RATE, at_ms, marks, priority, three_into_one, used, victims_and_aggressor,
};
use crate::reproduce::{Context, Outcome, Row, Table};
use anyhow::Result;
use axon_plane::notification::CnConfig;
use axon_plane::qcn::RpConfig;
use axon_plane::targeted::Choice;
use axon_sim::bare::{Plan, Seen};
use axon_wire::PortNo;
use axon_wire::priority::PrioritySet;

/// Time in ms at which the aggressor begins to send at line rate.
const BEGINS_MS: u64 = 4;
/// Time in ms from which the reaction points have settled.
const SETTLED_MS: u64 = 104;
const UNTIL_MS: u64 = 204;
/// Port of the aggressor.
const AGGRESSOR: PortNo = PortNo(2);

/// Result of one world once it has settled.
struct Came {
    /// XOFFs received by the aggressor per ms, at the beginning and later.
    stops: [f64; 2],
    /// XOFFs received by victims in total.
    victims_stops: usize,
    /// The worse victim: the least mean and the largest deviation, Gb/s.
    victim: (f64, f64),
    aggressor: f64,
    /// Utilisation of the outbound link in per cent.
    used: f64,
    queue_bytes_max: u64,
    lost: u64,
}

/// Measures congestion notification without and with targeted flow control, and adds the results.
pub(crate) fn measure(context: &mut Context, outcome: &mut Outcome) -> Result<()> {
    let columns = [
        "flow control",
        "QCN",
        "aggressor stopped per ms, first 4 ms",
        "aggressor stopped per ms, settled",
        "victims stopped, times",
        "worse victim, Gb/s",
        "worse deviation, Gb/s",
        "aggressor, Gb/s",
        "link used, %",
        "longest queue, bytes",
    ];
    let mut table = Table::new("with-qcn", &columns);
    let mut all = Vec::new();
    for (name, choice) in [("HW-LW", None), ("max-min (ours)", Some(Choice::MaxMin))] {
        for qcn in [false, true] {
            let with = if qcn { "with QCN" } else { "without QCN" };
            context.step(format!("{name} {with}"))?;
            let came = look(&plan(choice, qcn).run(at_ms(UNTIL_MS), context.seed));
            let row = |what: &str| format!("{name} {with}: {what}");
            let lost = came.lost as f64;
            outcome.rows.push(Row::within(row("lost"), 0.0, lost, "frames", (0.0, 0.0)));
            outcome.remark(row("stops at first"), "", came.stops[0], "per ms");
            outcome.remark(row("stops, settled"), "", came.stops[1], "per ms");
            outcome.remark(row("worse victim"), "", came.victim.0, "Gb/s");
            outcome.remark(row("its deviation"), "", came.victim.1, "Gb/s");
            outcome.remark(row("link used"), "", came.used, "%");
            table.push(vec![
                name.into(),
                with.into(),
                came.stops[0].into(),
                came.stops[1].into(),
                came.victims_stops.into(),
                came.victim.0.into(),
                came.victim.1.into(),
                came.aggressor.into(),
                came.used.into(),
                came.queue_bytes_max.into(),
            ]);
            all.push(came);
        }
    }
    let [alone, together] = [2, 3].map(|index: usize| all[index].stops[1]);
    let name = "max-min with QCN: the aggressor's stops, settled";
    let bound = "fewer than without QCN";
    outcome.rows.push(Row::holds(name, "fewer", together, "per ms", bound, together < alone));
    outcome.tables.push(table);
    Ok(())
}

fn plan(choice: Option<Choice>, qcn: bool) -> Plan {
    let sources = victims_and_aggressor(at_ms(UNTIL_MS), FRAME_BYTES);
    let mut plan = three_into_one(Some(marks(true, choice)), sources);
    if qcn {
        plan.switches[0].cn = Some(CnConfig::new(4, PrioritySet::only(priority())));
        plan.reaction = Some(RpConfig::for_port(RATE));
    }
    plan
}

fn look(seen: &Seen) -> Came {
    let stops = |from, until| {
        let during = seen.xoffs[0][AGGRESSOR.index()].iter();
        let count = during.filter(|at| (at_ms(from)..at_ms(until)).contains(at)).count();
        count as f64 / (until - from) as f64
    };
    let (sources, sink) = used(seen, (at_ms(SETTLED_MS), at_ms(UNTIL_MS)), BIN);
    let victims = &sources[..AGGRESSOR.index()];
    Came {
        stops: [stops(BEGINS_MS, 2 * BEGINS_MS), stops(SETTLED_MS, UNTIL_MS)],
        victims_stops: seen.xoffs[0][..AGGRESSOR.index()].iter().map(Vec::len).sum(),
        victim: (
            victims.iter().map(|used| used.mean).fold(f64::INFINITY, f64::min),
            victims.iter().map(|used| used.sd).fold(0.0, f64::max),
        ),
        aggressor: sources[AGGRESSOR.index()].mean,
        used: 10.0 * sink.mean,
        queue_bytes_max: seen.queued_bytes_max[0],
        lost: seen.all_lost(),
    }
}
