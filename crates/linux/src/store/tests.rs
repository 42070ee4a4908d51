//! Tests of a store that is closed, truncated, damaged, blocked or out of space.

use super::allowance::WAIT_MAX;
use super::log::Disk;
use super::*;
use axon_node::{HostPair, StoredHost, StoredLease, StoredState, Subject};
use axon_wire::{MacAddr, NodeId, PortNo};
use nix::sys::stat::Mode;
use std::fs::File;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, mpsc};
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

pub(crate) fn host(number: u32, port: u16) -> Stored {
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

/// Makes the log grow until a rewrite is due. Returns the last port of all of its 200 hosts.
fn grow(store: &mut Store) -> u16 {
    let mut port = 0;
    while !store.has_grown(store.status().file_bytes) {
        port += 1;
        let many: Vec<_> = (0..200).map(|n| host(n, port)).collect();
        put(store, &many);
    }
    port
}

/// Waits until the threads of a store have reached a state.
fn until(store: &Store, done: impl Fn(&Store) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done(store) {
        assert!(Instant::now() < end, "{:?}", store.status());
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Runs rounds until a log that has grown has been replaced.
fn settle(store: &mut Store) {
    while store.has_grown(store.status().file_bytes) {
        store.round(Time::ZERO);
        std::thread::yield_now();
    }
}

/// Makes a failing store retry a rewrite. Returns whether the rewrite succeeded.
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
    // The store is not closed properly.
    std::mem::forget(store);
    let (_, found) = open(&folder).unwrap();
    let [Stored::Host(one), Stored::Lease(leased)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(one.port, PortNo(7));
    // The clocks of the two stores started at different times.
    let left = leased.until.since(Time::ZERO);
    assert!(left > Span::from_secs(900) && left <= Span::from_secs(1_001), "{left}");
    assert_eq!(
        StoredLease { until, ..leased.clone() },
        match lease(1, until) {
            Stored::Lease(lease) => lease,
            _ => unreachable!(),
        }
    );
}

#[test]
fn what_is_of_vlans_and_of_dhcpv6_is_there_after_a_crash() {
    let folder = Folder::new("vlans");
    let (mut store, _) = open(&folder).unwrap();
    let until = store.clock.now() + Span::from_secs(1_000);
    let vlan = |id| axon_wire::vlan::VlanId::new(id).unwrap();
    let of = |entry: Stored, id| entry.in_vlan(vlan(id)).unwrap();
    let lease6 = Stored::Lease6(StoredLease6 {
        ip: std::net::Ipv6Addr::LOCALHOST,
        mac: mac(1),
        switch: NodeId(3),
        port: PortNo(4),
        until,
    });
    let all = [host(1, 1), of(host(1, 2), 10), of(host(1, 3), 20), of(lease(1, until), 10), lease6];
    put(&mut store, &all);
    let gone = StoreChange::Delete(host(1, 2).key()).in_vlan(vlan(10)).unwrap();
    store.keep_changes([&gone].into_iter());
    std::mem::forget(store);
    let (_, mut found) = open(&folder).unwrap();
    found.sort_by_key(Stored::key);
    let mut left = 0;
    for entry in &mut found {
        if let Stored::Lease6(StoredLease6 { until: end, .. })
        | Stored::InVlan(_, StoredInVlan::Lease(StoredLease { until: end, .. })) = entry
        {
            left += u64::from(end.since(Time::ZERO) > Span::from_secs(900));
            assert!(end.since(Time::ZERO) <= Span::from_secs(1_001), "{end:?}");
            *end = until;
        }
    }
    let [plain, _, in_20, leased, lease6] = all;
    assert_eq!((found, left), (vec![plain, lease6, leased, in_20], 2));
}

#[test]
fn changes_of_the_policy_are_there_after_a_crash() {
    let folder = Folder::new("policy");
    let (mut store, _) = open(&folder).unwrap();
    let pair = Stored::Pair(HostPair::of(mac(2), mac(1)), false);
    let [by_mac, by_port] =
        [Subject::Mac(mac(3)), Subject::Port(NodeId(3), PortNo(4))].map(|of| (of, true));
    let kept = [by_mac, by_port].map(|(of, on)| Stored::Quarantine(of, on));
    put(&mut store, &[&[pair.clone()][..], &kept].concat());
    store.keep_changes([&StoreChange::Delete(kept[0].key())].into_iter());
    std::mem::forget(store);
    let (_, found) = open(&folder).unwrap();
    assert_eq!(found, [pair, kept[1].clone()]);
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

/// File on a disk with this many free bytes.
#[derive(Debug)]
struct SmallDisk(File, u64);

impl Disk for SmallDisk {
    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<usize> {
        let room = (self.1.saturating_sub(place) as usize).min(bytes.len());
        if room == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        Disk::write_at(&self.0, &bytes[..room], place)
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.0.cut(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

/// File on a disk with this write latency. Writes block while the lock is held.
#[derive(Debug)]
struct SlowDisk(File, Duration, Arc<Mutex<()>>);

impl Disk for SlowDisk {
    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<usize> {
        std::thread::sleep(self.1);
        let _held = self.2.lock().unwrap();
        Disk::write_at(&self.0, bytes, place)
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.0.cut(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

/// Returns a store with one entry, host 1, whose file is on this disk.
fn on_disk<D: Disk + 'static>(path: &Path, disk: impl FnOnce(File, u64) -> D) -> Store {
    let open = || Store::open(path, "ring", &Clock::start()).unwrap();
    let mut store = open().0;
    put(&mut store, &[host(1, 1)]);
    drop(store);
    let (mut store, found) = open();
    assert_eq!(found, [host(1, 1)]);
    let file = File::options().read(true).write(true).open(path).unwrap();
    let bytes = file.metadata().unwrap().len();
    let log = Log::new(Arc::new(disk(file, bytes)), bytes, 0);
    store.writer = Writer::start((path.into(), "ring".into()), Ok(log)).unwrap();
    store
}

/// Returns a store with one entry on a [`SlowDisk`]; see [`on_disk`].
pub(crate) fn slow(path: &Path, delay: Duration, held: &Arc<Mutex<()>>) -> Store {
    on_disk(path, |file, _| SlowDisk(file, delay, held.clone()))
}

#[test]
fn half_a_record_that_a_full_disk_took_is_cut_off_and_the_next_one_follows_without_a_hole() {
    let folder = Folder::new("half");
    let mut store = on_disk(&folder.store(), |file, bytes| SmallDisk(file, bytes + 33));
    let bytes = store.status().file_bytes;
    // The first record is complete and the second is not, so neither is kept.
    put(&mut store, &[host(2, 2), host(3, 3)]);
    until(&store, |store| store.status().failing);
    assert_eq!(fs::metadata(folder.store()).unwrap().len(), bytes);
    put(&mut store, &[host(4, 4)]);
    until(&store, |store| store.status().file_bytes > bytes);
    let contents = format::read(&fs::read(folder.store()).unwrap(), "ring").unwrap();
    assert_eq!(contents.fault, None);
    let keys: Vec<_> = contents.entries.into_keys().collect();
    assert_eq!(keys, [host(1, 1).key(), host(4, 4).key()]);
    // When the log is rewritten, all entries are in it.
    assert!(!store.failing);
    store.round(Time::ZERO);
    assert!(retry(&mut store, RETRY));
    std::mem::forget(store);
    assert_eq!(open(&folder).unwrap().1, [host(1, 1), host(2, 2), host(3, 3), host(4, 4)]);
}

#[test]
fn a_slow_disk_holds_up_a_round_once_however_many_changes_it_has() {
    let (folder, held) = (Folder::new("slow"), Arc::default());
    // This latency is less than the run loop waits for.
    let mut store = slow(&folder.store(), WAIT_MAX * 3 / 4, &held);
    let written = |store: &mut Store, n: u16| {
        store.keep_changes([&StoreChange::Put(host(1, n))].into_iter());
        store.status().queued_bytes == 0
    };
    let waits = (2..52).filter(|&n| written(&mut store, n)).count();
    // Two writes fit. More can be written in time only if this thread did not run.
    assert!(waits < 20, "{waits} of 50");
    assert_eq!(store.writer.allowance.left, Duration::ZERO);
    store.round(Time::ZERO);
    assert_eq!(store.writer.allowance.left, WAIT_MAX, "the next round may wait again");
    store.close(Duration::from_secs(60));
}

#[test]
fn a_store_that_is_closed_waits_for_what_a_slow_disk_has_not_taken_yet() {
    let (folder, held) = (Folder::new("closed"), Arc::new(Mutex::new(())));
    let mut store = slow(&folder.store(), Duration::ZERO, &held);
    let holds = held.lock().unwrap();
    store.keep_changes([&StoreChange::Put(host(2, 2))].into_iter());
    assert!(store.status().queued_bytes > 0);
    let closed = std::thread::spawn(move || store.close(Duration::from_secs(60)));
    std::thread::sleep(WAIT_MAX);
    drop(holds);
    let status = closed.join().unwrap();
    assert_eq!((status.queued_bytes, status.failing), (0, false));
    assert_eq!(open(&folder).unwrap().1, [host(1, 1), host(2, 2)]);
}

#[test]
fn a_store_on_a_disk_that_hangs_is_closed_in_time_and_says_what_is_lost() {
    let (folder, held) = (Folder::new("bound"), Arc::new(Mutex::new(())));
    let mut store = slow(&folder.store(), Duration::ZERO, &held);
    let holds = held.lock().unwrap();
    store.keep_changes([&StoreChange::Put(host(2, 2))].into_iter());
    let (done, closed) = mpsc::channel();
    std::thread::spawn(move || done.send(store.close(WAIT_MAX)));
    let status = closed.recv_timeout(Duration::from_secs(60)).expect("it hangs as well");
    assert!(status.queued_bytes > 0, "{status:?}");
    drop(holds);
}

#[test]
fn a_store_that_is_failing_when_it_is_closed_is_tried_once_more() {
    let folder = Folder::new("once-more");
    let mut store = on_disk(&folder.store(), SmallDisk);
    put(&mut store, &[host(2, 2)]);
    until(&store, |store| store.status().failing);
    assert!(!store.close(Duration::from_secs(60)).failing);
    assert_eq!(open(&folder).unwrap().1, [host(1, 1), host(2, 2)]);
}

#[test]
fn a_log_that_has_grown_and_finds_no_room_to_be_written_anew_goes_on() {
    let folder = Folder::new("no-room");
    let (mut store, _) = open(&folder).unwrap();
    let new = beside(&folder.store(), ".new");
    std::os::unix::fs::symlink("/dev/full", &new).unwrap();
    grow(&mut store);
    store.round(Time::ZERO);
    until(&store, |store| store.writer.progress().idle);
    store.round(Time::ZERO);
    assert!(store.refused && !store.status().failing, "the log has all");
    let progress = store.writer.progress();
    assert!(progress.idle, "a round later is too early to try again");
    put(&mut store, &[host(0, 9_999)]);
    assert!(store.status().file_bytes > progress.file_bytes);
    fs::remove_file(&new).unwrap();
    assert!(retry(&mut store, RETRY));
    assert!(store.status().file_bytes < SLACK_BYTES);
    std::mem::forget(store);
    assert!(open(&folder).unwrap().1.contains(&host(0, 9_999)));
}

/// A pipe without a reader blocks the opener, like a disk that hangs.
#[test]
fn a_disk_that_hangs_holds_up_no_run_loop_and_the_store_heals_when_it_goes_on() {
    let folder = Folder::new("hangs");
    let (mut store, _) = open(&folder).unwrap();
    let pipe = beside(&folder.store(), ".new");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let mut last = grow(&mut store);
    // A rewrite is due and hangs.
    store.round(Time::ZERO);
    let (done, ended) = mpsc::channel();
    let worked = std::thread::spawn(move || {
        let (mut rounds, mut in_vain) = (0, 0);
        while !store.failing {
            last += 1;
            for n in 0..200 {
                store.keep_changes([&StoreChange::Put(host(n, last))].into_iter());
            }
            rounds += 1;
            in_vain += u32::from(store.writer.allowance.left.is_zero());
            store.round(Time::ZERO + RETRY);
        }
        let queued = store.status().queued_bytes;
        done.send((rounds, in_vain, queued)).unwrap();
        (store, last)
    });
    let ended = ended.recv_timeout(Duration::from_secs(60)).expect("it hangs as well");
    let (rounds, in_vain, queued) = ended;
    assert!(in_vain <= 1 && rounds > 1, "{in_vain} of {rounds} rounds waited as long as they may");
    assert_eq!(queued, 0, "what did not fit is given up, for it will be written anew");
    let (mut store, last) = worked.join().unwrap();
    // The disk recovers. The writer opens the pipe, which cannot be synced.
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
