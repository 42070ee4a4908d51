//! The queue between a node and the file of its recording.
//!
//! In plain English: blocks of a recording go into a queue, and a thread of its own brings them to
//! the file. So a slow disk delays the thread and not the node. The queue is bounded: whoever fills
//! it asks first whether there is [room](Queue::has_room), and ends the recording if there is none.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes that may wait for the disk before another block, of some 64 KiB, is put into the queue.
pub(crate) const QUEUE_BYTES_MAX: u64 = 16 << 20;
/// How long the end of a node waits for the disk.
const END_WAIT: Duration = Duration::from_secs(10);

/// Writes to a file: directly at first, and through a thread after [`Queue::start`].
pub(crate) enum Queue {
    Direct(File),
    Threaded(Threaded),
}

/// The node's side of the thread.
pub(crate) struct Threaded {
    /// What gathers for the next piece.
    piece: Vec<u8>,
    /// `None` once all has been sent.
    pieces: Option<Sender<Vec<u8>>>,
    shared: Arc<Shared>,
    /// Gets no message; it is closed when the thread has ended.
    ended: Receiver<()>,
}

#[derive(Default)]
struct Shared {
    /// In the queue, and in the hands of the thread.
    bytes: AtomicU64,
    error: Mutex<Option<io::Error>>,
}

impl Queue {
    /// From now on a thread writes.
    ///
    /// # Errors
    /// There can be no thread, or no second handle of the file.
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

    /// Whether another block may be written.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Queue::Direct(_) => true,
            Queue::Threaded(Threaded { shared, .. }) => {
                shared.bytes.load(Ordering::Acquire) <= QUEUE_BYTES_MAX
            }
        }
    }

    /// Takes nothing more: its thread ends when it has written what is queued.
    pub(crate) fn close(&mut self) {
        if let Queue::Threaded(threaded) = self {
            threaded.pieces = None;
        }
    }

    /// Waits until all is written, for some seconds at most, and takes nothing more.
    ///
    /// # Errors
    /// What the file system said, or that it has not ended in time.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.close();
        let Queue::Threaded(threaded) = self else { return Ok(()) };
        // Nothing is ever sent: it comes back when the other end is gone.
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

    /// Hands over what has gathered.
    fn flush(&mut self) -> io::Result<()> {
        let Queue::Threaded(threaded) = self else { return Ok(()) };
        threaded.failed()?;
        let piece = std::mem::take(&mut threaded.piece);
        threaded.shared.bytes.fetch_add(piece.len() as u64, Ordering::AcqRel);
        let sent = threaded.pieces.as_ref().is_some_and(|pieces| pieces.send(piece).is_ok());
        if sent { Ok(()) } else { threaded.failed().and(Err(io::ErrorKind::BrokenPipe.into())) }
    }
}
