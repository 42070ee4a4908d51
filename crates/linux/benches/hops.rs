//! Cost of one more switch on one CPU: `cargo bench -p axon-linux --bench hops`, as root.
//!
//! Chains of 1, 3 and 5 switches of each kind (`axon_linux::chain`) are measured alternately in one
//! run. The cost of a hop is (t5 - t1) / 4 of a round, and medians count. The last lines are the
//! bars of the kernel's data planes, as ratios.
//!
//! `-- ROUNDS THOUSANDS NAME`: the number of rounds, the thousands of frames for each chain and
//! round, and the prefix of the names of the kinds to run.

use anyhow::{Context, Result};
use axon_linux::chain::{Chain, Forwarding, bind_to};
use axon_linux::kernel::Hook;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::path::Path;

const BPF: &str = "/sys/fs/bpf";
const SIZES: [usize; 3] = [1, 3, 5];
const ROUNDS: usize = 9;
/// Frames for each chain and round, in thousands.
const THOUSAND_FRAMES: u32 = 1000;

const KINDS: [Forwarding; 8] = [
    Forwarding::Redirect(Hook::Xdp),
    Forwarding::RedirectByMap,
    Forwarding::Transit(Hook::Xdp),
    Forwarding::Push(Hook::Xdp),
    Forwarding::Strip(Hook::Xdp),
    Forwarding::Redirect(Hook::Tc),
    Forwarding::Transit(Hook::Tc),
    Forwarding::Bridge,
];

fn main() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        println!("chains of switches need root");
        return Ok(());
    }
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let number = |at: usize| arguments.get(at).map(|word| word.parse::<u32>()).transpose();
    let rounds = number(0)?.map_or(ROUNDS, |rounds| rounds as usize);
    let frames = 1000 * number(1)?.unwrap_or(THOUSAND_FRAMES);
    let wanted = |kind: &Forwarding| arguments.get(2).is_none_or(|w| kind.name().starts_with(w));
    own_namespaces().context("no namespaces of its own")?;
    let cpu = std::thread::available_parallelism()?.get() - 1;
    bind_to(cpu)?;
    let mut all = Vec::new();
    for kind in KINDS.into_iter().filter(wanted) {
        let name = kind.name().replace(' ', "-");
        let make = |size| Chain::new(&Path::new(BPF).join(format!("{name}-{size}")), kind, size);
        let chains = SIZES.map(make).into_iter().collect::<Result<Vec<_>>>();
        all.push((kind, chains.with_context(|| format!("no chain of {}", kind.name()))?));
    }
    let mut hops: Vec<Vec<[f64; 3]>> = vec![Vec::new(); all.len()];
    for _ in 0..rounds {
        for ((_, chains), hops) in all.iter_mut().zip(&mut hops) {
            let mut times = [0.0; 3];
            for (chain, time) in chains.iter_mut().zip(&mut times) {
                *time = chain.send(frames)?.as_secs_f64() * 1e9 / f64::from(frames);
            }
            hops.push(times);
        }
    }
    let kinds: Vec<Forwarding> = all.iter().map(|(kind, _)| *kind).collect();
    print(&kinds, &hops, frames);
    Ok(())
}

fn own_namespaces() -> nix::Result<()> {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    mount(Some("bpf"), BPF, Some("bpf"), MsFlags::empty(), none)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the cost of a hop from the chains of one round.
fn hop(times: &[f64; 3]) -> f64 {
    (times[2] - times[0]) / (SIZES[2] - SIZES[0]) as f64
}

fn print(kinds: &[Forwarding], hops: &[Vec<[f64; 3]>], frames: u32) {
    let rounds = hops.first().map_or(0, Vec::len);
    println!("{rounds} rounds of {frames} frames, medians, ns on one CPU");
    println!("{:20} {:>8} {:>8} {:>8} {:>8}  25 % to 75 %", "", "t1", "t3", "t5", "hop");
    for (kind, rounds) in kinds.iter().zip(hops) {
        let of = |at: usize| median(rounds.iter().map(|times| times[at]).collect());
        let mut each: Vec<f64> = rounds.iter().map(hop).collect();
        each.sort_by(f64::total_cmp);
        let quarter = |part: usize| each[(each.len() - 1) * part / 4];
        let (t, name) = ([of(0), of(1), of(2)], kind.name());
        println!(
            "{name:20} {:8.1} {:8.1} {:8.1} {:8.1}  {:.1} to {:.1}",
            t[0],
            t[1],
            t[2],
            median(each.clone()),
            quarter(1),
            quarter(3)
        );
    }
    let ratio = |of: Forwarding, to: Forwarding| {
        let rounds = |kind| kinds.iter().position(|one| *one == kind).map(|at| &hops[at]);
        let (of, to) = (rounds(of)?, rounds(to)?);
        Some(median(of.iter().zip(to).map(|(of, to)| hop(of) / hop(to)).collect()))
    };
    let bars = [
        (Forwarding::Transit(Hook::Xdp), Forwarding::RedirectByMap, 1.05),
        (Forwarding::Push(Hook::Xdp), Forwarding::RedirectByMap, 1.25),
        (Forwarding::Strip(Hook::Xdp), Forwarding::RedirectByMap, 1.25),
        (Forwarding::Transit(Hook::Xdp), Forwarding::Redirect(Hook::Xdp), 1.05),
        (Forwarding::Push(Hook::Xdp), Forwarding::Redirect(Hook::Xdp), 1.25),
        (Forwarding::Strip(Hook::Xdp), Forwarding::Redirect(Hook::Xdp), 1.25),
        (Forwarding::Transit(Hook::Xdp), Forwarding::Bridge, 0.2),
        (Forwarding::Transit(Hook::Tc), Forwarding::Redirect(Hook::Tc), 1.15),
        (Forwarding::Transit(Hook::Tc), Forwarding::Bridge, 0.7),
    ];
    for (of, to, most) in bars {
        let Some(ratio) = ratio(of, to) else { continue };
        let verdict = if ratio <= most { "holds" } else { "MISSED" };
        println!("{} / {}: {ratio:.3}, at most {most}: {verdict}", of.name(), to.name());
    }
}
