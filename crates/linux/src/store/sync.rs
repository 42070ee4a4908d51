//! A thread that brings what was written to the disk.

use nix::sys::signal::{SigSet, SigmaskHow};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The thread, and what it has done. It ends with this.
#[derive(Debug)]
pub(super) struct Syncer {
    files: SyncSender<Arc<File>>,
    failed: Arc<AtomicBool>,
    /// The file that was last on the disk with all that it had when it was handed over.
    done: Arc<Mutex<Option<Arc<File>>>>,
}

impl Syncer {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Syncer> {
        // One file waits while another is at work: whatever is written before the thread takes it
        // is part of its next turn.
        let (files, handed) = sync_channel::<Arc<File>>(1);
        let (failed, done) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (has_failed, is_done) = (failed.clone(), done.clone());
        let work = move || {
            while let Ok(file) = handed.recv() {
                match file.sync_data() {
                    Ok(()) => {
                        *is_done.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
                    }
                    Err(_) => has_failed.store(true, Ordering::Release),
                }
            }
        };
        // The thread takes no signal: those that end the process are for its run loop.
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let spawned = std::thread::Builder::new().name("store".into()).spawn(work);
        mask.thread_set_mask()?;
        spawned?;
        Ok(Syncer { files, failed, done })
    }

    /// Has a file brought to the disk.
    pub(super) fn sync(&self, file: &Arc<File>) {
        // Full: another turn is due, for this file or for one that takes its place.
        let _ = self.files.try_send(file.clone());
    }

    /// Whether this file was on the disk since it was handed over.
    pub(super) fn is_on_disk(&self, file: &Arc<File>) -> bool {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.as_ref().is_some_and(|done| Arc::ptr_eq(done, file))
    }

    /// Whether anything could not be brought to the disk since the last call.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.swap(false, Ordering::AcqRel)
    }
}
