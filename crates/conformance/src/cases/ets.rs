//! Enhanced transmission selection, IEEE 802.1Q clauses 8.6.8.4 and 37.
//!
//! The standard allows a share to be 10 % off its configured value. It is ambiguous whether this
//! means 10 % of the link or 10 % of the share. The latter is stricter and satisfies both
//! ([`Ambiguity::EtsBound`]). Shares are computed from the bytes in frames of one size over a span
//! at full load.

use crate::bench::{Bench, FRAME_BYTES};
use crate::case::Case;
use crate::interpretations::Ambiguity;
use crate::rig::{Halt, Stream};
use crate::setup::Setup;
use axon_wire::Span;
use axon_wire::priority::{Priority, PrioritySet};

/// Cases with all classes at full load. Shares must be within the standard's bound (with UNH's case
/// number) or within a closer one.
macro_rules! sharing {
    ($name:literal, $unh:literal, $count:literal, $percents:ident) => {
        Case {
            name: $name,
            clause: concat!("802.1Q 37.3; UNH 37.1.", $unh),
            says: concat!($count, " classes get their shares, within 10 % of each."),
            run: |bench| shares(bench, &$percents, Bound::Standard),
        }
    };
    ($name:literal, $count:literal, $percents:ident) => {
        Case {
            name: $name,
            clause: "1 % granularity, 802.1Q 37.3; our own bar",
            says: concat!($count, " classes get their shares, within 1 % of the link."),
            run: |bench| shares(bench, &$percents, Bound::Close),
        }
    };
}

/// Cases of this module.
pub(crate) const CASES: &[Case] = &[
    sharing!("ets/two-classes", 1, "Two", TWO),
    sharing!("ets/three-classes", 2, "Three", THREE),
    sharing!("ets/four-classes", 3, "Four", FOUR),
    sharing!("ets/eight-classes", 4, "Eight", EIGHT),
    sharing!("ets/two-classes-closely", "Two", TWO),
    sharing!("ets/eight-classes-closely", "Eight", EIGHT),
    Case {
        name: "ets/unused-share-is-given-away",
        clause: "802.1Q 37.3; UNH 37.1.5",
        says: "What a class does not use the others get, in proportion to their own shares.",
        run: unused,
    },
    Case {
        name: "ets/one-class-may-use-all",
        clause: "802.1Q 37.3; 002 3.2.2",
        says: "A class that is alone gets the whole link.",
        run: alone,
    },
    Case {
        name: "ets/strict-goes-first",
        clause: "802.1Q 8.6.8, 37.3; UNH 37.1.7",
        says: "Strict classes go before those with shares, which share what is left.",
        run: strict_first,
    },
    Case {
        name: "ets/lossy-beside-lossless",
        clause: "802.1Q 37.3; UNH 37.1.6",
        says: "A lossless class and a lossy one get their shares, and the lossless one loses \
                nothing.",
        run: lossy_beside_lossless,
    },
    Case {
        name: "ets/sum-is-not-100-refused",
        clause: "802.1Q 37.3, D.2.8",
        says: "Percentages that do not add up to 100 are refused.",
        run: wrong_sum,
    },
];

const TWO: [u8; 2] = [30, 70];
const THREE: [u8; 3] = [20, 30, 50];
const FOUR: [u8; 4] = [10, 20, 30, 40];
const EIGHT: [u8; 8] = [5, 5, 10, 10, 10, 15, 20, 25];

/// Bound on the error in a share.
#[derive(Clone, Copy)]
pub(super) enum Bound {
    /// Ten per cent, as in the standard.
    Standard,
    /// One per cent of the link rate.
    Close,
}

impl Bound {
    /// Returns the bound in thousandths of the share and of the link.
    fn thousandths(self, bench: &Bench<'_>) -> (u64, u64) {
        match self {
            Bound::Standard if bench.interpretations().is_other(Ambiguity::EtsBound) => {
                (u64::MAX, 100)
            }
            Bound::Standard => (100, 100),
            Bound::Close => (u64::MAX, 10),
        }
    }
}

/// Longest absence of the tester during which all queues stay full.
const AWAY_MAX: Span = Span::from_millis(2);

/// Returns the measurement window: 10 ms, but at least 10 million bit times (the standard as
/// recalled). See [`Ambiguity::EtsWindow`].
fn window(bench: &Bench<'_>) -> Span {
    let bits = bench.rate().time_for(axon_wire::Bytes(10_000_000 / 8));
    let window = bits.max(Span::from_millis(10)).max(bench.slack() * 20);
    if bench.interpretations().is_other(Ambiguity::EtsWindow) { window * 10 } else { window }
}

/// Sets up the device with these shares, or with its own if they are fixed.
fn set_up(bench: &mut Bench<'_>, percents: &[u8]) -> Result<Setup, Halt> {
    bench.need_ports(3, "two ports that send more than a third takes")?;
    let setup = Setup::with_shares(percents);
    let given = bench.given().cloned().filter(|given| {
        let classes = |setup: &Setup| setup.shares.iter().flatten().count();
        classes(given) == classes(&setup)
    });
    let setup = given.unwrap_or(setup);
    bench.set_up(&setup)?;
    Ok(setup)
}

/// Returns one priority from each class that has a share.
fn priorities(setup: &Setup) -> Vec<(Priority, u8)> {
    let share = |(class, percent): (usize, &Option<u8>)| {
        let percent = (*percent)?;
        let own = |priority: &Priority| setup.prio_tc[priority.index()].index() == class;
        Some((Priority::ALL.into_iter().find(own)?, percent))
    };
    setup.shares.iter().enumerate().filter_map(share).collect()
}

/// Sends these priorities from all ports at full rate, each priority from as few ports as suffice.
/// Returns the number of bytes for each priority in a window that starts once the queues are full.
pub(super) fn compete(
    bench: &mut Bench<'_>,
    wanted: &[(Priority, Span)],
) -> Result<Vec<u64>, Halt> {
    bench.away_at_most(AWAY_MAX);
    let (window, begun) = (window(bench), bench.now());
    let ports = bench.ports() - 1;
    for port in 0..ports.max(wanted.len()) {
        let (priority, interval) = wanted[port % wanted.len()];
        let stream = bench.full_rate(1 + port % ports, priority, window * 2);
        bench.stream(Stream { interval, ..stream });
    }
    bench.pass(window * 2)?;
    let from = begun + window;
    let offered = bench.offered(from, from + window);
    if offered < window {
        let part = offered.ticks() * 100 / window.ticks();
        let why = format!("the tester could send {part} % of the link only: is this machine busy?");
        return Err(Halt::Inconclusive(why));
    }
    let bytes = wanted.iter().map(|&(priority, _)| {
        let came =
            bench.starts(priority).into_iter().filter(|&at| at >= from && at < from + window);
        came.count() as u64 * (FRAME_BYTES as u64 + 4)
    });
    Ok(bytes.collect())
}

/// Fails unless these numbers of bytes have these proportions.
pub(super) fn proportion(
    bench: &mut Bench<'_>,
    bytes: &[u64],
    percents: &[u8],
    bound: Bound,
) -> Result<(), Halt> {
    let all: u64 = bytes.iter().sum();
    let wanted: u64 = percents.iter().map(|&percent| u64::from(percent)).sum();
    bench.expect(all > 0, || "nothing came".into())?;
    let (of_share, of_link) = bound.thousandths(bench);
    for (&came, &percent) in bytes.iter().zip(percents) {
        let got = came * 100_000 / all;
        let want = u64::from(percent) * 100_000 / wanted;
        let off = got.abs_diff(want);
        bench.saw(format!("{}.{:03} % where {} is due", got / 1000, got % 1000, want / 1000));
        let good = off * 1000 <= want.saturating_mul(of_share) && off <= of_link * 100;
        bench.expect(good, || {
            let (whole, part) = (got / 1000, got % 1000 / 10);
            format!("a class got {whole}.{part:02} % of the link, and {} % is due", want / 1000)
        })?;
    }
    Ok(())
}

fn shares(bench: &mut Bench<'_>, percents: &[u8], bound: Bound) -> Result<(), Halt> {
    let setup = set_up(bench, percents)?;
    let classes = priorities(&setup);
    let percents: Vec<u8> = classes.iter().map(|&(_, percent)| percent).collect();
    enough(bench, &percents)?;
    let wanted: Vec<_> = classes.iter().map(|&(priority, _)| (priority, Span::ZERO)).collect();
    let bytes = compete(bench, &wanted)?;
    bench.did(format!("classes of {percents:?} % at full load for {}", window(bench)));
    proportion(bench, &bytes, &percents, bound)
}

/// Ends the case as not applicable unless the tester's ports can offer 25 % more than each of these
/// shares.
pub(super) fn enough(bench: &Bench<'_>, percents: &[u8]) -> Result<(), Halt> {
    let inputs = bench.ports() as u64 - 1;
    let offered = inputs * 100 / percents.len().max(1) as u64;
    let most = percents.iter().max().copied().unwrap_or(0);
    if offered * 4 < u64::from(most) * 5 {
        let why = format!("{inputs} ports cannot offer more than a share of {most} % (--through)");
        return Err(Halt::NotApplicable(why));
    }
    Ok(())
}

fn unused(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = set_up(bench, &THREE)?;
    let classes = priorities(&setup);
    let used = &classes[..classes.len() - 1];
    let wanted: Vec<_> = used.iter().map(|&(priority, _)| (priority, Span::ZERO)).collect();
    let bytes = compete(bench, &wanted)?;
    let percents: Vec<u8> = used.iter().map(|&(_, percent)| percent).collect();
    bench.did(format!("of three classes only those of {percents:?} % send"));
    full(bench, bytes.iter().sum())?;
    proportion(bench, &bytes, &percents, Bound::Standard)
}

/// Fails unless these bytes fill a window to within 2 %.
fn full(bench: &mut Bench<'_>, bytes: u64) -> Result<(), Halt> {
    let frames = bytes / (FRAME_BYTES as u64 + 4);
    let took = bench.time_for(FRAME_BYTES) * frames;
    let (took, window) = (took.ticks(), window(bench).ticks());
    bench.saw(format!("the link was busy for {} % of the time", took * 100 / window));
    bench.expect(took * 100 >= window * 98, || {
        format!("the link was busy for {} % of the time only", took * 100 / window)
    })
}

fn alone(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = set_up(bench, &TWO)?;
    let classes = priorities(&setup);
    let least = classes.iter().min_by_key(|&&(_, percent)| percent).copied();
    let Some((priority, percent)) = least else {
        return Err(Halt::NotApplicable("a class with a share (--shares)".into()));
    };
    let bytes = compete(bench, &[(priority, Span::ZERO)])?;
    bench.did(format!("only the class of {percent} % sends"));
    full(bench, bytes[0])
}

fn strict_first(bench: &mut Bench<'_>) -> Result<(), Halt> {
    let setup = set_up(bench, &TWO)?;
    let classes = priorities(&setup);
    let strict =
        |priority: &Priority| setup.shares[setup.prio_tc[priority.index()].index()].is_none();
    let Some(first) = Priority::ALL.into_iter().rfind(strict) else {
        return Err(Halt::NotApplicable("a strict class (--shares)".into()));
    };
    // Each port sends this priority. Together, they take half of the link.
    let ports = bench.ports() as u64 - 1;
    let mut wanted: Vec<_> = classes.iter().map(|&(p, _)| (p, Span::ZERO)).collect();
    let senders = (0..ports.max(3)).filter(|port| port % 3 == 2).count() as u64;
    wanted.push((first, bench.time_for(FRAME_BYTES) * (2 * senders)));
    let bytes = compete(bench, &wanted)?;
    bench.did(format!("strict priority {first} at half of the link, beside classes at full load"));
    full(bench, bytes.iter().sum())?;
    let all: u64 = bytes.iter().sum();
    let got = bytes[classes.len()] * 1000 / all;
    bench.saw(format!("the strict class got {}.{} %", got / 10, got % 10));
    bench.expect(got.abs_diff(500) <= 10, || {
        format!("the strict class got {}.{} % of the link, and sent 50 %", got / 10, got % 10)
    })?;
    let percents: Vec<u8> = classes.iter().map(|&(_, percent)| percent).collect();
    proportion(bench, &bytes[..classes.len()], &percents, Bound::Standard)
}

fn lossy_beside_lossless(bench: &mut Bench<'_>) -> Result<(), Halt> {
    bench.need_ports(3, "two ports that send more than a third takes")?;
    let mut wanted = Setup::with_shares(&[50, 50]);
    wanted.pfc = PrioritySet::from_bits(0b0000_0010);
    bench.set_up(&wanted)?;
    let all: Vec<_> = Priority::ALL[..2].iter().map(|&p| (p, Span::ZERO)).collect();
    let bytes = compete(bench, &all)?;
    bench.did("priority 0, lossy, and priority 1, lossless, with 50 % each, at full load");
    proportion(bench, &bytes, &[50, 50], Bound::Standard)?;
    bench.pass(Span::from_millis(10) + bench.slack() * 10)?;
    let (sent, came) = bench.log().of_priority(Priority::ALL[1]);
    bench.saw(format!("of the lossless class {sent} went in, {came} came out"));
    bench.expect(sent == came, || "frames of the lossless class were lost".into())
}

fn wrong_sum(bench: &mut Bench<'_>) -> Result<(), Halt> {
    if bench.given().is_some() {
        let why = "the tester cannot configure this device; dcbx/wrong-sum-refused asks it by DCBX";
        return Err(Halt::NotApplicable(why.into()));
    }
    for percents in [&[30, 60][..], &[50, 60], &[100, 1]] {
        let taken = bench.set_up(&Setup::with_shares(percents));
        bench.did(format!("configured shares of {percents:?} %"));
        match taken {
            Err(Halt::Failed(why)) => bench.saw(why),
            Ok(()) => return Err(Halt::Failed(format!("shares of {percents:?} % are taken"))),
            Err(other) => return Err(other),
        }
    }
    Ok(())
}
