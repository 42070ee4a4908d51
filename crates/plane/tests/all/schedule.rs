//! Shares of an egress port's traffic classes at 10 Gb/s. The names beginning with `unh` are
//! cases of the UNH-IOL test suite for enhanced transmission selection, group 1.

use crate::link::{GAP_BYTES, Link, Source};
use axon_plane::schedule::{Algorithm, ClassSet, FrameCost, ScheduleConfig};
use axon_wire::{Span, TrafficClass};
use proptest::prelude::*;

const WINDOW: Span = Span::from_millis(10);

fn ets(percent: u8) -> Algorithm {
    Algorithm::Ets { percent }
}

/// Frame sizes here include the FCS, so that only preamble and gap are missing.
fn config(classes: &[Algorithm]) -> ScheduleConfig {
    let cost = FrameCost { overhead_bytes: GAP_BYTES as u16, cell_bytes: 1 };
    ScheduleConfig { cost, ..ScheduleConfig::of(classes.iter().copied()) }
}

/// Asserts shares within a hundredth of the wanted ones, which is stricter than a percentage point.
fn assert_shares(link: &Link, wanted: &[f64]) {
    for (class, (share, wanted)) in link.shares().into_iter().zip(wanted).enumerate() {
        let near = (share - wanted).abs() <= wanted / 100.0;
        assert!(near, "class {class} has {share:.3} % instead of {wanted}: {:?}", link.shares());
    }
}

/// Asserts that every window's shares are the configured ones if all classes always have frames of
/// these sizes.
fn assert_utilised(percents: &[u8], sizes: &[&[u32]]) {
    let classes: Vec<Algorithm> = percents.iter().map(|&percent| ets(percent)).collect();
    let sources = sizes.iter().enumerate();
    let sources = sources.map(|(seed, sizes)| Source::random(sizes, seed as u64)).collect();
    let mut link = Link::new(&config(&classes), sources);
    let wanted: Vec<f64> = percents.iter().copied().map(f64::from).collect();
    for _ in 0..20 {
        link.run(WINDOW);
        assert_shares(&link, &wanted);
    }
}

const MIXED: &[u32] = &[68, 128, 256, 512, 1024, 1522];

#[test]
fn unh_37_1_1_two_classes_use_their_shares() {
    assert_utilised(&[50, 50], &[&[1522], &[1522]]);
    assert_utilised(&[50, 50], &[&[68], &[1522]]);
    assert_utilised(&[70, 30], &[&[1522], &[68]]);
    assert_utilised(&[10, 90], &[MIXED, &[9018]]);
}

#[test]
fn unh_37_1_2_three_classes_use_their_shares() {
    assert_utilised(&[20, 30, 50], &[&[1522], &[1522], &[1522]]);
    assert_utilised(&[20, 30, 50], &[&[9018], &[68], MIXED]);
    assert_utilised(&[5, 5, 90], &[&[68], &[1522], &[512]]);
}

#[test]
fn unh_37_1_3_four_classes_use_their_shares() {
    assert_utilised(&[10, 20, 30, 40], &[&[1522], &[1522], &[1522], &[1522]]);
    assert_utilised(&[10, 20, 30, 40], &[&[68], &[1522], MIXED, &[9018]]);
}

#[test]
fn unh_37_1_4_eight_classes_use_their_shares() {
    let percents = [5, 5, 10, 10, 10, 15, 20, 25];
    let longest: &[u32] = &[1522];
    assert_utilised(&percents, &[longest; 8]);
    let sizes: [&[u32]; 8] = [&[1522], &[68], &[128], MIXED, &[256], &[512], &[1024], &[9018]];
    assert_utilised(&percents, &sizes);
}

#[test]
fn a_class_of_one_percent_gets_its_share_within_a_tenth_of_a_point() {
    let mut link =
        Link::new(&config(&[ets(1), ets(99)]), vec![Source::of(&[9018]), Source::of(&[68])]);
    for _ in 0..20 {
        link.run(WINDOW);
        assert!((link.shares()[0] - 1.0).abs() <= 0.1, "{:?}", link.shares());
    }
}

#[test]
fn unh_37_1_5_unused_share_goes_to_the_others_in_proportion() {
    let classes = [ets(20), ets(30), ets(50)];
    let busy = || vec![Source::of(&[68]), Source::of(&[1522])];
    let with = |third: Source| busy().into_iter().chain([third]).collect();
    let silent = Source { due: u64::MAX, ..Source::of(&[1522]) };
    let mut link = Link::new(&config(&classes), with(silent));
    for _ in 0..10 {
        link.run(WINDOW);
        assert_shares(&link, &[40.0, 60.0, 0.0]);
    }
    // A fifth of its share is used: the other four also share two to three.
    let mut link = Link::new(&config(&classes), with(Source::offering(10, 512)));
    for _ in 0..10 {
        link.run(WINDOW);
        assert_shares(&link, &[36.0, 54.0, 10.0]);
    }
}

#[test]
fn unh_37_1_6_a_paused_lossless_class_leaves_its_share_and_takes_it_up_again() {
    let sources = vec![Source::of(&[1522]), Source::of(&[1522]), Source::of(&[68])];
    let mut link = Link::new(&config(&[ets(50), ets(30), ets(20)]), sources);
    for _ in 0..5 {
        link.paused = ClassSet::from_bits(1);
        link.run(WINDOW);
        assert_shares(&link, &[0.0, 60.0, 40.0]);
        link.paused = ClassSet::EMPTY;
        // Its burst is one quantum, and less than a frame of deficit from earlier.
        let mut at_once = 0;
        while let Some(class) = link.send() {
            if class == 0 {
                at_once += 1542;
            } else if at_once > 0 {
                break;
            }
        }
        assert!(at_once < 50 * 64 + 1542, "{at_once} bytes at once");
        link.run(WINDOW);
        assert_shares(&link, &[50.0, 30.0, 20.0]);
    }
}

#[test]
fn a_class_that_is_paused_again_and_again_keeps_its_share_while_it_may_send() {
    // Paused a third of the time (10 us in 30), it has half of two thirds.
    let sources = vec![Source::of(&[1522]), Source::of(&[1522])];
    let mut link = Link::new(&config(&[ets(50), ets(50)]), sources);
    let mut wire_bytes = [0, 0];
    for _ in 0..3000 {
        for (paused, micros) in [(0b01, 10), (0b00, 20)] {
            link.paused = ClassSet::from_bits(paused);
            link.run(Span::from_micros(micros));
            (0..2).for_each(|class| wire_bytes[class] += link.wire_bytes[class]);
        }
    }
    let share = 100.0 * wire_bytes[0] as f64 / (wire_bytes[0] + wire_bytes[1]) as f64;
    println!("a class with 50 %, paused a third of the time, has {share:.2} %");
    assert!((share - 100.0 / 3.0).abs() < 3.0, "{share}");
}

#[test]
fn unh_37_1_7_strict_classes_are_served_first() {
    let classes = [ets(75), Algorithm::Strict, ets(25), Algorithm::Strict];
    let sources = |strict: [Source; 2]| {
        let [low, high] = strict;
        vec![Source::of(&[68]), low, Source::of(&[1522]), high]
    };
    // Strict classes get all that they offer; the rest is shared as configured.
    let asking = [Source::offering(20, 128), Source::offering(30, 1522)];
    let mut link = Link::new(&config(&classes), sources(asking));
    for _ in 0..10 {
        link.run(WINDOW);
        assert_shares(&link, &[37.5, 20.0, 12.5, 30.0]);
    }
    let asking = [Source::of(&[68]), Source::offering(30, 1522)];
    let mut link = Link::new(&config(&classes), sources(asking));
    link.run(WINDOW);
    assert_shares(&link, &[0.0, 70.0, 0.0, 30.0]);
}

#[test]
fn round_robin_shares_as_fair_queueing_does() {
    let sizes: [&[u32]; 4] = [&[68], MIXED, &[1522], &[9018]];
    let weights = [3, 1, 2, 5];
    let run = |algorithm: fn(u32) -> Algorithm| {
        let sources = sizes.iter().map(|sizes| Source::random(sizes, 7)).collect();
        let mut link = Link::new(&config(&weights.map(algorithm)), sources);
        link.run(WINDOW);
        let wanted = weights.map(|weight| 100.0 * f64::from(weight) / 11.0);
        assert_shares(&link, &wanted);
        link.shares()
    };
    let wfq = run(|weight| Algorithm::Wfq { weight });
    let drr = run(|weight| Algorithm::Drr { quantum_bytes: weight * 1542 });
    println!("shares by WFQ {wfq:.3?}, by DRR {drr:.3?}");
    assert!(wfq.iter().zip(&drr).all(|(wfq, drr)| (wfq - drr).abs() < 0.2));
}

fn any_classes() -> impl Strategy<Value = Vec<Algorithm>> {
    let sharing = prop_oneof![
        (1..5000u32).prop_map(|quantum_bytes| Algorithm::Drr { quantum_bytes }).boxed(),
        (1..100u32).prop_map(|weight| Algorithm::Wfq { weight }).boxed(),
    ];
    let strict = || prop::collection::vec(any::<bool>(), 8);
    (prop::collection::vec(sharing, 8), strict()).prop_map(|(mut classes, strict)| {
        // All sharing classes use the algorithm of the first.
        let kind = core::mem::discriminant(&classes[0]);
        for (class, strict) in strict.into_iter().enumerate() {
            if strict || core::mem::discriminant(&classes[class]) != kind {
                classes[class] = Algorithm::Strict;
            }
        }
        classes
    })
}

proptest! {
    /// With any ready classes: a frame is sent if one can be, only ready classes send, and no
    /// sharing class sends while a strict one could.
    #[test]
    fn the_wire_never_idles_and_the_order_of_kinds_holds(
        classes in any_classes(),
        steps in prop::collection::vec((any::<u8>(), any::<u8>(), 1..9018u32), 1..200),
    ) {
        let mut schedule = axon_plane::schedule::Schedule::new(&config(&classes)).unwrap();
        let is_strict = |class: &TrafficClass| classes[class.index()] == Algorithm::Strict;
        let strict: ClassSet = TrafficClass::ALL.into_iter().filter(is_strict).collect();
        for (waiting, paused, bytes) in steps {
            let (waiting, paused) = (ClassSet::from_bits(waiting), ClassSet::from_bits(paused));
            let ready = waiting.difference(paused);
            let head = |class: TrafficClass| bytes + u32::from(class.value());
            let chosen = schedule.next(waiting, paused, head);
            prop_assert_eq!(chosen.is_none(), ready.is_empty());
            if let Some(class) = chosen {
                prop_assert!(ready.contains(class));
                if !ready.intersection(strict).is_empty() {
                    prop_assert_eq!(Some(class), ready.intersection(strict).highest());
                }
                prop_assert_eq!(schedule.next(waiting, paused, head), chosen, "asking is harmless");
                schedule.sent(class, head(class));
            }
        }
    }
}
