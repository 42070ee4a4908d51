//! Figure 4.4 of the thesis (000 §4.4.3): latency of small and large probes through a line.

use super::gates::{self, Gates};
use super::latency::{
    self, DEVICES_MAX, Latencies, first_bit_to_last_bit, micros, points, wire_time,
};
use super::line::{self, Line};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::{Context as _, Result, ensure};
use axon_fabric::model::{End, Fabric};
use axon_node::probe::{PlanKind, ProbePlan};
use axon_plot::{Axis, Plot, Series};
use axon_sim::World;
use axon_sim::probe::{finish, is_path_known};
use axon_wire::{PortNo, Span, Time};
use std::path::Path;

/// Experiment `axon/fig4.4`: latency of probes through 1 to 5 devices.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "axon/fig4.4",
    file: file!(),
    title: "Latency of probes through 1 to 5 devices",
    source: "000 §4.4.3, figure 4.4",
    setup: "Axons: a ring of prototypes; one sends a probe out by one port and has it back by the \
            other, and compares the time stamps of its own two probe units, less its own pipeline \
            between them and the wires. Switches: a line of commodity store-and-forward Ethernet \
            switches (the profile `store-and-forward`); frames between two hosts, from the first \
            bit out to the first bit in. Each wire takes 317 ns, which is what is left of the \
            paper's 4.5 us for five Axons of 520 ns and six wires with their transceivers. Gates: \
            frames of the same sizes through 1 to 5 devices of `rtl/` at their pins, with the same \
            wires.",
    run,
};

/// Smallest probe in bytes without FCS; 64 with it.
const SMALL: usize = 60;
/// Largest probe in bytes without FCS.
const LARGE: usize = 1514;
/// A wire and the transceivers at both ends: (4.5 us - 5 * 520 ns) / 6.
const WIRE: Span = Span::from_nanos(317);
/// Latencies of the text in us: one Axon, five; a switch by size; five.
const PAPER_AXON_US: (f64, f64) = (1.0, 4.5);
const PAPER_SWITCH_US: (f64, f64) = (7.0, 28.0);
const PAPER_FIVE_SWITCHES_US: f64 = 137.0;
/// Timeout of discovery, or of a probe.
const LIMIT: Span = Span::from_secs(10);

fn run(context: &mut Context) -> Result<Outcome> {
    let (mut axons, mut switches): (Latencies, Latencies) = Default::default();
    for (size, bytes) in [SMALL, LARGE].into_iter().enumerate() {
        for devices in 1..=DEVICES_MAX {
            context.step(format!("{bytes} bytes through {devices}"))?;
            axons[size][devices - 1] = micros(probe(devices, bytes, context.seed)?);
            let mut fabric = Line::of_switches(devices).ends()?;
            set_wires(&mut fabric);
            let through = first_bit_to_last_bit(&fabric, bytes, context.seed)?;
            let bits = wire_time(fabric.hosts[0].wire.rate, bytes);
            switches[size][devices - 1] = micros(through) - micros(bits);
        }
    }
    let mut outcome = Outcome::default();
    let slope = |of: &[f64; DEVICES_MAX]| (of[4] - of[0]) / 4.0;
    for (name, of) in [("64 B", &axons[0]), ("1514 B", &axons[1])] {
        let one = PAPER_AXON_US.0;
        let row = Row::within(format!("1 Axon, {name}"), one, of[0], "us", (one, 20.0));
        outcome.rows.push(row);
        let theirs = (PAPER_AXON_US.1 - PAPER_AXON_US.0) / 4.0;
        let name = format!("each Axon adds, {name}");
        outcome.rows.push(Row::within(name, theirs, slope(of), "us", (theirs, 10.0)));
    }
    let apart = (axons[0][4] - axons[1][4]).abs();
    outcome.rows.push(Row::at_most("5 Axons: large less small", "none", apart, "us", 0.01));
    outcome.by_construction(
        "the wires are set so that five Axons of table 4.2 take the paper's 4.5 us, and the \
         profile cuts through, so that size cannot matter.",
    );
    let in_gates = in_gates(&mut outcome, &axons)?;
    let (small, large) = PAPER_SWITCH_US;
    let five = PAPER_FIVE_SWITCHES_US;
    // The wires and the switch profile were set from these values, so no bound could fail.
    outcome.remark("5 Axons, 64 B (the wires are set from it)", PAPER_AXON_US.1, axons[0][4], "us");
    outcome.remark("1 switch, 64 B (the profile is set from it)", small, switches[0][0], "us");
    outcome.remark("1 switch, 1514 B (the same)", large, switches[1][0], "us");
    outcome.remark("5 switches, 1514 B (the same)", five, switches[1][4], "us");
    let (theirs, ratio) = (five / PAPER_AXON_US.1, switches[1][4] / axons[1][4]);
    outcome.remark("5 switches over 5 Axons, 1514 B (set by both)", theirs, ratio, "x");
    let theirs = (five - large) / 4.0;
    outcome.remark("each switch adds, 1514 B (the same)", theirs, slope(&switches[1]), "us");
    outcome.remark("each switch adds, 64 B", "", slope(&switches[0]), "us");
    let (table, plot) = drawn(&axons, &switches);
    outcome.tables.push(table);
    outcome.tables.extend(in_gates);
    outcome.plots.push(plot);
    outcome.note(
        "The paper gives these figures in its text and draws the others. Its Axons' 4.5 us are \
         more than five times the 520 ns of table 4.2, which was simulated from MAC to MAC; the \
         rest is put on the wires, and is the same for switches. The switch profile is a line \
         through the paper's own 7, 28 and 137 us. What either was set from has no bound, since it \
         could not miss one.",
    );
    Ok(outcome)
}

/// Measures a frame through lines of gates, whose own cycles nothing sets.
fn in_gates(outcome: &mut Outcome, axons: &Latencies) -> Result<Option<Table>> {
    if let Some(reason) = gates::missing()? {
        outcome.remark("gates", "", reason, "us");
        return Ok(None);
    }
    let mut latencies = Latencies::default();
    let columns = ["devices", "frame, bytes", "profile, us", "gates, us"];
    let mut table = Table::new("gates", &columns);
    for (size, bytes) in [SMALL, LARGE].into_iter().enumerate() {
        for devices in 1..=DEVICES_MAX {
            let cycles = Gates::between_axons(devices)?.pass(bytes)?;
            let time = gates::span(cycles.iter().sum()) + WIRE * (devices as u64 + 1);
            latencies[size][devices - 1] = micros(time);
            let profile = axons[size][devices - 1];
            table.push(vec![devices.into(), bytes.into(), profile.into(), micros(time).into()]);
        }
    }
    let apart = (latencies[0][4] - latencies[1][4]).abs();
    outcome.rows.push(Row::at_most("gates, 5 Axons: large less small", "none", apart, "us", 0.0));
    let each = (latencies[0][4] - latencies[0][0]) / 4.0 - micros(WIRE);
    let theirs = micros(gates::span(65));
    let name = "gates, each Axon adds beside its wire, 64 B";
    outcome.rows.push(Row::at_most(name, theirs, each, "us", theirs / 3.0));
    outcome.remark("gates, 5 Axons, 64 B", PAPER_AXON_US.1, latencies[0][4], "us");
    Ok(Some(table))
}

fn set_wires(fabric: &mut Fabric) {
    fabric.links.iter_mut().for_each(|link| link.wire.latency = WIRE);
    fabric.hosts.iter_mut().for_each(|host| host.wire.latency = WIRE);
}

/// Measures a probe around a ring of its sender and `devices` more Axons.
fn probe(devices: usize, bytes: usize, seed: u64) -> Result<Span> {
    let mut fabric = axon_fabric::parse(Path::new("ring.yaml"), &ring(devices + 1))?;
    set_wires(&mut fabric);
    let links: Vec<(End, End)> = fabric.links.iter().map(|link| (link.a, link.b)).collect();
    let mut world = World::new(&fabric, seed);
    let limit = Time::ZERO + LIMIT;
    let ready = world.run_until_true(limit, |world| is_path_known(world, &links));
    ensure!(ready, "the Axons of the ring did not find each other");
    world.run_for(Span::from_secs(1));
    let hops = links.iter().map(|(near, _)| near.port).chain([PortNo::CONTROL]).collect();
    let plan = ProbePlan { bytes, ..ProbePlan::new(PlanKind::Circuit(hops)) };
    let id = world.nodes_mut().probe(0, plan).context("the switch has power")??;
    let limit = world.now() + LIMIT;
    let report = finish(&mut world, 0, id, limit).context("the probe did not come back")?;
    let times = report.returns.first().and_then(|back| back.times()).context("its records")?;
    ensure!(times.passages.len() == devices, "it passed {} Axons", times.passages.len());
    line::check_conservation(&world)?;
    // The units are beside the plane. Stages of the origin's own pipeline that are between the
    // units in other devices are part of its measurement, too.
    let stages = fabric.device.from_switch.iter().map(|stage| stage.time.0.ticks()).sum::<u64>();
    let residence = times.passages[0].residence.ticks();
    Ok(Span::from_ticks(times.total.ticks() - (stages - residence)))
}

/// Returns a fabric of switches in a ring, links in ring order. With two switches there are two
/// links between them.
fn ring(switches: usize) -> String {
    let names: Vec<String> = (1..=switches).map(|number| format!("s{number}")).collect();
    let link = |at: usize| format!("[{}, {}]", names[at], names[(at + 1) % switches]);
    let links: Vec<String> = (0..switches).map(link).collect();
    format!(
        "name: ring\n\
         topology: {{ listed: {{ switches: [{}], hosts: {{ h1: s1 }}, links: [{}] }} }}\n\
         links: {{ rate: 1Gbps }}\ndevice: axon-netfpga\n\
         failover: {{ backup: false }}\n",
        names.join(", "),
        links.join(", ")
    )
}

fn drawn(axons: &Latencies, switches: &Latencies) -> (Table, Plot) {
    let table = latency::table("latency", axons, switches);
    let (one, five) = PAPER_AXON_US;
    let series = vec![
        Series::theirs("Axons, paper", vec![(1.0, one), (5.0, five)]),
        Series::ours("Axons, 64 B", points(&axons[0])),
        Series::ours("Axons, 1514 B", points(&axons[1])),
        Series::theirs("switches, 64 B, paper", vec![(1.0, PAPER_SWITCH_US.0)]),
        Series::ours("switches, 64 B", points(&switches[0])),
        Series::theirs(
            "switches, 1514 B, paper",
            vec![(1.0, PAPER_SWITCH_US.1), (5.0, PAPER_FIVE_SWITCHES_US)],
        ),
        Series::ours("switches, 1514 B", points(&switches[1])),
    ];
    let title = "Latency through a line of devices";
    let plot = Plot::lines(
        "latency",
        title,
        Axis::linear("devices", ""),
        Axis::log("latency", "us"),
        series,
    );
    (table, plot)
}
