//! Queue between a node and the file of its recording.
//!
//! Blocks of a recording go into a queue, and a separate thread writes them to the file. A slow
//! disk thus delays the thread but not the node. The queue is bounded. The caller checks for
//! [room](Queue::has_room) first and ends the recording if there is none.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Queue limit, in bytes. It is checked before another block of about 64 KiB is added.
pub(crate) const QUEUE_BYTES_MAX: u64 = 16 << 20;
/// Time for which a node that ends waits for the disk.
const END_WAIT: Duration = Duration::from_secs(10);

/// Writer to a file. It writes directly at first, and through a thread after [`Queue::start`].
pub(crate) enum Queue {
    Direct(File),
    Threaded(Threaded),
}

/// Node's side of the thread.
pub(crate) struct Threaded {
    /// Data of the next piece.
    piece: Vec<u8>,
    /// Sender of pieces to the thread. `None` once everything has been sent.
    pieces: Option<Sender<Vec<u8>>>,
    shared: Arc<Shared>,
    /// Receives no messages, but closes when the thread has ended.
    ended: Receiver<()>,
}

#[derive(Default)]
struct Shared {
    /// Number of bytes in the queue and in the thread.
    bytes: AtomicU64,
    error: Mutex<Option<io::Error>>,
}

impl Queue {
    /// Starts the writing thread.
    ///
    /// # Errors
    /// No thread can be created, or the file descriptor cannot be duplicated.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        let Queue::Direct(file) = self else { return Ok(()) };
        let mut file = file.try_clone()?;
        let (pieces, queued) = channel::<Vec<u8>>();
        let (end, ended) = channel();
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let work = move || {
            let _end: Sender<()> = end;
            for piece in queued {
                if let Err(error) = file.write_all(&piece) {
                    *of_thread.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return;
                }
                of_thread.bytes.fetch_sub(piece.len() as u64, Ordering::AcqRel);
            }
        };
        std::thread::Builder::new().name("recording".into()).spawn(work)?;
        *self =
            Queue::Threaded(Threaded { piece: Vec::new(), pieces: Some(pieces), shared, ended });
        Ok(())
    }

    /// Returns whether another block may be written.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Queue::Direct(_) => true,
            Queue::Threaded(Threaded { shared, .. }) => {
                shared.bytes.load(Ordering::Acquire) <= QUEUE_BYTES_MAX
            }
        }
    }

    /// Closes the queue. Its thread ends when it has written all queued data.
    pub(crate) fn close(&mut self) {
        if let Queue::Threaded(threaded) = self {
            threaded.pieces = None;
        }
    }

    /// Closes the queue and waits until all data is written, for a few seconds at most.
    ///
    /// # Errors
    /// The file system's error, or a timeout.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.close();
        let Queue::Threaded(threaded) = self else { return Ok(()) };
        // The channel has no messages, so this returns when the other end is closed.
        if threaded.ended.recv_timeout(END_WAIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the disk is too slow"));
        }
        threaded.failed()
    }
}

impl Threaded {
    fn failed(&self) -> io::Result<()> {
        let error = self.shared.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.map_or(Ok(()), Err)
    }
}

impl Write for Queue {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Queue::Direct(file) => file.write(bytes),
            Queue::Threaded(Threaded { piece, .. }) => {
                piece.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    /// Passes the collected data on.
    fn flush(&mut self) -> io::Result<()> {
        let Queue::Threaded(threaded) = self else { return Ok(()) };
        threaded.failed()?;
        let piece = std::mem::take(&mut threaded.piece);
        threaded.shared.bytes.fetch_add(piece.len() as u64, Ordering::AcqRel);
        let sent = threaded.pieces.as_ref().is_some_and(|pieces| pieces.send(piece).is_ok());
        if sent { Ok(()) } else { threaded.failed().and(Err(io::ErrorKind::BrokenPipe.into())) }
    }
}
