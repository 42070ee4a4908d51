//! A store that is closed, cut, damaged, in the way or without room.

use super::*;
use axon_node::{StoredHost, StoredLease, StoredState};
use axon_wire::{MacAddr, NodeId, PortNo};
use nix::sys::stat::Mode;
use std::fs::File;
use std::net::Ipv4Addr;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("axon-store-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn store(&self) -> PathBuf {
        self.0.join("c1.state.store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(folder: &Folder) -> Result<(Store, Vec<Stored>)> {
    Store::open(&folder.store(), "ring", &Clock::start())
}

fn mac(number: u32) -> MacAddr {
    let [a, b, c, d] = number.to_be_bytes();
    MacAddr([2, 0, a, b, c, d])
}

fn host(number: u32, port: u16) -> Stored {
    let (switch, port) = (NodeId(3), PortNo(port));
    Stored::Host(StoredHost { mac: mac(number), switch, port, ips: Vec::new() })
}

fn lease(number: u32, until: Time) -> Stored {
    Stored::Lease(StoredLease {
        ip: Ipv4Addr::from(0x0a00_0000 + number),
        mac: mac(number),
        client_id: vec![1, 2, 3],
        switch: NodeId(3),
        port: PortNo(4),
        state: StoredState::Bound,
        until,
    })
}

fn put(store: &mut Store, entries: &[Stored]) {
    let changes: Vec<_> = entries.iter().cloned().map(StoreChange::Put).collect();
    store.keep_changes(changes.iter());
    until(store, |store| store.status().queued_bytes == 0);
}

/// Waits for the threads of a store.
fn until(store: &Store, done: impl Fn(&Store) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done(store) {
        assert!(Instant::now() < end, "{:?}", store.status());
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Goes on until a log that has grown is replaced.
fn settle(store: &mut Store) {
    while store.has_grown(store.status().file_bytes) {
        store.round(Time::ZERO);
        std::thread::yield_now();
    }
}

/// Has a failing store written anew; returns whether that went well.
fn retry(store: &mut Store, after: Span) -> bool {
    until(store, |store| store.writer.progress().idle);
    store.round(Time::ZERO + after);
    until(store, |store| store.writer.progress().idle);
    !store.status().failing
}

#[test]
fn what_was_kept_is_there_after_a_crash_and_times_are_those_of_the_wall_clock() {
    let folder = Folder::new("kept");
    let (mut store, found) = open(&folder).unwrap();
    assert!(found.is_empty());
    let until = store.clock.now() + Span::from_secs(1_000);
    put(&mut store, &[host(1, 1), host(2, 2), lease(1, until)]);
    let delete = StoreChange::Delete(host(2, 2).key());
    store.keep_changes([&delete, &StoreChange::Put(host(1, 7))].into_iter());
    // Nothing is closed in order.
    std::mem::forget(store);
    let (_, found) = open(&folder).unwrap();
    let [Stored::Host(one), Stored::Lease(leased)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(one.port, PortNo(7));
    // The clocks of both started at different times.
    let left = leased.until.since(Time::ZERO);
    assert!(left > Span::from_secs(900) && left <= Span::from_secs(1_001), "{left}");
    assert_eq!(
        StoredLease { until, ..leased.clone() },
        match lease(1, until) {
            Stored::Lease(lease) => lease,
            Stored::Host(_) => unreachable!(),
        }
    );
}

#[test]
fn a_change_that_changes_nothing_is_not_written_and_a_log_that_has_grown_is_written_anew() {
    let folder = Folder::new("grown");
    let (mut store, _) = open(&folder).unwrap();
    put(&mut store, &[host(1, 1)]);
    let bytes = fs::metadata(folder.store()).unwrap().len();
    put(&mut store, &[host(1, 1)]);
    store.keep_changes([&StoreChange::Delete(host(9, 9).key())].into_iter());
    assert_eq!(fs::metadata(folder.store()).unwrap().len(), bytes);
    for round in 0..40_000u32 {
        put(&mut store, &[host(round % 3, round as u16)]);
        if round % 1_000 == 0 {
            settle(&mut store);
        }
    }
    settle(&mut store);
    let status = store.status();
    assert!(status.file_bytes < SLACK_BYTES * 2, "{status:?}");
    assert_eq!(fs::metadata(folder.store()).unwrap().len(), status.file_bytes);
    std::mem::forget(store);
    let (store, mut found) = open(&folder).unwrap();
    found.sort_by_key(Stored::key);
    let newest = |n: u32| (0..40_000).rev().find(|round| round % 3 == n).unwrap() as u16;
    assert_eq!(found, [host(0, newest(0)), host(1, newest(1)), host(2, newest(2))]);
    assert!(store.status().file_bytes < 300, "{:?}", store.status());
}

#[test]
fn a_store_that_a_crash_has_cut_is_repaired_and_a_damaged_one_is_set_aside() {
    let folder = Folder::new("damaged");
    let (mut store, _) = open(&folder).unwrap();
    put(&mut store, &[host(1, 1), host(2, 2), host(3, 3)]);
    drop(store);
    let whole = fs::read(folder.store()).unwrap();
    fs::write(folder.store(), &whole[..whole.len() - 3]).unwrap();
    assert_eq!(open(&folder).unwrap().1, [host(1, 1), host(2, 2)]);
    assert_eq!(open(&folder).unwrap().1.len(), 2, "and whole again");
    assert!(!beside(&folder.store(), ".damaged").exists());
    let mut damaged = whole.clone();
    damaged[whole.len() - 30] ^= 1;
    fs::write(folder.store(), &damaged).unwrap();
    let (_, found) = open(&folder).unwrap();
    assert!(found.len() == 2 && found.contains(&host(3, 3)), "{found:?}");
    assert_eq!(fs::read(beside(&folder.store(), ".damaged")).unwrap(), damaged);
    for zeros in [0, 4096] {
        fs::write(folder.store(), vec![0; zeros]).unwrap();
        assert_eq!(open(&folder).unwrap().1, []);
    }
}

#[test]
fn a_store_of_a_newer_axon_of_another_fabric_or_of_anything_is_refused_and_kept() {
    let folder = Folder::new("refused");
    let (mut store, _) = open(&folder).unwrap();
    put(&mut store, &[host(1, 1)]);
    drop(store);
    let whole = fs::read(folder.store()).unwrap();
    let mut newer = whole.clone();
    newer[8] += 1;
    let cases = [
        (&newer[..], "ring", "format is version 2"),
        (&whole[..], "torus", "the store of fabric \"ring\""),
        (b"1700000000000000000\n", "ring", "no store"),
    ];
    for (bytes, fabric, words) in cases {
        fs::write(folder.store(), bytes).unwrap();
        let error = Store::open(&folder.store(), fabric, &Clock::start()).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("move it away"), "{error}");
        assert_eq!(fs::read(folder.store()).unwrap(), bytes);
    }
}

#[test]
fn a_full_disk_stops_nobody_and_the_store_is_written_when_there_is_room() {
    let folder = Folder::new("full");
    let new = beside(&folder.store(), ".new");
    std::os::unix::fs::symlink("/dev/full", &new).unwrap();
    let (mut store, found) = open(&folder).unwrap();
    assert!(found.is_empty() && store.status().failing);
    put(&mut store, &[host(1, 1)]);
    assert!(!retry(&mut store, RETRY) && !folder.store().exists());
    fs::remove_file(&new).unwrap();
    assert!(retry(&mut store, RETRY * 2));
    put(&mut store, &[host(2, 2)]);
    assert!(!store.status().failing);
    std::mem::forget(store);
    assert_eq!(open(&folder).unwrap().1, [host(1, 1), host(2, 2)]);
}

#[test]
fn half_a_record_that_a_full_disk_took_is_cut_off() {
    let folder = Folder::new("half");
    let (mut store, _) = open(&folder).unwrap();
    put(&mut store, &[host(1, 1)]);
    let bytes = store.status().file_bytes;
    drop(store);
    // This file takes nothing: it is open for reading only.
    let file = Arc::new(File::open(folder.store()).unwrap());
    let log = Log { file, bytes, number: 0 };
    let writer = Writer::start((folder.store(), "ring".into()), Ok(log)).unwrap();
    let (mut store, found) = open(&folder).unwrap();
    assert_eq!(found, [host(1, 1)]);
    store.writer = writer;
    put(&mut store, &[host(2, 2)]);
    until(&store, |store| store.status().failing);
    assert_eq!(fs::metadata(folder.store()).unwrap().len(), bytes);
    assert!(!store.failing);
    store.round(Time::ZERO);
    assert!(retry(&mut store, RETRY));
    std::mem::forget(store);
    assert_eq!(open(&folder).unwrap().1, [host(1, 1), host(2, 2)]);
}

/// A pipe that nobody reads, where a file was expected, holds up whoever opens it: as a disk does
/// that does not answer.
#[test]
fn a_disk_that_hangs_holds_up_no_run_loop_and_the_store_heals_when_it_goes_on() {
    let folder = Folder::new("hangs");
    let (mut store, _) = open(&folder).unwrap();
    let pipe = beside(&folder.store(), ".new");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let (done, ended) = mpsc::channel();
    let worked = std::thread::spawn(move || {
        // The log grows, and cannot be written anew.
        let mut longest = Duration::ZERO;
        let mut last = 0;
        while !store.failing {
            last += 1;
            let changes: Vec<_> = (0..200).map(|n| StoreChange::Put(host(n, last))).collect();
            let begin = Instant::now();
            store.keep_changes(changes.iter());
            store.round(Time::ZERO + RETRY);
            longest = longest.max(begin.elapsed());
        }
        let queued = store.status().queued_bytes;
        done.send((longest, queued)).unwrap();
        (store, last)
    });
    let (longest, queued) = ended.recv_timeout(Duration::from_secs(60)).expect("it hangs as well");
    println!("a call took {longest:?} at most");
    assert_eq!(queued, 0, "what did not fit is given up, for it will be written anew");
    let (mut store, last) = worked.join().unwrap();
    // The disk goes on: who waits for the pipe has it, and it is no file that could be synced.
    let reader = File::open(&pipe).unwrap();
    let mut drained = reader.try_clone().unwrap();
    let drain = std::thread::spawn(move || io::copy(&mut drained, &mut io::sink()));
    fs::remove_file(&pipe).unwrap();
    until(&store, |store| store.writer.progress().idle);
    assert!(retry(&mut store, RETRY * 3));
    drain.join().unwrap().unwrap();
    std::mem::forget(store);
    let mut found = open(&folder).unwrap().1;
    found.sort_by_key(Stored::key);
    assert_eq!(found, (0..200).map(|n| host(n, last)).collect::<Vec<_>>());
}
