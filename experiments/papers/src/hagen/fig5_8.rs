//! Figure 5-8 of paper 002: iSCSI reads and writes, with PFC off and on.

use super::cna::{CNA, Ground, SHARED};
use super::iscsi::{self, Load};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::{Context as _, Result, ensure};
use axon_plot::{Axis, Plot, Series};
use axon_sim::World;
use axon_wire::{Rate, Span};

/// Experiment `hagen/fig5-8`: throughput of iSCSI, with PFC off and on.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hagen/fig5-8",
    file: file!(),
    title: "Throughput of iSCSI, with PFC off and on",
    source: "002 §5.7, figure 5-8",
    setup: "An initiator at CNA 1 and a target with its disk in memory at CNA 3, alone in the \
            network, with RFC 7143's defaults: PDUs of 8 KiB, R2Ts for 256 KiB. Four commands of 1 \
            MiB outstanding on one TCP connection with windows of up to 4 MiB; 2,000 of them as in \
            §4.2, reads or writes. A PDU costs either end 10 us, and a host reads 538 MB/s out of \
            a ring of 512 frames. TCP recovers losses by selective acknowledgments and RACK (RFC \
            8985), with a minimum timeout of 200 ms as in Linux. Then 500 commands with other \
            windows and depths, with a copy at 1,000 MB/s beside, and without selective \
            acknowledgments. Data over time.",
    run,
};

/// Commands of the figure, and of each variation.
const COMMANDS: u64 = 2000;
const VARIED: u64 = 500;
/// Commands outstanding and windows; the figure is for [`AS_SET`], which Linux's autotuning
/// reaches.
const DEPTHS: [u32; 3] = [1, 4, 16];
const WINDOWS: [usize; 4] = [1 << 19, 1 << 20, 2 << 20, 4 << 20];
const AS_SET: Case = Case { commands: COMMANDS, depth: 4, window: 4 << 20, copy: None, sack: true };
/// The copy that is tried, at the rate of a memory of then.
const COPY: Rate = Rate::mbps(8 * 1_000);
const LIMIT: Span = Span::from_secs(3600);
/// Reads and writes: the paper's gain, and the least and the most that count as that.
const KINDS: [(&str, bool, &str, (f64, f64)); 2] =
    [("read", true, "almost 2", (1.7, 2.1)), ("write", false, "over 1.25", (1.25, 1.4))];
/// Least and largest gain that counts as the gain in the paper.
const GAIN: (f64, f64) = (1.05, 3.0);
/// Polling interval of an initiator, and the idle time that marks a wait for TCP's retransmission
/// timeout, which is at least 200 ms.
const LOOK: Span = Span::from_millis(10);
const STILL: Span = Span::from_millis(180);

/// Parameters of the commands.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    commands: u64,
    depth: u32,
    window: usize,
    copy: Option<Rate>,
    sack: bool,
}

impl Case {
    fn name(&self) -> String {
        let Case { commands, depth, window, copy, sack } = self;
        let copy = if copy.is_some() { ", with a copy" } else { "" };
        let sack = if *sack { "" } else { ", without SACK" };
        format!("{commands} of them, {depth} outstanding, {} KiB{copy}{sack}", window >> 10)
    }

    /// Returns the figure's case and its variations.
    fn all() -> Vec<Case> {
        let as_set = Case { commands: VARIED, ..AS_SET };
        let depths = DEPTHS.into_iter().map(|depth| Case { depth, ..as_set });
        let windows = WINDOWS.into_iter().map(|window| Case { window, ..as_set });
        let others = depths.chain(windows).filter(|case| *case != as_set);
        let copied = Case { copy: Some(COPY), ..as_set };
        let without_sack = Case { sack: false, ..as_set };
        [AS_SET, as_set, copied, without_sack].into_iter().chain(others).collect()
    }
}

/// One direction, with PFC off or on.
struct Direction {
    megabytes_per_second: f64,
    retransmits: u64,
    dropped: u64,
    /// The longest time of a command, ms.
    longest: f64,
    /// Idle times as long as a retransmission timeout.
    stills: Stills,
}

impl Direction {
    /// Returns MB/s of [`COMMANDS`] without the time that passed in waits for timeouts.
    fn beside_timeouts(&self) -> f64 {
        let megabytes = COMMANDS as f64 * f64::from(iscsi::LENGTH) / 1e6;
        megabytes / (megabytes / self.megabytes_per_second - self.stills.seconds())
    }
}

/// Counter of intervals without progress.
#[derive(Default)]
struct Stills {
    completed: u64,
    still: Span,
    count: u64,
    /// Duration of the counted intervals.
    waited: Span,
}

impl Stills {
    fn seconds(&self) -> f64 {
        self.waited.as_nanos() as f64 / 1e9
    }

    /// Processes one more [`LOOK`] after which `completed` commands have ended in total.
    fn look(&mut self, completed: u64) {
        if completed != self.completed {
            (self.completed, self.still) = (completed, Span::ZERO);
            return;
        }
        let before = self.still;
        self.still = before + LOOK;
        if self.still >= STILL {
            self.count += u64::from(before < STILL);
            self.waited = self.waited + if before < STILL { self.still } else { LOOK };
        }
    }
}

fn measure(is_read: bool, case: Case, (pfc, seed): (bool, u64)) -> Result<Direction> {
    let Case { commands, depth, window, copy, sack } = case;
    let mut ground = Ground::new(pfc, seed)?;
    for host in CNA.into_iter().filter(|_| !sack) {
        ground.world.with_host(host, |host, _| host.without_sack()).context("power")?;
    }
    let port = ground.port(SHARED);
    let load = Load { port, is_read, window, depth, count: Some(commands), copy };
    let began = ground.world.now();
    let (initiator, target) = iscsi::start(&mut ground.world, (CNA[0], CNA[2]), load)?;
    let done = |world: &World| {
        world.flow_stats(CNA[0], initiator).is_some_and(|stats| stats.done.is_some())
    };
    let mut stills = Stills::default();
    while !done(&ground.world) {
        ensure!(ground.world.now() < began + LIMIT, "commands are left");
        ground.world.run_for(LOOK);
        stills.look(ground.world.flow_stats(CNA[0], initiator).map_or(0, |stats| stats.completed));
    }
    ground.check()?;
    let stats = ground.world.flow_stats(CNA[0], initiator).context("it ran")?;
    ensure!(stats.failed == 0, "{} commands failed", stats.failed);
    let took = stats.done.context("it is done")?.since(began);
    let sent_again = ground.world.flow_stats(CNA[2], target).map_or(0, |stats| stats.retransmits);
    let bytes = commands * u64::from(iscsi::LENGTH);
    Ok(Direction {
        megabytes_per_second: bytes as f64 / took.as_nanos() as f64 * 1e3,
        retransmits: stats.retransmits + sent_again,
        dropped: ground.dropped(),
        longest: stats.times.max().unwrap_or(Span::ZERO).as_nanos() as f64 / 1e6,
        stills,
    })
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = [
        "operation",
        "commands",
        "outstanding",
        "window, KiB",
        "copy",
        "SACK",
        "PFC off, MB/s",
        "frames dropped",
        "sent again",
        "longest command, ms",
        "timeouts",
        "PFC on, MB/s",
        "gain",
    ];
    let mut table = Table::new("iscsi", &columns);
    let (mut off_bars, mut on_bars) = (Vec::new(), Vec::new());
    let (mut as_set, mut copied) = (Vec::new(), Vec::new());
    for (at, (name, is_read, paper, bound)) in KINDS.into_iter().enumerate() {
        for case in Case::all() {
            let what = format!("{name}, {}", case.name());
            context.step(&what)?;
            let of = |pfc| measure(is_read, case, (pfc, context.seed));
            let (off, on) = (of(false)?, of(true)?);
            let gain = on.megabytes_per_second / off.megabytes_per_second;
            table.push(vec![
                name.into(),
                case.commands.into(),
                u64::from(case.depth).into(),
                (case.window >> 10).into(),
                if case.copy.is_some() { "yes" } else { "no" }.into(),
                if case.sack { "yes" } else { "no" }.into(),
                off.megabytes_per_second.into(),
                off.dropped.into(),
                off.retransmits.into(),
                off.longest.into(),
                off.stills.count.into(),
                on.megabytes_per_second.into(),
                gain.into(),
            ]);
            if case.copy.is_some() {
                copied.push(on.megabytes_per_second);
            }
            if case != AS_SET {
                outcome.remark(format!("{what}: PFC on over off"), "", gain, "x");
                continue;
            }
            judge(&mut outcome, (name, paper, bound), &off, &on);
            off_bars.push((at as f64, off.megabytes_per_second));
            on_bars.push((at as f64, on.megabytes_per_second));
            as_set.push((name, off));
        }
    }
    outcome.tables.push(table);
    let series = vec![Series::ours("PFC off", off_bars), Series::ours("PFC on", on_bars)];
    let title = "iSCSI, 1 MiB a command";
    outcome.plots.push(Plot::bars(
        "iscsi",
        title,
        &["read", "write"],
        Axis::linear("throughput", "MB/s"),
        series,
    ));
    outcome.notes.extend(notes(&as_set, &copied));
    Ok(outcome)
}

fn judge(
    outcome: &mut Outcome,
    (name, paper, bound): (&str, &str, (f64, f64)),
    off: &Direction,
    on: &Direction,
) {
    let gain = on.megabytes_per_second / off.megabytes_per_second;
    let rows = &mut outcome.rows;
    let what = format!("{name}: there is a gain");
    rows.push(Row::between(what, "a gain", gain, "x", GAIN).effect());
    rows.push(Row::between(format!("{name}: PFC on over off"), paper, gain, "x", bound));
    let dropped = (on.dropped + on.retransmits) as f64;
    let what = format!("{name}, PFC on: dropped or sent again");
    rows.push(Row::within(what, "none", dropped, "", (0.0, 0.0)));
    outcome.remark(format!("{name}, PFC on"), "", on.megabytes_per_second, "MB/s");
    outcome.remark(format!("{name}, PFC off"), "", off.megabytes_per_second, "MB/s");
    outcome.remark(format!("{name}, PFC off: frames dropped"), "", off.dropped, "");
    outcome.remark(format!("{name}, PFC off: longest command"), "", off.longest, "ms");
    outcome.remark(format!("{name}, PFC off: waits for a timeout"), "", off.stills.count, "times");
    let per_drop = off.retransmits as f64 / off.dropped as f64;
    outcome.remark(format!("{name}, PFC off: sent again for each drop"), "", per_drop, "segments");
}

/// Explains the differences, from reads and writes with PFC off, and from the MB/s of both with a
/// copy beside.
fn notes(off: &[(&str, Direction)], copied: &[f64]) -> Vec<String> {
    let listed = |of: &dyn Fn(&Direction) -> String| {
        let each = off.iter().map(|(name, run)| format!("{name}s {}", of(run)));
        each.collect::<Vec<_>>().join(", ")
    };
    let with_copy: Vec<String> = copied.iter().map(|rate| format!("{rate:.1}")).collect();
    vec![
        format!(
            "Whether PFC changes anything is decided by who is slower. With a copy at 1,000 MB/s \
             reads and writes carry {} MB/s, less than the 538 that a host reads out of its ring: \
             nothing is ever lost, and PFC has no part in it. Without it the sender is faster than \
             the ring, as the paper's was with blaster. The paper gives neither figure for iSCSI.",
            with_copy.join(" and ")
        ),
        format!(
            "What a loss costs is TCP's, and the paper gives neither its kernel nor its recovery. \
             Without selective acknowledgments ours waits for its retransmission timeout, 200 ms \
             as in Linux, every few megabytes: a gain that says more of TCP than of PFC. With them \
             losses are recovered while the ring is read, except that no command ended for as long \
             as a timeout takes: {}.",
            listed(&|run| format!("{} times", run.stills.count))
        ),
        format!(
            "Without the time of those waits, with PFC off: {}. Which windows, depth and cost of a \
             command the paper had is not given.",
            listed(&|run| format!("{:.0} MB/s", run.beside_timeouts()))
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    fn run(megabytes_per_second: f64) -> Direction {
        Direction {
            megabytes_per_second,
            retransmits: 0,
            dropped: 0,
            longest: 0.0,
            stills: Stills::default(),
        }
    }

    #[test]
    fn a_gain_that_is_far_beyond_the_papers_does_not_reproduce_it() {
        let verdict = |(kind, off): (usize, f64)| {
            let (name, _, paper, bound) = KINDS[kind];
            let mut outcome = Outcome::default();
            judge(&mut outcome, (name, paper, bound), &run(off), &run(500.0));
            outcome.verdict()
        };
        use Verdict::{Held, Missed, NotReproduced};
        assert_eq!(
            [(0, 250.0), (0, 430.0), (0, 500.0)].map(verdict),
            [Held, Missed, NotReproduced]
        );
        assert_eq!([(1, 390.0), (1, 410.0), (1, 40.0)].map(verdict), [Held, Missed, NotReproduced]);
    }

    #[test]
    fn a_wait_counts_once_and_only_if_it_is_as_long_as_a_timeout() {
        let mut stills = Stills::default();
        let mut look = |completed, times| {
            (0..times).for_each(|_| stills.look(completed));
            stills.count
        };
        assert_eq!([look(1, 1), look(1, 17), look(2, 1), look(2, 18)], [0, 0, 0, 1]);
        assert_eq!([look(2, 30), look(3, 1), look(3, 18)], [1, 1, 2]);
        assert_eq!(stills.waited, LOOK * (18 + 30 + 18));
    }

    #[test]
    fn what_is_beside_timeouts_leaves_out_what_they_took() {
        // 2,000 MiB in 50 s, of which 46 s are waits.
        let bytes = COMMANDS as f64 * f64::from(iscsi::LENGTH);
        let stills = Stills { waited: Span::from_secs(46), ..Stills::default() };
        let slow = Direction { stills, ..run(bytes / 50e6) };
        assert!((slow.beside_timeouts() - bytes / 4e6).abs() < 1e-6);
        assert_eq!(run(512.0).beside_timeouts(), 512.0);
    }
}
