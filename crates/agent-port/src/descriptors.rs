//! Receives file descriptors over a Unix socket.

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Receives bytes over a Unix socket, and at most three file descriptors with them. Blocks until
/// data arrives. Returns the number of bytes, which is 0 if the other end is closed.
///
/// # Errors
/// The error of `recvmsg(2)`.
pub fn receive(fd: BorrowedFd<'_>, to: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut parts = [io::IoSliceMut::new(to)];
    let mut space = nix::cmsg_space!([RawFd; 3]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(fd.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut all = Vec::new();
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = message {
            // SAFETY: the kernel has just created these descriptors for this call, so they have no
            // other owner.
            all.extend(fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    Ok((received.bytes, all))
}
