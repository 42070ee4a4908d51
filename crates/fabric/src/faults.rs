//! Overrides of single links, and the schedule of faults.

use crate::error::Problem;
use crate::file::{self, BitErrorsText, Fault as Asked, FaultWhat, FaultWhen};
use crate::index::{Index, Node};
use crate::model::{Cable, Fabric, Fault, FaultKind};
use crate::units::{RateText, SpanText, span_text};
use crate::wire::{changed, check_rate, check_wire};
use axon_wire::{Rate, Span};

/// Expected use of `between`, in errors.
const BETWEEN_EXPECTED: &str = "it with loss_ppm, bit_error_rate or a link's rate only";
/// Maximum `times` of a `flap`.
const FLAPS_MAX: u32 = 100_000;

/// Applies `overrides`, in order.
pub(crate) fn apply_overrides(
    fabric: &mut Fabric,
    overrides: &[file::Override],
) -> Result<(), Problem> {
    let index = Index::of(fabric);
    let mut found = Vec::new();
    for (number, asked) in overrides.iter().enumerate() {
        let Some(between) = &asked.common.between else { continue };
        let cable = index.cable(&format!("overrides[{number}].between"), between)?;
        found.push((number, asked, cable));
    }
    for (number, asked, cable) in found {
        let wire = match cable {
            Cable::Link(link) => &mut fabric.links[link].wire,
            Cable::Host(host) => &mut fabric.hosts[host].wire,
            Cable::Controller => &mut fabric.controller.wire,
        };
        *wire = changed(*wire, &asked.kinds);
        check_wire(&format!("overrides[{number}]"), wire)?;
    }
    Ok(())
}

/// Resolves the faults and sorts them by time; those at equal times keep their order. Returns first
/// those that count from power on, then those that count from the start of traffic.
pub(crate) fn resolve(
    fabric: &Fabric,
    asked: &[Asked],
) -> Result<(Vec<Fault>, Vec<Fault>), Problem> {
    let index = Index::of(fabric);
    let (mut faults, mut after_start) = (Vec::new(), Vec::new());
    for (number, fault) in asked.iter().enumerate() {
        let key = format!("faults[{number}]");
        let happens = what_happens(&index, &key, fault)?;
        let (at, list) = match (fault.common.at, fault.common.after_start) {
            (Some(SpanText(at)), None) => (at, &mut faults),
            (None, Some(SpanText(at))) => (at, &mut after_start),
            (given, _) => {
                let what = if given.is_some() { "two times" } else { "no time" };
                let expected = "exactly one of at (from power on) and after_start (from the \
                                start of traffic)";
                return Err(Problem::new(key, format!("it has {what}"), expected));
            }
        };
        list.extend(happens.into_iter().map(|(after, what)| Fault { at: at + after, what }));
    }
    faults.sort_by_key(|fault| fault.at);
    after_start.sort_by_key(|fault| fault.at);
    Ok((faults, after_start))
}

/// Faults of one entry, each with its time relative to the entry's.
type Happens = Vec<(Span, FaultKind)>;

fn what_happens(index: &Index<'_>, key: &str, fault: &Asked) -> Result<Happens, Problem> {
    let when = &fault.common;
    let what = only(key, fault)?;
    let below = |name: &str| format!("{key}.{name}");
    let host = |name: &str, of: &str| index.host(&below(name), of);
    let link = |name: &str, ends| link(index, &below(name), ends);
    let node = |name: &str, of: &str| node(index, &below(name), of);
    let happens = match what {
        FaultWhat::Down(ends) => FaultKind::LinkDown(link("down", ends)?),
        FaultWhat::Up(ends) => FaultKind::LinkUp(link("up", ends)?),
        FaultWhat::Silent(ends) => FaultKind::LinkSilent(link("silent", ends)?),
        FaultWhat::SilentFrom(ends) => {
            let link = link("silent_from", ends)?;
            let from = index.end_of(link, &ends[0]);
            FaultKind::LinkSilentFrom(link, from.expect("its name was found as an end"))
        }
        FaultWhat::Crash(of) => {
            node("crash", of)?.map_or(FaultKind::ControllerDown, FaultKind::SwitchDown)
        }
        FaultWhat::Start(of) => {
            node("start", of)?.map_or(FaultKind::ControllerUp, FaultKind::SwitchUp)
        }
        FaultWhat::Stop(of) => {
            node("stop", of)?.map_or(FaultKind::ControllerStopped, FaultKind::SwitchStopped)
        }
        FaultWhat::Continue(of) => {
            node("continue", of)?.map_or(FaultKind::ControllerGoesOn, FaultKind::SwitchGoesOn)
        }
        FaultWhat::Unplug(name) => FaultKind::HostDown(host("unplug", name)?),
        FaultWhat::Plug(name) => FaultKind::HostUp(host("plug", name)?),
        FaultWhat::LossPpm(ppm @ 0..=1_000_000) => {
            FaultKind::Loss(between(index, key, when)?, *ppm)
        }
        FaultWhat::LossPpm(ppm) => {
            let what = format!("{ppm} is more than all frames");
            return Err(Problem::new(below("loss_ppm"), what, "0 to 1000000"));
        }
        FaultWhat::BitErrorRate(BitErrorsText(per_1e15)) => {
            FaultKind::BitErrors(between(index, key, when)?, *per_1e15)
        }
        FaultWhat::Rate(RateText(rate)) => {
            check_rate(key, *rate)?;
            FaultKind::Rate(between(index, key, when)?, *rate)
        }
        FaultWhat::Slow(name) => {
            let host = host("slow", name)?;
            let expected = "how fast the host is, as `rate`";
            let missing = || Problem::new(key, "`rate` is missing", expected);
            FaultKind::HostSlow(host, Some(rate(fault).ok_or_else(missing)?))
        }
        FaultWhat::Fast(name) => FaultKind::HostSlow(host("fast", name)?, None),
        FaultWhat::Flap(ends) => {
            let happens = flap(index, key, ends, when)?;
            return check_companions(key, what, when).map(|()| happens);
        }
    };
    check_companions(key, what, when)?;
    Ok(vec![(Span::ZERO, happens)])
}

fn rate(fault: &Asked) -> Option<Rate> {
    fault.kinds.iter().find_map(|what| match what {
        FaultWhat::Rate(RateText(rate)) => Some(*rate),
        _ => None,
    })
}

/// Returns the kind of an entry, which has exactly one; a `rate` belongs to a `slow` host.
fn only<'a>(key: &str, fault: &'a Asked) -> Result<&'a FaultWhat, Problem> {
    let is_slow = fault.kinds.iter().any(|what| matches!(what, FaultWhat::Slow(_)));
    let belongs = |what: &&FaultWhat| is_slow && matches!(what, FaultWhat::Rate(_));
    let kinds: Vec<_> = fault.kinds.iter().filter(|what| !belongs(what)).collect();
    let what = match kinds[..] {
        [kind] => return Ok(kind),
        [] => "no event is given".to_owned(),
        _ => format!("{} events are given", kinds.len()),
    };
    let expected = format!("exactly one of {}", file::names::<FaultWhat>().join(", "));
    Err(Problem::new(key, what, expected))
}

/// Refuses keys that do not belong to the entry's kind.
fn check_companions(key: &str, what: &FaultWhat, when: &FaultWhen) -> Result<(), Problem> {
    let of_link =
        matches!(what, FaultWhat::LossPpm(_) | FaultWhat::BitErrorRate(_) | FaultWhat::Rate(_));
    let flaps = matches!(what, FaultWhat::Flap(_));
    let companions = [
        ("between", when.between.is_some(), of_link, BETWEEN_EXPECTED),
        ("down_for", when.down_for.is_some(), flaps, "flap in the same fault, or no such key"),
        ("every", when.every.is_some(), flaps, "flap in the same fault, or no such key"),
        ("times", when.times.is_some(), flaps, "flap in the same fault, or no such key"),
    ];
    for (name, given, belongs, expected) in companions {
        if given && !belongs {
            return Err(Problem::new(format!("{key}.{name}"), "it has no effect here", expected));
        }
    }
    Ok(())
}

/// Returns the faults of a link that goes down `times` times, at intervals of `every`, for
/// `down_for` each time.
fn flap(
    index: &Index<'_>,
    key: &str,
    ends: &[String; 2],
    when: &FaultWhen,
) -> Result<Happens, Problem> {
    let flap_key = format!("{key}.flap");
    let (down, up) = match index.cable(&flap_key, ends)? {
        Cable::Link(link) => (FaultKind::LinkDown(link), FaultKind::LinkUp(link)),
        Cable::Host(host) => (FaultKind::HostDown(host), FaultKind::HostUp(host)),
        Cable::Controller => return Err(controllers_link(&flap_key)),
    };
    let missing = |name: &str| {
        Problem::new(key, format!("`{name}` is missing"), format!("a time such as 1s as `{name}`"))
    };
    let SpanText(down_for) = when.down_for.ok_or_else(|| missing("down_for"))?;
    let times = when.times.unwrap_or(1);
    if !(1..=FLAPS_MAX).contains(&times) {
        return Err(Problem::range(format!("{key}.times"), times, format!("1 to {FLAPS_MAX}")));
    }
    let every = match when.every {
        Some(SpanText(every)) if every > down_for => every,
        Some(SpanText(every)) => {
            let what = format!("{} is not longer than down_for", span_text(every));
            let expected = format!("more than {}", span_text(down_for));
            return Err(Problem::new(format!("{key}.every"), what, expected));
        }
        None if times == 1 => Span::ZERO,
        None => return Err(missing("every")),
    };
    let one =
        |time: u32| [(every * u64::from(time), down), (every * u64::from(time) + down_for, up)];
    Ok((0..times).flat_map(one).collect())
}

/// Returns the cable of a change of loss, bit errors or rate.
fn between(index: &Index<'_>, key: &str, when: &FaultWhen) -> Result<Cable, Problem> {
    let missing = || Problem::new(key, "`between` is missing", "the two ends of a link");
    index.cable(&format!("{key}.between"), when.between.as_ref().ok_or_else(missing)?)
}

/// Returns the index of a link between switches.
fn link(index: &Index<'_>, key: &str, between: &[String; 2]) -> Result<usize, Problem> {
    match index.cable(key, between)? {
        Cable::Link(link) => Ok(link),
        Cable::Host(_) => {
            Err(Problem::new(key, "this is a host's link", "unplug or plug for hosts"))
        }
        Cable::Controller => Err(controllers_link(key)),
    }
}

fn controllers_link(key: &str) -> Problem {
    Problem::new(key, "this is the controller's link", "crash or start for c1")
}

/// Returns a switch by index, or `None` for the controller.
fn node(index: &Index<'_>, key: &str, name: &str) -> Result<Option<usize>, Problem> {
    match index.node(name) {
        Some(Node::Controller) => Ok(None),
        Some(Node::Switch(switch)) => Ok(Some(switch)),
        _ => {
            let what = format!("there is no switch or controller `{name}`");
            Err(Problem::new(key, what, "a name such as s1 or c1"))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::{Cable, FaultKind};

    fn faults(text: &str) -> Vec<(u64, FaultKind)> {
        let text = format!("name: a\ntopology: {{ring: {{switches: 3}}}}\nfaults: [{text}]");
        let fabric = crate::parse("a.yaml".as_ref(), &text).unwrap();
        fabric.faults.iter().map(|fault| (fault.at.as_millis(), fault.what)).collect()
    }

    #[test]
    fn a_flap_is_as_many_cuts_and_mends_as_it_says() {
        let link = faults("{at: 1s, flap: [s1, s2], down_for: 100ms, every: 300ms, times: 2}");
        let (down, up) = (FaultKind::LinkDown(0), FaultKind::LinkUp(0));
        assert_eq!(link, [(1000, down), (1100, up), (1300, down), (1400, up)]);
        let host = faults("{at: 0s, flap: [s2, h2], down_for: 1ms}");
        assert_eq!(host, [(0, FaultKind::HostDown(1)), (1, FaultKind::HostUp(1))]);
    }

    #[test]
    fn a_silent_direction_is_named_from_its_sender_and_a_stopped_node_by_its_name() {
        let list = faults(
            "{at: 1ms, silent_from: [s2, s1]}, {at: 2ms, stop: s3}, {at: 3ms, continue: s3}, \
             {at: 4ms, stop: c1}, {at: 5ms, continue: c1}",
        );
        let text = "name: a\ntopology: {ring: {switches: 3}}";
        let link = crate::parse("a.yaml".as_ref(), text).unwrap().links[0].clone();
        assert_eq!((link.a.switch, link.b.switch), (0, 1));
        let wanted = [
            (1, FaultKind::LinkSilentFrom(0, link.b)),
            (2, FaultKind::SwitchStopped(2)),
            (3, FaultKind::SwitchGoesOn(2)),
            (4, FaultKind::ControllerStopped),
            (5, FaultKind::ControllerGoesOn),
        ];
        assert_eq!(list, wanted);
    }

    #[test]
    fn a_fault_counts_from_power_on_or_from_the_start_of_traffic() {
        let text = |faults: &str| {
            format!("name: a\ntopology: {{ring: {{switches: 3}}}}\nfaults: [{faults}]")
        };
        let both = text("{after_start: 5ms, crash: s2}, {at: 1s, start: s2}");
        let fabric = crate::parse("a.yaml".as_ref(), &both).unwrap();
        assert_eq!(fabric.faults[0].what, FaultKind::SwitchUp(1));
        assert_eq!(fabric.faults_after_start[0].what, FaultKind::SwitchDown(1));
        assert_eq!(fabric.faults_after_start[0].at.as_millis(), 5);
        for bad in ["{crash: s2}", "{at: 1s, after_start: 1s, crash: s2}"] {
            let error = crate::parse("a.yaml".as_ref(), &text(bad)).unwrap_err().to_string();
            assert!(error.contains("exactly one of at"), "{error}");
        }
    }

    #[test]
    fn a_rate_is_of_any_cable_and_a_slow_hosts_is_its_own() {
        let list = faults(
            "{at: 1ms, rate: 1Gbps, between: [s1, s2]}, {at: 2ms, rate: 2Gbps, between: [h2, s2]}, \
             {at: 3ms, slow: h1, rate: 3Gbps}",
        );
        let rate = axon_wire::Rate::gbps;
        let wanted = [
            (1, FaultKind::Rate(Cable::Link(0), rate(1))),
            (2, FaultKind::Rate(Cable::Host(1), rate(2))),
            (3, FaultKind::HostSlow(0, Some(rate(3)))),
        ];
        assert_eq!(list, wanted);
    }

    #[test]
    fn the_rates_of_a_cable_are_those_of_the_start_and_of_all_faults() {
        let text = "name: a\ntopology: {ring: {switches: 3}}\nlinks: {rate: 10Gbps}\nfaults: \
                    [{at: 1ms, rate: 1Gbps, between: [s1, s2]}, \
                    {after_start: 1ms, rate: 25Gbps, between: [s1, s2]}, \
                    {at: 1ms, rate: 5Gbps, between: [h1, s1]}]";
        let fabric = crate::parse("a.yaml".as_ref(), text).unwrap();
        let rate = axon_wire::Rate::gbps;
        assert_eq!(fabric.rates(Cable::Link(0)), [rate(1), rate(25)]);
        assert_eq!(fabric.rates(Cable::Host(0)), [rate(5), rate(10)]);
        assert_eq!(fabric.rates(Cable::Controller), [rate(10); 2]);
    }

    #[test]
    fn noise_is_of_any_cable_and_slowness_of_hosts() {
        let noise = faults(
            "{at: 3ms, bit_error_rate: 1e-9, between: [h1, s1]}, \
             {at: 2ms, loss_ppm: 7, between: [c1, s1]}, {at: 4ms, slow: h2, rate: 1Mbps}, \
             {at: 5ms, fast: h2}",
        );
        let wanted = [
            (2, FaultKind::Loss(Cable::Controller, 7)),
            (3, FaultKind::BitErrors(Cable::Host(0), 1_000_000)),
            (4, FaultKind::HostSlow(1, Some(axon_wire::Rate::mbps(1)))),
            (5, FaultKind::HostSlow(1, None)),
        ];
        assert_eq!(noise, wanted);
    }
}
