//! Figures 4-2 to 4-7 of paper 002: LAN and SAN streams that share one link of 10 Gb/s, and the
//! effect of enhanced transmission selection proposed in §4.5.

use super::iscsi::{self, Load};
use crate::axon::line::check_conservation;
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::{Context as _, Result, ensure};
use axon_plot::{Axis, Plot, Series};
use axon_sim::World;
use axon_sim::apps::{AppId, Plan, TcpOptions, TcpPlan, UdpPlan};
use axon_wire::priority::Priority;
use axon_wire::{Bytes, Rate, Span, Time};
use std::path::Path;

/// Experiment `hagen/fig4-2..7`: TCP, UDP, iSCSI reads and writes on one link, without and with
/// ETS.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hagen/fig4-2..7",
    file: file!(),
    title: "TCP, UDP, iSCSI reads and writes on one link, without and with ETS",
    source: "002 §4.3 to §4.5, figures 4-2 to 4-7",
    setup: "One host sends a TCP stream and a UDP stream of full frames to two sinks, and reads \
            from an iSCSI target or writes to it, all at one switch and at 10 Gb/s: each by \
            itself, in pairs, and three together. Four commands of 1 MiB are outstanding, as \
            read-ahead and write-back have it, in PDUs of 8 KiB and R2Ts for 256 KiB; a PDU costs \
            either end 10 us. Windows of up to 1 MiB. One queue for all; then three classes (TCP \
            25 %, UDP 25 %, SAN 50 %) at the host and at the switch. Goodput over 100 ms.",
    run,
};

/// Fabric file, which also runs by itself: `axon sim experiments/papers/src/hagen/converged.yaml`.
const FILE: &str = include_str!("converged.yaml");
/// Part of the file that ETS replaces.
const ONE_CLASS: &str = "  - { priorities: [0, 1, 2, 3, 4, 5, 6] }\n  - { priorities: [7] }\n";
/// The priorities that §4.5 proposes: TCP 1, UDP 3, SAN 6.
const THREE_CLASSES: &str = "  - { priorities: [1], ets: 25 }\n  - { priorities: [3], ets: 25 }\n  \
                             - { priorities: [6], ets: 50 }\n  - { priorities: [0, 2, 4, 5, 7] }\n";
const BOOT_MAX: Span = Span::from_secs(60);
const SETTLE: Span = Span::from_millis(50);
const MEASURED: Span = Span::from_millis(100);
const LINK: Rate = Rate::gbps(10);
/// Source host; the others are sinks.
const SOURCE: usize = 0;
/// UDP payload of a full frame, and its bytes on the wire.
const UDP_PAYLOAD: usize = 1472;
const UDP_WIRE_BYTES: Bytes = Bytes(1538);
const BUFFER_BYTES: usize = 1 << 20;
/// Number of outstanding commands.
const DEPTH: u32 = 4;
/// Upper bound of the share of iSCSI writes with three classes (§4.5).
const WRITE_PERCENT: f64 = 25.0;
/// The SAN class's share with ETS.
const SAN_PERCENT: f64 = 50.0;
/// Shares of TCP and of UDP.
const LAN_PERCENT: f64 = 25.0;
/// Per cent that count as unchanged.
const UNCHANGED_PERCENT: f64 = 90.0;
/// Accepted difference in per cent where the paper has "about the same".
const SAME_PERCENT: f64 = 20.0;
/// Accepted difference of a class from its share in per cent (IEEE 802.1Q).
const ETS_PERCENT: f64 = 10.0;

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tcp,
    Udp,
    Read,
    Write,
}

use Kind::{Read, Tcp, Udp, Write};

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Tcp => "TCP",
            Udp => "UDP",
            Read => "iSCSI read",
            Write => "iSCSI write",
        }
    }

    const fn sink(self) -> usize {
        match self {
            Tcp => 1,
            Udp => 2,
            Read | Write => 3,
        }
    }

    const fn port(self) -> u16 {
        5001 + self.sink() as u16
    }

    const fn priority(self) -> Priority {
        Priority::from_low_bits(match self {
            Tcp => 1,
            Udp => 3,
            Read | Write => 6,
        })
    }
}

/// Traffic mixes of figures 4-2 to 4-7, without ETS.
const MIXES: [&[Kind]; 10] = [
    &[Tcp],
    &[Udp],
    &[Read],
    &[Write],
    &[Tcp, Read],
    &[Tcp, Write],
    &[Udp, Read],
    &[Udp, Write],
    &[Tcp, Udp, Write],
    &[Tcp, Udp, Read],
];

/// Boots a world with its classes.
fn world(ets: bool, seed: u64) -> Result<World> {
    let text = if ets { FILE.replace(ONE_CLASS, THREE_CLASSES) } else { FILE.to_owned() };
    let fabric = axon_fabric::parse(Path::new("converged.yaml"), &text)?;
    let mut world = World::new(&fabric, seed);
    let all = world.run_until_true(Time::ZERO + BOOT_MAX, World::all_have_addresses);
    ensure!(all, "not every host got an address");
    Ok(world)
}

/// Starts a kind of traffic; returns the application that counts its bytes.
fn start(world: &mut World, kind: Kind) -> Result<(usize, AppId)> {
    let (sink, port) = (kind.sink(), kind.port());
    if matches!(kind, Read | Write) {
        let is_read = kind == Read;
        let load =
            Load { port, is_read, window: BUFFER_BYTES, depth: DEPTH, count: None, copy: None };
        let (initiator, served) = iscsi::start(world, (SOURCE, sink), load)?;
        return Ok(if is_read { (SOURCE, initiator) } else { (sink, served) });
    }
    let target = world.address(sink).context("an address")?;
    let options =
        TcpOptions { buffer_bytes: BUFFER_BYTES, ack_delay: None, ..TcpOptions::default() };
    let counts = world.with_host(sink, |host, now| match kind {
        Udp => host.start(Plan::UdpSink { port }, now),
        _ => host.start(Plan::TcpSink { port, options }, now),
    });
    world.with_host(SOURCE, |host, now| match kind {
        Udp => {
            let (payload, interval) = (UDP_PAYLOAD, LINK.time_for(UDP_WIRE_BYTES));
            host.start(Plan::Udp(UdpPlan { target, port, payload, interval, count: u64::MAX }), now)
        }
        _ => host.start(Plan::Tcp(TcpPlan { target, port, bytes: None, options }), now),
    });
    Ok((sink, counts.context("power")?))
}

/// Returns the goodput of some kinds while all of them run, in Gb/s.
fn goodput(kinds: &[Kind], ets: bool, seed: u64) -> Result<Vec<f64>> {
    let mut world = world(ets, seed)?;
    for &kind in kinds.iter().filter(|_| ets) {
        for host in [SOURCE, kind.sink()] {
            world.with_host(host, |host, _| {
                host.dcb_nic_mut().map(|nic| nic.set_priority(kind.port(), kind.priority()))
            });
        }
    }
    let start = |&kind: &Kind| start(&mut world, kind);
    let counts = kinds.iter().map(start).collect::<Result<Vec<_>>>()?;
    let bytes = |world: &World| -> Vec<u64> {
        let of = |&(host, app): &(usize, AppId)| {
            world.flow_stats(host, app).map_or(0, |stats| stats.received.bytes.0)
        };
        counts.iter().map(of).collect()
    };
    world.run_for(SETTLE);
    let before = bytes(&world);
    world.run_for(MEASURED);
    check_conservation(&world)?;
    let gbps =
        |(after, before): (&u64, &u64)| (after - before) as f64 * 8.0 / MEASURED.as_nanos() as f64;
    Ok(bytes(&world).iter().zip(&before).map(gbps).collect())
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = ["together", "classes", "kind", "Gb/s"];
    let mut table = Table::new("goodput", &columns);
    let mut runs: Vec<(&[Kind], bool, Vec<f64>)> = Vec::new();
    let with_ets = MIXES[8..].iter().map(|&mix| (mix, true));
    for (mix, ets) in MIXES.iter().map(|&mix| (mix, false)).chain(with_ets) {
        let (name, classes) = (names(mix), if ets { "ETS" } else { "one" });
        context.step(format!("{name}, {classes}"))?;
        let got = goodput(mix, ets, context.seed)?;
        for (kind, &gbps) in mix.iter().zip(&got) {
            table.push(vec![name.clone().into(), classes.into(), kind.name().into(), gbps.into()]);
        }
        runs.push((mix, ets, got));
    }
    let of = |mix: &[Kind], ets: bool, kind: Kind| {
        let run = runs.iter().find(|run| run.0 == mix && run.1 == ets);
        let at = mix.iter().position(|&other| other == kind);
        run.zip(at).map_or(f64::NAN, |(run, at)| run.2[at])
    };
    judge(&mut outcome, &of);
    outcome.tables.push(table);
    outcome.plots.extend(plots(&of));
    Ok(outcome)
}

/// Goodput of a kind in a mix, without or with ETS.
type Of<'a> = &'a dyn Fn(&[Kind], bool, Kind) -> f64;

/// Returns the percentage of its sole goodput that a kind keeps in a mix without ETS.
fn kept(of: Of<'_>, mix: &[Kind], kind: Kind) -> f64 {
    100.0 * of(mix, false, kind) / of(&[kind], false, kind)
}

fn judge(outcome: &mut Outcome, of: Of<'_>) {
    let pairs: [(&[Kind], Kind, &str, Option<f64>); 4] = [
        (&[Tcp, Read], Tcp, "unchanged", Some(UNCHANGED_PERCENT)),
        (&[Tcp, Write], Tcp, "unchanged", Some(UNCHANGED_PERCENT)),
        (&[Udp, Read], Read, "drops minimally", Some(UNCHANGED_PERCENT)),
        (&[Udp, Write], Write, "drops as UDP does", None),
    ];
    for (mix, kind, said, least) in pairs {
        let beside = mix.iter().find(|other| **other != kind).map_or("", |other| other.name());
        let name = format!("{} beside {beside}: kept of what it gets alone", kind.name());
        match least {
            Some(least) => {
                outcome.rows.push(Row::at_least(name, said, kept(of, mix, kind), "%", least));
            }
            None => outcome.remark(name, said, kept(of, mix, kind), "%"),
        }
    }
    let rows = &mut outcome.rows;
    let (read, write) = (kept(of, &[Tcp, Read], Read), kept(of, &[Tcp, Write], Write));
    let name = "beside TCP a read keeps more than a write: so many times";
    rows.push(Row::at_least(name, "drops less", read / write, "x", 1.1));
    let lost = kept(of, &[Udp, Read], Udp);
    let name = "UDP beside iSCSI read: kept of what it gets alone";
    rows.push(Row::at_most(name, "decreases significantly", lost, "%", 75.0));
    let lost = kept(of, &[Udp, Write], Udp);
    let name = "UDP beside iSCSI write: kept of what it gets alone";
    rows.push(Row::at_most(name, "decreases", lost, "%", 75.0));
    let both = [Write, Udp].map(|kind| kept(of, &[Udp, Write], kind));
    let name = "UDP and iSCSI write: what the write keeps over what UDP keeps";
    rows.push(Row::within(name, "about the same", both[0] / both[1], "x", (1.0, SAME_PERCENT)));
    for (mix, most) in [(MIXES[8], Tcp), (MIXES[9], Read)] {
        let first =
            mix.iter().copied().max_by(|a, b| kept(of, mix, *a).total_cmp(&kept(of, mix, *b)));
        let name = format!("{}: who keeps most", names(mix));
        let first = first.map_or("", Kind::name);
        let row = Row::holds(name, most.name(), first, "", most.name(), first == most.name());
        rows.push(row.effect());
        for &kind in mix {
            let name = format!("{}: {} keeps", names(mix), kind.name());
            outcome.remarks.push(crate::reproduce::outcome::Remark {
                name,
                paper: "".into(),
                ours: kept(of, mix, kind).into(),
                unit: "%".into(),
            });
        }
    }
    let link = LINK.bits_per_second() as f64 / 1e9;
    let three: &[Kind] = MIXES[8];
    let share = 100.0 * of(three, false, Write) / link;
    let name = "iSCSI write of three, one class";
    rows.push(Row::at_most(name, "< 25", share, "% of the link", WRITE_PERCENT));
    let sum: f64 = three.iter().map(|&kind| of(three, true, kind)).sum();
    for (kind, percent) in [(Write, SAN_PERCENT), (Tcp, LAN_PERCENT), (Udp, LAN_PERCENT)] {
        let name = format!("{} of three, ETS {percent} %", kind.name());
        let said = if kind == Write { "a guarantee" } else { "" };
        let share = 100.0 * of(three, true, kind) / sum;
        rows.push(Row::within(name, said, share, "% of all", (percent, ETS_PERCENT)));
    }
    outcome.notes.extend(NOTES.map(str::to_owned));
}

/// `TCP + UDP`.
fn names(mix: &[Kind]) -> String {
    mix.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" + ")
}

/// Reasons for differences from the paper.
const NOTES: [&str; 4] = [
    "No processor is simulated for TCP and UDP, so each alone fills the link; an iSCSI end works \
     on 819 MB/s at most. Two that go the same way must share the link: what a kind keeps follows \
     from how much of it stands in the sender's one queue, which is a window of TCP (1 MiB) and a \
     socket buffer of UDP (128 frames). The paper's hosts did not fill the link with one stream, \
     or its TCP could not have kept its rate beside writes; its figures are drawn without numbers \
     in the text.",
    "UDP loses little beside reads in ours, since those put only requests and acknowledgements in \
     its way; in the paper it decreased significantly, which must have been the host's work for \
     the reads. Of three kinds, reads keep all that they get alone, as the paper has it for the \
     most.",
    "A write with four commands outstanding has its whole window in the queue, as TCP has, so \
     among three it gets a third of the link, and as much of its rate alone as TCP: more than the \
     25 % of the paper. How many writes its `dd` had outstanding is not given.",
    "With ETS at the host and at the switch each class has its share to 1.2 % of it, and what a \
     read leaves of its class is shared by the others.",
];

fn plots(of: Of<'_>) -> Vec<Plot> {
    let bars = |name: &str, title: &str, mix: &[Kind], with_ets: bool| {
        let series = mix.iter().map(|&kind| {
            let mut points = vec![(0.0, of(&[kind], false, kind)), (1.0, of(mix, false, kind))];
            if with_ets {
                points.push((2.0, of(mix, true, kind)));
            }
            Series::ours(kind.name(), points)
        });
        let groups: &[&str] =
            if with_ets { &["alone", "together", "with ETS"] } else { &["alone", "together"] };
        Plot::bars(name, title, groups, Axis::linear("throughput", "Gb/s"), series.collect())
    };
    vec![
        bars("tcp-read", "TCP and iSCSI read", MIXES[4], false),
        bars("tcp-write", "TCP and iSCSI write", MIXES[5], false),
        bars("udp-read", "UDP and iSCSI read", MIXES[6], false),
        bars("udp-write", "UDP and iSCSI write", MIXES[7], false),
        bars("three-write", "TCP, UDP and iSCSI write", MIXES[8], true),
        bars("three-read", "TCP, UDP and iSCSI read", MIXES[9], true),
    ]
}
