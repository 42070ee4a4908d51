//! Delay of a congestion message made in software (004 §6.3, in the text).

use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::{Result, anyhow};
use axon_linux::agent_port::measure::delay::{CongestedSwitch, Query};
use axon_linux::agent_port::measure::process::{self, MeasuredAgent, Process};
use axon_linux::agent_port::runner::RunOptions;
use axon_plot::{Axis, Plot, Series};
use axon_wire::Span;
use std::path::Path;
use std::time::Duration;

/// Experiment `serverswitch/qcn-delay`: delay of a congestion message made in software.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "serverswitch/qcn-delay",
    file: file!(),
    title: "Delay of a congestion message made in software",
    source: "004 §6.3",
    setup: "A programmable switch on this machine and a congestion responder in a process of its \
            own at its agent port, on two CPUs. A query of 64 bytes goes to the agent by an entry; \
            it reads the length of a queue that is above its set point, and answers with a \
            congestion notification, which leaves by the port of the query (RTT_1). An entry sends \
            other frames back at once (RTT_2). 10,000 of each, one at a time, 0.3 ms apart, so \
            that switch and agent sleep before each; then 10,000 with an agent that never sleeps. \
            Queries come from memory: no link or NIC is in either time, as the paper subtracts \
            them. Both processes ask for nice -10, as a daemon does.",
    run,
};

/// Paper's averages in us.
const PAPER_RTT: [f64; 2] = [41.0, 18.0];
/// Difference of the averages.
const PAPER_DELAY: f64 = 23.0;
const COUNT: usize = 10_000;
const PAUSE: Duration = Duration::from_micros(300);
/// Busy polling time of an agent that never sleeps; it detects the end of its attachment after
/// that.
const AWAKE: Span = Span::from_secs(1);
/// Number of first answers that are not counted.
const WARM_UP: usize = 200;

/// Sorted times of one kind of query in us.
struct Times(Vec<f64>);

impl Times {
    fn new(mut times: Vec<f64>) -> Times {
        times.sort_by(f64::total_cmp);
        Times(times)
    }

    fn at(&self, share: f64) -> f64 {
        let place = (share * (self.0.len() - 1) as f64).round() as usize;
        self.0.get(place).copied().unwrap_or(f64::NAN)
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Returns the cumulative distribution in per cent.
    fn distribution(&self) -> Vec<(f64, f64)> {
        (0..=99).map(|percent| (self.at(f64::from(percent) / 100.0), percent.into())).collect()
    }
}

/// Sends both kinds of queries alternately.
fn measure(socket: &Path, spin: Span) -> Result<[Times; 2]> {
    process::take_cpu(0);
    let mut bench = CongestedSwitch::new(socket)?;
    let agent = Process::start(MeasuredAgent::Responder, spin, socket)?;
    bench.wait()?;
    let mut times = [Query::Notification, Query::Bounce].map(|query| (query, Vec::new()));
    for number in 0..WARM_UP + COUNT {
        for (query, times) in &mut times {
            std::thread::sleep(PAUSE);
            let took = bench.ask(*query)?.as_nanos() as f64 / 1e3;
            if number >= WARM_UP {
                times.push(took);
            }
        }
    }
    drop(bench);
    agent.join()?;
    Ok(times.map(|(_, times)| Times::new(times)))
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = ["agent", "time", "least", "median", "mean", "90 %", "99 %", "99.9 %", "most"];
    let mut table = Table::new("delay", &columns);
    let mut series = Vec::new();
    for (name, spin) in [("asleep", RunOptions::default().spin), ("awake", AWAKE)] {
        context.step(format!("agent {name}"))?;
        let socket =
            std::env::temp_dir().join(format!("axon-qcn-delay-{}.sock", std::process::id()));
        // A separate thread, as it is bound to a CPU.
        let measured = std::thread::spawn(move || measure(&socket, spin)).join();
        let times = measured.map_err(|_| anyhow!("the measurement has failed"))??;
        for (what, times) in ["RTT_1, us", "RTT_2, us"].iter().zip(&times) {
            let shares = [0.9, 0.99, 0.999, 1.0].map(|share| times.at(share));
            let figures = [times.at(0.0), times.at(0.5), times.mean()].into_iter().chain(shares);
            let words = [name.into(), (*what).into()];
            table.push(words.into_iter().chain(figures.map(Into::into)).collect());
        }
        let [asked, bounced] = &times;
        let delay = asked.at(0.5) - bounced.at(0.5);
        let what = format!("delay, difference of medians, agent {name}");
        outcome.rows.push(Row::at_most(what, PAPER_DELAY, delay, "us", PAPER_DELAY));
        let mean = asked.mean() - bounced.mean();
        let what = format!("delay, difference of averages, agent {name}");
        outcome.rows.push(Row::at_most(what, PAPER_DELAY, mean, "us", PAPER_DELAY));
        for (what, paper, times) in
            [("RTT_1", PAPER_RTT[0], asked), ("RTT_2", PAPER_RTT[1], bounced)]
        {
            outcome.remark(format!("average {what}, agent {name}"), paper, times.mean(), "us");
        }
        series.push(Series::ours(format!("RTT_1, agent {name}"), asked.distribution()));
        series.push(Series::ours(format!("RTT_2, agent {name}"), bounced.distribution()));
    }
    let x = Axis::linear("from query to answer", "us");
    let y = Axis::linear("answers", "%");
    outcome.plots.push(Plot::lines("delay", "Notifications made in software", x, y, series));
    outcome.tables.push(table);
    outcome.note(
        "The paper's delay has the way over PCI Express and back and two interrupts in it; ours \
         has shared memory and, for an agent that sleeps, two wake-ups of processes, which \
         on a virtual machine take longer than on a bare one. So a shorter one says that software \
         on today's CPUs answers in time, and not that our switch is better than theirs.",
    );
    outcome.note(
        "The paper gives averages of 10,000. Both are held to its 23 us here: the averages, and \
         the medians, which a few answers that came late do not move.",
    );
    outcome.note(
        "The queue is the one of the agent's memory: the switch writes the lengths of its queues \
         there before it gives the agent a packet.",
    );
    Ok(outcome)
}
