//! One-way latency of frames through a line of devices, to the tick.

use super::line;
use crate::reproduce::{Figure, Table};
use anyhow::{Context, Result, ensure};
use axon_fabric::model::Fabric;
use axon_sim::apps::{Plan, UdpPlan};
use axon_wire::{Bytes, Rate, Span};

/// Devices of the longest line of figures 4.4 and 4.5.
pub(crate) const DEVICES_MAX: usize = 5;
/// Time in us by size of frame (small, large) and number of devices.
pub type Latencies = [[f64; DEVICES_MAX]; 2];

/// Preamble and FCS, in bytes.
const AROUND_BYTES: u64 = 8 + 4;
/// Ethernet, IPv4 and UDP headers, in bytes.
const HEADERS_BYTES: usize = 14 + 20 + 8;
const PORT: u16 = 7000;
/// Datagrams of one measurement: all alone in the fabric, so all take the same time.
const COUNT: u64 = 10;
const INTERVAL: Span = Span::from_micros(500);

/// Measures the time from the first bit of a frame out of the first host to its last bit in at the
/// last, with all wires idle. `frame_bytes` excludes the FCS, at least 60.
///
/// # Errors
/// The world does not boot, or a datagram is lost or late.
pub(crate) fn first_bit_to_last_bit(
    fabric: &Fabric,
    frame_bytes: usize,
    seed: u64,
) -> Result<Span> {
    let last = fabric.hosts.len() - 1;
    let mut world = line::booted(fabric, seed)?;
    let target = world.address(last).context("every host has its address")?;
    let sink = world
        .with_host(last, |host, now| host.start(Plan::UdpSink { port: PORT }, now))
        .context("power")?;
    // The first datagram sets up the route.
    let payload = frame_bytes - HEADERS_BYTES;
    let once = UdpPlan { target, port: PORT, payload, interval: INTERVAL, count: 1 };
    world.with_host(0, |host, now| host.start(Plan::Udp(once), now)).context("power")?;
    world.run_for(Span::from_millis(500));
    let heard = world.flow_stats(last, sink).context("a sink")?.received.clone();
    ensure!(heard.packets == 1, "the first datagram did not arrive");
    let sink = world
        .with_host(last, |host, now| host.start(Plan::UdpSink { port: PORT + 1 }, now))
        .context("power")?;
    let plan = UdpPlan { port: PORT + 1, count: COUNT, ..once };
    let source =
        world.with_host(0, |host, now| host.start(Plan::Udp(plan), now)).context("power")?;
    world.run_for(INTERVAL * (COUNT + 20));
    let port = world.host(0).and_then(|host| host.source_port(source)).context("a source")?;
    let from = (world.address(0).context("an address")?, port);
    let received = world.host(last).and_then(|host| host.received_from(sink, from));
    let received = received.context("no datagram arrived")?.clone();
    ensure!(received.packets == COUNT, "{} of {COUNT} datagrams arrived", received.packets);
    line::check_conservation(&world)?;
    received.latency.min().context("datagrams carry the time they were sent")
}

/// Returns the time of a frame's bits on a wire: preamble to FCS.
pub(crate) fn wire_time(rate: Rate, frame_bytes: usize) -> Span {
    rate.time_for(Bytes(AROUND_BYTES + frame_bytes.max(60) as u64))
}

/// Returns a span as nanoseconds, with the fraction of a tick.
pub(crate) fn nanos(span: Span) -> f64 {
    span.ticks() as f64 / 100.0
}

/// Returns a span as microseconds.
pub(crate) fn micros(span: Span) -> f64 {
    nanos(span) / 1e3
}

/// Returns both kinds of line in one table, a row for each number of devices.
pub(crate) fn table(name: &str, axons: &Latencies, switches: &Latencies) -> Table {
    let columns = [
        "devices",
        "Axons, 64 B, us",
        "Axons, 1514 B, us",
        "switches, 64 B, us",
        "switches, 1514 B, us",
    ];
    let mut table = Table::new(name, &columns);
    for at in 0..DEVICES_MAX {
        let figures = [axons[0][at], axons[1][at], switches[0][at], switches[1][at]];
        let row = std::iter::once(Figure::from(at + 1)).chain(figures.map(Figure::from));
        table.push(row.collect());
    }
    table
}

/// Returns one frame size as points of a plot over the number of devices.
pub(crate) fn points(of: &[f64; DEVICES_MAX]) -> Vec<(f64, f64)> {
    of.iter().enumerate().map(|(index, &us)| ((index + 1) as f64, us)).collect()
}
