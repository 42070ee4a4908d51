//! Queue lengths in the closed loop of congestion points and reaction points.

mod world;

use axon_plane::qcn::{Rounding, RpConfig};
use axon_wire::{Rate, Span};
use world::{FRAME_BYTES_MAX, Setup, World, relative};

#[test]
fn the_queue_is_held_within_a_tenth_of_its_set_point_with_the_defaults() {
    for kilobytes in [25, 50, 100, 200] {
        for sources in [1, 2, 8, 32] {
            for (delay, frame_bytes_min) in [(5, FRAME_BYTES_MAX), (50, 64)] {
                let setup = Setup { frame_bytes_min, ..Setup::new(kilobytes, sources, delay) };
                let seen = World::new(setup).seen_after(500, 250);
                let what = format!("{kilobytes} KB, {sources} sources, {delay} us: {seen:?}");
                assert!((900..=1_100).contains(&relative(&seen, &setup)), "{what}");
                assert!(seen.used > 0.999, "{what}");
                assert!(seen.jain > if sources < 32 { 0.95 } else { 0.85 }, "{what}");
                assert!(seen.cnms > 100, "{what}");
            }
        }
    }
}

/// A queue of constant length causes no CNM before it is too long by one step of the feedback: (2w
/// + 1) / 63 of the set point if the remainder of the division is dropped.
#[test]
fn what_a_long_queue_is_above_its_set_point_is_mostly_one_step_of_the_feedback() {
    for weight_log2 in 0..=3 {
        let mut setup = Setup::new(200, 4, 20);
        setup.cp.weight_log2 = weight_log2;
        let step = 1_000 * ((2 << weight_log2) + 1) / 63;
        let above = relative(&World::new(setup).seen_after(300, 200), &setup) - 1_000;
        assert!((step * 70 / 100..=step).contains(&above), "w 2^{weight_log2}: {above} of {step}");
    }
    for (rounding, range) in [(Rounding::Nearest, 1_015..=1_035), (Rounding::Up, 980..=1_000)] {
        let mut setup = Setup::new(200, 4, 20);
        setup.cp.interpretations.rounding = rounding;
        let relative = relative(&World::new(setup).seen_after(300, 200), &setup);
        assert!(range.contains(&relative), "{rounding:?}: {relative}");
    }
}

#[test]
fn when_half_of_the_sources_stop_the_others_have_the_whole_link_after_five_timers() {
    for sources in [2, 8, 32] {
        let setup = Setup::new(50, sources, 20);
        let mut world = World::new(setup);
        world.run(Span::from_millis(500));
        for source in &mut world.sources[..sources / 2] {
            source.running = false;
        }
        let early = world.seen_after(0, 50);
        assert!(early.used < 0.75, "{sources} sources: {early:?}");
        let late = world.seen_after(50, 200);
        assert!(late.used > 0.999, "{sources} sources: {late:?}");
        assert!(late.queue_longest < 100_000, "{sources} sources: {late:?}");
        if sources > 2 {
            assert!((900..=1_100).contains(&relative(&late, &setup)), "{late:?}");
        }
    }
}

/// The step test of paper 004, figure 11, with shorter steps. The reaction point's variables are
/// scaled to the link of 1 Gb/s: unscaled, with a fifth of it as the bottleneck, the queue is up to
/// 17 % too long.
#[test]
fn one_source_follows_the_steps_of_the_link_and_the_queue_stays_at_its_set_point() {
    for kilobytes in [25, 50, 100, 200] {
        let mut setup = Setup::new(kilobytes, 1, 20);
        setup.rp = RpConfig::scaled_for_port(Rate::gbps(1));
        let mut world = World::new(setup);
        world.rate = Rate::gbps(1);
        world.run(Span::from_secs(1));
        for megabits in [200, 400, 600, 800] {
            world.rate = Rate::mbps(megabits);
            let step = world.seen_after(0, 4_000);
            let seen = world.seen_after(0, 2_000);
            let what = format!("{kilobytes} KB, {megabits} Mb/s: {step:?}, {seen:?}");
            assert!((900..=1_100).contains(&relative(&seen, &setup)), "{what}");
            assert!(seen.used > 0.999, "{what}");
            assert!(step.queue_longest < 5 * setup.cp.set_point.0, "{what}");
        }
        world.rate = Rate::gbps(1);
        assert!(world.seen_after(1_500, 500).used > 0.999);
    }
}
