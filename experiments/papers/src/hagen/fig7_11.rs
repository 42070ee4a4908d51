//! Figure 7-11 (002 §7.5): targeted flow control over two hops.

use super::watermarks::{
    BIN, FRAME_BYTES, LATENCY, QUARTER, RATE, at_ms, choices, marks, priority, switch, used,
};
use super::with_qcn;
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::Result;
use axon_plane::targeted::{Choice, Watermarks};
use axon_sim::bare::{Phase, Plan, Sink, Source};
use axon_wire::{PortNo, Span};

/// Experiment `hagen/fig7-11`: targeted flow control over two hops, and together with QCN.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hagen/fig7-11",
    file: file!(),
    title: "Targeted flow control over two hops, and together with QCN",
    source: "002 §7.5 and §7.6, figure 7-11",
    setup: "Switch A has one port out, and before it switch B and two victims of 2.5 Gb/s; before \
            switch B are the aggressor, device A, at line rate and a victim of 1.25 Gb/s, device \
            B. All links 10 Gb/s, queues and marks as in hagen/fig7-7. Who is paused, and how the \
            victims' throughput varies from 2 to 22 ms. Then the world of hagen/table7.1 for 204 \
            ms, without and with a congestion point at the port (the MIB's defaults, a set point \
            of 26,000 bytes) and reaction points in the sources.",
    run,
};

const FROM_MS: u64 = 2;
const UNTIL_MS: u64 = 22;
/// Switches of the world.
const A: usize = 0;
const B: usize = 1;
/// Port of both switches towards the sink, and that of A towards B.
const OUT: PortNo = PortNo(3);
const TO_B: PortNo = PortNo(0);
/// Sources: name, switch, port, and frame interval.
const SOURCES: [(&str, usize, PortNo, Span); 4] = [
    ("device A, the aggressor", B, PortNo(0), Span::ZERO),
    ("device B, a victim behind B", B, PortNo(1), Span::from_ticks(2 * QUARTER.ticks())),
    ("victim 1 at A", A, PortNo(1), QUARTER),
    ("victim 2 at A", A, PortNo(2), QUARTER),
];

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = ["who is to stop", "what", "XOFF, times", "mean, Gb/s", "deviation, Gb/s"];
    let mut table = Table::new("two-hops", &columns);
    for (name, choice) in choices(context.seed) {
        context.step(name)?;
        let seen = plan(marks(true, choice)).run(at_ms(UNTIL_MS), context.seed);
        let (sources, sink) = used(&seen, (at_ms(FROM_MS), at_ms(UNTIL_MS)), BIN);
        let xoffs = |switch: usize, port: PortNo| seen.xoffs[switch][port.index()].len();
        let ours = choice == Some(Choice::MaxMin);
        let lost = seen.all_lost() as f64;
        outcome.rows.push(Row::within(format!("{name}: lost"), 0.0, lost, "frames", (0.0, 0.0)));
        let mut say = |what: &str, stops: usize, used: (f64, f64), targets: bool| {
            let row = vec![name.into(), what.into(), stops.into(), used.0.into(), used.1.into()];
            table.push(row);
            let what = format!("{name}: {what}, XOFF");
            let paper = if targets { "paused" } else { "not paused" };
            if choice.is_some() {
                let (bound, pass) = if targets { ("> 0", stops > 0) } else { ("= 0", stops == 0) };
                outcome.rows.push(Row::holds(what, paper, stops, "times", bound, pass));
            } else {
                outcome.remark(what, paper, stops, "times");
            }
        };
        say("switch B, by switch A", xoffs(A, TO_B), (f64::NAN, f64::NAN), true);
        for ((what, switch, port, interval), used) in SOURCES.into_iter().zip(&sources) {
            let targets = interval == Span::ZERO;
            say(what, xoffs(switch, port), (used.mean, used.sd), targets);
        }
        let worst = sources[1..].iter().map(|used| used.sd).fold(0.0, f64::max);
        let percent = 10.0 * sink.mean;
        let (what, link) = (format!("{name}: worst victim"), format!("{name}: link used"));
        if ours {
            outcome.rows.push(Row::at_most(what, "", worst, "Gb/s", 0.05));
            outcome.rows.push(Row::at_least(link, "", percent, "%", 99.0));
        } else {
            outcome.remark(what, "", worst, "Gb/s");
            outcome.remark(link, "", percent, "%");
        }
    }
    outcome.tables.push(table);
    with_qcn::measure(context, &mut outcome)?;
    outcome.note(
        "The paper describes this and measures nothing. What it states of targeted PFC, whatever \
         the mechanism: switch A pauses switch B only, switch B stops device A only. Random \
         sampling, which draws victims too, does not. A stop of switch B holds the frames of \
         device B in it too; its sender is not stopped.",
    );
    Ok(outcome)
}

fn plan(marks: Watermarks) -> Plan {
    let phase = |interval| Phase { from: at_ms(1), until: at_ms(UNTIL_MS), interval };
    let source = |(_, switch, port, interval)| Source {
        at: (switch, port),
        route: vec![OUT; switch + 1],
        priority: priority(),
        frame_bytes: FRAME_BYTES as usize,
        phases: vec![phase(interval)],
    };
    Plan {
        switches: vec![switch(4, 0, Some(marks)), switch(4, 1, Some(marks))],
        links: vec![[(B, OUT), (A, TO_B)]],
        sources: SOURCES.into_iter().map(source).collect(),
        sinks: vec![Sink::quiet((A, OUT))],
        reaction: None,
        rate: RATE,
        latency: LATENCY,
    }
}
