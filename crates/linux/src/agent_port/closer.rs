//! Closes agent sockets in a thread other than the forwarding thread.
//!
//! An agent can send file descriptors over its socket. Reading them, or closing the socket before
//! they were read, closes those files as well, and that can block for as long as the agent likes.
//! For example, a TCP socket with `SO_LINGER` blocks until its peer has read. Therefore, the
//! forwarding thread only peeks at data from an agent (`MSG_PEEK`), and a separate thread, which
//! may block, closes the sockets.

use nix::sys::signal::{SigSet, SigmaskHow};
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

/// Number of sockets that may be queued for closing before the port stops accepting connections.
const WAITING_MAX: usize = 32;

/// Thread that closes sockets. When this value is dropped, the thread closes the remaining sockets
/// and ends.
#[derive(Default)]
pub(super) struct Closer {
    to_close: Option<Sender<UnixStream>>,
    waiting: Arc<AtomicUsize>,
}

impl Closer {
    /// Starts the thread if it is not running.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn start(&mut self) -> io::Result<()> {
        if self.to_close.is_some() {
            return Ok(());
        }
        let (sender, receiver) = channel::<UnixStream>();
        let waiting = Arc::clone(&self.waiting);
        let close = move || {
            for stream in receiver {
                drop(stream);
                waiting.fetch_sub(1, Ordering::Relaxed);
            }
        };
        // The calling thread handles signals. The new thread inherits the blocked mask.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let started = std::thread::Builder::new().name("close".into()).spawn(close);
        before.thread_set_mask()?;
        started?;
        self.to_close = Some(sender);
        Ok(())
    }

    /// Shuts a connection down at once and queues its socket for closing.
    pub(crate) fn close(&self, stream: UnixStream) {
        // This fails if the peer has gone, which is harmless.
        let _ = stream.shutdown(Shutdown::Both);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if let Some(to_close) = &self.to_close {
            // This cannot fail, because the thread outlives this value.
            let _ = to_close.send(stream);
        }
    }

    /// Returns whether too many sockets are queued for closing.
    pub(crate) fn is_behind(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= WAITING_MAX
    }
}
