//! A run that stops and continues, possibly as another fabric from then on, equals the run that did
//! not stop.

use crate::common::Page;
use axon_fabric::model::Fabric;
use axon_sim::run::{Options, Report, Unlike, run};
use axon_sim::warm::Warm;
use axon_wire::{Span, Time};
use std::io::Write;

const RING: &str = "
name: ring
topology: { ring: { switches: 4, hosts_per_switch: 1 } }
links: { rate: 1Gbps }
traffic:
  - { udp: { rate: 200Mbps }, pattern: permutation, stop: 30ms }
  - { tcp: { bytes: 1MB }, pairs: [[h1, h3]] }
faults:
";

fn fabric(faults: &str) -> Fabric {
    axon_fabric::parse("ring.yaml".as_ref(), &(RING.to_owned() + faults)).expect("a fabric")
}

fn up(fabric: &Fabric, span: Span) -> Warm {
    let mut options = Options::default();
    Warm::up(fabric, &mut options, &mut ()).ahead(fabric, span, &options, &mut ())
}

fn go_on(mut warm: Warm, fabric: &Fabric, threads: usize) -> Report {
    let mut options = Options { threads, ..Options::default() };
    warm.continue_as(fabric, &mut options).expect("the same fabric");
    warm.go_on(fabric, &options, &mut ())
}

fn same(report: &Report, whole: &Report) {
    let json = |report: &Report| serde_json::to_string(report).expect("JSON");
    assert_eq!(report.trace_hash, whole.trace_hash);
    assert_eq!(json(report), json(whole));
}

#[test]
fn whether_and_where_a_run_stops_on_its_way_changes_nothing() {
    let faults = "  - { after_start: 3ms, down: [s1, s2] }\n  - { after_start: 9ms, up: [s1, s2] }";
    let fabric = fabric(faults);
    let whole = run(&fabric, Options::default());
    assert!(whole.passed() && whole.losses.values().sum::<u64>() > 0, "{whole:?}");
    for (millis, threads) in [(0, 1), (1, 2), (3, 1), (4, 1), (20, 2)] {
        let warm = up(&fabric, Span::from_millis(millis));
        assert_eq!(warm.now(), warm.ready_at() + Span::from_millis(millis));
        let report = go_on(warm, &fabric, threads);
        same(&report, &whole);
    }
}

#[test]
fn the_trace_of_a_run_that_goes_on_is_the_rest_of_that_of_the_whole_run() {
    let fabric = fabric("  - { after_start: 3ms, down: [s1, s2] }");
    let whole = Page::default();
    run(&fabric, Options { trace: Some(Box::new(whole.clone())), ..Options::default() });
    for threads in [1, 2] {
        let rest = Page::default();
        let trace: Option<Box<dyn Write>> = Some(Box::new(rest.clone()));
        let mut options = Options { threads, trace, ..Options::default() };
        let mut warm = up(&fabric, Span::from_millis(5));
        warm.continue_as(&fabric, &mut options).expect("the same fabric");
        warm.go_on(&fabric, &options, &mut ());
        let (whole, rest) = (whole.0.borrow(), rest.0.borrow());
        assert!(rest.len() > 1000 && whole.len() > rest.len(), "{} of {}", rest.len(), whole.len());
        assert!(whole.ends_with(&rest), "{threads} threads");
    }
}

#[test]
fn a_run_goes_on_with_other_faults_as_if_they_had_been_its_own() {
    let before = fabric("  - { after_start: 2ms, down: [s1, s2] }");
    for faults in [
        "  - { after_start: 2ms, down: [s1, s2] }\n  - { after_start: 6ms, up: [s1, s2] }",
        "  - { after_start: 2ms, down: [s1, s2] }\n  - { after_start: 8ms, crash: s3 }",
    ] {
        let after = fabric(faults);
        let report = go_on(up(&before, Span::from_millis(5)), &after, 1);
        same(&report, &run(&after, Options::default()));
    }
    // At the very beginning no event has occurred, not even those that are due at once.
    let at_once = fabric("  - { after_start: 0ms, down: [s1, s2] }");
    let whole = run(&at_once, Options::default());
    same(&go_on(up(&at_once, Span::ZERO), &at_once, 1), &whole);
    same(&go_on(up(&before, Span::ZERO), &at_once, 1), &whole);
}

#[test]
fn a_run_does_not_go_on_as_another_fabric_or_with_another_past() {
    let before = fabric("  - { after_start: 2ms, down: [s1, s2] }");
    let refused = |after: &Fabric| {
        up(&before, Span::from_millis(5)).continue_as(after, &mut Options::default())
    };
    let at = |warm: &Warm, millis| warm.ready_at() + Span::from_millis(millis);
    let warm = up(&before, Span::ZERO);
    let past = |at: Time| Err(Unlike::Past(at));
    assert_eq!(refused(&fabric("  - { after_start: 7ms, crash: s3 }")), past(at(&warm, 2)));
    let twice = "  - { after_start: 2ms, down: [s1, s2] }\n  - { after_start: 4ms, up: [s1, s2] }";
    assert_eq!(refused(&fabric(twice)), past(at(&warm, 4)));
    let text = RING.replace("200Mbps", "300Mbps") + "  - { after_start: 2ms, down: [s1, s2] }";
    let other = axon_fabric::parse("ring.yaml".as_ref(), &text).expect("a fabric");
    assert_eq!(refused(&other), Err(Unlike::Fabric));
    let slower = "  - { after_start: 2ms, down: [s1, s2] }\n  \
                  - { after_start: 7ms, rate: 10Mbps, between: [s3, s4] }";
    assert_eq!(refused(&fabric(slower)), Err(Unlike::Rates));
    assert_eq!(refused(&before), Ok(()));
}
