//! The start of the largest network (001 §5.4): bytes and time until the controller knows it.

use super::scale::shape::Shape;
use super::scale::{AT_ONCE, Asked, Boot, Run, pattern};
use crate::reproduce::{Context, Experiment, Figure, Outcome, Row, Table};
use anyhow::Result;
use axon_fabric::model::Network;
use axon_wire::Span;
use std::time::{Duration, Instant};

/// Experiment `axon/init`: the start of 5,000 Axons.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "axon/init",
    file: file!(),
    title: "The start of 5,000 Axons",
    source: "001 §5.4, text under figure 6",
    setup: "50 rings of 100 Axons, 10,000 links of 1 Gb/s and 1 us between them, 50,000 hosts, \
            everything switched on at once; our switch and controller code, packet by packet. \
            Bytes per link, both directions together, until the controller knows every link and \
            every Axon a verified way to it; then until it knows every host; then every host asks \
            for 5 others. The average link is the mean over the 10,000 links between switches, as \
            in all of figure 6, with all that they carry. The smaller network of the comparison \
            with PortLand has 10 rings of 100 and 10,000 hosts.",
    run,
};

/// Hosts of the largest network.
const HOSTS: usize = 50_000;
/// Hosts of the network that PortLand is compared on.
const HOSTS_COMPARED: usize = 10_000;
/// Questions of each host.
const ASKS: usize = 5;
/// Paper's start-up bytes of the average link, in kbit.
const PAPER_MEAN_KBIT: f64 = 40.0;
/// Paper's start-up bytes of the worst link, in Mbit.
const PAPER_MAX_MBIT: f64 = 108.0;
/// Accepted factor of the average link to the paper's, either way: the size of a message (seals,
/// ports in a hello) is not given in the paper.
const MEAN_FACTOR: f64 = 2.0;
/// Accepted difference of the worst link in per cent.
const MAX_PERCENT: f64 = 10.0;
/// Paper's ratio of PortLand's start-up bytes to Axon's.
const PAPER_PORTLAND: (f64, f64) = (1.5, 2.0);
/// Upper bound of the wall time of the largest run.
const WALL_MAX: Duration = Duration::from_secs(600);
/// Upper bound of its memory in GB.
const MEMORY_MAX_GB: f64 = 8.0;

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let started = Instant::now();
    context.step(format!("{HOSTS} hosts start"))?;
    let fabric = Shape::Torus.fabric(HOSTS, context.seed)?;
    let mut run = Run::new(context, &fabric, context.seed, false);
    let boot = run.boot(context)?;
    judge(&mut outcome, &boot);
    context.step(format!("{HOSTS} hosts ask for {ASKS} others each"))?;
    let asked = run.ask(context, &pattern::random(HOSTS, ASKS, context.seed), AT_ONCE)?;
    context.step("conservation of frames")?;
    if let Err(unaccounted) = run.world.engine().check_conservation() {
        anyhow::bail!("frames are not accounted for:\n{unaccounted}");
    }
    costs(&mut outcome, &run, &asked, started.elapsed());
    drop(run);
    let table = compared(context, &mut outcome)?;
    outcome.tables.push(table);
    outcome.note(
        "The paper does not say what its convergence is. Of the two interpretations, until links \
         are known and until hosts are known too, the second has the paper's 108 Mbit on the worst \
         link, and the first has a tenth of it, so the second is judged. The row of the worst \
         link follows from that choice, and is by construction. Its 40 kbit on the average link do \
         not go with that: what passes the controller's link goes on over some 37 links of this \
         torus, which is 108 Mbit * 37 / 10,000 = 400 kbit on each. The figures by class of frame \
         say of what ours consists: `routed` is what control planes send one another across the \
         network, `link` is discovery and heartbeats. Our messages are sealed, the paper's are \
         not.",
    );
    outcome.note(
        "PortLand: the paper's starts with 50 to 100 % more bytes than Axon, ours with fewer: the \
         effect is not reproduced. Our PortLand's messages are not sealed (43 bytes each) and \
         carry no route, and its links count as known when every switch has reported to the \
         manager. What the paper's PortLand sends more is not given, and nothing was added to \
         ours to make it dearer. Wall time is that of the machine as it was: beside other work \
         it says little.",
    );
    Ok(outcome)
}

fn judge(outcome: &mut Outcome, boot: &Boot) {
    let (links, hosts) = (boot.links_bytes, boot.hosts_bytes);
    let mean = hosts.mean * 8e-3;
    let name = "bits on the average link until all hosts are known";
    let bound = (PAPER_MEAN_KBIT / MEAN_FACTOR, PAPER_MEAN_KBIT * MEAN_FACTOR);
    outcome.rows.push(Row::between(name, PAPER_MEAN_KBIT, mean, "kbit", bound));
    let max = hosts.max * 8e-6;
    let name = "bits on the worst link, the controller's, until all hosts are known";
    let bound = (PAPER_MAX_MBIT, MAX_PERCENT);
    // Of two interpretations, the one that brings this row near the paper's figure was chosen.
    let row = Row::within(name, PAPER_MAX_MBIT, max, "Mbit", bound).by_construction();
    outcome.rows.push(row);
    outcome.remark("time until all links are known", "", millis(boot.links_known), "ms");
    outcome.remark("time until all hosts are known too", "", millis(boot.hosts_known), "ms");
    for (class, bytes) in boot.hosts_by_class {
        let name = format!("of the average link's bits until then: {}", class.name());
        outcome.remark(name, "", bytes * 8e-3, "kbit");
    }
    let name = "the same over all links, the controller's and the hosts' included";
    outcome.remark(name, PAPER_MEAN_KBIT, hosts.mean_of_all * 8e-3, "kbit");
    let name = "average link until all links are known";
    outcome.remark(name, PAPER_MEAN_KBIT, links.mean * 8e-3, "kbit");
    let name = "the same over all links";
    outcome.remark(name, PAPER_MEAN_KBIT, links.mean_of_all * 8e-3, "kbit");
    let name = "worst link until all links are known";
    outcome.remark(name, PAPER_MAX_MBIT, links.max * 8e-6, "Mbit");
}

fn costs(outcome: &mut Outcome, run: &Run, asked: &Asked, wall: Duration) {
    let seconds = wall.as_secs_f64();
    let name = "wall time of the whole run (ours)";
    outcome.rows.push(Row::at_most(name, "", seconds, "s", WALL_MAX.as_secs_f64()));
    let memory = run.memory_bytes as f64 * 1e-9;
    let name = "memory, resident, at its most (ours)";
    outcome.rows.push(Row::at_most(name, "", memory, "GB", MEMORY_MAX_GB));
    let stats = asked.stats;
    let name = "questions answered";
    let (answered, most) = (stats.answered as f64, stats.asked as f64);
    outcome.rows.push(Row::within(name, "", answered, "", (most, 0.0)));
    outcome.remark("requests, repeated ones included", "", stats.requests, "");
    let mean = stats.waited.as_nanos() as f64 / answered.max(1.0) * 1e-6;
    outcome.remark("wait for an answer, mean", "", mean, "ms");
    let longest = stats.waited_max.as_nanos() as f64 * 1e-6;
    outcome.remark("wait for an answer, longest", "", longest, "ms");
    let engine = run.world.engine();
    outcome.remark("events", "", engine.events(), "");
    outcome.remark("packet-hops", "", engine.packet_hops(), "");
    let rate = engine.packet_hops() as f64 / seconds * 1e-6;
    outcome.remark("packet-hops per wall second, the start of it all included", "", rate, "M");
}

/// Starts Axon and PortLand on the same smaller torus.
fn compared(context: &mut Context, outcome: &mut Outcome) -> Result<Table> {
    let mut table = Table::new(
        "start",
        &[
            "network",
            "links known, ms",
            "mean, kbit",
            "max, Mbit",
            "hosts known, ms",
            "mean, kbit ",
        ],
    );
    let mut means = Vec::new();
    for (name, network) in [("Axon", Network::Axon), ("PortLand", Network::PortLand)] {
        context.step(format!("{name} with {HOSTS_COMPARED} hosts starts"))?;
        let mut fabric = Shape::Torus.fabric(HOSTS_COMPARED, context.seed)?;
        fabric.network = network;
        let boot = Run::new(context, &fabric, context.seed, false).boot(context)?;
        let (links, hosts) = (boot.links_bytes, boot.hosts_bytes);
        let row = [millis(boot.links_known), links.mean * 8e-3, links.max * 8e-6];
        let row = row.into_iter().chain([millis(boot.hosts_known), hosts.mean * 8e-3]);
        table.push([Figure::from(name)].into_iter().chain(row.map(Figure::from)).collect());
        means.push((links.mean, hosts.mean));
    }
    if let [axon, portland] = means[..] {
        outcome.rows.extend(portland_over_axon(portland.1 / axon.1));
        let name = "PortLand over Axon, average link until links are known, 1,000 switches";
        outcome.remark(name, "1.5 to 2", portland.0 / axon.0, "");
    }
    Ok(table)
}

/// Compares PortLand with Axon: whether it costs more, as the paper reports, and by how much.
fn portland_over_axon(ours: f64) -> [Row; 2] {
    let name = "PortLand dearer than Axon, average link until hosts are known, 1,000 switches";
    let dearer = Row::holds(name, "1.5 to 2", ours, "x", "> 1", ours > 1.0).effect();
    let name = "PortLand over Axon, average link until hosts are known, 1,000 switches";
    [dearer, Row::between(name, "1.5 to 2", ours, "", PAPER_PORTLAND)]
}

fn millis(span: Span) -> f64 {
    span.as_nanos() as f64 * 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    #[test]
    fn a_portland_that_is_no_dearer_than_axon_does_not_reproduce_the_paper() {
        let verdicts = |ours| portland_over_axon(ours).map(|row| row.verdict());
        assert_eq!(verdicts(0.665), [Verdict::NotReproduced, Verdict::Missed]);
        assert_eq!(verdicts(1.2), [Verdict::Held, Verdict::Missed]);
        assert_eq!(verdicts(1.7), [Verdict::Held, Verdict::Held]);
    }
}
