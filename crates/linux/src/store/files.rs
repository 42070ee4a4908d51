//! Work of the thread that writes a store.

use super::log::Log;
use super::state::{Job, Rewriting, Shared, State, Step, ToSync};
use std::io;

/// Maximum number of syncs of a rewritten log before it replaces the old one. The first sync covers
/// the whole log, and each further one the records added in the meantime.
const SYNCS_MAX: u32 = 3;

/// Files of the writing thread.
#[derive(Debug)]
pub(super) struct Files {
    /// Log; `None` if it could not be written.
    log: Option<Log>,
    /// Rewritten log that will replace it.
    next: Option<Next>,
    /// Files that are no longer used. Closing a file may block on the disk, so they are closed
    /// while the lock is not held.
    unused: Vec<Log>,
}

/// Rewritten log that has not replaced the old one yet.
#[derive(Debug)]
struct Next {
    log: Log,
    /// Length of the log at its last sync request, in bytes.
    handed: u64,
    /// Number of sync requests.
    syncs: u32,
}

impl Files {
    /// Creates the state of the thread. A log without error is already on the disk.
    pub(super) fn new(log: io::Result<Log>, state: &mut State) -> Files {
        match &log {
            Ok(log) => (state.file_bytes, state.synced_bytes) = (log.bytes, log.bytes),
            Err(error) => state.fail(error),
        }
        Files { log: log.ok(), next: None, unused: Vec::new() }
    }

    pub(super) fn step(&mut self, shared: &Shared, step: Step) {
        match step {
            Step::Write(Job::Append(payloads, _)) => self.append(shared, &payloads),
            Step::Write(Job::Rewrite(payloads, number)) => self.rewrite(shared, &payloads, number),
            Step::Synced(number, done) => self.synced(shared, number, done),
        }
        let mut state = shared.lock();
        (state.busy, state.writing_bytes) = (false, 0);
        if let Some(log) = self.log.as_ref().filter(|log| log.bytes != state.file_bytes) {
            state.file_bytes = log.bytes;
            let directory = state.sync_log.as_ref().is_some_and(|sync| sync.directory);
            let before = state.sync_log.replace(ToSync { log: log.clone(), directory });
            self.unused.extend(before.map(|sync| sync.log));
        }
        shared.changed.notify_all();
        drop(state);
        self.unused.clear();
    }

    fn append(&mut self, shared: &Shared, payloads: &[Vec<u8>]) {
        if let Some(mut next) = self.next.take() {
            match next.log.append(payloads) {
                Ok(()) => self.next = Some(next),
                // Without these records, the rewritten log cannot replace the old one.
                Err(error) => self.give_up(shared, next.log, &error),
            }
        }
        if let Some(Err(error)) = self.log.as_mut().map(|log| log.append(payloads)) {
            shared.lock().fail(&error);
        }
    }

    fn rewrite(&mut self, shared: &Shared, payloads: &[Vec<u8>], number: u64) {
        match Log::create(&shared.path, &shared.fabric, number, payloads) {
            Ok(log) => {
                let next = Next { handed: log.bytes, syncs: 1, log };
                self.unused.extend(self.next.take().map(|next| next.log));
                self.hand_over(&mut shared.lock(), next);
            }
            Err(error) => shared.lock().refuse(number, &error),
        }
    }

    /// Requests a sync of the rewritten log.
    fn hand_over(&mut self, state: &mut State, next: Next) {
        self.unused.extend(state.sync_next.replace(next.log.clone()));
        self.next = Some(next);
    }

    /// Handles the end of a sync of a rewritten log. When the records added in the meantime are
    /// also synced, the log replaces the old one, unless another rewrite is requested.
    fn synced(&mut self, shared: &Shared, number: u64, done: io::Result<()>) {
        let Some(mut next) = self.next.take_if(|next| next.log.number == number) else { return };
        let mut state = shared.lock();
        if state.rewriting.is_none_or(|rewriting| rewriting.number != number) {
            drop(state);
            Log::remove(&shared.path);
            return self.unused.push(next.log);
        }
        if done.is_ok() && next.log.bytes > next.handed && next.syncs < SYNCS_MAX {
            (next.handed, next.syncs) = (next.log.bytes, next.syncs + 1);
            // Data that was reported as synced must be on the disk with either log.
            state.rewriting = Some(Rewriting { number, is_tail: true });
            return self.hand_over(&mut state, next);
        }
        drop(state);
        match done.and_then(|()| next.log.take_place(&shared.path)) {
            Ok(()) => self.replace(&mut shared.lock(), next.log),
            Err(error) => self.give_up(shared, next.log, &error),
        }
    }

    /// Replaces the log by the rewritten one, which already has the name of the store. Until its
    /// directory is also synced, a loss of power may restore the old log.
    fn replace(&mut self, state: &mut State, log: Log) {
        let unsynced = match &state.failing {
            Some(_) => log.bytes,
            None => state.file_bytes.saturating_sub(state.synced_bytes),
        };
        state.synced_bytes = log.bytes.saturating_sub(unsynced);
        (state.in_place, state.file_bytes) = (log.number, log.bytes);
        let before = state.sync_log.replace(ToSync { log: log.clone(), directory: true });
        self.unused.extend(before.map(|sync| sync.log));
        if state.rewriting.take_if(|rewriting| rewriting.number == log.number).is_some() {
            (state.failing, state.refused) = (None, None);
        }
        self.unused.extend(self.log.replace(log));
    }

    /// Discards a rewritten log.
    fn give_up(&mut self, shared: &Shared, log: Log, error: &io::Error) {
        Log::remove(&shared.path);
        shared.lock().refuse(log.number, error);
        self.unused.push(log);
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::Disk;
    use super::*;
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Weak};

    /// Files without threads, so that the test makes each step.
    struct Scene {
        folder: PathBuf,
        shared: Arc<Shared>,
        files: Files,
    }

    impl Scene {
        fn new(name: &str) -> Scene {
            let folder = format!("axon-files-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            fs::create_dir(&folder).unwrap();
            let path = folder.join("store");
            let log = Log::create(&path, "ring", 0, &[]).unwrap();
            log.take_place(&path).unwrap();
            let rewriting = Some(Rewriting { number: 1, is_tail: false });
            let mut state = State { rewriting, ..State::default() };
            let files = Files::new(Ok(log), &mut state);
            Scene { folder, shared: Arc::new(Shared::new(path, "ring".into(), state)), files }
        }

        fn step(&mut self, step: Step) {
            self.files.step(&self.shared, step);
        }

        fn append(&mut self, byte: u8) {
            self.step(Step::Write(Job::Append(vec![vec![byte; 9]], 0)));
        }

        fn rewrite(&mut self) {
            self.step(Step::Write(Job::Rewrite(vec![vec![1; 9]], 1)));
        }

        /// Returns the next sync of the other thread: the log number, and whether the log is new.
        fn next_sync(&self) -> Option<(u64, bool)> {
            self.shared.lock().next_sync().map(|(sync, is_next)| (sync.log.number, is_next))
        }

        fn unsynced(&self) -> u64 {
            let state = self.shared.lock();
            state.file_bytes - state.synced_bytes
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn what_a_new_log_got_meanwhile_is_on_the_disk_before_it_takes_its_place() {
        let mut scene = Scene::new("tail");
        scene.rewrite();
        assert_eq!(scene.next_sync(), Some((1, true)));
        scene.append(2);
        let record = scene.unsynced();
        // This record is synced with the old log only.
        assert_eq!(scene.next_sync(), Some((0, false)));
        let bytes = scene.shared.lock().file_bytes;
        scene.shared.lock().synced_bytes = bytes;
        scene.step(Step::Synced(1, Ok(())));
        assert_eq!(scene.shared.lock().in_place, 0, "the new log does not have it there yet");
        assert_eq!(fs::metadata(&scene.shared.path).unwrap().len(), bytes, "the old log");
        scene.append(3);
        assert_eq!(scene.next_sync(), Some((1, true)));
        assert_eq!(scene.next_sync(), None, "nor may the old log be ahead again");
        scene.step(Step::Synced(1, Ok(())));
        scene.append(4);
        assert_eq!((scene.next_sync(), scene.next_sync()), (Some((1, true)), None));
        // Records that are added after this are not synced with either log.
        scene.step(Step::Synced(1, Ok(())));
        let state = scene.shared.lock();
        assert_eq!((state.in_place, state.rewriting), (1, None));
        assert_eq!(fs::metadata(&scene.shared.path).unwrap().len(), state.file_bytes);
        drop(state);
        assert_eq!(scene.unsynced(), 2 * record);
        let sync = scene.shared.lock().next_sync().expect("its directory is not on the disk yet");
        assert!(!sync.1 && sync.0.directory && sync.0.log.number == 1, "{sync:?}");
    }

    #[test]
    fn a_new_log_that_got_nothing_meanwhile_takes_its_place_at_once() {
        let mut scene = Scene::new("whole");
        scene.rewrite();
        scene.step(Step::Synced(1, Ok(())));
        assert_eq!(scene.shared.lock().in_place, 1);
        assert_eq!(scene.unsynced(), 0, "nothing was with the old one");
    }

    /// File that accepts nothing, and counts how often it is closed with and without the lock.
    #[derive(Debug)]
    struct Counted {
        shared: Weak<Shared>,
        closed: Arc<[AtomicU32; 2]>,
    }

    impl Disk for Counted {
        fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn cut(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            let locked = self.shared.upgrade().is_some_and(|shared| shared.is_locked());
            self.closed[usize::from(locked)].fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Scene {
        fn counted(&self, number: u64, closed: &Arc<[AtomicU32; 2]>) -> Log {
            let shared = Arc::downgrade(&self.shared);
            Log::new(Arc::new(Counted { shared, closed: closed.clone() }), 30, number)
        }
    }

    #[test]
    fn no_file_is_closed_while_the_run_loop_may_wait_for_the_lock() {
        let closed = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let closed_so_far = || [0, 1].map(|locked: usize| closed[locked].load(Ordering::Relaxed));
        // First case: an old log, after its replacement.
        let mut scene = Scene::new("closed");
        scene.files.log = Some(scene.counted(0, &closed));
        scene.rewrite();
        assert_eq!((scene.next_sync(), scene.next_sync()), (Some((1, true)), Some((0, false))));
        scene.shared.lock().sync_log =
            Some(ToSync { log: scene.counted(0, &closed), directory: false });
        scene.step(Step::Synced(1, Ok(())));
        assert_eq!(closed_so_far(), [2, 0]);
        // Second case: logs that could not be synced, that accept nothing, or that are no longer
        // wanted.
        let next = |scene: &Scene| {
            let rewriting = Some(Rewriting { number: 2, is_tail: false });
            scene.shared.lock().rewriting = rewriting;
            Some(Next { log: scene.counted(2, &closed), handed: 30, syncs: 1 })
        };
        scene.files.next = next(&scene);
        scene.step(Step::Synced(2, Err(io::ErrorKind::Other.into())));
        assert_eq!(closed_so_far(), [3, 0]);
        scene.files.next = next(&scene);
        scene.append(1);
        assert_eq!(closed_so_far(), [4, 0]);
        scene.files.next = next(&scene);
        scene.shared.lock().rewriting = None;
        scene.step(Step::Synced(2, Ok(())));
        assert_eq!(closed_so_far(), [5, 0]);
        // Third case: a log that is not synced before the next one exists.
        scene.files.next = next(&scene);
        scene.shared.lock().sync_next = Some(scene.counted(2, &closed));
        scene.rewrite();
        assert_eq!(closed_so_far(), [7, 0]);
    }

    #[test]
    fn a_log_that_cannot_be_written_anew_goes_on_and_leaves_no_file() {
        let mut scene = Scene::new("goes-on");
        scene.rewrite();
        scene.step(Step::Synced(1, Err(io::ErrorKind::StorageFull.into())));
        let state = scene.shared.lock();
        assert!(state.refused.is_some() && state.failing.is_none() && state.rewriting.is_none());
        drop(state);
        let before = fs::metadata(&scene.shared.path).unwrap().len();
        scene.append(2);
        assert!(fs::metadata(&scene.shared.path).unwrap().len() > before);
        assert_eq!(fs::read_dir(&scene.folder).unwrap().count(), 1, "the store alone");
    }

    #[test]
    fn a_log_that_takes_nothing_does_not_keep_its_successor_from_its_place() {
        let closed = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let mut scene = Scene::new("successor");
        scene.files.log = Some(scene.counted(0, &closed));
        scene.append(1);
        assert!(scene.shared.lock().failing.is_some());
        scene.rewrite();
        scene.append(2);
        assert!(scene.shared.lock().rewriting.is_some(), "the new log took the record");
        while let Some((1, true)) = scene.next_sync() {
            scene.step(Step::Synced(1, Ok(())));
        }
        let state = scene.shared.lock();
        assert_eq!((&state.failing, state.in_place), (&None, 1));
        assert!(File::open(&scene.shared.path).unwrap().metadata().unwrap().len() > 30);
    }
}
