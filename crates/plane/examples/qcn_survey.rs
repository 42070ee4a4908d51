//! Effect of each variable of congestion notification on a queue: prints the table in the
//! documentation of `axon_plane::qcn`. Means over one second, which begins one second after all
//! sources start at full rate.

#[path = "../tests/all/qcn_loop/world.rs"]
mod world;

use axon_plane::qcn::Rounding;
use axon_wire::{Bytes, Rate, Span};
use world::{Setup, World, relative};

/// Name of a variant, and its changes to the defaults.
type Variant = (&'static str, fn(&mut Setup));

const VARIANTS: [Variant; 11] = [
    ("defaults", |_| {}),
    ("rounding to the nearest", |setup| setup.cp.interpretations.rounding = Rounding::Nearest),
    ("w = 1", |setup| setup.cp.weight_log2 = 0),
    ("w = 4", |setup| setup.cp.weight_log2 = 2),
    ("sample base 75 KB", |setup| setup.cp.sample_base = Bytes(75_000)),
    ("sample base 300 KB", |setup| setup.cp.sample_base = Bytes(300_000)),
    ("gain 1/64", |setup| setup.rp.gd_log2 = 6),
    ("gain 1/256", |setup| setup.rp.gd_log2 = 8),
    ("timer 1.5 ms", |setup| setup.rp.time_reset = Span::from_micros(1_500)),
    ("timer 0.3 ms", |setup| setup.rp.time_reset = Span::from_micros(300)),
    ("increase 50 and 500 Mb/s", |setup| {
        (setup.rp.ai_rate, setup.rp.hai_rate) = (Rate::mbps(50), Rate::mbps(500));
    }),
];

fn main() {
    let mut used: f64 = 1.0;
    for (name, change) in VARIANTS {
        let mut jain = 0.0;
        print!("{name:25}");
        for kilobytes in [25, 100] {
            for sources in [1, 2, 8, 32] {
                let mut setup = Setup::new(kilobytes, sources, 20);
                change(&mut setup);
                let seen = World::new(setup).seen_after(1_000, 1_000);
                print!(" {:4}", (relative(&seen, &setup) + 5) / 10);
                used = used.min(seen.used);
                jain = seen.jain;
            }
        }
        println!(" {jain:.2}");
    }
    println!("the link was used to {:.2} % at least", used * 100.0);
}
