//! Figure 4.10 of the thesis (000 §4.6; 001 §5.2, figure 4): PostMark over a file service.

use super::line::{self, Line};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::{Context as _, Result, ensure};
use axon_plot::{Axis, Plot, Series};
use axon_sim::apps::{FilePlan, POSTMARK, Plan, Protocol, RespondPlan, TcpOptions};
use axon_wire::Span;

/// Experiment `axon/fig4.10`: PostMark over a file service through 1 to 5 devices.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "axon/fig4.10",
    file: file!(),
    title: "PostMark over a file service through 1 to 5 devices",
    source: "000 §4.6, figure 4.10; 001 §5.2, figure 4",
    setup: "A client and a file server with a RAM disk at the ends of a line of Axon prototypes or \
            of commodity store-and-forward Ethernet switches. The client runs PostMark's \
            transactions with its default settings (500 files of 500 to 9,770 bytes, create or \
            delete and read or append with equal chances), one remote call after the other over \
            UDP, 1 KiB a block. The server stores the files, and every size and byte that it \
            answers with is checked. A host takes 25 us to process a frame, the server 25 us for a \
            call, the client 25 us before the next. 2,000 transactions.",
    run,
};

const DEVICES_MAX: usize = 5;
/// Host processing, as in figure 4.5.
const HOST: Span = super::fig4_5::HOST;
/// Processing time of the server for each call, and of the client between calls.
const CALL: Span = Span::from_micros(25);
const TRANSACTIONS: u64 = 2_000;
/// Timeout of a run.
const LIMIT: Span = Span::from_secs(60);
/// Gain of Axons in the figure in per cent: least and most.
const PAPER_GAIN: (f64, f64) = (20.0, 77.0);
/// Accepted difference of the gain from the paper's, either way, in per cent of it.
const GAIN_PERCENT: f64 = 25.0;

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = ["devices", "Axons, transactions/s", "switches, transactions/s", "gain, %"];
    let mut table = Table::new("postmark", &columns);
    let (mut axons, mut switches, mut gains) = (Vec::new(), Vec::new(), Vec::new());
    for devices in 1..=DEVICES_MAX {
        context.step(format!("{devices} devices"))?;
        let axon = transactions_per_second(&Line::of_axons(devices), context.seed)?;
        let switch = transactions_per_second(&Line::of_switches(devices), context.seed)?;
        let gain = 100.0 * (axon / switch - 1.0);
        table.push(vec![devices.into(), axon.into(), switch.into(), gain.into()]);
        axons.push((devices as f64, axon));
        switches.push((devices as f64, switch));
        gains.push(gain);
    }
    let flat = 100.0 * (1.0 - axons[DEVICES_MAX - 1].1 / axons[0].1);
    outcome.rows.push(Row::at_most("5 Axons: lost against 1", "nearly constant", flat, "%", 10.0));
    let (least, most) = PAPER_GAIN;
    for (devices, paper) in [(1, least), (DEVICES_MAX, most)] {
        let name = format!("{devices} devices: Axon better by");
        let bound = (paper, GAIN_PERCENT);
        outcome.rows.push(Row::within(name, paper, gains[devices - 1], "%", bound));
    }
    let grows = gains.is_sorted();
    let name = "gain grows with the devices";
    let ours = if grows { "at each" } else { "not at each" };
    outcome.rows.push(Row::holds(name, "yes", ours, "", "at each", grows));
    outcome.remark("1 Axon", "", axons[0].1, "1/s");
    outcome.remark("1 switch", "", switches[0].1, "1/s");
    outcome.tables.push(table);
    let series = vec![Series::ours("Axons", axons), Series::ours("switches", switches)];
    let axes = (Axis::linear("devices", ""), Axis::linear("transactions", "1/s"));
    let title = "PostMark through a line of devices";
    outcome.plots.push(Plot::lines("postmark", title, axes.0, axes.1, series));
    outcome.note(
        "20 and 77 % are the ends of the range that the figure shows; which settings, hosts and \
         NFS version it had is not given. The gain is that of the network's share in a call, so it \
         depends on the times of hosts, server and client, which are ours: the bound is a quarter \
         of the paper's gain either way. Through five switches ours gains more than the paper, \
         because its hosts do next to nothing but wait for the network.",
    );
    Ok(outcome)
}

fn transactions_per_second(line: &Line, seed: u64) -> Result<f64> {
    let fabric = line.ends()?;
    let server = fabric.hosts.len() - 1;
    let mut world = line::booted(&fabric, seed)?;
    for host in [0, server] {
        world
            .with_host(host, |host, _| host.rx_ring_mut().set_processing(HOST))
            .context("power")?;
    }
    let target = world.address(server).context("an address")?;
    let (options, protocol) = (TcpOptions::default(), Protocol::Files);
    let serve = RespondPlan { port: POSTMARK.port, options, protocol, service: CALL };
    world.with_host(server, |host, now| host.start(Plan::Respond(serve), now)).context("power")?;
    let transactions = Some(TRANSACTIONS);
    let plan = FilePlan { target, transactions, client: CALL, seed, ..POSTMARK };
    let client =
        world.with_host(0, |host, now| host.start(Plan::Files(plan), now)).context("power")?;
    let limit = world.now() + LIMIT;
    let ended = world.run_until_true(limit, |world| {
        world.flow_stats(0, client).is_some_and(|stats| stats.done.is_some())
    });
    line::check_conservation(&world)?;
    let stats = world.flow_stats(0, client).context("the client runs")?;
    ensure!(ended && stats.failed == 0, "{} of {TRANSACTIONS} transactions", stats.completed);
    let wrong = stats.received.wrong_bytes;
    ensure!(wrong == 0, "{wrong} bytes read are not those that were written");
    let began = stats.files.and_then(|files| files.began).context("transactions")?;
    let took = stats.done.context("an end")?.since(began);
    Ok(stats.completed as f64 * 1e9 / took.as_nanos() as f64)
}
