//! Each fuzz target runs its seeds and mutations of them, without libFuzzer and so without a
//! build of its own. The same inputs in each run: `AXON_FUZZ_MUTATIONS` sets how many per seed.

use axon_fuzz::{capture, dcb, fabric, header, message, node, pipeline, plane, probe, recording};
use oorandom::Rand32;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A target: its folder in `seeds/`, and its function.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 10] = [
    ("capture", capture::run),
    ("dcb", dcb::run),
    ("fabric", fabric::run),
    ("header", header::run),
    ("message", message::run),
    ("node", node::run),
    ("pipeline", pipeline::run),
    ("plane", plane::run),
    ("probe", probe::run),
    ("recording", recording::run),
];

/// Mutations of each seed, unless `AXON_FUZZ_MUTATIONS` is set.
const MUTATIONS: u32 = 3;

/// Memory that this process may have had at most: of all targets together, seeds included.
const PEAK_KIB_MAX: u64 = 512 * 1024;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")
}

/// The seeds of a target, sorted by name.
fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder().join(target)).expect("a folder of seeds");
    let paths: BTreeSet<PathBuf> = files.map(|file| file.expect("an entry").path()).collect();
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).expect("a seed");
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// Changes one to four places of `bytes`: flips a bit, sets, inserts or removes bytes, or takes
/// the end of `other`.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Rand32) {
    for _ in 0..random.rand_range(1..5) {
        let at = random.rand_range(0..bytes.len() as u32 + 1) as usize;
        let byte = random.rand_u32() as u8;
        match random.rand_range(0..6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << (byte % 8),
            1 if at < bytes.len() => bytes[at] = byte,
            2 => bytes.insert(at, byte),
            3 => drop(bytes.drain(at..(at + usize::from(byte % 8)).min(bytes.len()))),
            4 => bytes.truncate(at),
            _ => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[at.min(other.len())..]);
            }
        }
    }
}

/// Runs one input; on a finding writes it to `artifacts/<target>/` and says where.
fn check((name, run): Target, input: &[u8], origin: &Path) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
        let folder = folder().with_file_name("artifacts").join(name);
        let finding = folder.join(format!("from-{}", origin.file_name().unwrap().display()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&finding, input).unwrap();
        eprintln!("fuzz target {name}: the input is in {}", finding.display());
        std::panic::resume_unwind(panic);
    }
}

fn run(name: &str) {
    let target = *TARGETS.iter().find(|(known, _)| *known == name).expect("a target");
    let mutations = std::env::var("AXON_FUZZ_MUTATIONS").ok();
    let mutations = mutations.map_or(MUTATIONS, |text| text.parse().expect("a number"));
    let seeds = seeds(name);
    assert!(!seeds.is_empty());
    let mut random = Rand32::new(1);
    for (path, seed) in &seeds {
        check(target, seed, path);
        for _ in 0..mutations {
            let other = &seeds[random.rand_range(0..seeds.len() as u32) as usize].1;
            let mut input = seed.clone();
            mutate(&mut input, other, &mut random);
            check(target, &input, path);
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kib <= PEAK_KIB_MAX, "{kib} KiB of memory");
}

#[test]
fn each_folder_of_seeds_has_a_target() {
    let folders: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect());
}

#[test]
fn capture_survives_its_seeds() {
    run("capture");
}

#[test]
fn dcb_survives_its_seeds() {
    run("dcb");
}

#[test]
fn fabric_survives_its_seeds() {
    run("fabric");
}

#[test]
fn header_survives_its_seeds() {
    run("header");
}

#[test]
fn message_survives_its_seeds() {
    run("message");
}

#[test]
fn node_survives_its_seeds() {
    run("node");
}

#[test]
fn pipeline_survives_its_seeds() {
    run("pipeline");
}

#[test]
fn plane_survives_its_seeds() {
    run("plane");
}

#[test]
fn probe_survives_its_seeds() {
    run("probe");
}

#[test]
fn recording_survives_its_seeds() {
    run("recording");
}
