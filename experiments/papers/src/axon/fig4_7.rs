//! Figures 4.7 and 4.8 of the thesis (000 §4.4.3): round trips of a TCP request under cross
//! traffic, cut-through against store-and-forward in the same device.

use super::gates::{self, Gates};
use super::latency::{micros, wire_time};
use super::line::{self, Line};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::{Context as _, Result, ensure};
use axon_fabric::model::Device;
use axon_fabric::traffic::Sizes;
use axon_plot::{Axis, Plot, Series};
use axon_sim::apps::{OnOffPlan, Plan, Protocol, RequestPlan, RespondPlan, TcpOptions, Transport};
use axon_wire::{Bytes, Rate, Span};

/// Experiment `axon/fig4.7-8`: TCP round trips under cross load, cut-through against
/// store-and-forward.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "axon/fig4.7-8",
    file: file!(),
    title: "TCP round trips under cross load, cut-through against store-and-forward",
    source: "000 §4.4.3, figures 4.6 to 4.8",
    setup: "A line of 2 Axon prototypes (and of 3 and 5), in cut-through mode and in \
            store-and-forward mode (the same stages, begun when the whole frame is in). Two hosts \
            at each end: the first pair exchanges requests and answers over one TCP connection, as \
            netperf's TCP_RR does, requests in frames of 64 B or 1514 B, answers in frames of 64 \
            B, as the thesis's source waits for no more than an ACK; answers as large as requests \
            are in the remarks. The second pair sends UDP datagrams of full frames to each other, \
            both ways, at random with a mean of 0 to 100 % of 1 Gb/s. A host takes 25 us to \
            process a frame. Mean round trip over 500 ms. Gates: frames of these sizes through two \
            devices of `rtl/` at their pins, in both modes of the register `is_stored`, without \
            load.",
    run,
};

/// Axons in the line of the bounds, and in longer ones.
const SWITCHES: [usize; 3] = [2, 3, 5];
/// Host processing, as in figure 4.5.
const HOST: Span = super::fig4_5::HOST;
/// Payload of a frame of 64 bytes, and of one of 1518, with their FCS.
const SMALL: u32 = 6;
const LARGE: u32 = 1460;
/// Ethernet, IPv4 and TCP headers, and the shortest frame without FCS, in bytes.
const HEADERS_BYTES: usize = 14 + 20 + 20;
const FRAME_BYTES_MIN: usize = 60;
/// Payloads of a request and of its answer. The thesis's source "waits to receive an ACK": the
/// answer is small. Answers as large as the request are measured beside it.
const PAYLOADS: [(u32, u32); 3] = [(SMALL, SMALL), (LARGE, SMALL), (LARGE, LARGE)];
const SIZES: [&str; 3] = ["64 B", "1514 B", "1514 B both ways"];
/// Index in [`SIZES`] of the size without a bound.
const BOTH_WAYS: usize = 2;
/// Load of the cross traffic, per cent.
const LOADS: [u64; 11] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/// UDP payload of a full frame, and its bytes on the wire with preamble, FCS and gap.
const CROSS_PAYLOAD: usize = 1472;
const CROSS_WIRE_BYTES: Bytes = Bytes(1538);
const LINK: Rate = Rate::gbps(1);
const START: Span = Span::from_millis(20);
const MEASURED: Span = Span::from_millis(500);
/// Largest gain that is inconsequential, and smallest that is significant, as means over all loads
/// in per cent.
const SMALL_PERCENT: f64 = 10.0;
const LARGE_PERCENT: f64 = 20.0;
/// The least gain with large frames at a single load, per cent: more than is inconsequential.
const EACH_LOAD_PERCENT: f64 = SMALL_PERCENT;
const RR_PORT: u16 = 5001;
const CROSS_PORT: u16 = 5002;

/// Mean round trips in us of one mode, by size and load.
type Trips = [[f64; LOADS.len()]; PAYLOADS.len()];

/// Round trips of both modes over one line.
struct Modes {
    cut: Trips,
    stored: Trips,
}

impl Modes {
    fn measure(context: &mut Context, switches: usize) -> Result<Modes> {
        let mut modes: [Trips; 2] = Default::default();
        let devices = [Device::axon_netfpga(), Device::axon_netfpga_stored()];
        for (trips, device) in modes.iter_mut().zip(&devices) {
            for (size, &payloads) in PAYLOADS.iter().enumerate() {
                context.step(format!("{switches} of {}, {}", device.name, SIZES[size]))?;
                let line = Line {
                    switches,
                    hosts_per_switch: 2,
                    device: device.clone(),
                    ..Line::default()
                };
                for (at, &load) in LOADS.iter().enumerate() {
                    trips[size][at] = round_trip(&line, payloads, load, context.seed)?;
                }
            }
        }
        let [cut, stored] = modes;
        Ok(Modes { cut, stored })
    }

    /// Returns the gain of cut-through in round trip time at each load, in per cent.
    fn gains(&self, size: usize) -> [f64; LOADS.len()] {
        std::array::from_fn(|at| 100.0 * (1.0 - self.cut[size][at] / self.stored[size][at]))
    }
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let lines = SWITCHES.map(|switches| Modes::measure(context, switches));
    let [short, middle, long] = lines;
    let (short, middle, long) = (short?, middle?, long?);
    let (small, large) = (short.gains(0), short.gains(1));
    let most = |of: &[f64]| of.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    outcome.rows.push(inconsequential("", mean(&small)));
    for (at, load) in LOADS.into_iter().enumerate() {
        let name = format!("1514 B: gain at {load} % load");
        outcome.rows.push(Row::at_least(name, "significant", large[at], "%", EACH_LOAD_PERCENT));
    }
    outcome.rows.push(significant("", mean(&large)));
    let ratio = mean(&large) / mean(&small).max(0.1);
    let name = "gain at 1514 B over gain at 64 B";
    outcome.rows.push(Row::at_least(name, "clear", ratio, "x", 3.0));
    outcome.remark("64 B: gain, largest", "", most(&small), "%");
    outcome.remark("1514 B: gain, least", "", least(&large), "%");
    for (size, name) in SIZES.into_iter().enumerate() {
        for (at, load) in [(0, 0), (LOADS.len() - 1, 100)] {
            let (cut, stored) = (short.cut[size][at], short.stored[size][at]);
            outcome.remark(format!("{name}, cut-through, {load} % load"), "", cut, "us");
            outcome.remark(format!("{name}, store-and-forward, {load} % load"), "", stored, "us");
        }
    }
    for (line, switches) in [(&middle, SWITCHES[1]), (&long, SWITCHES[2])] {
        let (small, large) = (line.gains(0), line.gains(1));
        let line = format!("{switches} Axons, ");
        outcome.rows.push(inconsequential(&line, mean(&small)));
        outcome.rows.push(significant(&line, mean(&large)));
        let (name, least) = (format!("{line}1514 B: gain at any load, least"), least(&large));
        outcome.rows.push(Row::at_least(name, "significant", least, "%", EACH_LOAD_PERCENT));
    }
    for (line, switches) in [&short, &middle, &long].into_iter().zip(SWITCHES) {
        let gains = line.gains(BOTH_WAYS);
        let name = format!("{switches} Axons, {}: gain, mean over loads", SIZES[BOTH_WAYS]);
        outcome.remark(name, "", mean(&gains), "%");
        let name = format!("{switches} Axons, {}: gain, least", SIZES[BOTH_WAYS]);
        outcome.remark(name, "", least(&gains), "%");
        outcome.tables.push(table(line, switches));
        outcome.plots.push(plot(line, switches));
    }
    let on_gates = in_gates(&mut outcome)?;
    outcome.tables.extend(on_gates);
    outcome.note(
        "On gates there is no row with load: a runtime takes whole frames from them, so that only \
         their pins show the modes. The thesis draws both figures without numbers and does not \
         say how many Axons are in its \
         line; its text says that the difference at 64 B is inconsequential and significant at \
         1514 B, with and without load. At 1514 B that holds in every line. At 64 B it holds in a \
         line of two and is not reproduced in longer ones: there a small frame that follows a \
         large one out of the first switch waits for it again wherever frames are stored, so that \
         cut-through gains with the load at both sizes. The requests are load themselves: 13 % of \
         the link with large frames where frames are stored and 18 % with cut-through, whose \
         answers come sooner, so that from 90 % on the first link is full in both modes and its \
         queue is most of the round trip. At 100 % the first queue is full, and the request's own \
         buffer, one of two that alternate, keeps its wait short. With answers as large as \
         requests, which the thesis does not have, the gain at 1514 B is larger: the remarks have \
         it.",
    );
    Ok(outcome)
}

/// Measures both modes of one device in gates, whose cycles nothing sets, without cross traffic;
/// hosts and wires are those of the simulator.
fn in_gates(outcome: &mut Outcome) -> Result<Option<Table>> {
    if let Some(reason) = gates::missing()? {
        outcome.remark("gates", "", reason, "us");
        return Ok(None);
    }
    let columns = ["frame", "cut-through, us", "store-and-forward, us"];
    let mut table = Table::new("gates", &columns);
    let devices = SWITCHES[0];
    let wire = Line { switches: devices, ..Line::default() }.ends()?.hosts[0].wire;
    let way = |payload: u32, is_stored| -> Result<Span> {
        let mut line = Gates::between_hosts(devices)?;
        line.store_frames(is_stored);
        let frame_bytes = (payload as usize + HEADERS_BYTES).max(FRAME_BYTES_MIN);
        let cycles = line.pass(frame_bytes)?.into_iter().sum();
        let wires = wire.latency * (devices as u64 + 1);
        Ok(wire_time(wire.rate, frame_bytes) + wires + gates::span(cycles) + HOST)
    };
    for (size, (request, response)) in PAYLOADS.into_iter().enumerate().take(BOTH_WAYS) {
        let trip = |is_stored| -> Result<f64> {
            Ok(micros(way(request, is_stored)? + way(response, is_stored)?))
        };
        let (cut, stored) = (trip(false)?, trip(true)?);
        table.push(vec![SIZES[size].into(), cut.into(), stored.into()]);
        let (name, gain) = (SIZES[size], 100.0 * (1.0 - cut / stored));
        let name = format!("gates, 2 Axons, {name}: gain of cut-through without load");
        outcome.rows.push(match size {
            0 => Row::at_most(name, "inconsequential", gain, "%", SMALL_PERCENT),
            _ => Row::at_least(name, "significant", gain, "%", EACH_LOAD_PERCENT),
        });
    }
    Ok(Some(table))
}

/// Returns the row of the thesis's claim on small frames.
fn inconsequential(line: &str, gain: f64) -> Row {
    let name = format!("{line}64 B: gain of cut-through, mean over loads");
    Row::at_most(name, "inconsequential", gain, "%", SMALL_PERCENT).effect()
}

/// Returns the row of the thesis's claim on large frames.
fn significant(line: &str, gain: f64) -> Row {
    let name = format!("{line}1514 B: gain of cut-through, mean over loads");
    Row::at_least(name, "significant", gain, "%", LARGE_PERCENT).effect()
}

/// Measures the mean round trip in us.
fn round_trip(line: &Line, (request, response): (u32, u32), load: u64, seed: u64) -> Result<f64> {
    let fabric = line.fabric()?;
    let last = fabric.hosts.len() - 2;
    let mut world = line::booted(&fabric, seed)?;
    for host in [0, last] {
        world
            .with_host(host, |host, _| host.rx_ring_mut().set_processing(HOST))
            .context("power")?;
    }
    if load > 0 {
        for (from, to) in [(1, last + 1), (last + 1, 1)] {
            let target = world.address(to).context("an address")?;
            let plan = cross_traffic(target, load, seed + from as u64);
            world
                .with_host(to, |host, now| host.start(Plan::UdpSink { port: CROSS_PORT }, now))
                .context("power")?;
            world
                .with_host(from, |host, now| host.start(Plan::OnOff(plan), now))
                .context("power")?;
        }
    }
    let options = TcpOptions { ack_delay: None, ..TcpOptions::default() };
    let protocol = Protocol::Fixed { request, response };
    let server = RespondPlan { port: RR_PORT, options, protocol, service: Span::ZERO };
    world.with_host(last, |host, now| host.start(Plan::Respond(server), now)).context("power")?;
    let client = RequestPlan {
        targets: vec![world.address(last).context("an address")?],
        port: RR_PORT,
        transport: Transport::Tcp(options),
        request,
        response,
        think: Span::ZERO,
        count: None,
        timeout: Span::from_secs(1),
    };
    let client =
        world.with_host(0, |host, now| host.start(Plan::Request(client), now)).context("power")?;
    world.run_for(START);
    let so_far = |world: &axon_sim::World| {
        let stats = world.flow_stats(0, client);
        stats.map_or((0, 0), |stats| (stats.times.count(), stats.times.sum_ticks()))
    };
    let (count, ticks) = so_far(&world);
    world.run_for(MEASURED);
    let (count, ticks) = (so_far(&world).0 - count, so_far(&world).1 - ticks);
    ensure!(count > 100, "only {count} round trips at {load} % load");
    line::check_conservation(&world)?;
    Ok(ticks as f64 / count as f64 / 1e5)
}

/// Returns a random stream of full frames with a mean load of `load` per cent of the link. With
/// periodic frames the result would depend only on their phase relative to a sender that waits for
/// its answers.
fn cross_traffic(target: std::net::Ipv4Addr, load: u64, seed: u64) -> OnOffPlan {
    let frame = LINK.time_for(CROSS_WIRE_BYTES);
    let mean = frame.ticks() * (100 - load) / load;
    let off = if mean == 0 { Sizes::Fixed(0) } else { Sizes::Exponential { mean } };
    OnOffPlan {
        target,
        port: CROSS_PORT,
        payload: CROSS_PAYLOAD,
        interval: frame,
        bursts: Box::new(axon_sim::bursts(Sizes::Fixed(CROSS_PAYLOAD as u64), off, seed)),
    }
}

fn table(line: &Modes, switches: usize) -> Table {
    let columns = ["frame", "load, %", "cut-through, us", "store-and-forward, us"];
    let mut table = Table::new(&format!("line-of-{switches}"), &columns);
    for (size, name) in SIZES.into_iter().enumerate() {
        for (at, load) in LOADS.into_iter().enumerate() {
            let (cut, stored) = (line.cut[size][at], line.stored[size][at]);
            table.push(vec![name.into(), load.into(), cut.into(), stored.into()]);
        }
    }
    table
}

fn plot(line: &Modes, switches: usize) -> Plot {
    let points = |of: &[f64; LOADS.len()]| {
        let point = |(&load, &us): (&u64, &f64)| (load as f64, us);
        LOADS.iter().zip(of).map(point).collect::<Vec<_>>()
    };
    let mut series = Vec::new();
    for (size, name) in SIZES.into_iter().enumerate() {
        series.push(Series::ours(format!("{name}, cut-through"), points(&line.cut[size])));
        series.push(Series::ours(format!("{name}, store-and-forward"), points(&line.stored[size])));
    }
    let axes = (Axis::linear("cross load", "%"), Axis::linear("mean round trip", "us"));
    let title = format!("TCP round trips through {switches} Axons under cross load");
    Plot::lines(&format!("line-of-{switches}"), &title, axes.0, axes.1, series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    #[test]
    fn a_gain_is_not_inconsequential_and_significant_at_once() {
        for (gain, small, large) in [
            (9.9, Verdict::Held, Verdict::NotReproduced),
            (15.0, Verdict::NotReproduced, Verdict::NotReproduced),
            (20.4, Verdict::NotReproduced, Verdict::Held),
        ] {
            assert_eq!(inconsequential("", gain).verdict(), small, "{gain}");
            assert_eq!(significant("", gain).verdict(), large, "{gain}");
        }
    }
}
