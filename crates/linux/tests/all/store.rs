//! The store of a controller whose process is killed at random moments.

use crate::runner::{Test, part};
use axon_linux::clock::Clock;
use axon_linux::store::Store;
use axon_node::{StoreChange, Stored, StoredLease, StoredState};
use axon_wire::{MacAddr, NodeId, PortNo, Span, Time};
use oorandom::Rand64;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Number of times the process is killed.
const KILLS: u32 = 100;
/// Number of addresses that are leased repeatedly.
const POOL: u64 = 50;
/// Maximum number of words read from the process before it is killed.
const WORDS_MAX: u64 = 4_000;
/// Client number that marks a released address.
const RELEASED: u32 = 0;

pub const TESTS: &[Test] =
    &[("no_lease_is_given_twice_in_100_kills", no_lease_is_given_twice_in_100_kills)];

/// Runs the process that is killed.
pub fn run_part(words: &[&str]) -> ExitCode {
    let [path, seed] = *words else { return ExitCode::FAILURE };
    give(Path::new(path), seed.parse().expect("a number"))
}

fn lease(address: u32, client: u32, state: StoredState) -> StoredLease {
    let [a, b, c, d] = client.to_be_bytes();
    StoredLease {
        ip: Ipv4Addr::from(address),
        mac: MacAddr([2, 0, a, b, c, d]),
        client_id: vec![7; (client % 200) as usize],
        switch: NodeId(1),
        port: PortNo(1),
        state,
        until: Time::ZERO + Span::from_secs(3_600),
    }
}

/// Clients to which addresses are bound.
fn bound(entries: &[Stored]) -> BTreeMap<u32, u32> {
    let lease = |entry: &Stored| match entry {
        Stored::Lease(lease) if lease.state == StoredState::Bound => {
            let [_, _, a, b, c, d] = lease.mac.0;
            Some((lease.ip.into(), u32::from_be_bytes([a, b, c, d])))
        }
        _ => None,
    };
    entries.iter().filter_map(lease).collect()
}

/// Leases free addresses to clients and frees released ones, without end. Writes eight bytes to
/// standard output for each: a lease after it was stored, when its acknowledgement goes to the
/// client; a release before it is stored, when it arrives from the client.
fn give(path: &Path, seed: u64) -> ! {
    let clock = Clock::start();
    let (mut store, found) = Store::open(path, "test", &clock).expect("it opens after every kill");
    let mut random = Rand64::new(seed.into());
    let mut bound = bound(&found);
    let mut out = std::io::stdout();
    let mut say = |address: u32, client: u32| {
        let _ = out.write_all(&[address, client].map(u32::to_be_bytes).concat());
        let _ = out.flush();
    };
    loop {
        let address = 0x0a00_0001 + random.rand_range(0..POOL) as u32;
        let holder = bound.remove(&address);
        let client = holder.unwrap_or_else(|| random.rand_range(1..1 << 32) as u32);
        let state = if holder.is_some() { StoredState::Free } else { StoredState::Bound };
        if holder.is_some() {
            say(address, RELEASED);
        }
        let change = StoreChange::Put(Stored::Lease(lease(address, client, state)));
        store.keep_changes([&change].into_iter());
        if holder.is_none() {
            bound.insert(address, client);
            // On a busy machine the wait may fail, which is reported.
            while store.status().queued_bytes > 0 {
                std::thread::yield_now();
            }
            say(address, client);
        }
        store.round(clock.now());
    }
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the process until it has written this many words, and kills it at any point; returns all
/// words.
fn run_and_kill(path: &Path, random: &mut Rand64) -> Vec<(u32, u32)> {
    let path = path.to_str().expect("plain text");
    let words = part("store", [path, &random.rand_u64().to_string()]);
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = child.stdout.take().expect("a pipe");
    let mut bytes = vec![0; 8 * random.rand_range(0..WORDS_MAX) as usize];
    out.read_exact(&mut bytes).expect("it goes on for ever");
    child.kill().expect("it is ours");
    out.read_to_end(&mut bytes).expect("a pipe");
    child.wait().expect("it is ours");
    let word = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    bytes.chunks_exact(8).map(|pair| (word(pair), word(&pair[4..]))).collect()
}

fn no_lease_is_given_twice_in_100_kills() {
    let seed = std::process::id();
    println!("seed {seed}");
    let folder = std::env::temp_dir().join(format!("axon-store-kills-{seed}"));
    std::fs::create_dir(&folder).expect("a directory");
    let folder = Folder(folder);
    let path = folder.0.join("c1.store");
    let mut random = Rand64::new(seed.into());
    // By address: the client with the last acknowledged lease that has not been released.
    let mut holders: BTreeMap<u32, u32> = BTreeMap::new();
    let mut given = 0;
    for kill in 0..KILLS {
        for (address, client) in run_and_kill(&path, &mut random) {
            if client == RELEASED {
                holders.remove(&address);
                continue;
            }
            given += 1;
            let before = holders.insert(address, client);
            assert_eq!(before, None, "kill {kill}: {address:#x} is given to {client:#x} too");
        }
        let (_, found) = Store::open(&path, "test", &Clock::start()).expect("it opens");
        let bound = bound(&found);
        for (address, client) in &holders {
            let kept = bound.get(address);
            assert_eq!(kept, Some(client), "kill {kill}: the lease of {address:#x}");
        }
        // Leases that were stored but not reported, or reported as released but still stored.
        holders = bound;
    }
    println!("{given} leases, {KILLS} kills");
    let left = std::fs::read_dir(&folder.0).expect("it is ours").flatten();
    let damaged = left.map(|entry| entry.file_name()).find(|name| *name == "c1.store.damaged");
    assert_eq!(damaged, None);
}
