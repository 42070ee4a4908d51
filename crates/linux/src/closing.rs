//! Closes sockets without waiting for it.
//!
//! A packet socket that is closed waits until no CPU can see it any more: a grace period of RCU, or
//! two, of up to 20 ms each (`packet_release`). A node whose port has just lost its carrier has no
//! time for that: other nodes wait for the news.

use std::os::fd::OwnedFd;
use std::thread;

/// Closes these sockets in a thread of its own; here, where no thread can be had.
pub(crate) fn apart(sockets: Vec<OwnedFd>) {
    if !sockets.is_empty() {
        let closing = thread::Builder::new().name("closing".into()).stack_size(64 * 1024);
        // What a thread that cannot start would have closed is dropped with it.
        drop(closing.spawn(move || drop(sockets)));
    }
}
