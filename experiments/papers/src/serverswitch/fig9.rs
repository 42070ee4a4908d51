//! Figure 9 (004 §6.1): forwarding of BCube's source routes, latency and packets per second.

use super::routing::{Routing, SIZES};
use crate::axon::latency::{first_bit_to_last_bit, micros, wire_time};
use crate::axon::line::Line;
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::Result;
use axon_fabric::device::Device;
use axon_plot::{Axis, Plot, Series};
use axon_wire::Span;

/// Experiment `serverswitch/fig9`: source-routed forwarding of BCube: latency and packets a second.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "serverswitch/fig9",
    file: file!(),
    title: "Source-routed forwarding of BCube: latency and packets a second",
    source: "004 §6.1, figure 9",
    setup: "Latency: one switch with the timing of the ServerSwitch (the profile `serverswitch`) \
            between two hosts, links of 1 Gb/s without length, first bit out to first bit in. \
            Packets: the pipeline in memory on one core of this machine, four ports in and out, \
            tables as figure 6 fills them (6 neighbours by 8 index values, filters for the own \
            server), every packet with its TTL, checksum and MACs rewritten, put on the wire and \
            taken off it. Beside it the same packets by a bare software path that reads the \
            next-hop address as an index into an array, as the paper's does.",
    run,
};

/// Latency in the text, us, by size.
const PAPER_US: [(usize, f64); 2] = [(64, 4.3), (1514, 15.6)];
/// Slope in ns per byte.
const PAPER_SLOPE: f64 = 7.7;
/// Packets per second of the paper's software on four cores; its chip drops nothing at line rate.
const PAPER_SOFTWARE_MPPS: f64 = 1.73;
/// Accepted difference of a latency from the paper's, per cent.
const PERCENT: f64 = 5.0;

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut latencies = Vec::new();
    for bytes in SIZES {
        context.step(format!("latency of {bytes} bytes"))?;
        // The paper's 64 bytes have an FCS; ours do not count it.
        let frame = if bytes == 64 { 60 } else { bytes };
        let mut fabric = Line::of_switches(1).ends()?;
        fabric.device = Device::server_switch();
        fabric.links.iter_mut().for_each(|link| link.wire.latency = Span::ZERO);
        fabric.hosts.iter_mut().for_each(|host| host.wire.latency = Span::ZERO);
        let through = first_bit_to_last_bit(&fabric, frame, context.seed)?;
        let bits = wire_time(fabric.hosts[0].wire.rate, frame);
        latencies.push((bytes as f64, micros(through) - micros(bits)));
    }
    for (bytes, theirs) in PAPER_US {
        let at = latencies.iter().find(|(size, _)| *size == bytes as f64);
        let ours = at.map_or(f64::NAN, |(_, us)| *us);
        let row = Row::within(format!("latency, {bytes} B"), theirs, ours, "us", (theirs, PERCENT));
        outcome.rows.push(row);
    }
    let (small, large) = (latencies[0], latencies[latencies.len() - 1]);
    let slope = 1e3 * (large.1 - small.1) / (large.0 - small.0);
    let row = Row::within("slope", PAPER_SLOPE, slope, "ns/B", (PAPER_SLOPE, PERCENT));
    outcome.rows.push(row);
    outcome.by_construction(
        "the profile's one stage is set from both latencies; storing a frame at 1 Gb/s gives the \
         slope. None of these three could have come out otherwise.",
    );
    let mut table = Table::new("packets", &["bytes", "pipeline, Mpps", "array in software, Mpps"]);
    let (mut pipeline, mut software) = (Vec::new(), Vec::new());
    for bytes in SIZES {
        context.step(format!("packets of {bytes} bytes"))?;
        let mut routing = Routing::new(bytes)?;
        let (tables, array) = routing.measure()?;
        table.push(vec![(bytes as f64).into(), tables.into(), array.into()]);
        pipeline.push((bytes as f64, tables));
        software.push((bytes as f64, array));
    }
    let (tables, array) = (pipeline[0].1, software[0].1);
    let name = "packets a second on one core, 64 B, pipeline";
    outcome.remark(name, "line rate, a chip", tables, "Mpps");
    outcome.remark("the same, array in software", PAPER_SOFTWARE_MPPS, array, "Mpps");
    let (name, paper) = ("pipeline over array", "chip far ahead of software");
    outcome.rows.push(Row::at_least(name, paper, tables / array, "x", 1.0).effect());
    outcome.tables.push(table);
    outcome.plots.push(plot(&latencies, &pipeline));
    outcome.note(
        "The paper's effect is that the tables of a chip are far ahead of software. It does not \
         show here and cannot: our tables are software too, and do more for each packet than the \
         bare array beside them, so they are far behind it. Only hardware could show it.",
    );
    outcome.note(
        "The paper's 1.73 Mpps are of its software on a quad core of 2.8 GHz with four NICs; ours \
         are in memory on one core of today, without NICs, by this build of the program on the \
         machine as it was: what the tables cost, not what a machine forwards. Losses are not \
         compared: the chip forwards at line rate.",
    );
    Ok(outcome)
}

fn plot(latencies: &[(f64, f64)], pipeline: &[(f64, f64)]) -> Plot {
    let paper = PAPER_US.map(|(bytes, us)| (bytes as f64, us));
    let series = vec![
        Series::theirs("latency, paper, us", paper.to_vec()),
        Series::ours("latency, us", latencies.to_vec()),
        Series::ours("pipeline on one core, Mpps", pipeline.to_vec()),
    ];
    Plot::lines(
        "forwarding",
        "Source-routed forwarding of BCube",
        Axis::linear("frame", "B"),
        Axis::linear("latency and packets", "us, Mpps"),
        series,
    )
}
