//! Runs all models to their end, and prints the number of states in each.

use axon_check::catalogue::{self, Size};
use std::process::ExitCode;

fn main() -> ExitCode {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut held, mut ran) = (true, 0);
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let named = |entry: &catalogue::Entry| entry.name.contains(&wanted);
    for size in [Size::Small, Size::Large] {
        println!("{size:?} models");
        for entry in catalogue::models(size).into_iter().filter(named) {
            ran += 1;
            let outcome = (entry.run)(threads);
            held &= outcome.is_proved();
            println!("{outcome}");
        }
    }
    println!("Planted faults, each of which has to be found");
    for entry in catalogue::planted().into_iter().filter(named) {
        ran += 1;
        let outcome = (entry.run)(threads);
        held &= !outcome.broken.is_empty();
        println!("{outcome}");
    }
    if ran == 0 {
        eprintln!("there is no model {wanted}; without a name all run");
        return ExitCode::from(2);
    }
    if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
