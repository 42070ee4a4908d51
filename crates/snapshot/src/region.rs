//! Memory region at a fixed address, and its blocks.
//!
//! Blocks are cut off the unused end, and freed ones go to a list of their size. The first word of
//! a free block is the address of the next.

use crate::classes::{CLASSES, Class};
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// Start of the region: 16 TiB, far from programs, stacks and libraries.
pub const BASE: usize = 1 << 44;
/// Reserved addresses in bytes; memory is allocated on use.
pub const BYTES_MAX: usize = 1 << 40;
/// Minimum number of reserved bytes.
const BYTES_MIN: usize = 1 << 28;
/// Unit in which memory is mapped and saved: a multiple of the pages of every kernel.
pub const PAGE: usize = 1 << 16;
/// Size from which the memory of freed blocks is returned to the system until reuse.
const LARGE: usize = 1 << 17;

/// State of the region.
#[derive(Debug)]
pub struct Region {
    /// First address that was never allocated.
    end: usize,
    /// End of the usable addresses.
    limit: usize,
    /// First free block of each class; 0 if none.
    free: [usize; CLASSES],
}

impl Region {
    /// Creates a region without memory.
    pub const fn new() -> Region {
        Region { end: 0, limit: 0, free: [0; CLASSES] }
    }

    /// Reserves the addresses, or as many of the first as the system permits. They must be unused.
    pub fn reserve(&mut self) -> Result<(), Errno> {
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE | MapFlags::MAP_FIXED_NOREPLACE;
        let mut bytes = BYTES_MAX;
        loop {
            let length = NonZeroUsize::new(bytes).ok_or(Errno::ENOMEM)?;
            // SAFETY: a new mapping that replaces none; its memory belongs to nobody yet.
            match unsafe { mmap_anonymous(wanted(), length, READ_WRITE, flags) } {
                Ok(at) if at.as_ptr() as usize == BASE => break,
                Ok(_) => return Err(Errno::EEXIST),
                Err(Errno::ENOMEM) if bytes > BYTES_MIN => bytes /= 2,
                Err(error) => return Err(error),
            }
        }
        (self.end, self.limit) = (BASE, BASE + bytes);
        Ok(())
    }

    /// Returns whether an address is in the region.
    #[inline]
    pub fn contains(address: usize) -> bool {
        (BASE..BASE + BYTES_MAX).contains(&address)
    }

    /// Returns the bytes in use from [`BASE`] on, in whole pages.
    pub fn used(&self) -> usize {
        (self.end - BASE).next_multiple_of(PAGE)
    }

    /// Allocates a block of this class; `None` if there is no more memory.
    pub fn take(&mut self, class: Class) -> Option<NonNull<u8>> {
        let first = self.free[class.number];
        if let Some(block) = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(first)) {
            // SAFETY: it is in the list, so the word that `put` wrote is still in it.
            self.free[class.number] = unsafe { block.cast::<usize>().read() };
            return Some(block);
        }
        let begin = self.end.next_multiple_of(class.align);
        let end = begin.checked_add(class.bytes).filter(|&end| end <= self.limit)?;
        self.end = end;
        NonNull::new(std::ptr::with_exposed_provenance_mut(begin))
    }

    /// Frees a block.
    ///
    /// # Safety
    /// The block is of [`Region::take`] with this class and no longer used.
    pub unsafe fn put(&mut self, block: NonNull<u8>, class: Class) {
        if class.bytes >= LARGE {
            let begin = block.addr().get().next_multiple_of(PAGE);
            let whole = (block.addr().get() + class.bytes - begin) & !(PAGE - 1);
            let pages = std::ptr::with_exposed_provenance_mut::<std::ffi::c_void>(begin);
            if let Some(pages) = NonNull::new(pages) {
                // SAFETY: these pages are of the block alone, whose content nobody needs. That it
                // may fail does no harm: then they stay.
                let _ = unsafe { madvise(pages, whole, MmapAdvise::MADV_DONTNEED) };
            }
        }
        // SAFETY: the block is ours and holds at least a word, at whose alignment it begins.
        unsafe { block.cast::<usize>().write(self.free[class.number]) };
        self.free[class.number] = block.expose_provenance().get();
    }
}

const READ_WRITE: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);

fn wanted() -> Option<NonZeroUsize> {
    NonZeroUsize::new(BASE)
}

/// Maps the part of a file from `offset` on as a region's contents; writes do not change the file.
pub fn map(file: impl AsFd, offset: usize, used: usize) -> Result<(), Errno> {
    let Some(bytes) = NonZeroUsize::new(used) else { return Err(Errno::EINVAL) };
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE | MapFlags::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping that replaces none.
    let at = unsafe { mmap(wanted(), bytes, READ_WRITE, flags, file, offset as i64) }?;
    // A kernel before 4.17 ignores the last flag and maps at any address.
    if at.as_ptr() as usize == BASE { Ok(()) } else { Err(Errno::EEXIST) }
}
