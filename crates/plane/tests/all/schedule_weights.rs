//! Paper 002 chapter 6: short frames beside long ones when the scheduler charges each frame for gap
//! and preamble, the weights that compensate for it, and weights that follow the traffic.
//!
//! The paper's numbers do not come from gap and preamble alone. Charging 20 bytes a frame, 68-byte
//! frames need 1.277 times the weight of 1522-byte frames; the paper found 1.72, and 1.08 for 256
//! bytes. No constant gives both: 1.72 would take 53 bytes, 1.08 takes 24. Its loss of "almost 25
//! %" for 68-byte frames does fit: 22 % with 20 bytes, 25 % with 24.
//!
//! A switch that charges for gap and preamble *and* counts in cells of 40 bytes, as memories keep
//! frames in cells, gives 1.722 at 68 bytes, 1.067 at 256, and 1.394 where half of the bytes are in
//! frames of either size; of the formulas' weights at the ends of all five bins none is off by more
//! than 2.6 %. The tests use this as the paper's switch. It is a guess that fits; cells of 24 bytes
//! with an overhead of 29 to 32 fit almost as well.

use crate::link::{Link, Source};
use axon_plane::schedule::{AWC_ONE, ClassSet, awc_weight};
use axon_plane::schedule::{Algorithm, FrameCost, Larger, SIZE_BINS, ScheduleConfig, Weights};
use axon_wire::Span;

/// The paper's maximum frame, with VLAN tag and FCS.
const LONGEST: u32 = 1522;
const GAP: FrameCost = FrameCost { overhead_bytes: 20, cell_bytes: 1 };
const GAP_FCS: FrameCost = FrameCost { overhead_bytes: 24, cell_bytes: 1 };
const CELLS: FrameCost = FrameCost { overhead_bytes: 20, cell_bytes: 40 };
/// Half of the bytes in 68-byte frames, half in 256-byte frames: 64 to 17.
fn half_of_bytes() -> Vec<u32> {
    [68].repeat(64).into_iter().chain([256].repeat(17)).collect()
}

fn with_quanta(cost: FrameCost, weights: Weights, quanta: &[u32]) -> ScheduleConfig {
    let classes = quanta.iter().map(|&quantum_bytes| Algorithm::Drr { quantum_bytes }).collect();
    ScheduleConfig { classes, cost, weights }
}

/// Returns the bytes that queues with these quanta send in 10 ms.
fn sent(cost: FrameCost, queues: &[(u32, &[u32])]) -> Vec<u64> {
    let quanta: Vec<u32> = queues.iter().map(|&(quantum, _)| quantum).collect();
    let sources = queues.iter().map(|(_, sizes)| Source::of(sizes)).collect();
    let mut link = Link::new(&with_quanta(cost, Weights::Fixed, &quanta), sources);
    link.run(Span::from_millis(10));
    link.bytes
}

/// Returns the weight at which a queue of `sizes` sends as many bytes as one of `rival`-byte frames
/// with weight 1. Found by bisection, which the paper's authors did by hand.
fn fair_weight(cost: FrameCost, sizes: &[u32], rival: u32) -> f64 {
    let unit = 3000;
    let (mut low, mut high) = (unit / 2, unit * 3);
    while high - low > 1 {
        let quantum = (low + high) / 2;
        let bytes = sent(cost, &[(quantum, sizes), (unit, &[rival])]);
        if bytes[0] < bytes[1] {
            low = quantum;
        } else {
            high = quantum;
        }
    }
    f64::from(high) / f64::from(unit)
}

/// Returns Jain's index of the bytes of each class in the last run, divided by its weight (paper
/// 002 formula 6.3).
fn jain(bytes: &[u64]) -> f64 {
    let sum: f64 = bytes.iter().map(|&x| x as f64).sum();
    let squares: f64 = bytes.iter().map(|&x| (x as f64).powi(2)).sum();
    sum * sum / (bytes.len() as f64 * squares)
}

fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    println!("{what}: {found:.4} (expected {expected}, within {:.1} %)", 100.0 * tolerance);
    assert!((found / expected - 1.0).abs() <= tolerance, "{what}: {found} not near {expected}");
}

#[test]
fn short_frames_get_almost_a_quarter_less_where_gap_and_preamble_count() {
    // Figure 6-1: "almost 25 % less" at 68 bytes.
    for (cost, kept) in [(FrameCost::FRAME, 1.0), (GAP, 0.783), (GAP_FCS, 0.751)] {
        let bytes = sent(cost, &[(LONGEST, &[68]), (LONGEST, &[LONGEST])]);
        let ratio = bytes[0] as f64 / bytes[1] as f64;
        assert_near(&format!("68 beside 1522 B, {cost:?}"), ratio, kept, 0.002);
    }
}

#[test]
fn gap_and_preamble_alone_ask_for_less_weight_than_the_paper_found() {
    for (sizes, expected) in [(68, 1.2773), (128, 1.1413), (256, 1.0641), (512, 1.0256)] {
        let found = fair_weight(GAP, &[sizes], LONGEST);
        assert_near(&format!("weight at {sizes} B, 20 B charged"), found, expected, 0.002);
    }
    assert_near(
        "68 and 256 B, half of the frames",
        fair_weight(GAP, &[68, 256], LONGEST),
        1.1089,
        0.002,
    );
    assert_near(
        "68 and 256 B, half of the bytes",
        fair_weight(GAP, &half_of_bytes(), LONGEST),
        1.1707,
        0.002,
    );
    // Charging the FCS, too, gives the paper's 1.08 at 256 bytes.
    assert_near("256 B, 24 B charged", fair_weight(GAP_FCS, &[256], LONGEST), 1.08, 0.005);
}

#[test]
fn cells_give_the_weights_of_figure_6_3() {
    for (size, paper, tolerance) in [(68, 1.72, 0.005), (256, 1.08, 0.015)] {
        let found = fair_weight(CELLS, &[size], LONGEST);
        assert_near(&format!("figure 6-3, {size} B"), found, paper, tolerance);
    }
    // The formulas are a fit to the figure.
    for size in SIZE_BINS {
        let formula = awc_weight(size) as f64 / AWC_ONE as f64;
        let found = fair_weight(CELLS, &[size], LONGEST);
        assert_near(&format!("formula at {size} B"), found, formula, 0.027);
    }
}

#[test]
fn longer_rivals_ask_for_a_little_more_weight() {
    // Figures 6-4 and 6-5.
    let weights = [LONGEST, 2500, 5000].map(|rival| fair_weight(CELLS, &[68], rival));
    println!("weight of 68 B beside 1522, 2500, 5000 B: {weights:.3?}");
    assert!(weights[1..].iter().all(|&weight| (1.74..1.76).contains(&weight)), "{weights:?}");
    for (rival, expected) in [(2500, 1.2837), (5000, 1.2890)] {
        let found = fair_weight(GAP, &[68], rival);
        assert_near(&format!("68 beside {rival} B, 20 B charged"), found, expected, 0.003);
    }
}

#[test]
fn the_weights_of_two_queues_hold_for_more() {
    // Figures 6-6 and 6-7.
    for (small, other) in [(68, 128), (68, 256), (68, 512), (68, 1024)] {
        let weigh = |size| (fair_weight(CELLS, &[size], LONGEST) * f64::from(LONGEST)) as u32;
        let bytes = sent(
            CELLS,
            &[(weigh(small), &[small]), (weigh(other), &[other]), (LONGEST, &[LONGEST])],
        );
        assert_near(&format!("Jain of {small}, {other}, 1522 B"), jain(&bytes), 1.0, 0.000_01);
    }
}

#[test]
fn a_mixed_queue_needs_the_average_of_weights_if_its_bytes_are_halved() {
    // Figure 6-8: 1.39 for 68 and 256 bytes, "about the average" of 1.72 and 1.08.
    let by_bytes = fair_weight(CELLS, &half_of_bytes(), LONGEST);
    assert_near("figure 6-8, 68 and 256 B, half of the bytes", by_bytes, 1.39, 0.01);
    // Halves of the frames, as in the paper's text, weigh the longer ones more, with any charge for
    // a frame: (68 * 1.72 + 256 * 1.08) / 324 = 1.21.
    let by_frames = fair_weight(CELLS, &[68, 256], LONGEST);
    assert_near("68 and 256 B, half of the frames", by_frames, 1.2045, 0.005);
}

const FIXED: Weights = Weights::Fixed;
/// For constant frames the paper's minute gives the same result; 20 ms save time.
const AWC: Weights =
    Weights::Awc { window: Span::from_millis(20), size_added_bytes: 0, larger: Larger::One };
const EXACT: Weights = Weights::ByteFair { window: Span::from_millis(5), size_added_bytes: 0 };

/// Returns Jain's index over 100 ms, after one window of the slowest rule.
fn jain_of(cost: FrameCost, weights: Weights, sizes: &[&[u32]]) -> f64 {
    let config = with_quanta(cost, weights, &vec![LONGEST; sizes.len()]);
    let sources = sizes.iter().enumerate();
    let sources = sources.map(|(seed, sizes)| Source::random(sizes, seed as u64)).collect();
    let mut link = Link::new(&config, sources);
    link.run(Span::from_millis(20));
    link.run(Span::from_millis(100));
    jain(&link.bytes)
}

#[test]
fn adapted_weights_are_fairer_than_none_and_exact_ones_fairest() {
    // Figure 6-10: from less than 0.985 to more than 0.999.
    let cases: [&[&[u32]]; 7] = [
        &[&[68], &[LONGEST]],
        &[&[128], &[LONGEST]],
        &[&[256], &[LONGEST]],
        &[&[512], &[LONGEST]],
        &[&[1024], &[LONGEST]],
        &[&[68], &[512], &[LONGEST]],
        &[&[68], &[128], &[256], &[512], &[1024], &[68, 1024], &[128, 512], &[LONGEST]],
    ];
    for sizes in cases {
        let found = [FIXED, AWC, EXACT].map(|weights| jain_of(CELLS, weights, sizes));
        println!("{sizes:?}, cells of 40 B: DRR, DRR-AWC, byte-fair {found:.6?}");
        // Algorithm 1 averages weights over frames instead of bytes, which is too much for queues
        // of mixed sizes.
        let of_one_size = sizes.iter().all(|sizes| sizes.len() == 1);
        let bar = if of_one_size { 0.999 } else { 0.99 };
        assert!(found[1] > bar && found[1] > found[0], "{found:?}");
        assert!(found[2] >= 0.99999, "{found:?}");
        let found = [FIXED, AWC, EXACT].map(|weights| jain_of(GAP, weights, sizes));
        println!("{sizes:?}, 20 B charged: DRR, DRR-AWC, byte-fair {found:.6?}");
        assert!(found[2] >= 0.99999, "{found:?}");
    }
    let drr = jain_of(CELLS, FIXED, cases[0]);
    assert!(drr < 0.985, "{drr}");
}

#[test]
fn formulas_fitted_to_one_switch_overdo_it_where_only_gap_and_preamble_count() {
    let [drr, awc] = [FIXED, AWC].map(|weights| jain_of(GAP, weights, &[&[68], &[LONGEST]]));
    println!("68 beside 1522 B, 20 B charged: DRR {drr:.5}, DRR-AWC {awc:.5}");
    assert!(awc < drr, "{awc} {drr}");
}

/// Returns Jain's index of each of the next windows.
fn by_window(link: &mut Link, windows: usize, window: Span) -> Vec<f64> {
    let mut next = || {
        link.run(window);
        jain(&link.bytes)
    };
    (0..windows).map(|_| next()).collect()
}

#[test]
fn exact_weights_are_there_three_windows_after_the_traffic_has_changed() {
    let window = Span::from_millis(5);
    for cost in [GAP, CELLS] {
        // After 50 ms long frames become short, and short ones long.
        let change = window.ticks() * 10;
        let swap = |before: u32, after: u32| {
            Source::new(move |ticks| if ticks < change { before } else { after })
        };
        let sources = vec![swap(68, LONGEST), swap(LONGEST, 68), Source::of(&[68, 256, 1024])];
        let mut link = Link::new(&with_quanta(cost, EXACT, &[LONGEST; 3]), sources);
        let found = by_window(&mut link, 20, window);
        println!("{cost:?}: {found:.6?}");
        // One window to detect it, one to compensate the loss, one for the remainder.
        for settled in [&found[3..10], &found[13..20]] {
            assert!(settled.iter().all(|&jain| jain >= 0.99999), "{found:?}");
        }
    }
}

#[test]
fn exact_weights_are_fair_over_time_whatever_the_sizes_do() {
    let every_sizes = [68, 69, 100, 256, 300, 777, 1024, 1025, LONGEST, 9018];
    for seed in 1..=5 {
        let mut sources: Vec<Source> = (0..6)
            .map(|class| Source::random(&every_sizes[..=class + 4], seed + class as u64))
            .collect();
        // One class is always charged for its traffic of the previous window.
        let window = Span::from_millis(5).ticks();
        sources.push(Source::new(
            move |ticks| if (ticks / window).is_multiple_of(2) { 68 } else { LONGEST },
        ));
        let mut link = Link::new(&with_quanta(CELLS, EXACT, &[LONGEST; 7]), sources);
        link.run(Span::from_millis(1000));
        println!("seed {seed}: {:.7}, {:?}", jain(&link.bytes), link.bytes);
        assert!(jain(&link.bytes) >= 0.99999, "seed {seed}: {:?}", link.bytes);
    }
}

#[test]
fn exact_weights_keep_configured_proportions_of_bytes() {
    let percents = [10, 20, 30, 40];
    let classes = percents.map(|percent| Algorithm::Ets { percent });
    let config = ScheduleConfig { cost: CELLS, weights: EXACT, ..ScheduleConfig::of(classes) };
    let sizes: [&[u32]; 4] = [&[68], &[LONGEST], &[68, 9018], &[256]];
    let sources = sizes.iter().map(|sizes| Source::random(sizes, 3)).collect();
    let mut link = Link::new(&config, sources);
    link.run(Span::from_millis(500));
    let over_weight: Vec<u64> = link
        .bytes
        .iter()
        .zip(percents)
        .map(|(bytes, percent)| bytes / u64::from(percent))
        .collect();
    println!("bytes over percentage {over_weight:?}");
    assert!(jain(&over_weight) >= 0.99999, "{over_weight:?}");
}

#[test]
fn exact_weights_do_not_repay_what_a_pause_has_cost() {
    let window = Span::from_millis(5);
    let sources = vec![Source::of(&[68]), Source::of(&[LONGEST]), Source::of(&[512])];
    let mut link = Link::new(&with_quanta(GAP, EXACT, &[LONGEST; 3]), sources);
    for paused in [1, 0].repeat(10) {
        link.paused = ClassSet::from_bits(paused);
        link.run(Span::from_micros(2500));
    }
    let found = by_window(&mut link, 5, window);
    println!("after ten windows, each half paused: {found:.6?}");
    assert!(found.iter().all(|&jain| jain >= 0.9999), "{found:?}");
}

#[test]
fn a_class_that_comes_and_goes_does_not_upset_the_others() {
    let sources = vec![Source::of(&[68]), Source::of(&[LONGEST]), Source::offering(5, 256)];
    let mut link = Link::new(&with_quanta(GAP, EXACT, &[LONGEST; 3]), sources);
    link.run(Span::from_millis(300));
    assert!(jain(&link.bytes[..2]) >= 0.99999, "{:?}", link.bytes);
    assert!((link.shares()[2] - 5.0).abs() < 0.05, "{:?}", link.shares());
}
