//! Allocator of the program: the system's, or, from [`Heap::collect`] on, the region.
//!
//! A process that has restored a snapshot allocates from the system. Freed blocks of the image stay
//! in place, so at most the size of the image is lost.

use crate::classes::Class;
use crate::region::Region;
use nix::errno::Errno;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// Global allocator of a program that makes or restores snapshots.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

/// True if memory comes from the region.
static COLLECTS: AtomicBool = AtomicBool::new(false);
static REGION: Locked =
    Locked { held: AtomicBool::new(false), region: UnsafeCell::new(Region::new()) };

struct Locked {
    held: AtomicBool,
    region: UnsafeCell<Region>,
}

// SAFETY: `Locked::with` gives one thread at a time the region.
unsafe impl Sync for Locked {}

impl Locked {
    /// Waits until no other thread has the region. `work` must not allocate.
    fn with<R>(&self, work: impl FnOnce(&mut Region) -> R) -> R {
        while self
            .held
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        // SAFETY: `held` was false and is true now, so no other thread is here.
        let result = work(unsafe { &mut *self.region.get() });
        self.held.store(false, Ordering::Release);
        result
    }
}

impl Heap {
    /// Allocates from the region from now on, so that later values can be [saved](crate::save).
    /// Must be called once in a process, before it has threads.
    ///
    /// # Errors
    /// EEXIST: it was called before, or the region's addresses are in use. ENOMEM: a limit on
    /// addresses (`ulimit -v`) or the kernel's strict accounting (`vm.overcommit_memory=2`) does
    /// not leave enough.
    pub fn collect() -> Result<(), Errno> {
        REGION.with(Region::reserve)?;
        COLLECTS.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether memory comes from the region.
    pub(crate) fn collects() -> bool {
        COLLECTS.load(Ordering::Relaxed)
    }

    /// Allocates from the system again. Returns the number of bytes of the region in use.
    pub(crate) fn close() -> usize {
        COLLECTS.store(false, Ordering::Relaxed);
        REGION.with(|region| region.used())
    }
}

// SAFETY: blocks of the region do not overlap, are aligned and as large as asked for
// (`Class::of`, `Region::take`); all others are the system's, and go back there.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !Heap::collects() {
            // SAFETY: the caller's word for the layout.
            return unsafe { System.alloc(layout) };
        }
        let block = Class::of(layout).and_then(|class| REGION.with(|region| region.take(class)));
        block.map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !Heap::collects() {
            // SAFETY: the caller's word for the layout.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the same; the block is as large as what is written.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !Region::contains(block.addr()) {
            // SAFETY: it is not of the region, so it came from the system, with this layout.
            return unsafe { System.dealloc(block, layout) };
        }
        if let (true, Some(block), Some(class)) =
            (Heap::collects(), NonNull::new(block), Class::of(layout))
        {
            // SAFETY: it was taken with this layout, and the caller uses it no more.
            REGION.with(|region| unsafe { region.put(block, class) });
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let of_region = Region::contains(block.addr());
        if !of_region && !Heap::collects() {
            // SAFETY: as in `dealloc`; the caller's word for the size.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller's word: `size` is above zero and does not overflow.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if of_region && Class::of(layout) == Class::of(wanted) {
            return block;
        }
        // SAFETY: both blocks are as large as what is copied, and do not overlap; the old one is
        // given back as it was taken.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(block, new, layout.size().min(size));
                self.dealloc(block, layout);
            }
            new
        }
    }
}
