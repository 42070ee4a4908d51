//! Figure 4.5 of the thesis (000 §4.4.3): ping from host to host through a line of devices.

mod live;

use super::gates::{self, Gates};
use super::latency::{self, DEVICES_MAX, Latencies, micros, points, wire_time};
use super::line::{self, Line};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::{Context as _, Result, ensure};
use axon_plot::{Axis, Plot, Series};
use axon_sim::PingPlan;
use axon_wire::Span;

/// Experiment `axon/fig4.5`: host to host ping through 1 to 5 devices.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "axon/fig4.5",
    file: file!(),
    title: "Host to host ping through 1 to 5 devices",
    source: "000 §4.4.3, figure 4.5",
    setup: "Pings of 64 B and 1514 B frames between the ends of a line of Axon prototypes or of \
            commodity store-and-forward Ethernet switches, in the simulator. A host takes 25 us to \
            process a frame that has come, at both ends: 50 us of the round trip, which stand for \
            the interrupt, driver and stack of the paper's hosts (its interrupt coalescing was \
            off). Gates: the same frames through 1 to 5 devices of `rtl/` at their pins, both \
            ways, and the same hosts and wires. Where the lab may run, the same pings among real \
            Linux hosts through 1 to 5 \
            software switches, the shortest of 200.",
    run,
};

/// Host processing time from a frame's last bit to its stack or to ping.
pub const HOST: Span = Span::from_micros(25);
/// Data of an echo request in a frame of 60 bytes, and in the largest, without FCS.
const DATA: [u16; 2] = [18, 1472];
/// Ethernet, IPv4 and ICMP headers, in bytes.
const HEADERS_BYTES: usize = 14 + 20 + 8;
const SIZES: [&str; 2] = ["64 B", "1514 B"];
const COUNT: u16 = 10;
/// Accepted difference of "doubles" from 2, either way, in per cent.
const DOUBLES_PERCENT: f64 = 10.0;
/// Other host processing times, to show the figure's sensitivity to the chosen one.
const OTHER_HOSTS: [Span; 4] =
    [Span::from_micros(10), Span::from_micros(20), Span::from_micros(50), Span::from_micros(70)];
/// Accepted ratio of five switches to five Axons: less would be no gain, more would contradict the
/// paper's 28 us in a round trip of its hosts.
const RATIO: std::ops::RangeInclusive<f64> = 1.5..=5.0;

fn run(context: &mut Context) -> Result<Outcome> {
    let (mut axons, mut switches): (Latencies, Latencies) = Default::default();
    for (size, data) in DATA.into_iter().enumerate() {
        for devices in 1..=DEVICES_MAX {
            context.step(format!("{} through {devices}", SIZES[size]))?;
            let measure = |line: Line| round_trip(&line, data, HOST, context.seed);
            axons[size][devices - 1] = measure(Line::of_axons(devices))?;
            switches[size][devices - 1] = measure(Line::of_switches(devices))?;
        }
    }
    let mut outcome = Outcome::default();
    for (size, name) in SIZES.into_iter().enumerate() {
        let growth = |of: &Latencies| of[size][4] / of[size][0];
        let (flat, doubles) = (growth(&axons), growth(&switches));
        let row = format!("5 Axons over 1, {name}");
        outcome.rows.push(Row::at_most(row, "barely noticeable", flat, "x", 1.15));
        let row = format!("5 switches over 1, {name}");
        outcome.rows.push(Row::within(row, 2.0, doubles, "x", (2.0, DOUBLES_PERCENT)));
        let row = format!("5 switches over 5 Axons, {name}");
        let ratio = switches[size][4] / axons[size][4];
        let pass = RATIO.contains(&ratio);
        outcome.rows.push(Row::holds(row, "above 1", ratio, "x", "1.5 to 5", pass));
        outcome.remark(format!("1 Axon, {name}"), "", axons[size][0], "us");
        outcome.remark(format!("1 switch, {name}"), "", switches[size][0], "us");
    }
    outcome.by_construction(
        "a round trip is twice the 25 us of a host, which are ours, and the times of the devices, \
         which are set from figure 4.4. A ratio that misses its bound counts as missed.",
    );
    let in_gates = in_gates(&mut outcome, &axons, &switches)?;
    sensitivity(context, &mut outcome)?;
    let mut series = Vec::new();
    for (size, name) in SIZES.into_iter().enumerate() {
        series.push(Series::ours(format!("Axons, {name}"), points(&axons[size])));
        series.push(Series::ours(format!("switches, {name}"), points(&switches[size])));
    }
    let axes = (Axis::linear("devices", ""), Axis::linear("round trip", "us"));
    let title = "Ping through a line of devices";
    outcome.tables.push(latency::table("ping", &axons, &switches));
    outcome.tables.extend(in_gates);
    outcome.plots.push(Plot::lines("ping", title, axes.0, axes.1, series));
    match live(context)? {
        Ok(trips) => {
            for (size, name) in SIZES.into_iter().enumerate() {
                let (one, five) = (trips[size][0], trips[size][4]);
                outcome.remark(format!("lab: 1 software switch, {name}"), "", one, "us");
                outcome.remark(format!("lab: 5 software switches, {name}"), "", five, "us");
            }
        }
        Err(reason) => outcome.remark("lab: software switches", "", reason, ""),
    }
    outcome.note(
        "The thesis draws the figure without numbers; its text says that five Axons are barely \
         noticed and that five switches double the time of one. How much a given network adds \
         depends on the hosts: with 25 us a frame, large pings through five switches take 2.7 \
         times as long as through one, and the row is missed. No single time of a host makes both \
         sizes double: small pings do so with some 20 us, large ones with some 70 us. The hosts of \
         the thesis may take longer for large frames; ours take the same. A software switch stores \
         each frame and takes the time of a process that wakes up, so the lab's pings grow with \
         each, and with the machine's load.",
    );
    Ok(outcome)
}

/// Measures the devices of a round trip on gates, whose cycles nothing sets; hosts and wires are
/// those of the simulator.
fn in_gates(
    outcome: &mut Outcome,
    axons: &Latencies,
    switches: &Latencies,
) -> Result<Option<Table>> {
    if let Some(reason) = gates::missing()? {
        outcome.remark("gates", "", reason, "us");
        return Ok(None);
    }
    let columns = ["devices", "frame", "profile, us", "gates, us"];
    let (mut table, mut trips) = (Table::new("gates", &columns), Latencies::default());
    let wire = Line::of_axons(1).ends()?.hosts[0].wire;
    for (size, data) in DATA.into_iter().enumerate() {
        let frame_bytes = usize::from(data) + HEADERS_BYTES;
        for devices in 1..=DEVICES_MAX {
            let cycles = Gates::between_hosts(devices)?.pass(frame_bytes)?;
            let wires = wire.latency * (devices as u64 + 1);
            let way = wire_time(wire.rate, frame_bytes) + wires + gates::span(cycles.iter().sum());
            let trip = micros((way + HOST) * 2);
            trips[size][devices - 1] = trip;
            let profile = axons[size][devices - 1];
            table.push(vec![devices.into(), SIZES[size].into(), profile.into(), trip.into()]);
        }
        let name = format!("gates, 5 Axons over 1, {}", SIZES[size]);
        let growth = trips[size][4] / trips[size][0];
        outcome.rows.push(Row::at_most(name, "barely noticeable", growth, "x", 1.15));
        let name = format!("gates, 5 switches over 5 Axons, {}", SIZES[size]);
        outcome.remark(name, "above 1", switches[size][4] / trips[size][4], "x");
    }
    Ok(Some(table))
}

/// Returns the ratio of five switches to one with host times other than [`HOST`].
fn sensitivity(context: &mut Context, outcome: &mut Outcome) -> Result<()> {
    for host in OTHER_HOSTS {
        for (size, data) in DATA.into_iter().enumerate() {
            context.step(format!("{}, hosts that take {host}", SIZES[size]))?;
            let through =
                |devices| round_trip(&Line::of_switches(devices), data, host, context.seed);
            let growth = through(DEVICES_MAX)? / through(1)?;
            let name = format!("5 switches over 1, {}, hosts that take {host}", SIZES[size]);
            outcome.remark(name, 2.0, growth, "x");
        }
    }
    Ok(())
}

/// Measures round trips through software switches in us, or returns the reason why it cannot: a lab
/// needs root, or user namespaces, and its tools.
fn live(context: &mut Context) -> Result<Result<Latencies, String>> {
    let mut trips = Latencies::default();
    for devices in 1..=DEVICES_MAX {
        context.step(format!("real hosts through {devices} software switches"))?;
        match live::shortest(devices, &DATA, context.folder()) {
            Ok(shortest) => {
                for (of_size, least) in trips.iter_mut().zip(shortest) {
                    of_size[devices - 1] = micros(least);
                }
            }
            Err(error) => return Ok(Err(format!("not measured: {error:#}"))),
        }
    }
    Ok(Ok(trips))
}

/// Measures the shortest round trip of a ping between the ends of a line in us, where a host takes
/// `processing` for a received frame.
fn round_trip(line: &Line, data_bytes: u16, processing: Span, seed: u64) -> Result<f64> {
    let fabric = line.ends()?;
    let last = fabric.hosts.len() - 1;
    let mut world = line::booted(&fabric, seed)?;
    let target = world.address(last).context("every host has its address")?;
    for host in [0, last] {
        world
            .with_host(host, |host, _| host.rx_ring_mut().set_processing(processing))
            .context("power")?;
    }
    let interval = Span::from_millis(50);
    let plan = PingPlan { data_bytes, ..PingPlan::steady(target, interval, COUNT) };
    let id = world.ping(0, plan).context("power")?;
    world.run_for(interval * u64::from(COUNT) + Span::from_secs(2));
    let stats = world.ping_stats(id).context("the ping runs")?;
    ensure!(stats.received + 1 >= u32::from(COUNT), "{} of {COUNT} answered", stats.received);
    line::check_conservation(&world)?;
    Ok(micros(stats.rtt_min.context("an answer")?))
}
