//! Figure 4.1 of the thesis (000 §4.3.1): bandwidth overhead of a source route.
//!
//! On a saturated link each frame takes its bytes, 8 of preamble, 4 of FCS and 12 of gap (IEEE
//! 802.3 clauses 3.1.1 and 4.4.2), and on links between Axons its route header. TCP delivers the
//! rest after 14 bytes of Ethernet, 20 of IPv4 and 20 of TCP.

use super::line::{self, Line};
use crate::reproduce::{Context, Experiment, Figure, Outcome, Row, Table};
use anyhow::{Context as _, Result};
use axon_plot::{Axis, Plot, Series};
use axon_sim::apps::{Plan, TcpOptions, TcpPlan};
use axon_wire::link::ETHERNET_BYTES;
use axon_wire::{HopWidth, Span};

/// Experiment `axon/fig4.1`: maximum TCP goodput against frame size.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "axon/fig4.1",
    file: file!(),
    title: "Maximum TCP goodput against frame size",
    source: "000 §4.3.1, figure 4.1",
    setup: "The formula: payload over bytes on the wire of 1 Gb/s, with the header of the real \
            codec (hops of 4 bits, as in the thesis). The measurement: a line of 2, 10 and 100 \
            Axons, MTU 576, 1000 and 1500, one TCP stream (Reno, a window of 180 segments) from \
            the first to the last host, cut-through prototype switches, buffers larger than the \
            window; bytes delivered in 200 ms after 100 ms.",
    run,
};

/// The links, bits per second.
const LINK: f64 = 1e9;
/// Width of hops in the thesis.
const WIDTH: HopWidth = HopWidth::Four;
/// Preamble, FCS and gap.
const AROUND_BYTES: usize = 8 + 4 + 12;
/// Ethernet, IPv4 and TCP headers.
const HEADERS_BYTES: usize = 14 + 20 + 20;
/// Hops of the thesis's curves.
const CURVES: [usize; 3] = [1, 10, 100];
/// Frames of the plot, without FCS.
const FRAMES: std::ops::RangeInclusive<usize> = 60..=1514;
const MEASURED_HOPS: [usize; 3] = [2, 10, 100];
const MEASURED_MTU: [u16; 3] = [576, 1000, 1500];
/// Full segments in a window, an even number, so that no segment is less than full: the queue
/// before the first link between Axons, which is slower than the host's by its headers, holds
/// all of them.
const WINDOW_SEGMENTS: usize = 180;
const START: Span = Span::from_millis(100);
const MEASURED: Span = Span::from_millis(200);
const PORT: u16 = 5001;

/// Returns the TCP payload in bits per second over one saturated link, for Ethernet frames of
/// `frame_bytes` (without FCS) behind a header of `header_bytes` (none on Ethernet).
fn goodput(frame_bytes: usize, header_bytes: usize) -> f64 {
    let payload = frame_bytes.saturating_sub(HEADERS_BYTES) as f64;
    LINK * payload / (frame_bytes + header_bytes + AROUND_BYTES) as f64
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut table =
        Table::new("measured", &["hops", "frame, bytes", "formula, Mb/s", "ours, Mb/s"]);
    for hops in MEASURED_HOPS {
        for mtu in MEASURED_MTU {
            context.step(format!("{hops} hops, MTU {mtu}"))?;
            let frame_bytes = usize::from(mtu) + ETHERNET_BYTES;
            let formula = goodput(frame_bytes, WIDTH.header_bytes(hops)) / 1e6;
            let ours = measure(hops, mtu, context.seed)? / 1e6;
            let name = format!("{hops} hops, frames of {frame_bytes} bytes");
            outcome.rows.push(Row::within(name, formula, ours, "Mb/s", (formula, 0.1)));
            table.push(vec![hops.into(), frame_bytes.into(), formula.into(), ours.into()]);
        }
    }
    let largest = *FRAMES.end();
    let cost = 100.0 * (goodput(largest, 0) - goodput(largest, WIDTH.header_bytes(100))) / LINK;
    let name = "formula: 100 hops cost, largest frame, of the link";
    let holds = (2.5..3.5).contains(&cost);
    outcome.rows.push(Row::holds(name, 3.0, cost, "%", "3 when rounded", holds));
    let ten = 100.0 * (goodput(largest, 0) - goodput(largest, WIDTH.header_bytes(10))) / LINK;
    outcome.remark("formula: 10 hops cost, largest frame, of the link", "negligible", ten, "%");
    outcome.tables.push(formula_table());
    outcome.tables.push(table);
    outcome.plots.push(plot());
    outcome.note(
        "A route of one hop never stands on a wire between switches (its only switch takes the \
         header off), so the shortest measured route has two. The paper column of the measured \
         rows is the formula.",
    );
    Ok(outcome)
}

/// Measures the goodput of a TCP stream over a line of Axons in bits per second.
fn measure(hops: usize, mtu: u16, seed: u64) -> Result<f64> {
    let mut fabric = Line::of_axons(hops).ends()?;
    fabric.hop_width = WIDTH;
    fabric.mtu = mtu;
    let mut world = line::booted(&fabric, seed)?;
    let target = world.address(1).context("every host has its address")?;
    let segment = usize::from(mtu) + ETHERNET_BYTES - HEADERS_BYTES;
    let buffer_bytes = WINDOW_SEGMENTS * segment;
    // With Nagle's algorithm, as a bulk sender has it: short segments are delayed.
    let options = TcpOptions { buffer_bytes, nagle: true, ..TcpOptions::default() };
    let sink =
        world.with_host(1, |host, now| host.start(Plan::TcpSink { port: PORT, options }, now));
    let sink = sink.context("the host has power")?;
    let plan = TcpPlan { target, port: PORT, bytes: None, options };
    world.with_host(0, |host, now| host.start(Plan::Tcp(plan), now));
    world.run_for(START);
    let received = |world: &axon_sim::World| {
        world.flow_stats(1, sink).map_or(0, |stats| stats.received.bytes.0)
    };
    let before = received(&world);
    world.run_for(MEASURED);
    let bytes = received(&world) - before;
    line::check_conservation(&world)?;
    Ok(bytes as f64 * 8.0 * 1e9 / MEASURED.as_nanos() as f64)
}

fn header_bytes(hops: Option<usize>) -> usize {
    hops.map_or(0, |hops| WIDTH.header_bytes(hops))
}

fn curves() -> impl Iterator<Item = Option<usize>> {
    std::iter::once(None).chain(CURVES.map(Some))
}

fn formula_table() -> Table {
    let columns = [
        "frame without FCS, bytes",
        "Ethernet, Mb/s",
        "1 hop, Mb/s",
        "10 hops, Mb/s",
        "100 hops, Mb/s",
    ];
    let mut table = Table::new("formula", &columns);
    for frame in FRAMES {
        let mut row = vec![Figure::from(frame)];
        row.extend(curves().map(|hops| Figure::from(goodput(frame, header_bytes(hops)) / 1e6)));
        table.push(row);
    }
    table
}

fn plot() -> Plot {
    let series = curves().map(|hops| {
        let name = match hops {
            None => "Ethernet".to_owned(),
            Some(1) => "1 hop".to_owned(),
            Some(hops) => format!("{hops} hops"),
        };
        let point = |frame| (frame as f64, goodput(frame, header_bytes(hops)) / 1e6);
        Series::ours(name, FRAMES.map(point).collect())
    });
    let axes = (Axis::linear("frame without FCS", "bytes"), Axis::linear("TCP goodput", "Mb/s"));
    let title = "Maximum TCP goodput over 1 Gb/s";
    Plot::lines("formula", title, axes.0, axes.1, series.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_ethernet_frame_gives_what_everybody_knows() {
        assert!((goodput(1514, 0) / 1e6 - 949.285).abs() < 0.001);
        assert_eq!(goodput(54, 0), 0.0);
    }

    #[test]
    fn a_short_line_carries_what_the_formula_says() {
        let ours = measure(2, 1500, 1).unwrap();
        let formula = goodput(1514, WIDTH.header_bytes(2));
        assert!((ours / formula - 1.0).abs() < 0.001, "{ours} instead of {formula}");
    }
}
