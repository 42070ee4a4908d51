//! Memory that a switch shares with one agent. This is the only unsafe code of agent ports, apart
//! from receiving descriptors.
//!
//! The other process may write anywhere at any time. Therefore, the switch makes no references to
//! bytes in the memory. It copies data in and out through raw pointers, and reads each value for a
//! decision only once, as an atomic. The agent trusts the switch and accesses its chunks and
//! buffers as slices.

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Mapped memfd. Offsets are in bytes from its start. An offset beyond its end panics, so callers
/// first validate values from the other side.
pub struct Memory {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and any single thread may use it.
unsafe impl Send for Memory {}

impl Memory {
    /// Creates a memory of `bytes` zero bytes. Its length is sealed, so that an access within it
    /// never ends the process (SIGBUS).
    ///
    /// An agent can return pages in it to the system (`fallocate(2)`, `madvise(2)`). Such a hole
    /// reads as zeros, and the next access costs a page fault. No seal forbids only that. The seals
    /// against holes, `F_SEAL_WRITE` and `F_SEAL_FUTURE_WRITE`, also forbid the agent to map the
    /// memory for writing.
    ///
    /// # Errors
    /// The kernel's error, such as ENOMEM or EMFILE.
    pub fn create(bytes: usize) -> io::Result<(OwnedFd, Memory)> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let fd = memfd_create(c"axon-agent-port", flags)?;
        nix::unistd::ftruncate(&fd, bytes as i64)?;
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&fd, FcntlArg::F_ADD_SEALS(seals))?;
        // Pages are allocated on use, mostly by the agent when it opens the memory. Allocating all
        // pages at once would stall the switch.
        let memory = Memory::map(fd.as_fd(), bytes, 0)?;
        Ok((fd, memory))
    }

    /// Maps the memory that the other side has created, and populates its pages.
    ///
    /// # Errors
    /// The length of the memory is not sealed or is not `bytes`. Also as
    /// [`create`](Memory::create).
    pub fn open(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<Memory> {
        let seals = SealFlag::from_bits_truncate(fcntl(fd, FcntlArg::F_GET_SEALS)?);
        let length = nix::sys::stat::fstat(fd)?.st_size;
        if !seals.contains(SealFlag::F_SEAL_SHRINK) || length != bytes as i64 {
            let why = format!("memory of {length} bytes, expected {bytes} bytes sealed");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Memory::map(fd, bytes, libc::MAP_POPULATE)
    }

    fn map(fd: BorrowedFd<'_>, bytes: usize, flags: libc::c_int) -> io::Result<Memory> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | flags;
        // SAFETY: this is a new mapping at an address that the kernel chooses, so it aliases
        // nothing here.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Memory { base, bytes })
    }

    /// Returns a pointer to `count` mapped bytes at `offset`, aligned to `align`.
    #[inline]
    fn place(&self, offset: usize, count: usize, align: usize) -> NonNull<u8> {
        let inside = offset.checked_add(count).is_some_and(|end| end <= self.bytes);
        assert!(
            inside && offset.is_multiple_of(align),
            "{count} bytes at {offset} of shared memory"
        );
        // SAFETY: the offset lies within the mapping, as checked above.
        unsafe { self.base.add(offset) }
    }

    /// Returns the cursor or flag at `offset`.
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        let place = self.place(offset, 4, 4);
        // SAFETY: the word is mapped for as long as `self` exists, it is aligned (a mapping begins
        // at a page), and both sides access it only atomically.
        unsafe { AtomicU32::from_ptr(place.cast().as_ptr()) }
    }

    /// Returns the word of a descriptor at `offset`.
    #[inline]
    pub fn long(&self, offset: usize) -> &AtomicU64 {
        let place = self.place(offset, 8, 8);
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(place.cast().as_ptr()) }
    }

    /// Copies `bytes` to `offset`.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let place = self.place(offset, bytes.len(), 1);
        // SAFETY: all of the target is mapped, and nothing of this process is there, so source and
        // target do not overlap. The other process may write at the same time. The bytes are then
        // any mixture, to the detriment of that process only.
        unsafe { place.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) }
    }

    /// Copies the bytes at `offset` to `to`. The other process may change them meanwhile, so the
    /// copy may contain any bytes. Only the copy is used from then on.
    #[inline]
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        let place = self.place(offset, to.len(), 1);
        // SAFETY: as in `write`, and every value of a byte is valid.
        unsafe { place.copy_to_nonoverlapping(NonNull::from(&mut *to).cast(), to.len()) }
    }

    /// Returns the bytes at `offset`, for the side that owns them according to the descriptors.
    /// Only the agent uses this, because the switch does not write to chunks that it has handed
    /// over until they are returned.
    #[inline]
    pub(crate) fn slice(&mut self, offset: usize, count: usize) -> &mut [u8] {
        let place = self.place(offset, count, 1);
        // SAFETY: the bytes are mapped and initialised (a memfd begins as zeros). `&mut self` makes
        // this the only slice in this process, and by the protocol the other process leaves it
        // alone.
        unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), count) }
    }
}

impl std::ops::Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this is exactly the mapping that `map` made, and nothing borrows from it any
        // more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FallocateFlags, fallocate};
    use std::sync::atomic::Ordering;

    #[test]
    fn the_pages_of_a_memory_are_found_by_the_side_that_opens_it() {
        let bytes = 64 << 20;
        let (fd, switch) = Memory::create(bytes).unwrap();
        let pages_bytes = || nix::sys::stat::fstat(&fd).unwrap().st_blocks as usize * 512;
        switch.write(0, b"head");
        assert!(pages_bytes() < bytes / 8, "{} bytes", pages_bytes());
        let _agent = Memory::open(fd.as_fd(), bytes).unwrap();
        assert!(pages_bytes() >= bytes, "{} bytes", pages_bytes());
    }

    #[test]
    fn both_sides_see_what_either_has_written() {
        let (fd, switch) = Memory::create(8192).unwrap();
        let mut agent = Memory::open(fd.as_fd(), 8192).unwrap();
        switch.write(100, b"head");
        assert_eq!(agent.slice(100, 4), b"head");
        agent.slice(100, 4).copy_from_slice(b"HEAD");
        let mut copy = [0; 4];
        switch.read(100, &mut copy);
        assert_eq!(&copy, b"HEAD");
        switch.word(4096).store(7, Ordering::Release);
        assert_eq!(agent.long(4096).load(Ordering::Acquire), 7);
    }

    #[test]
    fn nobody_can_change_the_length_of_a_memory_and_one_of_another_length_is_refused() {
        let (fd, _memory) = Memory::create(8192).unwrap();
        assert!(nix::unistd::ftruncate(&fd, 4096).is_err());
        assert!(nix::unistd::ftruncate(&fd, 16384).is_err());
        assert!(Memory::open(fd.as_fd(), 4096).is_err());
        let open = memfd_create(c"unsealed", MFdFlags::MFD_ALLOW_SEALING).unwrap();
        nix::unistd::ftruncate(&open, 8192).unwrap();
        assert!(Memory::open(open.as_fd(), 8192).is_err());
    }

    #[test]
    fn a_hole_that_an_agent_makes_is_read_as_zeros_and_written_again() {
        let (fd, switch) = Memory::create(8192).unwrap();
        switch.write(4096, b"head");
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        fallocate(&fd, hole, 0, 8192).unwrap();
        let mut copy = [1; 4];
        switch.read(4096, &mut copy);
        assert_eq!(copy, [0; 4]);
        switch.write(4096, b"HEAD");
        switch.read(4096, &mut copy);
        assert_eq!(&copy, b"HEAD");
    }

    #[test]
    #[should_panic(expected = "of shared memory")]
    fn what_lies_beyond_the_memory_is_never_touched() {
        let (_fd, memory) = Memory::create(4096).unwrap();
        memory.read(4090, &mut [0; 7]);
    }
}
